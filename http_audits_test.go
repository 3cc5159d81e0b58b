package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"countersign/internal/testdb"
)

// audit is an audit of GraphQL over HTTP and what came of it.
type audit struct{ ID, Name, Status, Reason string }

// audits runs the suite of the npm package graphql-http against a server, with a token or, without
// one, as nobody.
func audits(t *testing.T, r *running, token string) (all []audit) {
	t.Helper()
	command := exec.Command("node", "web/audits/audits.mjs", r.url+"/graphql", token)
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &complaints)
	}
	report := struct{ Results []audit }{}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	return report.Results
}

// wantAudits fails unless all 61 audits are ok but for those excepted, which are not.
func wantAudits(t *testing.T, all []audit, excepted ...string) {
	t.Helper()
	if len(all) != 61 {
		t.Errorf("%d audits ran, want 61", len(all))
	}
	for _, a := range all {
		if ok := a.Status == "ok"; ok == slices.Contains(excepted, a.ID) {
			t.Errorf("%s %s: %s %s", a.ID, a.Name, a.Status, a.Reason)
		}
	}
}

// TestHTTPAudits: the server speaks GraphQL over HTTP to the letter of the draft. In development that
// is asked with a token; in production with one and without. Without one the schema is closed, and
// only the audits that read it may differ.
func TestHTTPAudits(t *testing.T) {
	t.Parallel()
	development := serve(t, t.TempDir())
	wantAudits(t, audits(t, development, development.value("token")))
	wantAudits(t, audits(t, development, ""))

	d := testdb.New(t)
	dir, environ := t.TempDir(), []string{"DATABASE_URL=" + d.URL, "COUNTERSIGN_ENV=production", "COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS=0123456789abcdef"}
	production := serve(t, dir, environ...)
	if _, err := output(t, dir, environ, "tenant", "create", "audited"); err != nil {
		t.Fatal(err)
	}
	token, err := output(t, dir, environ, "token", "create", "--tenant", "audited", "--role", "admin")
	if err != nil {
		t.Fatal(err)
	}
	wantAudits(t, audits(t, production, strings.TrimSpace(token)))
	wantAudits(t, audits(t, production, ""), needTheSchema...)
}

// needTheSchema are the audits whose requests read __type.
var needTheSchema = []string{"BF61", "2EA1", "28B9", "D6D5", "6A70"}
