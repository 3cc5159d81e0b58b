package graph_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/domain"
)

// spelled is a value of a field of allocateInvoice's input as a client may spell it; JSON and
// GraphQL spell these values alike. want is what the invoice then says; "" is BAD_INPUT.
type spelled struct{ field, value, want string }

// TestScalarsAreStrict: a value that is not exactly of its type is a BAD_INPUT that says where,
// and has no effect, whichever way it travels: as a variable, inside an input object, or as a
// literal. What is of its type arrives unchanged, to the last digit.
func TestScalarsAreStrict(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	today := a.must(t, a.demo.admin, `query ($id: ID!) { invoice(id: $id) { issueDate } }`, vars{"id": a.demo.invoiceID}).text(t, "invoice.issueDate")
	cases := []spelled{
		{"quantity", `1`, "1"}, {"quantity", `2147483647`, "2147483647"},
		{"unitAmountMinor", `1`, "1"}, {"unitAmountMinor", `"1"`, "1"}, {"unitAmountMinor", `0`, "0"},
		{"unitAmountMinor", `9007199254740993`, "9007199254740993"}, // 2^53 + 1, which no float holds
		{"unitAmountMinor", `"9007199254740993"`, "9007199254740993"},
		{"unitAmountMinor", `9223372036854775807`, "9223372036854775807"},
		{"unitAmountMinor", `"9223372036854775807"`, "9223372036854775807"},
		{"currency", `"JPY"`, "JPY"},
		{"issueDate", `"` + today + `"`, today}, {"issueDate", `null`, today},
		{"description", `"a \"b\" \\ \n €😀"`, "a \"b\" \\ \n €😀"},
		{"seriesId", `"` + a.demo.seriesID + `"`, a.demo.seriesID},
	}
	for field, values := range map[string][]string{
		"quantity": {`"12"`, `12.0`, `1.5`, `1e1`, `2147483648`, `-2147483649`, `99999999999999999999`, `-0`, `true`, `""`, `null`, `[1]`, `{}`},
		"unitAmountMinor": {
			`9223372036854775808`, `"9223372036854775808"`, `-9223372036854775809`, `"007"`, `007`, `"+1"`, `"1e3"`, `1e3`, `1.0`, `"1.0"`,
			`-0`, `"-0"`, `""`, `" 1"`, `"1 "`, `"0x10"`, `"1_000"`, `"١٢"`, `true`, `null`, `[1]`, `{}`,
		},
		"currency":  {`"eur"`, `"EURO"`, `"AAA"`, `"EUR "`, `""`, `978`, `true`, `null`, `["EUR"]`},
		"issueDate": {`"2026-02-30"`, `"2026-13-01"`, `"2026-1-1"`, `"0000-01-01"`, `"` + today + `T00:00:00Z"`, `" ` + today + `"`, `""`, `20260101`, `true`, `[]`},
		"description": {
			`"a\u0000b"`, `5`, `true`, `null`, `[]`,
			`"\ud800"`, `"\udc00 \ud800"`, `"x\ud800\u0041"`, // half a character
		},
		"seriesId": {
			`"` + a.demo.customerID + `"`, `"` + strings.ToUpper(a.demo.seriesID) + `"`, `"SER_` + a.demo.seriesID[4:] + `"`,
			`"ser_8zzzzzzzzzzzzzzzzzzzzzzzzz"`, `"ser_"`, `"` + a.demo.seriesID + `0"`, `"` + a.demo.seriesID[:29] + `"`, `" ` + a.demo.seriesID + `"`,
			`"0190b5a5-0000-7000-8000-000000000000"`, `"ser_` + strings.Repeat("u", 26) + `"`, `""`, `5`, `5.5`, `null`, `["` + a.demo.seriesID + `"]`,
		},
	} {
		for _, value := range values {
			cases = append(cases, spelled{field: field, value: value})
		}
	}
	before, accepted := a.count(t, "invoices", "true"), 0
	for _, c := range cases {
		for way, r := range a.spell(t, c) {
			name := c.field + " " + c.value + " as " + way
			switch {
			case c.want == "":
				wantRefused(t, name, c, r)
			case len(r.errors) > 0:
				t.Errorf("%s was refused: %s", name, r.body)
			default:
				accepted++
				if got := c.said(t, r); got != c.want {
					t.Errorf("%s arrived as %q, want %q", name, got, c.want)
				}
			}
		}
	}
	if got := a.count(t, "invoices", "true") - before; got != accepted {
		t.Errorf("%d invoices were made, want those of the %d accepted requests", got, accepted)
	}
}

// spell asks for an invoice with the value in each way it can travel.
func (a *api) spell(t *testing.T, c spelled) map[string]response {
	t.Helper()
	types := map[string]string{
		"quantity": "Int!", "unitAmountMinor": "BigInt!", "currency": "CurrencyCode!", "issueDate": "Date", "description": "String!", "seriesId": "ID!",
	}
	input := func(quote string, value string) string {
		at := map[string]string{
			"seriesId": `"` + a.demo.seriesID + `"`, "currency": `"EUR"`, "issueDate": "null", "description": `"x"`, "quantity": "1", "unitAmountMinor": "1",
		}
		at[c.field] = value
		text := fmt.Sprintf(`{"seriesId": %s, "customerId": %q, "currency": %s, "issueDate": %s, "lines": [{"description": %s, "quantity": %s, "unitAmountMinor": %s}]}`,
			at["seriesId"], a.demo.customerID, at["currency"], at["issueDate"], at["description"], at["quantity"], at["unitAmountMinor"])
		return regexp.MustCompile(`"(\w+)":`).ReplaceAllString(text, quote+"$1"+quote+":")
	}
	const selection = `{ invoice { number currency: total { currency } total { amountMinor } issueDate series { id } lines { description quantity } } userErrors { code } }`
	ask := func(query, variables string) response {
		body := fmt.Sprintf(`{"query": %s, "variables": %s}`, quoted(t, query), variables)
		return a.send(t, "POST", "", a.demo.admin, map[string]string{"Content-Type": "application/json"}, body)
	}
	ways := map[string]response{
		"literal": ask(`mutation { allocateInvoice(input: `+input("", c.value)+`) `+selection+` }`, `{}`),
	}
	if c.value != "007" { // which is no JSON at all
		ways["variable"] = ask(`mutation ($v: `+types[c.field]+`) { allocateInvoice(input: `+input("", "$v")+`) `+selection+` }`, `{"v": `+c.value+`}`)
		ways["part of a variable"] = ask(`mutation ($v: AllocateInvoiceInput!) { allocateInvoice(input: $v) `+selection+` }`, `{"v": `+input(`"`, c.value)+`}`)
	}
	return ways
}

// said is what the invoice says of the field.
func (c spelled) said(t *testing.T, r response) string {
	t.Helper()
	return r.text(t, "allocateInvoice.invoice."+map[string]string{
		"quantity": "lines.0.quantity", "unitAmountMinor": "total.amountMinor", "currency": "currency.currency",
		"issueDate": "issueDate", "description": "lines.0.description", "seriesId": "series.id",
	}[c.field])
}

// wantRefused fails unless the answer is BAD_INPUT and says where: by the argument's path, by the
// variable's, or by the line and column of a literal. Half a character is refused with the whole
// body, where no path is known yet.
func wantRefused(t *testing.T, name string, c spelled, r response) {
	t.Helper()
	if len(r.errors) == 0 || r.codes()[0] != "BAD_INPUT" || r.data["allocateInvoice"] != nil {
		t.Errorf("%s was answered %s, want BAD_INPUT", name, r.body)
		return
	}
	e := r.errors[0]
	at := strings.TrimRight(e.path(), ".0") // an element of a list is named by its place
	if !strings.HasSuffix(at, "."+c.field) && at != "variable.v" && len(e.Locations) == 0 && !strings.Contains(c.value, `\ud800`) {
		t.Errorf("%s is refused at %q, which does not say where: %s", name, e.path(), r.body)
	}
}

// quoted is s as a JSON string.
func quoted(t testing.TB, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// absent is an id of a kind that names nothing.
func absent(kind string) string { return domain.PrintID(kind, domain.NewID[domain.UUID]()) }
