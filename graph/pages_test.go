package graph_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/internal/ordering"
	"countersign/internal/testdb"
)

// longLists are the lists that grow without end, under each filter: how they are asked, with %s for the
// page, and where they stand in the answer. few says that the filter leaves less than a page.
func (a *archive) longLists() []struct {
	query, at string
	few       bool
} {
	const rows = `(%s) { edges { cursor } } }`
	filtered := func(list, filter string) string {
		return `{ ` + list + `(filter: {` + filter + `}, %s) { edges { cursor } } }`
	}
	one, other := fmt.Sprintf("customerId: %q", a.demo.customerID), fmt.Sprintf("customerId: %q", a.demo.neighbourID)
	key := fmt.Sprintf("apiKeyId: %q", a.key)
	return []struct {
		query, at string
		few       bool
	}{
		{`{ invoices` + rows, "invoices", false},
		{filtered("invoices", "status: PENDING"), "invoices", false},
		{filtered("invoices", "status: VOID"), "invoices", true},
		{filtered("invoices", one), "invoices", false},
		{filtered("invoices", other), "invoices", true},
		{filtered("invoices", one+", status: PENDING"), "invoices", false},
		{filtered("invoices", one+", status: VOID"), "invoices", true},
		{fmt.Sprintf(`{ customer(id: %q) { invoices`, a.demo.customerID) + rows + ` }`, "customer.invoices", false},
		{fmt.Sprintf(`{ invoiceSeries(id: %q) { invoices`, a.demo.seriesID) + rows + ` }`, "invoiceSeries.invoices", false},
		{`{ orders` + rows, "orders", false},
		{filtered("orders", "status: PAID"), "orders", false},
		{filtered("orders", "status: CANCELLED"), "orders", true},
		{filtered("orders", one), "orders", false},
		{filtered("orders", one+", status: PAID"), "orders", false},
		{filtered("orders", one+", status: CANCELLED"), "orders", true},
		{`{ settlements` + rows, "settlements", false},
		{filtered("settlements", one), "settlements", false},
		{filtered("settlements", key), "settlements", false},
		{filtered("settlements", key+", "+other), "settlements", false},
		{`{ paymentEvents` + rows, "paymentEvents", false},
		{`{ products` + rows, "products", false},
		{filtered("products", "onlyActive: true"), "products", true},
	}
}

// TestPagesStayFlat: of 100,000 rows a page reads its own and the one behind them, wherever it lies,
// whatever the filter leaves out, forward and backward, planned for its arguments or for any: by what
// PostgreSQL says that it has read. Whatever is scanned whole or sorted has been read.
func TestPagesStayFlat(t *testing.T) {
	t.Parallel()
	a := newArchive(t, newAPI(t), 100_000)
	conn := a.db.Owner(t)
	const size = 50
	for _, l := range a.longLists() {
		if !strings.Contains(l.query, "%s") {
			t.Fatal(l.query)
		}
		// A page's statement is the last that the request sends.
		ask := func(page string) (testdb.Statement, []string) {
			sent := a.db.Statements()
			r := a.must(t, a.demo.admin, fmt.Sprintf(l.query, page), nil)
			all := sent()
			return all[len(all)-1], r.list(t, l.at+".edges", "cursor")
		}
		_, first := ask(fmt.Sprintf("first: %d", size))
		_, last := ask(fmt.Sprintf("last: %d", size))
		pages := map[string]string{"first": fmt.Sprintf("first: %d", size), "last": fmt.Sprintf("last: %d", size)}
		if !l.few && len(first) > 0 {
			middle := a.middle(t, first[0])
			pages["middle"] = fmt.Sprintf("first: %d, after: %q", size, middle)
			pages["middle, backward"] = fmt.Sprintf("last: %d, before: %q", size, middle)
			_, before := ask(fmt.Sprintf("last: 1, before: %q", last[0]))
			pages["last, forward"] = fmt.Sprintf("first: %d, after: %q", size, before[0])
			pages["first, backward"] = fmt.Sprintf("last: %d, before: %q", size, first[size-1])
		}
		for _, generic := range []bool{false, true} {
			least, most := 1<<30, 0
			for name, page := range pages {
				statement, _ := ask(page)
				plan := testdb.Explain(t, conn, statement, generic)
				if n := plan.Touched(); n > 2*(size+1)+2 {
					t.Errorf("%s, %s, generic %v: reads %g rows: %s", l.query, name, generic, n, plan)
				}
				least, most = min(least, plan.Buffers()), max(most, plan.Buffers())
			}
			if most > 2*least+8 { // a level of an index, and a page that is cut across
				t.Errorf("%s, generic %v: a page touches %d buffers, another %d", l.query, generic, least, most)
			}
			t.Logf("%s, generic %v: %d to %d buffers", l.query, generic, least, most)
		}
	}
}

// middle is the cursor of a row in the middle of a list, made of the cursor of another of its rows.
func (a *archive) middle(t testing.TB, cursor string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	list, key, _ := bytes.Cut(raw, []byte(":"))
	switch string(list) {
	case "number":
		key = binary.BigEndian.AppendUint64(key[:8], uint64(a.n/2))
	case "event":
		var at ordering.EventKey
		if err := json.Unmarshal(key, &at); err != nil {
			t.Fatal(err)
		}
		at.ReceivedAt = testdb.Scan[time.Time](t, a.db, "SELECT received_at FROM ops.payment_events WHERE event_id = $1", fmt.Sprint("e", a.n/2))
		if key, err = json.Marshal(at); err != nil {
			t.Fatal(err)
		}
	default:
		key = key[:8]
		key = binary.BigEndian.AppendUint64(key, 0x8000_1000_0000_0000+uint64(a.n))
	}
	return base64.RawURLEncoding.EncodeToString(append(append(list, ':'), key...))
}
