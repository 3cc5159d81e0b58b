package invoicing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

func decimal(t *testing.T, s string) *domain.Decimal {
	t.Helper()
	var d domain.Decimal
	if err := d.UnmarshalGQL(s); err != nil {
		t.Fatal(err)
	}
	return &d
}

func (s *shop) credit(in invoicing.IssueCreditNoteInput) (invoicing.IssuedCredit, error) {
	in.Reason = "sent back"
	out, err := s.IssueCreditNote(context.Background(), s.caller, in)
	return out.Value, err
}

// taxed is an invoice of three lines: 120.00 with 20 % within, 10.00 and 5.5 % on top, and a discount
// of 1.00 without tax; 129.55 in all, of which 20.55 are tax.
func (s *shop) taxed(t *testing.T) *sqlc.Invoice {
	t.Helper()
	in, inclusive := s.input(), domain.TaxInclusive
	in.Lines = []domain.InvoiceLineInput{
		{Description: "Chess set", Quantity: 2, UnitAmountMinor: 6000, TaxRate: decimal(t, "20"), TaxTreatment: &inclusive},
		{Description: "Book", Quantity: 1, UnitAmountMinor: 1000, TaxRate: decimal(t, "5.5")},
		{Description: "Discount", Quantity: 1, UnitAmountMinor: -100},
	}
	return s.take(t, in)
}

// note is what a credit note says: its number, total, tax and refund, and its lines.
func (s *shop) note(t *testing.T, n *sqlc.Invoice) string {
	t.Helper()
	lines, err := s.LinesOf(t.Context(), s.caller, []*sqlc.Invoice{n})
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("%s %d tax %d refund %d:", *n.Number, n.TotalMinor, n.TaxMinor, n.RefundDueMinor)
	for _, line := range lines[0] {
		gross, err := line.Gross()
		if err != nil {
			t.Fatal(err)
		}
		said += fmt.Sprintf(" %s %d/%d", line.Description, gross.AmountMinor, line.TaxMinor)
	}
	return said
}

// A credit note follows the lines it credits and their tax: all of an invoice, an amount of it, or
// some lines, and in the end exactly what was invoiced, of each line and of its tax.
func TestACreditNoteFollowsItsInvoice(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	whole, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: s.taxed(t).ID})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.note(t, whole.Note); got != "CN-00001 12955 tax 2055 refund 0: Chess set 12000/2000 Book 1055/55 Discount -100/0" {
		t.Errorf("all of it: %s", got)
	}
	if whole.Invoice.Status != domain.InvoicePaid || whole.Invoice.AmountDue().AmountMinor != 0 || whole.Invoice.PaidMinor != 0 {
		t.Errorf("the invoice is %s with %+v due", whole.Invoice.Status, whole.Invoice.AmountDue())
	}
	parts := s.taxed(t)
	third := domain.Cents(4318)
	for i, c := range []struct {
		in   invoicing.IssueCreditNoteInput
		want string
	}{
		{invoicing.IssueCreditNoteInput{AmountMinor: &third}, "CN-00002 4318 tax 685 refund 0: Chess set 4000/667 Book 351/18 Discount -33/0"},
		{invoicing.IssueCreditNoteInput{Lines: []invoicing.CreditLineInput{{Line: 2}}}, "CN-00003 704 tax 37 refund 0: Book 704/37"},
		{invoicing.IssueCreditNoteInput{}, "CN-00004 7933 tax 1333 refund 0: Chess set 8000/1333 Discount -67/0"},
	} {
		c.in.InvoiceID = parts.ID
		issued, err := s.credit(c.in)
		if err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
		if got := s.note(t, issued.Note); got != c.want {
			t.Errorf("part %d is %s, want %s", i, got, c.want)
		}
	}
	_, err = s.credit(invoicing.IssueCreditNoteInput{InvoiceID: parts.ID})
	wantCode(t, err, domain.CodeCreditTooLarge)
	s.healthy(t)
}

// Never more than was invoiced, of the invoice and of each line; and only of what is final. A refusal says
// what would not be one.
func TestWhatIsNotCredited(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	invoice := s.taxed(t)
	amount := func(c domain.Cents) *domain.Cents { return &c }
	line := func(n int32, c *domain.Cents) []invoicing.CreditLineInput {
		return []invoicing.CreditLineInput{{Line: n, AmountMinor: c}}
	}
	charge := "input.lines.0.amountMinor: an amount is of its line's sign: at least 1"
	discount := "input.lines.0.amountMinor: an amount is of its line's sign: of a discount, at most -1"
	for name, c := range map[string]struct {
		in   invoicing.IssueCreditNoteInput
		code domain.Code
		says string // where, and part of the message
	}{
		"more than all":           {invoicing.IssueCreditNoteInput{AmountMinor: amount(12956)}, domain.CodeCreditTooLarge, "input.amountMinor: 12955 minor units of EUR are left"},
		"nothing":                 {invoicing.IssueCreditNoteInput{AmountMinor: amount(0)}, domain.CodeBadInput, "input.amountMinor: an amount is at least 1"},
		"less than nothing":       {invoicing.IssueCreditNoteInput{AmountMinor: amount(-1)}, domain.CodeBadInput, "input.amountMinor: an amount is at least 1"},
		"more than a line":        {invoicing.IssueCreditNoteInput{Lines: line(2, amount(1056))}, domain.CodeCreditTooLarge, "input.lines.0.amountMinor: 1055 minor units"},
		"nothing of a line":       {invoicing.IssueCreditNoteInput{Lines: line(2, amount(0))}, domain.CodeBadInput, charge},
		"a charge as a discount":  {invoicing.IssueCreditNoteInput{Lines: line(2, amount(-1))}, domain.CodeBadInput, charge},
		"a discount as a charge":  {invoicing.IssueCreditNoteInput{Lines: line(3, amount(1))}, domain.CodeBadInput, discount},
		"nothing of a discount":   {invoicing.IssueCreditNoteInput{Lines: line(3, amount(0))}, domain.CodeBadInput, discount},
		"more than a discount":    {invoicing.IssueCreditNoteInput{Lines: line(3, amount(-101))}, domain.CodeCreditTooLarge, "input.lines.0.amountMinor: -100 minor units"},
		"a discount alone":        {invoicing.IssueCreditNoteInput{Lines: line(3, nil)}, domain.CodeBadInput, "input.lines: the lines come to -100, and a credit note is of at least 1"},
		"lines that come to none": {invoicing.IssueCreditNoteInput{Lines: append(line(3, nil), line(2, amount(100))...)}, domain.CodeBadInput, "input.lines: the lines come to 0,"},
		"lines for more than all": {invoicing.IssueCreditNoteInput{Lines: append(line(1, nil), line(2, nil)...)}, domain.CodeCreditTooLarge, "input.lines: 12955 minor units"},

		"a line that is not there":    {invoicing.IssueCreditNoteInput{Lines: line(4, nil)}, domain.CodeBadInput, "input.lines.0.line: "},
		"a line twice":                {invoicing.IssueCreditNoteInput{Lines: append(line(1, amount(1)), line(1, amount(1))...)}, domain.CodeBadInput, "input.lines.1.line: "},
		"no line":                     {invoicing.IssueCreditNoteInput{Lines: []invoicing.CreditLineInput{}}, domain.CodeBadInput, "input.lines: "},
		"lines and an amount":         {invoicing.IssueCreditNoteInput{Lines: line(1, nil), AmountMinor: amount(1)}, domain.CodeBadInput, "input.amountMinor: "},
		"by a series of invoices":     {invoicing.IssueCreditNoteInput{SeriesID: &s.series}, domain.CodeSeriesKindMismatch, "input.seriesId: "},
		"by a series that is nowhere": {invoicing.IssueCreditNoteInput{SeriesID: ptr(domain.NewID[domain.SeriesID]())}, domain.CodeNotFound, "input.seriesId: "},
		"on an old version":           {invoicing.IssueCreditNoteInput{Version: new(domain.Version)}, domain.CodeStaleVersion, "input.version: "},
		"a draft":                     {invoicing.IssueCreditNoteInput{InvoiceID: s.draft(t).ID}, domain.CodeIllegalTransition, "input.invoiceId: an invoice that is DRAFT cannot be credited: "},
		"an invoice that is not ours": {invoicing.IssueCreditNoteInput{InvoiceID: domain.NewID[domain.InvoiceID]()}, domain.CodeNotFound, "input.invoiceId: "},
	} {
		if c.in.InvoiceID == (domain.InvoiceID{}) {
			c.in.InvoiceID = invoice.ID
		}
		_, err := s.credit(c.in)
		if codeOf(err) != c.code || !strings.Contains(said(err), c.says) {
			t.Errorf("%s: %s, want %s %s", name, said(err), c.code, c.says)
		}
	}
	issued, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID})
	if err != nil || *issued.Note.Number != "CN-00001" { // nothing that was refused has taken a number
		t.Fatalf("%+v (%v)", issued.Note, err)
	}
	_, err = s.credit(invoicing.IssueCreditNoteInput{InvoiceID: issued.Note.ID})
	if wantCode(t, err, domain.CodeIllegalTransition); !strings.Contains(said(err), "cannot be credited: it is a credit note itself") {
		t.Errorf("a credit note is refused with %s", said(err))
	}
	_, err = s.credit(invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID, Lines: line(2, nil)})
	if wantCode(t, err, domain.CodeCreditTooLarge); !strings.Contains(said(err), "input.lines.0.amountMinor: 0 minor units") {
		t.Errorf("what is credited already is refused with %s", said(err))
	}
	s.healthy(t)
}

// Two credit notes of 60 % each at once, both at the lock before either takes it: one is accepted, and
// the other told what is left.
func TestTwoCreditNotesAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	invoice, amount := s.take(t, s.input()), domain.Cents(5940)
	gate := s.Gate(t, "LockInvoice")
	go func() {
		gate.Await(t, 2)
		gate.Open()
	}()
	var codes [2]string
	together(2, func(i int) {
		_, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID, AmountMinor: &amount})
		codes[i] = string(codeOf(err))
	})
	if slices.Sort(codes[:]); codes != [2]string{"", "CREDIT_TOO_LARGE"} {
		t.Errorf("told %q", codes)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM invoices WHERE kind = 'CREDIT_NOTE'"); n != 1 {
		t.Errorf("%d credit notes", n)
	}
	s.healthy(t)
}

// The database itself refuses to credit, or to take, more than was invoiced: proves the constraints
// behind the lock.
func TestTheDatabaseRefusesMoreThanWasInvoiced(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id := s.take(t, s.input()).ID
	for _, c := range []struct{ sql, constraint string }{
		{"UPDATE invoices SET credited_minor = 9901, refund_due_minor = 1 WHERE id = $1", "invoices_credited_within_total"},
		{"UPDATE invoices SET paid_minor = 9901 WHERE id = $1", "invoices_paid_within_total"},
		{"UPDATE invoices SET paid_minor = 9000, credited_minor = 901 WHERE id = $1", "invoices_settled_exactly"},
		{"UPDATE invoices SET status = 'PAID', paid_at = now(), paid_minor = 9899 WHERE id = $1", "invoices_settled_exactly"},
		{"UPDATE invoices SET refund_due_minor = 1 WHERE id = $1", "invoices_refund_due_within_credit"},
		{"UPDATE invoices SET status = 'VOID', voided_at = now(), void_reason = 'x', paid_minor = 1 WHERE id = $1", "invoices_settled_is_final"},
		{"UPDATE invoices SET status = 'VOID', voided_at = now(), void_reason = 'x', replaced_by = id WHERE id = $1", "invoices_replaced_is_void"},
		{"UPDATE invoices SET replaced_by = (SELECT id FROM invoices LIMIT 1) WHERE id = $1", "invoices_replaced_is_void"},
		{"UPDATE invoices SET seller_revision = NULL WHERE id = $1", "invoices_parties_frozen"},
	} {
		if _, err := s.Owner(t).Exec(t.Context(), c.sql, id); err == nil || !strings.Contains(err.Error(), c.constraint) {
			t.Errorf("%s: %v, want %s", c.sql, err, c.constraint)
		}
	}
	for _, c := range []string{"tax_rate = 20, tax_treatment = 'EXCLUSIVE', tax_minor = 1979", "tax_rate = 20, tax_treatment = 'INCLUSIVE', tax_minor = 1651",
		"tax_minor = 1", "tax_rate = 20", "tax_rate = 101, tax_treatment = 'EXCLUSIVE', tax_minor = 9999"} {
		if _, err := s.Owner(t).Exec(t.Context(), "UPDATE invoice_lines SET "+c); err == nil || !strings.Contains(err.Error(), "invoice_lines_tax_") {
			t.Errorf("%s: %v, want a refusal", c, err)
		}
	}
	s.healthy(t)
}
