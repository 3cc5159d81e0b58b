package join_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/internal/join"
)

// one is the key of tests that need no other.
const one = "one"

var limits = join.Limits{Batch: 100, Queue: 1000, Timeout: time.Minute}

// echo is a flight that answers each request with itself and waits at a gate on the way.
type echo struct {
	started chan []int    // each flight's passengers, as it starts
	gate    chan struct{} // a flight lands when it can receive
}

func newEcho() *echo { return &echo{make(chan []int, 100), make(chan struct{}, 100)} }

func (e *echo) fly(_ context.Context, _ string, requests []int) ([]int, error) {
	e.started <- requests
	<-e.gate
	return requests, nil
}

// untilWaiting returns when n requests wait.
func untilWaiting(g *join.Group[string, int, int], n int) {
	for g.Waiting() < n {
		runtime.Gosched()
	}
}

func TestARequestAloneFliesAtOnce(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.gate <- struct{}{}
	got, err := join.New(limits, e.fly).Do(t.Context(), one, 7)
	if got != 7 || err != nil {
		t.Fatalf("got %d, %v", got, err)
	}
}

// Requests that arrive during a flight share the next one, and each gets its own answer. None of
// them is answered by the flight that had departed before it came.
func TestArrivalsDuringAFlightShareTheNext(t *testing.T) {
	t.Parallel()
	e := newEcho()
	g := join.New(limits, e.fly)
	var wg sync.WaitGroup
	do := func(n int) {
		wg.Go(func() {
			if got, err := g.Do(t.Context(), one, n); got != n || err != nil {
				t.Errorf("request %d: got %d, %v", n, got, err)
			}
		})
	}
	do(0)
	if first := <-e.started; len(first) != 1 {
		t.Fatalf("the first flight has %d passengers", len(first))
	}
	for n := 1; n <= 50; n++ {
		do(n)
	}
	untilWaiting(g, 50)
	e.gate <- struct{}{}
	if second := <-e.started; len(second) != 50 {
		t.Errorf("the second flight has %d passengers, want all 50", len(second))
	}
	e.gate <- struct{}{}
	wg.Wait()
}

func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	e := newEcho()
	g := join.New(join.Limits{Batch: 1, Queue: 1, Timeout: time.Minute}, e.fly)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = g.Do(t.Context(), one, 1) })
	<-e.started
	wg.Go(func() { _, _ = g.Do(t.Context(), one, 2) })
	untilWaiting(g, 1)
	if _, err := g.Do(t.Context(), one, 3); !errors.Is(err, join.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	e.gate <- struct{}{}
	e.gate <- struct{}{}
	wg.Wait()
}

// A caller that hangs up leaves at once: before departure its request is dropped, and its
// neighbours are answered either way.
func TestACallerThatHangsUpHurtsNobody(t *testing.T) {
	t.Parallel()
	e := newEcho()
	g := join.New(limits, e.fly)
	var wg sync.WaitGroup
	wg.Go(func() {
		if got, err := g.Do(t.Context(), one, 1); got != 1 || err != nil {
			t.Errorf("the first: got %d, %v", got, err)
		}
	})
	<-e.started
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := g.Do(ctx, one, 2); gone <- err }()
	wg.Go(func() {
		if got, err := g.Do(t.Context(), one, 3); got != 3 || err != nil {
			t.Errorf("the neighbour: got %d, %v", got, err)
		}
	})
	untilWaiting(g, 2)
	hangUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that hung up: got %v", err)
	}
	e.gate <- struct{}{}
	if next := <-e.started; len(next) != 1 || next[0] != 3 {
		t.Errorf("the next flight carries %v, want only the neighbour", next)
	}
	e.gate <- struct{}{}
	wg.Wait()
}

func TestAPanicIsAnErrorOfItsFlightAlone(t *testing.T) {
	t.Parallel()
	g := join.New(limits, func(_ context.Context, _ string, requests []int) ([]int, error) {
		if requests[0] == 0 {
			panic("no zero")
		}
		return requests, nil
	})
	if _, err := g.Do(t.Context(), one, 0); err == nil {
		t.Error("a panic was answered as a success")
	}
	if got, err := g.Do(t.Context(), one, 1); got != 1 || err != nil {
		t.Errorf("after a panic: got %d, %v", got, err)
	}
}

// A flight takes what it can carry, in the order in which it came, and what weighs more flies by itself; those
// that wait are bounded by their weight too.
func TestWeightsBoundAFlightAndTheQueue(t *testing.T) {
	t.Parallel()
	e := newEcho()
	g := join.New(join.Limits{Batch: 100, Queue: 100, Timeout: time.Minute, Load: 10, Hold: 40}, e.fly).Weighed(func(n int) int { return n })
	var wg sync.WaitGroup
	do := func(n int) {
		wg.Go(func() {
			if got, err := g.Do(t.Context(), one, n); got != n || err != nil {
				t.Errorf("request %d: got %d, %v", n, got, err)
			}
		})
	}
	do(1)
	<-e.started
	for i, n := range []int{4, 5, 2, 8, 15, 6} { // 40 in all
		do(n)
		untilWaiting(g, i+1)
	}
	if _, err := g.Do(t.Context(), one, 1); !errors.Is(err, join.ErrFull) {
		t.Errorf("past what may wait: %v, want ErrFull", err)
	}
	for _, want := range [][]int{{4, 5}, {2, 8}, {15}, {6}} {
		e.gate <- struct{}{}
		if got := <-e.started; !slices.Equal(got, want) {
			t.Errorf("a flight carries %v, want %v", got, want)
		}
	}
	e.gate <- struct{}{}
	wg.Wait()
	do(41) // nobody waits, so it flies, and leaves nothing held
	<-e.started
	do(40)
	untilWaiting(g, 1)
	e.gate <- struct{}{}
	<-e.started
	e.gate <- struct{}{}
	wg.Wait()
}
