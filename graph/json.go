package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"

	"countersign/internal/domain"
)

// decodeRequest reads a GraphQL request from a JSON body, strictly: one object, each key once,
// nothing behind it, text that is Unicode. The errors quote nothing of the body, which may hold
// secrets.
func decodeRequest(body []byte) (*graphql.RawParams, error) {
	if !utf8.Valid(body) || hasLoneSurrogate(body) {
		return nil, domain.BadInput("the body is not valid Unicode")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	value, err := decodeValue(d)
	if err != nil {
		return nil, domain.BadInput("the body is not JSON, or has a key twice").Because(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, domain.BadInput("the body goes on behind its JSON value")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, domain.BadInput("the body is a JSON object with the keys query, operationName, variables and extensions")
	}
	return newParams(object)
}

// newParams checks the keys of a request.
func newParams(object map[string]any) (*graphql.RawParams, error) {
	p := &graphql.RawParams{}
	var ok bool
	if p.Query, ok = object["query"].(string); !ok {
		return nil, domain.BadInput("query is a string, and required")
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

var errTwice = errors.New("a key stands twice in one object")

// decodeValue reads one JSON value. encoding/json keeps the last of a key that stands twice; a
// proxy in between may have read the first.
func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
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
			if object[name], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d)
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
