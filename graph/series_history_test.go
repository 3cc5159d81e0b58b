package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// A series tells which periods it has left and with which numbers, and what was done to it beside
// numbering, by whom and why; a dry run leaves nothing. Page by page it reads alike, forward and backward.
func TestASeriesTellsItsPeriodsAndChanges(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	series := a.must(t, a.demo.admin, makeSeries, vars{"input": vars{"code": "Y", "reset": "YEARLY"}}).text(t, "createInvoiceSeries.series.id")
	change := func(mutation, input string, more vars) {
		t.Helper()
		r := a.must(t, a.demo.admin, `mutation ($i: `+input+`!) { f: `+mutation+`(input: $i) { change { nextNumber } userErrors { code message } } }`,
			vars{"i": changed(more, "seriesId", series)})
		if r.at(t, "f.change") == nil {
			t.Fatalf("%s: %s", mutation, r.body)
		}
	}
	change("importNumbers", "ImportNumbersInput", vars{"period": "2020-01-01", "csv": "number,last_number,status\n1,3,\n4,,void\n", "reason": "the first year", "dryRun": false})
	change("importNumbers", "ImportNumbersInput", vars{"period": "2021-06-30", "numbers": []vars{{"number": 1, "lastNumber": 9}}, "reason": "a try"})
	change("importNumbers", "ImportNumbersInput", vars{"period": "2021-06-30", "numbers": []vars{{"number": 1, "lastNumber": 9}}, "reason": "the second year", "dryRun": false})
	change("resyncSeries", "ResyncSeriesInput", vars{"explain": []vars{{"first": 10, "last": 11, "reason": "torn forms"}}, "reason": "lost forms", "dryRun": false})
	change("importNumbers", "ImportNumbersInput", vars{"period": "2023-01-01", "numbers": []vars{{"number": 1}}, "reason": "after a year without any", "dryRun": false})

	const fields = `position kind period first last imported voidedElsewhere skipped nextNumberBefore nextNumber reason by`
	r := a.must(t, a.demo.admin, `query ($id: ID!) { invoiceSeries(id: $id) { periods { nodes { start first last closedAt } } changes { nodes { at `+fields+` } } } }`, vars{"id": series})
	told := func(list, fields string) string {
		var lines []string
		rows := r.list(t, "invoiceSeries."+list+".nodes", "first")
		for i := range rows {
			var cells []string
			for _, field := range strings.Fields(fields) {
				cells = append(cells, fmt.Sprint(r.at(t, fmt.Sprintf("invoiceSeries.%s.nodes.%d.%s", list, i, field))))
			}
			lines = append(lines, strings.Join(cells, " "))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := told("periods", "start first last"), "2020-01-01 1 4\n2021-01-01 1 11"; got != want {
		t.Errorf("the periods are\n%s\nwant\n%s", got, want)
	}
	want := "1 IMPORT 2020-01-01 1 4 3 1 0 1 5 the first year\n2 IMPORT 2021-01-01 1 9 9 0 0 1 10 the second year\n" +
		"3 RESYNC 2021-01-01 10 11 0 0 2 10 12 lost forms\n4 IMPORT 2023-01-01 1 1 1 0 0 1 2 after a year without any"
	if got := told("changes", strings.TrimSuffix(fields, " by")); got != want {
		t.Errorf("the changes are\n%s\nwant\n%s", got, want)
	}
	for i := range 4 {
		if by := r.text(t, fmt.Sprintf("invoiceSeries.changes.nodes.%d.by", i)); !strings.HasPrefix(by, "tok_") {
			t.Errorf("change %d was made by %s", i, by)
		}
	}
	if left, second := r.text(t, "invoiceSeries.periods.nodes.0.closedAt"), r.text(t, "invoiceSeries.changes.nodes.1.at"); left != second {
		t.Errorf("the first year was left at %s, by a change at %s", left, second)
	}
	for _, c := range []struct {
		list, id string
		n        int
	}{{"periods", "start", 2}, {"changes", "reason", 4}} {
		list := connection{c.list, `{ invoiceSeries(id: "` + series + `") { ` + c.list + `%s { edges { cursor node { id: ` + c.id + ` } } nodes { id: ` + c.id + ` }
			pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`, "invoiceSeries." + c.list}
		forward, backward := a.walk(t, list, 1, false), a.walk(t, list, 1, true)
		for i := range forward {
			if len(forward) != c.n || len(backward) != c.n || forward[i] != backward[c.n-1-i] {
				t.Fatalf("%s read %v, from their end %v", c.list, forward, backward)
			}
		}
	}
}

// A series that never resets has left no period, and its changes are of none. Changes are for admins; periods for
// whoever reads the counter.
func TestWhoReadsASeriesHistory(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	_, err := a.service.ImportNumbers(t.Context(), a.demo.adminCaller(), invoicing.ImportNumbersInput{
		SeriesID: parse[domain.SeriesID](t, a.demo.seriesID), Numbers: &[]domain.ImportedNumber{{Number: new(int64(3))}}, Reason: "x", DryRun: new(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	const query = `query ($id: ID!) { invoiceSeries(id: $id) { code periods { nodes { start } } changes { nodes { period nextNumber } } } }`
	r := a.must(t, a.demo.admin, query, vars{"id": a.demo.seriesID})
	if r.text(t, "invoiceSeries.changes.nodes.0.nextNumber") != "4" || r.at(t, "invoiceSeries.changes.nodes.0.period") != nil || len(r.list(t, "invoiceSeries.periods.nodes", "start")) != 0 {
		t.Errorf("the admin reads %s", r.body)
	}
	r = a.do(t, a.demo.service, query, vars{"id": a.demo.seriesID})
	wantForbidden(t, "SERVICE", "InvoiceSeries.changes", r)
	if r.at(t, "invoiceSeries.periods") == nil || r.at(t, "invoiceSeries.changes") != nil || r.text(t, "invoiceSeries.code") != "INV" {
		t.Errorf("a service reads %s", r.body)
	}
}
