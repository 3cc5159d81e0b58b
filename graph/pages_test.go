package graph_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"countersign/internal/ordering"
	"countersign/internal/testdb"
)

// longList is a list that grows without end, under one of its filters: how it is asked, with %s for the
// page, and where it stands in the answer. few says that the filter leaves less than a page.
type longList struct {
	name, query, at string
	few             bool
}

// longLists are all of them.
func (a *archive) longLists() []longList {
	const page = `(%s) { edges { cursor } } }`
	one, other := fmt.Sprintf("customerId: %q", a.demo.customerID), fmt.Sprintf("customerId: %q", a.demo.neighbourID)
	key := fmt.Sprintf("apiKeyId: %q", a.key)
	filtered := func(name, list, filter string, few bool) longList {
		return longList{name, `{ ` + list + `(filter: {` + filter + `}, %s) { edges { cursor } } }`, list, few}
	}
	return []longList{
		{"invoices", `{ invoices` + page, "invoices", false},
		filtered("invoices of a status", "invoices", "status: PENDING", false),
		filtered("invoices of a rare status", "invoices", "status: VOID", true),
		filtered("invoices of a customer", "invoices", one, false),
		filtered("invoices of a small customer", "invoices", other, true),
		filtered("invoices of a customer and a status", "invoices", one+", status: PENDING", false),
		filtered("invoices of a customer and a rare status", "invoices", one+", status: VOID", true),
		{"a customer's invoices", fmt.Sprintf(`{ customer(id: %q) { invoices`, a.demo.customerID) + page + ` }`, "customer.invoices", false},
		{"a series' invoices", fmt.Sprintf(`{ invoiceSeries(id: %q) { invoices`, a.demo.seriesID) + page + ` }`, "invoiceSeries.invoices", false},
		{"a series' periods", fmt.Sprintf(`{ invoiceSeries(id: %q) { periods`, a.demo.seriesID) + page + ` }`, "invoiceSeries.periods", false},
		{"a series' changes", fmt.Sprintf(`{ invoiceSeries(id: %q) { changes`, a.demo.seriesID) + page + ` }`, "invoiceSeries.changes", false},
		{"orders", `{ orders` + page, "orders", false},
		filtered("orders of a status", "orders", "status: PAID", false),
		filtered("orders of a rare status", "orders", "status: CANCELLED", true),
		filtered("orders of a customer", "orders", one, false),
		filtered("orders of a customer and a status", "orders", one+", status: PAID", false),
		filtered("orders of a customer and a rare status", "orders", one+", status: CANCELLED", true),
		{"orders to look at", `{ ordersToLookAt` + page, "ordersToLookAt", false},
		{"settlements", `{ settlements` + page, "settlements", false},
		filtered("settlements of a customer", "settlements", one, false),
		filtered("settlements of a key", "settlements", key, false),
		filtered("settlements of another customer's key", "settlements", key+", "+other, true),
		{"payment events", `{ paymentEvents` + page, "paymentEvents", false},
		{"products", `{ products` + page, "products", false},
		filtered("products for sale", "products", "onlyActive: true", true),
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
		// A page's statement is the last that the request sends.
		ask := func(page string) testdb.Statement {
			sent := a.db.Statements()
			a.must(t, a.demo.admin, fmt.Sprintf(l.query, page), nil)
			all := sent()
			return all[len(all)-1]
		}
		pages := a.pages(t, l.query, l.at, l.few, size)
		for _, generic := range []bool{false, true} {
			least, most := 1<<30, 0
			for name, page := range pages {
				plan := testdb.Explain(t, conn, ask(page), generic)
				if n := plan.Touched(); n > 2*(size+1)+2 {
					t.Errorf("%s, %s, generic %v: reads %g rows: %s", l.name, name, generic, n, plan)
				}
				least, most = min(least, plan.Buffers()), max(most, plan.Buffers())
			}
			if most > 2*least+8 { // a level of an index, and a page that is cut across
				t.Errorf("%s, generic %v: a page touches %d buffers, another %d", l.name, generic, least, most)
			}
		}
	}
}

// pages are a list's first, middle and last pages, each forward and backward, by what asks for them; of
// a list of less than a page, the whole of it.
func (a *archive) pages(t testing.TB, query, at string, few bool, size int) map[string]string {
	t.Helper()
	pages := map[string]string{"first": fmt.Sprintf("first: %d", size), "last": fmt.Sprintf("last: %d", size)}
	if few {
		return pages
	}
	cursors := func(page string) []string {
		return a.must(t, a.demo.admin, fmt.Sprintf(query, page), nil).list(t, at+".edges", "cursor")
	}
	first, last := cursors(pages["first"]), cursors(pages["last"])
	if len(first) < size || len(last) < size {
		t.Fatalf("%s has %d rows", query, len(first))
	}
	middle := a.middle(t, first[0])
	pages["middle"] = fmt.Sprintf("first: %d, after: %q", size, middle)
	pages["middle, backward"] = fmt.Sprintf("last: %d, before: %q", size, middle)
	pages["last, forward"] = fmt.Sprintf("first: %d, after: %q", size, cursors(fmt.Sprintf("last: 1, before: %q", last[0]))[0])
	pages["first, backward"] = fmt.Sprintf("last: %d, before: %q", size, first[size-1])
	return pages
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
	case "period":
		key = binary.BigEndian.AppendUint64(nil, uint64(firstPeriod.AddDate(0, 0, a.n/2).Unix()))
	case "change":
		key = binary.BigEndian.AppendUint32(nil, uint32(a.n/2))
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

// BenchmarkPages asks for the first, the middle and the last page of each long list of a million rows, or
// of as many as COUNTERSIGN_PAGES_ROWS says.
func BenchmarkPages(b *testing.B) {
	rows := 1_000_000
	if text := os.Getenv("COUNTERSIGN_PAGES_ROWS"); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	a := newArchive(b, newAPI(b), rows)
	for _, l := range a.longLists() {
		for name, page := range a.pages(b, l.query, l.at, l.few, 50) {
			query := fmt.Sprintf(l.query, page)
			b.Run(l.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					a.must(b, a.demo.admin, query, nil)
				}
			})
		}
	}
}
