package txn_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// series makes a series whose counter stands on a day of issue far in the future, where it stays;
// its code is printed before its numbers.
func (h *house) series(t *testing.T, code string) domain.SeriesID {
	t.Helper()
	q := sqlc.New(h.Owner(t))
	id := domain.NewID[domain.SeriesID]()
	_, err := q.InsertSeries(t.Context(), h.seriesRow(t, id, code))
	check(t, err)
	h.moveCounter(t, id, code)
	return id
}

func (h *house) seriesRow(t *testing.T, id domain.SeriesID, code string) sqlc.InsertSeriesParams {
	t.Helper()
	op, err := domain.NewOperation(h.tenant, "a test", "createInvoiceSeries", "", nil, code)
	check(t, err)
	return sqlc.InsertSeriesParams{
		TenantID: h.tenant, ID: id, Code: code, Document: domain.DocumentInvoice, Format: domain.DefaultNumberFormat, NumberPattern: code,
		Place:       testdb.Scan[int32](t, h.DB, `SELECT count(*) + 1 FROM series_places WHERE tenant_id = $1`, h.tenant),
		PeriodStart: domain.UnusedPeriod, MaxNumber: 999, Reset: domain.ResetNever, TimeZone: "UTC", FiscalYearStart: 1,
		MaxLength: domain.MaxSeriesLength, AllowedCharacters: domain.CharactersPlain, Capacity: 1,
		OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By, CreatedAt: time.Now(),
	}
}

// moveCounter has a series print a prefix from now on.
func (h *house) moveCounter(t *testing.T, id domain.SeriesID, prefix string) {
	t.Helper()
	day := domain.NewDate(2100, 1, 1)
	_, err := sqlc.New(h.Owner(t)).MoveSeriesCounter(t.Context(), sqlc.MoveSeriesCounterParams{
		TenantID: h.tenant, SeriesID: id, PeriodStart: domain.UnusedPeriod, IssueDate: day, IssueDateEnds: day.End(time.UTC), NumberPrefix: prefix, NumberWidth: 1,
	})
	check(t, err)
}

// customer makes a customer outside the code under test.
func (h *house) customer(t *testing.T) domain.CustomerID {
	t.Helper()
	c := h.create(t, "Florist")
	_, err := c.apply(t.Context(), txn.Tx{Queries: sqlc.New(h.Owner(t)), Now: domain.VersionAt(time.Now())})
	check(t, err)
	return c.id
}

// token makes an access token, for what is updated under a guard.
func (h *house) token(t *testing.T) domain.TokenID {
	t.Helper()
	id := domain.NewID[domain.TokenID]()
	_, err := sqlc.New(h.Owner(t)).InsertAccessToken(t.Context(), h.tokenRow(id, nil))
	check(t, err)
	return id
}

func (h *house) tokenRow(id domain.TokenID, customer *domain.CustomerID) sqlc.InsertAccessTokenParams {
	row := sqlc.InsertAccessTokenParams{
		TenantID: h.tenant, ID: id, Name: "till", Role: domain.RoleService, CustomerID: customer, SecretHash: make([]byte, 32),
		OperationID: domain.OperationID(id), OperationFingerprint: domain.Fingerprint{}, CreatedBy: "a test",
		CreatedAt: time.Now(), UpdatedAt: domain.VersionAt(time.Now()),
	}
	if customer != nil {
		row.Role = domain.RoleCustomer
	}
	_, _ = rand.Read(row.SecretHash)
	return row
}

// revoke is a guarded update: ErrRefused if the token is revoked already.
func (h *house) revoke(ctx context.Context, tx txn.Tx, token domain.TokenID) error {
	_, err := tx.RevokeAccessToken(ctx, sqlc.RevokeAccessTokenParams{
		TenantID: h.tenant, ID: token, RevokedAt: &tx.Now.Time, UpdatedAt: tx.Now,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return txn.ErrRefused
	}
	return err
}

// allocation is a write of one invoice without lines.
func (h *house) allocation(t *testing.T, series domain.SeriesID, customer domain.CustomerID) txn.Write[*sqlc.Invoice] {
	t.Helper()
	op, err := domain.NewOperation(h.tenant, "a test", "allocateInvoice", "", nil, series)
	check(t, err)
	id := domain.NewID[domain.InvoiceID]()
	return txn.Write[*sqlc.Invoice]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
			rows, err := tx.AllocateInvoices(ctx, sqlc.AllocateInvoicesParams{
				TenantID: h.tenant, SeriesID: series, Now: tx.Now.Time,
				Ids: []domain.UUID{domain.UUID(id)}, CustomerIds: []domain.UUID{domain.UUID(customer)},
				Currencies: []string{"EUR"}, TotalsMinor: []int64{100},
				OperationIds: []domain.UUID{domain.UUID(op.ID)}, OperationFingerprints: [][]byte{op.Fingerprint}, CreatedBys: []string{op.By},
			})
			if err != nil {
				return nil, err
			}
			return &sqlc.Invoice{TenantID: h.tenant, ID: rows[0].ID, Sequence: rows[0].Sequence, Number: rows[0].Number}, nil
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.Invoice], error) {
			row, err := q.FindInvoiceOfOperation(ctx, sqlc.FindInvoiceOfOperationParams{TenantID: h.tenant, OperationID: op.ID})
			if err != nil {
				return txn.Found[*sqlc.Invoice]{}, err
			}
			return txn.Found[*sqlc.Invoice]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == id}, nil
		},
	}
}
