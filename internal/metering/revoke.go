package metering

import (
	"context"
	"errors"
	"log/slog"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// RevokeAPIKeyInput asks to end a key.
type RevokeAPIKeyInput struct {
	APIKeyID       domain.APIKeyID `json:"apiKeyId"`
	Reason         *string         `json:"reason"`
	IdempotencyKey *string         `json:"-"`
}

// Revoked is a revoked key with what became of its usage.
type Revoked struct {
	Key         *sqlc.APIKey
	Settlement  *sqlc.Settlement   // of the month of the revocation
	Settlements []*sqlc.Settlement // of every month
}

// Revoke ends a key and settles what it has used. First the revocation is announced, so that the
// stream of usage keeps off the key; then the key is locked, revoked, and its usage settled; then
// each settlement is placed. A crash in between loses nothing: a job finishes what it finds.
// Revoking again answers with the same settlements.
func (s *Service) Revoke(ctx context.Context, caller auth.Caller, in RevokeAPIKeyInput) (txn.Outcome[Revoked], error) {
	if in.Reason != nil {
		if err := domain.CheckText(domain.Input("reason"), *in.Reason, 500); err != nil {
			return txn.Outcome[Revoked]{}, err
		}
	}
	op, err := caller.Operation("revokeApiKey", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[Revoked]{}, err
	}
	announced, err := s.announce(ctx, caller, in, op)
	if err != nil {
		return txn.Outcome[Revoked]{}, err
	}
	ctx = context.WithoutCancel(ctx) // announced is begun, whether or not the client stays
	out := txn.Outcome[Revoked]{
		Replayed: announced.Replayed || announced.Value.OperationID != op.ID, Key: announced.Key, KeyMade: announced.KeyMade,
	}
	if err := s.finishRevocation(ctx, caller.TenantID, in.APIKeyID); err != nil {
		return out, begun(op, err)
	}
	out.Value, err = s.revoked(ctx, caller.TenantID, in.APIKeyID)
	return out, err
}

// begun is the answer to an announced revocation that could not be finished now. A job finishes it,
// so nobody may be told that nothing was changed.
func begun(op domain.Operation, err error) error {
	var refusal *domain.Refusal
	if errors.As(err, &refusal) && (refusal.Code == domain.CodeBusy || refusal.Code == domain.CodeUnavailable) {
		return op.OutcomeUnknown(err)
	}
	return err
}

// announce commits that the key is about to be revoked. Who is second finds the first's.
func (s *Service) announce(ctx context.Context, caller auth.Caller, in RevokeAPIKeyInput, op domain.Operation) (txn.Outcome[*sqlc.APIKeyRevocation], error) {
	get := func(ctx context.Context, q *sqlc.Queries) (*sqlc.APIKeyRevocation, error) {
		return q.GetRevocation(ctx, sqlc.GetRevocationParams{TenantID: caller.TenantID, APIKeyID: in.APIKeyID})
	}
	return txn.Run(ctx, s.db, txn.Write[*sqlc.APIKeyRevocation]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.APIKeyRevocation, error) {
			keys, err := tx.GetAPIKeys(ctx, sqlc.GetAPIKeysParams{TenantID: caller.TenantID, Ids: []domain.APIKeyID{in.APIKeyID}})
			if err != nil {
				return nil, err
			}
			if len(keys) == 0 || !caller.Sees(keys[0].CustomerID) {
				return nil, noSuch("key", "apiKeyId")
			}
			row, err := get(ctx, tx.Queries)
			if err == nil || !isNoRows(err) {
				return row, err
			}
			return tx.AnnounceRevocation(ctx, sqlc.AnnounceRevocationParams{
				TenantID: caller.TenantID, APIKeyID: in.APIKeyID, Reason: in.Reason, OperationID: op.ID, OperationFingerprint: op.Fingerprint,
				AnnouncedBy: op.By, AnnouncedAt: tx.Now.Time,
			})
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.APIKeyRevocation], err error) {
			row, err := q.FindRevocationOfOperation(ctx, sqlc.FindRevocationOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if isNoRows(err) && !op.KeyGiven { // somebody else announced it under an operation of theirs
				if row, err = get(ctx, q); err == nil {
					return txn.Found[*sqlc.APIKeyRevocation]{Value: row, Fingerprint: op.Fingerprint}, nil
				}
			}
			if err != nil {
				return found, err
			}
			return txn.Found[*sqlc.APIKeyRevocation]{Value: row, Fingerprint: row.OperationFingerprint, Own: !op.KeyGiven}, nil
		},
	})
}

// finishRevocation does what is left to do for an announced revocation; a second one finds it done.
func (s *Service) finishRevocation(ctx context.Context, tenant domain.TenantID, id domain.APIKeyID) error {
	if _, err := s.settleKey(ctx, tenant, id); err != nil {
		return err
	}
	all, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Settlement, error) {
		return q.ListSettlementsOfKeys(ctx, sqlc.ListSettlementsOfKeysParams{TenantID: tenant, APIKeyIds: []domain.APIKeyID{id}})
	})
	for _, one := range all {
		if one.Outcome == domain.SettlementPending {
			s.placeOrLeave(ctx, tenant, one.ID)
		}
	}
	return err
}

// settleKey locks the key, revokes it, and in a later statement settles what it has used.
func (s *Service) settleKey(ctx context.Context, tenant domain.TenantID, id domain.APIKeyID) (*sqlc.APIKey, error) {
	out, err := txn.Run(ctx, s.db, txn.Write[*sqlc.APIKey]{
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.APIKey, error) {
			keys, err := tx.GetAPIKeys(ctx, sqlc.GetAPIKeysParams{TenantID: tenant, Ids: []domain.APIKeyID{id}})
			if err != nil {
				return nil, err
			}
			if keys[0].Status == domain.APIKeyRevoked {
				return keys[0], nil
			}
			month, err := pinNow(ctx, tx, tenant, keys[0].CustomerID) // periods come before keys
			if err != nil {
				return nil, err
			}
			key, err := tx.LockAPIKey(ctx, sqlc.LockAPIKeyParams{TenantID: tenant, ID: id})
			if err != nil || key.Status == domain.APIKeyRevoked {
				return key, err
			}
			if key, err = tx.RevokeAPIKey(ctx, sqlc.RevokeAPIKeyParams{
				TenantID: tenant, ID: id, RevokedAt: &tx.Now.Time, NextVersion: key.UpdatedAt.Next(tx.Now.Time),
			}); err != nil {
				return nil, err
			}
			if err := settleUsage(ctx, tx, key, &month); err != nil {
				return nil, err
			}
			_, err = tx.FinishRevocation(ctx, sqlc.FinishRevocationParams{TenantID: tenant, APIKeyID: id, SettledAt: &tx.Now.Time})
			return key, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.APIKey], err error) {
			keys, err := q.GetAPIKeys(ctx, sqlc.GetAPIKeysParams{TenantID: tenant, Ids: []domain.APIKeyID{id}})
			if err != nil {
				return found, err
			}
			if keys[0].Status != domain.APIKeyRevoked {
				return found, errNotYet
			}
			return txn.Found[*sqlc.APIKey]{Value: keys[0], Own: true}, nil
		},
	})
	return out.Value, err
}

// pinNow pins the customer's month of now.
func pinNow(ctx context.Context, tx txn.Tx, tenant domain.TenantID, id domain.CustomerID) (domain.Month, error) {
	c, err := customer(ctx, tx.Queries, auth.Caller{TenantID: tenant, Role: domain.RoleAdmin}, id)
	if err != nil {
		return domain.Month{}, err
	}
	zone, err := domain.ParseTimeZone(c.TimeZone)
	if err != nil {
		return domain.Month{}, err
	}
	month := domain.MonthOf(tx.Now.Time, zone)
	return month, pin(ctx, tx.Queries, c, month)
}

// settleUsage makes a settlement for each month in which a held key has usage that nothing has
// settled, and marks that usage; and one for the month of always, even if there is none.
func settleUsage(ctx context.Context, tx txn.Tx, key *sqlc.APIKey, always *domain.Month) error {
	sums, err := tx.SumUnsettledUsage(ctx, sqlc.SumUnsettledUsageParams{TenantID: key.TenantID, APIKeyID: key.ID})
	if err != nil {
		return err
	}
	settled := false
	for _, sum := range sums {
		settled = settled || always != nil && sum.Month.Equal(always.Time)
		if _, err := settleMonth(ctx, tx, key, sum); err != nil {
			return err
		}
	}
	if always == nil || settled {
		return nil
	}
	_, err = settleMonth(ctx, tx, key, &sqlc.SumUnsettledUsageRow{Month: *always})
	return err
}

// settleMonth makes a settlement of a held key's month, and marks the usage that it is the sum of.
func settleMonth(ctx context.Context, tx txn.Tx, key *sqlc.APIKey, sum *sqlc.SumUnsettledUsageRow) (id domain.SettlementID, err error) {
	quantity, err := sum.Quantity.Int64()
	if err != nil {
		return id, domain.Refuse(domain.CodeAmountOverflow, nil, "the usage of a month is past what 64 bits hold").Because(err)
	}
	amount, err := key.UnitPrice.Times(quantity)
	if err != nil {
		return id, err
	}
	id = domain.NewID[domain.SettlementID]()
	arg := sqlc.InsertSettlementParams{
		TenantID: key.TenantID, ID: id, CustomerID: key.CustomerID, APIKeyID: key.ID, Month: sum.Month,
		Quantity: quantity, UnitPrice: key.UnitPrice, Amount: amount, Outcome: domain.SettlementPending, CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
	}
	if quantity == 0 {
		arg.Outcome, arg.SettledAt = domain.SettlementNothing, &tx.Now.Time
	}
	if _, err := tx.InsertSettlement(ctx, arg); err != nil || quantity == 0 {
		return id, err
	}
	marked, err := tx.SettleUsage(ctx, sqlc.SettleUsageParams{TenantID: key.TenantID, APIKeyID: key.ID, Month: sum.Month, SettlementID: &id})
	if err == nil && marked != sum.Events {
		err = errors.New("the usage that was marked is not the usage that was summed")
	}
	return id, err
}

// revoked reads what a revocation has come to.
func (s *Service) revoked(ctx context.Context, tenant domain.TenantID, id domain.APIKeyID) (Revoked, error) {
	return txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (r Revoked, err error) {
		keys, err := q.GetAPIKeys(ctx, sqlc.GetAPIKeysParams{TenantID: tenant, Ids: []domain.APIKeyID{id}})
		if err != nil {
			return r, err
		}
		r.Key = keys[0]
		r.Settlements, err = q.ListSettlementsOfKeys(ctx, sqlc.ListSettlementsOfKeysParams{TenantID: tenant, APIKeyIds: []domain.APIKeyID{id}})
		if err != nil || r.Key.RevokedAt == nil {
			return r, err
		}
		people, err := q.GetCustomers(ctx, sqlc.GetCustomersParams{TenantID: tenant, Ids: []domain.CustomerID{r.Key.CustomerID}})
		if err != nil {
			return r, err
		}
		zone, err := domain.ParseTimeZone(people[0].TimeZone)
		if err != nil {
			return r, err
		}
		of := domain.MonthOf(*r.Key.RevokedAt, zone)
		for _, one := range r.Settlements { // the last of that month: what was settled earlier was at a close
			if one.Month.Equal(of.Time) {
				r.Settlement = one
			}
		}
		return r, nil
	})
}

// placeOrLeave places a settlement; what cannot be done now is done by the job.
func (s *Service) placeOrLeave(ctx context.Context, tenant domain.TenantID, id domain.SettlementID) {
	placed, err := s.place(ctx, tenant, id)
	if err != nil {
		s.db.Logger.WarnContext(ctx, "a settlement is placed later", slog.String("settlement", id.String()), slog.Any("error", err))
		return
	}
	s.lookOrLeave(ctx, tenant, placed.CustomerID)
}

// lookOrLeave looks at a customer's invoices; what cannot be done now is done by the sweep.
func (s *Service) lookOrLeave(ctx context.Context, tenant domain.TenantID, customer domain.CustomerID) {
	if err := s.look(ctx, tenant, customer); err != nil {
		s.db.Logger.WarnContext(ctx, "a customer's invoices are looked at later", slog.String("customer", customer.String()), slog.Any("error", err))
	}
}
