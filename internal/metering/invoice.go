package metering

import (
	"bytes"
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
	"countersign/sqlc"
)

type invoiceOutcome = txn.Outcome[*sqlc.Invoice]

// RecordInvoicePaymentInput says that an invoice was paid.
type RecordInvoicePaymentInput struct {
	InvoiceID      domain.InvoiceID `json:"invoiceId"`
	AmountMinor    domain.Cents     `json:"amountMinor"`
	Reference      string           `json:"reference"`
	IdempotencyKey *string          `json:"-"`
}

// Pay records a payment of what is due, or of a part of it. A month that still accrues is paid whole:
// it is final with it, and numbered; its usage to come is billed apart.
func (s *Service) Pay(ctx context.Context, caller auth.Caller, in RecordInvoicePaymentInput) (invoiceOutcome, error) {
	if err := domain.CheckText(domain.Input("reference"), in.Reference, 255); err != nil {
		return invoiceOutcome{}, err
	}
	op, err := caller.Operation("recordInvoicePayment", "", in.IdempotencyKey, in)
	if err != nil {
		return invoiceOutcome{}, err
	}
	return invoicing.Grant(ctx, s.db, invoicing.Wish{Tenant: caller.TenantID, Op: op, Invoice: in.InvoiceID,
		Decide: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error) {
			amount := domain.Money{AmountMinor: in.AmountMinor, Currency: invoice.Currency}
			return invoicing.DecidePayment(ctx, tx, invoice, invoicing.Payment{Amount: amount, Reference: in.Reference}, false)
		}})
}

// WaiveInvoiceInput asks to ask for nothing.
type WaiveInvoiceInput struct {
	InvoiceID      domain.InvoiceID `json:"invoiceId"`
	Version        domain.Version   `json:"version"`
	Reason         string           `json:"reason"`
	IdempotencyKey *string          `json:"-"`
}

// Waive waives an invoice by hand: no exemption has to do with it, so nothing takes it back.
func (s *Service) Waive(ctx context.Context, caller auth.Caller, in WaiveInvoiceInput) (invoiceOutcome, error) {
	if err := domain.CheckText(domain.Input("reason"), in.Reason, 500); err != nil {
		return invoiceOutcome{}, err
	}
	op, err := caller.Operation("waiveInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return invoiceOutcome{}, err
	}
	return invoicing.Grant(ctx, s.db, invoicing.Wish{Tenant: caller.TenantID, Op: op, Invoice: in.InvoiceID,
		Decide: func(_ context.Context, _ txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error) {
			if err := invoice.Status.CheckMove(domain.InvoiceWaived); err != nil {
				return invoicing.Move{}, err
			}
			cause := domain.WaivedByHand
			return invoicing.Move{To: domain.InvoiceWaived, WaivedBy: &cause, Reason: &in.Reason}, domain.CheckVersion(&in.Version, invoice.UpdatedAt)
		}})
}

// VoidInvoiceInput asks to take an invoice back.
type VoidInvoiceInput struct {
	InvoiceID      domain.InvoiceID  `json:"invoiceId"`
	Version        *domain.Version   `json:"version"`
	Reason         string            `json:"reason"`
	ReplacedBy     *domain.InvoiceID `json:"replacedBy,omitempty"`
	IdempotencyKey *string           `json:"-"`
}

// Void takes an invoice back; its number stays. The settlements on it are placed again, in their
// next round: no usage is lost with it. What is paid or credited, wholly or in part, is not voided.
func (s *Service) Void(ctx context.Context, caller auth.Caller, in VoidInvoiceInput) (invoiceOutcome, error) {
	if err := domain.CheckText(domain.Input("reason"), in.Reason, 500); err != nil {
		return invoiceOutcome{}, err
	}
	op, err := caller.Operation("voidInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return invoiceOutcome{}, err
	}
	var held, back []*sqlc.Settlement
	out, err := invoicing.Grant(ctx, s.db, invoicing.Wish{Tenant: caller.TenantID, Op: op, Invoice: in.InvoiceID,
		First: func(ctx context.Context, tx txn.Tx) (err error) { // settlements are locked before invoices
			if held, err = lockSettlements(ctx, tx, caller.TenantID, in.InvoiceID); err != nil || in.ReplacedBy == nil {
				return err
			}
			return in.lockBoth(ctx, tx, caller.TenantID)
		},
		Decide: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error) {
			if err := checkVoid(invoice); err != nil {
				return invoicing.Move{}, err
			}
			if err := domain.CheckVersion(in.Version, invoice.UpdatedAt); err != nil {
				return invoicing.Move{}, err
			}
			m := invoicing.Move{To: domain.InvoiceVoid, Reason: &in.Reason, ReplacedBy: in.ReplacedBy}
			return m, in.checkReplacement(ctx, tx, invoice)
		},
		Then: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (err error) {
			back, err = unplace(ctx, tx, invoice, held, in.Reason)
			return err
		}})
	if err != nil || out.Replayed {
		return out, err
	}
	for _, settlement := range back {
		s.placeOrLeave(context.WithoutCancel(ctx), settlement.TenantID, settlement.ID)
	}
	return out, nil
}

// checkVoid refuses to void what money has been given for, or taken back from.
func checkVoid(invoice *sqlc.Invoice) error {
	if err := invoice.Status.CheckMove(domain.InvoiceVoid); err != nil {
		return err
	}
	if invoice.PaidMinor != 0 || invoice.CreditedMinor != 0 {
		return &domain.IllegalInvoiceTransitionError{
			Refusal: *domain.Refuse(domain.CodeIllegalTransition, domain.Input("invoiceId"), "an invoice that is paid or credited in part is not voided: credit it"),
			From:    invoice.Status, To: domain.InvoiceVoid,
		}
	}
	return nil
}

// lockBoth locks the invoice and its replacement in the order of their ids: two that are to replace
// each other are voided one after the other, and the second finds its replacement void.
func (in VoidInvoiceInput) lockBoth(ctx context.Context, tx txn.Tx, tenant domain.TenantID) error {
	first, field := in.InvoiceID, "invoiceId"
	if bytes.Compare(in.ReplacedBy[:], first[:]) < 0 {
		first, field = *in.ReplacedBy, "replacedBy"
	}
	_, err := invoicing.LockInvoice(ctx, tx, tenant, first, field)
	return err
}

// checkReplacement refuses what cannot stand for an invoice: it is another one of its customer's, and
// it is final. What is void stays so, so that replacements never run in a circle.
func (in VoidInvoiceInput) checkReplacement(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) error {
	if in.ReplacedBy == nil {
		return nil
	}
	if *in.ReplacedBy == invoice.ID {
		return domain.BadInputAt(domain.Input("replacedBy"), "an invoice does not replace itself")
	}
	replacement, err := invoicing.LockInvoice(ctx, tx, invoice.TenantID, *in.ReplacedBy, "replacedBy")
	if err != nil {
		return err
	}
	if replacement.CustomerID != invoice.CustomerID {
		return domain.Refuse(domain.CodeNotFound, domain.Input("replacedBy"), "no such invoice of this customer")
	}
	switch replacement.Status {
	case domain.InvoicePending, domain.InvoicePaid, domain.InvoiceWaived:
		return nil
	}
	return domain.Refuse(domain.CodeIllegalTransition, domain.Input("replacedBy"), "an invoice that is %s replaces none", replacement.Status)
}

// lockSettlements locks the settlements on an invoice, in the order of their ids.
func lockSettlements(ctx context.Context, tx txn.Tx, tenant domain.TenantID, invoice domain.InvoiceID) ([]*sqlc.Settlement, error) {
	rows, err := tx.ListSettlementsOfInvoice(ctx, sqlc.ListSettlementsOfInvoiceParams{TenantID: tenant, InvoiceID: &invoice})
	for i := range rows {
		if err == nil {
			rows[i], err = tx.LockSettlement(ctx, sqlc.LockSettlementParams{TenantID: tenant, ID: rows[i].ID})
		}
	}
	return rows, err
}

// unplace gives back the settlements on an invoice that has just been voided. If another has been
// placed on it since they were locked, everything is read again.
func unplace(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, held []*sqlc.Settlement, reason string) (back []*sqlc.Settlement, err error) {
	rows, err := tx.ListSettlementsOfInvoice(ctx, sqlc.ListSettlementsOfInvoiceParams{TenantID: invoice.TenantID, InvoiceID: &invoice.ID})
	if err != nil {
		return nil, err
	}
	if len(rows) != len(held) {
		return nil, txn.ErrRefused
	}
	for i, row := range held {
		if rows[i].ID != row.ID {
			return nil, txn.ErrRefused
		}
		_, err := tx.InsertSettlementAttempt(ctx, sqlc.InsertSettlementAttemptParams{
			TenantID: row.TenantID, SettlementID: row.ID, Round: row.Round, Way: "VOID", Saw: "invoice " + invoice.ID.String() + " voided: " + reason,
			Result: "PENDING", AttemptedAt: tx.Now.Time,
		})
		if err != nil {
			return nil, err
		}
		one, err := tx.UnplaceSettlement(ctx, sqlc.UnplaceSettlementParams{
			TenantID: row.TenantID, ID: row.ID, ExpectedUpdatedAt: row.UpdatedAt, NextVersion: row.UpdatedAt.Next(tx.Now.Time),
		})
		if isNoRows(err) {
			return nil, txn.ErrRefused
		}
		if err != nil {
			return nil, err
		}
		back = append(back, one)
	}
	return back, nil
}
