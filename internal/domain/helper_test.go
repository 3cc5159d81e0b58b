package domain

import (
	"errors"
	"io"
	"strings"
)

// code is what a caller is told of an error.
func code(err error) Code {
	var user UserError
	if errors.As(err, &user) {
		return user.GetCode()
	}
	return ""
}

// path is what an error says it is about: "input.lines.0.quantity".
func path(err error) string {
	var user UserError
	if errors.As(err, &user) {
		return strings.Join(user.GetPath(), ".")
	}
	return ""
}

// wire is a value as it stands in a response.
func wire(v interface{ MarshalGQL(w io.Writer) }) string {
	var out strings.Builder
	v.MarshalGQL(&out)
	return out.String()
}
