package localpg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestStartsOnAnEmptyFolderAndKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	begun := time.Now()
	server := mustStart(t, dir)
	empty := time.Since(begun)

	for name, value := range map[string]string{
		"data_checksums":          "on",
		"fsync":                   "on",
		"synchronous_commit":      "on",
		"max_connections":         "200",
		"listen_addresses":        "",
		"server_encoding":         "UTF8",
		"unix_socket_permissions": "0700",
	} {
		want(t, name, ask(t, server.URL(), "SHOW "+name), value)
	}
	want(t, "database", ask(t, server.URL(), "SELECT current_database()"), "countersign")
	want(t, "user", ask(t, server.URL(), "SELECT current_user"), "postgres")
	want(t, "order of text", ask(t, server.URL(), "SELECT datcollate FROM pg_database WHERE datname = current_database()"), "C")
	want(t, "ways in", ask(t, server.URL(), "SELECT string_agg(DISTINCT type, ',') FROM pg_hba_file_rules WHERE auth_method <> 'reject'"), "local")
	for _, private := range []string{dir, server.socketDir} {
		info, err := os.Stat(private)
		check(t, err)
		want(t, private, info.Mode().Perm(), os.FileMode(0o700))
	}

	ask(t, server.URL(), "CREATE DATABASE other")
	want(t, "other database", ask(t, server.DatabaseURL("other"), "SELECT current_database()"), "other")
	ask(t, server.URL(), "CREATE TABLE kept AS SELECT 42 AS n")

	// An open transaction must not hold up the end.
	conn, err := pgx.Connect(t.Context(), server.URL())
	check(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "BEGIN; INSERT INTO kept VALUES (43)")
	check(t, err)
	pid := postmaster(dir)
	mustClose(t, server)
	want(t, "the process is there", isPostmaster(pid, server.in.cluster), false)
	mustClose(t, server) // nothing happens

	begun = time.Now()
	server = mustStart(t, dir)
	if took := time.Since(begun); took > empty {
		t.Errorf("starting on an existing folder took %s, and on the empty one %s", took, empty)
	}
	want(t, "data", ask(t, server.URL(), "SELECT sum(n) FROM kept"), "42")
	mustClose(t, server)
}

func TestFiveProcessesAtOnceOnAnEmptyFolder(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	var users []*userProcess
	for range 5 {
		users = append(users, newUser(t, dir))
	}
	for _, u := range users {
		u.begin(t)
	}
	pid := users[0].pid(t)
	for _, u := range users[1:] {
		want(t, "postmaster", u.pid(t), pid)
	}
	for _, u := range users {
		want(t, "postmaster", postmaster(dir), pid) // it serves to the last one
		u.leave(t)
	}
	want(t, "postmaster after the last one left", postmaster(dir), 0)
}

func TestLastOneOutStopsTheServer(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	first, second := mustStart(t, dir), mustStart(t, dir)
	other := newUser(t, dir)
	other.begin(t)
	want(t, "postmaster", other.pid(t), postmaster(dir))

	mustClose(t, first)
	mustClose(t, first) // must not count twice
	ask(t, second.URL(), "SELECT 1")
	mustClose(t, second)
	ask(t, second.URL(), "SELECT 1") // the other process is still there
	other.leave(t)
	want(t, "postmaster", postmaster(dir), 0)
}

// Leaving and coming at the same moment: whoever got a server has it until its
// own Close.
func TestCloseWhileOthersStart(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 6 {
				server, err := Start(t.Context(), Config{DataDir: dir})
				if err != nil {
					t.Error(err)
					return
				}
				for range 2 {
					if _, err := tryAsk(server.URL(), "SELECT 1"); err != nil {
						t.Error(err)
					}
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		other := newUser(t, dir)
		other.begin(t)
		other.pid(t)
		other.leave(t)
	}
	all.Wait()
	want(t, "postmaster", postmaster(dir), 0)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	start := func(settings map[string]string) (*Server, error) {
		return Start(t.Context(), Config{DataDir: dir, Settings: settings})
	}
	for _, name := range []string{"listen_addresses", "Listen-Addresses", "port", "unix_socket_directories", "hba_file"} {
		_, err := start(map[string]string{name: "0"})
		wantError(t, err, "localpg: ", name)
	}
	_, err := start(map[string]string{"shared_buffers": "plenty"})
	wantError(t, err, "localpg: ", "shared_buffers", "plenty", filepath.Join(dir, logName))

	server, err := start(map[string]string{"Max_Connections": "20", "fsync": "off"})
	check(t, err)
	want(t, "max_connections", ask(t, server.URL(), "SHOW max_connections"), "20")
	want(t, "fsync", ask(t, server.URL(), "SHOW fsync"), "off")
	mustClose(t, server)
}

func TestGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	reason := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		// In the middle of the work: initdb has begun.
		for matches := 0; matches == 0 && ctx.Err() == nil; time.Sleep(time.Millisecond) {
			found, _ := filepath.Glob(filepath.Join(dir, "pg.new-*", "global"))
			matches = len(found)
		}
		cancel(reason)
	}()
	_, err := Start(ctx, Config{DataDir: dir})
	wantError(t, err, dir, reason.Error())
	mustClose(t, mustStart(t, dir))
	left, _ := filepath.Glob(filepath.Join(dir, "pg.new-*"))
	want(t, "unfinished data directories", len(left), 0)
}

func TestOtherMajorVersion(t *testing.T) {
	t.Parallel()
	dir := usedDir(t)
	server := mustStart(t, dir)
	version := strings.Split(ask(t, server.URL(), "SHOW server_version"), ".")[0]
	mustClose(t, server)
	check(t, os.WriteFile(filepath.Join(dir, clusterName, "PG_VERSION"), []byte("12\n"), 0o600))
	_, err := Start(t.Context(), Config{DataDir: dir})
	wantError(t, err, dir, "PostgreSQL 12", "PostgreSQL "+version, binVariable)
}

func TestForeignFolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	check(t, os.Mkdir(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600))
	_, err := Start(t.Context(), Config{DataDir: dir})
	wantError(t, err, dir, "thesis.txt")
	info, err := os.Stat(dir)
	check(t, err)
	want(t, "mode", info.Mode().Perm(), os.FileMode(0o755))
}
