package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gofrs/uuid/v5"
	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/localpg"
)

// The ways to number invoices that are compared.
const (
	textbookWay = "pgbench, textbook transaction"
	singleWay   = "pgbench, single statement"
	naiveWay    = "server, textbook transaction"
	offWay      = "server, joining off"
	onWay       = "server, joining on"
)

// way is one way to number invoices.
type way struct {
	name    string
	measure func(ctx context.Context, connections, series int) (result, error)
}

// stand is a database with three servers on it: one that joins allocations, one that does not, and
// one that numbers by the textbook transaction.
type stand struct {
	*plan
	dir     string
	pg      *localpg.Server
	off, on *server
	naive   *server
	version string
	ways    []way
}

func newStand(ctx context.Context, p *plan) (b *stand, err error) {
	b = &stand{plan: p}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "countersign-bench-"); err != nil {
		return b, err
	}
	data := filepath.Join(b.dir, "data")
	if b.on, err = startServer(data, exec.Command(p.binary, "serve"), "COUNTERSIGN_ALLOCATION_BATCH=128"); err != nil {
		return b, err
	}
	if b.off, err = startServer(data, exec.Command(p.binary, "serve"), "COUNTERSIGN_ALLOCATION_BATCH=1"); err != nil {
		return b, err
	}
	self, err := os.Executable()
	if err != nil {
		return b, err
	}
	if b.naive, err = startServer(data, exec.Command(self, "-textbook-server")); err != nil {
		return b, err
	}
	b.naive.token, b.naive.customer = b.on.token, b.on.customer
	if b.pg, err = localpg.Start(ctx, localpg.Config{DataDir: data}); err != nil {
		return b, err
	}
	if err = b.prepare(ctx); err != nil {
		return b, err
	}
	pgbench, err := newPgbench(ctx, b)
	if err != nil {
		return b, err
	}
	single, err := singleStatement()
	if err != nil {
		return b, err
	}
	b.ways = []way{
		{textbookWay, pgbench.with(textbookScript())}, {singleWay, pgbench.with(single)},
		{naiveWay, b.allocating(b.naive)}, {offWay, b.allocating(b.off)}, {onWay, b.allocating(b.on)},
	}
	return b, nil
}

func (b *stand) close() {
	if b.pg != nil {
		_ = b.pg.Close()
	}
	for _, s := range b.servers() {
		s.stop()
	}
	_ = os.RemoveAll(b.dir)
}

// servers are those that run.
func (b *stand) servers() []*server {
	return slices.DeleteFunc([]*server{b.naive, b.off, b.on}, func(s *server) bool { return s == nil })
}

// seriesID is the id of the nth series. pgbench computes it too.
func seriesID(n int) domain.SeriesID {
	return domain.SeriesID(uuid.Must(uuid.FromString(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))))
}

// prepare makes the series, in the tenant and beside the series that the servers have made, with
// counters that stand on today.
func (b *stand) prepare(ctx context.Context) error {
	return b.owner(ctx, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, "SHOW server_version").Scan(&b.version); err != nil {
			return err
		}
		for _, sql := range copySeries {
			if _, err := conn.Exec(ctx, sql, b.series); err != nil {
				return err
			}
		}
		for n := range b.series { // each counter opens its day
			if _, err := b.on.ask(ctx, allocate, b.on.allocation(n), `"number":"`); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, "ANALYZE")
		return err
	})
}

// copySeries copies the tenant's first series and its counter under other ids and codes, whatever
// columns they have.
var copySeries = []string{`
INSERT INTO invoice_series SELECT (jsonb_populate_record(NULL::invoice_series, to_jsonb(model) || jsonb_build_object(
	'id', '00000000-0000-7000-8000-' || lpad(n::text, 12, '0'), 'code', 'B' || n,
	'number_pattern', 'B' || n || '-{N}', 'operation_id', gen_random_uuid()))).*
FROM (SELECT * FROM invoice_series WHERE code = 'INV' ORDER BY created_at LIMIT 1) model, generate_series(0, $1 - 1) n`, `
INSERT INTO series_counters SELECT (jsonb_populate_record(NULL::series_counters, to_jsonb(model) || jsonb_build_object(
	'series_id', '00000000-0000-7000-8000-' || lpad(n::text, 12, '0'), 'next_number', 1, 'last_issue_date', NULL, 'issue_date_ends', NULL))).*
FROM (SELECT c.* FROM series_counters c JOIN invoice_series s ON s.tenant_id = c.tenant_id AND s.id = c.series_id
	WHERE s.code = 'INV' ORDER BY s.created_at LIMIT 1) model, generate_series(0, $1 - 1) n`}

// owner runs fn on a connection as the database's owner.
func (b *stand) owner(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, b.pg.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return fn(conn)
}
