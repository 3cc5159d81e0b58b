package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// fixed is a clock that a test moves.
type fixed struct{ now time.Time }

func (f *fixed) time() time.Time { return f.now }

// A caller may make a burst at once, and after that as many as the rate gives back; another's
// requests are not its own. A refused request costs nothing.
func TestBucket(t *testing.T) {
	t.Parallel()
	clock := &fixed{time.Unix(1000, 0)}
	l := New(Policy{Name: "caller", PerSecond: 2, Burst: 3}, clock.time)
	take := func(key string, want bool) State {
		t.Helper()
		s := l.Take(key)
		if s.OK != want {
			t.Errorf("%s is let through: %v", key, s.OK)
		}
		return s
	}
	for range 3 {
		take("a", true)
	}
	for range 5 {
		if s := take("a", false); s.Remaining != 0 || s.Retry != 500*time.Millisecond || s.Full != 1500*time.Millisecond {
			t.Errorf("stands at %+v", s)
		}
	}
	take("b", true)
	if !l.Look("c").OK || l.Look("a").OK || l.Len() != 2 {
		t.Errorf("looking changes what is known: %d", l.Len())
	}
	clock.now = clock.now.Add(500 * time.Millisecond)
	take("a", true)
	take("a", false)
	clock.now = clock.now.Add(time.Hour)
	if s := take("a", true); s.Remaining != 2 {
		t.Errorf("an hour later: %+v", s)
	}
}

// However many callers there are, the memory of them is bounded, and the one who asks all the time is
// not among those that are forgotten.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	clock := &fixed{time.Unix(1000, 0)}
	l := New(Policy{PerSecond: 1, Burst: 1}, clock.time)
	l.Take("steady")
	for i := range 5 * maxKeys {
		if l.Take(fmt.Sprint("passing ", i)); i%100 == 0 && l.Take("steady").OK {
			t.Fatalf("after %d others the steady one was forgotten", i)
		}
	}
	if l.Len() != maxKeys {
		t.Errorf("%d are remembered, want %d", l.Len(), maxKeys)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	clock := &fixed{time.Unix(1000, 0)}
	l := New(Policy{Name: "caller", PerSecond: 0.5, Burst: 2}, clock.time)
	for _, want := range []map[string]string{
		{"RateLimit-Policy": `"caller";q=2;w=4`, "RateLimit": `"caller";r=1;t=2`, "Retry-After": ""},
		{"RateLimit-Policy": `"caller";q=2;w=4`, "RateLimit": `"caller";r=0;t=4`, "Retry-After": ""},
		{"RateLimit-Policy": `"caller";q=2;w=4`, "RateLimit": `"caller";r=0;t=4`, "Retry-After": "2"},
	} {
		h := http.Header{}
		l.Take("a").Describe(h)
		for name, value := range want {
			if h.Get(name) != value {
				t.Errorf("%s: %s, want %s", name, h.Get(name), value)
			}
		}
	}
	h := http.Header{}
	New(Policy{}, clock.time).Take("a").Describe(h)
	if len(h) != 0 {
		t.Errorf("without a limit the headers are %v", h)
	}
}

// What a client writes into X-Forwarded-For counts only as far as a proxy of ours has added to it.
func TestAddress(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		peer, forwarded string
		proxies         []netip.Prefix
		want            string
	}{
		{"203.0.113.9:1234", "", nil, "203.0.113.9"},
		{"203.0.113.9:1234", "198.51.100.1", nil, "203.0.113.9"},
		{"203.0.113.9:1234", "198.51.100.1", proxies, "203.0.113.9"},
		{"10.0.0.2:1234", "198.51.100.1", nil, "10.0.0.2"},
		{"10.0.0.2:1234", "198.51.100.1", proxies, "198.51.100.1"},
		{"10.0.0.2:1234", "1.2.3.4, 198.51.100.1, 10.9.9.9", proxies, "198.51.100.1"},
		{"10.0.0.2:1234", "1.2.3.4, nonsense", proxies, "10.0.0.2"},
		{"10.0.0.2:1234", "", proxies, "10.0.0.2"},
		{"[fd00::1]:1234", "2001:db8:1:2:3:4:5:6", proxies, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::9]:1234", "", nil, "2001:db8:1:2::/64"},
		{"[::ffff:203.0.113.9]:1234", "", nil, "203.0.113.9"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := Address(r, c.proxies); got != c.want {
			t.Errorf("%s for %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}
