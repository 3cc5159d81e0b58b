package metering

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// invoiceMove is a step in an invoice's life.
type invoiceMove struct {
	to        domain.InvoiceStatus
	waivedBy  *string
	reason    *string // of a waive by hand, or of a void
	exemption *domain.ExemptionID
	reference *string // of a payment
	number    *invoicing.Number
	op        domain.Operation
	id        domain.UUID
}

// run makes the move by the guarded update and writes it down.
func (m invoiceMove) run(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (*sqlc.Invoice, error) {
	arg := sqlc.MoveInvoiceParams{
		TenantID: invoice.TenantID, ID: invoice.ID, ToStatus: m.to, WaivedBy: m.waivedBy, ExemptionID: m.exemption, PaymentReference: m.reference,
		AllowedStatuses: m.to.Sources(), ExpectedUpdatedAt: invoice.UpdatedAt, NextVersion: invoice.UpdatedAt.Next(tx.Now.Time),
	}
	if m.to == invoice.Status { // a waived invoice that is numbered at its month's close
		arg.AllowedStatuses, arg.WaivedBy, arg.WaiveReason, arg.ExemptionID = []domain.InvoiceStatus{m.to}, invoice.WaivedBy, invoice.WaiveReason, invoice.ExemptionID
	}
	switch m.to {
	case domain.InvoicePaid:
		arg.PaidAt = &tx.Now.Time
	case domain.InvoiceVoid:
		arg.VoidedAt, arg.VoidReason = &tx.Now.Time, m.reason
	case domain.InvoiceWaived:
		if arg.WaiveReason == nil {
			arg.WaiveReason = m.reason
		}
	}
	if n := m.number; n != nil {
		arg.SeriesID, arg.PeriodStart, arg.Sequence, arg.Number, arg.IssueDate = &n.SeriesID, &n.PeriodStart, &n.Sequence, &n.Printed, &n.IssueDate
	}
	moved, err := tx.MoveInvoice(ctx, arg)
	if isNoRows(err) {
		return nil, txn.ErrRefused
	}
	if err != nil {
		return nil, err
	}
	return moved, remember(ctx, tx, invoice, m.to, m.reason, m.op, m.id)
}

// moveName is what a move is called in the history.
func moveName(from, to domain.InvoiceStatus) string {
	switch {
	case to == domain.InvoicePaid:
		return "PAID"
	case to == domain.InvoiceVoid:
		return "VOIDED"
	case from == to, from == domain.InvoiceOpen && to == domain.InvoicePending:
		return "FINALISED"
	case to == domain.InvoiceWaived:
		return "WAIVED"
	}
	return "REINSTATED"
}

// remember writes a move down.
func remember(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, to domain.InvoiceStatus, detail *string, op domain.Operation, id domain.UUID) error {
	_, err := tx.InsertInvoiceHistory(ctx, sqlc.InsertInvoiceHistoryParams{
		TenantID: invoice.TenantID, ID: id, InvoiceID: invoice.ID, Event: moveName(invoice.Status, to), FromStatus: invoice.Status, ToStatus: to, Detail: detail,
		OperationID: op.ID, OperationFingerprint: op.Fingerprint, MovedBy: op.By, MovedAt: tx.Now.Time,
	})
	return err
}

// invoiceWish is a caller's wish to move an invoice.
type invoiceWish struct {
	tenant  domain.TenantID
	op      domain.Operation
	invoice domain.InvoiceID
	// decide says which move it is, or refuses it, on the invoice as it is held now.
	decide func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (invoiceMove, error)
	// first takes the locks that come before the invoice's; then does what belongs to the move.
	first func(ctx context.Context, tx txn.Tx) error
	then  func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) error
}

type invoiceOutcome = txn.Outcome[*sqlc.Invoice]

// grant fulfils a wish: the invoice is held while it is decided, since money depends on it.
func (s *Service) grant(ctx context.Context, w invoiceWish) (invoiceOutcome, error) {
	id := domain.NewID[domain.UUID]()
	return txn.Run(ctx, s.db, txn.Write[*sqlc.Invoice]{
		Operation: w.op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
			if w.first != nil {
				if err := w.first(ctx, tx); err != nil {
					return nil, err
				}
			}
			invoice, err := tx.LockInvoice(ctx, sqlc.LockInvoiceParams{TenantID: w.tenant, ID: w.invoice})
			if isNoRows(err) {
				return nil, noSuch("invoice", "invoiceId")
			}
			if err != nil {
				return nil, err
			}
			m, err := w.decide(ctx, tx, invoice)
			if err != nil {
				return nil, err
			}
			m.op, m.id = w.op, id
			if invoice, err = m.run(ctx, tx, invoice); err != nil || w.then == nil {
				return invoice, err
			}
			return invoice, w.then(ctx, tx, invoice)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Invoice], err error) {
			step, err := q.FindInvoiceMove(ctx, sqlc.FindInvoiceMoveParams{TenantID: w.tenant, OperationID: w.op.ID})
			if err != nil {
				return found, err
			}
			rows, err := q.GetInvoices(ctx, sqlc.GetInvoicesParams{TenantID: w.tenant, Ids: []domain.InvoiceID{step.InvoiceID}})
			if err != nil {
				return found, err
			}
			return txn.Found[*sqlc.Invoice]{Value: rows[0], Fingerprint: step.OperationFingerprint, Own: step.ID == id}, nil
		},
	})
}

// RecordInvoicePaymentInput says that an invoice was paid.
type RecordInvoicePaymentInput struct {
	InvoiceID      domain.InvoiceID `json:"invoiceId"`
	AmountMinor    domain.Cents     `json:"amountMinor"`
	Reference      string           `json:"reference"`
	IdempotencyKey *string          `json:"-"`
}

// Pay records a payment of exactly what is due. A month that still accrues is final with it, and
// numbered; its usage to come is billed apart.
func (s *Service) Pay(ctx context.Context, caller auth.Caller, in RecordInvoicePaymentInput) (invoiceOutcome, error) {
	if err := domain.CheckText(domain.Input("reference"), in.Reference, 255); err != nil {
		return invoiceOutcome{}, err
	}
	op, err := caller.Operation("recordInvoicePayment", "", in.IdempotencyKey, in)
	if err != nil {
		return invoiceOutcome{}, err
	}
	return s.grant(ctx, invoiceWish{tenant: caller.TenantID, op: op, invoice: in.InvoiceID,
		decide: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (invoiceMove, error) {
			return pay(ctx, tx, invoice, domain.Money{AmountMinor: in.AmountMinor, Currency: invoice.Currency}, in.Reference)
		}})
}

// pay decides on a payment of a held invoice; the number is the last thing it takes.
func pay(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, amount domain.Money, reference string) (invoiceMove, error) {
	m := invoiceMove{to: domain.InvoicePaid, reference: &reference}
	if err := invoice.Status.CheckMove(domain.InvoicePaid); err != nil {
		return m, err
	}
	if due := invoice.AmountDue(); amount != due {
		return m, domain.Refuse(domain.CodeAmountMismatch, domain.Input("amountMinor"), "%d minor units of %s are due", due.AmountMinor, due.Currency)
	}
	return m, m.finalise(ctx, tx, invoice)
}

// finalise numbers an invoice that has no number yet. Its total is rounded already: it always is.
func (m *invoiceMove) finalise(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) error {
	if invoice.Number != nil {
		return nil
	}
	n, err := invoicing.TakeDefaultNumber(ctx, tx, invoice.TenantID, domain.DocumentInvoice)
	m.number = &n
	return err
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
	return s.grant(ctx, invoiceWish{tenant: caller.TenantID, op: op, invoice: in.InvoiceID,
		decide: func(_ context.Context, _ txn.Tx, invoice *sqlc.Invoice) (invoiceMove, error) {
			if err := invoice.Status.CheckMove(domain.InvoiceWaived); err != nil {
				return invoiceMove{}, err
			}
			cause := domain.WaivedByHand
			return invoiceMove{to: domain.InvoiceWaived, waivedBy: &cause, reason: &in.Reason}, domain.CheckVersion(&in.Version, invoice.UpdatedAt)
		}})
}

// VoidInvoiceInput asks to take an invoice back.
type VoidInvoiceInput struct {
	InvoiceID      domain.InvoiceID `json:"invoiceId"`
	Version        *domain.Version  `json:"version"`
	Reason         string           `json:"reason"`
	IdempotencyKey *string          `json:"-"`
}

// Void takes an invoice back; its number stays. The settlements on it are placed again, in their
// next round: no usage is lost with it.
func (s *Service) Void(ctx context.Context, caller auth.Caller, in VoidInvoiceInput) (invoiceOutcome, error) {
	if err := domain.CheckText(domain.Input("reason"), in.Reason, 500); err != nil {
		return invoiceOutcome{}, err
	}
	op, err := caller.Operation("voidInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return invoiceOutcome{}, err
	}
	var held, back []*sqlc.Settlement
	out, err := s.grant(ctx, invoiceWish{tenant: caller.TenantID, op: op, invoice: in.InvoiceID,
		first: func(ctx context.Context, tx txn.Tx) (err error) { // settlements are locked before invoices
			held, err = lockSettlements(ctx, tx, caller.TenantID, in.InvoiceID)
			return err
		},
		decide: func(_ context.Context, _ txn.Tx, invoice *sqlc.Invoice) (invoiceMove, error) {
			if err := invoice.Status.CheckMove(domain.InvoiceVoid); err != nil {
				return invoiceMove{}, err
			}
			return invoiceMove{to: domain.InvoiceVoid, reason: &in.Reason}, domain.CheckVersion(in.Version, invoice.UpdatedAt)
		},
		then: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (err error) {
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
