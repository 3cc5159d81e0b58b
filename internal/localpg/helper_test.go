package localpg

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// userVariable turns the test binary into a user of the server on the named
// folder: it waits for a line, starts, prints the postmaster's process id,
// stays until its input ends, and leaves.
const userVariable = "LOCALPG_TEST_USER_OF"

func TestMain(m *testing.M) {
	dir := os.Getenv(userVariable)
	if dir == "" {
		flag.Set("test.parallel", "4") // they mostly wait for the disk; -parallel still counts
		code := m.Run()
		os.RemoveAll(filepath.Dir(usedBefore.dir))
		os.Exit(code)
	}
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	server, err := Start(context.Background(), Config{DataDir: dir})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	p, _ := readPidFile(server.in.cluster)
	fmt.Println(p.pid)
	io.Copy(io.Discard, in)
	if err := server.Close(); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// userProcess is another process that uses the server.
type userProcess struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newUser(t *testing.T, dir string, change ...func(*exec.Cmd)) *userProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	// The race detector makes a process linger for a second at its end.
	cmd.Env = append(os.Environ(), userVariable+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	for _, f := range change {
		f(cmd)
	}
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &userProcess{cmd, in, bufio.NewReader(out)}
}

// begin lets the process start the server; pid waits for it and tells the
// postmaster's process id.
func (u *userProcess) begin(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(u.in, "\n")
	check(t, err)
}

func (u *userProcess) pid(t *testing.T) (pid int) {
	t.Helper()
	line, _ := u.out.ReadString('\n')
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatalf("the other process: %q", line)
	}
	return pid
}

func (u *userProcess) kill(t *testing.T) {
	t.Helper()
	check(t, u.Process.Kill())
	u.Wait()
}

func (u *userProcess) leave(t *testing.T) {
	t.Helper()
	u.in.Close()
	check(t, u.Wait())
}

// dataDir is a folder that does not exist yet, in one that every user may
// enter. No server may be left on it at the test's end.
func dataDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "localpg-test-")
	check(t, err)
	check(t, os.Chmod(parent, 0o755))
	dir := filepath.Join(parent, "data")
	t.Cleanup(func() {
		if pid := postmaster(dir); pid != 0 {
			t.Errorf("a server is left: process %d", pid)
			in, err := open(Config{DataDir: dir})
			check(t, err)
			check(t, in.stop())
		}
		check(t, os.RemoveAll(parent))
	})
	return dir
}

// usedBefore is a folder whose first start is over: tests that are about
// something else take a copy.
var usedBefore struct {
	sync.Once
	dir string
	err error
}

func usedDir(t *testing.T) string {
	t.Helper()
	usedBefore.Do(func() {
		usedBefore.err = func() error {
			parent, err := os.MkdirTemp("", "localpg-test-")
			if err != nil {
				return err
			}
			usedBefore.dir = filepath.Join(parent, "data")
			if err := os.Chmod(parent, 0o755); err != nil {
				return err
			}
			server, err := Start(context.Background(), Config{DataDir: usedBefore.dir})
			if err != nil {
				return err
			}
			return server.Close()
		}()
	})
	check(t, usedBefore.err)
	dir := dataDir(t)
	copyTree(t, usedBefore.dir, dir)
	return dir
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.Command("cp", "-Rp", from, to).CombinedOutput()
	if err != nil {
		t.Fatalf("copy: %v: %s", err, out)
	}
}

// postmaster is the process id of the server that runs on the folder, or 0.
func postmaster(dir string) int {
	cluster := filepath.Join(dir, clusterName)
	if p, ok := readPidFile(cluster); ok && isPostmaster(p.pid, cluster) {
		return p.pid
	}
	return 0
}

func mustStart(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	check(t, err)
	t.Cleanup(func() { server.Close() }) // before dataDir's check
	return server
}

func mustClose(t *testing.T, server *Server) {
	t.Helper()
	begun := time.Now()
	check(t, server.Close())
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Close took %s", took)
	}
}

// ask runs one statement and returns the first column as text.
func ask(t *testing.T, url, sql string) string {
	t.Helper()
	answer, err := tryAsk(url, sql)
	check(t, err)
	return answer
}

func tryAsk(url, sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0]), nil
	}
	return "", nil
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantError checks that the error is one line with all the parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
}

// eventually polls until ok, for ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	check(t, syscall.Kill(pid, s))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
