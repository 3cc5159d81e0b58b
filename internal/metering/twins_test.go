package metering_test

import (
	"context"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/sqlc"
)

// Each move of an invoice is asked for twice at once under one key: neither has found the other when both come to
// the invoice's lock. One makes the move; the other, which finds the invoice moved, is answered with that as well,
// and not refused because of it.
func TestAMoveThatIsAskedForTwiceAtOnce(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	ctx, key, lines := context.Background(), "move", []domain.InvoiceLineInput{{Description: "Clock", Quantity: 1, UnitAmountMinor: 2900}}
	final := func(m *meter, t *testing.T) *sqlc.Invoice { return m.final(t) }
	draft := func(m *meter, t *testing.T) *sqlc.Invoice {
		out, err := invoicing.New(m.db).CreateDraft(ctx, m.caller, invoicing.CreateDraftInvoiceInput{CustomerID: m.customer, Currency: "EUR", Lines: lines})
		check(t, err)
		return out.Value
	}
	for name, c := range map[string]struct {
		of   func(m *meter, t *testing.T) *sqlc.Invoice
		move func(m *meter, i *sqlc.Invoice) (replayed bool, err error)
	}{
		"edited": {draft, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := invoicing.New(m.db).UpdateDraft(ctx, m.caller, invoicing.UpdateDraftInvoiceInput{InvoiceID: i.ID, Version: i.UpdatedAt, Lines: lines, IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"deleted": {draft, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := invoicing.New(m.db).DeleteDraft(ctx, m.caller, invoicing.DeleteDraftInvoiceInput{InvoiceID: i.ID, IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"finalised": {draft, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := invoicing.New(m.db).Finalize(ctx, m.caller, invoicing.FinalizeInvoiceInput{InvoiceID: i.ID, IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"credited": {final, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := invoicing.New(m.db).IssueCreditNote(ctx, m.caller, invoicing.IssueCreditNoteInput{InvoiceID: i.ID, Reason: "sent back", IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"paid": {final, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := m.Pay(ctx, m.caller, metering.RecordInvoicePaymentInput{InvoiceID: i.ID, AmountMinor: 10, Reference: "transfer", IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"paid in part": {final, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := m.Pay(ctx, m.caller, metering.RecordInvoicePaymentInput{InvoiceID: i.ID, AmountMinor: 4, Reference: "transfer", IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"voided": {final, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := m.Void(ctx, m.caller, metering.VoidInvoiceInput{InvoiceID: i.ID, Reason: "wrong", IdempotencyKey: &key})
			return out.Replayed, err
		}},
		"waived": {final, func(m *meter, i *sqlc.Invoice) (bool, error) {
			out, err := m.Waive(ctx, m.caller, metering.WaiveInvoiceInput{InvoiceID: i.ID, Version: i.UpdatedAt, Reason: "a gift", IdempotencyKey: &key})
			return out.Replayed, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := one.afresh(t)
			invoice := c.of(m, t)
			gate := m.Gate(t, "LockInvoice")
			go func() {
				gate.Await(t, 2)
				gate.Open()
			}()
			var replayed [2]bool
			var errs [2]error
			together(2, func(i int) { replayed[i], errs[i] = c.move(m, invoice) })
			m.Before("LockInvoice", nil)
			if errs != [2]error{} || replayed[0] == replayed[1] {
				t.Errorf("answered %v, replayed: %v", errs, replayed)
			}
			if n := m.count(t, "invoice_history WHERE invoice_id = $1", invoice.ID); n != 1 {
				t.Errorf("moved %d times", n)
			}
			m.sound(t)
		})
	}
}
