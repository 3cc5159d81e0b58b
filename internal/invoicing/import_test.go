package invoicing_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// BenchmarkImport imports as many rows as an import may have, of which no two make one entry:
//
//	go test ./internal/invoicing -run '^$' -bench Import$ -benchtime 5x
func BenchmarkImport(b *testing.B) {
	s := newShop(b)
	var csv strings.Builder
	csv.WriteString("number,reference\n")
	for n := range domain.MaxImportRows {
		fmt.Fprintf(&csv, "%d,a\n", n+1)
	}
	in := invoicing.ImportNumbersInput{CSV: new(csv.String()), Reason: "from the old system", DryRun: new(false)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in.SeriesID = s.newSeries(b, fmt.Sprint("S", i), "{CODE}-{N:5}")
		out, err := s.ImportNumbers(b.Context(), s.caller, in)
		if err != nil || out.Value.ImportedNumbers != domain.MaxImportRows {
			b.Fatalf("%+v, %v", out.Value, err)
		}
	}
}
