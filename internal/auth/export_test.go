package auth

// Waiting is how many look-ups wait for the next statement.
func (t *Tokens) Waiting() int { return t.lookups.Waiting() }
