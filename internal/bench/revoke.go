package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// revocations are what revoking a customer's keys at once came to.
type revocations struct {
	PerSecond float64 `json:"perSecond"`
	Mean      float64 `json:"meanAttempts"` // to place a settlement
	Worst     int     `json:"worstAttempts"`
}

// revoke makes rounds of so many keys of one customer, with usage, and revokes each round's at once:
// all of them fold into one invoice.
func (s *server) revoke(ctx context.Context, rounds, keys int) (r revocations, err error) {
	var took time.Duration
	var attempts, placed int
	for round := range rounds {
		ids, err := s.meteredKeys(ctx, round, keys)
		if err != nil {
			return r, err
		}
		var (
			mu    sync.Mutex
			group sync.WaitGroup
			fault error
		)
		start := time.Now()
		for _, id := range ids {
			group.Go(func() {
				n, err := s.revokeKey(ctx, id)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					fault = err
				}
				attempts, placed, r.Worst = attempts+n, placed+1, max(r.Worst, n)
			})
		}
		group.Wait()
		took += time.Since(start)
		if fault != nil {
			return r, fault
		}
	}
	r.PerSecond, r.Mean = float64(placed)/took.Seconds(), float64(attempts)/float64(placed)
	return r, nil
}

// meteredKeys makes keys of a customer of their own, each with a unit of usage.
func (s *server) meteredKeys(ctx context.Context, round, n int) ([]string, error) {
	answer, err := s.ask(ctx, `mutation ($input: CreateCustomerInput!) { createCustomer(input: $input) { customer { id } } }`,
		map[string]any{"name": fmt.Sprintf("Round %d", round), "currency": "EUR"}, "cus_")
	if err != nil {
		return nil, err
	}
	var made struct {
		Data struct {
			CreateCustomer struct{ Customer struct{ ID string } }
			CreateApiKey   struct{ ApiKey struct{ ID string } }
		}
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return nil, err
	}
	ids := make([]string, n)
	events := make([]any, n)
	for i := range ids {
		answer, err := s.ask(ctx, `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id } } }`,
			map[string]any{"customerId": made.Data.CreateCustomer.Customer.ID, "name": "bench", "unitPrice": "150"}, "key_")
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(answer, &made); err != nil {
			return nil, err
		}
		ids[i] = made.Data.CreateApiKey.ApiKey.ID
		events[i] = map[string]any{"id": fmt.Sprintf("%d %d", round, i), "apiKeyId": ids[i], "quantity": "1", "occurredAt": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}
	}
	_, err = s.ask(ctx, `mutation ($input: RecordUsageInput!) { recordUsage(input: $input) { accepted } }`, map[string]any{"events": events}, fmt.Sprintf(`"accepted":%d`, n))
	return ids, err
}

func (s *server) revokeKey(ctx context.Context, id string) (attempts int, err error) {
	answer, err := s.ask(ctx, `mutation ($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { settlement { outcome attempts } } }`,
		map[string]any{"apiKeyId": id}, `"outcome":"FOLDED"`)
	var made struct {
		Data struct {
			RevokeApiKey struct{ Settlement struct{ Attempts int } }
		}
	}
	if err == nil {
		err = json.Unmarshal(answer, &made)
	}
	return made.Data.RevokeApiKey.Settlement.Attempts, err
}
