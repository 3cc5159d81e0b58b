package domain

import "fmt"

// Code is the stable name of what went wrong. Clients branch on it; messages may change.
type Code string

// Codes of what a caller can cause and can handle: they answer in a payload's userErrors.
const (
	CodeNotFound             Code = "NOT_FOUND"
	CodeIdempotencyKeyReused Code = "IDEMPOTENCY_KEY_REUSED"
	CodeInvalidQuantity      Code = "INVALID_QUANTITY"
	CodeInvalidFormat        Code = "INVALID_FORMAT"
	CodeAmountOverflow       Code = "AMOUNT_OVERFLOW"
	CodeNegativeTotal        Code = "NEGATIVE_TOTAL"
	CodePeriodClosed         Code = "PERIOD_CLOSED"
	CodeSeriesExhausted      Code = "SERIES_EXHAUSTED"
	CodePresetViolated       Code = "PRESET_VIOLATED"
	CodeCodeTaken            Code = "CODE_TAKEN"
	CodeSeriesKindMismatch   Code = "SERIES_KIND_MISMATCH"
	CodePriceChanged         Code = "PRICE_CHANGED"
	CodeInsufficientStock    Code = "INSUFFICIENT_STOCK"
	CodeCurrencyMismatch     Code = "CURRENCY_MISMATCH"
	CodeProductInactive      Code = "PRODUCT_INACTIVE"
	CodeSKUTaken             Code = "SKU_TAKEN"
	CodeIllegalTransition    Code = "ILLEGAL_TRANSITION"
	CodeStaleVersion         Code = "STALE_VERSION"
	CodePaymentInProgress    Code = "PAYMENT_IN_PROGRESS"
	CodeRefundTooLarge       Code = "REFUND_TOO_LARGE"
	CodeNothingToDo          Code = "NOTHING_TO_DO"
	CodeMoneyOwed            Code = "MONEY_OWED"
	CodeKeyRevoked           Code = "KEY_REVOKED"
	CodeOutOfRange           Code = "OUT_OF_RANGE"
	CodeEventConflict        Code = "EVENT_CONFLICT"
	CodeAlreadyExempt        Code = "ALREADY_EXEMPT"
	CodeNotExempt            Code = "NOT_EXEMPT"
	CodeAmountMismatch       Code = "AMOUNT_MISMATCH"
	CodeMonthNotOver         Code = "MONTH_NOT_OVER"
	CodeTokenEnded           Code = "TOKEN_ENDED"
	CodeReferenceTaken       Code = "REFERENCE_TAKEN"
	CodeCreditTooLarge       Code = "CREDIT_TOO_LARGE"
	CodeInvalidRow           Code = "INVALID_ROW"
	CodeNumbersTaken         Code = "NUMBERS_TAKEN"
	CodeNumbersUnexplained   Code = "NUMBERS_UNEXPLAINED"
)

// Codes of what no payload can answer: they are errors of the response.
const (
	CodeUnauthenticated    Code = "UNAUTHENTICATED"
	CodeForbidden          Code = "FORBIDDEN"
	CodeBadInput           Code = "BAD_INPUT"
	CodeLimitExceeded      Code = "LIMIT_EXCEEDED"
	CodeBusy               Code = "BUSY"
	CodeUnavailable        Code = "UNAVAILABLE"
	CodeOutcomeUnknown     Code = "OUTCOME_UNKNOWN"
	CodeNotRun             Code = "NOT_RUN"
	CodeSeriesInconsistent Code = "SERIES_INCONSISTENT"
	CodeInternal           Code = "INTERNAL"
)

// forUser holds the codes that a payload answers.
var forUser = map[Code]bool{
	CodeNotFound: true, CodeIdempotencyKeyReused: true, CodeInvalidQuantity: true, CodeInvalidFormat: true,
	CodeAmountOverflow: true, CodeNegativeTotal: true, CodePeriodClosed: true, CodeCodeTaken: true,
	CodeSeriesKindMismatch: true, CodePriceChanged: true, CodeInsufficientStock: true, CodeCurrencyMismatch: true,
	CodeProductInactive: true, CodeSKUTaken: true, CodeIllegalTransition: true, CodeStaleVersion: true,
	CodePaymentInProgress: true, CodeRefundTooLarge: true, CodeNothingToDo: true, CodeMoneyOwed: true,
	CodeKeyRevoked: true, CodeOutOfRange: true, CodeEventConflict: true, CodeAlreadyExempt: true, CodeNotExempt: true,
	CodeAmountMismatch: true, CodeMonthNotOver: true, CodeSeriesExhausted: true, CodePresetViolated: true, CodeTokenEnded: true,
	CodeReferenceTaken: true, CodeCreditTooLarge: true,
	CodeInvalidRow: true, CodeNumbersTaken: true, CodeNumbersUnexplained: true,
}

// UserError is what a payload's userErrors hold: the interface of that name in the schema. Its
// members add data of their own where that helps.
type UserError interface {
	error
	GetMessage() string
	GetCode() Code
	GetPath() []string
}

// Refusal is an answer that is meant for the caller: a message without secrets, a code, and the
// path of the argument it is about. A UserError if its code says so, else an error of the
// response.
type Refusal struct {
	Code    Code
	Message string
	Path    []string

	cause error // for the log alone
}

func (e *Refusal) Error() string      { return e.Message }
func (e *Refusal) GetMessage() string { return e.Message }
func (e *Refusal) GetCode() Code      { return e.Code }
func (e *Refusal) GetPath() []string  { return e.Path }
func (e *Refusal) Unwrap() error      { return e.cause }

// Because keeps the cause of a refusal for the log; callers are never shown it.
func (e *Refusal) Because(cause error) *Refusal {
	e.cause = cause
	return e
}

// PeriodClosedError refuses an issue date before the last date of its series: numbers are
// chronological.
type PeriodClosedError struct {
	Refusal
	LastIssueDate Date
}

// Refuse makes a Refusal.
func Refuse(code Code, path []string, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Path: path, Message: fmt.Sprintf(format, args...)}
}

// BadInput makes a Refusal for input that no state of the data could make right.
func BadInput(format string, args ...any) *Refusal {
	return Refuse(CodeBadInput, nil, format, args...)
}

// BadInputAt is BadInput about the argument at path.
func BadInputAt(path []string, format string, args ...any) *Refusal {
	return Refuse(CodeBadInput, path, format, args...)
}

// Busy says that nothing was applied, and that asking again will do.
func Busy() *Refusal {
	return Refuse(CodeBusy, nil, "the server is busy: nothing was changed, ask again")
}

// Unavailable says that nothing was applied, and that the database cannot be reached for now.
func Unavailable() *Refusal {
	return Refuse(CodeUnavailable, nil, "the database is unavailable: nothing was changed, ask again later")
}

// SeriesInconsistent says that a counter would give out a number that is taken: by what it is behind.
func SeriesInconsistent(behind string) *Refusal {
	return Refuse(CodeSeriesInconsistent, nil, "the series' counter is behind %s: nothing was written, and an operator has to look at it", behind)
}

// OutcomeUnknownError says that a write may or may not have happened. Asking again with the key
// tells, and does it if it did not.
type OutcomeUnknownError struct {
	Refusal
	IdempotencyKey string
}

// Input is the path of a field of a mutation's input.
func Input(path ...string) []string { return append([]string{"input"}, path...) }

// UserErrors are the errors that err joins, if the payload can answer every one of them; else
// nil, and err is an error of the response.
func UserErrors(err error) []UserError {
	switch e := err.(type) {
	case UserError:
		if forUser[e.GetCode()] {
			return []UserError{e}
		}
	case interface{ Unwrap() []error }:
		var all []UserError
		for _, one := range e.Unwrap() {
			users := UserErrors(one)
			if users == nil {
				return nil
			}
			all = append(all, users...)
		}
		return all
	case interface{ Unwrap() error }:
		return UserErrors(e.Unwrap())
	}
	return nil
}
