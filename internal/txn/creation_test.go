package txn_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// creation is the write that most tests make: a customer. It counts its attempts, and the
// customer's e-mail address says which of them took effect.
type creation struct {
	tenant domain.TenantID
	op     domain.Operation
	id     domain.CustomerID
	name   string

	// first runs before the insertion, in the same transaction; its error is Apply's.
	first func(ctx context.Context, tx txn.Tx, attempt int) error

	attempts atomic.Int32
	codes    []string // SQLSTATEs that Apply has met
}

// create makes a creation under a key that the server makes.
func (h *house) create(t *testing.T, name string) *creation {
	t.Helper()
	return h.creation(t, nil, name)
}

// createUnder makes a creation under a client's key.
func (h *house) createUnder(t *testing.T, key, name string) *creation {
	t.Helper()
	return h.creation(t, &key, name)
}

func (h *house) creation(t *testing.T, key *string, name string) *creation {
	t.Helper()
	op, err := domain.NewOperation(h.tenant, "a test", "createCustomer", "", key, name)
	check(t, err)
	return &creation{tenant: h.tenant, op: op, id: domain.NewID[domain.CustomerID](), name: name}
}

func (c *creation) apply(ctx context.Context, tx txn.Tx) (*sqlc.Customer, error) {
	attempt := int(c.attempts.Add(1))
	if c.first != nil {
		if err := c.first(ctx, tx, attempt); err != nil {
			return nil, c.met(err)
		}
	}
	email := fmt.Sprintf("attempt@%d", attempt)
	row, err := tx.InsertCustomer(ctx, sqlc.InsertCustomerParams{
		TenantID: c.tenant, ID: c.id, Name: c.name, Email: &email, Currency: "EUR", TimeZone: "UTC",
		OperationID: c.op.ID, OperationFingerprint: c.op.Fingerprint, CreatedBy: c.op.By,
		CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
	})
	return row, c.met(err)
}

func (c *creation) met(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		c.codes = append(c.codes, pgErr.Code)
	}
	return err
}

func (c *creation) find(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.Customer], error) {
	row, err := q.FindCustomerOfOperation(ctx, sqlc.FindCustomerOfOperationParams{TenantID: c.tenant, OperationID: c.op.ID})
	if err != nil {
		return txn.Found[*sqlc.Customer]{}, err
	}
	return txn.Found[*sqlc.Customer]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == c.id}, nil
}

// form is how a write is sent.
type form bool

const (
	inTransaction form = false // BEGIN … COMMIT
	oneStatement  form = true  // a transaction of its own
)

func (f form) String() string {
	if f == oneStatement {
		return "one statement"
	}
	return "transaction"
}

// forms are both.
var forms = []form{inTransaction, oneStatement}

func (c *creation) as(f form) txn.Write[*sqlc.Customer] {
	return txn.Write[*sqlc.Customer]{Operation: c.op, Apply: c.apply, Find: c.find, OneStatement: bool(f)}
}

// answer is what Run came to.
type answer struct {
	out txn.Outcome[*sqlc.Customer]
	err error
}

func (c *creation) run(ctx context.Context, db *txn.DB, f form) (a answer) {
	a.out, a.err = txn.Run(ctx, db, c.as(f))
	return a
}

// start runs it meanwhile.
func (c *creation) start(ctx context.Context, db *txn.DB, f form) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- c.run(ctx, db, f) }()
	return done
}

// mustBeOwn checks a success of this very request: its own row, once, under its operation, after
// so many attempts.
func (c *creation) mustBeOwn(t *testing.T, h *house, a answer, attempts int) {
	t.Helper()
	if a.err != nil {
		t.Fatalf("got %v after %d attempts (%v), want success", a.err, c.attempts.Load(), c.codes)
	}
	if a.out.Replayed || a.out.Value.ID != c.id || a.out.Key != c.op.Key || a.out.KeyMade == c.op.KeyGiven {
		t.Errorf("got %+v, want its own row", a.out)
	}
	c.mustHaveTried(t, attempts)
	c.mustHaveRows(t, h, 1)
}

// mustHaveRows checks what the operation has written, in whichever request.
func (c *creation) mustHaveRows(t *testing.T, h *house, want int) {
	t.Helper()
	if n := testdb.Scan[int](t, h.DB, "SELECT count(*) FROM customers WHERE operation_id = $1", c.op.ID); n != want {
		t.Errorf("the operation has %d rows, want %d", n, want)
	}
}

func (c *creation) mustHaveTried(t *testing.T, attempts int) {
	t.Helper()
	if got := int(c.attempts.Load()); got != attempts {
		t.Errorf("it was run %d times (%v), want %d", got, c.codes, attempts)
	}
}

// mustFail checks a refusal: its code as the wire shows it, and no value with it.
func (a answer) mustFail(t *testing.T, want domain.Code) {
	t.Helper()
	if got := code(a.err); got != want {
		t.Errorf("got %s (%v), want %s", got, a.err, want)
	}
	if a.out != (txn.Outcome[*sqlc.Customer]{}) {
		t.Errorf("the refusal carries %+v", a.out)
	}
}

// mustBeUnknown checks for OUTCOME_UNKNOWN with the key to ask again with.
func (c *creation) mustBeUnknown(t *testing.T, a answer) {
	t.Helper()
	a.mustFail(t, domain.CodeOutcomeUnknown)
	var unknown *domain.OutcomeUnknownError
	if !errors.As(a.err, &unknown) || unknown.IdempotencyKey != c.op.Key {
		t.Errorf("got %#v, want the key %q in it", a.err, c.op.Key)
	}
}

// again is the client's next request for the same thing, with the key it knows by now.
func (c *creation) again(t *testing.T, h *house) *creation {
	t.Helper()
	return h.createUnder(t, c.op.Key, c.name)
}

// code is what the wire shows of an error: what is no domain error is INTERNAL.
func code(err error) domain.Code {
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[domain.UserError](err); ok {
		return refusal.GetCode()
	}
	return domain.CodeInternal
}
