package pgproxy

import "bufio"

// forward passes the client's messages to the server, beginning with m.
func (c *conn) forward(r *bufio.Reader, m message) {
	w := bufio.NewWriter(c.server)
	known := statements{}
	asked := 0 // answers the client has asked for
	for {
		answer := asked + 1 // the one this message belongs to
		if m.continues() {
			answer = asked
		}
		if m.asks() {
			asked++
		}
		if c.isSealed() {
			return
		}
		sql, executes := known.executed(m)
		if f := c.proxy.match(c, event{side: frontend, executes: executes, sql: sql}); f != nil {
			if f.action == cutAfter || f.action == holdAnswer {
				c.awaitAnswer(answer, f)
			} else if _ = w.Flush(); !f.strike(c) {
				return
			}
		}
		// A failed write needs no handling here: whatever broke the connection also
		// ends the server's side, after its last words have been read.
		_, _ = w.Write(m.raw)
		if r.Buffered() == 0 {
			_ = w.Flush()
		}
		var err error
		if m, err = readMessage(r); err != nil {
			_ = w.Flush()
			break
		}
	}
	// The client is gone, but as on a real wire the server first works off what
	// was sent, and only then reads the end.
	if half, ok := c.server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// back passes the server's messages to the client, whole answers held back where
// a rule waits for them.
func (c *conn) back() {
	r, w := bufio.NewReader(c.server), bufio.NewWriter(c.client)
	var kept []message
	answered := 0
	for {
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
		m, err := readMessage(r)
		if err != nil {
			// The end of the connection is the end of every answer.
			if c.strikeEnd(w) && c.deliver(w, kept...) {
				_ = w.Flush()
			}
			return
		}
		kept = append(kept, m)
		if c.awaited(answered + 1) {
			if !m.endsAnswer() {
				continue
			}
			if !c.strikeAnswer(w, answered+1) {
				return
			}
		}
		if m.kind == 'Z' {
			answered++
		}
		if !c.deliver(w, kept...) {
			return
		}
		kept = kept[:0]
	}
}

// deliver passes messages to the client. It reports whether the connection goes on.
func (c *conn) deliver(w *bufio.Writer, messages ...message) bool {
	for _, m := range messages {
		f := c.proxy.match(c, event{side: backend})
		if f != nil && f.action == cutAfter {
			// A quick client must not get its next message through before the cut.
			c.seal()
			_, _ = w.Write(m.raw)
		}
		if f != nil {
			_ = w.Flush()
			if !f.strike(c) {
				return false
			}
		}
		if _, err := w.Write(m.raw); err != nil {
			return false
		}
	}
	return true
}
