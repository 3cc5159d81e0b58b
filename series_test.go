package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"countersign/internal/testdb"
)

// seriesCommand runs "series" to its end on a database, with a standard input.
func seriesCommand(t *testing.T, d *testdb.DB, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	c := program(t, t.TempDir(), []string{"DATABASE_URL=" + d.URL}, append([]string{"series"}, args...)...)
	var out, log bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &log
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), log.String(), c.ProcessState.ExitCode()
}

// An operator imports a sequence, audits it, loses the counter and mends it, all from the command line: nothing is
// changed without --apply, a gap is exit status 1, and machines read JSON.
func TestSeriesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	if _, err := output(t, t.TempDir(), []string{"DATABASE_URL=" + d.URL}, "tenant", "create", "acme"); err != nil {
		t.Fatal(err)
	}
	const csv = "number,last_number,status,reason\n1,4710,SKIPPED,in the archive\n4711,4720,,\n4721,,VOID,sent twice\n"
	run := func(stdin string, status int, says string, args ...string) string {
		t.Helper()
		out, log, got := seriesCommand(t, d, stdin, args...)
		if got != status || !strings.Contains(out, says) {
			t.Errorf("series %s: status %d, %q, %q; want %d and %q", strings.Join(args, " "), got, out, log, status, says)
		}
		return out
	}
	imports := []string{"import", "--tenant", "acme", "--reason", "from the old system", "INV"}
	run("", 0, "no number", "audit", "--tenant", "acme", "INV")
	run(csv, 0, "would be done, with --apply: imported 10, voided elsewhere 1, skipped 4710; the next number, 1 before, is 4722", imports...)
	run("", 0, "no number", "audit", "--tenant", "acme", "INV")
	run("number\n1\n5\n", 1, "unexplained 2 to 4", imports...)
	run("number\n1\n5\n", 1, "NUMBERS_UNEXPLAINED input csv: 3 numbers", append(imports, "--apply")...)
	out := run("number\n0\nx\n", 1, "INVALID_ROW input csv 3 number", imports...)
	if !strings.Contains(out, "INVALID_ROW input csv 2 number") {
		t.Errorf("not all faults are told: %s", out)
	}
	run("number,date\n1,2025-05-02\n2,2025-05-01\n3,2025-05-01\n", 0, "dated before a lower number: 2, the first is 2", imports...)
	run(csv, 0, "done: imported 10", append(imports, "--apply", "--key", "once")...)
	run(csv, 0, "was done before: imported 10", append(imports, "--apply", "--key", "once")...)
	run(csv, 1, "", append(imports, "--apply")...)
	run("", 0, "1 to 4721; issued 0, void 0, imported 10, voided elsewhere 1, skipped 4710, unexplained 0\n  void 4721: sent twice", "audit", "--tenant", "acme")
	run("", 0, "INV   INVOICE", "list", "--tenant", "acme")

	d.Exec(t, `UPDATE series_counters SET next_number = 9 WHERE document = 'INVOICE'`)
	resync := []string{"resync", "--tenant", "acme", "--reason", "restored", "INV"}
	run("", 0, "would be done, with --apply: imported 0, voided elsewhere 0, skipped 0; the next number, 9 before, is 4722", resync...)
	run("", 0, "done: imported 0", append(resync, "--apply")...)
	d.Exec(t, `UPDATE series_counters SET next_number = 4725 WHERE document = 'INVOICE'`)
	run("", 1, "unexplained 4722 to 4724", "audit", "--tenant", "acme", "INV")
	run("", 0, "skipped 4713, unexplained 0", append(resync, "--apply", "--explain", "4722-4723:torn, forms", "--explain", "4724: lost")...)

	var audit struct {
		Clean   bool
		Skipped int
		Voids   []struct {
			First  int64
			Reason string
		}
	}
	if err := json.Unmarshal([]byte(run("", 0, "", "audit", "--tenant", "acme", "INV", "--format", "json")), &audit); err != nil || !audit.Clean || audit.Skipped != 4713 || audit.Voids[0].First != 4721 {
		t.Errorf("the audit as JSON is %+v, %v", audit, err)
	}
	for _, format := range [][]string{{"list", "--tenant", "acme"}, append(resync, "--explain", "4725:x")} {
		if out := run("", 0, "", append(format, "--format", "json")...); !json.Valid([]byte(out)) {
			t.Errorf("%v is no JSON: %s", format, out)
		}
	}
	for name, args := range map[string][]string{
		"a series that is not there": {"audit", "--tenant", "acme", "NONE"}, "a tenant that is not there": {"list", "--tenant", "nobody"},
		"a day that is none": {"audit", "--tenant", "acme", "--period", "yesterday"}, "a file that is not there": {"import", "--tenant", "acme", "--reason", "x", "INV", "/nowhere.csv"},
		"an explanation of nothing": append(resync, "--explain", "4725"), "both": append(imports, "--apply", "--dry-run"),
	} {
		if _, log, status := seriesCommand(t, d, "", args...); status != 1 || log == "" {
			t.Errorf("%s: status %d, %q", name, status, log)
		}
	}
	if _, log, _ := seriesCommand(t, d, csv, imports...); !strings.Contains(log, "INV: importing") {
		t.Errorf("nothing is said of the progress: %q", log)
	}
	for _, command := range []string{"list", "audit", "import", "resync"} {
		if out, _, status := seriesCommand(t, d, "", command, "--help"); status != 0 || !strings.Contains(out, "--tenant") {
			t.Errorf("the help of series %s is %q", command, out)
		}
	}
	if _, err := output(t, t.TempDir(), []string{"DATABASE_URL=" + d.URL}, "doctor"); err != nil {
		t.Errorf("the doctor says %v", err)
	}
}

// Long work says on the error output how far it has come: an import by its batches, and what goes over a million
// numbers, as the audit after an import and a resync does, by each million. The answer itself holds none of that.
func TestSeriesCommandsTellTheirProgress(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	if _, err := output(t, t.TempDir(), []string{"DATABASE_URL=" + d.URL}, "tenant", "create", "acme"); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, says []string, args ...string) {
		t.Helper()
		out, log, status := seriesCommand(t, d, stdin, append(args, "--format", "json", "--tenant", "acme")...)
		var lines []string
		for line := range strings.Lines(log) {
			lines = append(lines, strings.TrimSpace(line))
		}
		if status != 0 || !slices.Equal(lines, says) || !json.Valid([]byte(out)) {
			t.Errorf("series %s: status %d, %q, %q; want %q", strings.Join(args, " "), status, out, log, says)
		}
	}
	var csv strings.Builder
	csv.WriteString("number,reference\n")
	for n := range 12_000 {
		fmt.Fprintf(&csv, "%d,a\n", n+1)
	}
	text := csv.String()
	begins := fmt.Sprintf("INV: importing %d bytes of CSV", len(text))
	run(text, []string{begins, "INV: auditing"}, "import", "INV", "--reason", "x")
	run(text, []string{begins, "INV: 5000 of 12000 entries", "INV: 10000 of 12000 entries", "INV: 12000 of 12000 entries", "INV: auditing"}, "import", "INV", "--reason", "x", "--apply")
	owner := d.Owner(t)
	for _, sql := range []string{ // a million rows go in fast without the indexes
		`SET statement_timeout = 0`,
		`ALTER TABLE series_entries DROP CONSTRAINT series_entries_last_key, DROP CONSTRAINT series_entries_series_fkey, DROP CONSTRAINT series_entries_pkey`,
		`INSERT INTO series_entries SELECT tenant_id, series_id, period_start, n, n, change_id, state, issue_date, reference, reason
			FROM series_entries, generate_series(12001, 1012000) n WHERE first_number = 1`,
		`ALTER TABLE series_entries ADD CONSTRAINT series_entries_pkey PRIMARY KEY (tenant_id, series_id, period_start, first_number)`,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	d.Exec(t, `UPDATE series_counters SET next_number = 1012001 WHERE document = 'INVOICE'`)
	run("number\n1012001\n", []string{"INV: importing 15 bytes of CSV", "INV: auditing", "INV: 1000000 of 1012001"}, "import", "INV", "--reason", "x")
	run("", []string{"INV: 1 of 1 entries", "INV: auditing", "INV: 1000000 of 1012002"}, "resync", "INV", "--reason", "x", "--apply", "--explain", "1012001-1012002:torn forms")
}
