package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/graph"
	"countersign/internal/testdb"
)

// asProgram makes this test's binary the program itself.
const asProgram = "COUNTERSIGN_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(testdb.Main(m))
}

// program is the real binary with its arguments, in an environment that holds nothing else of the
// program's.
func program(t *testing.T, dir string, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, args...)
	command.Dir = dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DATABASE_") && !strings.HasPrefix(variable, "LISTEN_ADDR") && !strings.HasPrefix(variable, "COUNTERSIGN_ENV") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(append(command.Env, asProgram+"=1", "LISTEN_ADDR=127.0.0.1:0"), environ...)
	return command
}

// output runs the program to its end and returns what it wrote to stdout, and its error: what it
// wrote to stderr.
func output(t *testing.T, dir string, environ []string, args ...string) (string, error) {
	t.Helper()
	command := program(t, dir, environ, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = errors.New(strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

// running is a server process.
type running struct {
	process *exec.Cmd
	printed map[string]string // what it printed at its start, by the first word of the line
	url     string
	log     *bytes.Buffer
	exited  chan struct{}
	err     error // why it exited; to be read once it has
}

// serve starts a server and waits until it says where it serves. It is killed at the test's end.
func serve(t *testing.T, dir string, environ ...string) *running {
	t.Helper()
	r := &running{process: program(t, dir, environ, "serve"), printed: map[string]string{}, log: &bytes.Buffer{}, exited: make(chan struct{})}
	stdout, err := r.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.process.Stderr = r.log
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(t, os.Kill) })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		r.printed[word] = strings.TrimSpace(rest)
		if address := regexp.MustCompile(`http://\S+/graphql`).FindString(lines.Text()); address != "" {
			r.url = strings.TrimSuffix(address, "/graphql")
		}
		if word == "series" || r.url != "" && isProduction(environ) {
			break
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		r.err = r.process.Wait()
		close(r.exited)
	}()
	if r.url == "" {
		<-r.exited
		t.Fatalf("the server did not start: %s", r.log)
	}
	return r
}

func isProduction(environ []string) bool {
	return strings.Contains(strings.Join(environ, " "), "COUNTERSIGN_ENV=production")
}

// value is the first word of what the server printed under a name.
func (r *running) value(name string) string {
	value, _, _ := strings.Cut(r.printed[name], " ")
	return value
}

// stop sends a signal and waits for the end.
func (r *running) stop(t *testing.T, signal os.Signal) {
	t.Helper()
	_ = r.process.Process.Signal(signal)
	select {
	case <-r.exited:
	case <-time.After(20 * time.Second):
		_ = r.process.Process.Kill()
		t.Errorf("the server did not stop after %v", signal)
	}
}

// post sends a GraphQL request and returns the answer.
func (r *running) post(t *testing.T, query string) (status int, body string) {
	t.Helper()
	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	status, body, err = r.send(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// send sends a GraphQL request's body.
func (r *running) send(ctx context.Context, text []byte) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/graphql", bytes.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+r.value("token"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// get returns a page's status and body; 0 where nobody answers.
func (r *running) get(path string) (int, string) {
	response, err := http.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// allocate numbers an invoice of the demo tenant and returns its number.
func (r *running) allocate(t *testing.T) string {
	t.Helper()
	_, body := r.post(t, fmt.Sprintf(`mutation { allocateInvoice(input: {seriesId: %q, customerId: %q, currency: "EUR",
		lines: [{description: "Pawn", quantity: 1, unitAmountMinor: 100}]}) { invoice { number } } }`, r.value("series"), r.value("customer")))
	number := regexp.MustCompile(`[A-Z]+-\d+`).FindString(body)
	if number == "" {
		t.Errorf("no number: %s", body)
	}
	return number
}

// The examples of the README work as they are written, and answer what it says.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := serve(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(dir, "bin", "countersign")); err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```sh\n(.*?)```\n\n```(?:json|text)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 7 || len(examples) != strings.Count(string(text), "```sh\n") {
		t.Fatalf("%d examples with an answer, of %d", len(examples), strings.Count(string(text), "```sh\n"))
	}
	for _, example := range examples {
		shell := exec.Command("sh", "-eu", "-c", example[1])
		shell.Dir = dir
		shell.Env = append(program(t, dir, nil).Env, "URL="+s.url, "TOKEN="+s.value("token"), "CUSTOMER="+s.value("customer"), "SERIES="+s.value("series"), "PRODUCT="+s.value("product"), "KEY="+s.value("key"))
		out, err := shell.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != strings.TrimSpace(example[2]) {
			t.Errorf("%s\n%v, answers\n%s\nwant\n%s", example[1], err, got, example[2])
		}
	}
}

// The committed schema is the one that is served.
func TestTheCommittedSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile("docs/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != graph.SDL() {
		t.Error("docs/schema.graphql is stale: make generate")
	}
}

// A server keeps its data across a clean stop and across kill -9, and leaves no PostgreSQL behind
// when it is told to stop.
func TestTheServersOwnDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, dir)
	if got := first.allocate(t); got != "INV-00001" {
		t.Errorf("got %s", got)
	}
	first.stop(t, syscall.SIGTERM)
	if first.err != nil {
		t.Errorf("exit after SIGTERM: %v\n%s", first.err, first.log)
	}
	if _, err := os.Stat(filepath.Join(dir, ".data", "pg", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("PostgreSQL is still there: %v", err)
	}

	second := serve(t, dir)
	if got := second.allocate(t); got != "INV-00002" {
		t.Errorf("after a restart: got %s", got)
	}
	second.stop(t, os.Kill)

	// An orphaned PostgreSQL is found and shared, by two servers and a command.
	third, fourth := serve(t, dir), serve(t, dir)
	if got := third.allocate(t); got != "INV-00003" {
		t.Errorf("after kill -9: got %s", got)
	}
	if got := fourth.allocate(t); got != "INV-00004" {
		t.Errorf("on the second server: got %s", got)
	}
	if out, err := output(t, dir, nil, "doctor"); err != nil || !strings.HasPrefix(out, "healthy") {
		t.Errorf("the doctor beside the servers: %q, %v", out, err)
	}
	third.stop(t, syscall.SIGTERM)
	if got := fourth.allocate(t); got != "INV-00005" {
		t.Errorf("after the first of two has left: got %s", got)
	}
	fourth.stop(t, syscall.SIGTERM)

	// And the commands reach the data with no server running.
	if out, err := output(t, dir, nil, "doctor", "--tenant", "demo"); err != nil || !strings.HasPrefix(out, "healthy") {
		t.Errorf("the doctor alone: %q, %v", out, err)
	}
}

// The command line against a database that somebody else runs: it has to be migrated first, tokens
// come and go, the doctor's exit status says what it found.
func TestCommands(t *testing.T) {
	t.Parallel()
	d := testdb.Empty(t)
	environ := []string{"DATABASE_URL=" + d.URL, "COUNTERSIGN_ENV=production"}
	run := func(args ...string) (string, error) { return output(t, t.TempDir(), environ, args...) }
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(out)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := run(args...); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") && !strings.Contains(err.Error(), "Usage") {
			t.Errorf("%v: %q, %v; want one line with %q", args, out, err, want)
		}
	}
	refused("run countersign migrate", "doctor")
	must("migrate")
	must("migrate")
	tenant := must("tenant", "create", "acme", "--name", "Acme")
	if !strings.HasPrefix(tenant, "ten_") {
		t.Errorf("tenant create prints %q", tenant)
	}
	refused("exists", "tenant", "create", "acme")
	refused("handle", "tenant", "create", "Not A Handle")
	refused("no tenant", "token", "create", "--tenant", "nobody", "--role", "admin")
	refused("--role", "token", "create", "--tenant", "acme", "--role", "king")
	refused("bound to a customer", "token", "create", "--tenant", "acme", "--role", "customer")
	refused("cus_", "token", "create", "--tenant", "acme", "--role", "customer", "--customer", "inv_1")
	refused("no such customer", "token", "create", "--tenant", "acme", "--role", "customer", "--customer", "cus_00000000000000000000000000")

	s := serve(t, t.TempDir(), environ...)
	s.printed["token"] = must("token", "create", "--tenant", "acme", "--role", "admin", "--name", "ops")
	if status, body := s.post(t, `{ invoiceSeriesList { nodes { code } } }`); status != http.StatusOK || !strings.Contains(body, `"CN"`) {
		t.Errorf("with a new token: %d %s", status, body)
	}
	list := must("token", "list", "--tenant", "acme")
	id := regexp.MustCompile(`tok_\w+`).FindString(list)
	if strings.Contains(list, s.value("token")) || !strings.Contains(list, "ops") {
		t.Errorf("token list prints\n%s", list)
	}
	must("token", "revoke", "--tenant", "acme", id)
	if status, body := s.post(t, `{ invoiceSeriesList { nodes { code } } }`); status != http.StatusUnauthorized || !strings.Contains(body, "UNAUTHENTICATED") {
		t.Errorf("with a revoked token: %d %s", status, body)
	}
	refused("no such token", "token", "revoke", "--tenant", "acme", "tok_00000000000000000000000000")
	tokensFromTheShell(t, s, must, refused)
	if status, _ := s.get("/"); status != http.StatusNotFound {
		t.Errorf("a playground in production: %d", status)
	}

	must("doctor")
	d.Exec(t, "DELETE FROM series_counters")
	out, err := run("doctor")
	if err == nil || strings.Count(out, "COUNTER_MATCHES_DATA ten_") != 2 {
		t.Errorf("the doctor on damaged data: %q, %v", out, err)
	}
}

// /readyz answers 503 while the server drains, and the requests of that time are still served.
func TestDraining(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "COUNTERSIGN_DRAIN_DELAY=1s")
	for path, want := range map[string]int{"/readyz": 200, "/livez": 200} {
		if status, body := s.get(path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testdb.Eventually(t, func() bool { status, _ := s.get("/readyz"); return status == http.StatusServiceUnavailable })
	if status, _ := s.get("/livez"); status != http.StatusOK {
		t.Errorf("/livez while draining: %d", status)
	}
	s.allocate(t)
	<-s.exited
	if s.err != nil {
		t.Errorf("exit: %v", s.err)
	}
}

// A bad value stops the start with one line that names the variable, and does not show its value
// where that may be a secret.
func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{
		"COUNTERSIGN_ENV=staging", "LISTEN_ADDR=8080", "COUNTERSIGN_MUTATION_TIMEOUT=soon", "COUNTERSIGN_DATABASE_MAX_CONNS=0",
		"DATABASE_URL=mysql://root:secret@localhost/", "DATABASE_DIRECT_URL=postgres://localhost/x", "COUNTERSIGN_LOG_LEVEL=LOUD",
		"COUNTERSIGN_POSTGRES_BIN=/nowhere", "COUNTERSIGN_DRAIN_DELAY=-1s", "COUNTERSIGN_MAX_COST=0", "COUNTERSIGN_MAX_MUTATIONS=many",
	} {
		name, _, _ := strings.Cut(variable, "=")
		_, err := output(t, t.TempDir(), []string{variable}, "serve")
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// Every command explains itself.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "serve", "migrate", "seed", "tenant", "tenant create", "token", "token create", "token list", "token rotate", "token revoke", "reconcile", "settle", "close-month", "doctor", "schema", "version"} {
		out := &bytes.Buffer{}
		if err := run(context.Background(), append(strings.Fields(command), "--help"), nil, out, out); err != nil || !strings.Contains(out.String(), "Usage: countersign "+command) {
			t.Errorf("%s --help: %v\n%s", command, err, out)
		}
	}
	out := &bytes.Buffer{}
	if err := run(context.Background(), []string{"--help"}, nil, out, out); err != nil || !strings.Contains(out.String(), "COUNTERSIGN_MUTATION_TIMEOUT") {
		t.Errorf("--help does not list the variables: %v\n%s", err, out)
	}
}

// Case 45: the playground in a real browser, with no network but loopback. Each of its tabs runs,
// without a request to anywhere else, an error in the console or a violation of its policy.
func TestCase45ThePlaygroundInABrowser(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	browser := exec.Command("node", "web/browser/playground.mjs", s.url+"/")
	var complaints bytes.Buffer
	browser.Stderr = &complaints
	out, err := browser.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &complaints)
	}
	var report struct {
		Tabs []struct {
			Title    string
			Response struct {
				Data map[string]map[string]any
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for _, tab := range report.Tabs {
		for field, payload := range tab.Response.Data {
			ran[field] = true
			if faults, ok := payload["userErrors"].([]any); !ok || len(faults) > 0 {
				t.Errorf("the tab %s answers %v", tab.Title, payload)
			}
		}
	}
	fields := regexp.MustCompile(`(?m)^  (\w+)\(`).FindAllStringSubmatch(mutationSDL(), -1)
	if len(fields) == 0 {
		t.Error("the schema has no mutation")
	}
	for _, field := range fields {
		if !ran[field[1]] {
			t.Errorf("the mutation %s has no tab that ran", field[1])
		}
	}
}

// mutationSDL is the schema's type Mutation.
func mutationSDL() string {
	_, tail, _ := strings.Cut(graph.SDL(), "type Mutation {")
	body, _, _ := strings.Cut(tail, "\n}")
	return body
}
