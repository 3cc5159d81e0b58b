package doctor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
)

// act is one thing that a client asked of a series.
type act struct {
	kind  string // "allocate", "finalize", "void" or "audit"
	draft int    // that is finalised
	void  int64  // the number that is voided
}

// seen is what the client was answered.
type seen struct {
	number int64 // that was given
	issued int64 // of the audit: how many numbers, of which so many are void
	voided int64
	gaps   int64
}

// ledger is the sequential model of a series: which number is next, which draft has which number,
// and which numbers are void.
type ledger struct {
	next   int64
	drafts [8]int64
	voids  [200]bool
}

func (l ledger) voided() (n int64) {
	for _, void := range l.voids {
		if void {
			n++
		}
	}
	return n
}

// step is the ledger after an act that was answered so, and whether it could have been.
func (l ledger) step(a act, s seen) (bool, ledger) {
	switch a.kind {
	case "finalize":
		if l.drafts[a.draft] != 0 { // its number is given once
			return s.number == l.drafts[a.draft], l
		}
		l.drafts[a.draft] = l.next
		fallthrough
	case "allocate":
		number := l.next
		l.next++
		return s.number == number, l
	case "void":
		possible := a.void < l.next
		l.voids[a.void] = true
		return possible, l
	}
	return s.gaps == 0 && s.issued+s.voided == l.next-1 && s.voided == l.voided(), l
}

var numbering = porcupine.Model{
	Init: func() any { return ledger{next: 1} },
	Step: func(state, input, output any) (bool, any) {
		return state.(ledger).step(input.(act), output.(seen))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}

// Sixteen clients allocate, finalise drafts that others finalise too, void and audit, all at once,
// with joining and through a second server without it. Whatever they saw could have been seen by
// one after the other, in an order in which nobody is answered before asking: the series is
// linearizable.
func TestWhatClientsSeeOfASeriesIsLinearizable(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	b := p.newBooks(t, "history")
	series := b.ids["serC"].(domain.SeriesID)
	var drafts [8]domain.InvoiceID
	for i := range drafts {
		out, err := p.service.CreateDraft(t.Context(), b.caller, invoicing.CreateDraftInvoiceInput{
			CustomerID: b.ids["cus"].(domain.CustomerID), Currency: "EUR", Lines: b.input(series).Lines,
		})
		if err != nil {
			t.Fatal(err)
		}
		drafts[i] = out.Value.ID
	}
	servers := []*invoicing.Service{p.service, p.service.WithJoining(invoicing.Joining{Batch: 1})}
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		clients sync.WaitGroup
	)
	begin := time.Now()
	for client := range 16 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			own := map[int64]domain.InvoiceID{} // that this client may void
			for range 10 {
				a := act{kind: []string{"allocate", "allocate", "finalize", "void", "audit"}[random.IntN(5)], draft: random.IntN(len(drafts))}
				for a.void = range own {
					break
				}
				if a.kind == "void" && a.void == 0 {
					a.kind = "allocate"
				}
				called := time.Since(begin)
				s, invoice, err := b.perform(t.Context(), p, servers[random.IntN(2)], series, drafts[a.draft], own[a.void], a.kind)
				returned := time.Since(begin)
				if err != nil {
					t.Errorf("%+v: %v", a, err)
					return
				}
				switch a.kind {
				case "allocate":
					own[s.number] = invoice
				case "void":
					delete(own, a.void)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: a, Output: s, Call: int64(called), Return: int64(returned)})
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if got := porcupine.CheckOperationsTimeout(numbering, history, time.Minute); got != porcupine.Ok {
		t.Errorf("the history of %d operations is %s", len(history), got)
	}
	// The model can be failed: one number given twice is no history of a series.
	for i := range history {
		if history[i].Input.(act).kind == "allocate" {
			forged := append([]porcupine.Operation{}, history...)
			forged[i].Output = seen{number: 1 << 40}
			if porcupine.CheckOperationsTimeout(numbering, forged, time.Minute) == porcupine.Ok {
				t.Error("a forged history passes")
			}
			break
		}
	}
	if report := p.check(t, b.tenant); !report.Healthy() {
		t.Errorf("the doctor finds %+v", report.Violations)
	}
}

// perform does one act, and tells what was seen and of which invoice.
func (b *books) perform(ctx context.Context, p *practice, server *invoicing.Service, series domain.SeriesID, draft, void domain.InvoiceID, kind string) (s seen, id domain.InvoiceID, err error) {
	switch kind {
	case "allocate":
		out, err := server.Allocate(ctx, b.caller, b.input(series))
		if err != nil {
			return s, id, err
		}
		return seen{number: *out.Value.Sequence}, out.Value.ID, nil
	case "finalize":
		out, err := server.Finalize(ctx, b.caller, invoicing.FinalizeInvoiceInput{InvoiceID: draft, SeriesID: &series})
		if err != nil {
			return s, id, err
		}
		return seen{number: *out.Value.Sequence}, out.Value.ID, nil
	case "void":
		_, err := p.usage.Void(ctx, b.caller, metering.VoidInvoiceInput{InvoiceID: void, Reason: "history"})
		return s, void, err
	}
	audit, err := server.Audit(ctx, b.caller, series, nil, nil)
	if err != nil {
		return s, id, err
	}
	return seen{issued: audit.Issued, voided: audit.Void, gaps: audit.Unexplained}, id, nil
}
