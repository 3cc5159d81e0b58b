package auth

import (
	"context"
	"strings"
)

// Authenticator recognises whatever a request presents: an access token, or a JWT.
type Authenticator struct {
	Tokens *Tokens
	JWTs   *JWTs // nil: none are accepted
}

// Authenticate says who presents a token. One that is not good is answered UNAUTHENTICATED, in the
// same words whatever its kind and its fault.
func (a Authenticator) Authenticate(ctx context.Context, token string) (Caller, error) {
	if a.JWTs == nil || strings.HasPrefix(token, tokenPrefix) {
		return a.Tokens.Authenticate(ctx, token)
	}
	return a.JWTs.Authenticate(ctx, token)
}
