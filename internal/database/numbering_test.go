package database_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The three statements that take a number lock and guard the counter by the same text: it stands in each,
// and what is mended in one is mended in all. They differ in how they name the series, the kind of document,
// the moment, and in how many numbers they take.
func TestNumbersAreTakenByOneGuard(t *testing.T) {
	t.Parallel()
	differs := strings.NewReplacer(" - cardinality(@ids::uuid[]) + 1", "", "sqlc.narg('number_by')::uuid", "@series_id",
		"'CREDIT_NOTE'", "'INVOICE'", "@dated_by", "@now")
	comment, space := regexp.MustCompile(`--[^\n]*`), regexp.MustCompile(`\s+`)
	var first string
	for name, file := range map[string]string{
		"AllocateInvoices": "invoice", "MoveInvoice": "usage_invoice", "InsertCreditNote": "invoice_life",
	} {
		text, err := os.ReadFile("../../queries/" + file + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		_, query, found := strings.Cut(string(text), "-- name: "+name+" ")
		_, guard, from := strings.Cut(comment.ReplaceAllString(query, ""), "FROM series_counters c")
		guard, _, until := strings.Cut(guard, "FOR UPDATE")
		if !found || !from || !until {
			t.Fatalf("%s has no guard", name)
		}
		guard = space.ReplaceAllString(differs.Replace(guard), " ")
		if first == "" {
			first = guard
		}
		if guard != first {
			t.Errorf("%s guards the counter by\n%s\nand another by\n%s", name, guard, first)
		}
	}
}
