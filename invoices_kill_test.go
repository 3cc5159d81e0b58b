package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
)

// numbering is a mutation that takes a number at the end of its transaction.
type numbering struct {
	series string // the code of the series that it takes it from
	last   string // the query that comes before its COMMIT
	// about makes the invoice that it is about, of a customer and a series; ask asks for it, under one key.
	about, ask string
	effects    string // counts what it has done
}

var numberings = map[string]numbering{
	"finalizeInvoice": {
		series: "INV", last: "MoveInvoice",
		about: `createDraftInvoice(input: {customerId: "CUSTOMER", currency: "EUR", lines: [{description: "Pawn", quantity: 1, unitAmountMinor: 100}]})
			{ replayed document: invoice { id number } userErrors { message } }`,
		ask:     `finalizeInvoice(input: {invoiceId: "INVOICE", idempotencyKey: "killed"}) { replayed document: invoice { id number } userErrors { message } }`,
		effects: "SELECT count(*) FROM invoice_history h JOIN invoices i ON i.id = h.invoice_id WHERE h.event = 'FINALISED' AND i.number IS NOT NULL",
	},
	"issueCreditNote": {
		series: "CN", last: "InsertCreditNote",
		about: `allocateInvoice(input: {seriesId: "SERIES", customerId: "CUSTOMER", currency: "EUR", lines: [{description: "Pawn", quantity: 1, unitAmountMinor: 100}]})
			{ replayed document: invoice { id number } userErrors { message } }`,
		ask:     `issueCreditNote(input: {invoiceId: "INVOICE", reason: "sent back", idempotencyKey: "killed"}) { replayed document: creditNote { id number } userErrors { message } }`,
		effects: "SELECT count(*) FROM invoices WHERE kind = 'CREDIT_NOTE'",
	},
}

// numbered is the answer to one.
type numbered struct {
	Replayed bool
	Document struct{ ID, Number string }
}

// number sends a mutation. Any goroutine may call it.
func (r *running) number(mutation string) (numbered, error) {
	body, err := r.try("mutation { done: " + mutation + " }")
	if err != nil {
		return numbered{}, err
	}
	var got struct {
		Data struct {
			Done *struct {
				numbered
				UserErrors []any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Data.Done == nil || len(got.Data.Done.UserErrors) > 0 {
		return numbered{}, fmt.Errorf("answered %q (%v)", body, err)
	}
	return got.Data.Done.numbered, nil
}

// done says whether it has taken effect.
func (n numbering) done(t *testing.T, s *shop) bool { return testdb.Scan[int](t, s.DB, n.effects) > 0 }

// next is the number that its series would give.
func (n numbering) next(t *testing.T, s *shop) int {
	return testdb.Scan[int](t, s.DB, "SELECT c.next_number FROM series_counters c JOIN invoice_series s ON s.id = c.series_id WHERE s.code = $1", n.series)
}

// killed kills a server that has been asked for it, where reach holds it.
func (n numbering) killed(t *testing.T, s *shop, reach func(*testing.T, *shop, func()) *pgproxy.Hold) (ask string, held *pgproxy.Hold) {
	t.Helper()
	victim := serve(t, t.TempDir(), s.environ()...)
	about, err := victim.number(strings.NewReplacer("CUSTOMER", victim.value("customer"), "SERIES", victim.value("series")).Replace(n.about))
	if err != nil {
		t.Fatal(err)
	}
	ask = strings.Replace(n.ask, "INVOICE", about.Document.ID, 1)
	gone := make(chan struct{})
	held = reach(t, s, func() {
		go func() {
			defer close(gone)
			if answer, err := victim.number(ask); err == nil {
				t.Errorf("the killed server answers %+v", answer)
			}
		}()
	})
	victim.stop(t, os.Kill)
	<-gone
	return ask, held
}

// A server is killed with -9 while its COMMIT of a finalised invoice, or of a credit note, is in the wire, and
// after that has happened, before it hears of it. Whoever asks the next server under the same key, if need be
// while the COMMIT still is in the wire, is given one number, once, and the numbers have no gap.
func TestKilledWhileNumbering(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct{ happened, late, meanwhile bool }{
		"before COMMIT arrives":                                    {},
		"before COMMIT, which arrives late":                        {late: true},
		"before COMMIT, which arrives while it is asked for again": {meanwhile: true},
		"after COMMIT, before its answer":                          {happened: true},
	} {
		for mutation, n := range numberings {
			t.Run(mutation+", "+name, func(t *testing.T) {
				t.Parallel()
				shop := newShop(t)
				reach := unsent(n.last)
				if at.happened {
					reach = unheard(n.done)
				}
				ask, held := n.killed(t, shop, reach)
				if done := n.done(t, shop); done != at.happened {
					t.Fatalf("the killed server has done it: %t", done)
				}
				switch {
				case at.late:
					held.Release()
					testdb.Eventually(t, func() bool { return n.done(t, shop) })
				case !at.meanwhile:
					held.Cut()
				}
				server, was := serve(t, t.TempDir(), "DATABASE_URL="+shop.URL, "COUNTERSIGN_RECONCILE_INTERVAL=1h"), n.next(t, shop)
				if at.happened || at.late {
					was--
				}
				var again numbered
				answered := make(chan error, 1)
				go func() (err error) {
					defer func() { answered <- err }()
					again, err = server.number(ask)
					return err
				}()
				if at.meanwhile {
					shop.AwaitLockWaits(t, 1)
					held.Release()
				}
				if err := <-answered; err != nil {
					t.Fatal(err)
				}
				if want := fmt.Sprintf("%s-%05d", n.series, was); again.Document.Number != want || again.Replayed != (at.happened || at.late || at.meanwhile) {
					t.Errorf("asked again: %+v, want %s", again, want)
				}
				if last, err := server.number(ask); err != nil || last.Document != again.Document || !last.Replayed {
					t.Errorf("at last: %+v (%v), before %+v", last, err, again)
				}
				if effects := testdb.Scan[int](t, shop.DB, n.effects); effects != 1 || n.next(t, shop) != was+1 {
					t.Errorf("done %d times, the next number is %d, and was %d", effects, n.next(t, shop), was)
				}
				if out, log, status := seriesCommand(t, shop.DB, "", "audit", "--tenant", "demo"); status != 0 {
					t.Errorf("the audit says %s %s", out, log)
				}
				shop.healthy(t)
			})
		}
	}
}
