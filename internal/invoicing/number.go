package invoicing

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// defaultSeries are the codes of the series that a tenant is born with, which number what names no
// series.
var defaultSeries = map[domain.SeriesDocument]string{domain.DocumentInvoice: "INV", domain.DocumentCreditNote: "CN"}

// Number is what a final document is numbered by.
type Number struct {
	SeriesID    domain.SeriesID
	PeriodStart domain.Date
	Sequence    int64
	Printed     string
	IssueDate   domain.Date
}

// TakeNumber takes the next number of a series for a document. It locks the series' counter, so it
// is the last thing that a transaction does. Without an issue date the document is issued today.
// It refuses with NOT_FOUND, SERIES_KIND_MISMATCH, PERIOD_CLOSED or SERIES_EXHAUSTED.
func TakeNumber(ctx context.Context, tx txn.Tx, tenant domain.TenantID, seriesID domain.SeriesID, document domain.SeriesDocument, issueDate *domain.Date) (Number, error) {
	series, err := tx.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: tenant, Ids: []domain.SeriesID{seriesID}})
	if err != nil {
		return Number{}, err
	}
	if len(series) == 0 {
		return Number{}, domain.Refuse(domain.CodeNotFound, domain.Input("seriesId"), "no such series")
	}
	return takeNumber(ctx, tx, series[0], document, issueDate)
}

// TakeDefaultNumber is TakeNumber of the tenant's default series of a document, today.
func TakeDefaultNumber(ctx context.Context, tx txn.Tx, tenant domain.TenantID, document domain.SeriesDocument) (Number, error) {
	series, err := DefaultSeries(ctx, tx.Queries, tenant, document)
	if err != nil {
		return Number{}, err
	}
	return takeNumber(ctx, tx, series, document, nil)
}

// DefaultSeries is the series that numbers a tenant's documents where none is named.
func DefaultSeries(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, document domain.SeriesDocument) (*sqlc.InvoiceSeries, error) {
	return q.FindSeriesByCode(ctx, sqlc.FindSeriesByCodeParams{TenantID: tenant, Code: defaultSeries[document]})
}

// takeNumber reads the series before it locks the counter: a series never changes.
func takeNumber(ctx context.Context, tx txn.Tx, series *sqlc.InvoiceSeries, document domain.SeriesDocument, issueDate *domain.Date) (n Number, err error) {
	if err := checkDocument(series.Document, document); err != nil {
		return n, err
	}
	counter, err := tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: series.TenantID, SeriesID: series.ID})
	if err != nil {
		return n, err
	}
	date, err := moveCounter(ctx, tx, series, counter, issueDate)
	if err != nil {
		return n, err
	}
	taken, err := tx.TakeNumber(ctx, sqlc.TakeNumberParams{TenantID: series.TenantID, SeriesID: series.ID})
	if err != nil {
		return n, err
	}
	printed := domain.Numbering{Prefix: taken.NumberPrefix, Suffix: taken.NumberSuffix, Width: taken.NumberWidth}.Print(taken.NextNumber - 1)
	return Number{series.ID, taken.PeriodStart, taken.NextNumber - 1, printed, date}, nil
}

// checkDocument refuses to number one kind of document by a series of the other.
func checkDocument(of, wanted domain.SeriesDocument) error {
	if of == wanted {
		return nil
	}
	words := map[domain.SeriesDocument]string{domain.DocumentInvoice: "invoices", domain.DocumentCreditNote: "credit notes"}
	return domain.Refuse(domain.CodeSeriesKindMismatch, domain.Input("seriesId"), "the series numbers %s, not %s", words[of], words[wanted])
}

// moveCounter moves a locked counter to the day and the period in which its next number is issued.
// If that is a later period, the one it leaves is recorded and the numbers start anew: under the
// lock, so once.
func moveCounter(ctx context.Context, tx txn.Tx, series *sqlc.InvoiceSeries, counter *sqlc.SeriesCounter, requested *domain.Date) (domain.Date, error) {
	zone, err := domain.ParseTimeZone(series.TimeZone)
	if err != nil {
		return domain.Date{}, err
	}
	rule := series.Rule()
	to, err := rule.Move(counter.State(), requested, domain.DateOf(tx.Now.Time, zone))
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
	n := rule.On(to.IssueDate)
	_, err = tx.MoveSeriesCounter(ctx, sqlc.MoveSeriesCounterParams{
		TenantID: series.TenantID, SeriesID: series.ID, PeriodStart: to.PeriodStart, StartsAnew: to.StartsAnew,
		IssueDate: to.IssueDate, IssueDateEnds: to.IssueDate.End(zone),
		NumberPrefix: n.Prefix, NumberSuffix: n.Suffix, NumberWidth: n.Width,
	})
	return to.IssueDate, err
}
