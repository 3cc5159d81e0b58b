package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json/jsontext"

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
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)) // decodeValue refuses them
	value, err := decodeValue(d)
	if err != nil {
		return nil, domain.BadInput("%s is not JSON in UTF-8, has a key twice, or is nested too deeply", what).Because(faultOnly(err))
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, domain.BadInput("%s goes on behind its JSON value", what)
	}
	return value, nil
}

// faultOnly is what is wrong with a JSON text, without a word of it.
func faultOnly(err error) error {
	var fault *jsontext.SyntacticError
	if errors.As(err, &fault) {
		return fmt.Errorf("at byte %d", fault.ByteOffset)
	}
	return err
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
	if !utf8.ValidString(p.Query) || hasLoneSurrogate(p.Query) {
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
	errDeep  = errors.New("the value is nested too deeply")
	errTwice = errors.New("an object has a key twice")
)

// maxNesting is how deep a JSON value may be nested: a megabyte of brackets must not become as
// many stack frames.
const maxNesting = 100

// decodeValue reads one JSON value. A key that stands twice is refused, since a proxy in between may have
// read the other one; text that is not Unicode, half a character included, is refused by the decoder.
func decodeValue(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if d.StackDepth() > maxNesting+1 {
		return nil, errDeep
	}
	switch token.Kind() {
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			key, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			if _, twice := object[name]; twice {
				return nil, errTwice
			}
			if object[name], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return object, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.ReadToken()
		return list, err
	case '"':
		return token.String(), nil
	case '0':
		if token.String() == "-0" {
			return math.Copysign(0, -1), nil // as a float it is no Int; gqlparser would make it the Int 0
		}
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

// hasLoneSurrogate finds an escape that is half a character in a document; its lexer would replace
// it, and two different keys would become one.
func hasLoneSurrogate(body string) bool {
	for i := 0; i < len(body); i++ {
		next := strings.IndexByte(body[i:], '\\')
		if next < 0 {
			return false
		}
		i += next
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
func escapedUnit(s string) (uint64, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(s[2:6], 16, 16)
	return unit, err == nil
}
