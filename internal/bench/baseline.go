package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/localpg"
)

// baseline is the textbook transaction, run by pgbench: lock the counter, update it, insert, commit,
// a round trip each.
type baseline struct{ url string }

const textbook = `\set id random(1, :series)
BEGIN;
SELECT next_number FROM bench_counters WHERE id = :id FOR UPDATE \gset
UPDATE bench_counters SET next_number = next_number + 1 WHERE id = :id;
INSERT INTO bench_invoices (series, sequence, number, customer, currency, total, created_at) VALUES (:id, :next_number, 'INV-' || :next_number, 1, 'EUR', 100, now());
COMMIT;
`

func newBaseline(ctx context.Context, url string, series int) (*baseline, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `
		CREATE TABLE bench_counters (id int PRIMARY KEY, next_number bigint NOT NULL);
		CREATE TABLE bench_invoices (series int NOT NULL, sequence bigint NOT NULL, number text NOT NULL, customer int NOT NULL,
			currency text NOT NULL, total bigint NOT NULL, created_at timestamptz NOT NULL, PRIMARY KEY (series, sequence));
		INSERT INTO bench_counters SELECT n, 1 FROM generate_series(1, `+strconv.Itoa(series)+`) n`)
	return &baseline{url}, err
}

var (
	tps     = regexp.MustCompile(`tps = ([0-9.]+)`)
	latency = regexp.MustCompile(`latency average = ([0-9.]+)`)
)

// run measures over the first series of the counters. pgbench tells the mean, not percentiles.
func (b *baseline) run(ctx context.Context, connections int, length time.Duration, series int) (result, error) {
	bin, err := localpg.Find()
	if err != nil {
		return result{}, err
	}
	script := filepath.Join(os.TempDir(), fmt.Sprintf("countersign-bench-%d.sql", os.Getpid()))
	if err := os.WriteFile(script, []byte(textbook), 0o600); err != nil {
		return result{}, err
	}
	defer func() { _ = os.Remove(script) }()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "pgbench"), "-n", "-f", script, "-D", "series="+strconv.Itoa(series),
		"-M", "prepared", "-c", strconv.Itoa(connections), "-j", "2", "-T", strconv.Itoa(int(length.Seconds())), b.url).CombinedOutput()
	perSecond, mean := tps.FindSubmatch(out), latency.FindSubmatch(out)
	if err != nil || perSecond == nil || mean == nil {
		return result{}, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	var r result
	r.perSecond, _ = strconv.ParseFloat(string(perSecond[1]), 64)
	r.p50, _ = strconv.ParseFloat(string(mean[1]), 64)
	return r, nil
}
