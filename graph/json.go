package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"

	"countersign/internal/domain"
)

// decodeRequest reads a GraphQL request from a JSON body, strictly: one object, each key once,
// nothing behind it, text that is Unicode. The errors quote nothing of the body, which may hold
// secrets.
func decodeRequest(body []byte) (*graphql.RawParams, error) {
	value, err := decodeJSON("the body", body)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, domain.BadInput("the body is a JSON object with the keys query, operationName, variables and extensions")
	}
	return newParams(object)
}

// decodeJSON reads one JSON value, strictly; what names it in errors.
func decodeJSON(what string, text []byte) (any, error) {
	if !utf8.Valid(text) || hasLoneSurrogate(text) {
		return nil, domain.BadInput("%s is not valid Unicode", what)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	value, err := decodeValue(d, 0)
	if err != nil {
		return nil, domain.BadInput("%s is not JSON, has a key twice, or is nested too deeply", what).Because(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, domain.BadInput("%s goes on behind its JSON value", what)
	}
	return value, nil
}

// newParams checks the keys of a request.
func newParams(object map[string]any) (*graphql.RawParams, error) {
	for name := range object {
		for _, key := range []string{"query", "operationName", "variables", "extensions"} {
			if name != key && strings.EqualFold(name, key) { // a proxy in between may have read it as the key
				return nil, domain.BadInput("a key is spelt %s", key)
			}
		}
	}
	p := &graphql.RawParams{}
	var ok bool
	if p.Query, ok = object["query"].(string); !ok {
		return nil, domain.BadInput("query is a string, and required")
	}
	// A document has the same escapes, and its lexer would replace half a character, too.
	if !utf8.ValidString(p.Query) || hasLoneSurrogate([]byte(p.Query)) {
		return nil, domain.BadInput("query is not valid Unicode")
	}
	if name := object["operationName"]; name != nil {
		if p.OperationName, ok = name.(string); !ok {
			return nil, domain.BadInput("operationName is a string")
		}
	}
	if variables := object["variables"]; variables != nil {
		if p.Variables, ok = variables.(map[string]any); !ok {
			return nil, domain.BadInput("variables is an object")
		}
	}
	if extensions := object["extensions"]; extensions != nil {
		if p.Extensions, ok = extensions.(map[string]any); !ok {
			return nil, domain.BadInput("extensions is an object")
		}
	}
	return p, nil
}

var (
	errTwice = errors.New("a key stands twice in one object")
	errDeep  = errors.New("the value is nested too deeply")
)

// maxNesting is how deep a JSON value may be nested: a megabyte of brackets must not become as
// many stack frames.
const maxNesting = 100

// decodeValue reads one JSON value. encoding/json keeps the last of a key that stands twice; a
// proxy in between may have read the first.
func decodeValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxNesting {
		return nil, errDeep
	}
	switch token {
	case json.Number("-0"):
		return math.Copysign(0, -1), nil // as a float it is no Int; gqlparser would make it the Int 0
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string) // the decoder lets nothing else be a key
			if _, twice := object[name]; twice {
				return nil, errTwice
			}
			if object[name], err = decodeValue(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

// hasLoneSurrogate finds an escape that is half a character; encoding/json would replace it, and
// two different keys would become one.
func hasLoneSurrogate(body []byte) bool {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(body[i:])
		switch {
		case !ok:
			i++ // another escape: skip what it escapes
		case unit >= 0xdc00 && unit <= 0xdfff:
			return true
		case unit >= 0xd800 && unit <= 0xdbff:
			low, ok := escapedUnit(body[min(i+6, len(body)):])
			if !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// escapedUnit reads \uXXXX.
func escapedUnit(s []byte) (uint64, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return unit, err == nil
}
