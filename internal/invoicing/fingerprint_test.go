package invoicing_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// fingerprint is what is kept of an input beside its key.
func fingerprint(t *testing.T, in invoicing.AllocateInvoiceInput) domain.Fingerprint {
	t.Helper()
	op, err := auth.Caller{}.Operation("allocateInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		t.Fatal(err)
	}
	return op.Fingerprint
}

// A client that asks again after an upgrade is answered with its invoice, and not told that its key
// was used with another input: the canonical form of an allocation stays as it is. Whoever changes
// it raises the fingerprint's version, and compares old rows by the old form.
func TestFingerprintOfAnAllocationStays(t *testing.T) {
	t.Parallel()
	date, key := domain.NewDate(2026, 11, 29), "order-17"
	in := invoicing.AllocateInvoiceInput{
		SeriesID: domain.SeriesID{0: 1, 15: 2}, CustomerID: domain.CustomerID{0: 3, 15: 4}, Currency: "EUR", IssueDate: &date, IdempotencyKey: &key,
		Lines: []domain.InvoiceLineInput{
			{Description: `Rook & Pawn <"Schach"> für 2`, Quantity: 2, UnitAmountMinor: 9007199254740993},
			{Description: "Discount", Quantity: 1, UnitAmountMinor: -50},
		},
	}
	lines := `"lines":[{"description":"Rook \u0026 Pawn \u003c\"Schach\"\u003e für 2","quantity":2,"unitAmountMinor":9007199254740993},` +
		`{"description":"Discount","quantity":1,"unitAmountMinor":-50}],`
	ids := `{"seriesId":"ser_01000000000000000000000002","customerId":"cus_03000000000000000000000004","currency":"EUR",`
	check := func(name string, canonical string) {
		t.Helper()
		sum := sha256.Sum256([]byte(canonical))
		if want := append([]byte{1}, sum[:]...); !bytes.Equal(fingerprint(t, in), want) {
			t.Errorf("%s: the canonical form of an allocation is no longer %s", name, canonical)
		}
	}
	check("with a date", ids+lines+`"issueDate":"2026-11-29T00:00:00Z"}`)
	in.IssueDate = nil
	check("without a date", ids+lines+`"issueDate":null}`)
}

// Whatever an invoice would show otherwise makes it another input under the same key.
func TestFingerprintTellsInputsApart(t *testing.T) {
	t.Parallel()
	input := func(change func(in *invoicing.AllocateInvoiceInput)) invoicing.AllocateInvoiceInput {
		in := invoicing.AllocateInvoiceInput{
			SeriesID: domain.SeriesID{1}, CustomerID: domain.CustomerID{1}, Currency: "EUR",
			Lines: []domain.InvoiceLineInput{{Description: "Board", Quantity: 1, UnitAmountMinor: 900}, {Description: "Clock", Quantity: 1, UnitAmountMinor: 900}},
		}
		change(&in)
		return in
	}
	day, key := domain.NewDate(2026, 11, 29), "order-17"
	seen := map[string]string{}
	for name, change := range map[string]func(in *invoicing.AllocateInvoiceInput){
		"as it is":          func(*invoicing.AllocateInvoiceInput) {},
		"another series":    func(in *invoicing.AllocateInvoiceInput) { in.SeriesID[15] = 1 },
		"another customer":  func(in *invoicing.AllocateInvoiceInput) { in.CustomerID[15] = 1 },
		"another currency":  func(in *invoicing.AllocateInvoiceInput) { in.Currency = "CHF" },
		"a date":            func(in *invoicing.AllocateInvoiceInput) { in.IssueDate = &day },
		"a description":     func(in *invoicing.AllocateInvoiceInput) { in.Lines[0].Description = "board" },
		"a quantity":        func(in *invoicing.AllocateInvoiceInput) { in.Lines[0].Quantity = 2 },
		"an amount":         func(in *invoicing.AllocateInvoiceInput) { in.Lines[0].UnitAmountMinor = 901 },
		"lines in order":    func(in *invoicing.AllocateInvoiceInput) { in.Lines[0], in.Lines[1] = in.Lines[1], in.Lines[0] },
		"a line fewer":      func(in *invoicing.AllocateInvoiceInput) { in.Lines = in.Lines[:1] },
		"a line twice":      func(in *invoicing.AllocateInvoiceInput) { in.Lines = append(in.Lines, in.Lines[1]) },
		"a line in another": func(in *invoicing.AllocateInvoiceInput) { in.Lines[0].Description = `Board","quantity":1` },
	} {
		made := string(fingerprint(t, input(change)))
		if twin, ok := seen[made]; ok {
			t.Errorf("%s and %s have the same fingerprint", name, twin)
		}
		seen[made] = name
	}
	withKey := fingerprint(t, input(func(in *invoicing.AllocateInvoiceInput) { in.IdempotencyKey = &key }))
	if seen[string(withKey)] != "as it is" {
		t.Error("the key is part of the fingerprint")
	}
}
