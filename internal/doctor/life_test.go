package doctor_test

import (
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
)

// addLives makes, in the series L, an invoice that was a draft and edited, paid in part, and credited
// for the rest and more (paid, by the note credit); one that is void and replaced by paid (void); a
// draft (draft), and one that was deleted (deleted).
func (p *practice) addLives(t *testing.T, b *books) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	series, err := p.service.CreateSeries(ctx, b.caller, invoicing.CreateInvoiceSeriesInput{Code: "L"})
	must(err)
	b.keep("serL", series.Value.ID)
	var rate domain.Decimal
	must(rate.UnmarshalGQL("25"))
	in := b.input(series.Value.ID)
	in.Lines[0].TaxRate = &rate
	draft := func(name string) domain.InvoiceID {
		out, err := p.service.CreateDraft(ctx, b.caller, invoicing.CreateDraftInvoiceInput{CustomerID: in.CustomerID, Currency: "EUR", Lines: in.Lines[:1]})
		must(err)
		b.keep(name, out.Value.ID)
		return out.Value.ID
	}
	draft("draft")
	_, err = p.service.DeleteDraft(ctx, b.caller, invoicing.DeleteDraftInvoiceInput{InvoiceID: draft("deleted")})
	must(err)
	paid := draft("paid")
	now, err := p.service.InvoicesByID(ctx, b.caller, []domain.InvoiceID{paid})
	must(err)
	_, err = p.service.UpdateDraft(ctx, b.caller, invoicing.UpdateDraftInvoiceInput{InvoiceID: paid, Version: now[0].UpdatedAt, Lines: in.Lines}) // 9900 + 2475 - 900
	must(err)
	_, err = p.service.Finalize(ctx, b.caller, invoicing.FinalizeInvoiceInput{InvoiceID: paid, SeriesID: &in.SeriesID})
	must(err)
	_, err = p.usage.Pay(ctx, b.caller, metering.RecordInvoicePaymentInput{InvoiceID: paid, AmountMinor: 5000, Reference: "transfer"})
	must(err)
	amount := domain.Cents(10000)
	credit, err := p.service.IssueCreditNote(ctx, b.caller, invoicing.IssueCreditNoteInput{InvoiceID: paid, AmountMinor: &amount, Reason: "sent back"})
	must(err)
	b.keep("credit", credit.Value.Note.ID)
	void, err := p.service.Allocate(ctx, b.caller, in)
	must(err)
	b.keep("void", void.Value.ID)
	_, err = p.usage.Void(ctx, b.caller, metering.VoidInvoiceInput{InvoiceID: void.Value.ID, Reason: "twice", ReplacedBy: &paid})
	must(err)
	other, err := p.service.CreateCustomer(ctx, b.caller, invoicing.CreateCustomerInput{Name: "Knight AG", Currency: "EUR"})
	must(err)
	b.keep("other", other.Value.ID)
	b.names[b.tenant.String()] = "tenant"
}

// lifeDamages are what can befall an invoice's life.
var lifeDamages = []damage{
	{
		name: "a tax is changed",
		sql:  []string{`UPDATE invoices SET tax_minor = tax_minor + 1 WHERE id = @paid`},
		want: []string{"TAX_IS_SUM_OF_LINES paid"}, says: "the tax is 2476, its lines' taxes sum to 2475",
	},
	{
		name: "a draft's old lines count again",
		sql:  []string{`UPDATE invoices SET lines_from = 1 WHERE id = @paid`},
		want: []string{"TAX_IS_SUM_OF_LINES paid", "TOTAL_IS_SUM_OF_LINES paid"},
	},
	{
		name: "a draft has a number",
		sql:  []string{`UPDATE invoices SET number = 'X', seller_revision = 1, buyer_revision = 1 WHERE id = @draft`},
		want: []string{"DRAFT_NOT_NUMBERED draft"}, says: "the number X",
	},
	{
		name: "an invoice has lost its buyer",
		sql:  []string{`UPDATE invoices SET buyer_revision = NULL WHERE id = @a1`},
		want: []string{"PARTIES_FROZEN a1"}, says: "no buyer",
	},
	{
		name: "an invoice has a seller that never was",
		sql:  []string{`UPDATE invoices SET seller_revision = 7 WHERE id = @a1`},
		want: []string{"PARTIES_FROZEN a1"}, says: "no seller",
	},
	{
		name: "a draft has a frozen buyer",
		sql:  []string{`UPDATE invoices SET buyer_revision = 1 WHERE id = @draft`},
		want: []string{"PARTIES_FROZEN draft"}, says: "has no number",
	},
	{
		name: "a customer is renamed without a revision",
		sql:  []string{`UPDATE customers SET name = 'Somebody' WHERE id = @other`},
		want: []string{"PARTY_IS_ITS_LAST_REVISION other"},
	},
	{
		name: "a seller's tax id is changed without a revision",
		sql:  []string{`UPDATE sellers SET tax_ids = '[{}]' WHERE tenant_id = (SELECT tenant_id FROM customers WHERE id = @other)`},
		want: []string{"PARTY_IS_ITS_LAST_REVISION tenant"},
	},
	{
		name: "a payment is lost",
		sql:  []string{`DELETE FROM invoice_payments WHERE invoice_id = @paid`},
		want: []string{"PAYMENTS_ACCOUNTED_FOR paid"}, says: "it is said that 5000 is paid, the payments sum to 0",
	},
	{
		name: "a payment is in another currency",
		sql:  []string{`UPDATE invoice_payments SET currency = 'CHF' WHERE invoice_id = @paid`},
		want: []string{"PAYMENTS_ACCOUNTED_FOR paid"},
	},
	{
		name: "more is said to be paid",
		sql:  []string{`UPDATE invoices SET paid_minor = paid_minor + 1 WHERE id = @paid`},
		want: []string{"PAYMENTS_ACCOUNTED_FOR paid", "SETTLED_EXACTLY paid"},
	},
	{
		name: "a credit is forgotten, and the refund with it",
		sql:  []string{`UPDATE invoices SET credited_minor = 0, refund_due_minor = 0 WHERE id = @paid`},
		want: []string{"CREDITS_ACCOUNTED_FOR paid", "SETTLED_EXACTLY paid"}, says: "it is said that 0 is credited and 0 to be given back, the credit notes sum to 10000 and 3525",
	},
	{
		name: "a credit note is another customer's",
		sql:  []string{`UPDATE invoices SET customer_id = @other WHERE id = @credit`},
		want: []string{"CREDITS_ACCOUNTED_FOR credit paid"},
	},
	{
		name: "a credit note is dated before its invoice",
		sql:  []string{`UPDATE invoices SET issue_date = issue_date - 1 WHERE id = @credit`},
		want: []string{"CREDIT_AFTER_INVOICE credit paid"}, says: "and credits an invoice that was issued on",
	},
	{
		name: "a line is credited for more than it was",
		sql:  []string{`UPDATE invoice_lines SET credits_line = (SELECT max(position) FROM invoice_lines WHERE invoice_id = @paid) WHERE invoice_id = @credit AND position = 1`},
		want: []string{"CREDITS_ACCOUNTED_FOR paid"}, says: "of it is credited",
	},
	{
		name: "what is void has been paid for",
		sql:  []string{`UPDATE invoices SET paid_minor = 1 WHERE id = @void`},
		want: []string{"PAYMENTS_ACCOUNTED_FOR void", "SETTLED_EXACTLY void"},
	},
	{
		name: "what is void is replaced by a draft",
		sql:  []string{`UPDATE invoices SET replaced_by = @draft WHERE id = @void`},
		want: []string{"REPLACEMENT_STANDS void draft"},
	},
	{
		name: "a step is lost",
		sql:  []string{`DELETE FROM invoice_history WHERE invoice_id = @paid AND event = 'FINALISED'`},
		want: []string{"INVOICE_HISTORY_LEGAL paid"}, says: "step 2 is missing",
	},
	{
		name: "a deleted draft has no history",
		sql:  []string{`DELETE FROM invoice_history WHERE invoice_id = @deleted`},
		want: []string{"INVOICE_HISTORY_LEGAL deleted"}, says: "nothing says how it came there",
	},
	{
		name: "the last step ended elsewhere",
		sql:  []string{`UPDATE invoice_history SET to_status = 'PENDING' WHERE invoice_id = @paid AND event = 'CREDITED'`},
		want: []string{"INVOICE_HISTORY_LEGAL paid"}, says: "the invoice is PAID, its last step ended at PENDING",
	},
	{
		name: "a step that there is none of",
		sql:  []string{`UPDATE invoice_history SET from_status = 'ISSUED' WHERE invoice_id = @void`},
		want: []string{"INVOICE_HISTORY_LEGAL void"}, says: "goes from ISSUED to VOID",
	},
}
