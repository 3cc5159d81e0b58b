package invoicing

import (
	"context"
	"errors"
	"regexp"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

var tenantHandle = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// CreateTenant makes a tenant that sells under its name, with its default series: INV for invoices,
// CN for credit notes. If the handle is taken it returns the tenant that has it, and created is false.
func (s *Service) CreateTenant(ctx context.Context, handle, name string) (tenant *sqlc.OpsTenant, created bool, err error) {
	if !tenantHandle.MatchString(handle) {
		return nil, false, domain.BadInput("a tenant's handle is 1 to 40 lower-case letters, digits or -, and starts with a letter or digit")
	}
	if err := domain.CheckText([]string{"name"}, name, 200); err != nil {
		return nil, false, err
	}
	id := domain.NewID[domain.TenantID]()
	series, err := birthSeries(id)
	if err != nil {
		return nil, false, err
	}
	seller, err := domain.NewOperation(id, "system", "createTenant", "seller", nil, name)
	if err != nil {
		return nil, false, err
	}
	out, err := txn.Run(ctx, s.db, txn.Write[*sqlc.OpsTenant]{
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.OpsTenant, error) {
			row, err := tx.EveryTenantInsert(ctx, sqlc.EveryTenantInsertParams{ID: id, Handle: handle, Name: name, CreatedAt: tx.Now.Time})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil, txn.ErrRefused // somebody has the handle: Find reads who
			}
			if err != nil {
				return nil, err
			}
			if err := bearSeller(ctx, tx, seller, row); err != nil {
				return nil, err
			}
			for _, one := range series {
				if _, err := insertSeries(ctx, tx, one); err != nil {
					return nil, err
				}
			}
			return row, nil
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.OpsTenant], error) {
			row, err := q.EveryTenantByHandle(ctx, sqlc.EveryTenantByHandleParams{Handle: handle})
			return txn.Found[*sqlc.OpsTenant]{Value: row, Own: err == nil && row.ID == id}, err
		},
	})
	return out.Value, !out.Replayed, err
}

// bearSeller makes the seller that a tenant is born as.
func bearSeller(ctx context.Context, tx txn.Tx, op domain.Operation, tenant *sqlc.OpsTenant) error {
	if _, err := tx.InsertSeller(ctx, sqlc.InsertSellerParams{TenantID: tenant.ID, Name: tenant.Name, UpdatedAt: tx.Now}); err != nil {
		return err
	}
	_, err := tx.InsertSellerRevision(ctx, sqlc.InsertSellerRevisionParams{
		TenantID: tenant.ID, Revision: 1, ID: domain.UUID(tenant.ID), Name: tenant.Name,
		OperationID: op.ID, OperationFingerprint: op.Fingerprint, MadeBy: op.By, MadeAt: tx.Now.Time,
	})
	return err
}

// birthSeries are the two series every tenant is born with.
func birthSeries(tenant domain.TenantID) (series []sqlc.InsertSeriesParams, err error) {
	for _, birth := range []struct {
		code     string
		document domain.SeriesDocument
	}{{"INV", domain.DocumentInvoice}, {"CN", domain.DocumentCreditNote}} {
		in := CreateInvoiceSeriesInput{Code: birth.code}
		op, err := domain.NewOperation(tenant, "system", "createTenant", birth.code, nil, in)
		if err != nil {
			return nil, err
		}
		row, err := newSeries(tenant, op, in)
		if err != nil {
			return nil, err
		}
		row.Document = birth.document
		series = append(series, row)
	}
	return series, nil
}

// TenantByHandle finds a tenant: NOT_FOUND if there is none.
func (s *Service) TenantByHandle(ctx context.Context, handle string) (*sqlc.OpsTenant, error) {
	row, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*sqlc.OpsTenant, error) {
		return q.EveryTenantByHandle(ctx, sqlc.EveryTenantByHandleParams{Handle: handle})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, domain.Refuse(domain.CodeNotFound, nil, "no tenant has the handle %s", handle).Because(err)
	}
	return row, err
}
