package domain

import (
	"fmt"
	"io"
	"strings"

	"github.com/gofrs/uuid/v5"
	"go.jetify.com/typeid/base32"
)

// Every noun has an id type of its own, so that the id of an order cannot pass for that of an
// invoice. In the database an id is a UUID (version 7: in order of creation), printed it is the
// noun's prefix and 26 characters of Crockford's base 32: inv_01jd….
type (
	TenantID   [16]byte // ten_…
	TokenID    [16]byte // tok_…
	CustomerID [16]byte // cus_…
	SeriesID   [16]byte // ser_…
	InvoiceID  [16]byte // inv_…
	ProductID  [16]byte // prd_…
	OrderID    [16]byte // ord_…
	AttemptID  [16]byte // pay_…
	RefundID   [16]byte // ref_…

	APIKeyID     [16]byte // key_…
	SettlementID [16]byte // set_…
	ExemptionID  [16]byte // exm_…
)

func (id TenantID) String() string   { return printID("ten", id) }
func (id TokenID) String() string    { return printID("tok", id) }
func (id CustomerID) String() string { return printID("cus", id) }
func (id SeriesID) String() string   { return printID("ser", id) }
func (id InvoiceID) String() string  { return printID("inv", id) }
func (id ProductID) String() string  { return printID("prd", id) }
func (id OrderID) String() string    { return printID("ord", id) }
func (id AttemptID) String() string  { return printID("pay", id) }
func (id RefundID) String() string   { return printID("ref", id) }

func (id APIKeyID) String() string                  { return printID("key", id) }
func (id APIKeyID) MarshalGQL(w io.Writer)          { writeQuoted(w, id.String()) }
func (id *APIKeyID) UnmarshalGQL(v any) (err error) { *id, err = readID[APIKeyID](v); return }
func (id APIKeyID) MarshalText() ([]byte, error)    { return []byte(id.String()), nil }
func (id *APIKeyID) UnmarshalText(s []byte) error   { return id.UnmarshalGQL(string(s)) }

func (id SettlementID) String() string                  { return printID("set", id) }
func (id SettlementID) MarshalGQL(w io.Writer)          { writeQuoted(w, id.String()) }
func (id *SettlementID) UnmarshalGQL(v any) (err error) { *id, err = readID[SettlementID](v); return }
func (id SettlementID) MarshalText() ([]byte, error)    { return []byte(id.String()), nil }
func (id *SettlementID) UnmarshalText(s []byte) error   { return id.UnmarshalGQL(string(s)) }

func (id TokenID) MarshalGQL(w io.Writer)          { writeQuoted(w, id.String()) }
func (id *TokenID) UnmarshalGQL(v any) (err error) { *id, err = readID[TokenID](v); return }
func (id TokenID) MarshalText() ([]byte, error)    { return []byte(id.String()), nil }
func (id *TokenID) UnmarshalText(s []byte) error   { return id.UnmarshalGQL(string(s)) }

func (id ExemptionID) String() string                  { return printID("exm", id) }
func (id ExemptionID) MarshalGQL(w io.Writer)          { writeQuoted(w, id.String()) }
func (id *ExemptionID) UnmarshalGQL(v any) (err error) { *id, err = readID[ExemptionID](v); return }
func (id ExemptionID) MarshalText() ([]byte, error)    { return []byte(id.String()), nil }
func (id *ExemptionID) UnmarshalText(s []byte) error   { return id.UnmarshalGQL(string(s)) }

func (id CustomerID) MarshalGQL(w io.Writer) { writeQuoted(w, id.String()) }
func (id SeriesID) MarshalGQL(w io.Writer)   { writeQuoted(w, id.String()) }
func (id InvoiceID) MarshalGQL(w io.Writer)  { writeQuoted(w, id.String()) }
func (id ProductID) MarshalGQL(w io.Writer)  { writeQuoted(w, id.String()) }
func (id OrderID) MarshalGQL(w io.Writer)    { writeQuoted(w, id.String()) }
func (id AttemptID) MarshalGQL(w io.Writer)  { writeQuoted(w, id.String()) }
func (id RefundID) MarshalGQL(w io.Writer)   { writeQuoted(w, id.String()) }

func (id *CustomerID) UnmarshalGQL(v any) (err error) { *id, err = readID[CustomerID](v); return }
func (id *SeriesID) UnmarshalGQL(v any) (err error)   { *id, err = readID[SeriesID](v); return }
func (id *InvoiceID) UnmarshalGQL(v any) (err error)  { *id, err = readID[InvoiceID](v); return }
func (id *ProductID) UnmarshalGQL(v any) (err error)  { *id, err = readID[ProductID](v); return }
func (id *OrderID) UnmarshalGQL(v any) (err error)    { *id, err = readID[OrderID](v); return }
func (id *AttemptID) UnmarshalGQL(v any) (err error)  { *id, err = readID[AttemptID](v); return }
func (id *RefundID) UnmarshalGQL(v any) (err error)   { *id, err = readID[RefundID](v); return }

// In JSON and in logs an id is printed too.
func (id CustomerID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }
func (id SeriesID) MarshalText() ([]byte, error)   { return []byte(id.String()), nil }
func (id InvoiceID) MarshalText() ([]byte, error)  { return []byte(id.String()), nil }
func (id ProductID) MarshalText() ([]byte, error)  { return []byte(id.String()), nil }
func (id OrderID) MarshalText() ([]byte, error)    { return []byte(id.String()), nil }
func (id RefundID) MarshalText() ([]byte, error)   { return []byte(id.String()), nil }

func (id *CustomerID) UnmarshalText(s []byte) error { return id.UnmarshalGQL(string(s)) }
func (id *SeriesID) UnmarshalText(s []byte) error   { return id.UnmarshalGQL(string(s)) }
func (id *InvoiceID) UnmarshalText(s []byte) error  { return id.UnmarshalGQL(string(s)) }
func (id *ProductID) UnmarshalText(s []byte) error  { return id.UnmarshalGQL(string(s)) }
func (id *OrderID) UnmarshalText(s []byte) error    { return id.UnmarshalGQL(string(s)) }
func (id *RefundID) UnmarshalText(s []byte) error   { return id.UnmarshalGQL(string(s)) }

// UUID is an id whose noun the type no longer says: an element of an array parameter, or one of
// the ids that the doctor names.
type UUID [16]byte

// ID is any of the id types.
type ID interface {
	~[16]byte
	fmt.Stringer
}

// NewID makes an id that sorts after those made before it.
func NewID[T ~[16]byte]() T { return T(uuid.Must(uuid.NewV7())) }

// UUIDs strips ids of their noun, for array parameters.
func UUIDs[T ~[16]byte](ids []T) []UUID {
	out := make([]UUID, len(ids))
	for i, id := range ids {
		out[i] = UUID(id)
	}
	return out
}

// IDKind is the prefix of a printed id without its underscore ("inv"), or "" where there is none.
func IDKind(s string) string {
	kind, _, found := strings.Cut(s, "_")
	if !found {
		return ""
	}
	return kind
}

// ParseID reads a printed id of one kind. The error is a BAD_INPUT that says which kind was
// expected. An id has one spelling: upper case and values past 128 bits are refused.
func ParseID[T ID](s string) (T, error) {
	_, tail, _ := strings.Cut(s, "_")
	if raw, err := base32.Decode(tail); err == nil {
		if id := T(raw); id.String() == s {
			return id, nil
		}
	}
	var zero T
	prefix := IDKind(zero.String()) + "_"
	if !strings.HasPrefix(s, prefix) {
		return zero, BadInput("expected an id of the kind %s…", prefix)
	}
	return zero, BadInput("not an id: %s is followed by 26 characters of base 32", prefix)
}

// PrintID prints an id whose kind is known only as data.
func PrintID(kind string, id UUID) string { return printID(kind, id) }

func printID(kind string, id [16]byte) string { return kind + "_" + base32.Encode(id) }

func readID[T ID](v any) (T, error) {
	s, ok := v.(string)
	if !ok {
		var zero T
		return zero, BadInput("an id is a string")
	}
	return ParseID[T](s)
}
