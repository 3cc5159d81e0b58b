package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

const invoiceOfDraft = `{ id number status total { amountMinor } netTotal { amountMinor } taxTotal { amountMinor } amountDue { amountMinor } version
	taxes { rate net { amountMinor } tax { amountMinor } } lines { net { amountMinor } tax { amountMinor } gross { amountMinor } taxRate taxTreatment }
	seller { name revision } buyer { name address { line1 country } taxIds { scheme value } revision }
	history { event fromStatus toStatus detail by operationId } }`

func (a *api) mutate(t *testing.T, field string, input vars) response {
	t.Helper()
	name := strings.ToUpper(field[:1]) + field[1:]
	return a.do(t, a.demo.service, `mutation ($i: `+name+`Input!) { f: `+field+`(input: $i) { invoice `+invoiceOfDraft+
		` replayed userErrors { __typename code path ... on IllegalInvoiceTransitionError { from to } } } }`, vars{"i": input})
}

// TestLifeOfADraft: it is edited, made final under a number, and shows its tax and its parties; each
// step is safe to repeat, by its key or without one; a customer sees no draft.
func TestLifeOfADraft(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.mutate(t, "createDraftInvoice", vars{"customerId": a.demo.customerID, "currency": "EUR", "lines": []vars{
		{"description": "Chess set", "quantity": 3, "unitAmountMinor": "333", "taxRate": "20"},
	}})
	id := r.text(t, "f.invoice.id")
	if r.text(t, "f.invoice.status") != "DRAFT" || r.at(t, "f.invoice.number") != nil || r.text(t, "f.invoice.amountDue.amountMinor") != "0" {
		t.Errorf("the draft is answered %s", r.body)
	}
	asCustomer := func() any {
		return a.do(t, a.demo.customer, `query ($id: ID!) { invoice(id: $id) { id } }`, vars{"id": id}).at(t, "invoice")
	}
	if asCustomer() != nil || strings.Contains(a.do(t, a.demo.customer, `{ invoices { nodes { id } } }`, nil).body, id) {
		t.Error("the customer sees a draft")
	}
	edit := vars{"invoiceId": id, "version": r.text(t, "f.invoice.version"), "idempotencyKey": "edit", "lines": []vars{
		{"description": "Chess set", "quantity": 1, "unitAmountMinor": "12000", "taxRate": "20.0", "taxTreatment": "INCLUSIVE"},
		{"description": "Book", "quantity": 1, "unitAmountMinor": "1000", "taxRate": "5.5"},
		{"description": "Stamp", "quantity": 1, "unitAmountMinor": "90"},
	}}
	for _, replayed := range []bool{false, true} {
		r = a.mutate(t, "updateDraftInvoice", edit)
		if r.at(t, "f.replayed") != replayed || r.text(t, "f.invoice.total.amountMinor") != "13145" || r.text(t, "f.invoice.taxTotal.amountMinor") != "2055" {
			t.Errorf("the edit is answered %s", r.body)
		}
	}
	if !strings.Contains(r.body, `"taxes":[{"rate":null,"net":{"amountMinor":"90"},"tax":{"amountMinor":"0"}},{"rate":"5.5","net":{"amountMinor":"1000"},"tax":{"amountMinor":"55"}},{"rate":"20.0","net":{"amountMinor":"10000"},"tax":{"amountMinor":"2000"}}]`) {
		t.Errorf("the taxes are answered %s", r.body)
	}
	edit["idempotencyKey"] = "another"
	if r := a.mutate(t, "updateDraftInvoice", edit); !strings.Contains(r.body, `"code":"STALE_VERSION"`) {
		t.Errorf("an edit of an old version is answered %s", r.body)
	}
	for i, want := range []bool{false, true, true} {
		r = a.mutate(t, "finalizeInvoice", vars{"invoiceId": id, "idempotencyKey": fmt.Sprint("finalize ", i/2)})
		if r.at(t, "f.replayed") != want || r.text(t, "f.invoice.number") != "INV-00003" || r.text(t, "f.invoice.amountDue.amountMinor") != "13145" {
			t.Errorf("finalised for the %d. time: %s", i+1, r.body)
		}
	}
	if got := strings.Join(r.list(t, "f.invoice.history", "event"), " "); got != "CREATED EDITED FINALISED" {
		t.Errorf("the history is %s", got)
	}
	if asCustomer() == nil {
		t.Error("the customer does not see its invoice")
	}
	for _, field := range []string{"deleteDraftInvoice", "updateDraftInvoice"} {
		in := vars{"invoiceId": id}
		if field == "updateDraftInvoice" {
			in = edit
			in["idempotencyKey"] = "a third"
		}
		if r := a.mutate(t, field, in); !strings.Contains(r.body, `"__typename":"IllegalInvoiceTransitionError"`) || !strings.Contains(r.body, `"from":"PENDING"`) {
			t.Errorf("%s of a final invoice is answered %s", field, r.body)
		}
	}
	for _, of := range []struct {
		invoice  string
		replayed bool
	}{{id, true}, {a.draft(t, a.demo, a.demo.customerID), false}} { // a key that has done nothing stays free
		if r := a.mutate(t, "finalizeInvoice", vars{"invoiceId": of.invoice, "idempotencyKey": "free"}); r.at(t, "f.replayed") != of.replayed || r.text(t, "f.invoice.id") != of.invoice {
			t.Errorf("under a key of its own: %s", r.body)
		}
	}
	gone := a.draft(t, a.demo, a.demo.customerID)
	for _, replayed := range []bool{false, true} { // under two keys
		r = a.mutate(t, "deleteDraftInvoice", vars{"invoiceId": gone, "reason": "a mistake"})
		if r.at(t, "f.replayed") != replayed || r.text(t, "f.invoice.status") != "DELETED" {
			t.Errorf("the deletion is answered %s", r.body)
		}
	}
	if !strings.Contains(r.body, `{"event":"DELETED","fromStatus":"DRAFT","toStatus":"DELETED","detail":"a mistake","by":"tok_`) {
		t.Errorf("the deletion's history is answered %s", r.body)
	}
	if strings.Contains(a.do(t, a.demo.service, `{ invoices { nodes { id } } }`, nil).body, gone) ||
		!strings.Contains(a.do(t, a.demo.service, `{ invoices(filter: {status: DELETED}) { nodes { id } } }`, nil).body, gone) {
		t.Error("a deleted draft is listed unasked, or not listed where it is asked for")
	}
	a.wantHealthy(t)
}

func (a *api) wantHealthy(t *testing.T) {
	t.Helper()
	if r := a.must(t, a.demo.admin, `{ doctor { healthy violations { invariant message ids } } }`, nil); r.at(t, "doctor.healthy") != true {
		t.Errorf("the doctor finds %s", r.body)
	}
}

// TestSellerIsChangedOnce: the seller is changed by its version, safely repeated, and a bad address is
// refused by its path; what has a number keeps the seller it was numbered with, what has none shows
// the one of now.
func TestSellerIsChangedOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	version := a.must(t, a.demo.admin, `{ seller { name version } }`, nil).text(t, "seller.version")
	change := func(input vars) response {
		return a.do(t, a.demo.admin, `mutation ($i: UpdateSellerInput!) { f: updateSeller(input: $i) { seller { name email address { line1 city country } taxIds { scheme value } revision version }
			replayed userErrors { code path } } }`, vars{"i": input})
	}
	draft := a.draft(t, a.demo, a.demo.customerID)
	in := vars{"version": version, "name": "Rook GmbH", "email": "billing@rook.example", "address": vars{"line1": "Turmweg 1", "city": "Berlin", "country": "DE"},
		"taxIds": []vars{{"scheme": "VAT", "value": "DE000000000"}}, "idempotencyKey": "rename"}
	for _, replayed := range []bool{false, true} {
		if r := change(in); r.at(t, "f.replayed") != replayed || r.text(t, "f.seller.name") != "Rook GmbH" || r.text(t, "f.seller.address.city") != "Berlin" {
			t.Errorf("the change is answered %s", r.body)
		}
	}
	now := a.must(t, a.demo.admin, `{ seller { version } }`, nil).text(t, "seller.version")
	for want, in := range map[string]vars{
		"STALE_VERSION": {"version": version, "name": "x"},
	} {
		if r := change(in); !strings.Contains(r.body, want) {
			t.Errorf("%v is answered %s", in, r.body)
		}
	}
	if r := change(vars{"version": now, "address": vars{"line1": "x", "country": "Germany"}}); len(r.errors) != 1 || !strings.Contains(r.body, `"input","address","country"`) {
		t.Errorf("a country by its name is answered %s", r.body)
	}
	seller := func(id string) string {
		return a.must(t, a.demo.customer, `query ($id: ID!) { invoice(id: $id) { seller { name } } }`, vars{"id": id}).text(t, "invoice.seller.name")
	}
	if got := seller(a.demo.invoiceID); got != "Tenant demo" {
		t.Errorf("an old invoice shows %s", got)
	}
	if r := a.must(t, a.demo.service, `query ($id: ID!) { invoice(id: $id) { seller { name taxIds { value } } } }`, vars{"id": draft}); r.text(t, "invoice.seller.name") != "Rook GmbH" {
		t.Errorf("a draft shows %s", r.body)
	}
	a.wantHealthy(t)
}

// TestCreditNoteOfTheWire: it takes back from an invoice, by lines, an amount or all, under a number
// of its own; more than is left is refused with what is left; the customer sees it.
func TestCreditNoteOfTheWire(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	credit := func(input vars) response {
		return a.do(t, a.demo.service, `mutation ($i: IssueCreditNoteInput!) { f: issueCreditNote(input: $i) {
			creditNote { id number kind status total { amountMinor } refundDue { amountMinor } creditReason creditedInvoice { id } series { code } lines { gross { amountMinor } } }
			invoice { status amountDue { amountMinor } amountCredited { amountMinor } refundDue { amountMinor } }
			replayed userErrors { __typename code path ... on CreditTooLargeError { creditLeft { amountMinor } } ... on IllegalInvoiceTransitionError { message from to } } } }`, vars{"i": input})
	}
	in := vars{"invoiceId": a.demo.invoiceID, "amountMinor": 4000, "reason": "scratched", "idempotencyKey": "credit"}
	for _, replayed := range []bool{false, true} {
		r := credit(in)
		if r.at(t, "f.replayed") != replayed || r.text(t, "f.creditNote.number") != "CN-00001" || r.text(t, "f.creditNote.creditedInvoice.id") != a.demo.invoiceID ||
			r.text(t, "f.invoice.amountDue.amountMinor") != "5900" {
			t.Errorf("the credit note is answered %s", r.body)
		}
	}
	in["amountMinor"] = 5901
	if r := credit(in); !strings.Contains(r.body, "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("the same key with another amount is answered %s", r.body)
	}
	delete(in, "idempotencyKey")
	if r := credit(in); !strings.Contains(r.body, `"__typename":"CreditTooLargeError","code":"CREDIT_TOO_LARGE","path":["input","amountMinor"],"creditLeft":{"amountMinor":"5900"}`) {
		t.Errorf("too much is answered %s", r.body)
	}
	if r := credit(vars{"invoiceId": a.draft(t, a.demo, a.demo.customerID), "reason": "x"}); !strings.Contains(r.body, `"path":["input","invoiceId"],"message":"an invoice that is DRAFT cannot be credited: it asks for nothing yet, and is edited, or deleted","from":"DRAFT","to":"PAID"`) {
		t.Errorf("a draft is answered %s", r.body)
	}
	for _, of := range []vars{{"amountMinor": 0}, {"issueDate": "2020-01-05"}} {
		in := changed(of, "invoiceId", a.demo.invoiceID, "reason", "x")
		if r := credit(in); len(r.errors) != 1 || r.errors[0].Extensions["code"] != "BAD_INPUT" {
			t.Errorf("%v is answered %s", in, r.body)
		}
	}
	if r := credit(vars{"invoiceId": a.demo.invoiceID, "reason": "sent back", "lines": []vars{{"line": 1}}}); r.text(t, "f.invoice.status") != "PAID" || r.text(t, "f.creditNote.total.amountMinor") != "5900" {
		t.Errorf("the rest is answered %s", r.body)
	}
	r := a.must(t, a.demo.customer, `query ($id: ID!) { invoice(id: $id) { status amountPaid { amountMinor } creditNotes { id number kind } } }`, vars{"id": a.demo.invoiceID})
	if got := strings.Join(r.list(t, "invoice.creditNotes", "number"), " "); got != "CN-00001 CN-00002" {
		t.Errorf("the customer's invoice is answered %s", r.body)
	}
	a.wantHealthy(t)
}

// TestPaymentsInPart: each payment is told, an overpayment says what is due, and a reference counts
// once.
func TestPaymentsInPart(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	pay := func(amount int, reference string) response {
		return a.do(t, a.demo.service, `mutation ($i: RecordInvoicePaymentInput!) { f: recordInvoicePayment(input: $i) {
			invoice { status amountDue { amountMinor } amountPaid { amountMinor } payments { amount { amountMinor } reference provider by } }
			userErrors { code path ... on AmountMismatchError { amountDue { amountMinor } } } } }`, vars{"i": vars{"invoiceId": a.demo.invoiceID, "amountMinor": amount, "reference": reference}})
	}
	if r := pay(4000, "first"); r.text(t, "f.invoice.status") != "PENDING" || r.text(t, "f.invoice.amountDue.amountMinor") != "5900" {
		t.Errorf("the first part is answered %s", r.body)
	}
	if r := pay(1000, "first"); !strings.Contains(r.body, `{"code":"REFERENCE_TAKEN","path":["input","reference"]}`) {
		t.Errorf("the same transfer under another key is answered %s", r.body)
	}
	if r := pay(5901, "second"); !strings.Contains(r.body, `{"code":"AMOUNT_MISMATCH","path":["input","amountMinor"],"amountDue":{"amountMinor":"5900"}}`) {
		t.Errorf("an overpayment is answered %s", r.body)
	}
	for _, amount := range []int{0, -1} {
		if r := pay(amount, "nothing"); !strings.Contains(r.body, `AMOUNT_MISMATCH`) {
			t.Errorf("a payment of %d is answered %s", amount, r.body)
		}
	}
	if r := pay(5900, "second"); r.text(t, "f.invoice.status") != "PAID" || strings.Join(r.list(t, "f.invoice.payments", "reference"), " ") != "first second" {
		t.Errorf("the second part is answered %s", r.body)
	}
	a.wantHealthy(t)
}
