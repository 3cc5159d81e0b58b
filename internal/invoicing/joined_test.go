package invoicing_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// outcome is what an allocation was answered.
type outcome struct {
	txn.Outcome[*sqlc.Invoice]
	err error
}

// joinedShop is a shop whose allocations are joined, whatever else the tests run with, and whose
// counter stands on today, number 1 taken.
func joinedShop(t *testing.T, j invoicing.Joining) *shop {
	t.Helper()
	s := newShop(t)
	s.Service = invoicing.New(s.db).WithJoining(j)
	s.take(t, s.input())
	return s
}

// behindOne sends one allocation, holds it before its statement, lets the others come, one after
// the other, until all of them wait, calls meanwhile, and lets the first go: the others share what
// comes next. It returns what each was answered, the first one's last.
func (s *shop) behindOne(t *testing.T, meanwhile func(), others ...invoicing.AllocateInvoiceInput) []outcome {
	t.Helper()
	out := make([]outcome, len(others)+1)
	gate := s.Gate(t, "AllocateInvoices")
	var group sync.WaitGroup
	send := func(place int, in invoicing.AllocateInvoiceInput) {
		group.Go(func() { out[place].Outcome, out[place].err = s.Allocate(t.Context(), s.caller, in) })
	}
	send(len(others), s.input())
	gate.Await(t, 1)
	for i, in := range others {
		send(i, in)
		testdb.Eventually(t, func() bool { return s.Waiting() == i+1 })
	}
	meanwhile()
	gate.Open()
	group.Wait()
	return out
}

func nothing() {}

// inputs asks n times.
func (s *shop) inputs(n int) []invoicing.AllocateInvoiceInput {
	return slices.Repeat([]invoicing.AllocateInvoiceInput{s.input()}, n)
}

// keyed is an input under a key.
func (s *shop) keyed(key string) invoicing.AllocateInvoiceInput {
	in := s.input()
	in.IdempotencyKey = &key
	return in
}

// numbered fails unless the outcomes hold these numbers, none of them a replay.
func numbered(t *testing.T, got []outcome, want ...int64) {
	t.Helper()
	for i, o := range got {
		if o.err != nil || *o.Value.Sequence != want[i] || o.Replayed {
			t.Errorf("allocation %d: %v, replayed %v; want number %d", i, o.err, o.Replayed, want[i])
		}
	}
}

// Fifty allocations that come while one is in flight share the next statement, and are numbered in
// the order in which they came, under keys and without.
func TestAllocationsThatComeTogetherShareAStatement(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	sent := s.Sent()
	others := s.inputs(50)
	want := make([]int64, len(others)+1)
	for i := range others {
		if i%2 == 0 {
			others[i] = s.keyed(fmt.Sprint("key ", i))
		}
		want[i] = int64(i + 3)
	}
	want[len(others)] = 2
	numbered(t, s.behindOne(t, nothing, others...), want...)
	if got := fmt.Sprint(sent()); got != "[AllocateInvoices AllocateInvoices]" {
		t.Errorf("sent %s", got)
	}
	s.wantOneTo(t, 52)
	s.healthy(t)
}

// A batch holds as many as it may, and the rest follow.
func TestABatchIsBounded(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{Batch: 4})
	sent := s.Sent()
	numbered(t, s.behindOne(t, nothing, s.inputs(10)...), 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 2)
	if n := len(sent()); n != 4 {
		t.Errorf("%d statements for 1 + 4 + 4 + 2 allocations", n)
	}
	s.healthy(t)
}

// The queue is bounded: who finds it full is told BUSY at once, and nothing of it is left.
func TestAFullQueueIsBusy(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{Queue: 3})
	out := s.behindOne(t, func() {
		_, err := s.Allocate(t.Context(), s.caller, s.input())
		wantCode(t, err, domain.CodeBusy)
	}, s.inputs(3)...)
	numbered(t, out, 3, 4, 5, 2)
	s.wantOneTo(t, 5)
}

// Many lines together would hold the counter for long: a statement has at most 2,000, and who comes behind
// a big invoice does not wait for all of them.
func TestABatchIsBoundedByItsLines(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	big := s.input()
	big.Lines = slices.Repeat(big.Lines[:1], domain.MaxInvoiceLines)
	sent := s.Sent()
	for _, o := range s.behindOne(t, nothing, big, big, big, s.input()) {
		if o.err != nil {
			t.Error(o.err)
		}
	}
	if got := fmt.Sprint(sent()); got != "[AllocateInvoices AllocateInvoices AllocateInvoices]" {
		t.Errorf("sent %s, want one alone, two big ones, and the third with the small one", got)
	}
	s.healthy(t)
}

// Switched off, each allocation has a statement of its own.
func TestJoiningCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Service = s.WithJoining(invoicing.Joining{Batch: 1})
	s.take(t, s.input())
	sent := s.Sent()
	gate := s.Gate(t, "AllocateInvoices")
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(5, func(int) { s.take(t, s.input()) })
	}()
	gate.Await(t, 5)
	gate.Open()
	<-done
	if n := len(sent()); n != 5 {
		t.Errorf("%d statements for 5 allocations", n)
	}
	s.wantOneTo(t, 6)
}

// Case 13's sister: what is at fault in a batch fails alone. A customer that does not exist is found
// out by the database after the batch was numbered; its neighbours are numbered without a hole.
func TestWhatIsAtFaultInABatchFailsAlone(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	others := s.inputs(20)
	for _, i := range []int{0, 7, 19} {
		others[i].CustomerID = domain.NewID[domain.CustomerID]()
	}
	for i, o := range s.behindOne(t, nothing, others...) {
		want := domain.Code("")
		if slices.Contains([]int{0, 7, 19}, i) {
			want = domain.CodeNotFound
		}
		wantCode(t, o.err, want)
	}
	s.wantOneTo(t, 2+17)
	s.healthy(t)
}

// Keys that have been used before are answered with their invoices, and used ones with another
// input are refused, while the rest of the batch is numbered: by one statement that fails, one that
// looks the keys up, and one for the rest.
func TestReplaysInABatch(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	first := s.take(t, s.keyed("a"))
	second := s.take(t, s.keyed("b"))
	other := s.keyed("a")
	other.Lines[0].Quantity++
	sent := s.Sent()
	out := s.behindOne(t, nothing, s.input(), s.keyed("a"), s.keyed("c"), s.keyed("b"), other)
	numbered(t, []outcome{out[0], out[2], out[5]}, 5, 6, 4)
	for place, want := range map[int]*sqlc.Invoice{1: first, 3: second} {
		if o := out[place]; o.err != nil || !o.Replayed || o.Value.ID != want.ID {
			t.Errorf("allocation %d: replayed %v, %v; want the invoice %s", place, o.Replayed, o.err, want.ID)
		}
	}
	wantCode(t, out[4].err, domain.CodeIdempotencyKeyReused)
	// other is the twin of another in its batch, so it is looked up by itself.
	if got := fmt.Sprint(sent()); got != "[AllocateInvoices AllocateInvoices FindInvoicesOfOperations AllocateInvoices FindInvoiceOfOperation]" {
		t.Errorf("sent %s", got)
	}
	s.wantOneTo(t, 6)
	s.healthy(t)
}

// An operation occurs once in a batch: its twins wait for it, and are answered with what it made.
func TestTwinsInABatch(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	out := s.behindOne(t, nothing, s.keyed("a"), s.keyed("a"), s.input(), s.keyed("a"))
	numbered(t, []outcome{out[0], out[2]}, 3, 4)
	for _, twin := range []outcome{out[1], out[3]} {
		if twin.err != nil || !twin.Replayed || twin.Value.ID != out[0].Value.ID {
			t.Errorf("a twin: replayed %v, %v", twin.Replayed, twin.err)
		}
	}
	s.wantOneTo(t, 4)
	s.healthy(t)
}

// A batch whose answer is lost, before the server saw it or after it had committed: each of its
// allocations is run again under its operation, and has one number.
func TestABatchWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	proxy := pgproxy.New(t, s.URL)
	s.db = txn.New(s.PoolAt(t, proxy.URL(), 4), txn.Settings{})
	s.Service = invoicing.New(s.db)
	taken := 1
	for name, cut := range map[string]func(pgproxy.Point) *pgproxy.Fault{"before": proxy.CutBefore, "after": proxy.CutAfter} {
		var fault *pgproxy.Fault
		hold := proxy.Hold(pgproxy.Query("AllocateInvoices"))
		out := make([]outcome, 12)
		var group sync.WaitGroup
		send := func(i int) {
			group.Go(func() { out[i].Outcome, out[i].err = s.Allocate(t.Context(), s.caller, s.input()) })
		}
		send(0)
		if err := hold.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(out); i++ {
			send(i)
			testdb.Eventually(t, func() bool { return s.Waiting() == i })
		}
		fault = cut(pgproxy.Query("AllocateInvoices"))
		hold.Release()
		group.Wait()
		if fault.Count() == 0 {
			t.Errorf("cut %s: nothing was cut", name)
		}
		for i, o := range out {
			if o.err != nil || o.Replayed {
				t.Errorf("cut %s, allocation %d: replayed %v, %v", name, i, o.Replayed, o.err)
			}
		}
		taken += len(out)
		s.wantOneTo(t, taken)
	}
	s.healthy(t)
}

// A client that hangs up while it waits leaves nothing; one whose batch has departed has its
// invoice, under its key; neither hurts its neighbours.
func TestACallerThatLeavesABatch(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	waits, hangUp := context.WithCancel(t.Context())
	gone := make(chan error)
	out := s.behindOne(t, func() {
		go func() {
			_, err := s.Allocate(waits, s.caller, s.keyed("left"))
			gone <- err
		}()
		testdb.Eventually(t, func() bool { return s.Waiting() == 3 })
		hangUp()
		wantCode(t, <-gone, domain.CodeUnavailable)
	}, s.inputs(2)...)
	numbered(t, out, 3, 4, 2)
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM invoices"); n != 4 {
		t.Errorf("there are %d invoices, want 4: who left while waiting leaves none", n)
	}

	flies, hangUp := context.WithCancel(t.Context())
	s.Before("AllocateInvoices", func(context.Context) { hangUp() })
	if _, err := s.Allocate(flies, s.caller, s.keyed("departed")); err != nil {
		t.Errorf("a departed allocation did not land: %v", err)
	}
	s.Before("AllocateInvoices", nil)
	again, err := s.Allocate(t.Context(), s.caller, s.keyed("departed"))
	if err != nil || !again.Replayed || *again.Value.Sequence != 5 {
		t.Errorf("asked again: replayed %v, %v", again.Replayed, err)
	}
	s.healthy(t)
}

// The first allocations of a day come together: one of them moves the counter, and the others
// follow in one statement.
func TestABatchAtMidnight(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2026, 6, 15, 23, 59, 59, 0, time.UTC))
	s := newShopAt(t, c.now)
	s.Service = invoicing.New(s.db)
	s.take(t, s.input())
	out := s.behindOne(t, func() { c.set(time.Date(2026, 6, 16, 0, 0, 0, 0, time.UTC)) }, s.inputs(9)...)
	for i, o := range out[:9] { // the first one was sent the day before
		if o.err != nil || o.Value.IssueDate.String() != "2026-06-16" {
			t.Errorf("allocation %d: %v", i, o.err)
		}
	}
	s.wantOneTo(t, 11)
	s.healthy(t)
}

// Only allocations that one statement can make are joined: those of another series, tenant or day
// of issue neither wait for each other nor share anything.
func TestWhatIsNotJoined(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	gate := s.Gate(t, "AllocateInvoices")
	today := s.input()
	today.IssueDate = testdb.Scan[*domain.Date](t, s.DB, "SELECT last_issue_date FROM series_counters WHERE series_id = $1", s.series)
	elsewhere := s.input()
	elsewhere.SeriesID = domain.NewID[domain.SeriesID]()
	var group sync.WaitGroup
	for _, in := range []invoicing.AllocateInvoiceInput{s.input(), today, elsewhere} {
		group.Go(func() { _, _ = s.Allocate(t.Context(), s.caller, in) })
	}
	gate.Await(t, 3)
	gate.Open()
	group.Wait()
	s.wantOneTo(t, 3)
	s.healthy(t)
}

// A counter behind its invoices is an alarm for each allocation of a batch, and writes nothing.
func TestABatchOnACounterBehindItsInvoices(t *testing.T) {
	t.Parallel()
	s := joinedShop(t, invoicing.Joining{})
	s.take(t, s.input())
	s.Exec(t, "UPDATE series_counters SET next_number = 1 WHERE series_id = $1", s.series)
	for _, o := range s.behindOne(t, nothing, s.inputs(3)...)[:3] {
		wantCode(t, o.err, domain.CodeSeriesInconsistent)
	}
	s.wantOneTo(t, 2)
}
