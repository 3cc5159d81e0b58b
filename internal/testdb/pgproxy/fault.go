package pgproxy

import (
	"context"
	"fmt"
)

type action int

const (
	cutBefore action = iota
	cutAfter
	hold
	holdAnswer
)

// A Fault is an armed rule and the record of what it did.
type Fault struct {
	proxy  *Proxy
	point  Point
	action action
	fired  chan struct{}
	gate   chan struct{} // closed when nothing is held any more

	// Guarded by proxy.mu.
	left    int           // how often it may still fire; 0 is disarmed
	seen    map[*conn]int // messages counted since it was armed
	count   int
	changed chan struct{} // closed and replaced when count rises
	held    []*conn
	cut     bool
}

// Fired is closed once the fault has happened for the first time: both sides are
// closed, or the connection is held.
func (f *Fault) Fired() <-chan struct{} { return f.fired }

// Count tells how often the fault has happened.
func (f *Fault) Count() int {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	return f.count
}

// Wait blocks until the fault has happened once.
func (f *Fault) Wait(ctx context.Context) error { return f.WaitN(ctx, 1) }

// WaitN blocks until the fault has happened n times: with [Proxy.Hold], until the
// barrier is full.
func (f *Fault) WaitN(ctx context.Context, n int) error {
	for {
		f.proxy.mu.Lock()
		count, changed := f.count, f.changed
		f.proxy.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("pgproxy: %v reached %d times of %d: %w", f.point, count, n, ctx.Err())
		}
	}
}

// Disarm stops the rule from firing again. What is held stays held.
func (f *Fault) Disarm() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.left = 0
}

// happened records one firing, to be called when its effect is complete. The
// caller holds proxy.mu.
func (f *Fault) happened() {
	f.count++
	if f.count == 1 {
		close(f.fired)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// reached counts the event and reports whether it is the rule's point. The caller
// holds proxy.mu.
func (f *Fault) reached(c *conn, e event) bool {
	if f.left == 0 || f.point.side != e.side {
		return false
	}
	if f.point.match != nil {
		return e.executes && f.point.match(e.sql)
	}
	f.seen[c]++
	return f.seen[c] == f.point.nth
}

// strike carries the rule out on a connection that stands at its point. It
// reports whether the connection goes on.
func (f *Fault) strike(c *conn) bool {
	if f.action == cutBefore || f.action == cutAfter {
		// In one step, so that a client that has seen the end finds it counted.
		f.proxy.mu.Lock()
		defer f.proxy.mu.Unlock()
		c.close()
		f.happened()
		return false
	}
	f.proxy.mu.Lock()
	f.held = append(f.held, c)
	f.happened()
	f.proxy.mu.Unlock()
	select {
	case <-f.gate:
	case <-c.done:
		return false
	}
	f.proxy.mu.Lock()
	cut := f.cut
	f.proxy.mu.Unlock()
	if cut {
		c.close()
	}
	return !cut
}

// A Hold is a [Fault] that keeps connections waiting. If the client goes away
// meanwhile, what it sent stays in the wire: after Release the server still
// receives it.
type Hold struct{ *Fault }

// Release lets every held connection go on and disarms the rule.
func (h *Hold) Release() { h.open(false) }

// Cut closes both sides of every held connection and disarms the rule. What was
// held back is lost.
func (h *Hold) Cut() {
	for _, c := range h.open(true) {
		c.close()
	}
}

func (h *Hold) open(cut bool) []*conn {
	h.proxy.mu.Lock()
	defer h.proxy.mu.Unlock()
	h.left = 0
	select {
	case <-h.gate: // already released or cut: nothing waits
		return nil
	default:
	}
	h.cut = cut
	close(h.gate)
	return h.held
}
