// Package ratelimit slows down who asks too often: a token bucket for each of the most recent
// callers, in the memory of one process.
package ratelimit

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// maxKeys is how many callers a Limiter remembers. The one that has not asked for the longest is
// forgotten first: with this many others after it, its bucket was full again, or soon would be.
const maxKeys = 20_000

// Policy is how often one caller may ask.
type Policy struct {
	Name      string  // in the headers
	PerSecond float64 // 0: as often as it likes
	Burst     int     // at once; 0: ten seconds' worth
}

// Limiter holds a bucket for each caller. A nil one lets everything pass.
type Limiter struct {
	policy Policy
	clock  func() time.Time

	mu      sync.Mutex
	buckets *simplelru.LRU[string, *rate.Limiter]
}

// New makes a Limiter of a policy; nil where the policy lets everything pass. clock is time.Now, but
// for tests.
func New(p Policy, clock func() time.Time) *Limiter {
	if p.PerSecond <= 0 {
		return nil
	}
	if p.Burst <= 0 {
		p.Burst = max(1, int(math.Ceil(10*p.PerSecond)))
	}
	buckets, err := simplelru.NewLRU[string, *rate.Limiter](maxKeys, nil)
	if err != nil {
		panic(err) // maxKeys is above zero
	}
	return &Limiter{policy: p, clock: clock, buckets: buckets}
}

// State is how a caller stands after a question.
type State struct {
	OK        bool
	Remaining int           // requests it may make now
	Full      time.Duration // until it may make a whole burst
	Retry     time.Duration // until it may make one

	policy Policy
}

// Take asks for one request of a caller. It takes none where it is refused.
func (l *Limiter) Take(key string) State { return l.ask(key, true) }

// Look says how a caller stands, and takes nothing.
func (l *Limiter) Look(key string) State { return l.ask(key, false) }

func (l *Limiter) ask(key string, take bool) State {
	if l == nil {
		return State{OK: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	bucket, known := l.buckets.Get(key)
	switch {
	case !known && !take:
		return l.state(true, float64(l.policy.Burst))
	case !known:
		bucket = rate.NewLimiter(rate.Limit(l.policy.PerSecond), l.policy.Burst)
		l.buckets.Add(key, bucket)
	}
	ok := bucket.TokensAt(now) >= 1
	if take {
		ok = bucket.AllowN(now, 1)
	}
	return l.state(ok, bucket.TokensAt(now))
}

func (l *Limiter) state(ok bool, tokens float64) State {
	seconds := func(missing float64) time.Duration {
		return time.Duration(max(0, missing) / l.policy.PerSecond * float64(time.Second))
	}
	return State{
		OK: ok, Remaining: int(max(0, tokens)), Full: seconds(float64(l.policy.Burst) - tokens), Retry: seconds(1 - tokens), policy: l.policy,
	}
}

// Len is how many callers are remembered.
func (l *Limiter) Len() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buckets.Len()
}

// Describe puts the state into an answer's headers: RateLimit-Policy and RateLimit, as
// draft-ietf-httpapi-ratelimit-headers-10 has them, and Retry-After where it was refused.
func (s State) Describe(h http.Header) {
	p := s.policy
	if p.PerSecond == 0 {
		return
	}
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", p.Name, p.Burst, up(time.Duration(float64(p.Burst)/p.PerSecond*float64(time.Second)))))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", p.Name, s.Remaining, up(s.Full)))
	if !s.OK {
		h.Set("Retry-After", fmt.Sprint(max(1, up(s.Retry))))
	}
}

// up is a duration in whole seconds, rounded up.
func up(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
