package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

const makeSeries = `mutation ($input: CreateInvoiceSeriesInput!) { createInvoiceSeries(input: $input) {
	series { id code document format reset timeZone fiscalYearStartMonth maxLength allowedCharacters capacity maxNumber preset
		counter { nextNumber periodStart lastIssueDate } }
	userErrors { __typename code message path ... on PresetViolatedError { preset source } } } }`

// Everything that a series is made by can be read from it, and where it stands.
func TestASeriesSaysHowItNumbers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.must(t, a.demo.admin, makeSeries, vars{"input": vars{"code": "IN", "preset": "INDIA", "document": "INVOICE"}})
	for field, want := range map[string]any{
		"document": "INVOICE", "format": "{CODE}/{FY}/{N:4}", "reset": "FISCAL_YEARLY", "timeZone": "Asia/Kolkata", "allowedCharacters": "ALPHANUMERIC_DASH_SLASH",
		"capacity": "9999", "maxNumber": "99999", "preset": "INDIA", "counter.nextNumber": "1", "counter.periodStart": nil, "counter.lastIssueDate": nil,
	} {
		if got := r.at(t, "createInvoiceSeries.series."+field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	series := r.text(t, "createInvoiceSeries.series.id")
	number := a.must(t, a.demo.admin, `mutation ($input: AllocateInvoiceInput!) { allocateInvoice(input: $input) { invoice { number issueDate } } }`, vars{"input": vars{
		"seriesId": series, "customerId": a.demo.customerID, "currency": "EUR", "issueDate": "2026-03-31",
		"lines": []any{vars{"description": "Rook", "quantity": 1, "unitAmountMinor": "100"}},
	}}).text(t, "allocateInvoice.invoice.number")
	if number != "IN/2025-26/0001" {
		t.Errorf("the first number is %s", number)
	}
	r = a.must(t, a.demo.service, `query ($id: ID!) { invoiceSeries(id: $id) { counter { nextNumber periodStart lastIssueDate } } }`, vars{"id": series})
	for field, want := range map[string]string{"nextNumber": "2", "periodStart": "2025-04-01", "lastIssueDate": "2026-03-31"} {
		if got := r.text(t, "invoiceSeries.counter."+field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	// A plain one says what it did not ask for.
	r = a.must(t, a.demo.admin, makeSeries, vars{"input": vars{"code": "NC", "document": "CREDIT_NOTE", "reset": "MONTHLY"}})
	for field, want := range map[string]any{
		"document": "CREDIT_NOTE", "format": "{CODE}-{YYYY}-{MM}-{N:5}", "reset": "MONTHLY", "capacity": "999999", "preset": nil, "allowedCharacters": "PLAIN",
	} {
		if got := r.at(t, "createInvoiceSeries.series."+field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
}

// What would go wrong is said when the series is made, about the argument that is at fault.
func TestASeriesThatWouldGoWrongIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range []struct {
		input            vars
		code, path, says string
	}{
		{vars{"format": "IN/{FY}/{N:5}", "reset": "FISCAL_YEARLY", "fiscalYearStartMonth": 4, "maxLength": 16},
			"INVALID_FORMAT", "format", "at number 100000 the number would have 17 characters"},
		{vars{"format": "{CODE}-{N:5}", "reset": "YEARLY"}, "INVALID_FORMAT", "format", "would print X-00001 twice, on 2026-12-15 and on 2027-01-15"},
		{vars{"format": "INV-{N}"}, "INVALID_FORMAT", "format", "the series INV, whose format is {CODE}-{N:5}, could print the same numbers"},
		{vars{"preset": "INDIA", "maxLength": 17}, "PRESET_VIOLATED", "maxLength", "CGST Rules 2017, rule 46 (b): a number has at most 16 characters"},
		{vars{"preset": "INDIA", "format": "{CODE} {FY} {N}"}, "INVALID_FORMAT", "format", "prints the character ' '"},
	} {
		c.input["code"] = "X"
		r := a.do(t, a.demo.admin, makeSeries, vars{"input": c.input})
		code, message := r.text(t, "createInvoiceSeries.userErrors.0.code"), r.text(t, "createInvoiceSeries.userErrors.0.message")
		if code != c.code || !strings.Contains(string(r.body), `"path":["input","`+c.path+`"]`) || !strings.Contains(message, c.says) || r.at(t, "createInvoiceSeries.series") != nil {
			t.Errorf("%v: %s", c.input, r.body)
		}
		if c.code == "PRESET_VIOLATED" && (r.text(t, "createInvoiceSeries.userErrors.0.__typename") != "PresetViolatedError" || r.text(t, "createInvoiceSeries.userErrors.0.preset") != "INDIA") {
			t.Errorf("%v: the error does not name the law", c.input)
		}
	}
	r := a.do(t, a.demo.admin, makeSeries, vars{"input": vars{"code": "X", "maxLength": 65}})
	if len(r.errors) != 1 {
		t.Errorf("65 characters: %s", r.body)
	}
}

// The presets are offered with their sources, and each makes a series as it stands.
func TestPresetsAreOffered(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.must(t, a.demo.service, `{ seriesPresets { preset source summary format reset fiscalYearStartMonth timeZone maxLength maxLengthSource allowedCharacters capacity creditNotesInOwnSeries } }`, nil)
	presets := r.list(t, "seriesPresets", "preset")
	if len(presets) != 6 {
		t.Fatalf("the presets are %v", presets)
	}
	for i, preset := range presets {
		if source := r.at(t, fmt.Sprintf("seriesPresets.%d.maxLengthSource", i)); (source == nil) != (preset == "EU" || preset == "FRANCE" || preset == "GERMANY") {
			t.Errorf("the length of %s comes from %v", preset, source)
		}
		r := a.must(t, a.demo.admin, makeSeries, vars{"input": vars{"code": preset[:2], "preset": preset}})
		if got := r.text(t, "createInvoiceSeries.series.preset"); got != preset {
			t.Errorf("made by %s: %s", preset, got)
		}
	}
}
