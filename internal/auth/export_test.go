package auth

// The form of a token.
var (
	NewTokenOf  = newToken
	ParseToken  = parseToken
	Encoding    = encoding
	TokenPrefix = tokenPrefix
)
