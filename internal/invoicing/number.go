package invoicing

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// defaultSeries are the codes of the series that a tenant is born with, which number what names no
// series.
var defaultSeries = map[domain.SeriesDocument]string{domain.DocumentInvoice: "INV", domain.DocumentCreditNote: "CN"}

// Numbering is the wish for the next number of a series, on a day: today, where none is asked for.
type Numbering struct {
	series    *sqlc.InvoiceSeries
	issueDate *domain.Date
}

// NumberBy reads the series that is to number a document, or (nil) the tenant's default one: before
// anything is locked, since a series never changes. It refuses with NOT_FOUND or SERIES_KIND_MISMATCH.
func NumberBy(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, document domain.SeriesDocument, seriesID *domain.SeriesID, issueDate *domain.Date) (*Numbering, error) {
	if seriesID == nil {
		series, err := DefaultSeries(ctx, q, tenant, document)
		return &Numbering{series, issueDate}, err
	}
	rows, err := q.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: tenant, Ids: []domain.SeriesID{*seriesID}})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, domain.Refuse(domain.CodeNotFound, domain.Input("seriesId"), "no such series")
	}
	return &Numbering{rows[0], issueDate}, checkDocument(rows[0].Document, document)
}

// DefaultSeries is the series that numbers a tenant's documents where none is named.
func DefaultSeries(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, document domain.SeriesDocument) (*sqlc.InvoiceSeries, error) {
	return q.FindSeriesByCode(ctx, sqlc.FindSeriesByCodeParams{TenantID: tenant, Code: defaultSeries[document]})
}

// check refuses what take would refuse as the counter stands, before anything is written and without its
// lock: a fact of a provider's that cannot be numbered is flagged, and its transaction goes on.
func (n *Numbering) check(ctx context.Context, tx txn.Tx) error {
	counters, err := tx.GetSeriesCounters(ctx, sqlc.GetSeriesCountersParams{TenantID: n.series.TenantID, SeriesIds: []domain.SeriesID{n.series.ID}})
	if err != nil {
		return err
	}
	_, _, err = n.next(counters[0], tx.Now)
	return err
}

// next decides where the counter goes for the number, and in which time zone its days are.
func (n *Numbering) next(counter *sqlc.SeriesCounter, now domain.Version) (to domain.CounterMove, zone *time.Location, err error) {
	if zone, err = domain.ParseTimeZone(n.series.TimeZone); err != nil {
		return to, zone, err
	}
	to, err = n.series.Rule().Move(counter.State(), n.issueDate, domain.DateOf(now.Time, zone))
	return to, zone, err
}

// take makes a write that takes the number within its own statement, for a day that is asked for, or
// nil. It finds nothing to do while the counter stands elsewhere: then the counter is moved first. It
// holds the counter's lock, so it is the last thing that a transaction does. It refuses with
// PERIOD_CLOSED, SERIES_EXHAUSTED or SERIES_INCONSISTENT, and with txn.ErrRefused where the write finds
// nothing to do with the counter in place either.
func (n *Numbering) take(ctx context.Context, tx txn.Tx, write func(issueDate *domain.Date) (*sqlc.Invoice, error)) (*sqlc.Invoice, error) {
	row, err := write(n.issueDate)
	if !errors.Is(err, pgx.ErrNoRows) {
		return row, err
	}
	date, err := n.move(ctx, tx)
	if err != nil {
		return nil, err
	}
	row, err = write(&date)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, txn.ErrRefused
	}
	return row, err
}

// checkDocument refuses to number one kind of document by a series of the other.
func checkDocument(of, wanted domain.SeriesDocument) error {
	if of == wanted {
		return nil
	}
	words := map[domain.SeriesDocument]string{domain.DocumentInvoice: "invoices", domain.DocumentCreditNote: "credit notes"}
	return domain.Refuse(domain.CodeSeriesKindMismatch, domain.Input("seriesId"), "the series numbers %s, not %s", words[of], words[wanted])
}

// move locks the counter, lets the domain decide the day of issue, and moves the counter to that day and
// its period. If that is a later period, the one it leaves is recorded and the numbers start anew: under
// the lock, so once. A counter behind numbers that were imported or explained is SERIES_INCONSISTENT.
func (n *Numbering) move(ctx context.Context, tx txn.Tx) (domain.Date, error) {
	series := n.series
	counter, err := tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: series.TenantID, SeriesID: series.ID})
	if err != nil {
		return domain.Date{}, err
	}
	to, zone, err := n.next(counter, tx.Now)
	if err != nil {
		return domain.Date{}, err
	}
	if to.Closes {
		if _, err := tx.CloseSeriesPeriod(ctx, sqlc.CloseSeriesPeriodParams{
			TenantID: series.TenantID, SeriesID: series.ID, PeriodStart: counter.PeriodStart, LastNumber: to.LastNumber, ClosedAt: tx.Now.Time,
		}); err != nil {
			return domain.Date{}, err
		}
	}
	printed := series.Rule().On(to.IssueDate)
	moved, err := tx.MoveSeriesCounter(ctx, sqlc.MoveSeriesCounterParams{
		TenantID: series.TenantID, SeriesID: series.ID, PeriodStart: to.PeriodStart, StartsAnew: to.StartsAnew,
		IssueDate: to.IssueDate, IssueDateEnds: to.IssueDate.End(zone),
		NumberPrefix: printed.Prefix, NumberSuffix: printed.Suffix, NumberWidth: printed.Width,
	})
	if err != nil {
		return domain.Date{}, err
	}
	behind, err := tx.SeriesEntriesReach(ctx, sqlc.SeriesEntriesReachParams{
		TenantID: series.TenantID, SeriesID: series.ID, PeriodStart: moved.PeriodStart, FromNumber: moved.NextNumber,
	})
	if err == nil && behind {
		err = domain.SeriesInconsistent("the numbers that it explains")
	}
	return to.IssueDate, err
}
