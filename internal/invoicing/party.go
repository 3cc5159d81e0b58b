package invoicing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Party is the seller or the buyer of an invoice, in one of its revisions.
type Party struct {
	Name     string
	Email    *string
	Address  *domain.Address
	TaxIDs   []domain.TaxID
	Revision int32
}

// party is what an input says of one.
type party struct {
	name    string
	email   *string
	address *domain.Address
	taxIDs  []domain.TaxID
}

func (p party) check() error {
	if err := domain.CheckText(domain.Input("name"), p.name, 200); err != nil {
		return err
	}
	if p.email != nil {
		if err := domain.CheckEmail(domain.Input("email"), *p.email); err != nil {
			return err
		}
	}
	if p.address != nil {
		if err := p.address.Check(domain.Input("address")); err != nil {
			return err
		}
	}
	return domain.CheckTaxIDs(domain.Input("taxIds"), p.taxIDs)
}

// change is a party with what an input changes: what is nil stays, and an empty e-mail address takes
// the one that was there away.
func (p party) change(name, email *string, address *domain.Address, taxIDs []domain.TaxID) party {
	if name != nil {
		p.name = *name
	}
	if email != nil {
		if p.email = email; *email == "" {
			p.email = nil
		}
	}
	if address != nil {
		p.address = address
	}
	if taxIDs != nil {
		p.taxIDs = taxIDs
	}
	return p
}

// UpdateCustomerInput asks to change a customer; what is nil stays.
type UpdateCustomerInput struct {
	CustomerID     domain.CustomerID `json:"customerId"`
	Version        domain.Version    `json:"version"`
	Name           *string           `json:"name"`
	Email          *string           `json:"email"`
	Address        *domain.Address   `json:"address"`
	TaxIDs         []domain.TaxID    `json:"taxIds"`
	IdempotencyKey *string           `json:"-"`
}

// UpdateCustomer changes a customer by a new revision: invoices that have a number keep the one they
// were numbered with.
func (s *Service) UpdateCustomer(ctx context.Context, caller auth.Caller, in UpdateCustomerInput) (txn.Outcome[*sqlc.Customer], error) {
	op, err := caller.Operation("updateCustomer", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Customer]{}, err
	}
	id := domain.NewID[domain.UUID]()
	return txn.Run(ctx, s.db, txn.Write[*sqlc.Customer]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Customer, error) {
			now, err := customerOf(ctx, tx.Queries, caller.TenantID, in.CustomerID)
			if err != nil {
				return nil, err
			}
			if err := domain.CheckVersion(&in.Version, now.UpdatedAt); err != nil {
				return nil, err
			}
			p := party{now.Name, now.Email, now.Address, now.TaxIDs}.change(in.Name, in.Email, in.Address, in.TaxIDs)
			if err := p.check(); err != nil {
				return nil, err
			}
			row, err := tx.ChangeCustomer(ctx, sqlc.ChangeCustomerParams{
				TenantID: now.TenantID, ID: now.ID, Name: p.name, Email: p.email, Address: p.address, TaxIDs: p.taxIDs, Revision: now.Revision + 1,
				ExpectedUpdatedAt: now.UpdatedAt, NextVersion: now.UpdatedAt.Next(tx.Now.Time),
			})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil, txn.ErrRefused
			}
			if err != nil {
				return nil, err
			}
			_, err = tx.InsertCustomerRevision(ctx, sqlc.InsertCustomerRevisionParams{
				TenantID: row.TenantID, CustomerID: row.ID, Revision: row.Revision, ID: id, Name: row.Name, Email: row.Email, Address: row.Address, TaxIDs: row.TaxIDs,
				OperationID: op.ID, OperationFingerprint: op.Fingerprint, MadeBy: op.By, MadeAt: tx.Now.Time,
			})
			return row, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Customer], err error) {
			made, err := q.FindCustomerRevision(ctx, sqlc.FindCustomerRevisionParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			row, err := customerOf(ctx, q, caller.TenantID, made.CustomerID)
			return txn.Found[*sqlc.Customer]{Value: row, Fingerprint: made.OperationFingerprint, Own: made.ID == id}, err
		},
	})
}

func customerOf(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, id domain.CustomerID) (*sqlc.Customer, error) {
	rows, err := q.GetCustomers(ctx, sqlc.GetCustomersParams{TenantID: tenant, Ids: []domain.CustomerID{id}})
	if err == nil && len(rows) == 0 {
		err = domain.Refuse(domain.CodeNotFound, domain.Input("customerId"), "no such customer")
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// UpdateSellerInput asks to change what the tenant is on its invoices; what is nil stays.
type UpdateSellerInput struct {
	Version        domain.Version  `json:"version"`
	Name           *string         `json:"name"`
	Email          *string         `json:"email"`
	Address        *domain.Address `json:"address"`
	TaxIDs         []domain.TaxID  `json:"taxIds"`
	IdempotencyKey *string         `json:"-"`
}

// Seller is the tenant as its next invoice shows it.
func (s *Service) Seller(ctx context.Context, caller auth.Caller) (*sqlc.Seller, error) {
	return txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*sqlc.Seller, error) {
		return q.GetSeller(ctx, sqlc.GetSellerParams{TenantID: caller.TenantID})
	})
}

// UpdateSeller changes the seller by a new revision, as UpdateCustomer does a buyer.
func (s *Service) UpdateSeller(ctx context.Context, caller auth.Caller, in UpdateSellerInput) (txn.Outcome[*sqlc.Seller], error) {
	op, err := caller.Operation("updateSeller", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Seller]{}, err
	}
	id := domain.NewID[domain.UUID]()
	return txn.Run(ctx, s.db, txn.Write[*sqlc.Seller]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Seller, error) {
			now, err := tx.GetSeller(ctx, sqlc.GetSellerParams{TenantID: caller.TenantID})
			if err != nil {
				return nil, err
			}
			if err := domain.CheckVersion(&in.Version, now.UpdatedAt); err != nil {
				return nil, err
			}
			p := party{now.Name, now.Email, now.Address, now.TaxIDs}.change(in.Name, in.Email, in.Address, in.TaxIDs)
			if err := p.check(); err != nil {
				return nil, err
			}
			row, err := tx.ChangeSeller(ctx, sqlc.ChangeSellerParams{
				TenantID: now.TenantID, Name: p.name, Email: p.email, Address: p.address, TaxIDs: p.taxIDs, Revision: now.Revision + 1,
				ExpectedUpdatedAt: now.UpdatedAt, NextVersion: now.UpdatedAt.Next(tx.Now.Time),
			})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil, txn.ErrRefused
			}
			if err != nil {
				return nil, err
			}
			_, err = tx.InsertSellerRevision(ctx, sqlc.InsertSellerRevisionParams{
				TenantID: row.TenantID, Revision: row.Revision, ID: id, Name: row.Name, Email: row.Email, Address: row.Address, TaxIDs: row.TaxIDs,
				OperationID: op.ID, OperationFingerprint: op.Fingerprint, MadeBy: op.By, MadeAt: tx.Now.Time,
			})
			return row, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Seller], err error) {
			made, err := q.FindSellerRevision(ctx, sqlc.FindSellerRevisionParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			row, err := q.GetSeller(ctx, sqlc.GetSellerParams{TenantID: caller.TenantID})
			return txn.Found[*sqlc.Seller]{Value: row, Fingerprint: made.OperationFingerprint, Own: made.ID == id}, err
		},
	})
}

// SellersOf answers each invoice's seller at its place: frozen with its number, else that of now.
func (s *Service) SellersOf(ctx context.Context, caller auth.Caller, invoices []*sqlc.Invoice) ([]*Party, error) {
	ids := idsOf(invoices)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.ListSellersOfInvoicesRow, error) {
		return q.ListSellersOfInvoices(ctx, sqlc.ListSellersOfInvoicesParams{TenantID: caller.TenantID, InvoiceIds: ids})
	})
	parties := make([]*Party, len(ids))
	for i, row := range paging.InOrder(ids, rows, func(r *sqlc.ListSellersOfInvoicesRow) (domain.InvoiceID, bool) { return r.InvoiceID, true }) {
		if row != nil {
			parties[i] = &Party{row.Name, row.Email, row.Address, row.TaxIDs, row.Revision}
		}
	}
	return parties, err
}

// BuyersOf answers each invoice's buyer at its place, likewise.
func (s *Service) BuyersOf(ctx context.Context, caller auth.Caller, invoices []*sqlc.Invoice) ([]*Party, error) {
	ids := idsOf(invoices)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.ListBuyersOfInvoicesRow, error) {
		return q.ListBuyersOfInvoices(ctx, sqlc.ListBuyersOfInvoicesParams{TenantID: caller.TenantID, InvoiceIds: ids})
	})
	parties := make([]*Party, len(ids))
	for i, row := range paging.InOrder(ids, rows, func(r *sqlc.ListBuyersOfInvoicesRow) (domain.InvoiceID, bool) { return r.InvoiceID, true }) {
		if row != nil {
			parties[i] = &Party{row.Name, row.Email, row.Address, row.TaxIDs, row.Revision}
		}
	}
	return parties, err
}

func idsOf(invoices []*sqlc.Invoice) []domain.InvoiceID {
	return paging.IDs(invoices, func(i *sqlc.Invoice) domain.InvoiceID { return i.ID })
}
