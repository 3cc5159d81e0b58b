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

// numbering is a mutation that takes a number at the end of its transaction, or in a statement that is one.
type numbering struct {
	series string // the code of the series that it takes it from
	last   string // the query that comes before its COMMIT, or
	only   string // the one statement that it is, which is its COMMIT too
	// about makes the invoice that it is about, of a customer and a series; ask asks for it, under one key.
	about, ask string
	between    string // what is done to the database in between
	effects    string // counts what it has done
}

// allocations asks for an invoice of a line, by which it is found again.
func allocations(line, more string) string {
	return `allocateInvoice(input: {seriesId: "SERIES", customerId: "CUSTOMER", currency: "EUR", lines: [{description: "` + line + `", quantity: 1, unitAmountMinor: 100}]` + more + `})
		{ replayed document: invoice { id number } userErrors { message } }`
}

const allocatedAgain = "SELECT count(*) FROM invoice_lines WHERE description = 'Rook'"

var numberings = map[string]numbering{
	"allocateInvoice": {
		series: "INV", only: "AllocateInvoices",
		about: allocations("Pawn", ""), ask: allocations("Rook", `, idempotencyKey: "killed"`), effects: allocatedAgain,
	},
	// It moves the counter first: it holds the lock while it sends its other statements.
	"allocateInvoice as the first of its day": {
		series: "INV", last: "AllocateInvoices",
		about: allocations("Pawn", ""), ask: allocations("Rook", `, idempotencyKey: "killed"`), effects: allocatedAgain,
		between: `UPDATE series_counters SET last_issue_date = last_issue_date - 1, issue_date_ends = issue_date_ends - interval '1 day'
			WHERE series_id = (SELECT series_id FROM invoices ORDER BY id DESC LIMIT 1)`,
	},
	"finalizeInvoice": {
		series: "INV", last: "MoveInvoice",
		about: `createDraftInvoice(input: {customerId: "CUSTOMER", currency: "EUR", lines: [{description: "Pawn", quantity: 1, unitAmountMinor: 100}]})
			{ replayed document: invoice { id number } userErrors { message } }`,
		ask:     `finalizeInvoice(input: {invoiceId: "INVOICE", idempotencyKey: "killed"}) { replayed document: invoice { id number } userErrors { message } }`,
		effects: "SELECT count(*) FROM invoice_history h JOIN invoices i ON i.id = h.invoice_id WHERE h.event = 'FINALISED' AND i.number IS NOT NULL",
	},
	"issueCreditNote": {
		series: "CN", last: "InsertCreditNote",
		about:   allocations("Pawn", ""),
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
	of := strings.NewReplacer("CUSTOMER", victim.value("customer"), "SERIES", victim.value("series"))
	about, err := victim.number(of.Replace(n.about))
	if err != nil {
		t.Fatal(err)
	}
	ask = strings.Replace(of.Replace(n.ask), "INVOICE", about.Document.ID, 1)
	if n.between != "" {
		s.Exec(t, n.between)
	}
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

// unsent is a server whose one statement is in the wire.
func (n numbering) unsent(t *testing.T, s *shop, ask func()) *pgproxy.Hold {
	t.Helper()
	held := s.proxy.Hold(pgproxy.Query(n.only))
	ask()
	testdb.Eventually(t, func() bool { return held.Count() == 1 })
	return held
}

// unheard is a server that is not told that its one statement has happened.
func (n numbering) unheard(t *testing.T, s *shop, ask func()) *pgproxy.Hold {
	t.Helper()
	held := s.proxy.HoldAnswer(pgproxy.Query(n.only))
	ask()
	testdb.Eventually(t, func() bool { return n.done(t, s) })
	return held
}

// reach holds it before or after what it does has happened.
func (n numbering) reach(happened bool) func(*testing.T, *shop, func()) *pgproxy.Hold {
	switch {
	case n.only != "" && happened:
		return n.unheard
	case n.only != "":
		return n.unsent
	case happened:
		return unheard(n.done)
	}
	return unsent(n.last)
}

// Case 12: a server is killed with -9 while its COMMIT of an allocated or a finalised invoice, or of a credit note, is in
// the wire, and after that has happened, before it hears of it. Whoever asks the next server under the same key,
// if need be while the COMMIT still is in the wire, is given one number, once, and the numbers have no gap.
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
				ask, held := n.killed(t, shop, n.reach(at.happened))
				backends := testdb.Scan[[]int32](t, shop.DB, "SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'countersign'")
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
				if at.meanwhile && n.only == "" {
					shop.AwaitLockWaits(t, 1)
					held.Release()
				}
				if err := <-answered; err != nil {
					t.Fatal(err)
				}
				if at.meanwhile && n.only != "" { // it holds no lock before it arrives: it comes too late
					held.Release()
					testdb.Eventually(t, func() bool {
						return testdb.Scan[int](t, shop.DB, "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)", backends) == 0
					})
				}
				if want := fmt.Sprintf("%s-%05d", n.series, was); again.Document.Number != want || again.Replayed != (at.happened || at.late || at.meanwhile && n.only == "") {
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
