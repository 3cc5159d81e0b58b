package graph_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/testdb"
)

// thrifty is a server on the same database that lets nothing through that costs more than n.
func thrifty(t *testing.T, n int) *api {
	t.Helper()
	return newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		l := graph.DefaultLimits()
		l.Cost = n
		o.Limits = &l
	})
}

// cost is what a server that lets nothing through says that a query costs.
func (a *api) cost(t *testing.T, query string, variables vars) int {
	t.Helper()
	r := a.do(t, a.demo.admin, query, variables)
	wantLimitExceeded(t, r, "the request costs ")
	cost, err := strconv.Atoi(regexp.MustCompile(`costs (\d+)`).FindStringSubmatch(r.body + " costs 0")[1])
	if err != nil {
		t.Fatal(err)
	}
	return cost
}

// TestCost: the cost is a statement and a row each, where pages are full: a page costs its size, one
// in a page the product of both, and what is left out nothing. Variables count as literals do.
func TestCost(t *testing.T) {
	t.Parallel()
	a := thrifty(t, -1)
	for _, c := range []struct {
		query     string
		variables vars
		want      int
	}{
		{`{ __typename __schema { types { name fields { name } } } }`, nil, 0},
		{`{ customer(id: "x") { id name } }`, nil, 2},
		{`{ customers { nodes { id } } }`, nil, 1 + 25},
		{`{ customers(first: null) { nodes { id } } }`, nil, 1 + 25},
		{`{ customers(first: 100) { nodes { id } pageInfo { endCursor } } }`, nil, 1 + 100},
		{`{ customers(last: 7) { edges { cursor node { id } } } }`, nil, 1 + 7},
		{`{ customers(first: 101) { nodes { id } } }`, nil, 1 + 100}, // refused when it runs
		{`{ customers(first: -5) { nodes { id } } }`, nil, 1},
		{`query ($n: Int) { customers(first: $n) { nodes { id } } }`, vars{"n": 40}, 1 + 40},
		{`query ($n: Int) { customers(last: $n) { nodes { id } } }`, vars{"n": 2147483647}, 1 + 100},
		{`query ($n: Int) { customers(first: $n) { nodes { id } } }`, nil, 1 + 25},
		{`query ($n: Int = 3) { customers(first: $n) { nodes { id } } }`, nil, 1 + 3},
		{`query ($n: Int = 3) { customers(first: $n) { nodes { id } } }`, vars{"n": 4}, 1 + 4},
		{`{ customers(first: 10) { nodes { invoices(first: 20) { nodes { id } } } } }`, nil, 1 + 10 + 1 + 10*20},
		{`{ customers(first: 10) { nodes { invoices(first: 20) { nodes { lines { description } } } } } }`, nil, 1 + 10 + 1 + 10*20 + 1 + 10*20*3},
		{`{ invoices(first: 10) { nodes { customer { id } total { amountMinor } } } }`, nil, 1 + 10 + 1 + 10},
		{`{ invoices(first: 10) { nodes { customer { id } } edges { node { customer { id } } } } }`, nil, 1 + 10 + 2*(1+10)},
		{`{ invoices(first: 10) { ...F } } fragment F on InvoiceConnection { nodes { ... on Invoice { customer { id } } } }`, nil, 1 + 10 + 1 + 10},
		{`query ($s: Boolean!) { invoices(first: 10) { nodes { customer @skip(if: $s) { id } ... @include(if: false) { lines { quantity } } } } }`, vars{"s": true}, 1 + 10},
		{`query ($s: Boolean!) { invoices(first: 10) { nodes { customer @skip(if: $s) { id } } } }`, vars{"s": false}, 1 + 10 + 1 + 10},
		{`{ nodes(ids: ["a", "b", "c"]) { id } }`, nil, 1 + 3},
		{`query ($i: [ID!]!) { nodes(ids: $i) { ... on Customer { invoices(first: 2) { nodes { id } } } } }`, vars{"i": []string{"a", "b", "c", "d"}}, 1 + 4 + 1 + 4*2},
		{`query ($i: ID!) { nodes(ids: [$i, $i]) { id } }`, vars{"i": "a"}, 1 + 2},
		{`query ($i: [ID!]!) { nodes(ids: $i) { id } }`, vars{"i": "a"}, 1 + 1},
		{`{ doctor { healthy violations { message } } }`, nil, 1000 + 2 + 1 + 3},
		{`{ a: customers(first: 1) { nodes { id } } b: customers(first: 1) { nodes { id } } }`, nil, 2 * 2},
	} {
		if got := a.cost(t, c.query, c.variables); got != c.want && c.want > 0 {
			t.Errorf("%s with %v costs %d, want %d", c.query, c.variables, got, c.want)
		}
	}
	wide := `{ customers(first: 100) { nodes { ` + strings.Repeat(`invoices(first: 100) { nodes { customer { `, 5) + `id`
	if got := a.cost(t, wide+strings.Repeat("}", strings.Count(wide, "{")), nil); got != 1<<40 {
		t.Errorf("what would cost more than can be counted costs %d, want 2^40", got)
	}
}

// TestCostIsBounded: what costs exactly as much as may be is answered, what costs one more is
// refused with both numbers before a statement of it is sent.
func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	a := thrifty(t, 101)
	const query = `query ($n: Int!, $m: Int!) { invoices(first: $n) { nodes { id } } customers(first: $m) { nodes { id } } }`
	a.must(t, a.demo.admin, query, vars{"n": 59, "m": 40})
	sent := a.db.Sent()
	wantLimitExceeded(t, a.do(t, a.demo.admin, query, vars{"n": 60, "m": 40}), "the request costs 102, and the most a request may cost is 101")
	for _, statement := range sent() {
		if strings.HasPrefix(statement, "List") {
			t.Errorf("the refused request sent %s", statement)
		}
	}
	a = newAPI(t)
	wantLimitExceeded(t, a.do(t, a.demo.admin, `{ customers(first: 100) { nodes { invoices(first: 100) { nodes { lines { quantity } } } } } }`, nil), "costs 40103, and the most a request may cost is 20000")
	a.must(t, a.demo.admin, `{ orders(first: 100) { nodes { customer { name } items { product { sku } } payments { id } captures { state } refunds { status } history { event } } } }`, nil)
	wantLimitExceeded(t, a.do(t, a.demo.admin, `{`+many(20, ` d%d: doctor { healthy }`)+`}`, nil), "the most a request may cost is 20000")
}

// TestCostIsWhatIsLoaded: the cost of a query is what it loads, statements sent and rows answered,
// within a factor of three, whatever its shape, where its pages are full.
func TestCostIsWhatIsLoaded(t *testing.T) {
	t.Parallel()
	a, free := newAPI(t), thrifty(t, -1)
	a.manyInvoices(t)
	a.manyOrders(t)
	ids := a.must(t, a.demo.admin, `{ invoices(first: 100) { nodes { id } } }`, nil).list(t, "invoices.nodes", "id")
	for _, c := range []struct {
		query     string
		variables vars
	}{
		{`{ invoices(first: 100) { nodes { id } } }`, nil},
		{`{ invoices(first: 20) { nodes { id customer { name } series { code } lines { description } } } }`, nil},
		{`{ invoices(first: 100) { edges { node { customer { id } lines { description } history { event } } } } }`, nil},
		{`{ orders(first: 100) { nodes { items { product { sku } } payments { id } captures { state } refunds { status } history { event } customer { name } } } }`, nil},
		{`{ orders(first: 5) { nodes { items { product { sku } } } } products(last: 30) { nodes { id } } }`, nil},
		{`query ($i: [ID!]!) { nodes(ids: $i) { ... on Invoice { customer { name } series { code } } } }`, vars{"i": ids}},
		{`query ($i: [ID!]!) { nodes(ids: $i) { ... on Invoice { series { invoices(first: 50) { nodes { customer { name } } } } } } }`, vars{"i": ids[:20]}},
		{`{ invoiceSeriesList(first: 1) { nodes { invoices(first: 100) { nodes { customer { invoices(first: 2) { nodes { id } } } } } } } }`, nil},
	} {
		sent := a.db.Sent()
		r := a.must(t, a.demo.admin, c.query, c.variables)
		loaded := len(sent()) + objects(r.data)
		cost := free.cost(t, c.query, c.variables)
		if cost > 3*loaded || loaded > 3*cost {
			t.Errorf("%s costs %d and loads %d", c.query, cost, loaded)
		}
	}
}

// objects counts the rows of an answer: its objects without pages, edges and amounts.
func objects(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		n = 1
		for _, part := range []string{"nodes", "edges", "node", "amountMinor"} {
			if _, is := v[part]; is {
				n = 0
			}
		}
		for _, inner := range v {
			n += objects(inner)
		}
	case []any:
		for _, inner := range v {
			n += objects(inner)
		}
	}
	return n
}
