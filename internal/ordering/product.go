package ordering

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// CreateProductInput asks for a product.
type CreateProductInput struct {
	SKU            string              `json:"sku"`
	Name           string              `json:"name"`
	UnitPriceMinor domain.Cents        `json:"unitPriceMinor"`
	Currency       domain.CurrencyCode `json:"currency"`
	Stock          *int64              `json:"stock"` // nil: not counted
	IdempotencyKey *string             `json:"-"`
}

func (in CreateProductInput) check() error {
	if err := domain.CheckText(domain.Input("sku"), in.SKU, 100); err != nil {
		return err
	}
	if in.Stock != nil && *in.Stock < 0 {
		return domain.BadInputAt(domain.Input("stock"), "a stock is not negative")
	}
	return checkProduct(in.Name, in.UnitPriceMinor)
}

func checkProduct(name string, price domain.Cents) error {
	if err := domain.CheckText(domain.Input("name"), name, 200); err != nil {
		return err
	}
	if price < 0 {
		return domain.BadInputAt(domain.Input("unitPriceMinor"), "a price is not negative")
	}
	return nil
}

// CreateProduct makes a product, with its shelf if its stock is counted.
func (s *Service) CreateProduct(ctx context.Context, caller auth.Caller, in CreateProductInput) (out txn.Outcome[*sqlc.Product], err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	op, err := caller.Operation("createProduct", "", in.IdempotencyKey, in)
	if err != nil {
		return out, err
	}
	id, stock := domain.NewID[domain.ProductID](), int64(0)
	if in.Stock != nil {
		stock = *in.Stock
	}
	return run(ctx, s.db, txn.Write[*sqlc.Product]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Product, error) {
			return tx.InsertProduct(ctx, sqlc.InsertProductParams{
				TenantID: caller.TenantID, ID: id, SKU: in.SKU, Name: in.Name, UnitPriceMinor: in.UnitPriceMinor, Currency: in.Currency,
				TracksStock: in.Stock != nil, Stock: stock, OperationID: op.ID, OperationFingerprint: op.Fingerprint,
				CreatedBy: op.By, CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
			})
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.Product], error) {
			row, err := q.FindProductOfOperation(ctx, sqlc.FindProductOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return txn.Found[*sqlc.Product]{}, err
			}
			return txn.Found[*sqlc.Product]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == id}, nil
		},
	})
}

// UpdateProductInput changes what is not nil.
type UpdateProductInput struct {
	ProductID      domain.ProductID `json:"productId"`
	Version        domain.Version   `json:"version"`
	Name           *string          `json:"name"`
	UnitPriceMinor *domain.Cents    `json:"unitPriceMinor"`
	Active         *bool            `json:"active"`
	IdempotencyKey *string          `json:"-"`
}

// UpdateProduct changes a product. Orders that were placed keep the price they were placed at.
func (s *Service) UpdateProduct(ctx context.Context, caller auth.Caller, in UpdateProductInput) (out txn.Outcome[*sqlc.Product], err error) {
	op, err := caller.Operation("updateProduct", "", in.IdempotencyKey, in)
	if err != nil {
		return out, err
	}
	id := domain.NewID[domain.UUID]()
	return run(ctx, s.db, txn.Write[*sqlc.Product]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Product, error) {
			now, err := product(ctx, tx.Queries, caller.TenantID, in.ProductID)
			if err != nil {
				return nil, err
			}
			if err := domain.CheckVersion(&in.Version, now.UpdatedAt); err != nil {
				return nil, err
			}
			arg := sqlc.ChangeProductParams{
				TenantID: now.TenantID, ID: now.ID, Name: now.Name, UnitPriceMinor: now.UnitPriceMinor, Active: now.Active,
				ExpectedUpdatedAt: now.UpdatedAt, NextVersion: now.UpdatedAt.Next(tx.Now.Time),
			}
			set(&arg.Name, in.Name)
			set(&arg.UnitPriceMinor, in.UnitPriceMinor)
			set(&arg.Active, in.Active)
			if err := checkProduct(arg.Name, arg.UnitPriceMinor); err != nil {
				return nil, err
			}
			row, err := tx.ChangeProduct(ctx, arg)
			if isNoRows(err) {
				return nil, txn.ErrRefused
			}
			if err != nil {
				return nil, err
			}
			_, err = tx.InsertProductChange(ctx, sqlc.InsertProductChangeParams{
				TenantID: row.TenantID, ID: id, ProductID: row.ID, Name: row.Name, UnitPriceMinor: row.UnitPriceMinor, Active: row.Active,
				OperationID: op.ID, OperationFingerprint: op.Fingerprint, ChangedBy: op.By, ChangedAt: tx.Now.Time,
			})
			return row, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Product], err error) {
			change, err := q.FindProductChange(ctx, sqlc.FindProductChangeParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			row, err := product(ctx, q, caller.TenantID, change.ProductID)
			return txn.Found[*sqlc.Product]{Value: row, Fingerprint: change.OperationFingerprint, Own: change.ID == id}, err
		},
	})
}

// set changes a field where a value was given.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func product(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, id domain.ProductID) (*sqlc.Product, error) {
	rows, err := q.GetProducts(ctx, sqlc.GetProductsParams{TenantID: tenant, Ids: []domain.ProductID{id}})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, domain.Refuse(domain.CodeNotFound, domain.Input("productId"), "no such product")
	}
	return rows[0], nil
}

// ProductsByID answers each id at its place, nil where there is none that the caller may know of: a
// customer sees the active ones.
func (s *Service) ProductsByID(ctx context.Context, caller auth.Caller, ids []domain.ProductID) ([]*sqlc.Product, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Product, error) {
		return q.GetProducts(ctx, sqlc.GetProductsParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(p *sqlc.Product) (domain.ProductID, bool) {
		return p.ID, p.Active || caller.Role != domain.RoleCustomer
	}), err
}

// ProductFilter narrows a list of products; what is nil does not.
type ProductFilter struct {
	OnlyActive *bool
}

// ListProducts returns a page of products, in order of creation; to a customer, the active ones.
func (s *Service) ListProducts(ctx context.Context, caller auth.Caller, f ProductFilter, p paging.Request[domain.ProductID]) (paging.Page[*sqlc.Product], error) {
	onlyActive := f.OnlyActive != nil && *f.OnlyActive || caller.Role == domain.RoleCustomer
	arg := sqlc.ListProductsParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Product, error) {
		switch {
		case onlyActive && p.Backward:
			return q.ListActiveProductsBackward(ctx, sqlc.ListActiveProductsBackwardParams(arg))
		case onlyActive:
			return q.ListActiveProducts(ctx, sqlc.ListActiveProductsParams(arg))
		case p.Backward:
			return q.ListProductsBackward(ctx, sqlc.ListProductsBackwardParams(arg))
		}
		return q.ListProducts(ctx, arg)
	})
	return paging.Cut(p, rows), err
}

// StockOf answers each product's stock at its place, nil where it is not counted.
func (s *Service) StockOf(ctx context.Context, caller auth.Caller, products []*sqlc.Product) ([]*int64, error) {
	ids := paging.IDs(products, func(p *sqlc.Product) domain.ProductID { return p.ID })
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.ProductStock, error) {
		return q.GetStock(ctx, sqlc.GetStockParams{TenantID: caller.TenantID, ProductIds: ids})
	})
	out := make([]*int64, len(products))
	for i, row := range paging.InOrder(ids, rows, func(r *sqlc.ProductStock) (domain.ProductID, bool) { return r.ProductID, true }) {
		if row != nil {
			out[i] = &row.Available
		}
	}
	return out, err
}
