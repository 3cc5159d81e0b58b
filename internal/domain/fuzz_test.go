package domain

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// wireType is a type of the wire: read, then written as JSON.
type wireType interface{ MarshalGQL(w io.Writer) }

// wireReader reads a value; equal compares what was read.
type wireReader func(v any) (wireType, error)

func reader[T wireType, P interface {
	*T
	UnmarshalGQL(v any) error
}]() wireReader {
	return func(v any) (wireType, error) {
		var out T
		err := P(&out).UnmarshalGQL(v)
		return out, err
	}
}

// oneSpelling are the types whose values are printed as they were read.
var oneSpelling = map[string]wireReader{
	"Cents": reader[Cents](), "CurrencyCode": reader[CurrencyCode](), "Date": reader[Date](), "Month": reader[Month](),
	"Decimal": reader[Decimal](), "CustomerID": reader[CustomerID](), "InvoiceID": reader[InvoiceID](), "APIKeyID": reader[APIKeyID](),
}

// FuzzWire: a type of the wire takes a text and prints the same, or refuses it as BAD_INPUT. A version
// is printed in UTC with six digits, and read as the same moment.
func FuzzWire(f *testing.F) {
	for _, text := range []string{"", "0", "-0", "007", "9223372036854775807", "0.50", "-0.0", "123456789012345678.123456789012", "EUR", "eur", "2026-02-29", "2024-02-29", "0001-01", "2026-11",
		"inv_01jd0000000000000000000000", "cus_7zzzzzzzzzzzzzzzzzzzzzzzzz", "key_8zzzzzzzzzzzzzzzzzzzzzzzzz", "inv_01JD0000000000000000000000", "2026-11-29T14:30:00.1+02:30", "9999-12-31T23:59:59-01:00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, read := range oneSpelling {
			value, err := read(text)
			wantBadInput(t, name, err)
			if got := wire(value); err == nil && got != `"`+text+`"` {
				t.Fatalf("%s takes %q and prints %s", name, text, got)
			}
			for _, other := range []any{nil, true, 1.5, []any{text}, map[string]any{text: text}} {
				if _, err := read(other); err == nil {
					t.Fatalf("%s takes %#v", name, other)
				}
			}
		}
		version := reader[Version]()
		value, err := version(text)
		if wantBadInput(t, "Version", err); err != nil {
			return
		}
		var printed string
		if err := json.Unmarshal([]byte(wire(value)), &printed); err != nil || len(printed) != len("2026-11-29T12:00:00.000000Z") {
			t.Fatalf("the version %q is printed %s: %v", text, wire(value), err)
		}
		if again, err := version(printed); err != nil || !again.(Version).Equal(value.(Version).Time) {
			t.Fatalf("the version %q is read again as %v, %v", text, again, err)
		}
	})
}

// wantBadInput fails if a refusal is another.
func wantBadInput(t *testing.T, name string, err error) {
	t.Helper()
	var refusal *Refusal
	if err != nil && (!errors.As(err, &refusal) || refusal.Code != CodeBadInput) {
		t.Fatalf("%s is refused with %v", name, err)
	}
}

// FuzzID: an id has one spelling, which only its own kind takes.
func FuzzID(f *testing.F) {
	f.Add("inv_01jd0000000000000000000000", []byte("0123456789abcdef"))
	f.Add("inv_8zzzzzzzzzzzzzzzzzzzzzzzzz", []byte{0xff, 15: 0xff})
	f.Add("cus_", make([]byte, 16))
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		if id, err := ParseID[InvoiceID](text); err == nil && id.String() != text {
			t.Fatalf("%q is read as %s", text, id)
		} else {
			wantBadInput(t, "an id", err)
		}
		if len(raw) != 16 {
			return
		}
		order := OrderID(raw)
		if again, err := ParseID[OrderID](order.String()); err != nil || again != order {
			t.Fatalf("%s is read again as %s, %v", order, again, err)
		}
		if _, err := ParseID[InvoiceID](order.String()); err == nil {
			t.Fatalf("%s is taken for an invoice", order)
		}
	})
}

// FuzzNumberFormat: whatever a format is, it can be checked; one that passes prints every number of
// every day within the legal length, and no two numbers of a day alike.
func FuzzNumberFormat(f *testing.F) {
	for _, format := range []string{"{CODE}-{N:5}", "INV/{FY}/{N:5}", "{YYYY}{MM}{DD}{N}", "{N}{N}", "{N:18}", "{N:99}", "{", "{}", "{N", "a{CODE}b {YY}", "{N:05}", "é{N}", " {N}", "{N}\n"} {
		f.Add(format, "INV", int64(1), int64(10), int64(20_000), byte(4))
	}
	f.Add("{"+strings.Repeat("N", 1000)+"}", "A", int64(1), int64(2), int64(0), byte(1))
	f.Add("{N:3}", "A", int64(999), int64(1000), int64(-700_000), byte(1))
	f.Fuzz(func(t *testing.T, text, code string, n, m, day int64, start byte) {
		format := NumberFormat(text)
		rule := SeriesRule{Code: code, Format: format, Reset: ResetNever, FiscalYearStart: int32(start%12) + 1, MaxLength: MaxSeriesLength, AllowedCharacters: CharactersPlain, Capacity: 1}
		err := rule.Check()
		var refusal *Refusal
		if err != nil && (!errors.As(err, &refusal) || refusal.Code != CodeInvalidFormat && refusal.Code != CodeBadInput) {
			t.Fatalf("the format %q is refused with %v", text, err)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Fatalf("a long format is refused with %d bytes", len(err.Error()))
		}
		date := DateOf(time.Unix(0, 0).AddDate(0, 0, int(day%3_000_000)), time.UTC)
		if ParseSeriesCode(code) != nil || err != nil || date.Year() < 1 || date.Year() > 9999 || n < 1 || m < 1 || n > rule.MaxNumber() || m > rule.MaxNumber() {
			_ = format.On(code, date, int32(start)).Print(n) // no panic
			return
		}
		numbering := format.On(code, date, int32(start%12)+1)
		first, second := numbering.Print(n), numbering.Print(m)
		if len(first) > 64 || strings.ContainsAny(first, "{}") {
			t.Fatalf("%q prints %q", text, first)
		}
		if (first == second) != (n == m) {
			t.Fatalf("%q prints %d as %q and %d as %q", text, n, first, m, second)
		}
		if got := wire(format); got != `"`+text+`"` {
			t.Fatalf("the format %q is written %s", text, got)
		}
	})
}

// FuzzFingerprint: two inputs have one fingerprint exactly where they are equal, as a client sees it.
func FuzzFingerprint(f *testing.F) {
	f.Add("Chess", int32(1), int64(4950), "0.5", "", false, "Chess", int32(1), int64(4950), "0.50", "", false)
	f.Add("a", int32(1), int64(1), "1", "", true, "a", int32(1), int64(1), "1", "", false)
	f.Add("a\",\"quantity\":2,\"x\":\"", int32(1), int64(12), "10", "<", true, "a", int32(11), int64(2), "1", "\\u003c", true)
	f.Add("\u2028", int32(-1), int64(-1), "-1.0", "\ufffd", true, "\\u2028", int32(-1), int64(-1), "-1", "\ufffd", true)
	type input struct {
		Lines []InvoiceLineInput `json:"lines"`
		Price Decimal            `json:"price"`
		Note  *string            `json:"note"`
		Key   *string            `json:"-"`
	}
	f.Fuzz(func(t *testing.T, d1 string, q1 int32, u1 int64, p1, n1 string, has1 bool, d2 string, q2 int32, u2 int64, p2, n2 string, has2 bool) {
		for _, text := range []string{d1, n1, d2, n2} {
			if _, err := ParseText(text); err != nil {
				return // refused before there is an input
			}
		}
		var first, second input
		if first.Price.UnmarshalGQL(p1) != nil || second.Price.UnmarshalGQL(p2) != nil {
			return
		}
		first.Lines = []InvoiceLineInput{{Description: d1, Quantity: q1, UnitAmountMinor: Cents(u1)}}
		second.Lines = []InvoiceLineInput{{Description: d2, Quantity: q2, UnitAmountMinor: Cents(u2)}}
		if has1 {
			first.Note = &n1
		}
		if has2 {
			second.Note = &n2
		}
		key := "k"
		second.Key = &key // is not part of the input
		equal := first.Lines[0] == second.Lines[0] && first.Price.Cmp(&second.Price.Decimal) == 0 && has1 == has2 && (!has1 || n1 == n2)
		one, err1 := NewOperation(TenantID{}, "", "m", "", &key, first)
		two, err2 := NewOperation(TenantID{}, "", "m", "", &key, second)
		if err1 != nil || err2 != nil || one.Fingerprint.Equal(two.Fingerprint) != equal {
			t.Fatalf("equal %v, and by their fingerprints %v: %+v, %+v, %v, %v", equal, !equal, first, second, err1, err2)
		}
	})
}
