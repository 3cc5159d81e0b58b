package command

import (
	"context"
	"fmt"
	"text/tabwriter"

	"countersign/internal/auth"
)

// SeriesListCmd is "series list".
type SeriesListCmd struct {
	Tenant string `required:"" help:"The tenant's handle."`
	Format string `enum:"text,json" default:"text" help:"text or json."`
}

// Run lists series.
func (c SeriesListCmd) Run(ctx context.Context, w *World) error {
	return of(ctx, w, c.Tenant, func(app *App, caller auth.Caller) error {
		all, err := allSeries(ctx, app, caller)
		if err != nil {
			return err
		}
		counters, err := app.Invoicing.CountersOf(ctx, caller, all)
		if err != nil {
			return err
		}
		type line struct {
			ID         string `json:"id"`
			Code       string `json:"code"`
			Document   string `json:"document"`
			Format     string `json:"format"`
			Reset      string `json:"reset"`
			Period     string `json:"period,omitempty"`
			NextNumber int64  `json:"nextNumber"`
			LastDate   string `json:"lastIssueDate,omitempty"`
		}
		lines := make([]line, len(all))
		for i, series := range all {
			lines[i] = line{ID: series.ID.String(), Code: series.Code, Document: string(series.Document), Format: string(series.Format), Reset: string(series.Reset)}
			if counter := counters[i]; counter != nil {
				lines[i].NextNumber, lines[i].Period, lines[i].LastDate = counter.NextNumber, day(counter.CurrentPeriod()), day(counter.LastIssueDate)
			}
		}
		if c.Format == "json" {
			return printJSON(w, lines)
		}
		table := tabwriter.NewWriter(w.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "ID\tCODE\tDOCUMENT\tFORMAT\tRESET\tPERIOD\tNEXT\tLAST ISSUED")
		for _, l := range lines {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", l.ID, l.Code, l.Document, l.Format, l.Reset, dash(l.Period), l.NextNumber, dash(l.LastDate))
		}
		return table.Flush()
	})
}
