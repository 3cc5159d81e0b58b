package auth_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// rotate rotates a token for the command line.
func (o *office) rotate(t *testing.T, id domain.TokenID, grace time.Duration) auth.MintedToken {
	t.Helper()
	out, err := o.Rotate(t.Context(), auth.Command(o.tenant), auth.RotateAccessTokenInput{TokenID: id, GraceSeconds: new(int32(grace / time.Second))})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value
}

// TestRotate: a successor has what the token had, its lifetime counted anew; the token goes on for the
// grace and no longer, and never longer than it was made for. Without a grace it ends at once, on a
// server whose clock is behind, too.
func TestRotate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	o := newOffice(t, txn.Settings{Clock: func() time.Time { return now }})
	expires := now.Add(10 * time.Hour)
	token, row := o.issue(t, auth.NewToken{Role: domain.RoleCustomer, CustomerID: &o.customer, Name: "till", Scopes: []domain.Scope{domain.ScopeRead}, ExpiresAt: &expires})
	now = now.Add(4 * time.Hour)
	made := o.rotate(t, row.ID, time.Hour)
	if made.Role != row.Role || *made.CustomerID != o.customer || made.Name != "till" || !slices.Equal(made.Scopes, row.Scopes) || *made.Replaces != row.ID ||
		!made.ExpiresAt.Equal(now.Add(10*time.Hour)) || *made.Secret == token || made.CreatedBy != "command" {
		t.Errorf("the successor of %+v is %+v", row, made.AccessToken)
	}
	for _, secret := range []string{token, *made.Secret} {
		if c, err := o.Authenticate(t.Context(), secret); err != nil || c.Scopes != domain.NarrowTo(domain.ScopeRead) {
			t.Errorf("within the grace: %+v, %v", c, err)
		}
	}
	now = now.Add(time.Hour)
	wantRefused(t, o.Tokens, token, "has come to the end of its grace")
	if _, err := o.Authenticate(t.Context(), *made.Secret); err != nil {
		t.Errorf("the successor: %v", err)
	}

	// A grace beyond its own end makes it no longer.
	token, row = o.issue(t, auth.NewToken{Role: domain.RoleAdmin, ExpiresAt: new(now.Add(time.Minute))})
	o.rotate(t, row.ID, time.Hour)
	now = now.Add(time.Minute)
	wantRefused(t, o.Tokens, token, "was to expire")

	token, row = o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	made = o.rotate(t, row.ID, 0)
	now = now.Add(-time.Hour)
	wantRefused(t, o.Tokens, token, "was rotated without a grace, on a clock that is behind")
	if _, err := o.Authenticate(t.Context(), *made.Secret); err != nil || made.ExpiresAt != nil {
		t.Errorf("the successor of one that does not expire: %v, %v", made.ExpiresAt, err)
	}
}

// TestRotateRefused: what is no good any more has no successor, and another tenant's does not exist.
func TestRotateRefused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	o := newOffice(t, txn.Settings{Clock: func() time.Time { return now }})
	_, revoked := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	if _, err := o.Revoke(t.Context(), o.tenant, revoked.ID); err != nil {
		t.Fatal(err)
	}
	_, expired := o.issue(t, auth.NewToken{Role: domain.RoleAdmin, ExpiresAt: new(now.Add(time.Hour))})
	other, _ := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	_, foreign := o.issue(t, auth.NewToken{TenantID: other, Role: domain.RoleAdmin})
	_, good := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	now = now.Add(time.Hour)
	for _, c := range []struct {
		name  string
		id    domain.TokenID
		grace int32
		code  domain.Code
	}{
		{"revoked", revoked.ID, 0, domain.CodeTokenEnded}, {"expired", expired.ID, 60, domain.CodeTokenEnded},
		{"another tenant's", foreign.ID, 0, domain.CodeNotFound}, {"unknown", domain.NewID[domain.TokenID](), 0, domain.CodeNotFound},
		{"with a negative grace", good.ID, -1, domain.CodeBadInput}, {"with a grace of more than 30 days", good.ID, 30*24*3600 + 1, domain.CodeBadInput},
	} {
		out, err := o.Rotate(t.Context(), auth.Command(o.tenant), auth.RotateAccessTokenInput{TokenID: c.id, GraceSeconds: &c.grace})
		if codeOf(err) != c.code || out.Value.AccessToken != nil {
			t.Errorf("%s: %+v, %v; want %s", c.name, out.Value, err, c.code)
		}
	}
	if n := testdb.Scan[int](t, o.db, `SELECT count(*) FROM access_tokens WHERE replaces IS NOT NULL`); n != 0 {
		t.Errorf("%d successors", n)
	}
}

// TestOneSuccessor: of eight on two servers who rotate one token at the same moment one is given a
// secret, and all are answered the same successor; whoever asks later is, too. Asked again by its key
// it is a replay.
func TestOneSuccessor(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	_, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	gate := o.db.Gate(t, "LockAccessToken") // all are about to hold it
	type outcome struct {
		txn.Outcome[auth.MintedToken]
		err error
	}
	outcomes := make(chan outcome, 8)
	servers := []*auth.Tokens{o.secondServer(t), o.secondServer(t)}
	for i := range 8 {
		go func() {
			out, err := servers[i%2].Rotate(context.Background(), auth.Command(o.tenant), auth.RotateAccessTokenInput{TokenID: row.ID})
			outcomes <- outcome{out, err}
		}()
	}
	gate.Await(t, 8)
	gate.Open()
	secrets, successors := 0, map[domain.TokenID]bool{}
	for range 8 {
		got := <-outcomes
		if got.err != nil {
			t.Fatal(got.err)
		}
		successors[got.Value.ID] = true
		if got.Replayed == (got.Value.Secret != nil) {
			t.Errorf("replayed %v, and a secret: %v", got.Replayed, got.Value.Secret != nil)
		}
		if got.Value.Secret != nil {
			secrets++
		}
	}
	if secrets != 1 || len(successors) != 1 {
		t.Errorf("%d secrets and %d successors, want one of each", secrets, len(successors))
	}
	if later := o.rotate(t, row.ID, time.Hour); later.Secret != nil || !successors[later.ID] {
		t.Errorf("rotated later: %+v", later)
	}
	if n := testdb.Scan[int](t, o.db, `SELECT count(*) FROM access_token_history WHERE event = 'ROTATED'`); n != 1 {
		t.Errorf("its history has %d rotations", n)
	}
}

// TestSuccessorGuards proves what TestOneSuccessor rests on. Without the lock all of them read that
// there is no successor, and the unique index alone decides; without that, too, there are several.
func TestSuccessorGuards(t *testing.T) {
	t.Parallel()
	for _, index := range []bool{true, false} {
		o := newOffice(t, txn.Settings{})
		_, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
		if !index {
			o.db.Exec(t, `DROP INDEX access_tokens_replaces_key`)
		}
		insert := func() error {
			id := domain.NewID[domain.TokenID]()
			_, err := sqlc.New(o.db.Pool).InsertAccessToken(t.Context(), sqlc.InsertAccessTokenParams{
				TenantID: o.tenant, ID: id, Role: domain.RoleAdmin, Replaces: &row.ID, SecretHash: append(make([]byte, 16), id[:]...),
				OperationID: domain.OperationID(id), OperationFingerprint: domain.Fingerprint{}, CreatedBy: "a test", CreatedAt: time.Now(), UpdatedAt: domain.VersionAt(time.Now()),
			})
			return err
		}
		first, second := insert(), insert()
		if first != nil || (second != nil) != index {
			t.Errorf("with the index %v: %v, then %v", index, first, second)
		}
	}
}

// TestRetireGuard: a token that is revoked while it is rotated stays revoked at its first moment.
// Without the guard the rotation would bring it to life again.
func TestRetireGuard(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	_, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	revoked, err := o.Revoke(t.Context(), o.tenant, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	arg := sqlc.RetireAccessTokenParams{TenantID: o.tenant, ID: row.ID, ExpiresAt: new(time.Now().Add(time.Hour)), UpdatedAt: revoked.UpdatedAt.Next(time.Now())}
	if got, err := sqlc.New(o.db.Pool).RetireAccessToken(t.Context(), arg); err == nil {
		t.Errorf("a revoked token was retired: %+v", got)
	}
	if got, err := testdb.Without(t, o.db.Pool, " AND revoked_at IS NULL").RetireAccessToken(t.Context(), arg); err != nil || got.RevokedAt != nil {
		t.Errorf("without the guard: %+v, %v; want it alive again", got, err)
	}
}
