package domain

import (
	"bytes"
	"strings"
	"testing"
)

// Two ids: the greatest, and one as they are made.
var (
	greatest = [16]byte(bytes.Repeat([]byte{0xff}, 16))
	ordinary = [16]byte{0x01, 0x98, 0xab, 0, 0x40, 0x3c, 0x7d, 0, 0x8e, 15: 1}
)

// noun is how the ids of one noun are printed and read.
type noun struct {
	kind  string
	print func(raw [16]byte) string
	parse func(s string) (string, error)
}

func nounOf[T ID](kind string) noun {
	return noun{kind, func(raw [16]byte) string { return T(raw).String() }, func(s string) (string, error) {
		id, err := ParseID[T](s)
		return id.String(), err
	}}
}

// An id that a client was given finds the same row when it comes back, whichever noun it is of, and
// never one of another noun: the id of a customer is no invoice.
func TestIDsRoundTrip(t *testing.T) {
	t.Parallel()
	nouns := []noun{nounOf[TenantID]("ten"), nounOf[TokenID]("tok"), nounOf[CustomerID]("cus"), nounOf[SeriesID]("ser"), nounOf[InvoiceID]("inv")}
	for _, n := range nouns {
		for _, raw := range [][16]byte{{}, ordinary, greatest, NewID[[16]byte]()} {
			printed := n.print(raw)
			if back, err := n.parse(printed); err != nil || back != printed || !strings.HasPrefix(printed, n.kind+"_") || len(printed) != 30 {
				t.Errorf("%s comes back as %s (%v)", printed, back, err)
			}
			if IDKind(printed) != n.kind || PrintID(n.kind, UUID(raw)) != printed {
				t.Errorf("%s is of the kind %q", printed, IDKind(printed))
			}
			for _, other := range nouns {
				if back, err := other.parse(printed); other.kind != n.kind && (code(err) != CodeBadInput || !strings.Contains(err.Error(), other.kind+"_")) {
					t.Errorf("%s is read as %s (%v), want BAD_INPUT that asks for %s_", printed, back, err, other.kind)
				}
			}
		}
	}
	if kind := IDKind("no id"); kind != "" {
		t.Errorf("a text without a prefix is of the kind %q", kind)
	}
}

// An id has one spelling, so that the same row is not cached, or compared, under two.
func TestIDsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	good := InvoiceID(ordinary).String()
	tail := strings.TrimPrefix(good, "inv_")
	for name, in := range map[string]any{
		"upper case":            "inv_" + strings.ToUpper(tail),
		"an upper-case prefix":  "INV_" + tail,
		"one upper-case letter": "inv_" + strings.Replace(tail, "k", "K", 1),
		"past 128 bits":         "inv_8zzzzzzzzzzzzzzzzzzzzzzzzz",
		"far past 128 bits":     "inv_zzzzzzzzzzzzzzzzzzzzzzzzzz",
		"a letter too few":      good[:29],
		"a letter too many":     good + "0",
		"a letter of no base":   "inv_" + strings.Replace(tail, "1", "l", 1),
		"look-alikes":           "inv_" + strings.Replace(tail, "0", "o", 1),
		"bytes past ASCII":      "inv_" + strings.Repeat("é", 13),
		"a UUID":                "0198ab00-403c-7d00-8e00-000000000001",
		"no prefix":             tail,
		"only a prefix":         "inv_",
		"another separator":     "inv-" + tail,
		"space":                 " " + good,
		"nothing":               "",
		"a number":              12,
		"null":                  nil,
	} {
		var id InvoiceID
		if err := id.UnmarshalGQL(in); code(err) != CodeBadInput || id != (InvoiceID{}) {
			t.Errorf("%s: %v is read as %s (%v), want BAD_INPUT", name, in, id, err)
		}
	}
	var id InvoiceID
	if err := id.UnmarshalGQL("inv_7zzzzzzzzzzzzzzzzzzzzzzzzz"); err != nil || id != greatest {
		t.Errorf("the greatest id is read as %x (%v)", id, err)
	}
}

// Ids sort in order of their making: lists that page by id are in order of creation.
func TestIDsRise(t *testing.T) {
	t.Parallel()
	last := NewID[InvoiceID]().String()
	for range 10_000 {
		next := NewID[InvoiceID]().String()
		if next <= last {
			t.Fatalf("%s was made after %s", next, last)
		}
		last = next
	}
}
