package txn_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// A counter restored behind its invoices gives out a number that is taken: one more run, for a
// counter that was just mended, then the operator is called, and nothing is written.
func TestATakenNumberIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		constraint string
		damage     func(t *testing.T, h *house, series domain.SeriesID)
	}{
		"the sequence": {"invoices_sequence_key", func(t *testing.T, h *house, _ domain.SeriesID) {
			h.Exec(t, "UPDATE series_counters SET next_number = 1")
		}},
		"the printed number": {"invoices_number_key", func(t *testing.T, h *house, _ domain.SeriesID) {
			h.Exec(t, "UPDATE invoices SET sequence = 99")
			h.Exec(t, "UPDATE series_counters SET next_number = 1")
		}},
	} {
		for _, mended := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				db := h.db(t, txn.Settings{})
				series, customer := h.series(t, "A"), h.customer(t)
				_, err := txn.Run(t.Context(), db, h.allocation(t, series, customer))
				check(t, err)
				c.damage(t, h, series)

				write := h.allocation(t, series, customer)
				apply, runs := write.Apply, 0
				var met []string
				write.Apply = func(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
					if runs++; mended && runs == 2 {
						h.Exec(t, "UPDATE series_counters SET next_number = 2")
					}
					row, err := apply(ctx, tx)
					if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
						met = append(met, pgErr.ConstraintName)
					}
					return row, err
				}
				out, err := txn.Run(t.Context(), db, write)
				invoices := testdb.Scan[int](t, h.DB, "SELECT count(*) FROM invoices")
				next := testdb.Scan[int](t, h.DB, "SELECT next_number FROM series_counters")
				if mended {
					if err != nil || *out.Value.Number != "A2" || invoices != 2 || runs != 2 {
						t.Errorf("got %v after %d runs, %d invoices, want the number after the mended counter's", err, runs, invoices)
					}
					return
				}
				if code(err) != domain.CodeSeriesInconsistent || !slices.Equal(met, []string{c.constraint, c.constraint}) {
					t.Errorf("got %v after %v, want SERIES_INCONSISTENT after two runs into %s", err, met, c.constraint)
				}
				if invoices != 1 || next != 1 {
					t.Errorf("%d invoices, the next number is %d: something was written", invoices, next)
				}
			})
		}
	}
}

// An invoice for a customer that is not there says so, about the field that named it.
func TestAnUnknownCustomerIsNotFound(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	_, err := txn.Run(t.Context(), h.db(t, txn.Settings{}), h.allocation(t, h.series(t, "A"), domain.NewID[domain.CustomerID]()))
	mustRefer(t, err, domain.CodeNotFound, "customerId")
	if n := testdb.Scan[int](t, h.DB, "SELECT next_number FROM series_counters"); n != 1 {
		t.Errorf("the refused invoice took a number: the next is %d", n)
	}
}

// A second series of the same code, or of the same numbers, is told from any other clash.
func TestATakenCodeAndATakenPatternAreTold(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	h.series(t, "A")
	for field, c := range map[string]struct {
		want          domain.Code
		code, pattern string
	}{
		"code":   {domain.CodeCodeTaken, "A", "B"},
		"format": {domain.CodeInvalidFormat, "B", "A"},
	} {
		row := h.seriesRow(t, domain.NewID[domain.SeriesID](), c.code)
		row.NumberPattern = c.pattern
		_, err := txn.Run(t.Context(), db, txn.Write[*sqlc.InvoiceSeries]{
			OneStatement: true,
			Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.InvoiceSeries, error) {
				return tx.InsertSeries(ctx, row)
			},
		})
		mustRefer(t, err, c.want, field)
	}
}

// A constraint that the switch does not know is a defect of the server: the operator's log gets
// the database's own error, and nobody is told of a duplicate.
func TestAnUnknownConstraintIsNoDuplicate(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Exec(t, "ALTER TABLE customers ADD CONSTRAINT customers_name_key UNIQUE (tenant_id, name)")
	db := h.db(t, txn.Settings{})
	first := h.create(t, "Bakery")
	first.mustBeOwn(t, h, first.run(t.Context(), db, oneStatement), 1)
	for _, f := range forms {
		c := h.create(t, "Bakery")
		a := c.run(t.Context(), db, f)
		a.mustFail(t, domain.CodeInternal)
		if pgErr, ok := errors.AsType[*pgconn.PgError](a.err); !ok || pgErr.ConstraintName != "customers_name_key" {
			t.Errorf("got %v, want the raw error", a.err)
		}
		c.mustHaveTried(t, 1)
	}
	h.mustHave(t, 1)
}

// mustRefer checks for a refusal about a field of the input.
func mustRefer(t *testing.T, err error, want domain.Code, field string) {
	t.Helper()
	refusal, ok := errors.AsType[domain.UserError](err)
	if !ok || refusal.GetCode() != want || !slices.Equal(refusal.GetPath(), domain.Input(field)) {
		t.Errorf("got %v, want %s about %s", err, want, field)
	}
}
