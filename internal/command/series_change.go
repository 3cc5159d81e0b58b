package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// entered tells how many entries of a change are written.
func entered(w *World, series *sqlc.InvoiceSeries) func(entered, of int) {
	return func(entered, of int) {
		_, _ = fmt.Fprintf(w.Stderr, "%s: %d of %d entries\n", series.Code, entered, of)
	}
}

// told prints what a change has come to, or each of its faults.
func told(ctx context.Context, w *World, app *App, caller auth.Caller, format string, out txn.Outcome[*invoicing.SeriesChange], err error) error {
	if err != nil {
		faults := domain.UserErrors(err)
		for _, fault := range faults {
			_, _ = fmt.Fprintf(w.Stdout, "%s %s: %s\n", fault.GetCode(), strings.Join(fault.GetPath(), " "), fault.GetMessage())
			if gaps := (*domain.NumbersUnexplainedError)(nil); errors.As(fault, &gaps) {
				printGaps(w.Stdout, gaps.Gaps, gaps.GapCount)
			}
		}
		if len(faults) > 1 {
			return errors.New("nothing was changed")
		}
		return err
	}
	change := out.Value
	_, _ = fmt.Fprintf(w.Stderr, "%s: auditing\n", change.Series.Code)
	audit, err := app.Invoicing.AuditOf(ctx, caller, change, audited(w, change.Series))
	if err != nil {
		return err
	}
	if format == "json" {
		err = printJSON(w, struct {
			DryRun           bool                  `json:"dryRun"`
			Replayed         bool                  `json:"replayed"`
			Period           string                `json:"period,omitempty"`
			NextNumberBefore int64                 `json:"nextNumberBefore"`
			NextNumber       int64                 `json:"nextNumber"`
			Imported         int64                 `json:"imported"`
			VoidedElsewhere  int64                 `json:"voidedElsewhere"`
			Skipped          int64                 `json:"skipped"`
			GapCount         int64                 `json:"gapCount"`
			Gaps             []*domain.NumberRange `json:"gaps"`
			Audit            any                   `json:"audit"`
		}{
			change.DryRun, out.Replayed, day(change.Period()), change.NextNumberBefore, change.NextNumber,
			change.ImportedNumbers, change.VoidedNumbers, change.SkippedNumbers, change.GapCount, append([]*domain.NumberRange{}, change.Gaps...), auditJSON(audit),
		})
	} else {
		err = printChange(w, out, audit)
	}
	switch {
	case err != nil:
		return err
	case change.GapCount > 0 || !audit.Clean():
		return ErrUnaccounted
	}
	return nil
}

func printChange(w *World, out txn.Outcome[*invoicing.SeriesChange], audit *invoicing.Audit) error {
	change, how := out.Value, "done"
	switch {
	case change.DryRun:
		how = "would be done, with --apply"
	case out.Replayed:
		how = "was done before"
	}
	_, _ = fmt.Fprintf(w.Stdout, "%s: imported %d, voided elsewhere %d, skipped %d; the next number, %d before, is %d\n",
		how, change.ImportedNumbers, change.VoidedNumbers, change.SkippedNumbers, change.NextNumberBefore, change.NextNumber)
	return SeriesAuditCmd{}.print(w, audit)
}
