package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/sqlc"
)

// TestNoFieldCostsByTheRow walks every field of every object that a list of the schema leads to, over
// one row and over a hundred: both send the same statements. A new field that costs by the row fails
// it, and so does one that the rows of the test do not reach.
func TestNoFieldCostsByTheRow(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.alike(t, 100)
	reached := map[string]bool{}
	for _, root := range fields(schema.Query) {
		if !strings.HasSuffix(root.Type.Name(), "Connection") {
			continue
		}
		for _, r := range reachable(rowsOf(root)) {
			var all strings.Builder
			for _, field := range fields(r.def) {
				all.WriteString(selection(field, "__typename"))
			}
			for _, rows := range []string{"nodes { %s }", "edges { node { %s } }"} {
				query := fmt.Sprintf("query ($n: Int) { %s(last: $n %s) { %s } }", root.Name, a.required(root), fmt.Sprintf(rows, along(r.path, all.String())))
				ask := func(n int) ([]string, response) {
					sent := a.db.Sent()
					answer := a.must(t, a.demo.admin, query, vars{"n": n})
					return slices.Sorted(slices.Values(sent())), answer
				}
				one, _ := ask(1)
				hundred, answer := ask(100)
				if !slices.Equal(one, hundred) {
					t.Errorf("%s sends %d statements for one row and %d for a hundred: %v", query, len(one), len(hundred), hundred)
				}
				if ends(answer.data[root.Name], r.path) > 1 {
					reached[r.def.Name] = true
				}
			}
		}
	}
	for name := range lookUps {
		if object, _, _ := strings.Cut(name, "."); !reached[object] && !neverListed[object] && !strings.HasSuffix(object, "Payload") {
			t.Errorf("no list reaches two of %s, which %s is read for", object, name)
		}
	}
}

// neverListed are types that stand in no list.
var neverListed = map[string]bool{"SeriesAudit": true, "SeriesChange": true}

// required are the arguments that a list must have.
func (a *api) required(root *ast.FieldDefinition) string {
	if root.Arguments.ForName("seriesId") != nil {
		return fmt.Sprintf("seriesId: %q", a.demo.seriesID)
	}
	return ""
}

// ends counts the objects at the end of a way through an answer; those with an id, each once.
func ends(value any, path []*ast.FieldDefinition) int {
	ids, others := map[any]bool{}, 0
	var visit func(value any, path []*ast.FieldDefinition)
	visit = func(value any, path []*ast.FieldDefinition) {
		switch v := value.(type) {
		case []any:
			for _, inner := range v {
				visit(inner, path)
			}
		case map[string]any:
			for _, through := range []string{"nodes", "edges", "node"} { // of a connection
				if inner, is := v[through]; is {
					visit(inner, path)
					return
				}
			}
			switch id, has := v["id"]; {
			case len(path) > 0:
				visit(v[path[0].Name], path[1:])
			case has:
				ids[id] = true
			default:
				others++
			}
		}
	}
	visit(value, path)
	return len(ids) + others
}

// alike gives the tenant n customers who each have what the schema has to tell of one: a series with a
// paid invoice, a key whose use is on an invoice, an order of a product that was paid and partly
// refunded, and what the provider reported of it.
func (a *api) alike(t *testing.T, n int) {
	t.Helper()
	admin := a.demo.adminCaller()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	keys := make([]string, n)
	customers := make([]domain.CustomerID, n)
	var used metering.RecordUsageInput
	for i := range n {
		customers[i] = parse[domain.CustomerID](t, a.newCustomer(t, a.demo))
		keys[i] = a.key(t, a.demo, customers[i].String())
		used.Events = append(used.Events, metering.UsageEventInput{ID: keys[i], APIKeyID: parse[domain.APIKeyID](t, keys[i]), Quantity: 20, OccurredAt: time.Now()})
	}
	_, err := a.metering.RecordUsage(t.Context(), admin, used)
	must(err)
	for i, customer := range customers {
		a.revoke(t, a.demo, keys[i])
		series, err := a.service.CreateSeries(t.Context(), admin, invoicing.CreateInvoiceSeriesInput{Code: fmt.Sprintf("S%d", i)})
		must(err)
		product, err := a.ordering.CreateProduct(t.Context(), admin, ordering.CreateProductInput{
			SKU: fmt.Sprintf("p%d", i), Name: "Piece", UnitPriceMinor: 100, Currency: "EUR", Stock: new(int64(9)),
		})
		must(err)
		order := parse[domain.OrderID](t, a.order(t, a.demo, customer.String(), payment.SimOK, product.Value.ID.String()))
		_, err = a.ordering.Refund(t.Context(), admin, ordering.RefundOrderInput{OrderID: order, AmountMinor: new(domain.Cents(1))})
		must(err)
		a.receive(t, payment.Event{ID: order.String(), Reference: order.String(), Fact: domain.Fact{
			Kind: domain.FactPaid, PaymentID: order.String(), Amount: domain.Money{AmountMinor: 100, Currency: "EUR"},
		}})
		_, err = a.service.Allocate(t.Context(), admin, invoicing.AllocateInvoiceInput{
			SeriesID: series.Value.ID, CustomerID: customer, Currency: "EUR",
			Lines: []domain.InvoiceLineInput{{Description: "Board", Quantity: 1, UnitAmountMinor: 100}},
		})
		must(err)
	}
	rows, err := a.db.Pool.Query(t.Context(), `SELECT * FROM invoices WHERE tenant_id = $1 AND status IN ('OPEN', 'PENDING') ORDER BY id`, a.demo.id)
	must(err)
	invoices, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sqlc.Invoice])
	must(err)
	for _, i := range invoices {
		_, err := a.metering.Pay(t.Context(), admin, metering.RecordInvoicePaymentInput{InvoiceID: i.ID, AmountMinor: i.TotalMinor, Reference: i.ID.String()})
		must(err)
	}
	a.lives(t, invoices[len(invoices)-5:])
}

// lives gives each customer an address and a tax id, and each of some invoices a credit note, and one
// that is void and that it stands for.
func (a *api) lives(t *testing.T, invoices []sqlc.Invoice) {
	t.Helper()
	admin := a.demo.adminCaller()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a.db.Exec(t, `UPDATE customers SET address = '{"line1": "Turmweg 1", "country": "DE"}', tax_ids = '[{"scheme": "VAT", "value": "DE0"}]'`)
	a.db.Exec(t, `UPDATE customer_revisions SET address = '{"line1": "Turmweg 1", "country": "DE"}', tax_ids = '[{"scheme": "VAT", "value": "DE0"}]'`)
	a.db.Exec(t, `UPDATE seller_revisions SET address = '{"line1": "Turmweg 1", "country": "DE"}', tax_ids = '[{"scheme": "VAT", "value": "DE0"}]'`)
	for _, i := range invoices {
		_, err := a.service.IssueCreditNote(t.Context(), admin, invoicing.IssueCreditNoteInput{InvoiceID: i.ID, AmountMinor: new(domain.Cents(1)), Reason: "x"})
		must(err)
		void := a.invoice(t, a.demo, a.demo.seriesID, i.CustomerID, 1)
		_, err = a.metering.Void(t.Context(), admin, metering.VoidInvoiceInput{InvoiceID: parse[domain.InvoiceID](t, void), Reason: "x", ReplacedBy: &i.ID})
		must(err)
	}
}
