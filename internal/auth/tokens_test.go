package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// TestWhoIsCalling: a token says for which tenant, in which role and, for a customer, for whom.
func TestWhoIsCalling(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	other, otherCustomer := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	for _, n := range []auth.NewToken{
		{TenantID: o.tenant, Role: domain.RoleAdmin}, {TenantID: o.tenant, Role: domain.RoleService},
		{TenantID: o.tenant, Role: domain.RoleCustomer, CustomerID: &o.customer},
		{TenantID: other, Role: domain.RoleAdmin}, {TenantID: other, Role: domain.RoleCustomer, CustomerID: &otherCustomer},
	} {
		token, row := o.issue(t, n)
		want := auth.Caller{TenantID: n.TenantID, TokenID: row.ID, Role: n.Role}
		if n.CustomerID != nil {
			want.CustomerID = *n.CustomerID
		}
		for name, server := range map[string]*auth.Tokens{"this": o.Tokens, "a second": o.secondServer(t)} {
			if got, err := server.Authenticate(t.Context(), token); err != nil || got != want {
				t.Errorf("%s server: %+v, %v; want %+v", name, got, err, want)
			}
		}
	}
}

// TestBinding: the role CUSTOMER, and no other, has a customer, one of the same tenant; the database
// holds that, too, should the code forget it.
func TestBinding(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	_, foreign := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	absent := domain.NewID[domain.CustomerID]()
	for _, c := range []struct {
		name     string
		role     domain.Role
		customer *domain.CustomerID
		code     domain.Code
	}{
		{"a customer of nobody", domain.RoleCustomer, nil, domain.CodeBadInput},
		{"an admin of a customer", domain.RoleAdmin, &o.customer, domain.CodeBadInput},
		{"a service of a customer", domain.RoleService, &o.customer, domain.CodeBadInput},
		{"no role", "", nil, domain.CodeBadInput}, {"another role", "OWNER", nil, domain.CodeBadInput},
		{"another tenant's customer", domain.RoleCustomer, &foreign, domain.CodeNotFound},
		{"a customer that does not exist", domain.RoleCustomer, &absent, domain.CodeNotFound},
	} {
		token, row, err := o.Create(t.Context(), auth.NewToken{TenantID: o.tenant, Role: c.role, CustomerID: c.customer})
		if codeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
		if row != nil {
			t.Errorf("%s: the row is %+v", c.name, row)
		}
		wantRefused(t, o.Tokens, token, "was never made")
	}
	conn := o.db.Owner(t)
	for _, set := range []string{"customer_id = NULL", "role = 'ADMIN'", "role = 'OWNER'"} {
		o.issue(t, auth.NewToken{Role: domain.RoleCustomer, CustomerID: &o.customer})
		if _, err := conn.Exec(t.Context(), `UPDATE access_tokens SET `+set+` WHERE role = 'CUSTOMER'`); err == nil {
			t.Errorf("the database lets a customer's token become one with %s", set)
		}
	}
}

// TestExpiry: a token is good until the moment it expires, and no longer.
func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	o := newOffice(t, txn.Settings{Clock: func() time.Time { return now }})
	expires := now.Add(time.Hour)
	token, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin, ExpiresAt: &expires})
	forever, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	now = expires.Add(-time.Microsecond)
	if _, err := o.Authenticate(t.Context(), token); err != nil {
		t.Errorf("a microsecond before it expires: %v", err)
	}
	for _, now = range []time.Time{expires, expires.Add(time.Hour)} {
		wantRefused(t, o.Tokens, token, "has expired")
	}
	if _, err := o.Authenticate(t.Context(), forever); err != nil {
		t.Errorf("a token that does not expire: %v", err)
	}
}

// TestRevoked: a revoked token is refused at the very next request, on the server that revoked it and
// on another one that has just let it through: nothing is cached. Others stay good. A cache of any
// age between Authenticate and the statement fails this test.
func TestRevoked(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	here, there := o.Tokens, o.secondServer(t)
	kept, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	for range 10 {
		token, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
		for _, server := range []*auth.Tokens{here, there} {
			if _, err := server.Authenticate(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := here.Revoke(t.Context(), o.tenant, row.ID); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, there, token, "was revoked by another server")
		wantRefused(t, here, token, "was revoked")
		if _, err := there.Authenticate(t.Context(), kept); err != nil {
			t.Errorf("another token was refused with it: %v", err)
		}
	}
}

// TestRevokedTwice: revoking again, also from two servers at once, changes nothing: the first moment
// stays, and both are answered it.
func TestRevokedTwice(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	o := newOffice(t, txn.Settings{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	_, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	first, err := o.Revoke(t.Context(), o.tenant, row.ID)
	if err != nil || first.RevokedAt == nil || !first.UpdatedAt.After(row.UpdatedAt.Time) {
		t.Fatalf("revoked: %+v, %v", first, err)
	}
	again, err := o.Revoke(t.Context(), o.tenant, row.ID)
	if err != nil || !again.RevokedAt.Equal(*first.RevokedAt) || again.UpdatedAt != first.UpdatedAt {
		t.Errorf("revoked again: %+v, %v; want the first moment, %s", again, err, first.RevokedAt)
	}

	_, row = o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	gate := o.db.Gate(t, "LockAccessToken") // both are about to hold it
	type outcome struct {
		row *sqlc.AccessToken
		err error
	}
	outcomes := make(chan outcome, 2)
	for _, server := range []*auth.Tokens{o.secondServer(t), o.secondServer(t)} {
		go func() {
			row, err := server.Revoke(context.Background(), o.tenant, row.ID)
			outcomes <- outcome{row, err}
		}()
	}
	gate.Await(t, 2)
	gate.Open()
	a, b := <-outcomes, <-outcomes
	if a.err != nil || b.err != nil || !a.row.RevokedAt.Equal(*b.row.RevokedAt) {
		t.Errorf("two revocations at once answer %+v and %+v", a, b)
	}
}

// TestRevokeGuard proves what TestRevokedTwice rests on: without "revoked_at IS NULL" the later
// revocation overwrites the first moment.
func TestRevokeGuard(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	_, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	first, err := o.Revoke(t.Context(), o.tenant, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	later := first.RevokedAt.Add(time.Hour)
	arg := sqlc.RevokeAccessTokenParams{TenantID: o.tenant, ID: row.ID, RevokedAt: &later, UpdatedAt: first.UpdatedAt.Next(later)}
	if _, err := sqlc.New(o.db.Pool).RevokeAccessToken(t.Context(), arg); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("a second revocation: %v, want no row", err)
	}
	if got, err := testdb.Without(t, o.db.Pool, " AND revoked_at IS NULL").RevokeAccessToken(t.Context(), arg); err != nil || got.RevokedAt.Equal(*first.RevokedAt) {
		t.Errorf("without the guard: %+v, %v; want the first moment lost", got, err)
	}
}

// TestRevokeForeign: a token is revoked by its own tenant alone; to another it does not exist.
func TestRevokeForeign(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	other, _ := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	token, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	for _, id := range []domain.TokenID{row.ID, domain.NewID[domain.TokenID]()} {
		if _, err := o.Revoke(t.Context(), other, id); codeOf(err) != domain.CodeNotFound {
			t.Errorf("another tenant revokes: %v, want NOT_FOUND", err)
		}
	}
	if _, err := o.Authenticate(t.Context(), token); err != nil {
		t.Errorf("the token is refused afterwards: %v", err)
	}
	if list, err := o.All(t.Context(), other); err != nil || len(list) != 0 {
		t.Errorf("another tenant lists %v, %v", list, err)
	}
	if list, err := o.All(t.Context(), o.tenant); err != nil || len(list) != 1 || list[0].ID != row.ID {
		t.Errorf("the tenant lists %v, %v", list, err)
	}
}
