package graph_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"countersign/internal/domain"
)

// TestUserErrorCodes: the codes of the schema are those that the domain answers in a payload, one to
// one, and none of them is a code of the response's errors.
func TestUserErrorCodes(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/domain/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[domain.Code]bool{} // every constant of the type Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if is && len(spec.Values) == 1 {
			if typ, is := spec.Type.(*ast.Ident); is && typ.Name == "Code" {
				if code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); err == nil {
					known[domain.Code(code)] = true
				}
			}
		}
		return true
	})
	values := schema.Types["UserErrorCode"].EnumValues
	for code := range known {
		forUser := domain.UserErrors(domain.Refuse(code, nil, "x")) != nil
		if inSchema := values.ForName(string(code)) != nil; inSchema != forUser {
			t.Errorf("%s: in the schema %v, answered in userErrors %v", code, inSchema, forUser)
		}
		if top := slices.Contains(topLevel, code); top == forUser {
			t.Errorf("%s: an error of the response %v, a user error %v", code, top, forUser)
		}
	}
	for _, value := range values {
		if !known[domain.Code(value.Name)] {
			t.Errorf("the domain has no code %s", value.Name)
		}
	}
	for _, name := range []string{"GeneralError", "PeriodClosedError", "PriceChangedError", "IllegalTransitionError", "IllegalInvoiceTransitionError", "AmountMismatchError", "CreditTooLargeError"} {
		if !slices.Contains(schema.Types[name].Interfaces, "UserError") {
			t.Errorf("%s is no UserError", name)
		}
	}
}
