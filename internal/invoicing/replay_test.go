package invoicing_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

func serviceOn(db *txn.DB) *invoicing.Service { return invoicing.New(db).WithJoining(joining) }

// The same key and input is the same invoice, marked replayed; another input under the key is
// refused, and says nothing of the invoice.
func TestAKeyIsGoodForOneInvoice(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	key := "order 17"
	in := s.input()
	in.IdempotencyKey = &key
	first, err := s.Allocate(t.Context(), s.caller, in)
	if err != nil || first.Replayed {
		t.Fatalf("the first: replayed %v, %v", first.Replayed, err)
	}
	again, err := s.Allocate(t.Context(), s.caller, in)
	if err != nil || !again.Replayed || again.Value.ID != first.Value.ID || *again.Value.Number != *first.Value.Number {
		t.Errorf("asked again: replayed %v, %v", again.Replayed, err)
	}
	in.Lines[0].Quantity = 3
	other, err := s.Allocate(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeIdempotencyKeyReused)
	if other.Value != nil {
		t.Errorf("the refusal carries the invoice %s", other.Value.ID)
	}
	s.wantOneTo(t, 1)
	s.healthy(t)
}

// The unique index on the operation decides between requests that overlap: sixteen with one key,
// all past the look-up that finds nothing, make one invoice and move the counter by one. Each has a
// statement of its own, as if each had come to another server.
func TestSixteenWithOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Service = s.WithJoining(invoicing.Joining{Batch: 1})
	s.take(t, s.input())
	key := "one"
	in := s.input()
	in.IdempotencyKey = &key
	gate := s.Gate(t, "AllocateInvoices")
	var made atomic.Int32
	ids := make([]domain.InvoiceID, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(16, func(i int) {
			out, err := s.Allocate(t.Context(), s.caller, in)
			if err != nil {
				t.Errorf("request %d: %v", i, err)
				return
			}
			ids[i] = out.Value.ID
			if !out.Replayed {
				made.Add(1)
			}
		})
	}()
	gate.Await(t, 16)
	gate.Open()
	<-done
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two invoices: %s and %s", ids[0], id)
		}
	}
	if made.Load() != 1 {
		t.Errorf("%d requests say that they made it", made.Load())
	}
	s.wantOneTo(t, 2)
	s.healthy(t)
}

// A connection that is cut around the allocation, at every message of it, before the server saw
// the message or after it had answered: the number is taken exactly once, and a request that is
// answered with a failure can be asked again under its key.
func TestAnAnswerThatIsLostTakesOneNumber(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	proxy := pgproxy.New(t, s.URL)
	s.db = txn.New(s.PoolAt(t, proxy.URL(), 4), txn.Settings{})
	s.Service = serviceOn(s.db)
	s.take(t, s.input()) // opens the day, and the connection
	taken := 1
	for name, cut := range map[string]func(pgproxy.Point) *pgproxy.Fault{"before": proxy.CutBefore, "after": proxy.CutAfter} {
		for k := 1; ; k++ {
			fault := cut(pgproxy.FrontendMessage(k))
			out, err := s.Allocate(t.Context(), s.caller, s.input())
			fault.Disarm()
			if err != nil {
				t.Fatalf("cut %s message %d: %v", name, k, err)
			}
			taken++
			if out.Replayed || *out.Value.Sequence != int64(taken) {
				t.Errorf("cut %s message %d: number %d, replayed %v; want %d, made by this request", name, k, *out.Value.Sequence, out.Replayed, taken)
			}
			if fault.Count() == 0 {
				break
			}
		}
	}
	s.wantOneTo(t, taken)
	s.healthy(t)
}

// A client that hangs up while its number is being taken leaves a whole invoice or none; one that
// hung up before leaves nothing.
func TestAClientThatHangsUp(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	ctx, hangUp := context.WithCancel(t.Context())
	s.Before("AllocateInvoices", func(context.Context) { hangUp() })
	if _, err := s.Allocate(ctx, s.caller, s.input()); err != nil {
		t.Errorf("an accepted allocation did not finish: %v", err)
	}
	s.Before("AllocateInvoices", nil)
	_, err := s.Allocate(ctx, s.caller, s.input())
	wantCode(t, err, domain.CodeUnavailable)
	s.wantOneTo(t, 2)
	s.healthy(t)
}

// An allocation for a day, whose answer is lost while the counter moves on to the next day: its
// second run finds the wrong day, which is no answer, since the first run may have taken the
// number. It is OUTCOME_UNKNOWN, and there is the one invoice.
func TestALostAnswerAndACounterThatMovedOn(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, c.now)
	s.take(t, s.input())
	proxy := pgproxy.New(t, s.URL)
	through := *s
	through.db = txn.New(s.PoolAt(t, proxy.URL(), 4), txn.Settings{Clock: c.now})
	through.Service = serviceOn(through.db)
	in := s.input()
	in.IssueDate = date(t, "2026-06-15")
	hold := proxy.HoldAnswer(pgproxy.Query("AllocateInvoices"))
	answered := make(chan error, 1)
	go func() { _, err := through.Allocate(t.Context(), s.caller, in); answered <- err }()
	if err := hold.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.set(time.Date(2026, 6, 16, 12, 0, 0, 0, time.UTC))
	s.take(t, s.input())
	hold.Cut()
	wantCode(t, <-answered, domain.CodeOutcomeUnknown)
	s.wantOneTo(t, 3)
	s.healthy(t)
}
