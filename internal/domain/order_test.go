package domain_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"countersign/internal/domain"
)

// The state machine, written out: which of the moves in a state's row it has. docs/orders.md draws
// the same.
var legalMoves = map[domain.OrderStatus]map[domain.OrderStatus]bool{
	"PENDING":   {"PENDING": false, "PAID": true, "FULFILLED": false, "CANCELLED": true, "REFUNDED": false},
	"PAID":      {"PENDING": false, "PAID": false, "FULFILLED": true, "CANCELLED": false, "REFUNDED": true},
	"FULFILLED": {"PENDING": false, "PAID": false, "FULFILLED": false, "CANCELLED": false, "REFUNDED": true},
	"CANCELLED": {"PENDING": false, "PAID": false, "FULFILLED": false, "CANCELLED": false, "REFUNDED": false},
	"REFUNDED":  {"PENDING": false, "PAID": false, "FULFILLED": false, "CANCELLED": false, "REFUNDED": false},
}

// Every state × every move: a legal one is let through, any other is refused with both states, and
// the status list of a move's guard is the column of the same table.
func TestEveryStateTimesEveryMove(t *testing.T) {
	t.Parallel()
	if len(domain.OrderStatuses) != len(legalMoves) {
		t.Fatalf("there are %d statuses, the table has %d", len(domain.OrderStatuses), len(legalMoves))
	}
	for from, moves := range legalMoves {
		for to, legal := range moves {
			err := from.CheckMove(to)
			if legal != (err == nil) {
				t.Errorf("%s to %s: %v, want legal %v", from, to, err, legal)
			}
			if slices.Contains(to.Sources(), from) != legal {
				t.Errorf("the guard of the move to %s lets through %v", to, to.Sources())
			}
			var illegal *domain.IllegalTransitionError
			if !legal && (!errors.As(err, &illegal) || illegal.From != from || illegal.To != to || illegal.Code != domain.CodeIllegalTransition) {
				t.Errorf("%s to %s is refused with %#v, want both states", from, to, err)
			}
		}
	}
}

// A cart has one canonical form, whatever order and pieces its lines come in: that is what a key
// stands for.
func TestMergeItems(t *testing.T) {
	t.Parallel()
	a, b := domain.ProductID{1}, domain.ProductID{2}
	many := make([]domain.OrderItemInput, domain.MaxOrderItems+1)
	for i := range many {
		many[i] = domain.OrderItemInput{ProductID: domain.ProductID{byte(i), 1}, Quantity: 1}
	}
	for name, c := range map[string]struct {
		items, want []domain.OrderItemInput
		code        domain.Code
	}{
		"one":                   {items: []domain.OrderItemInput{{a, 2}}, want: []domain.OrderItemInput{{a, 2}}},
		"sorted":                {items: []domain.OrderItemInput{{b, 1}, {a, 2}}, want: []domain.OrderItemInput{{a, 2}, {b, 1}}},
		"merged":                {items: []domain.OrderItemInput{{b, 1}, {a, 2}, {b, 3}}, want: []domain.OrderItemInput{{a, 2}, {b, 4}}},
		"the largest":           {items: []domain.OrderItemInput{{a, math.MaxInt32 - 1}, {a, 1}}, want: []domain.OrderItemInput{{a, math.MaxInt32}}},
		"a hundred":             {items: many[:100], want: many[:100]},
		"none":                  {code: domain.CodeBadInput},
		"too many":              {items: many, code: domain.CodeBadInput},
		"zero":                  {items: []domain.OrderItemInput{{a, 0}}, code: domain.CodeInvalidQuantity},
		"negative":              {items: []domain.OrderItemInput{{a, -5}}, code: domain.CodeInvalidQuantity},
		"1 and -5":              {items: []domain.OrderItemInput{{a, 1}, {b, -5}}, code: domain.CodeInvalidQuantity},
		"6 and -5 of one":       {items: []domain.OrderItemInput{{a, 6}, {a, -5}}, code: domain.CodeInvalidQuantity},
		"sums past 32 bits":     {items: []domain.OrderItemInput{{a, math.MaxInt32}, {a, 1}}, code: domain.CodeInvalidQuantity},
		"sums around to itself": {items: slices.Repeat([]domain.OrderItemInput{{a, math.MaxInt32}}, 5), code: domain.CodeInvalidQuantity},
	} {
		given := slices.Clone(c.items)
		got, err := domain.MergeItems(c.items)
		if code := codeOf(err); code != c.code || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v %q, want %v %q", name, got, code, c.want, c.code)
		}
		if !slices.Equal(given, c.items) {
			t.Errorf("%s: the input was changed to %v", name, c.items)
		}
	}
}

// Case 28: a version goes out as text and comes back: whole it is the same, cut to milliseconds it is
// another.
func TestCase28AVersionAsText(t *testing.T) {
	t.Parallel()
	var stored, whole, cut domain.Version
	for text, v := range map[string]*domain.Version{
		"2026-11-29T12:00:00.309921Z": &stored, "2026-11-29T13:00:00.309921+01:00": &whole, "2026-11-29T12:00:00.309Z": &cut,
	} {
		if err := v.UnmarshalGQL(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := domain.CheckVersion(&whole, stored); err != nil {
		t.Errorf("the whole version is refused: %v", err)
	}
	if code := codeOf(domain.CheckVersion(&cut, stored)); code != domain.CodeStaleVersion {
		t.Errorf("the version that was cut got %q", code)
	}
	if err := domain.CheckVersion(nil, stored); err != nil {
		t.Errorf("no version is refused: %v", err)
	}
}

func codeOf(err error) domain.Code {
	var refusal domain.UserError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refusal):
		return refusal.GetCode()
	}
	return domain.CodeInternal
}
