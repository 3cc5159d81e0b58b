// Package scalar reads and writes the wire's scalars, strictly: a value that is not exactly of
// its type is a BAD_INPUT. ("12" is no Int, 4294967296 is no Int, "true" is no Boolean.) Money,
// ids and dates are bound to the domain's types, which do it themselves.
package scalar

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"countersign/internal/domain"
)

// MarshalInt writes an Int.
func MarshalInt(n int32) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Itoa(int(n))) })
}

// UnmarshalInt reads an Int: a whole number of 32 bits, written without a fraction.
func UnmarshalInt(v any) (int32, error) {
	const fault = "an Int is a whole number from -2147483648 to 2147483647"
	if _, isString := v.(string); isString {
		return 0, domain.BadInput(fault)
	}
	n, err := domain.ParseInt64(v)
	if err != nil || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, domain.BadInput(fault)
	}
	return int32(n), nil
}

// MarshalBigInt writes a BigInt as a string, which every client can hold exactly.
func MarshalBigInt(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(strconv.FormatInt(n, 10))) })
}

// UnmarshalBigInt reads a BigInt.
func UnmarshalBigInt(v any) (int64, error) { return domain.ParseInt64(v) }

// MarshalString writes a String.
func MarshalString(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalString reads a String.
func UnmarshalString(v any) (string, error) { return domain.ParseText(v) }

// MarshalID writes an ID whose noun only the schema knows.
func MarshalID(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalID reads an ID whose noun its resolver decides.
func UnmarshalID(v any) (string, error) {
	switch v := v.(type) {
	case json.Number:
		return "", domain.BadInput("an id is a string")
	default:
		return domain.ParseText(v)
	}
}

// MarshalBoolean writes a Boolean.
func MarshalBoolean(b bool) graphql.Marshaler { return graphql.MarshalBoolean(b) }

// UnmarshalBoolean reads a Boolean.
func UnmarshalBoolean(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, domain.BadInput("a Boolean is true or false")
	}
	return b, nil
}

// MarshalDateTime writes a DateTime in UTC with six fractional digits.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(domain.FormatTime(t))) })
}

// UnmarshalDateTime reads a DateTime.
func UnmarshalDateTime(v any) (time.Time, error) { return domain.ParseTime(v) }
