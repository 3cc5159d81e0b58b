package pgproxy

import "bufio"

// The server numbers its answers by ReadyForQuery: the first ends the startup,
// and each Query or Sync asks for one more. That is how a rule set off by a
// message in the middle of a pipeline finds the answer that belongs to it.

// awaitAnswer has the rule carried out once the nth answer is complete. It must
// be called before the message that set off the rule is sent.
func (c *conn) awaitAnswer(n int, f *Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.await[n] = append(c.await[n], f)
}

// awaited reports whether a rule waits for the nth answer.
func (c *conn) awaited(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.await[n]) > 0
}

// strikeAnswer carries out the rules that waited for the nth answer. It reports
// whether the connection goes on.
func (c *conn) strikeAnswer(w *bufio.Writer, n int) bool {
	c.mu.Lock()
	faults := c.await[n]
	delete(c.await, n)
	c.mu.Unlock()
	return strikeAll(w, c, faults)
}

// strikeEnd carries out every rule that still waits when the server closes: no
// answer will become more complete than it is. Nothing counts as having happened
// if it was the proxy that closed.
func (c *conn) strikeEnd(w *bufio.Writer) bool {
	c.mu.Lock()
	var faults []*Fault
	for _, fs := range c.await {
		faults = append(faults, fs...)
	}
	clear(c.await)
	closed := c.closed
	c.mu.Unlock()
	return !closed && strikeAll(w, c, faults)
}

func strikeAll(w *bufio.Writer, c *conn, faults []*Fault) bool {
	for _, f := range faults {
		_ = w.Flush() // earlier answers are not held back
		if !f.strike(c) {
			return false
		}
	}
	return true
}
