package graph

// CheckDocument is what the limiter says of a document, and how many tokens it read and nodes it
// visited to say so.
func CheckDocument(text string, l Limits) (tokens, visited int, err error) {
	did, fault := limiter{Limits: l}.check(text)
	if fault != nil {
		return did.tokens, did.visited, fault
	}
	return did.tokens, did.visited, nil
}
