package invoicing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Move is a step in an invoice's life. What it does not name stays as it is.
type Move struct {
	To         domain.InvoiceStatus
	WaivedBy   *string
	Exemption  *domain.ExemptionID
	Reason     *string // of a waive by hand, a void or a credit
	ReplacedBy *domain.InvoiceID
	Payment    *Payment
	Credit     *Credit
	Number     *Numbering
	Born       bool // the invoice is made by this very transaction: its history begins behind the move
	Op         domain.Operation
	ID         domain.UUID // of the step, and of the payment
}

// Payment is money for an invoice. What a provider has told pays one invoice alone.
type Payment struct {
	Amount    domain.Money
	Reference string
	Provider  *string
}

// Credit is what a credit note takes back, and what of it is to be given back.
type Credit struct{ Amount, RefundDue domain.Cents }

// Run makes the move by the guarded update and writes it down: before it, where the update takes a
// number, so that nothing comes after that but COMMIT.
func (m Move) Run(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (*sqlc.Invoice, error) {
	arg := sqlc.MoveInvoiceParams{
		TenantID: invoice.TenantID, ID: invoice.ID, ToStatus: m.To, WaivedBy: m.WaivedBy, ExemptionID: m.Exemption, ReplacedBy: m.ReplacedBy,
		PaidMinor: invoice.PaidMinor, CreditedMinor: invoice.CreditedMinor, RefundDueMinor: invoice.RefundDueMinor,
		AllowedStatuses: m.To.Sources(), ExpectedUpdatedAt: invoice.UpdatedAt, NextVersion: invoice.UpdatedAt.Next(tx.Now.Time),
	}
	if m.Born {
		arg.NextVersion = invoice.UpdatedAt
	}
	switch {
	case m.To == invoice.Status: // numbered while it is waived, paid in part, or credited
		arg.AllowedStatuses = []domain.InvoiceStatus{m.To}
		arg.WaivedBy, arg.WaiveReason, arg.ExemptionID = invoice.WaivedBy, invoice.WaiveReason, invoice.ExemptionID
		arg.PaidAt, arg.PaymentReference = invoice.PaidAt, invoice.PaymentReference
	case m.To == domain.InvoicePaid:
		arg.PaidAt = &tx.Now.Time
	case m.To == domain.InvoiceVoid:
		arg.VoidedAt, arg.VoidReason = &tx.Now.Time, m.Reason
	case m.To == domain.InvoiceWaived:
		arg.WaiveReason = m.Reason
	}
	if p := m.Payment; p != nil {
		arg.PaidMinor += p.Amount.AmountMinor // at most what is due
		if m.To == domain.InvoicePaid {
			arg.PaymentReference = &p.Reference
		}
		if err := m.pay(ctx, tx, invoice); err != nil {
			return nil, err
		}
	}
	if c := m.Credit; c != nil {
		arg.CreditedMinor += c.Amount // at most what is left
		arg.RefundDueMinor += c.RefundDue
	}
	if n := m.Number; n != nil {
		if !m.Born {
			if err := Remember(ctx, tx, invoice, m); err != nil {
				return nil, err
			}
		}
		series := domain.UUID(n.series.ID)
		arg.NumberBy, arg.Now = &series, tx.Now.Time
		return n.take(ctx, tx, func(issueDate *domain.Date) (*sqlc.Invoice, error) {
			arg.IssueDate = issueDate
			return tx.MoveInvoice(ctx, arg)
		})
	}
	moved, err := tx.MoveInvoice(ctx, arg)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, txn.ErrRefused
	}
	if err != nil {
		return nil, err
	}
	return moved, Remember(ctx, tx, invoice, m)
}

// pay writes the payment down.
func (m Move) pay(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) error {
	_, err := tx.InsertInvoicePayment(ctx, sqlc.InsertInvoicePaymentParams{
		TenantID: invoice.TenantID, ID: m.ID, InvoiceID: invoice.ID, AmountMinor: m.Payment.Amount.AmountMinor, Currency: m.Payment.Amount.Currency,
		Provider: m.Payment.Provider, Reference: m.Payment.Reference,
		OperationID: m.Op.ID, OperationFingerprint: m.Op.Fingerprint, RecordedBy: m.Op.By, RecordedAt: tx.Now.Time,
	})
	return err
}

// event is what the move is called in the history of an invoice that stood at from.
func (m Move) event(from domain.InvoiceStatus) string {
	switch {
	case m.Credit != nil:
		return "CREDITED"
	case m.To == domain.InvoicePaid:
		return "PAID"
	case m.Payment != nil:
		return "PART_PAID"
	case m.To == domain.InvoiceVoid:
		return "VOIDED"
	case m.To == domain.InvoiceDeleted:
		return "DELETED"
	case m.To == domain.InvoiceDraft:
		return "EDITED"
	case m.To == from, m.To == domain.InvoicePending && from != domain.InvoiceWaived:
		return "FINALISED"
	case m.To == domain.InvoiceWaived:
		return "WAIVED"
	}
	return "REINSTATED"
}

// Remember writes a move down in the history.
func Remember(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, m Move) error {
	_, err := tx.InsertInvoiceHistory(ctx, sqlc.InsertInvoiceHistoryParams{
		TenantID: invoice.TenantID, ID: m.ID, InvoiceID: invoice.ID, Event: m.event(invoice.Status), FromStatus: invoice.Status, ToStatus: m.To, Detail: m.Reason,
		OperationID: m.Op.ID, OperationFingerprint: m.Op.Fingerprint, MovedBy: m.Op.By, MovedAt: tx.Now.Time,
	})
	return err
}

// Finalise has the move number an invoice that has no number yet, by the tenant's default series. Its
// total is rounded already: it always is.
func (m *Move) Finalise(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (err error) {
	if invoice.Number != nil {
		return nil
	}
	if m.Number, err = NumberBy(ctx, tx.Queries, invoice.TenantID, domain.DocumentInvoice, nil, nil); err != nil {
		return err
	}
	return m.Number.check(ctx, tx)
}

// DecidePayment decides on a payment of a held invoice. A month that still accrues takes exactly what
// is due, and is numbered with it; a final invoice is paid in parts, unless the payment has to be
// whole.
func DecidePayment(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, p Payment, whole bool) (Move, error) {
	m := Move{To: domain.InvoicePaid, Payment: &p}
	if err := invoice.Status.CheckMove(domain.InvoicePaid); err != nil {
		return m, err
	}
	due := invoice.AmountDue()
	if err := domain.CheckPayment(p.Amount, due, whole || invoice.Status == domain.InvoiceOpen); err != nil {
		return m, err
	}
	if p.Amount != due {
		m.To = invoice.Status
	}
	return m, m.Finalise(ctx, tx, invoice)
}

// Wish is a caller's wish to move an invoice.
type Wish struct {
	Tenant  domain.TenantID
	Op      domain.Operation
	Invoice domain.InvoiceID
	// Decide says which move it is, or refuses it, on the invoice as it is held now; ErrMoved says that
	// it stands where it was wished to.
	Decide func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (Move, error)
	// First takes the locks that come before the invoice's; Make makes the move, where that is more
	// than Move.Run; Then does what belongs to it.
	First func(ctx context.Context, tx txn.Tx) error
	Make  func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, m Move) (*sqlc.Invoice, error)
	Then  func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) error
}

// ErrMoved is what Decide says of an invoice that an earlier request has moved: it is answered as it
// is, whatever the key.
var ErrMoved = errors.New("moved by an earlier request")

// granted is an invoice, and whether an earlier request had moved it.
type granted struct {
	invoice *sqlc.Invoice
	earlier bool
}

// Grant fulfils a wish: the invoice is held while it is decided, since money depends on it.
func Grant(ctx context.Context, db *txn.DB, w Wish) (txn.Outcome[*sqlc.Invoice], error) {
	id := domain.NewID[domain.UUID]()
	out, err := txn.Run(ctx, db, txn.Write[granted]{
		Operation: w.Op,
		Apply: func(ctx context.Context, tx txn.Tx) (g granted, err error) {
			if w.First != nil {
				if err := w.First(ctx, tx); err != nil {
					return g, err
				}
			}
			invoice, err := LockInvoice(ctx, tx, w.Tenant, w.Invoice, "invoiceId")
			if err != nil {
				return g, err
			}
			m, err := w.Decide(ctx, tx, invoice)
			if errors.Is(err, ErrMoved) {
				return granted{invoice, true}, nil
			}
			if err != nil {
				return g, err
			}
			m.Op, m.ID = w.Op, id
			if w.Make != nil {
				g.invoice, err = w.Make(ctx, tx, invoice, m)
			} else {
				g.invoice, err = m.Run(ctx, tx, invoice)
			}
			if err != nil || w.Then == nil {
				return g, err
			}
			return g, w.Then(ctx, tx, g.invoice)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[granted], err error) {
			step, err := q.FindInvoiceMove(ctx, sqlc.FindInvoiceMoveParams{TenantID: w.Tenant, OperationID: w.Op.ID})
			if err != nil {
				return found, err
			}
			rows, err := q.GetInvoices(ctx, sqlc.GetInvoicesParams{TenantID: w.Tenant, Ids: []domain.InvoiceID{step.InvoiceID}})
			if err != nil {
				return found, err
			}
			return txn.Found[granted]{Value: granted{invoice: rows[0]}, Fingerprint: step.OperationFingerprint, Own: step.ID == id}, nil
		},
	})
	return txn.Outcome[*sqlc.Invoice]{
		Value: out.Value.invoice, Replayed: out.Replayed || out.Value.earlier, Key: out.Key, KeyMade: out.KeyMade,
	}, err
}

// LockInvoice holds an invoice, or is NOT_FOUND about a field of the input.
func LockInvoice(ctx context.Context, tx txn.Tx, tenant domain.TenantID, id domain.InvoiceID, field string) (*sqlc.Invoice, error) {
	invoice, err := tx.LockInvoice(ctx, sqlc.LockInvoiceParams{TenantID: tenant, ID: id})
	return invoice, notFound(err, "invoice", field)
}
