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
// another kind of document, or nowhere.
var errMoveCounter = errors.New("the counter is to be moved first")

// Allocate gives an invoice the next number of its series. It is one statement and one round trip
// while the counter stands on the day of issue; the first invoice of a day moves the counter
// first, in one transaction with its own number.
func (s *Service) Allocate(ctx context.Context, caller auth.Caller, in AllocateInvoiceInput) (txn.Outcome[*sqlc.Invoice], error) {
	a, err := newAllocation(caller, in)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	write := txn.Write[*sqlc.Invoice]{Operation: a.op, Apply: a.take, Find: a.find, OneStatement: true}
	out, err := txn.Run(ctx, s.db, write)
	// After an unknown outcome a counter on another day is no answer: the number may be taken.
	if unknown := (*domain.OutcomeUnknownError)(nil); errors.Is(err, errMoveCounter) && !errors.As(err, &unknown) {
		write.Apply, write.OneStatement = a.moveAndTake, false
		out, err = txn.Run(ctx, s.db, write)
	}
	return out, err
}

// allocation is one allocation at work: what was asked, checked, under the ids it keeps on every
// run.
type allocation struct {
	caller auth.Caller
	in     AllocateInvoiceInput
	op     domain.Operation
	id     domain.InvoiceID
	total  domain.Cents
}

func newAllocation(caller auth.Caller, in AllocateInvoiceInput) (a allocation, err error) {
	a = allocation{caller: caller, in: in, id: domain.NewID[domain.InvoiceID]()}
	if a.total, err = domain.TotalOfLines(in.Lines); err != nil {
		return a, err
	}
	a.op, err = caller.Operation("allocateInvoice", "", in.IdempotencyKey, in)
	return a, err
}

// take takes the number, if the counter stands right.
func (a allocation) take(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
	rows, err := tx.AllocateInvoices(ctx, a.params(tx.Now, a.in.IssueDate))
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, errMoveCounter
	}
	return rows[0], nil
}

// moveAndTake locks the counter, lets the domain decide the day of issue, moves the counter there
// and takes the number, all under the lock: servers whose clocks differ still number in order.
func (a allocation) moveAndTake(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
	counter, err := tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: a.caller.TenantID, SeriesID: a.in.SeriesID})
	if err != nil {
		return nil, notFound(err, "series", "seriesId")
	}
	if counter.Document != domain.DocumentInvoice {
		return nil, domain.Refuse(domain.CodeSeriesKindMismatch, domain.Input("seriesId"), "the series numbers credit notes, not invoices")
	}
	series, err := tx.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: a.caller.TenantID, Ids: []domain.SeriesID{a.in.SeriesID}})
	if err != nil {
		return nil, err
	}
	date, err := moveCounter(ctx, tx, series[0], counter, a.in.IssueDate)
	if err != nil {
		return nil, err
	}
	rows, err := tx.AllocateInvoices(ctx, a.params(tx.Now, &date))
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// moveCounter moves a locked counter to the day on which its next number is issued.
func moveCounter(ctx context.Context, tx txn.Tx, series *sqlc.InvoiceSeries, counter *sqlc.SeriesCounter, requested *domain.Date) (domain.Date, error) {
	zone, err := domain.ParseTimeZone(series.TimeZone)
	if err != nil {
		return domain.Date{}, err
	}
	var last domain.Date
	if counter.LastIssueDate != nil {
		last = *counter.LastIssueDate
	}
	date, err := domain.IssueDate(requested, last, domain.DateOf(tx.Now.Time, zone))
	if err != nil {
		return domain.Date{}, err
	}
	n := series.Format.On(series.Code, date, series.FiscalYearStart)
	_, err = tx.MoveSeriesCounter(ctx, sqlc.MoveSeriesCounterParams{
		TenantID: series.TenantID, SeriesID: series.ID, IssueDate: date, IssueDateEnds: date.End(zone),
		NumberPrefix: n.Prefix, NumberSuffix: n.Suffix, NumberWidth: n.Width,
	})
	return date, err
}

func (a allocation) find(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.Invoice], error) {
	row, err := q.FindInvoiceOfOperation(ctx, sqlc.FindInvoiceOfOperationParams{TenantID: a.caller.TenantID, OperationID: a.op.ID})
	if err != nil {
		return txn.Found[*sqlc.Invoice]{}, err
	}
	return txn.Found[*sqlc.Invoice]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == a.id}, nil
}

// params are the statement's, for a batch of this one allocation.
func (a allocation) params(now domain.Version, issueDate *domain.Date) sqlc.AllocateInvoicesParams {
	p := sqlc.AllocateInvoicesParams{
		TenantID: a.caller.TenantID, SeriesID: a.in.SeriesID, IssueDate: issueDate, Now: now.Time,
		Ids: []domain.UUID{domain.UUID(a.id)}, CustomerIds: []domain.UUID{domain.UUID(a.in.CustomerID)},
		Currencies: []string{string(a.in.Currency)}, TotalsMinor: []int64{int64(a.total)},
		OperationIds: []domain.UUID{domain.UUID(a.op.ID)}, OperationFingerprints: [][]byte{a.op.Fingerprint},
		CreatedBys: []string{a.op.By},
	}
	for i, line := range a.in.Lines {
		p.LineInvoiceIds = append(p.LineInvoiceIds, domain.UUID(a.id))
		p.LinePositions = append(p.LinePositions, int32(i+1))
		p.LineDescriptions = append(p.LineDescriptions, line.Description)
		p.LineQuantities = append(p.LineQuantities, int64(line.Quantity))
		p.LineUnitAmounts = append(p.LineUnitAmounts, int64(line.UnitAmountMinor))
	}
	return p
}
