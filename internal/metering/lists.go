package metering

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// KeysByID answers each id at its place, nil where there is none that the caller may know of.
func (s *Service) KeysByID(ctx context.Context, caller auth.Caller, ids []domain.APIKeyID) ([]*sqlc.APIKey, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.APIKey, error) {
		return q.GetAPIKeys(ctx, sqlc.GetAPIKeysParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(k *sqlc.APIKey) (domain.APIKeyID, bool) { return k.ID, caller.Sees(k.CustomerID) }), err
}

// SettlementsByID answers each id at its place, nil where there is none that the caller may know of.
func (s *Service) SettlementsByID(ctx context.Context, caller auth.Caller, ids []domain.SettlementID) ([]*sqlc.Settlement, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Settlement, error) {
		return q.GetSettlements(ctx, sqlc.GetSettlementsParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(r *sqlc.Settlement) (domain.SettlementID, bool) { return r.ID, caller.Sees(r.CustomerID) }), err
}

// APIKeyFilter narrows a list of keys; what is nil does not.
type APIKeyFilter struct {
	CustomerID *domain.CustomerID
}

// ListKeys returns a page of keys, in order of creation.
func (s *Service) ListKeys(ctx context.Context, caller auth.Caller, f APIKeyFilter, p paging.Request[domain.APIKeyID]) (paging.Page[*sqlc.APIKey], error) {
	customer, ok := caller.Narrow(f.CustomerID)
	if !ok {
		return paging.Page[*sqlc.APIKey]{}, nil
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.APIKey, error) {
		if (customer == domain.CustomerID{}) {
			arg := sqlc.ListAPIKeysParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
			if p.Backward {
				return q.ListAPIKeysBackward(ctx, sqlc.ListAPIKeysBackwardParams(arg))
			}
			return q.ListAPIKeys(ctx, arg)
		}
		return keysOf(ctx, q, caller, []domain.CustomerID{customer}, p)
	})
	return paging.Cut(p, rows), err
}

// KeysOf answers each customer's page of keys at its place, in order of creation.
func (s *Service) KeysOf(ctx context.Context, caller auth.Caller, customers []*sqlc.Customer, p paging.Request[domain.APIKeyID]) ([]paging.Page[*sqlc.APIKey], error) {
	ids := idsOf(customers)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.APIKey, error) {
		return keysOf(ctx, q, caller, ids, p)
	})
	return paging.CutEach(p, paging.Group(ids, rows, func(k *sqlc.APIKey) domain.CustomerID { return k.CustomerID })), err
}

func keysOf(ctx context.Context, q *sqlc.Queries, caller auth.Caller, customers []domain.CustomerID, p paging.Request[domain.APIKeyID]) ([]*sqlc.APIKey, error) {
	arg := sqlc.ListAPIKeysOfCustomersParams{TenantID: caller.TenantID, CustomerIds: customers, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	if p.Backward {
		return q.ListAPIKeysOfCustomersBackward(ctx, sqlc.ListAPIKeysOfCustomersBackwardParams(arg))
	}
	return q.ListAPIKeysOfCustomers(ctx, arg)
}

// SettlementFilter narrows a list of settlements; what is nil does not.
type SettlementFilter struct {
	CustomerID *domain.CustomerID
	APIKeyID   *domain.APIKeyID
}

// ListSettlements returns a page of settlements, in order of creation.
func (s *Service) ListSettlements(ctx context.Context, caller auth.Caller, f SettlementFilter, p paging.Request[domain.SettlementID]) (paging.Page[*sqlc.Settlement], error) {
	customer, ok := caller.Narrow(f.CustomerID)
	if !ok {
		return paging.Page[*sqlc.Settlement]{}, nil
	}
	anyone := customer == domain.CustomerID{}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Settlement, error) {
		switch {
		case f.APIKeyID != nil:
			arg := sqlc.ListSettlementsOfKeyParams{TenantID: caller.TenantID, APIKeyID: *f.APIKeyID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
			if p.Backward {
				return q.ListSettlementsOfKeyBackward(ctx, sqlc.ListSettlementsOfKeyBackwardParams(arg))
			}
			return q.ListSettlementsOfKey(ctx, arg)
		case anyone:
			arg := sqlc.ListSettlementsParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
			if p.Backward {
				return q.ListSettlementsBackward(ctx, sqlc.ListSettlementsBackwardParams(arg))
			}
			return q.ListSettlements(ctx, arg)
		}
		return settlementsOf(ctx, q, caller, []domain.CustomerID{customer}, p)
	})
	if len(rows) > 0 && !anyone && rows[0].CustomerID != customer { // a key's settlements are all of one customer
		return paging.Page[*sqlc.Settlement]{}, nil
	}
	return paging.Cut(p, rows), err
}

// SettlementsOf answers each customer's page of settlements at its place, in order of creation.
func (s *Service) SettlementsOf(ctx context.Context, caller auth.Caller, customers []*sqlc.Customer, p paging.Request[domain.SettlementID]) ([]paging.Page[*sqlc.Settlement], error) {
	ids := idsOf(customers)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Settlement, error) {
		return settlementsOf(ctx, q, caller, ids, p)
	})
	return paging.CutEach(p, paging.Group(ids, rows, func(r *sqlc.Settlement) domain.CustomerID { return r.CustomerID })), err
}

func settlementsOf(ctx context.Context, q *sqlc.Queries, caller auth.Caller, customers []domain.CustomerID, p paging.Request[domain.SettlementID]) ([]*sqlc.Settlement, error) {
	arg := sqlc.ListSettlementsOfCustomersParams{TenantID: caller.TenantID, CustomerIds: customers, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	if p.Backward {
		return q.ListSettlementsOfCustomersBackward(ctx, sqlc.ListSettlementsOfCustomersBackwardParams(arg))
	}
	return q.ListSettlementsOfCustomers(ctx, arg)
}

// SettlementsOfKeys answers each key's settlements at its place.
func (s *Service) SettlementsOfKeys(ctx context.Context, caller auth.Caller, keys []*sqlc.APIKey) ([][]*sqlc.Settlement, error) {
	ids := paging.IDs(keys, func(k *sqlc.APIKey) domain.APIKeyID { return k.ID })
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Settlement, error) {
		return q.ListSettlementsOfKeys(ctx, sqlc.ListSettlementsOfKeysParams{TenantID: caller.TenantID, APIKeyIds: ids})
	})
	return paging.Group(ids, rows, func(r *sqlc.Settlement) domain.APIKeyID { return r.APIKeyID }), err
}

// ReceiptsOf answers each settlement's receipt at its place.
func (s *Service) ReceiptsOf(ctx context.Context, caller auth.Caller, settlements []*sqlc.Settlement) ([][]*sqlc.SettlementAttempt, error) {
	ids := paging.IDs(settlements, func(o *sqlc.Settlement) domain.SettlementID { return o.ID })
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.SettlementAttempt, error) {
		return q.ListSettlementAttempts(ctx, sqlc.ListSettlementAttemptsParams{TenantID: caller.TenantID, SettlementIds: ids})
	})
	return paging.Group(ids, rows, func(r *sqlc.SettlementAttempt) domain.SettlementID { return r.SettlementID }), err
}

// ExemptionsOf answers each customer's exemption that stands at its place, nil where there is none.
func (s *Service) ExemptionsOf(ctx context.Context, caller auth.Caller, customers []*sqlc.Customer) ([]*sqlc.BillingExemption, error) {
	ids := idsOf(customers)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.BillingExemption, error) {
		return q.ListActiveExemptions(ctx, sqlc.ListActiveExemptionsParams{TenantID: caller.TenantID, CustomerIds: ids})
	})
	return paging.InOrder(ids, rows, func(e *sqlc.BillingExemption) (domain.CustomerID, bool) { return e.CustomerID, true }), err
}

func idsOf(customers []*sqlc.Customer) []domain.CustomerID {
	return paging.IDs(customers, func(c *sqlc.Customer) domain.CustomerID { return c.ID })
}
