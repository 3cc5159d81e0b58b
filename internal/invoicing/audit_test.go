package invoicing_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gofrs/uuid/v5"
	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// fill copies the shop's first invoice until the series has the numbers up to last, and moves the counter
// behind them.
func (s *shop) fill(t testing.TB, last int64) {
	t.Helper()
	conn, ctx := s.Owner(t), context.Background()
	// Each column as it is in the first invoice, but for those that differ.
	const columns = `SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum), string_agg(CASE attname
			WHEN 'id' THEN 'lpad(to_hex(n), 32, ''0'')::uuid' WHEN 'operation_id' THEN 'lpad(to_hex(n), 32, ''0'')::uuid' WHEN 'sequence' THEN 'n' WHEN 'number' THEN '''NEW-'' || n'
			ELSE 'i.' || quote_ident(attname) END, ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'invoices'::regclass AND attnum > 0 AND NOT attisdropped`
	var into, from string
	if err := conn.QueryRow(ctx, columns).Scan(&into, &from); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SET statement_timeout = 0",
		"SET session_replication_role = replica", // what the copies refer to is there
		fmt.Sprintf(`INSERT INTO invoices (%s) SELECT %s FROM invoices i, generate_series(2, %d) n WHERE i.sequence = 1 AND i.series_id = '%s'`,
			into, from, last, uuid.UUID(s.series)),
		fmt.Sprintf(`UPDATE series_counters SET next_number = %d WHERE series_id = '%s'`, last+1, uuid.UUID(s.series)),
		"VACUUM ANALYZE invoices",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
}

// A hundred thousand numbers are audited in one pass: what is void, missing or there twice is told, however it
// lies, and so is what the counter has given out beyond the last invoice.
func TestAnAuditOfAHundredThousandNumbers(t *testing.T) {
	t.Parallel()
	const n = 100_000
	s := newShop(t)
	s.take(t, s.input())
	s.fill(t, n)
	s.wantAudit(t, "1 to 100000: 100000 issued, 0 void, 0 imported, 0 voided elsewhere, 0 skipped")
	s.imports(t, s.importing(&[]domain.ImportedNumber{skipped(n+1, n+5000, "torn forms")}))
	s.Exec(t, `UPDATE invoices SET status = 'VOID', voided_at = now(), void_reason = 'sent twice' WHERE sequence % 400 = 0`)
	// Nothing refers to these, and to look that up for each takes longer than all of the rest.
	s.Exec(t, `SET session_replication_role = replica; DELETE FROM invoices WHERE sequence % 500 = 1 AND sequence > 1 OR sequence BETWEEN 700 AND 710`)
	s.Exec(t, `UPDATE invoices SET sequence = 100100 WHERE sequence = 99999`)
	s.Exec(t, `UPDATE series_counters SET next_number = 105011 WHERE series_id = $1`, s.series)
	var done []int64
	a, err := s.Audit(t.Context(), s.caller, s.series, nil, func(number, _ int64) { done = append(done, number) })
	if err != nil {
		t.Fatal(err)
	}
	// Missing are 501, 1001 … 99501, then 700 to 710, 99999, and the counter's last ten.
	if a.Issued != n-250-199-11 || a.Void != 250 || a.Skipped != 5000 || a.LastNumber != 105010 || a.Unexplained != 199+11+1+10 || a.GapCount != 202 {
		t.Errorf("the audit says %d unexplained in %d gaps, %s", a.Unexplained, a.GapCount, summary(a))
	}
	if len(a.Gaps) != 100 || a.Gaps[0].String() != "501" || a.Gaps[1].String() != "700 to 710" || a.Gaps[2].String() != "1001" {
		t.Errorf("the gaps are %v", a.Gaps)
	}
	if a.DuplicateCount != 1 || !slices.Equal(a.Duplicates, []int64{100100}) {
		t.Errorf("twice are %v", a.Duplicates)
	}
	if len(a.Voids) != 100 || a.Voids[0].First != 400 || a.Voids[99].First != 40000 {
		t.Errorf("%d voids are told", len(a.Voids))
	}
	if len(done) != 0 {
		t.Errorf("one stretch tells of progress: %v", done)
	}
}

// explaining runs each query after asking for its plan.
type explaining struct {
	sqlc.DBTX
	plans map[string]string
}

func (e *explaining) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	name := regexp.MustCompile(`-- name: (\w+)`).FindStringSubmatch(sql)[1]
	rows, err := e.Query(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "+sql, args...)
	if err == nil {
		var lines []string
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		e.plans[name] = strings.Join(lines, "\n")
	}
	if err != nil {
		e.plans[name] = err.Error()
	}
	return e.DBTX.QueryRow(ctx, sql, args...)
}

// The pass takes the numbers from the index, in its order: nothing is sorted but what is handed to it, nothing spills
// to disk, and what it needs does not grow with the series.
func TestAnAuditPassesOverTheIndex(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	s.fill(t, 20_000)
	e := &explaining{s.Pool, map[string]string{}}
	never := domain.NewDate(1, 1, 1)
	row, err := sqlc.New(e).TallyLedger(t.Context(), sqlc.TallyLedgerParams{
		TenantID: s.caller.TenantID, SeriesID: &s.series, PeriodStart: &never, UpToNumber: new(int64(1 << 62)), RowLimit: 1_000_000, DetailLimit: 100,
		FirstNumbers: []int64{20_002}, LastNumbers: []int64{20_003}, States: []string{"SKIPPED"},
	})
	if err != nil || row.LineCount != 20_001 || row.Issued != 20_000 || row.Skipped != 2 || row.GapCount != 1 || row.GapFirsts[0] != 20_001 {
		t.Errorf("the pass says %+v, %v", row, err)
	}
	plan := e.plans["TallyLedger"]
	if !strings.Contains(plan, "Merge Append") || !strings.Contains(plan, "Index Only Scan using invoices_sequence_key") || strings.Contains(plan, "Seq Scan") ||
		strings.Contains(plan, "Disk") || strings.Count(plan, "Sort Method") > 2 {
		t.Errorf("the plan is\n%s", plan)
	}
}

// The stretches of a pass join up: what lies at their ends is told once.
func TestStretchesJoinUp(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 3)
	s.imports(t, s.importing(&[]domain.ImportedNumber{skipped(4, 20, "torn forms")}))
	s.takeMany(t, 3)
	s.Exec(t, `DELETE FROM invoice_lines WHERE invoice_id IN (SELECT id FROM invoices WHERE sequence IN (2, 22))`)
	s.Exec(t, `DELETE FROM invoices WHERE sequence IN (2, 22)`)
	never := domain.NewDate(1, 1, 1)
	for size := int32(1); size <= 6; size++ {
		arg := sqlc.TallyLedgerParams{TenantID: s.caller.TenantID, SeriesID: &s.series, PeriodStart: &never, UpToNumber: new(int64(1 << 62)), RowLimit: size, DetailLimit: 9}
		var gaps []int64
		var issued, skippedNumbers, twins int64
		for {
			row, err := sqlc.New(s.Pool).TallyLedger(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			gaps, issued, skippedNumbers, twins = append(gaps, row.GapFirsts...), issued+row.Issued, skippedNumbers+row.Skipped, twins+row.TwinCount
			if arg.AfterNumber, arg.Covered = row.AfterNumber, row.Covered; row.LineCount < int64(size) {
				break
			}
		}
		if !slices.Equal(gaps, []int64{2, 22}) || issued != 4 || skippedNumbers != 17 || twins != 0 {
			t.Errorf("in stretches of %d: gaps at %v, %d issued, %d skipped, %d twice", size, gaps, issued, skippedNumbers, twins)
		}
	}
}

// An audit reads one moment, while numbers are given.
func TestAnAuditUnderLoad(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	together(9, func(i int) {
		for range 20 {
			if i > 0 {
				s.take(t, s.input())
			} else if a := s.audit(t); !a.Clean() || a.Issued != a.LastNumber {
				t.Errorf("the audit says %s", summary(a))
			}
		}
	})
	s.wantAudit(t, "1 to 161: 161 issued, 0 void, 0 imported, 0 voided elsewhere, 0 skipped")
}

// BenchmarkSeriesAudit audits a series of COUNTERSIGN_AUDIT_NUMBERS numbers (100,000 if it is not set):
//
//	COUNTERSIGN_AUDIT_NUMBERS=10000000 go test ./internal/invoicing -run '^$' -bench SeriesAudit -benchtime 1x -timeout 2h
//
// It fails if the audit is not right; its figures are numbers a second and what Go allocates, which does not
// grow with the series.
func BenchmarkSeriesAudit(b *testing.B) {
	n := int64(100_000)
	if set := os.Getenv("COUNTERSIGN_AUDIT_NUMBERS"); set != "" {
		var err error
		if n, err = strconv.ParseInt(set, 10, 64); err != nil || n < 2 {
			b.Fatalf("COUNTERSIGN_AUDIT_NUMBERS is %s", set)
		}
	}
	s := newShop(b)
	if _, err := s.Allocate(b.Context(), s.caller, s.input()); err != nil {
		b.Fatal(err)
	}
	s.fill(b, n)
	b.ReportAllocs()
	for b.Loop() {
		a, err := s.Audit(b.Context(), s.caller, s.series, nil, nil)
		if err != nil || !a.Clean() || a.Issued != n {
			b.Fatalf("%+v, %v", a, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "numbers/s")
}
