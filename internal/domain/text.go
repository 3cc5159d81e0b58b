package domain

import (
	"strings"
	"unicode/utf8"
)

// CheckText refuses a text that is blank or longer than max characters.
func CheckText(path []string, s string, max int) error {
	if strings.TrimSpace(s) == "" || utf8.RuneCountInString(s) > max {
		return BadInputAt(path, "%s is 1 to %d characters and not blank", path[len(path)-1], max)
	}
	return nil
}

// ParseText reads a string of the wire: UTF-8 without NUL, which the database cannot hold.
func ParseText(v any) (string, error) {
	s, ok := v.(string)
	switch {
	case !ok:
		return "", BadInput("expected a string")
	case strings.ContainsRune(s, 0):
		return "", BadInput("a string holds no NUL character")
	case !utf8.ValidString(s):
		return "", BadInput("a string is valid UTF-8")
	}
	return s, nil
}
