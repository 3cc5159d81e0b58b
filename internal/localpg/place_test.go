package localpg

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A path too long for a socket, with characters that lists of folders, hosts
// and addresses give a meaning to.
func TestAwkwardPath(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	awkward := filepath.Join(dir, strings.Repeat("long", 30), "a folder, it's 100% + \"quoted\"")
	server := mustStart(t, awkward)
	if len(server.socketDir) > 80 {
		t.Errorf("socket in %s", server.socketDir)
	}
	info, err := os.Stat(server.socketDir)
	check(t, err)
	want(t, "mode", info.Mode().Perm(), os.FileMode(0o700))
	ask(t, server.URL(), "SELECT 1")
	mustClose(t, server)
	want(t, "the socket's folder is there", exists(server.socketDir), false)

	// Somebody else has put a folder there that others may enter.
	check(t, os.Mkdir(server.socketDir, 0o755))
	check(t, os.Chmod(server.socketDir, 0o755))
	avoids(t, awkward, server.socketDir)
	check(t, os.Remove(server.socketDir))
	check(t, os.Symlink(dir, server.socketDir))
	avoids(t, awkward, server.socketDir)
	check(t, os.Remove(server.socketDir))
}

// avoids starts a server that must not put its socket into a planted folder: it refuses, or takes
// another place where there is one.
func avoids(t *testing.T, dir, planted string) {
	t.Helper()
	server, err := Start(t.Context(), Config{DataDir: dir})
	if err != nil {
		wantError(t, err, planted, "not a private folder")
		return
	}
	if server.socketDir == planted {
		t.Errorf("the socket is in the planted folder %s", planted)
	}
	mustClose(t, server)
}

func TestSpacesInThePath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(filepath.Dir(dataDir(t)), "my data + more")
	check(t, os.Rename(usedDir(t), dir))
	server := mustStart(t, dir)
	want(t, "socket", server.socketDir, filepath.Join(dir, socketDirName))
	ask(t, server.URL(), "SELECT 1")
	mustClose(t, server)
}

// Root's server runs as nobody in particular. The folder of an ordinary user
// stays that user's when root comes by.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	uid := os.Geteuid()
	user := newUser(t, dir, func(cmd *exec.Cmd) {
		if uid != 0 {
			return
		}
		// nobody: the test binary and the folder must be where it can go.
		uid = 65534
		parent := filepath.Dir(dir)
		cmd.Path = filepath.Join(parent, "user")
		copyTree(t, os.Args[0], cmd.Path)
		check(t, os.Chmod(cmd.Path, 0o755))
		check(t, os.Chmod(parent, 0o777))
		cmd.Dir = parent
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	})
	user.begin(t)
	user.pid(t)
	server := mustStart(t, dir) // shares it
	ask(t, server.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	user.leave(t)
	mustClose(t, server)

	server = mustStart(t, dir)
	want(t, "data", ask(t, server.URL(), "SELECT n FROM kept"), "42")
	want(t, "runs as", runsAs(t, server), uid)
	mustClose(t, server)
	for _, name := range []string{".", startLockName, useLockName, logName, clusterName, socketDirName} {
		got, _, err := owner(filepath.Join(dir, name))
		check(t, err)
		want(t, "owner of "+name, got, uid)
	}
}

// Below a folder that only its owner may enter, as in root's home, no other
// account can run the server.
func TestFolderThatOthersCannotReach(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	check(t, os.Mkdir(dir, 0o700))
	hidden := filepath.Join(dir, "hidden")
	server := mustStart(t, hidden)
	ask(t, server.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	want(t, "runs as", runsAs(t, server), os.Geteuid())
	pid := postmaster(hidden)
	if os.Geteuid() == 0 {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		check(t, err)
		if !strings.Contains(string(status), "\nCapEff:\t0000000000000000\n") {
			t.Errorf("the server has capabilities: %s", status)
		}
	}
	mustClose(t, server)

	// Once others can, as after the folder was moved, one of them takes over.
	check(t, os.Chmod(dir, 0o755))
	server = mustStart(t, hidden)
	want(t, "data", ask(t, server.URL(), "SELECT n FROM kept"), "42")
	if os.Geteuid() == 0 && runsAs(t, server) == 0 {
		t.Error("still runs as root's")
	}
	mustClose(t, server)

	// And back.
	check(t, os.Chmod(dir, 0o700))
	server = mustStart(t, hidden)
	want(t, "data", ask(t, server.URL(), "SELECT n FROM kept"), "42")
	mustClose(t, server)
}

// runsAs is the user of the server, seen from outside: who owns its socket.
func runsAs(t *testing.T, server *Server) int {
	t.Helper()
	uid, _, err := owner(filepath.Join(server.socketDir, ".s.PGSQL.5432"))
	check(t, err)
	return uid
}
