package doctor_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// A new database is healthy, and so is one with only tenants that have issued nothing.
func TestDoctorOfEmptyBooks(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	for _, handle := range []string{"", "rook"} {
		if handle != "" {
			if _, _, err := p.service.CreateTenant(t.Context(), handle, handle); err != nil {
				t.Fatal(err)
			}
		}
		report := p.check(t, domain.TenantID{})
		if !report.Healthy() || len(report.Invariants) == 0 {
			t.Errorf("with the tenant %q: %+v", handle, report)
		}
	}
}

// An operator may ask the doctor at any time: while sixteen clients take numbers of one tenant's
// series, each check sees one moment, at which everything holds. A check that read counters at one
// moment and invoices at another would find some behind.
func TestDoctorUnderLoad(t *testing.T) {
	t.Parallel()
	const clients, checks = 16, 20
	p := newPractice(t)
	b := p.newBooks(t, "rook")
	load := invoicing.New(txn.New(p.d.NewPool(t, clients), txn.Settings{}))
	var issued atomic.Int64
	var clientsDone sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for i := range clients {
		series := b.ids[[]string{"serA", "serA", "serB", "serC"}[i%4]].(domain.SeriesID)
		clientsDone.Go(func() {
			for ctx.Err() == nil {
				if _, err := load.Allocate(t.Context(), b.caller, b.input(series)); err != nil {
					t.Errorf("under load: %v", err)
					return
				}
				issued.Add(1)
			}
		})
	}
	defer clientsDone.Wait()
	defer stop()
	for i := range checks {
		before := issued.Load()
		testdb.Eventually(t, func() bool { return issued.Load() > before+clients }) // the load is on
		tenant := b.tenant
		if i%2 == 1 {
			tenant = domain.TenantID{}
		}
		if report := p.check(t, tenant); !report.Healthy() {
			t.Fatalf("check %d: %+v", i, *report.Violations[0])
		}
	}
}
