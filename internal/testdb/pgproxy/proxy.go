package pgproxy

import (
	"context"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Proxy listens on a port of its own and passes every connection on to one
// PostgreSQL server. Its methods are safe for concurrent use.
type Proxy struct {
	t        testing.TB
	url      string
	network  string // where the server is: "unix" or "tcp"
	address  string
	listener net.Listener
	ctx      context.Context // ends with the test
	running  sync.WaitGroup

	mu       sync.Mutex
	refusing bool
	conns    map[*conn]struct{}
	faults   []*Fault
}

// New starts a proxy in front of the server that upstream names, a postgres URL
// whose host is an address or, as "?host=/folder", the folder of a Unix socket.
// The server need not be running yet, and may be restarted. The proxy ends with
// the test, and with it whatever it still holds.
func New(t testing.TB, upstream string) *Proxy {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		t.Fatalf("pgproxy: the upstream %q is not a postgres URL", upstream)
	}
	config, err := pgconn.ParseConfig(upstream)
	if err != nil {
		t.Fatalf("pgproxy: upstream: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgproxy: %v", err)
	}
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = listener.Addr().String(), query.Encode()

	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{t: t, url: u.String(), listener: listener, ctx: ctx, conns: map[*conn]struct{}{}}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		cancel()
		p.Refuse(true)
		_ = listener.Close()
		p.CutAll()
		p.running.Wait()
	})
	return p
}

// URL is the upstream's URL with the proxy in the place of the host.
func (p *Proxy) URL() string { return p.url }

// CutBefore loses the message at the point: the receiver never sees it, and both
// sides are closed.
func (p *Proxy) CutBefore(at Point) *Fault { return p.arm(cutBefore, at) }

// CutAfter loses the answer: the client's message is passed on, the server
// answers it to the end, and both sides are closed without the client having seen
// any of it. A message of the server is delivered and both sides are closed before
// the client's next message gets through.
func (p *Proxy) CutAfter(at Point) *Fault { return p.arm(cutAfter, at) }

// Hold keeps the message at the point, and what follows it in its direction,
// until the Hold is released or cut.
func (p *Proxy) Hold(at Point) *Hold { return &Hold{p.arm(hold, at)} }

// HoldAnswer passes the client's message on and keeps the answer. The connection
// counts as held once the server has answered to the end, so whatever the message
// does is done by then. The point must be a message of the client.
func (p *Proxy) HoldAnswer(at Point) *Hold {
	p.t.Helper()
	if at.side == backend {
		p.t.Fatalf("pgproxy: HoldAnswer(%v): a message of the server has no answer", at)
	}
	return &Hold{p.arm(holdAnswer, at)}
}

// CutAll closes both sides of every connection there is, held ones included.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}

// Refuse(true) closes new connections as they come, cancel requests included,
// until Refuse(false). Existing ones are left alone: for an outage, call CutAll
// after it.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = refuse
}

func (p *Proxy) arm(a action, at Point) *Fault {
	p.t.Helper()
	if at.times < 1 || at.match == nil && at.nth < 1 {
		p.t.Fatalf("pgproxy: %v, %d times, is never reached", at, at.times)
	}
	f := &Fault{
		proxy: p, point: at, action: a, left: at.times, seen: map[*conn]int{},
		fired: make(chan struct{}), gate: make(chan struct{}), changed: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.DeleteFunc(p.faults, func(f *Fault) bool { return f.left == 0 })
	p.faults = append(p.faults, f)
	return f
}

// event is a message the proxy is about to pass on.
type event struct {
	side     side
	executes bool // it has a statement executed: sql
	sql      string
}

// match returns the rule the event sets off, nil if none. Every rule sees every
// event, for those that count; the first that is reached is used up by it.
func (p *Proxy) match(c *conn, e event) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first *Fault
	for _, f := range p.faults {
		if f.reached(c, e) && first == nil {
			first = f
		}
	}
	if first != nil {
		first.left--
	}
	return first
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed: the test is over
		}
		c := newConn(p, client)
		p.mu.Lock()
		refused := p.refusing
		if !refused {
			p.conns[c] = struct{}{}
		}
		p.mu.Unlock()
		if refused {
			c.close()
			continue
		}
		p.running.Go(func() {
			c.serve()
			c.close()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, c)
			for _, f := range p.faults {
				delete(f.seen, c)
			}
		})
	}
}
