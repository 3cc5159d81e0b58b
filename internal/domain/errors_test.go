package domain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A payload answers a refusal only if it can answer all of it: one error that a client cannot
// handle makes it an error of the response, whatever it is joined to or wrapped in.
func TestUserErrors(t *testing.T) {
	t.Parallel()
	taken := Refuse(CodeCodeTaken, Input("code"), "taken")
	missing := Refuse(CodeNotFound, Input("customerId"), "no such customer")
	closed := &PeriodClosedError{Refusal: *Refuse(CodePeriodClosed, nil, "closed")}
	broken := errors.New("the disk is full")
	for _, c := range []struct {
		name string
		err  error
		want []Code
	}{
		{"nothing", nil, nil},
		{"one", taken, []Code{CodeCodeTaken}},
		{"one with data of its own", closed, []Code{CodePeriodClosed}},
		{"one with a cause", Refuse(CodeNotFound, nil, "none").Because(broken), []Code{CodeNotFound}},
		{"one, wrapped", fmt.Errorf("attempt 2: %w", taken), []Code{CodeCodeTaken}},
		{"two", errors.Join(taken, missing), []Code{CodeCodeTaken, CodeNotFound}},
		{"two, wrapped", fmt.Errorf("attempt 2: %w", errors.Join(taken, missing)), []Code{CodeCodeTaken, CodeNotFound}},
		{"joined twice", errors.Join(errors.Join(taken, closed), missing), []Code{CodeCodeTaken, CodePeriodClosed, CodeNotFound}},
		{"wrapped together", fmt.Errorf("%w and %w", taken, missing), []Code{CodeCodeTaken, CodeNotFound}},
		{"of the response", BadInput("no"), nil},
		{"of the response, because of a user error", Busy().Because(taken), nil},
		{"unknown outcome, because of a user error", Operation{}.OutcomeUnknown(taken), nil},
		{"of no caller", broken, nil},
		{"one and one of the response", errors.Join(taken, BadInput("no")), nil},
		{"one and one of no caller", errors.Join(taken, broken), nil},
		{"the same, wrapped", fmt.Errorf("attempt 2: %w", errors.Join(taken, broken)), nil},
		{"the same, joined again", errors.Join(taken, errors.Join(missing, broken)), nil},
	} {
		var got []Code
		for _, e := range UserErrors(c.err) {
			got = append(got, e.GetCode())
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// What a caller reads never holds the cause, which is for the log.
func TestCausesStayInTheLog(t *testing.T) {
	t.Parallel()
	cause := errors.New("duplicate key value violates a constraint")
	for _, err := range []error{
		Busy().Because(cause), Unavailable().Because(cause), BadInput("no").Because(cause),
		Operation{Key: "k"}.OutcomeUnknown(cause), overflow().Because(cause),
	} {
		if strings.Contains(err.Error(), "duplicate") || !errors.Is(err, cause) {
			t.Errorf("%q: tells the cause, or has lost it", err)
		}
	}
	var unknown *OutcomeUnknownError
	if err := (Operation{Key: "k"}).OutcomeUnknown(cause); !errors.As(err, &unknown) || unknown.IdempotencyKey != "k" {
		t.Errorf("%#v does not tell the key to ask again with", err)
	}
	if err := (Operation{Key: "k"}).KeyReused(); code(err) != CodeIdempotencyKeyReused || strings.Contains(err.Error(), `"k"`) {
		t.Errorf("%v, want an error that says nothing of the key's use", err)
	}
}
