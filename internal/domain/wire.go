package domain

import (
	"encoding/json"
	"io"
	"strconv"
)

// Node is what the schema's interface Node is bound to; the schema, not Go, says which types
// are nodes.
type Node interface{}

// writeQuoted writes s as a JSON string. s needs no escapes: an id, digits, a code or a time.
func writeQuoted(w io.Writer, s string) { _, _ = io.WriteString(w, `"`+s+`"`) }

// ParseInt64 reads a BigInt: a whole number, or a string of one. Floats, exponents, leading
// zeros, plus signs and "-0" are refused, so that a number has one spelling.
func ParseInt64(v any) (int64, error) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	default:
		return 0, BadInput("a BigInt is a whole number, or a string of one")
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, BadInput("a BigInt is a whole number from %d to %d, written without leading zeros, plus sign or exponent", int64(-1<<63), int64(1<<63-1))
	}
	return n, nil
}
