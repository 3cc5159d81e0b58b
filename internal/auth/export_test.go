package auth

// Waiting is how many look-ups wait for the next statement.
func (t *Tokens) Waiting() int { return t.lookups.Waiting() }

// The form of a token.
var (
	NewTokenOf  = newToken
	ParseToken  = parseToken
	Encoding    = encoding
	TokenPrefix = tokenPrefix
)
