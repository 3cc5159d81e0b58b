package database_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// statement is one of the queries in queries/*.sql.
type statement struct {
	name, command, sql string
	calls              []call
}

// call is a function that a statement calls, by name or by an operator, and how it answers:
// (i)mmutable, (s)table or (v)olatile, as the catalogue has it.
type call struct {
	Name       string
	Volatility string
}

var (
	heading   = regexp.MustCompile(`(?m)^-- name: (\w+) :(\w+)$`)
	comment   = regexp.MustCompile(`(?m)--.*$`)
	parameter = regexp.MustCompile(`@(\w+)|sqlc\.(?:n?arg|slice)\('(\w+)'\)`)
	embedded  = regexp.MustCompile(`sqlc\.embed\((\w+)\)`)
)

// statements takes a query file apart; comments are left out.
func statements(t *testing.T, conn *pgx.Conn, text string) (all []statement) {
	t.Helper()
	heads := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		sql := comment.ReplaceAllString(text[h[1]:end], "")
		all = append(all, statement{text[h[2]:h[3]], text[h[4]:h[5]], sql, callsOf(t, conn, sql)})
	}
	return all
}

// callsOf lets PostgreSQL parse a query, as the body of a function that is forgotten again, and
// reads from the parsed text what it calls.
func callsOf(t *testing.T, conn *pgx.Conn, sql string) (calls []call) {
	t.Helper()
	ctx := context.Background()
	numbers := map[string]string{}
	sql = embedded.ReplaceAllString(sql, "$1.*")
	sql = parameter.ReplaceAllStringFunc(sql, func(match string) string {
		name := strings.Join(parameter.FindStringSubmatch(match)[1:], "")
		if numbers[name] == "" {
			numbers[name] = fmt.Sprintf("$%d", len(numbers)+1)
		}
		return numbers[name]
	})
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		parsed, err := tx.Prepare(ctx, "", sql)
		if err != nil {
			return err
		}
		var types string
		if err := tx.QueryRow(ctx, `SELECT coalesce(string_agg(format_type(oid, NULL), ', ' ORDER BY ord), '')
			FROM unnest($1::oid[]) WITH ORDINALITY AS p (oid, ord)`, parsed.ParamOIDs).Scan(&types); err != nil {
			return err
		}
		body := strings.TrimRight(sql, "; \n")
		if _, err := tx.Exec(ctx, "CREATE FUNCTION parsed("+types+") RETURNS void LANGUAGE sql BEGIN ATOMIC "+body+"; END"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `WITH body AS (SELECT prosqlbody::text AS tree FROM pg_proc WHERE proname = 'parsed')
			SELECT p.proname::text, p.provolatile::text
			FROM body, regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS called JOIN pg_proc p ON p.oid = called[1]::oid
			UNION SELECT 'current_timestamp and its like', 's' FROM body WHERE tree ~ 'SQLVALUEFUNCTION'`)
		if err != nil {
			return err
		}
		if calls, err = pgx.CollectRows(rows, pgx.RowToStructByPos[call]); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatalf("%s: %v", sql, err)
	}
	return calls
}

// some says whether a statement has a call of some kind.
func (s statement) some(kind func(call) bool) bool { return slices.ContainsFunc(s.calls, kind) }
