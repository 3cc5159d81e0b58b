// Package join lets requests that arrive while one is in flight share the next: many requests,
// one statement. A request that is alone flies at once, and nothing is kept after landing, so
// every answer was read after its request arrived.
package join

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull is the answer to a request that finds the queue full.
var ErrFull = errors.New("too many requests are waiting")

// Limits of a Group.
type Limits struct {
	Batch   int           // requests in one flight, at most
	Queue   int           // requests that wait, at most
	Timeout time.Duration // of one flight
}

// Group joins requests. Requests of one flight are answered in the order they are handed over.
type Group[Req, Res any] struct {
	fly    func(ctx context.Context, requests []Req) ([]Res, error)
	limits Limits

	mu      sync.Mutex
	flying  bool
	waiting []*seat[Req, Res]
}

type seat[Req, Res any] struct {
	request Req
	landed  chan struct{}
	result  Res
	err     error
}

// New makes a group of fly, which answers each request at its place, or all with one error.
func New[Req, Res any](limits Limits, fly func(ctx context.Context, requests []Req) ([]Res, error)) *Group[Req, Res] {
	return &Group[Req, Res]{fly: fly, limits: limits}
}

// Do answers a request. A caller whose context ends leaves; if its request is in flight already,
// the flight goes on, for the others too.
func (g *Group[Req, Res]) Do(ctx context.Context, request Req) (Res, error) {
	s := &seat[Req, Res]{request: request, landed: make(chan struct{})}
	if err := g.board(s); err != nil {
		return s.result, err
	}
	select {
	case <-s.landed:
		return s.result, s.err
	case <-ctx.Done():
		g.leave(s)
		var none Res // s belongs to the flight
		return none, ctx.Err()
	}
}

// Waiting is how many requests wait for the next flight: the queue's gauge.
func (g *Group[Req, Res]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

func (g *Group[Req, Res]) board(s *seat[Req, Res]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) >= g.limits.Queue {
		return ErrFull
	}
	g.waiting = append(g.waiting, s)
	if !g.flying {
		g.flying = true
		go g.flyAll()
	}
	return nil
}

// leave gives up a seat that has not departed.
func (g *Group[Req, Res]) leave(s *seat[Req, Res]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == s {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
}

// flyAll flies until nobody waits.
func (g *Group[Req, Res]) flyAll() {
	for {
		seats := g.depart()
		if len(seats) == 0 {
			return
		}
		results, err := g.flight(seats)
		for i, s := range seats {
			if s.err = err; err == nil {
				s.result = results[i]
			}
			close(s.landed)
		}
	}
}

// depart takes who waits, at most a batch; if nobody does, the next to come starts anew.
func (g *Group[Req, Res]) depart() []*seat[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), g.limits.Batch)
	seats := append([]*seat[Req, Res](nil), g.waiting[:n]...)
	g.waiting = append(g.waiting[:0], g.waiting[n:]...)
	g.flying = n > 0
	return seats
}

// flight makes one flight. It belongs to no request, so it has a deadline of its own, and a panic
// in it is an error to its passengers instead of the end of the process.
func (g *Group[Req, Res]) flight(seats []*seat[Req, Res]) (results []Res, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.limits.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a joined flight: %v", p)
		}
	}()
	requests := make([]Req, len(seats))
	for i, s := range seats {
		requests[i] = s.request
	}
	results, err = g.fly(ctx, requests)
	if err == nil && len(results) != len(requests) {
		err = fmt.Errorf("a joined flight answered %d of %d requests", len(results), len(requests))
	}
	return results, err
}
