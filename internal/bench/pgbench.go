package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/localpg"
)

// pgbench numbers invoices without a server between: on the product's tables, with all its rows,
// indexes and constraints, as fast as PostgreSQL's own client goes.
type pgbench struct {
	*stand
	program string
	values  map[string]string // of the parameters in scripts
	runs    int64             // so far: ids of each run are others
}

// Each script picks a series and makes an id. Ids rise with time, as the product's do.
const opening = `\set n random(0, :series - 1)
\set k :k + 1
`

const (
	seriesOfN = "('00000000-0000-7000-8000-' || lpad(:n::text, 12, '0'))::uuid"
	idOfK     = "(lpad(to_hex(:run::bigint), 8, '0') || lpad(to_hex(:k::bigint), 8, '0') || lpad(to_hex(:client_id::bigint), 16, '0'))::uuid"
)

// textbookScript is the textbook transaction for pgbench, a round trip a statement. What the lock has
// read goes into the statements after it.
func textbookScript() string {
	lines := []string{"BEGIN;"}
	for i, statement := range textbook {
		end := ";"
		if i == 0 {
			end = " \\gset"
		}
		lines = append(lines, strings.Join(strings.Fields(statement), " ")+end)
	}
	return opening + strings.Join(append(lines, "COMMIT;"), "\n") + "\n"
}

func newPgbench(ctx context.Context, b *stand) (*pgbench, error) {
	bin, err := localpg.Find()
	if err != nil {
		return nil, err
	}
	p := &pgbench{stand: b, program: filepath.Join(bin, "pgbench")}
	customer, err := domain.ParseID[domain.CustomerID](b.on.customer)
	if err != nil {
		return nil, err
	}
	var tenant domain.TenantID
	err = b.owner(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT tenant_id FROM customers WHERE id = $1", customer).Scan(&tenant)
	})
	if err != nil {
		return nil, err
	}
	literal := func(id [16]byte) string { return fmt.Sprintf("'%x'::uuid", id) }
	const fingerprint = `'\x01'::bytea`
	p.values = map[string]string{
		"tenant_id": literal(tenant), "customer_id": literal(customer), "series_id": seriesOfN, "id": idOfK, "fingerprint": fingerprint,
		"issue_date": "NULL", "now": "now()", "description": "'Pawn'", "quantity": "1", "amount": "100", "currency": "'EUR'", "by": "'pgbench'",
		"ids": "ARRAY[" + idOfK + "]", "customer_ids": "ARRAY[" + literal(customer) + "]", "currencies": "ARRAY['EUR']", "totals_minor": "ARRAY[100]",
		"operation_ids": "ARRAY[" + idOfK + "]", "operation_fingerprints": "ARRAY[" + fingerprint + "]", "created_bys": "ARRAY['pgbench']",
		"line_invoice_ids": "ARRAY[" + idOfK + "]", "line_positions": "ARRAY[1]", "line_descriptions": "ARRAY['Pawn']",
		"line_quantities": "ARRAY[1]", "line_unit_amounts": "ARRAY[100]", "taxes_minor": "ARRAY[0]",
		"number": ":next_number::bigint", "prefix": ":number_prefix::text", "period_start": ":period_start::date", "day": ":last_issue_date::date",
		"line_tax_rates": "ARRAY['']", "line_tax_treatments": "ARRAY['']", "line_taxes_minor": "ARRAY[0]",
	}
	return p, nil
}

var narg = regexp.MustCompile(`sqlc\.narg\('(\w+)'\)`)

// singleStatement is the product's own, from its source.
func singleStatement() (string, error) {
	source, err := os.ReadFile("queries/invoice.sql")
	if err != nil {
		return "", err
	}
	_, statement, found := strings.Cut(string(source), "-- name: AllocateInvoices :many\n")
	var text strings.Builder
	for line := range strings.Lines(statement) {
		code, _, _ := strings.Cut(line, "--")
		text.WriteString(strings.TrimSpace(code) + " ")
		if strings.Contains(code, ";") {
			break
		}
	}
	if !found {
		return "", errors.New("queries/invoice.sql has no AllocateInvoices")
	}
	return opening + narg.ReplaceAllString(text.String(), "@$1") + "\n", nil
}

var (
	parameter = regexp.MustCompile(`@\w+`)
	tps       = regexp.MustCompile(`tps = ([0-9.]+)`)
)

// with measures a script, in which @name stands for a value.
func (p *pgbench) with(script string) func(ctx context.Context, connections, series int) (result, error) {
	return func(ctx context.Context, connections, series int) (r result, err error) {
		text := parameter.ReplaceAllStringFunc(script, func(name string) string {
			value, ok := p.values[name[1:]]
			if !ok {
				err = fmt.Errorf("pgbench has no value for %s", name)
			}
			return value
		})
		if err != nil {
			return r, err
		}
		file, logs := filepath.Join(p.dir, "script.sql"), filepath.Join(p.dir, "pgbench")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return r, err
		}
		run := func(length time.Duration, more ...string) ([]byte, error) {
			p.runs++
			return p.exec(ctx, append([]string{"-n", "-f", file, "-M", "prepared", "-D", "k=0", "-D", "series=" + strconv.Itoa(series),
				"-D", "run=" + strconv.FormatInt(p.runs, 10), "-c", strconv.Itoa(connections), "-j", strconv.Itoa(min(connections, 2)),
				"-T", strconv.Itoa(max(1, int(length.Round(time.Second).Seconds())))}, more...)...)
		}
		if _, err := run(p.warmUp); err != nil {
			return r, err
		}
		before := p.cpu()
		out, err := run(p.length, "-l", "--log-prefix="+logs)
		if err != nil {
			return r, err
		}
		used := p.cpu().since(before)
		times, err := latencies(logs + ".*")
		if err != nil {
			return r, err
		}
		r = summarise(times, used)
		r.PerSecond, err = strconv.ParseFloat(string(tps.FindSubmatch(out)[1]), 64)
		return r, err
	}
}

func (p *pgbench) exec(ctx context.Context, arguments ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, p.program, append(arguments, p.pg.URL())...).CombinedOutput()
	if err != nil || !tps.Match(out) {
		return nil, fmt.Errorf("pgbench: %w: %s", err, out[:min(len(out), 1000)]) // each client says the same
	}
	return out, nil
}

// latencies reads the times that pgbench has logged, in milliseconds, and removes the logs.
func latencies(pattern string) (times []float64, err error) {
	logs, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	for _, log := range logs {
		file, err := os.Open(log)
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 2 {
				if us, err := strconv.ParseFloat(fields[2], 64); err == nil {
					times = append(times, us/1000)
				}
			}
		}
		_ = file.Close()
		_ = os.Remove(log)
	}
	slices.Sort(times)
	return times, nil
}
