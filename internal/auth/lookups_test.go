package auth_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

const lookup = "EveryPresentedToken"

// answered is what one presented token was answered.
type answered struct {
	place  int
	caller auth.Caller
	err    error
}

// together presents tokens so that all of them wait behind one look-up that is under way, and
// returns what each was answered once the gate is opened; before it is, meanwhile runs.
func (o *office) together(t *testing.T, first string, tokens []string, meanwhile func()) []answered {
	t.Helper()
	gate := o.db.Gate(t, lookup)
	answers := make(chan answered, 1+len(tokens))
	present := func(place int, token string) {
		caller, err := o.Authenticate(context.Background(), token)
		answers <- answered{place, caller, err}
	}
	go present(-1, first)
	gate.Await(t, 1)
	for i, token := range tokens {
		go present(i, token)
	}
	testdb.Eventually(t, func() bool { return o.Waiting() == len(tokens) })
	meanwhile()
	gate.Open()
	out := make([]answered, 0, cap(answers))
	for range cap(answers) {
		out = append(out, <-answers)
	}
	slices.SortFunc(out, func(a, b answered) int { return a.place - b.place })
	return out
}

// TestLookUpsShareOneStatement: tokens that are presented while one is looked up are looked up by one
// statement together, and each is answered for itself: of two tenants, good ones, an unknown, a
// revoked and an expired one, and the same one twice.
func TestLookUpsShareOneStatement(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	other, customer := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	first, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	tokens, want := make([]string, 50), make([]auth.Caller, 50)
	for i := range tokens {
		n := auth.NewToken{TenantID: o.tenant, Role: domain.RoleService}
		if i%2 == 1 {
			n = auth.NewToken{TenantID: other, Role: domain.RoleCustomer, CustomerID: &customer}
		}
		switch i {
		case 10, 11: // revoked
			token, row := o.issue(t, n)
			if _, err := o.Revoke(t.Context(), n.TenantID, row.ID); err != nil {
				t.Fatal(err)
			}
			tokens[i] = token
			continue
		case 12: // expired
			token, row := o.issue(t, n)
			o.db.Exec(t, `UPDATE access_tokens SET expires_at = $1 WHERE id = $2`, time.Now().Add(-time.Hour), row.ID)
			tokens[i] = token
			continue
		case 13: // unknown: made, and then gone
			token, row := o.issue(t, n)
			o.db.Exec(t, `DELETE FROM access_tokens WHERE id = $1`, row.ID)
			tokens[i] = token
			continue
		case 49:
			tokens[i], want[i] = tokens[0], want[0]
			continue
		}
		token, row := o.issue(t, n)
		tokens[i], want[i] = token, auth.Caller{TenantID: n.TenantID, TokenID: row.ID, Role: n.Role}
		if n.CustomerID != nil {
			want[i].CustomerID = *n.CustomerID
		}
	}
	sent := o.db.Sent()
	for _, got := range o.together(t, first, tokens, func() {})[1:] {
		code := domain.Code("")
		if want[got.place] == (auth.Caller{}) {
			code = domain.CodeUnauthenticated
		}
		if got.caller != want[got.place] || codeOf(got.err) != code {
			t.Errorf("token %d is answered %+v, %v; want %+v, %q", got.place, got.caller, got.err, want[got.place], code)
		}
	}
	if statements := sent(); len(statements) != 2 {
		t.Errorf("51 tokens took the statements %v, want %s twice", statements, lookup)
	}
}

// TestRevokedWhileWaiting: a token that is revoked while its look-up waits to be sent is refused: the
// statement is newer than the request.
func TestRevokedWhileWaiting(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	first, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	token, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	answers := o.together(t, first, []string{token, token}, func() {
		if _, err := o.secondServer(t).Revoke(t.Context(), o.tenant, row.ID); err != nil {
			t.Error(err)
		}
	})
	for _, got := range answers[1:] {
		if codeOf(got.err) != domain.CodeUnauthenticated {
			t.Errorf("the revoked token is answered %+v, %v", got.caller, got.err)
		}
	}
	if answers[0].err != nil {
		t.Errorf("the token looked up before: %v", answers[0].err)
	}
}

// TestFailingLookUp: where the statement fails, whoever shared it is told of the fault, never that
// the token is not valid and never another's answer; the next look-up is right again.
func TestFailingLookUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	first, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	tokens := make([]string, 10)
	for i := range tokens {
		tokens[i], _ = o.issue(t, auth.NewToken{Role: domain.RoleAdmin, Name: fmt.Sprint(i)})
	}
	unknown, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	o.db.Exec(t, `DELETE FROM access_tokens WHERE id = $1`, row.ID)
	for _, got := range o.together(t, first, append(tokens, unknown), func() { o.db.Exec(t, `ALTER TABLE access_tokens RENAME TO gone`) }) {
		if code := codeOf(got.err); code != domain.CodeInternal || got.caller != (auth.Caller{}) {
			t.Errorf("token %d is answered %+v, %v; want a fault of the server", got.place, got.caller, got.err)
		}
	}
	o.db.Exec(t, `ALTER TABLE gone RENAME TO access_tokens`)
	for _, token := range tokens {
		if _, err := o.Authenticate(t.Context(), token); err != nil {
			t.Errorf("after the fault: %v", err)
		}
	}
	wantRefused(t, o.Tokens, unknown, "is not known")
}

// TestImpatientCaller: a client that hangs up while its token waits to be looked up is nobody's
// fault, and the others are answered.
func TestImpatientCaller(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	first, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	token, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	var impatient error
	answers := o.together(t, first, []string{token}, func() {
		ctx, hangUp := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := o.Authenticate(ctx, token)
			left <- err
		}()
		testdb.Eventually(t, func() bool { return o.Waiting() == 2 })
		hangUp()
		impatient = <-left
	})
	if codeOf(impatient) != domain.CodeBusy {
		t.Errorf("who hung up is answered %v, want BUSY", impatient)
	}
	for i, want := range []domain.TokenID{answers[0].caller.TokenID, row.ID} {
		if got := answers[i]; got.err != nil || got.caller.TokenID != want {
			t.Errorf("token %d is answered %+v, %v", got.place, got.caller, got.err)
		}
	}
}
