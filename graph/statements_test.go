package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestStatementsDoNotGrowWithRows: what a list's rows refer to, and what that refers to in turn, is
// read for all of them at once: the same statements answer 25 rows and 100, each sent once, however
// often and by whichever way the query names the rows; and the answer is the same.
func TestStatementsDoNotGrowWithRows(t *testing.T) {
	t.Parallel()
	a, metered := newAPI(t), newAPI(t) // usage makes invoices of its own
	for _, l := range []struct {
		on                    *api
		list, typ, row, again string
		ids                   []string
		reads                 string
	}{
		{
			a, "invoices", "Invoice", `id customer { id name } series { code } lines { description exactAmount } taxes { rate net { amountMinor } } seller { name } buyer { name revision }
			payments { reference } creditNotes { id creditedInvoice { id } } replacedBy { id }`, `customer { id }`,
			a.manyInvoices(t), "GetCustomers GetSeries ListInvoiceLines ListSellersOfInvoices ListBuyersOfInvoices ListInvoicePayments ListCreditNotes",
		},
		{
			a, "orders", "Order",
			`id customer { id name } items { name amount { amountMinor } product { id name stock } } payments { id method } captures { amount { amountMinor } }
			refunds { amount { amountMinor } status } history { event by }`, `items { product { sku } }`,
			a.manyOrders(t), "GetCustomers ListOrderLines GetProducts GetStock ListPaymentAttempts ListCaptures ListRefunds ListOrderHistory",
		},
		{
			metered, "apiKeys", "ApiKey", `id customer { id name } settlements { id outcome receipt { result } invoice { id status } }`, `settlements { period }`,
			metered.manyKeys(t), "GetCustomers ListSettlementsOfKeys ListSettlementAttempts GetInvoices",
		},
		{
			metered, "settlements", "UsageSettlement",
			`id quantity attempts apiKey { id customer { name } } invoice { id lines { description } history { event } } receipt { position result }`, `receipt { saw }`,
			metered.must(t, metered.demo.admin, `{ settlements(first: 100) { nodes { id } } }`, nil).list(t, "settlements.nodes", "id"),
			"GetAPIKeys GetCustomers GetInvoices ListInvoiceLines ListInvoiceHistory ListSettlementAttempts",
		},
		{a, "products", "Product", `id sku stock`, `stock`, a.must(t, a.demo.admin, `{ products(first: 100) { nodes { id } } }`, nil).list(t, "products.nodes", "id"), "GetStock"},
	} {
		var want string
		for _, c := range []struct{ way, query, at, node string }{
			{"nodes", `query ($n: Int) { LIST(first: $n) { nodes { ROW } } }`, "LIST.nodes", ""},
			{"edges", `query ($n: Int) { LIST(first: $n) { edges { node { ROW } } } }`, "LIST.edges", "node"},
			{"edges, backward", `query ($n: Int, $end: String) { LIST(last: $n, before: $end) { edges { node { ROW } } } }`, "LIST.edges", "node"},
			{"nodes and edges", `query ($n: Int) { LIST(first: $n) { nodes { ROW } edges { node { ROW } } } }`, "LIST.edges", "node"},
			{"edges under two names", `query ($n: Int) { LIST(first: $n) { a: edges { node { ROW } } b: edges { node { ROW } } } }`, "LIST.b", "node"},
			{"a fragment, under two names", `query ($n: Int) { LIST(first: $n) { edges { node { ...F } } } } fragment F on TYPE { twice: AGAIN ROW }`, "LIST.edges", "node"},
			{"nodes(ids:)", `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on TYPE { ROW } } }`, "nodes", ""},
		} {
			written := strings.NewReplacer("LIST", l.list, "TYPE", l.typ, "ROW", l.row, "AGAIN", l.again)
			ask := func(n int) (statements []string, answer string) {
				sent := l.on.db.Sent()
				r := l.on.must(t, l.on.demo.admin, written.Replace(c.query), vars{"n": n, "ids": l.ids[:n]})
				statements = sent()
				slices.Sort(statements)
				for i := range n {
					at := r.at(t, fmt.Sprintf("%s.%d", written.Replace(c.at), i)).(map[string]any)
					if c.node != "" {
						at = at[c.node].(map[string]any)
					}
					delete(at, "twice")
					answer += fmt.Sprintln(at)
				}
				return statements, answer
			}
			few, _ := ask(25)
			many, answer := ask(100)
			if want == "" {
				want = answer
			}
			if answer != want {
				t.Errorf("%s by %s answers\n%s\nnodes answers\n%s", l.list, c.way, answer, want)
			}
			if !slices.Equal(few, many) {
				t.Errorf("%s by %s: 25 rows take %d statements, 100 take %d: %v", l.list, c.way, len(few), len(many), many)
			}
			for _, name := range strings.Fields(l.reads) {
				if n := strings.Count(strings.Join(many, " "), name); n != 1 {
					t.Errorf("%s by %s sends %s %d times", l.list, c.way, name, n)
				}
			}
		}
	}
}

// TestSharedReadsAnswerTheirOwnRow: however many rows one read serves, each of them is answered with
// what is its own.
func TestSharedReadsAnswerTheirOwnRow(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.manyOrders(t)
	r := a.must(t, a.demo.admin, `{ orders(first: 100) { edges { node { total { amountMinor } refunded { amountMinor }
		items { name amount { amountMinor } product { name } } captures { state amount { amountMinor } } refunds { amount { amountMinor } } history { toStatus } status } } } }`, nil)
	sum := func(rows []string) (out int64) {
		for _, row := range rows {
			var amount int64
			if _, err := fmt.Sscanf(row, "map[amountMinor:%d]", &amount); err != nil {
				t.Fatal(err)
			}
			out += amount
		}
		return out
	}
	for i := range 100 {
		at := fmt.Sprintf("orders.edges.%d.node.", i)
		total, refunded := r.text(t, at+"total.amountMinor"), r.text(t, at+"refunded.amountMinor")
		if got := fmt.Sprint(sum(r.list(t, at+"items", "amount"))); got != total {
			t.Errorf("order %d costs %s, its items %s", i, total, got)
		}
		if got := fmt.Sprint(sum(r.list(t, at+"refunds", "amount"))); got != refunded {
			t.Errorf("of order %d %s was given back, its refunds are %s", i, refunded, got)
		}
		paid := r.at(t, at+"status") != "PENDING"
		var pays []string
		for j, amount := range r.list(t, at+"captures", "amount") {
			if r.at(t, fmt.Sprintf("%scaptures.%d.state", at, j)) == "APPLIED" {
				pays = append(pays, amount)
			}
		}
		if got := fmt.Sprint(sum(pays)); paid && got != total || !paid && got != "0" {
			t.Errorf("order %d costs %s and was paid %s", i, total, got)
		}
		for j, name := range r.list(t, at+"items", "name") {
			if got := r.at(t, fmt.Sprintf("%sitems.%d.product.name", at, j)); got != name {
				t.Errorf("item %d of order %d is %s, its product %s", j, i, name, got)
			}
		}
		if history := r.list(t, at+"history", "toStatus"); history[len(history)-1] != r.at(t, at+"status") {
			t.Errorf("order %d is %v, its history %v", i, r.at(t, at+"status"), history)
		}
	}
}

// TestFaultOfASharedRead: where the read that a list's rows share fails, each row says so at its own
// place.
func TestFaultOfASharedRead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `DROP TABLE invoice_series CASCADE; DROP TABLE product_stock`)
	r := a.do(t, a.demo.admin, `{ orders { edges { node { status items { product { sku stock } } } } } }`, nil)
	wantCodes(t, r, "INTERNAL", "INTERNAL")
	for i, status := range []string{"PAID", "PENDING"} {
		at := fmt.Sprintf("orders.edges.%d.node.", i)
		if !slices.ContainsFunc(r.errors, func(e wireError) bool { return e.path() == at+"items.0.product.stock" }) || r.at(t, at+"items.0.product.sku") != "set" || r.at(t, at+"status") != status {
			t.Errorf("without the stock the orders are answered %s", r.body)
		}
	}
	for query, want := range map[string]string{
		`{ invoices { nodes { number series { id } } } }`:          "invoices.nodes.0.series invoices.nodes.1.series",
		`{ invoices { edges { node { number series { id } } } } }`: "invoices.edges.0.node.series invoices.edges.1.node.series",
		`{ nodes(ids: ["` + absent("inv") + `", "` + a.demo.invoiceID + `", "` + a.demo.neighbourInvoiceID + `"]) { ... on Invoice { number series { id } } } }`: "nodes.1.series nodes.2.series",
	} {
		r := a.do(t, a.demo.admin, query, nil)
		wantCodes(t, r, "INTERNAL", "INTERNAL")
		var paths []string
		for _, e := range r.errors {
			paths = append(paths, e.path())
		}
		slices.Sort(paths)
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s fails at %s, want %s", query, got, want)
		}
		if !strings.Contains(r.body, `"INV-00001","series":null`) {
			t.Errorf("%s hides the rows: %s", query, r.body)
		}
	}
}
