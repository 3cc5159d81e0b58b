package auth_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// office is a tenant with a customer, and its tokens on a database of their own.
type office struct {
	*auth.Tokens
	db       *testdb.DB
	tenant   domain.TenantID
	customer domain.CustomerID
}

func newOffice(t *testing.T, s txn.Settings) *office {
	t.Helper()
	d := testdb.New(t)
	db := txn.New(d.Pool, s)
	o := &office{db: d, Tokens: auth.NewTokens(db)}
	o.tenant, o.customer = newTenant(t, db, "office")
	return o
}

func newTenant(t *testing.T, db *txn.DB, handle string) (domain.TenantID, domain.CustomerID) {
	t.Helper()
	s := invoicing.New(db)
	tenant, _, err := s.CreateTenant(t.Context(), handle, handle)
	if err != nil {
		t.Fatal(err)
	}
	customer, err := s.CreateCustomer(t.Context(), auth.Caller{TenantID: tenant.ID, Role: domain.RoleAdmin}, invoicing.CreateCustomerInput{Name: "Rook & Pawn", Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	return tenant.ID, customer.Value.ID
}

// issue makes a token.
func (o *office) issue(t *testing.T, n auth.NewToken) (string, *sqlc.AccessToken) {
	t.Helper()
	if n.TenantID == (domain.TenantID{}) {
		n.TenantID = o.tenant
	}
	token, row, err := o.Create(t.Context(), n)
	if err != nil {
		t.Fatalf("no token: %v", err)
	}
	return token, row
}

// secondServer is another server on the same database.
func (o *office) secondServer(t *testing.T) *auth.Tokens {
	t.Helper()
	return auth.NewTokens(txn.New(o.db.NewPool(t, 4), txn.Settings{}))
}

// wantRefused fails unless a token is answered that it is not valid, and nothing more.
func wantRefused(t *testing.T, tokens *auth.Tokens, token, why string) {
	t.Helper()
	caller, err := tokens.Authenticate(context.Background(), token)
	if codeOf(err) != domain.CodeUnauthenticated || caller != (auth.Caller{}) {
		t.Errorf("a token that %s is %+v, %v; want UNAUTHENTICATED", why, caller, err)
	}
	if err != nil && err.Error() != "the access token is not valid" {
		t.Errorf("a token that %s is told %q, which says too much", why, err)
	}
}

// codeOf is the code by which a client knows an error; INTERNAL for what is not meant for it.
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
