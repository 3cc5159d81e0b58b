package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/internal/demo"
	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/metering"
)

var errURL = errors.New("DATABASE_URL is no PostgreSQL URL")

// ErrUnhealthy ends the doctor's command where it has printed violations.
var ErrUnhealthy = errors.New("the data is not healthy")

// with runs fn on the product.
func with(ctx context.Context, w *World, migrate bool, fn func(app *App) error) error {
	app, err := Connect(ctx, w, migrate)
	if err != nil {
		return err
	}
	return errors.Join(fn(app), app.Close())
}

// MigrateCmd is "migrate".
type MigrateCmd struct{}

// Run brings the database up to date.
func (MigrateCmd) Run(ctx context.Context, w *World) error {
	return with(ctx, w, true, func(*App) error {
		_, err := fmt.Fprintln(w.Stdout, "the database is up to date")
		return err
	})
}

// SeedCmd is "seed".
type SeedCmd struct{}

// Run makes the tenant demo with its data, once.
func (SeedCmd) Run(ctx context.Context, w *World) error {
	return with(ctx, w, false, func(app *App) error {
		d, err := demo.Seed(ctx, app.DB, app.Invoicing, app.Ordering, app.Metering, app.Provider)
		if err != nil {
			return err
		}
		for _, line := range d.Lines() {
			_, _ = fmt.Fprintln(w.Stdout, line)
		}
		return nil
	})
}

// TenantCmd is "tenant".
type TenantCmd struct {
	Create TenantCreateCmd `cmd:"" help:"Make a tenant, with a series for invoices and one for credit notes. Prints its id."`
}

// TenantCreateCmd is "tenant create".
type TenantCreateCmd struct {
	Handle string `arg:"" help:"What the commands call it: 1 to 40 lower-case letters, digits or -."`
	Name   string `help:"What people call it; the handle if left out."`
}

// Run makes a tenant.
func (c TenantCreateCmd) Run(ctx context.Context, w *World) error {
	return with(ctx, w, false, func(app *App) error {
		if c.Name == "" {
			c.Name = c.Handle
		}
		tenant, created, err := app.Invoicing.CreateTenant(ctx, c.Handle, c.Name)
		if err == nil && !created {
			err = fmt.Errorf("the tenant %s exists: %s", c.Handle, tenant.ID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w.Stdout, tenant.ID)
		return err
	})
}

// DoctorCmd is "doctor".
type DoctorCmd struct {
	Tenant string `help:"Check one tenant, by its handle; all of them if left out."`
}

// Run checks the data and prints a line per violation.
func (c DoctorCmd) Run(ctx context.Context, w *World) error {
	return with(ctx, w, false, func(app *App) error {
		var tenant domain.TenantID
		if c.Tenant != "" {
			row, err := app.Invoicing.TenantByHandle(ctx, c.Tenant)
			if err != nil {
				return err
			}
			tenant = row.ID
		}
		report, err := doctor.Check(ctx, app.DB, tenant)
		if err != nil {
			return err
		}
		for _, v := range report.Violations {
			_, _ = fmt.Fprintf(w.Stdout, "%s %s %s: %s\n", v.Invariant, v.TenantID, strings.Join(v.IDs, " "), v.Message)
		}
		if tenant == (domain.TenantID{}) {
			stray, err := doctor.Stray(ctx, app.DB, 20)
			if err != nil {
				return err
			}
			for _, e := range stray {
				_, _ = fmt.Fprintf(w.Stdout, "note: webhook %s of %s waits, about %q, which is not known\n", e.EventID, e.Provider, e.Reference)
			}
		}
		if !report.Healthy() {
			return ErrUnhealthy
		}
		_, err = fmt.Fprintf(w.Stdout, "healthy: %d invariants hold\n", len(report.Invariants))
		return err
	})
}

// ReconcileCmd is "reconcile".
type ReconcileCmd struct{}

// Run settles every pending order, whatever its age, once.
func (ReconcileCmd) Run(ctx context.Context, w *World) error {
	return with(ctx, w, false, func(app *App) error {
		r, err := app.Ordering.Reconcile(ctx, 0)
		_, _ = fmt.Fprintf(w.Stdout, "payments settled %d, still unknown %d, for a person %d; refunds settled %d; webhooks applied %d, waiting %d\n",
			r.Settled, r.Pending, r.Flagged, r.Refunds, r.Events, r.Waiting)
		return err
	})
}

// SettleCmd is "settle".
type SettleCmd struct{}

// Run finishes every announced revocation, pending settlement and unverified waive, once.
func (SettleCmd) Run(ctx context.Context, w *World) error {
	return with(ctx, w, false, func(app *App) error {
		r, err := app.Metering.Settle(ctx, 0)
		_, _ = fmt.Fprintf(w.Stdout, "revocations finished %d; settlements placed %d, left %d; waives looked at %d\n", r.Revocations, r.Settlements, r.Left, r.Looked)
		return err
	})
}

// CloseMonthCmd is "close-month".
type CloseMonthCmd struct {
	Month    string `required:"" help:"The month to close: YYYY-MM. It has to have ended in the customer's time zone."`
	Customer string `help:"Only this customer's (cus_…); everybody's if left out."`
	DryRun   bool   `help:"Only say which would be closed."`
}

// Run closes a month and prints a line for each customer.
func (c CloseMonthCmd) Run(ctx context.Context, w *World) error {
	month, err := domain.ParseMonth(c.Month)
	if err != nil {
		return fmt.Errorf("--month: %w", err)
	}
	var only *domain.CustomerID
	if c.Customer != "" {
		id, err := domain.ParseID[domain.CustomerID](c.Customer)
		if err != nil {
			return fmt.Errorf("--customer: %w", err)
		}
		only = &id
	}
	return with(ctx, w, false, func(app *App) error {
		failed := 0
		err := app.Metering.CloseMonths(ctx, month, only, c.DryRun, func(closed metering.Closed, err error) {
			switch {
			case err != nil:
				failed++
				_, _ = fmt.Fprintf(w.Stdout, "%s %s not closed: %v\n", closed.Month, closed.CustomerID, err)
			case c.DryRun:
				_, _ = fmt.Fprintf(w.Stdout, "%s %s would be closed\n", closed.Month, closed.CustomerID)
			case closed.Invoice == nil:
				_, _ = fmt.Fprintf(w.Stdout, "%s %s closed, nothing to bill\n", closed.Month, closed.CustomerID)
			default:
				_, _ = fmt.Fprintf(w.Stdout, "%s %s closed, invoice %s %s, %d minor units\n", closed.Month, closed.CustomerID, closed.Invoice.ID, closed.Invoice.Status, closed.Invoice.TotalMinor)
			}
		})
		if err == nil && failed > 0 {
			err = fmt.Errorf("%d customers' months could not be closed", failed)
		}
		return err
	})
}
