package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/sqlc"
)

// ErrUnaccounted ends the audit's command where it has printed numbers that nothing accounts for.
var ErrUnaccounted = errors.New("there are numbers that nothing accounts for, or that are there twice")

// SeriesAuditCmd is "series audit".
type SeriesAuditCmd struct {
	Tenant string `required:"" help:"The tenant's handle."`
	Series string `arg:"" optional:"" help:"The series, by its code or its id; all of them if left out."`
	Period string `help:"Any day, YYYY-MM-DD, of the one period to go over; every period if left out."`
	Format string `enum:"text,json" default:"text" help:"text or json: an object a line."`
}

// Run audits, and prints a line for each period and for each number that is not accounted for.
func (c SeriesAuditCmd) Run(ctx context.Context, w *World) error {
	asked, err := optionalDay("--period", c.Period)
	if err != nil {
		return err
	}
	return of(ctx, w, c.Tenant, func(app *App, caller auth.Caller) error {
		all, err := allSeries(ctx, app, caller)
		if c.Series != "" && err == nil {
			var one *sqlc.InvoiceSeries
			one, err = named(ctx, app, caller, c.Series)
			all = []*sqlc.InvoiceSeries{one}
		}
		if err != nil {
			return err
		}
		clean := true
		for _, series := range all {
			var periods []domain.Date
			if asked != nil {
				periods = []domain.Date{*asked}
			} else if periods, err = app.Invoicing.Periods(ctx, caller, series.ID); err != nil {
				return err
			}
			for _, period := range periods {
				a, err := app.Invoicing.Audit(ctx, caller, series.ID, &period, audited(w, series))
				if err != nil {
					return err
				}
				clean = clean && a.Clean()
				if err := c.print(w, a); err != nil {
					return err
				}
			}
		}
		if !clean {
			return ErrUnaccounted
		}
		return nil
	})
}

// audited tells how far an audit has come.
func audited(w *World, series *sqlc.InvoiceSeries) func(done, last int64) {
	return func(done, last int64) { _, _ = fmt.Fprintf(w.Stderr, "%s: %d of %d\n", series.Code, done, last) }
}

func (c SeriesAuditCmd) print(w *World, a *invoicing.Audit) error {
	if c.Format == "json" {
		return printJSON(w, auditJSON(a))
	}
	name := a.Series.Code
	if period := day(a.Period()); period != "" {
		name += " from " + period
	}
	if a.LastNumber == 0 {
		_, err := fmt.Fprintf(w.Stdout, "%s: no number\n", name)
		return err
	}
	_, _ = fmt.Fprintf(w.Stdout, "%s: 1 to %d; issued %d, void %d, imported %d, voided elsewhere %d, skipped %d, unexplained %d\n",
		name, a.LastNumber, a.Issued, a.Void, a.Imported, a.VoidedElsewhere, a.Skipped, a.Unexplained)
	for _, v := range a.Voids {
		_, _ = fmt.Fprintf(w.Stdout, "  void %s: %s\n", v.NumberRange, *v.Reason)
	}
	printGaps(w.Stdout, a.Gaps, a.GapCount)
	for _, number := range a.Duplicates {
		_, _ = fmt.Fprintf(w.Stdout, "  twice %d\n", number)
	}
	if first := a.FirstOutOfOrder(); first != nil {
		_, _ = fmt.Fprintf(w.Stdout, "  dated before a lower number: %d, the first is %d\n", a.OutOfOrder, *first)
	}
	return nil
}

func printGaps(w io.Writer, gaps []*domain.NumberRange, count int64) {
	for _, gap := range gaps {
		_, _ = fmt.Fprintf(w, "  unexplained %s\n", gap)
	}
	if more := count - int64(len(gaps)); more > 0 {
		_, _ = fmt.Fprintf(w, "  and %d more\n", more)
	}
}

// auditJSON is an audit as machines read it.
func auditJSON(a *invoicing.Audit) any {
	type void struct {
		domain.NumberRange
		State  domain.LedgerState `json:"state"`
		Reason *string            `json:"reason"`
	}
	voids := make([]void, len(a.Voids))
	for i, v := range a.Voids {
		voids[i] = void{v.NumberRange, v.State, v.Reason}
	}
	return struct {
		Series          string                `json:"series"`
		Period          string                `json:"period,omitempty"`
		Last            int64                 `json:"last"`
		Clean           bool                  `json:"clean"`
		Issued          int64                 `json:"issued"`
		Void            int64                 `json:"void"`
		Imported        int64                 `json:"imported"`
		VoidedElsewhere int64                 `json:"voidedElsewhere"`
		Skipped         int64                 `json:"skipped"`
		Unexplained     int64                 `json:"unexplained"`
		GapCount        int64                 `json:"gapCount"`
		Gaps            []*domain.NumberRange `json:"gaps"`
		DuplicateCount  int64                 `json:"duplicateCount"`
		Duplicates      []int64               `json:"duplicates"`
		OutOfOrder      int64                 `json:"outOfOrder"`
		FirstOutOfOrder *int64                `json:"firstOutOfOrder,omitempty"`
		Voids           []void                `json:"voids"`
	}{
		a.Series.Code, day(a.Period()), a.LastNumber, a.Clean(), a.Issued, a.Void, a.Imported, a.VoidedElsewhere, a.Skipped,
		a.Unexplained, a.GapCount, append([]*domain.NumberRange{}, a.Gaps...), a.DuplicateCount, append([]int64{}, a.Duplicates...), a.OutOfOrder, a.FirstOutOfOrder(), voids,
	}
}
