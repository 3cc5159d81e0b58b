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

// Never more than was invoiced, of the invoice and of each line; and only of what is final.
func TestWhatIsNotCredited(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	invoice := s.taxed(t)
	amount := func(c domain.Cents) *domain.Cents { return &c }
	line := func(n int32, c *domain.Cents) []invoicing.CreditLineInput {
		return []invoicing.CreditLineInput{{Line: n, AmountMinor: c}}
	}
	for name, c := range map[string]struct {
		in   invoicing.IssueCreditNoteInput
		want domain.Code
	}{
		"more than all":               {invoicing.IssueCreditNoteInput{AmountMinor: amount(12956)}, domain.CodeCreditTooLarge},
		"nothing":                     {invoicing.IssueCreditNoteInput{AmountMinor: amount(0)}, domain.CodeCreditTooLarge},
		"less than nothing":           {invoicing.IssueCreditNoteInput{AmountMinor: amount(-1)}, domain.CodeCreditTooLarge},
		"more than a line":            {invoicing.IssueCreditNoteInput{Lines: line(2, amount(1056))}, domain.CodeCreditTooLarge},
		"a discount as a charge":      {invoicing.IssueCreditNoteInput{Lines: line(3, amount(1))}, domain.CodeCreditTooLarge},
		"a discount alone":            {invoicing.IssueCreditNoteInput{Lines: line(3, nil)}, domain.CodeCreditTooLarge},
		"lines for more than all":     {invoicing.IssueCreditNoteInput{Lines: append(line(1, nil), line(2, nil)...)}, domain.CodeCreditTooLarge},
		"a line that is not there":    {invoicing.IssueCreditNoteInput{Lines: line(4, nil)}, domain.CodeBadInput},
		"a line twice":                {invoicing.IssueCreditNoteInput{Lines: append(line(1, amount(1)), line(1, amount(1))...)}, domain.CodeBadInput},
		"no line":                     {invoicing.IssueCreditNoteInput{Lines: []invoicing.CreditLineInput{}}, domain.CodeBadInput},
		"lines and an amount":         {invoicing.IssueCreditNoteInput{Lines: line(1, nil), AmountMinor: amount(1)}, domain.CodeBadInput},
		"by a series of invoices":     {invoicing.IssueCreditNoteInput{SeriesID: &s.series}, domain.CodeSeriesKindMismatch},
		"on an old version":           {invoicing.IssueCreditNoteInput{Version: new(domain.Version)}, domain.CodeStaleVersion},
		"a draft":                     {invoicing.IssueCreditNoteInput{InvoiceID: s.draft(t).ID}, domain.CodeIllegalTransition},
		"an invoice that is not ours": {invoicing.IssueCreditNoteInput{InvoiceID: domain.NewID[domain.InvoiceID]()}, domain.CodeNotFound},
	} {
		if c.in.InvoiceID == (domain.InvoiceID{}) {
			c.in.InvoiceID = invoice.ID
		}
		if _, err := s.credit(c.in); codeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	issued, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID})
	if err != nil || *issued.Note.Number != "CN-00001" { // nothing that was refused has taken a number
		t.Fatalf("%+v (%v)", issued.Note, err)
	}
	_, err = s.credit(invoicing.IssueCreditNoteInput{InvoiceID: issued.Note.ID})
	wantCode(t, err, domain.CodeIllegalTransition)
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
