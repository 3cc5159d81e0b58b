package invoicing

// Waiting is how many allocations wait for a statement to share.
func (s *Service) Waiting() int { return s.joined.group.Waiting() }
