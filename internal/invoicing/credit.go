package invoicing

import (
	"context"
	"strconv"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// IssueCreditNoteInput asks to take back from an invoice: some of its lines, an amount, or (neither)
// all that is left.
type IssueCreditNoteInput struct {
	InvoiceID      domain.InvoiceID  `json:"invoiceId"`
	Version        *domain.Version   `json:"version"`
	Lines          []CreditLineInput `json:"lines"`
	AmountMinor    *domain.Cents     `json:"amountMinor"`
	Reason         string            `json:"reason"`
	SeriesID       *domain.SeriesID  `json:"seriesId"`
	IssueDate      *domain.Date      `json:"issueDate"`
	IdempotencyKey *string           `json:"-"`
}

// CreditLineInput is a line of the invoice, counted from 1, and how much of it to take back, with its
// tax; nil is what is left of it.
type CreditLineInput struct {
	Line        int32         `json:"line"`
	AmountMinor *domain.Cents `json:"amountMinor"`
}

// IssuedCredit is a credit note with the invoice that it credits.
type IssuedCredit struct{ Note, Invoice *sqlc.Invoice }

// IssueCreditNote takes back from an invoice that is final, under a number of the credit notes' own
// series: never more than was invoiced, of the invoice and of each of its lines. What is credited is
// no longer due; what of it was paid already is to be given back.
func (s *Service) IssueCreditNote(ctx context.Context, caller auth.Caller, in IssueCreditNoteInput) (txn.Outcome[IssuedCredit], error) {
	if err := in.check(); err != nil {
		return txn.Outcome[IssuedCredit]{}, err
	}
	op, err := caller.Operation("issueCreditNote", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[IssuedCredit]{}, err
	}
	c := crediting{in: in, op: op, id: domain.NewID[domain.InvoiceID](), step: domain.NewID[domain.UUID]()}
	out, err := txn.Run(ctx, s.db, txn.Write[IssuedCredit]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (IssuedCredit, error) {
			invoice, err := LockInvoice(ctx, tx, caller.TenantID, in.InvoiceID, "invoiceId")
			if err != nil {
				return IssuedCredit{}, err
			}
			return c.issue(ctx, tx, invoice)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[IssuedCredit], err error) {
			note, err := q.FindInvoiceOfOperation(ctx, sqlc.FindInvoiceOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			rows, err := q.GetInvoices(ctx, sqlc.GetInvoicesParams{TenantID: caller.TenantID, Ids: []domain.InvoiceID{*note.CreditsInvoiceID}})
			if err != nil {
				return found, err
			}
			return txn.Found[IssuedCredit]{Value: IssuedCredit{note, rows[0]}, Fingerprint: note.OperationFingerprint, Own: note.ID == c.id}, nil
		},
	})
	return out, aboutSeries(err)
}

func (in IssueCreditNoteInput) check() error {
	if err := domain.CheckText(domain.Input("reason"), in.Reason, 500); err != nil {
		return err
	}
	if in.AmountMinor != nil && *in.AmountMinor < 1 {
		return domain.BadInputAt(domain.Input("amountMinor"), "an amount is at least 1")
	}
	if in.Lines == nil {
		return nil
	}
	if in.AmountMinor != nil {
		return domain.BadInputAt(domain.Input("amountMinor"), "a credit note is of lines or of an amount, not both")
	}
	if len(in.Lines) == 0 || len(in.Lines) > domain.MaxInvoiceLines {
		return domain.BadInputAt(domain.Input("lines"), "a credit note has 1 to %d lines", domain.MaxInvoiceLines)
	}
	return nil
}

// crediting is a credit note being issued, under the ids that it keeps on every run.
type crediting struct {
	in   IssueCreditNoteInput
	op   domain.Operation
	id   domain.InvoiceID
	step domain.UUID

	number *Numbering
	dated  domain.Version // the moment by which its day is decided
}

// issue decides on a held invoice what is taken back, and writes it: on the invoice first, under a
// number last.
func (c crediting) issue(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (issued IssuedCredit, err error) {
	if err := invoice.Status.CheckCreditable(); err != nil {
		return issued, err
	}
	if err := domain.CheckVersion(c.in.Version, invoice.UpdatedAt); err != nil {
		return issued, err
	}
	if c.number, err = NumberBy(ctx, tx.Queries, invoice.TenantID, domain.DocumentCreditNote, c.in.SeriesID, c.in.IssueDate); err != nil {
		return issued, err
	}
	if c.dated, err = c.moment(invoice, tx.Now); err != nil {
		return issued, err
	}
	lines, err := creditables(ctx, tx, invoice)
	if err != nil {
		return issued, err
	}
	shares, amount, err := c.in.shares(invoice, lines)
	if err != nil {
		return issued, err
	}
	due := invoice.AmountDue().AmountMinor
	m := Move{To: invoice.Status, Reason: &c.in.Reason, Credit: &Credit{Amount: amount, RefundDue: max(0, amount-due)}, Op: c.op, ID: c.step}
	if invoice.Status == domain.InvoicePending && amount >= due {
		m.To = domain.InvoicePaid // nothing is left to pay
	}
	if issued.Invoice, err = m.Run(ctx, tx, invoice); err != nil {
		return issued, err
	}
	issued.Note, err = c.write(ctx, tx, invoice, lines, shares, m.Credit)
	return issued, err
}

// moment is the one by which the day of the note is decided.
func (c crediting) moment(invoice *sqlc.Invoice, now domain.Version) (domain.Version, error) {
	zone, err := domain.ParseTimeZone(c.number.series.TimeZone)
	if err != nil {
		return now, err
	}
	moment, err := domain.CreditMoment(c.in.IssueDate, *invoice.IssueDate, now.Time, zone)
	return domain.VersionAt(moment), err
}

// creditable is a line of an invoice with what can be taken back of it.
type creditable struct {
	*sqlc.InvoiceLine
	domain.Creditable
}

// creditables are the lines of a held invoice in whole minor units, which sum to its total.
func creditables(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) ([]creditable, error) {
	rows, err := tx.ListInvoiceLines(ctx, sqlc.ListInvoiceLinesParams{TenantID: invoice.TenantID, InvoiceIds: []domain.InvoiceID{invoice.ID}})
	if err != nil {
		return nil, err
	}
	exact := make([]domain.Decimal, len(rows))
	for i, row := range rows {
		if exact[i] = row.ExactAmount; row.TaxTreatment != nil && *row.TaxTreatment == domain.TaxExclusive {
			if exact[i], err = exact[i].Plus(domain.DecimalOf(row.TaxMinor)); err != nil {
				return nil, err
			}
		}
	}
	gross, err := domain.WholeLines(exact)
	if err != nil {
		return nil, err
	}
	lines, place := make([]creditable, len(rows)), make(map[int32]int, len(rows))
	for i, row := range rows {
		lines[i] = creditable{row, domain.Creditable{Gross: gross[i], Tax: row.TaxMinor}}
		place[row.Position] = i
	}
	credited, err := tx.SumCreditedLines(ctx, sqlc.SumCreditedLinesParams{TenantID: invoice.TenantID, InvoiceID: &invoice.ID})
	for _, sum := range credited {
		line := &lines[place[sum.Line]]
		line.CreditedGross, line.CreditedTax = domain.Cents(sum.GrossMinor), domain.Cents(sum.TaxMinor)
	}
	return lines, err
}

// shares is how much is taken back of each line, and in all.
func (in IssueCreditNoteInput) shares(invoice *sqlc.Invoice, lines []creditable) (shares []domain.Cents, amount domain.Cents, err error) {
	left, path := invoice.CreditLeft(), domain.Input("invoiceId")
	switch {
	case in.Lines != nil:
		path = domain.Input("lines")
		if shares, amount, err = in.ofLines(invoice, lines); err != nil {
			return nil, 0, err
		}
	case in.AmountMinor != nil:
		path, amount = domain.Input("amountMinor"), *in.AmountMinor
	default:
		amount = left.AmountMinor
	}
	if in.Lines != nil && amount < 1 {
		return nil, 0, domain.BadInputAt(path, "the lines come to %d, and a credit note is of at least 1", amount)
	}
	if amount < 1 || amount > left.AmountMinor {
		return nil, 0, domain.CreditTooLarge(path, left)
	}
	if shares == nil {
		all := make([]domain.Creditable, len(lines))
		for i, line := range lines {
			all[i] = line.Creditable
		}
		shares = domain.Apportion(amount, all)
	}
	return shares, amount, nil
}

// ofLines is what is asked of each line: of its sign, and no more than is left of it.
func (in IssueCreditNoteInput) ofLines(invoice *sqlc.Invoice, lines []creditable) (shares []domain.Cents, sum domain.Cents, err error) {
	shares = make([]domain.Cents, len(lines))
	for i, asked := range in.Lines {
		at := func(field string) []string { return domain.Input("lines", strconv.Itoa(i), field) }
		n := int(asked.Line) - 1
		if n < 0 || n >= len(lines) || shares[n] != 0 {
			return nil, 0, domain.BadInputAt(at("line"), "a line of the invoice, 1 to %d, once", len(lines))
		}
		left := lines[n].Left()
		share := left
		if asked.AmountMinor != nil {
			share = *asked.AmountMinor
			if err := lines[n].CheckAmount(at("amountMinor"), share); err != nil {
				return nil, 0, err
			}
		}
		if share == 0 || left >= 0 && (share < 0 || share > left) || left < 0 && (share > 0 || share < left) {
			return nil, 0, domain.CreditTooLarge(at("amountMinor"), domain.Money{AmountMinor: left, Currency: invoice.Currency})
		}
		shares[n] = share
		if sum, err = sum.Add(share); err != nil {
			return nil, 0, err
		}
	}
	return shares, sum, nil
}

// write inserts the note, with a line for each share: the whole line where it is taken back whole.
func (c crediting) write(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, lines []creditable, shares []domain.Cents, credit *Credit) (*sqlc.Invoice, error) {
	arg := sqlc.InsertCreditNoteParams{
		TenantID: invoice.TenantID, ID: c.id, CustomerID: invoice.CustomerID, Currency: invoice.Currency, TotalMinor: credit.Amount, RefundDueMinor: credit.RefundDue,
		CreditsInvoiceID: &invoice.ID, CreditReason: &c.in.Reason,
		OperationID: c.op.ID, OperationFingerprint: c.op.Fingerprint, CreatedBy: c.op.By, Now: tx.Now.Time,
	}
	for i, line := range lines {
		if shares[i] == 0 {
			continue
		}
		quantity, unit, rate, treatment, tax := int64(1), domain.DecimalOf(shares[i]), "", "", line.TaxShare(shares[i])
		if line.TaxRate != nil {
			rate, treatment = line.TaxRate.Text('f'), string(domain.TaxInclusive)
		}
		if line.CreditedGross == 0 && shares[i] == line.Gross && line.SettlementID == nil {
			quantity, unit = line.Quantity, line.UnitPrice
			if line.TaxTreatment != nil {
				treatment = string(*line.TaxTreatment)
			}
		}
		arg.LineDescriptions = append(arg.LineDescriptions, line.Description)
		arg.LineQuantities = append(arg.LineQuantities, quantity)
		arg.LineUnitAmounts = append(arg.LineUnitAmounts, unit.Text('f'))
		arg.LineTaxRates = append(arg.LineTaxRates, rate)
		arg.LineTaxTreatments = append(arg.LineTaxTreatments, treatment)
		arg.LineTaxesMinor = append(arg.LineTaxesMinor, int64(tax))
		arg.LineCredits = append(arg.LineCredits, line.Position)
		arg.TaxMinor += tax
	}
	arg.SeriesID, arg.DatedBy = c.number.series.ID, c.dated.Time
	tx.Now = c.dated // for the counter, if it is moved: the note itself is made now
	return c.number.take(ctx, tx, func(issueDate *domain.Date) (*sqlc.Invoice, error) {
		arg.IssueDate = issueDate
		return tx.InsertCreditNote(ctx, arg)
	})
}

// CreditNotesOf answers each invoice's credit notes at its place, in the order in which they were made.
func (s *Service) CreditNotesOf(ctx context.Context, caller auth.Caller, invoices []*sqlc.Invoice) ([][]*sqlc.Invoice, error) {
	ids := idsOf(invoices)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		return q.ListCreditNotes(ctx, sqlc.ListCreditNotesParams{TenantID: caller.TenantID, InvoiceIds: domain.UUIDs(ids)})
	})
	return paging.Group(ids, rows, func(n *sqlc.Invoice) domain.InvoiceID { return *n.CreditsInvoiceID }), err
}

// PaymentsOf answers each invoice's payments at its place, in the order in which they were recorded.
func (s *Service) PaymentsOf(ctx context.Context, caller auth.Caller, invoices []*sqlc.Invoice) ([][]*sqlc.InvoicePayment, error) {
	ids := idsOf(invoices)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoicePayment, error) {
		return q.ListInvoicePayments(ctx, sqlc.ListInvoicePaymentsParams{TenantID: caller.TenantID, InvoiceIds: ids})
	})
	return paging.Group(ids, rows, func(p *sqlc.InvoicePayment) domain.InvoiceID { return p.InvoiceID }), err
}
