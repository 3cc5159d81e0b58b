package invoicing

import (
	"context"
	"errors"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// AllocateInvoiceInput asks for an invoice with the next number of a series.
type AllocateInvoiceInput struct {
	SeriesID       domain.SeriesID           `json:"seriesId"`
	CustomerID     domain.CustomerID         `json:"customerId"`
	Currency       domain.CurrencyCode       `json:"currency"`
	Lines          []domain.InvoiceLineInput `json:"lines"`
	IssueDate      *domain.Date              `json:"issueDate"`
	IdempotencyKey *string                   `json:"-"`
}

// errMoveCounter says that the counter is not where the allocation needs it: on another day, of
// another kind of document, at its end, or nowhere.
var errMoveCounter = errors.New("the counter is to be moved first")

// Allocate gives an invoice the next number of its series. It is one statement and one round trip
// while the counter stands on the day of issue; the first invoice of a day moves the counter
// first, in one transaction with its own number. Allocations that arrive while one of their series
// is in flight share the next statement, unless joining is switched off.
func (s *Service) Allocate(ctx context.Context, caller auth.Caller, in AllocateInvoiceInput) (txn.Outcome[*sqlc.Invoice], error) {
	a, err := newAllocation(caller, in)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	if s.joined != nil {
		return s.joined.allocate(ctx, a)
	}
	out, err := txn.Run(ctx, s.db, a.write())
	if counterAway(err) {
		out, err = txn.Run(ctx, s.db, a.moving())
	}
	return out, err
}

// counterAway says that an allocation found its counter elsewhere. After an unknown outcome that is
// no answer: the number may be taken.
func counterAway(err error) bool {
	unknown := (*domain.OutcomeUnknownError)(nil)
	return errors.Is(err, errMoveCounter) && !errors.As(err, &unknown)
}

// allocation is one allocation at work: what was asked, checked, under the ids it keeps on every
// run.
type allocation struct {
	caller  auth.Caller
	in      AllocateInvoiceInput
	op      domain.Operation
	id      domain.InvoiceID
	amounts domain.InvoiceAmounts
}

func newAllocation(caller auth.Caller, in AllocateInvoiceInput) (a *allocation, err error) {
	a = &allocation{caller: caller, in: in, id: domain.NewID[domain.InvoiceID]()}
	if a.amounts, err = domain.TotalOfLines(in.Lines); err != nil {
		return a, err
	}
	a.op, err = caller.Operation("allocateInvoice", "", in.IdempotencyKey, in)
	return a, err
}

// write is the allocation while the counter stands right: one statement.
func (a *allocation) write() txn.Write[*sqlc.Invoice] {
	return txn.Write[*sqlc.Invoice]{Operation: a.op, Apply: a.take, Find: a.find, OneStatement: true}
}

// moving is the allocation that moves the counter first: a transaction of several statements.
func (a *allocation) moving() txn.Write[*sqlc.Invoice] {
	return txn.Write[*sqlc.Invoice]{Operation: a.op, Apply: a.moveAndTake, Find: a.find}
}

// take takes the number, if the counter stands right.
func (a *allocation) take(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
	return takeOne(ctx, tx, a, a.in.IssueDate)
}

func takeOne(ctx context.Context, tx txn.Tx, a *allocation, issueDate *domain.Date) (*sqlc.Invoice, error) {
	rows, err := take(ctx, tx, []*allocation{a}, issueDate)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// moveAndTake moves the counter and takes the number, both under the counter's lock: servers whose clocks
// differ still number in order.
func (a *allocation) moveAndTake(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
	n, err := NumberBy(ctx, tx.Queries, a.caller.TenantID, domain.DocumentInvoice, &a.in.SeriesID, a.in.IssueDate)
	if err != nil {
		return nil, err
	}
	date, err := n.move(ctx, tx)
	if err != nil {
		return nil, aboutSeries(err)
	}
	return takeOne(ctx, tx, a, &date)
}

// aboutSeries says of a series that is exhausted which argument it is: the one by which another is named.
func aboutSeries(err error) error {
	if exhausted := (*domain.Refusal)(nil); errors.As(err, &exhausted) && exhausted.Code == domain.CodeSeriesExhausted {
		exhausted.Path = domain.Input("seriesId")
	}
	return err
}

func (a *allocation) find(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.Invoice], error) {
	row, err := q.FindInvoiceOfOperation(ctx, sqlc.FindInvoiceOfOperationParams{TenantID: a.caller.TenantID, OperationID: a.op.ID})
	if err != nil {
		return txn.Found[*sqlc.Invoice]{}, err
	}
	return a.found(row), nil
}

func (a *allocation) found(row *sqlc.Invoice) txn.Found[*sqlc.Invoice] {
	return txn.Found[*sqlc.Invoice]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == a.id}
}
