package scalar_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"countersign/graph/scalar"
	"countersign/internal/domain"
)

// wire reads a scalar, writes what it read as JSON, and reads that again.
type wire func(v any) (read any, written graphql.Marshaler, err error)

func both[T any](read func(any) (T, error), write func(T) graphql.Marshaler) wire {
	return func(v any) (any, graphql.Marshaler, error) {
		value, err := read(v)
		if err != nil {
			return nil, nil, err
		}
		return value, write(value), nil
	}
}

var wires = map[string]wire{
	"Int": both(scalar.UnmarshalInt, scalar.MarshalInt), "BigInt": both(scalar.UnmarshalBigInt, scalar.MarshalBigInt),
	"String": both(scalar.UnmarshalString, scalar.MarshalString), "ID": both(scalar.UnmarshalID, scalar.MarshalID),
	"Boolean": both(scalar.UnmarshalBoolean, scalar.MarshalBoolean), "DateTime": both(scalar.UnmarshalDateTime, scalar.MarshalDateTime),
}

// FuzzScalar: a scalar takes a value and gives back the same one, or refuses it as BAD_INPUT.
func FuzzScalar(f *testing.F) {
	for _, text := range []string{"", "0", "-0", "12", "2147483648", "9223372036854775807", "1e3", "true", "a\x00b", "\xff", "€😀\n\u2028<", "2026-11-29T14:30:00.123456+02:30", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, w := range wires {
			for _, v := range []any{text, json.Number(text), len(text), int64(len(text)) << 28, text == "true", nil, []any{text}, map[string]any{text: text}} {
				value, written, err := w(v)
				var refusal *domain.Refusal
				if err != nil && (!errors.As(err, &refusal) || refusal.Code != domain.CodeBadInput) {
					t.Fatalf("%s refuses %#v with %v", name, v, err)
				}
				if err != nil {
					continue
				}
				var b strings.Builder
				written.MarshalGQL(&b)
				d := json.NewDecoder(strings.NewReader(b.String()))
				d.UseNumber()
				var out any
				if err := d.Decode(&out); err != nil {
					t.Fatalf("%s writes %#v as %s: %v", name, value, b.String(), err)
				}
				if again, _, err := w(out); err != nil || again != value {
					t.Fatalf("%s takes %#v as %v, writes %s, and takes that as %v, %v", name, v, value, b.String(), again, err)
				}
			}
		}
	})
}
