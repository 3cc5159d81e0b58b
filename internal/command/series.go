package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// SeriesCmd is "series".
type SeriesCmd struct {
	List   SeriesListCmd   `cmd:"" help:"List a tenant's series and where they stand."`
	Audit  SeriesAuditCmd  `cmd:"" help:"Go over the numbers of a series, or of all: each is an invoice's, or explained. Exit status 1 if one is not."`
	Import SeriesImportCmd `cmd:"" help:"Take over numbers that another system has given, from CSV. Only says what it would come to, unless told to --apply."`
	Resync SeriesResyncCmd `cmd:"" help:"Move a counter that is behind what is numbered. Only says what it would come to, unless told to --apply."`
}

// of runs fn for a tenant's admin.
func of(ctx context.Context, w *World, handle string, fn func(app *App, caller auth.Caller) error) error {
	return withTenant(ctx, w, handle, func(app *App, tenant *sqlc.OpsTenant) error {
		// Nobody waits for the answer as a request's client does: a big import may take its time.
		app.Invoicing = invoicing.New(txn.New(app.Pool, txn.Settings{WriteTimeout: 10 * time.Minute, Logger: w.Logger}))
		return fn(app, auth.Command(tenant.ID))
	})
}

// allSeries are a tenant's series, in order of creation.
func allSeries(ctx context.Context, app *App, caller auth.Caller) (all []*sqlc.InvoiceSeries, err error) {
	var highest domain.SeriesID
	for i := range highest {
		highest[i] = 0xff
	}
	for request := (paging.Request[domain.SeriesID]{Before: highest, Size: 100}); ; {
		page, err := app.Invoicing.ListSeries(ctx, caller, request)
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Rows...); !page.HasNext {
			return all, nil
		}
		request.After = all[len(all)-1].ID
	}
}

// named is the series of a code or an id.
func named(ctx context.Context, app *App, caller auth.Caller, name string) (*sqlc.InvoiceSeries, error) {
	all, err := allSeries(ctx, app, caller)
	if err != nil {
		return nil, err
	}
	for _, series := range all {
		if series.Code == name || series.ID.String() == name {
			return series, nil
		}
	}
	return nil, fmt.Errorf("the tenant has no series %s", name)
}

func printJSON(w *World, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintf(w.Stdout, "%s\n", text)
	}
	return err
}

func optionalDay(flag, text string) (*domain.Date, error) {
	if text == "" {
		return nil, nil
	}
	var d domain.Date
	if err := d.UnmarshalGQL(text); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return &d, nil
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func day(d *domain.Date) string {
	if d == nil {
		return ""
	}
	return d.String()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
