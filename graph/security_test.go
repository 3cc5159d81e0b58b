package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestNoWebsocket: there is no such transport: a handshake is a GET without a query, whatever its
// origin, its subprotocol or what it brings along.
func TestNoWebsocket(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	handshake := func(pairs ...string) map[string]string {
		return header(append([]string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, pairs...)...)
	}
	large := `{"type": "connection_init", "payload": {"x": "` + strings.Repeat("x", 2<<20) + `"}}`
	a.run(t, []exchange{
		{"a handshake", "GET", "/", handshake("Sec-WebSocket-Protocol", "graphql-transport-ws"), "", 400, "BAD_INPUT"},
		{"the old protocol", "GET", "/", handshake("Sec-WebSocket-Protocol", "graphql-ws"), "", 400, "BAD_INPUT"},
		{"of a foreign origin", "GET", "/", handshake("Origin", "https://elsewhere.example", "Cookie", "token=x"), "", 400, "BAD_INPUT"},
		{"as a POST", "POST", "", handshake(), jsonBody[:10], 400, "BAD_INPUT"},
		{"with a frame of 2 MB", "POST", "", handshake(), large, 413, "LIMIT_EXCEEDED"},
		{"events", "POST", "", header("Accept", "text/event-stream"), jsonBody, 406, "BAD_INPUT"},
		{"parts", "POST", "", header("Accept", "multipart/mixed"), jsonBody, 406, "BAD_INPUT"},
	})
}

// TestNoPersistedQueries: a hash is no document, whoever made it and however often it comes: nothing
// is kept under it, and beside a document it says nothing.
func TestNoPersistedQueries(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	hash := func(i int) string {
		return fmt.Sprintf(`"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "%064x"}}`, i)
	}
	for i := range 20 {
		r := a.send(t, "POST", "", a.demo.admin, header("Content-Type", "application/json"), `{`+hash(i)+`}`)
		if wantCodes(t, r, "BAD_INPUT"); r.status != http.StatusBadRequest || strings.Contains(r.body, "PersistedQuery") {
			t.Errorf("a hash is answered %d %s", r.status, r.body)
		}
	}
	a.run(t, []exchange{
		{"beside a document", "POST", "", nil, `{"query": "{ __typename }", ` + hash(1) + `}`, 200, ""},
		{"then alone", "POST", "", nil, `{` + hash(1) + `}`, 400, "BAD_INPUT"},
		{"with an empty document", "POST", "", nil, `{"query": "", ` + hash(1) + `}`, 200, "BAD_INPUT"},
		{"by GET", "GET", `/?extensions={"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("a", 64) + `"}}`, nil, "", 400, "BAD_INPUT"},
		{"as an id", "POST", "", nil, `{"id": "` + strings.Repeat("a", 64) + `"}`, 400, "BAD_INPUT"},
	})
}

// TestCase41Lists: every element of a list arrives, in order, whichever way the list travels; a value
// where a list is expected is a list of one; a null where none may be, and a list in a list, are
// refused without a panic.
func TestCase41Lists(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	one, two := a.demo.customerID, a.demo.neighbourID
	both := one + " " + two
	for _, c := range []struct{ typ, use, value, want string }{
		{"[ID!]!", "$v", `["` + one + `", "` + two + `"]`, both},
		{"[ID!]!", "$v", `["` + two + `", "` + one + `", "` + two + `"]`, two + " " + both},
		{"[ID!]!", "$v", `"` + one + `"`, one},
		{"ID!", "[$v, \"" + two + "\"]", `"` + one + `"`, both},
		{"ID!", "$v", `"` + one + `"`, ""}, // a variable is not made a list
		{"[ID!]!", "$v", `[]`, "none"},
		{"[ID!]!", "$v", `[null]`, ""}, {"[ID!]!", "$v", `["` + one + `", null]`, ""}, {"[ID!]!", "$v", `[["` + one + `"]]`, ""},
		{"[ID!]!", "$v", `null`, ""}, {"[ID!]!", "$v", `{}`, ""}, {"[ID!]!", "$v", `[{}]`, ""}, {"[ID!]!", "$v", `[1]`, ""}, {"[ID]!", "$v", `[null]`, ""},
	} {
		r := a.do(t, a.demo.admin, `query ($v: `+c.typ+`) { nodes(ids: `+c.use+`) { id } }`, vars{"v": json.RawMessage(c.value)})
		if c.want == "" {
			wantCodes(t, r, "BAD_INPUT")
			continue
		}
		if wantCodes(t, r); len(r.errors) == 0 && strings.Join(r.list(t, "nodes", "id"), " ") != strings.TrimSuffix(c.want, "none") {
			t.Errorf("%s %s finds %s, want %s", c.typ, c.value, r.body, c.want)
		}
	}
	line := `{"description": "x", "quantity": 1, "unitAmountMinor": %d}`
	for value, want := range map[string]string{
		`[` + fmt.Sprintf(line, 1) + `, ` + fmt.Sprintf(line, 2) + `]`: "3",
		fmt.Sprintf(line, 5): "5", `[null]`: "", `[` + fmt.Sprintf(line, 1) + `, null]`: "", `[[` + fmt.Sprintf(line, 1) + `]]`: "", `null`: "", `"x"`: "", `[{"quantity": [1]}]`: "",
	} {
		input := vars{"seriesId": a.demo.seriesID, "customerId": one, "currency": "EUR", "lines": json.RawMessage(value)}
		r := a.ask(t, "allocateInvoice", input, "invoice { total { amountMinor } }")
		if want == "" {
			wantCodes(t, r, "BAD_INPUT")
		} else if got := r.text(t, "f.invoice.total.amountMinor"); got != want {
			t.Errorf("the lines %s come to %s, want %s", value, got, want)
		}
	}
}

// TestChildOfAnotherTenantsParent: whatever a tenant's row refers to is of the same tenant: pointed at
// a row of another, it is refused by the foreign key, in every table that has both.
func TestChildOfAnotherTenantsParent(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	rows, err := a.db.Pool.Query(t.Context(), `
		SELECT c.conname, c.conrelid::regclass::text, child.attname, c.confrelid::regclass::text, parent.attname
		FROM pg_constraint c
		JOIN pg_attribute child ON child.attrelid = c.conrelid AND child.attnum = c.conkey[2]
		JOIN pg_attribute parent ON parent.attrelid = c.confrelid AND parent.attnum = c.confkey[2]
		WHERE c.contype = 'f' AND cardinality(c.conkey) = 2`)
	if err != nil {
		t.Fatal(err)
	}
	type key struct{ Name, Child, Column, Parent, Referred string }
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), a.db.URL) // the server's own role may not even try
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	refused := map[string]bool{}
	for _, k := range keys {
		tag, err := owner.Exec(t.Context(), fmt.Sprintf(`UPDATE %[1]s SET %[2]s = foreigner.%[4]s
			FROM (SELECT %[4]s FROM %[3]s WHERE tenant_id = $2 LIMIT 1) AS foreigner
			WHERE %[1]s.ctid = (SELECT ctid FROM %[1]s WHERE tenant_id = $1 AND %[2]s IS NOT NULL LIMIT 1)`,
			k.Child, k.Column, k.Parent, k.Referred), a.demo.id, a.other.id)
		var fault *pgconn.PgError
		switch {
		case errors.As(err, &fault) && fault.Code == "23503":
			refused[k.Name] = true
		case err != nil, tag.RowsAffected() > 0:
			t.Errorf("%s: %s rows were pointed at another tenant's: %v", k.Name, tag, err)
		}
	}
	for _, table := range []string{"invoices", "invoice_lines", "orders", "order_lines", "api_keys", "settlements", "payment_attempts", "captures", "order_history"} {
		if !slices.ContainsFunc(keys, func(k key) bool { return k.Child == table && refused[k.Name] }) {
			t.Errorf("no foreign key of %s was tried: %v", table, refused)
		}
	}
}

// TestNoSecretIsKept: after a day's work no live secret stands in any table or in the log: not a
// token, not an API key, not what signs webhooks.
func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	key := a.ask(t, "createApiKey", vars{"customerId": a.demo.customerID, "name": "desk", "unitPrice": "1"}, "secret").text(t, "f.secret")
	a.do(t, a.demo.customer, `{ customer(id: "`+a.demo.customerID+`") { name nope } }`, nil)
	a.do(t, a.demo.service, `{ doctor { healthy } }`, nil)
	a.do(t, key, `{ customers { nodes { id } } }`, nil)               // a key where a token is due
	a.do(t, a.demo.admin[:60], `{ customers { nodes { id } } }`, nil) // a part of one
	owner, err := pgx.Connect(t.Context(), a.db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(t.Context()) }()
	rows, err := owner.Query(t.Context(), `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname NOT LIKE 'pg_%' AND n.nspname <> 'information_schema'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	dump := a.log.String()
	for _, table := range tables {
		var text string
		if err := owner.QueryRow(t.Context(), `SELECT coalesce(string_agg(r::text, E'\n'), '') FROM `+table+` r`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		dump += text + "\n"
	}
	if !strings.Contains(dump, "Rook & Pawn") || !strings.Contains(dump, "UNAUTHENTICATED") {
		t.Fatal("the dump does not hold what it must")
	}
	wantNone(t, dump, a.demo.admin[:60], a.demo.service, a.demo.customer, key, key[4:], webhookSecret)
}
