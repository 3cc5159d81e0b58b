package localpg

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestOrphanIsReusedThenStopped(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	user := newUser(t, dir)
	user.begin(t)
	pid := user.pid(t)
	user.kill(t)
	want(t, "postmaster without a user", postmaster(dir), pid)

	server := mustStart(t, dir)
	want(t, "postmaster", postmaster(dir), pid)
	ask(t, server.URL(), "SELECT 1")
	mustClose(t, server)
	want(t, "postmaster", postmaster(dir), 0)
}

// Both die at once, several times: what was committed is there, and what the
// old server's backends and shared memory leave behind is waited out.
func TestUserAndPostmasterKilled(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	server := mustStart(t, dir)
	ask(t, server.URL(), "CREATE TABLE kept (n int)")
	mustClose(t, server)
	for round := range 3 {
		user := newUser(t, dir)
		user.begin(t)
		pid := user.pid(t)
		ask(t, databaseURL(filepath.Join(dir, socketDirName), Database), fmt.Sprintf("INSERT INTO kept VALUES (%d)", round))
		if round > 0 {
			user.kill(t)
		}
		signal(t, pid, syscall.SIGKILL)

		server := mustStart(t, dir)
		want(t, "rows", ask(t, server.URL(), "SELECT count(*) FROM kept"), fmt.Sprint(round+1))
		if round == 0 {
			user.leave(t) // the other one's server has come back, it leaves as if nothing had been
			ask(t, server.URL(), "SELECT 1")
		}
		mustClose(t, server)
	}
}

// The pid file of a crashed server names a process id that is somebody else's
// by now, of the same user: it must neither keep us out nor be signalled.
func TestStalePidFileNamesAStranger(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	attr := identity{}.attr()
	if os.Geteuid() == 0 {
		uid, gid, err := owner(filepath.Join(dir, clusterName))
		check(t, err)
		attr = identity{switched: true, uid: uid, gid: gid}.attr()
	}
	stranger := exec.Command("sleep", "60")
	stranger.SysProcAttr, stranger.Dir = attr, "/"
	check(t, stranger.Start())
	died := make(chan error, 1)
	go func() { died <- stranger.Wait() }()
	defer stranger.Process.Kill()
	number := fmt.Sprint(stranger.Process.Pid)

	for _, forge := range []func(was string) string{
		func(was string) string { // all as it was, except who has the number
			_, rest, _ := strings.Cut(was, "\n")
			return number + "\n" + rest
		},
		func(string) string { return number + "\n" },
		func(string) string { return "" }, // the machine stopped before it was written
	} {
		user := newUser(t, dir)
		user.begin(t)
		pid := user.pid(t)
		user.kill(t)
		pidPath := filepath.Join(dir, clusterName, pidFileName)
		was, err := os.ReadFile(pidPath)
		check(t, err)
		signal(t, pid, syscall.SIGKILL)
		for _, path := range []string{pidPath, filepath.Join(dir, socketDirName, ".s.PGSQL.5432.lock")} {
			check(t, os.WriteFile(path, []byte(forge(string(was))), 0o600))
		}
		in, err := open(Config{DataDir: dir})
		check(t, err)
		check(t, in.stop()) // there is nothing of ours to stop

		server := mustStart(t, dir)
		ask(t, server.URL(), "SELECT 1")
		mustClose(t, server)
	}
	select {
	case err := <-died:
		t.Errorf("the stranger: %v", err)
	default:
	}
}

// A backend outlives its killed postmaster and still has the shared memory: the
// new server exits, and is started again until the old one is gone altogether.
func TestOldBackendIsWaitedOut(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	user := newUser(t, dir)
	user.begin(t)
	pid := user.pid(t)
	conn, err := pgx.Connect(t.Context(), databaseURL(filepath.Join(dir, socketDirName), Database))
	check(t, err)
	defer conn.Close(t.Context())
	user.kill(t)
	backend := int(conn.PgConn().PID())
	signal(t, backend, syscall.SIGSTOP)
	signal(t, pid, syscall.SIGKILL)

	started := make(chan error, 1)
	go func() {
		server, err := Start(t.Context(), Config{DataDir: dir})
		if err == nil {
			err = server.Close()
		}
		started <- err
	}()
	eventually(t, "a new server meets the old one's backend", func() bool {
		log, _ := os.ReadFile(filepath.Join(dir, logName))
		return strings.Contains(string(log), "is still in use")
	})
	signal(t, backend, syscall.SIGCONT)
	check(t, <-started)
}

func TestStartWhileAnOldServerShutsDown(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	for range 4 {
		user := newUser(t, dir)
		user.begin(t)
		pid := user.pid(t)
		user.kill(t)
		signal(t, pid, syscall.SIGINT)
		server := mustStart(t, dir)
		ask(t, server.URL(), "SELECT 1")
		mustClose(t, server)
	}
}

// A smart shutdown never ends while somebody is connected.
func TestServerThatNeverFinishesStopping(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	user := newUser(t, dir)
	user.begin(t)
	pid := user.pid(t)
	conn, err := pgx.Connect(t.Context(), databaseURL(filepath.Join(dir, socketDirName), Database))
	check(t, err)
	defer conn.Close(t.Context())
	signal(t, pid, syscall.SIGTERM)
	server := mustStart(t, dir)
	if postmaster(dir) == pid {
		t.Error("the old server is still there")
	}
	ask(t, server.URL(), "SELECT 1")
	user.leave(t)
	mustClose(t, server)
}

// A server that is killed comes back by itself, on the same address and for all
// of its users, without a Start.
func TestServerComesBackUnderItsUsers(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	user := newUser(t, dir)
	user.begin(t)
	pid := user.pid(t)
	server := mustStart(t, dir)
	ask(t, server.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		signal(t, pid, s)
		next := 0
		eventually(t, "another server answers", func() bool {
			if next = postmaster(dir); next == 0 || next == pid {
				return false
			}
			n, err := tryAsk(server.URL(), "SELECT n FROM kept")
			return err == nil && n == "42"
		})
		pid = next
	}
	mustClose(t, server)
	want(t, "postmaster", postmaster(dir), pid)
	user.leave(t)
}

func TestOrphanWithoutASocketIsReplaced(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	user := newUser(t, dir)
	user.begin(t)
	pid := user.pid(t)
	user.kill(t)
	check(t, os.Remove(filepath.Join(dir, socketDirName, ".s.PGSQL.5432")))
	server := mustStart(t, dir)
	if postmaster(dir) == pid {
		t.Error("the old server is still there")
	}
	ask(t, server.URL(), "SELECT 1")
	mustClose(t, server)
}

func TestUserKilledDuringTheFirstStart(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	user := newUser(t, dir)
	user.begin(t)
	eventually(t, "initdb begins", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "pg.new-*", "global"))
		return len(found) > 0
	})
	user.kill(t)
	server := mustStart(t, dir)
	ask(t, server.URL(), "SELECT 1")
	mustClose(t, server)
}

// A copy of the folder of a running server brings that server's pid file along.
func TestCopiedFolderGetsAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	copied := dir + "-copy"
	copyTree(t, dir, copied)
	original := mustStart(t, dir)
	copyTree(t, filepath.Join(dir, clusterName, pidFileName), filepath.Join(copied, clusterName))

	server := mustStart(t, copied)
	want(t, "data directory", ask(t, server.URL(), "SHOW data_directory"), filepath.Join(copied, clusterName))
	mustClose(t, server)
	ask(t, original.URL(), "SELECT 1")
	mustClose(t, original)
}
