// Package bouncer puts a real PgBouncer between a client and a test's database: in transaction mode,
// with fewer sessions than the client has connections, so that two transactions of one connection
// meet two sessions.
package bouncer

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Bouncer is a running PgBouncer.
type Bouncer struct {
	URL string // through it, as the login of the upstream URL

	t       testing.TB
	address string
	config  string
	process *exec.Cmd
	log     *log
}

// New starts a PgBouncer before the database at upstream, a TCP address, for one login. more are
// further lines of its configuration.
func New(t testing.TB, upstream string, more ...string) *Bouncer {
	t.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &Bouncer{t: t, address: freeAddress(t), config: filepath.Join(dir, "pgbouncer.ini"), log: &log{}}
	_, port, _ := net.SplitHostPort(b.address)
	password, _ := to.User.Password()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { // for the user that it runs as
			t.Fatal(err)
		}
		return path
	}
	users := write("users.txt", fmt.Sprintf("%q %q\n", to.User.Username(), password))
	write("pgbouncer.ini", strings.Join(append([]string{
		"[databases]", fmt.Sprintf("* = host=%s port=%s", to.Hostname(), to.Port()),
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + port, "unix_socket_dir =",
		"auth_type = trust", "auth_file = " + users, "pool_mode = transaction", "default_pool_size = 4",
		"max_client_conn = 200", "query_wait_timeout = 20", "server_login_retry = 0", "server_tls_sslmode = disable",
	}, more...), "\n")+"\n")
	to.Host = b.address
	b.URL = to.String()
	b.Start()
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			t.Logf("PgBouncer:\n%s", b.Log())
		}
	})
	return b
}

// Start starts it, again after Kill, and returns once it listens.
func (b *Bouncer) Start() {
	b.t.Helper()
	arguments := []string{b.config}
	if os.Getuid() == 0 { // it will not run as root
		arguments = []string{"-u", "nobody", b.config}
	}
	b.process = exec.Command(program(b.t), arguments...)
	b.process.Stderr, b.process.Stdout = b.log, b.log
	if err := b.process.Start(); err != nil {
		b.t.Fatalf("PgBouncer does not start: %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", b.address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("PgBouncer does not listen: %v\n%s", err, b.Log())
		}
	}
}

// Kill ends it with -9.
func (b *Bouncer) Kill() {
	if b.process != nil {
		_ = b.process.Process.Kill()
		_ = b.process.Wait()
		b.process = nil
	}
}

// Log is what it has written.
func (b *Bouncer) Log() string { return b.log.String() }

// PreparesStatements says whether this PgBouncer can carry prepared statements from session to session.
func PreparesStatements(t testing.TB) bool {
	t.Helper()
	out, err := exec.Command(program(t), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(regexp.MustCompile(`\d+\.\d+`).FindString(string(out)), "%d.%d", &major, &minor); err != nil {
		t.Fatalf("PgBouncer's version is %q", out)
	}
	return major > 1 || minor >= 21
}

// program is PgBouncer's. A test that needs it fails where there is none.
func program(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("this test needs PgBouncer: make pgbouncer brings it, or install the package pgbouncer")
	return ""
}

// freeAddress is an address of this machine that nobody listens at.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// log is a process' output.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
