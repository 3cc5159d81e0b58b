package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// CreateCustomerInput asks for a customer of the tenant.
type CreateCustomerInput struct {
	Name           string              `json:"name"`
	Email          *string             `json:"email"`
	Currency       domain.CurrencyCode `json:"currency"`
	TimeZone       *string             `json:"timeZone"`
	Address        *domain.Address     `json:"address,omitempty"`
	TaxIDs         []domain.TaxID      `json:"taxIds,omitempty"`
	IdempotencyKey *string             `json:"-"`
}

func (in CreateCustomerInput) check() error {
	if err := (party{in.Name, in.Email, in.Address, in.TaxIDs}).check(); err != nil {
		return err
	}
	if in.TimeZone != nil {
		return checkTimeZone(*in.TimeZone)
	}
	return nil
}

// CreateCustomer makes a customer.
func (s *Service) CreateCustomer(ctx context.Context, caller auth.Caller, in CreateCustomerInput) (txn.Outcome[*sqlc.Customer], error) {
	if err := in.check(); err != nil {
		return txn.Outcome[*sqlc.Customer]{}, err
	}
	op, err := caller.Operation("createCustomer", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Customer]{}, err
	}
	zone := "UTC"
	if in.TimeZone != nil {
		zone = *in.TimeZone
	}
	id := domain.NewID[domain.CustomerID]()
	return txn.Run(ctx, s.db, txn.Write[*sqlc.Customer]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Customer, error) {
			return tx.InsertCustomer(ctx, sqlc.InsertCustomerParams{
				TenantID: caller.TenantID, ID: id, Name: in.Name, Email: in.Email, Currency: in.Currency, TimeZone: zone,
				Address: in.Address, TaxIDs: in.TaxIDs,
				OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By,
				CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
			})
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.Customer], error) {
			found, err := q.FindCustomerOfOperation(ctx, sqlc.FindCustomerOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return txn.Found[*sqlc.Customer]{}, err
			}
			return txn.Found[*sqlc.Customer]{Value: found, Fingerprint: found.OperationFingerprint, Own: found.ID == id}, nil
		},
	})
}

// ListCustomers returns a page of the tenant's customers, in order of creation.
func (s *Service) ListCustomers(ctx context.Context, caller auth.Caller, p paging.Request[domain.CustomerID]) (paging.Page[*sqlc.Customer], error) {
	arg := sqlc.ListCustomersParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error) {
		if p.Backward {
			return q.ListCustomersBackward(ctx, sqlc.ListCustomersBackwardParams(arg))
		}
		return q.ListCustomers(ctx, arg)
	})
	return paging.Cut(p, rows), err
}
