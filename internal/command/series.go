package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// ErrUnaccounted ends the audit's command where it has printed numbers that nothing accounts for.
var ErrUnaccounted = errors.New("there are numbers that nothing accounts for, or that are there twice")

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
				a, err := app.Invoicing.Audit(ctx, caller, series.ID, &period, func(done, last int64) {
					_, _ = fmt.Fprintf(w.Stderr, "%s: %d of %d\n", series.Code, done, last)
				})
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
		Voids           []void                `json:"voids"`
	}{
		a.Series.Code, day(a.Period()), a.LastNumber, a.Clean(), a.Issued, a.Void, a.Imported, a.VoidedElsewhere, a.Skipped,
		a.Unexplained, a.GapCount, append([]*domain.NumberRange{}, a.Gaps...), a.DuplicateCount, append([]int64{}, a.Duplicates...), voids,
	}
}

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
	audit, err := app.Invoicing.AuditOf(ctx, caller, change)
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
