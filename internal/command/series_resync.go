package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// SeriesResyncCmd is "series resync".
type SeriesResyncCmd struct {
	Tenant  string   `required:"" help:"The tenant's handle."`
	Series  string   `arg:"" help:"The series, by its code or its id."`
	Reason  string   `required:"" help:"Why."`
	Explain []string `sep:"none" placeholder:"FIRST-LAST:REASON" help:"Numbers that would be left unexplained, and where they went; several by repeating it."`
	Key     string   `help:"An idempotency key: the same resync again, after a lost connection, is done once."`
	Apply   bool     `help:"Do it."`
	DryRun  bool     `xor:"apply" help:"Only say what it would come to, which is the default."`
	Format  string   `enum:"text,json" default:"text" help:"text or json."`
}

// Run resyncs.
func (c SeriesResyncCmd) Run(ctx context.Context, w *World) error {
	var explain []domain.ExplainedRange
	for _, text := range c.Explain {
		e, err := explained(text)
		if err != nil {
			return err
		}
		explain = append(explain, e)
	}
	return of(ctx, w, c.Tenant, func(app *App, caller auth.Caller) error {
		series, err := named(ctx, app, caller, c.Series)
		if err != nil {
			return err
		}
		out, err := app.Invoicing.ResyncSeries(ctx, caller, invoicing.ResyncSeriesInput{
			SeriesID: series.ID, Explain: explain, Reason: c.Reason, DryRun: new(!c.Apply), IdempotencyKey: optional(c.Key),
			Progress: entered(w, series),
		})
		return told(ctx, w, app, caller, c.Format, out, err)
	})
}

// explained reads FIRST-LAST:REASON, or NUMBER:REASON.
func explained(text string) (e domain.ExplainedRange, err error) {
	numbers, reason, found := strings.Cut(text, ":")
	first, last, run := strings.Cut(numbers, "-")
	if !run {
		last = first
	}
	var errs [2]error
	e.First, errs[0] = strconv.ParseInt(first, 10, 64)
	e.Last, errs[1] = strconv.ParseInt(last, 10, 64)
	if e.Reason = strings.TrimSpace(reason); !found || errors.Join(errs[:]...) != nil || e.Reason == "" {
		return e, fmt.Errorf("--explain: %q is not of the form 13-15:torn forms", text)
	}
	return e, nil
}
