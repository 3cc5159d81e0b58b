package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"countersign/internal/auth"
	"countersign/internal/invoicing"
)

// SeriesImportCmd is "series import".
type SeriesImportCmd struct {
	Tenant string `required:"" help:"The tenant's handle."`
	Series string `arg:"" help:"The series, by its code or its id."`
	File   string `arg:"" default:"-" help:"The CSV; - is standard input. Its first line names the columns: number, last_number, printed, date, status, reference, reason."`
	Reason string `required:"" help:"Why, and from where."`
	Period string `help:"Any day, YYYY-MM-DD, of the period that the numbers are of; the current one if left out."`
	Key    string `help:"An idempotency key: the same import again, after a lost connection, is done once."`
	Apply  bool   `help:"Do it."`
	DryRun bool   `xor:"apply" help:"Only say what it would come to, which is the default."`
	Format string `enum:"text,json" default:"text" help:"text or json."`
}

// Run imports.
func (c SeriesImportCmd) Run(ctx context.Context, w *World) error {
	period, err := optionalDay("--period", c.Period)
	if err != nil {
		return err
	}
	text, err := c.read(w)
	if err != nil {
		return err
	}
	return of(ctx, w, c.Tenant, func(app *App, caller auth.Caller) error {
		series, err := named(ctx, app, caller, c.Series)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w.Stderr, "%s: importing %d bytes of CSV\n", series.Code, len(text))
		out, err := app.Invoicing.ImportNumbers(ctx, caller, invoicing.ImportNumbersInput{
			SeriesID: series.ID, Period: period, CSV: &text, Reason: c.Reason, DryRun: new(!c.Apply), IdempotencyKey: optional(c.Key),
			Progress: entered(w, series),
		})
		return told(ctx, w, app, caller, c.Format, out, err)
	})
}

// maxFile bounds what is read into memory: so many rows as an import may have, and long ones.
const maxFile = 256 << 20

func (c SeriesImportCmd) read(w *World) (string, error) {
	in := w.Stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	if in == nil {
		return "", errors.New("there is no standard input")
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the CSV has more than %d bytes: split it", maxFile)
	}
	return string(text), err
}
