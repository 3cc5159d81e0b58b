package testdb

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Plan is a node of what EXPLAIN (ANALYZE, BUFFERS) tells of a statement.
type Plan struct {
	Node    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Index   string  `json:"Index Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Recheck float64 `json:"Rows Removed by Index Recheck"`
	Hit     int     `json:"Shared Hit Blocks"`
	Read    int     `json:"Shared Read Blocks"`
	Plans   []Plan
}

// Buffers is how many pages the statement touched.
func (p Plan) Buffers() int { return p.Hit + p.Read }

// Each visits every node.
func (p Plan) Each(visit func(Plan)) {
	visit(p)
	for _, inner := range p.Plans {
		inner.Each(visit)
	}
}

// Touched is how many rows were read from tables, kept or not.
func (p Plan) Touched() (n float64) {
	p.Each(func(node Plan) {
		if node.Table != "" || node.Index != "" {
			n += (node.Rows + node.Removed + node.Recheck) * max(node.Loops, 1)
		}
	})
	return n
}

// String prints the plan's nodes.
func (p Plan) String() string {
	var b strings.Builder
	p.Each(func(n Plan) {
		fmt.Fprintf(&b, "%s %s %s, %g rows of %g in %g; ", n.Node, n.Table, n.Index, n.Rows, n.Rows+n.Removed+n.Recheck, n.Loops)
	})
	return b.String()
}

// Explain runs a statement once more, with the arguments it was sent with, and tells how it was
// planned; generic: with the one plan for all arguments that a prepared statement ends with.
func Explain(t testing.TB, conn *pgx.Conn, s Statement, generic bool) Plan {
	t.Helper()
	ctx := context.Background()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("cannot explain %s: %v", s.Name, err)
		}
	}
	described, err := conn.Prepare(ctx, "", s.SQL)
	fail(err)
	values := make([]string, len(s.Args))
	for i, arg := range s.Args {
		text, err := conn.TypeMap().Encode(described.ParamOIDs[i], pgx.TextFormatCode, arg, []byte{})
		fail(err)
		values[i] = "NULL"
		if text != nil {
			values[i] = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
		}
	}
	mode := "force_custom_plan"
	if generic {
		mode = "force_generic_plan"
	}
	_, err = conn.Exec(ctx, "SET plan_cache_mode = "+mode+"; PREPARE explained AS "+s.SQL)
	fail(err)
	var told []struct{ Plan Plan }
	var raw []byte
	// In text, as the simple protocol sends it: EXECUTE takes no parameters.
	fail(conn.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained("+strings.Join(values, ", ")+")", pgx.QueryExecModeSimpleProtocol).Scan(&raw))
	fail(json.Unmarshal(raw, &told))
	_, err = conn.Exec(ctx, "DEALLOCATE explained; RESET plan_cache_mode")
	fail(err)
	return told[0].Plan
}
