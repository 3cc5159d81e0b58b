// Package join lets requests that arrive while one is in flight share the next: many requests,
// one statement. A request that is alone flies at once, in its own goroutine, and nothing is kept
// after landing, so every answer was read after its request arrived.
package join

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// ErrFull is the answer to a request that finds the queue full.
var ErrFull = errors.New("too many requests are waiting")

// Limits of a Group.
type Limits struct {
	Batch   int           // requests in one flight, at most
	Queue   int           // requests that wait, of all keys together, at most
	Timeout time.Duration // of one flight
	// Load and Hold bound what requests weigh, by Weighed: those of one flight, where a heavier one flies by
	// itself, and those that wait. 0: whatever it is.
	Load, Hold int
	// BoardFirst lets all else that can run in this process do so before a shared flight departs: on a busy server
	// more board, on an idle one there is nothing to wait for. It is for flights that cost little beside
	// what their passengers do next; others had better depart at once.
	BoardFirst bool
}

// Group joins the requests of each key, and of each key alone. Of one key one flight is in the air
// at a time; requests are handed to it in the order in which they came.
type Group[K comparable, Req, Res any] struct {
	fly    func(ctx context.Context, key K, requests []Req) ([]Res, error)
	limits Limits

	weigh func(Req) int

	mu      sync.Mutex
	flying  map[K][]*seat[Req, Res] // of each key in flight, who waits for the next one
	waiting int
	held    int // what they weigh
}

type seat[Req, Res any] struct {
	request Req
	weight  int
	landed  chan struct{}
	result  Res
	err     error
}

// New makes a group of fly, which answers each request at its place, or all with one error.
func New[K comparable, Req, Res any](limits Limits, fly func(ctx context.Context, key K, requests []Req) ([]Res, error)) *Group[K, Req, Res] {
	return &Group[K, Req, Res]{fly: fly, limits: limits, weigh: func(Req) int { return 1 }, flying: map[K][]*seat[Req, Res]{}}
}

// Weighed is a new group whose requests weigh something, for the limits Load and Hold.
func (g *Group[K, Req, Res]) Weighed(weigh func(Req) int) *Group[K, Req, Res] {
	out := New(g.limits, g.fly)
	out.weigh = weigh
	return out
}

// Do answers a request. A caller whose context ends before its request departs leaves, and is told
// so by the context's error: nothing was done. What has departed lands, within the flight's time.
func (g *Group[K, Req, Res]) Do(ctx context.Context, key K, request Req) (Res, error) {
	s := &seat[Req, Res]{request: request, weight: g.weigh(request)}
	if err := ctx.Err(); err != nil {
		return s.result, err
	}
	alone, err := g.board(key, s)
	switch {
	case err != nil:
		return s.result, err
	case alone:
		g.flight(key, []*seat[Req, Res]{s})
		if g.awaited(key) {
			go g.flyAll(key)
		}
		return s.result, s.err
	}
	select {
	case <-s.landed:
	case <-ctx.Done():
		if g.leave(key, s) {
			return s.result, ctx.Err()
		}
		<-s.landed
	}
	return s.result, s.err
}

// Waiting is how many requests wait for a flight: the queue's gauge.
func (g *Group[K, Req, Res]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// board takes a seat in the next flight of a key; alone says that this is its own, at once.
func (g *Group[K, Req, Res]) board(key K, s *seat[Req, Res]) (alone bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, flying := g.flying[key]
	switch {
	case !flying:
		g.flying[key] = nil
		return true, nil
	case g.waiting >= g.limits.Queue, g.limits.Hold > 0 && g.held+s.weight > g.limits.Hold && g.waiting > 0:
		return false, ErrFull
	}
	s.landed = make(chan struct{})
	g.flying[key] = append(waiting, s)
	g.waiting++
	g.held += s.weight
	return false, nil
}

// leave gives up a seat; it is too late where the flight has departed.
func (g *Group[K, Req, Res]) leave(key K, s *seat[Req, Res]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.flying[key]
	for i, w := range waiting {
		if w == s {
			g.flying[key] = append(waiting[:i:i], waiting[i+1:]...)
			g.waiting--
			g.held -= s.weight
			return true
		}
	}
	return false
}

// flyAll flies a key until nobody waits.
func (g *Group[K, Req, Res]) flyAll(key K) {
	for g.awaited(key) {
		if g.limits.BoardFirst {
			runtime.Gosched()
		}
		seats := g.depart(key)
		g.flight(key, seats)
		for _, s := range seats {
			close(s.landed)
		}
	}
}

// awaited says whether anybody waits for the next flight of a key. If not, nothing is kept of it.
func (g *Group[K, Req, Res]) awaited(key K) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.flying[key]) > 0 {
		return true
	}
	delete(g.flying, key)
	return false
}

// depart takes who waits, at most a batch: nobody, where all have left again.
func (g *Group[K, Req, Res]) depart(key K) []*seat[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := g.flying[key]
	n, load := 0, 0
	for n < min(len(waiting), g.limits.Batch) && (n == 0 || g.limits.Load == 0 || load+waiting[n].weight <= g.limits.Load) {
		load += waiting[n].weight
		n++
	}
	g.flying[key] = waiting[n:len(waiting):len(waiting)]
	g.waiting -= n
	g.held -= load
	return waiting[:n:n]
}

// flight makes one flight. It belongs to no request, so it has a deadline of its own, and a panic
// in it is an error to its passengers instead of the end of the process.
func (g *Group[K, Req, Res]) flight(key K, seats []*seat[Req, Res]) {
	if len(seats) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.limits.Timeout)
	defer cancel()
	requests := make([]Req, len(seats))
	for i, s := range seats {
		requests[i] = s.request
	}
	results, err := g.safely(ctx, key, requests)
	for i, s := range seats {
		if s.err = err; err == nil {
			s.result = results[i]
		}
	}
}

func (g *Group[K, Req, Res]) safely(ctx context.Context, key K, requests []Req) (results []Res, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a joined flight: %v", p)
		}
	}()
	results, err = g.fly(ctx, key, requests)
	if err == nil && len(results) != len(requests) {
		err = fmt.Errorf("a joined flight answered %d of %d requests", len(results), len(requests))
	}
	return results, err
}
