package pgproxy

import (
	"bufio"
	"io"
	"net"
	"sync"
)

// conn is a client's connection and the one to the server that belongs to it.
type conn struct {
	proxy  *Proxy
	client net.Conn
	done   chan struct{} // closed by close

	mu     sync.Mutex
	server net.Conn         // nil until the client has introduced itself
	closed bool             // both sides were closed by the proxy
	sealed bool             // about to be: nothing more goes to the server
	await  map[int][]*Fault // rules waiting for the nth answer to be complete
}

func newConn(p *Proxy, client net.Conn) *conn {
	return &conn{proxy: p, client: client, done: make(chan struct{}), await: map[int][]*Fault{}}
}

// close closes both sides. The first call counts.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	close(c.done)
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

func (c *conn) seal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
}

func (c *conn) isSealed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed
}

// dial connects to the server. It reports false if there is no going on.
func (c *conn) dial() bool {
	var d net.Dialer
	server, err := d.DialContext(c.proxy.ctx, c.proxy.network, c.proxy.address)
	if err != nil {
		if c.proxy.ctx.Err() == nil {
			c.proxy.t.Logf("pgproxy: %v", err)
		}
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = server.Close()
		return false
	}
	c.server = server
	return true
}

// serve runs the connection to its end.
func (c *conn) serve() {
	r := bufio.NewReader(c.client)
	first, code, err := readStartup(r)
	for ; err == nil && (code == sslRequest || code == gssEncRequest); first, code, err = readStartup(r) {
		if _, err := c.client.Write([]byte{'N'}); err != nil {
			return
		}
	}
	if err != nil || !c.dial() {
		return
	}
	if code == cancelRequest {
		// The server closes without an answer when it has passed the request on,
		// and the client waits for that.
		if _, err := c.server.Write(first.raw); err == nil {
			_, _ = io.Copy(io.Discard, c.server)
		}
		return
	}
	var fromClient sync.WaitGroup
	fromClient.Go(func() { c.forward(r, first) })
	c.back()
	c.close()
	fromClient.Wait()
}
