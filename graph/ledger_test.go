package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
)

const importNumbers = `mutation ($input: ImportNumbersInput!) { importNumbers(input: $input) {
	change {
		kind dryRun series { code } period nextNumberBefore nextNumber imported voidedElsewhere skipped gapCount gaps { first last } reason
		entries { first last state number issueDate reference reason invoice { id } }
		audit { first last clean issued void imported voidedElsewhere skipped unexplained gapCount gaps { first last } duplicateCount duplicates outOfOrder firstOutOfOrder voids { first reason } }
	}
	replayed
	userErrors { __typename message code path ... on NumbersUnexplainedError { gapCount gaps { first last } } ... on NumbersTakenError { count numbers } }
} }`

const auditSeries = `query ($id: ID!) { seriesAudit(seriesId: $id) {
	series { code } period first last clean issued void imported voidedElsewhere skipped unexplained gapCount duplicateCount outOfOrder firstOutOfOrder
	voids { first state number reason invoice { id status } }
} }`

// An import by CSV: first tried, then done; the ledger then reads each number, and an auditor finds nothing
// unexplained. A void number is listed with its reason.
func TestImportAuditAndReadALedger(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must(t, a.demo.admin, `mutation ($i: VoidInvoiceInput!) { voidInvoice(input: $i) { invoice { id } userErrors { code } } }`,
		vars{"i": vars{"invoiceId": a.demo.neighbourInvoiceID, "reason": "sent twice"}})
	csv := "\ufeffPrinted;Status;Reason;Reference;Last_Number;Number\r\nINV-00003;;;\"A;17\";;\r\n;void;\"wrong\nbuyer\";;;4\r\n;SKIPPED;torn forms;;7;5\r\n"
	input := vars{"seriesId": a.demo.seriesID, "csv": csv, "reason": "from the old system"}
	r := a.must(t, a.demo.admin, importNumbers, vars{"input": input})
	for path, want := range map[string]any{
		"dryRun": true, "nextNumberBefore": "3", "nextNumber": "8", "imported": "1", "voidedElsewhere": "1", "skipped": "3", "gapCount": json0, "audit.clean": true,
		"audit.last": "7", "entries.0.number": "INV-00003", "entries.0.reference": "A;17", "entries.1.reason": "wrong\nbuyer", "entries.2.last": "7", "series.code": "INV", "period": nil,
	} {
		if got := r.at(t, "importNumbers.change."+path); got != want {
			t.Errorf("the dry run's %s is %v, want %v", path, got, want)
		}
	}
	if got := a.must(t, a.demo.admin, auditSeries, vars{"id": a.demo.seriesID}).text(t, "seriesAudit.last"); got != "2" {
		t.Errorf("after the dry run the series ends at %s", got)
	}
	input["dryRun"] = false
	r = a.must(t, a.demo.admin, importNumbers, vars{"input": input})
	if r.at(t, "importNumbers.change.dryRun") != false || r.text(t, "importNumbers.change.audit.last") != "7" || r.text(t, "importNumbers.change.entries.2.state") != "SKIPPED" {
		t.Errorf("the import is answered %s", r.body)
	}
	r = a.must(t, a.demo.admin, auditSeries, vars{"id": a.demo.seriesID})
	for path, want := range map[string]any{
		"first": "1", "last": "7", "clean": true, "issued": "1", "void": "1", "imported": "1", "voidedElsewhere": "1", "skipped": "3", "unexplained": json0, "outOfOrder": json0, "firstOutOfOrder": nil,
		"voids.0.first": "2", "voids.0.reason": "sent twice", "voids.0.invoice.status": "VOID", "voids.1.first": "4", "voids.1.state": "VOIDED_ELSEWHERE", "voids.1.invoice": nil,
	} {
		if got := r.at(t, "seriesAudit."+path); got != want {
			t.Errorf("the audit's %s is %v, want %v", path, got, want)
		}
	}
	other := a.must(t, a.demo.admin, `mutation { createInvoiceSeries(input: {code: "OLD"}) { series { id } } }`, nil).text(t, "createInvoiceSeries.series.id")
	r = a.must(t, a.demo.admin, importNumbers, vars{"input": vars{"seriesId": other, "csv": "number,date\n1,2025-05-02\n2,2025-05-01\n", "reason": "from the old system"}})
	if r.text(t, "importNumbers.change.audit.outOfOrder") != "1" || r.text(t, "importNumbers.change.audit.firstOutOfOrder") != "2" || r.at(t, "importNumbers.change.audit.clean") != true {
		t.Errorf("what is out of order is answered %s", r.body)
	}
	r = a.must(t, a.demo.admin, `query ($id: ID!) { seriesLedger(seriesId: $id) { nodes { first last state number invoice { number } } } }`, vars{"id": a.demo.seriesID})
	want := "1-1 ISSUED INV-00001, 2-2 VOID INV-00002, 3-3 IMPORTED INV-00003, 4-4 VOIDED_ELSEWHERE INV-00004, 5-7 SKIPPED INV-00005"
	var got []string
	for i := range 5 {
		at := fmt.Sprintf("seriesLedger.nodes.%d.", i)
		got = append(got, r.text(t, at+"first")+"-"+r.text(t, at+"last")+" "+r.text(t, at+"state")+" "+r.text(t, at+"number"))
		if number := r.at(t, at+"invoice"); (number != nil) != (i < 2) {
			t.Errorf("line %d has the invoice %v", i, number)
		}
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("the ledger reads %s, want %s", strings.Join(got, ", "), want)
	}
	if number := a.must(t, a.demo.admin, `mutation ($i: AllocateInvoiceInput!) { allocateInvoice(input: $i) { invoice { number } userErrors { code } } }`,
		vars{"i": allocation(a.demo, 100)}).text(t, "allocateInvoice.invoice.number"); number != "INV-00008" {
		t.Errorf("the next number is %s", number)
	}
}

// json0 is the BigInt 0 of the wire.
const json0 = "0"

// What is at fault is told row by row; a gap and a taken number are named.
func TestAnImportTellsItsFaults(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.do(t, a.demo.admin, importNumbers, vars{"input": vars{"seriesId": a.demo.seriesID, "reason": "x", "numbers": []vars{
		{"number": 3}, {"number": 0}, {"number": 3}, {"printed": "INV-3"}, {"number": 5, "lastNumber": 4}, {"date": "2026-01-01"}, {"number": 6, "date": "2999-01-01"},
	}}})
	if got := r.list(t, "importNumbers.userErrors", "path"); len(got) != 6 || !strings.Contains(strings.Join(got, " "), "[input numbers 2 number]") {
		t.Errorf("the faults are at %v: %s", got, r.body)
	}
	r = a.do(t, a.demo.admin, importNumbers, vars{"input": vars{"seriesId": a.demo.seriesID, "reason": "x", "dryRun": false, "numbers": []vars{{"number": 5}, {"number": 8}}}})
	if r.text(t, "importNumbers.userErrors.0.__typename") != "NumbersUnexplainedError" || r.text(t, "importNumbers.userErrors.0.gaps.1.last") != "7" || r.text(t, "importNumbers.userErrors.0.gapCount") != "2" {
		t.Errorf("gaps are answered %s", r.body)
	}
	r = a.do(t, a.demo.admin, importNumbers, vars{"input": vars{"seriesId": a.demo.seriesID, "reason": "x", "numbers": []vars{{"number": 1}, {"number": 2}, {"number": 3}}}})
	if r.text(t, "importNumbers.userErrors.0.__typename") != "NumbersTakenError" || r.text(t, "importNumbers.userErrors.0.count") != "2" || r.text(t, "importNumbers.userErrors.0.numbers.1") != "2" {
		t.Errorf("taken numbers are answered %s", r.body)
	}
	for _, input := range []vars{
		{"reason": "x"}, {"reason": "x", "numbers": []vars{}}, {"reason": "x", "csv": "number\n"}, {"reason": " ", "numbers": []vars{{"number": 3}}},
		{"reason": "x", "csv": "number\n3", "numbers": []vars{{"number": 3}}}, {"reason": "x", "period": "2999-01-01x", "numbers": []vars{{"number": 3}}},
	} {
		input["seriesId"] = a.demo.seriesID
		if r := a.do(t, a.demo.admin, importNumbers, vars{"input": input}); len(r.errors) != 1 || r.errors[0].Extensions["code"] != "BAD_INPUT" {
			t.Errorf("%v is answered %s", input, r.body)
		}
	}
}

// Under one key a change is made once; another input under the key is refused; and a dry run uses no key up.
func TestChangesOfASeriesAreRepeatable(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range []struct {
		mutation, inputType string
		input, other        vars
	}{
		{"importNumbers", "ImportNumbersInput", vars{"numbers": []vars{{"number": 3}}}, vars{"numbers": []vars{{"number": 4}}}},
		{"resyncSeries", "ResyncSeriesInput", vars{"explain": []vars{{"first": 4, "last": 5, "reason": "lost"}}}, vars{"explain": []vars{{"first": 4, "last": 6, "reason": "lost"}}}},
	} {
		ask := func(input vars, dry bool) response {
			asked := changed(input, "seriesId", a.demo.seriesID, "reason", "a secret of the house", "dryRun", dry, "idempotencyKey", "key")
			return a.do(t, a.demo.admin, `mutation ($i: `+c.inputType+`!) { f: `+c.mutation+`(input: $i) { change { dryRun nextNumber } replayed userErrors { code message } } }`, vars{"i": asked})
		}
		if r := ask(c.input, true); r.at(t, "f.change.dryRun") != true || r.at(t, "f.replayed") != false || len(r.extensions) > 0 {
			t.Errorf("%s, tried, is answered %s", c.mutation, r.body)
		}
		first := ask(c.input, false)
		next := first.text(t, "f.change.nextNumber")
		before := a.rows(t)
		for range 2 {
			if r := ask(c.input, false); r.at(t, "f.replayed") != true || r.text(t, "f.change.nextNumber") != next {
				t.Errorf("%s again is answered %s, first %s", c.mutation, r.body, first.body)
			}
		}
		r := ask(c.other, false)
		if got := strings.Join(r.list(t, "f.userErrors", "code"), " "); got != "IDEMPOTENCY_KEY_REUSED" || strings.Contains(r.body, "secret") || a.rows(t) != before {
			t.Errorf("%s with a used key is answered %s", c.mutation, r.body)
		}
	}
	if r := a.must(t, a.demo.admin, `{ doctor { healthy violations { invariant message } } }`, nil); r.at(t, "doctor.healthy") != true {
		t.Errorf("the doctor finds %s", r.body)
	}
}

// TestCase42NestedFaultsOfALedger: an import whose own nested fields cannot be read has been made all the
// same, says so, and is there again by its key.
func TestCase42NestedFaultsOfALedger(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must(t, a.demo.admin, `mutation ($i: VoidInvoiceInput!) { voidInvoice(input: $i) { invoice { id } userErrors { code } } }`,
		vars{"i": vars{"invoiceId": a.demo.neighbourInvoiceID, "reason": "sent twice"}})
	input := vars{"seriesId": a.demo.seriesID, "numbers": []vars{{"number": 3}}, "reason": "x", "dryRun": false, "idempotencyKey": "form"}
	ask := func() response {
		return a.do(t, a.demo.admin, `mutation ($i: ImportNumbersInput!) { f: importNumbers(input: $i) { change { kind entries { first } audit { last voids { first invoice { id } } } } } }`, vars{"i": input})
	}
	for object, fields := range map[string][]string{"SeriesChange": {"entries", "audit"}, "LedgerLine": {"invoice"}} {
		for _, field := range fields {
			a.db.Fail(func(ctx context.Context) bool {
				at := graphql.GetFieldContext(ctx)
				return at != nil && at.Object == object && at.Field.Name == field
			})
			r := ask()
			a.db.Fail(nil)
			if len(r.errors) == 0 || r.text(t, "f.change.kind") != "IMPORT" {
				t.Errorf("with %s.%s failing the import is answered %s", object, field, r.body)
			}
			for _, e := range r.errors {
				if !strings.HasSuffix(e.path(), "."+field) || e.Extensions["code"] != "BUSY" {
					t.Errorf("%s.%s fails with %s at %s", object, field, e.Extensions["code"], e.path())
				}
			}
		}
	}
	if r := ask(); len(r.errors) > 0 || r.text(t, "f.change.audit.last") != "3" || r.text(t, "f.change.entries.0.first") != "3" {
		t.Errorf("asked again: %s", r.body)
	}
}
