package metering_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Proves invoice_payments_reference_key: a transfer that is recorded under two keys counts once. Without the
// index it counts twice, and nobody could tell it from two transfers.
func TestWithoutTheIndexATransferCountsTwice(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	for _, indexed := range []bool{true, false} {
		if !indexed {
			m.Exec(t, "ALTER TABLE invoice_payments DROP CONSTRAINT invoice_payments_reference_key")
		}
		invoice := m.final(t)
		_, err := m.part(invoice, 4, "transfer 17", nil)
		check(t, err)
		if _, err = m.part(invoice, 4, "transfer 17", nil); indexed {
			wantRefusal(t, err, "REFERENCE_TAKEN input.reference")
		} else {
			check(t, err)
		}
		if n, want := m.count(t, "invoice_payments WHERE invoice_id = $1", invoice.ID), map[bool]int{true: 1, false: 2}[indexed]; n != want {
			t.Errorf("with the index %t: %d payments, want %d", indexed, n, want)
		}
	}
}

// Proves invoice_payments_provider_reference_key: a provider tells of one payment for two invoices at once, and both
// transactions have looked for it before either writes. It pays one of them, and is flagged on the other. Without the
// index it pays both.
func TestAPaymentThatPaysTwoInvoicesAtOnce(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, indexed := range []bool{true, false} {
		m := one.afresh(t)
		if !indexed {
			m.Exec(t, "DROP INDEX invoice_payments_provider_reference_key")
		}
		invoices := []domain.InvoiceID{m.final(t).ID, m.final(t).ID}
		gate := m.Gate(t, "InsertInvoicePayment")
		go func() {
			gate.Await(t, 2)
			gate.Open()
		}()
		var results [2]string
		together(2, func(i int) {
			f := domain.Fact{Kind: domain.FactPaid, PaymentID: "pay_1", Amount: domain.Money{AmountMinor: 10, Currency: "EUR"}}
			op, err := domain.NewOperation(m.caller.TenantID, "simulated", "recordPayment", fmt.Sprint(i), nil, f)
			if err != nil {
				t.Error(err)
			}
			out, err := txn.Run(context.Background(), m.db, txn.Write[string]{
				Operation: op,
				Apply: func(ctx context.Context, tx txn.Tx) (string, error) {
					return metering.ApplyFact(ctx, tx, m.caller.TenantID, invoices[i], f, op)
				},
				Find: func(context.Context, *sqlc.Queries) (found txn.Found[string], err error) { return found, errNothing },
			})
			if err != nil {
				t.Errorf("telling of invoice %d: %v", i, err)
			}
			results[i], _, _ = strings.Cut(out.Value, ":")
		})
		m.Before("InsertInvoicePayment", nil)
		want := [2]string{"FLAGGED", "PAID"}
		if !indexed {
			want[0] = "PAID"
		}
		if slices.Sort(results[:]); results != want {
			t.Errorf("with the index %t: %q", indexed, results)
		}
	}
}
