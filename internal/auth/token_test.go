package auth_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// TestForm: a token is cst_ and 64 characters, which a scanner of code and logs can look for; no two
// are alike, and what a list shows of it is its start and its last four characters.
func TestForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	seen := map[string]bool{}
	for range 5 {
		token, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
		if !regexp.MustCompile(`^cst_[`+alphabet+`]{64}$`).MatchString(token) || seen[token] {
			t.Errorf("%s is no new token", token)
		}
		seen[token] = true
		if row.Hint != token[:8]+"…"+token[64:] {
			t.Errorf("the hint of %s is %s", token, row.Hint)
		}
	}
}

// TestTypo: a token with any one character wrong, with two neighbours swapped, cut short or drawn
// out is refused by its checksum, before the database is asked at all.
func TestTypo(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	token, _ := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	sent := o.db.Sent()
	for i := len("cst_"); i < len(token); i++ {
		for _, c := range alphabet + "ilou-_=AZ \n" {
			if typo := token[:i] + string(c) + token[i+1:]; typo != token {
				wantRefused(t, o.Tokens, typo, fmt.Sprintf("has a %q at %d", c, i))
			}
		}
		if i+1 < len(token) && token[i] != token[i+1] {
			wantRefused(t, o.Tokens, token[:i]+string(token[i+1])+string(token[i])+token[i+2:], fmt.Sprintf("has %d swapped", i))
		}
		wantRefused(t, o.Tokens, token[:i], "is cut short")
	}
	for _, other := range []string{
		"", "cst_", "x" + token, " " + token, token + " ", token + "0", token + "\n", token[4:], strings.ToUpper(token), "CST" + token[3:],
		"sk_" + token[4:], token + token, token[:20] + "\n" + token[20:], token[:20] + "\r\n" + token[20:], "cst_" + strings.Repeat("0", 64) + token[4:],
	} {
		wantRefused(t, o.Tokens, other, fmt.Sprintf("is written %q", other))
	}
	if statements := sent(); len(statements) > 0 {
		t.Errorf("typos were looked up: %v", statements)
	}
	if _, err := o.Authenticate(t.Context(), token); err != nil || len(sent()) != 1 {
		t.Errorf("the token itself: %v, after the statements %v", err, sent())
	}
}

// TestSecretIsNotKept: a live token stands nowhere in the database, in no spelling: whoever reads a
// dump, or a log of it, cannot call the server.
func TestSecretIsNotKept(t *testing.T) {
	t.Parallel()
	o := newOffice(t, txn.Settings{})
	expires := time.Now().Add(time.Hour)
	var secrets []string
	for _, n := range []auth.NewToken{
		{Name: "office", Role: domain.RoleAdmin}, {Role: domain.RoleService, ExpiresAt: &expires}, {Role: domain.RoleCustomer, CustomerID: &o.customer},
	} {
		token, row := o.issue(t, n)
		if _, err := o.Authenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if n.Role == domain.RoleService {
			if _, err := o.Revoke(t.Context(), o.tenant, row.ID); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := base32.NewEncoding(alphabet).WithPadding(base32.NoPadding).DecodeString(token[4:])
		if err != nil {
			t.Fatal(err)
		}
		random := raw[16:36] // behind the tenant's id
		secrets = append(secrets, token, token[4:], token[30:60], hex.EncodeToString([]byte(token)), hex.EncodeToString(random),
			base64.StdEncoding.EncodeToString([]byte(token))[:80], base64.StdEncoding.EncodeToString(random), base64.RawURLEncoding.EncodeToString(random))
	}
	dump := dumpAll(t, o.db)
	if !strings.Contains(dump, "Rook & Pawn") || !strings.Contains(dump, "cst_") {
		t.Fatalf("the dump does not hold what it must: %s", dump)
	}
	for _, secret := range secrets {
		if strings.Contains(strings.ToLower(dump), strings.ToLower(secret)) {
			t.Errorf("%s stands in the database", secret)
		}
	}
}

// dumpAll is every row of every table, as text.
func dumpAll(t *testing.T, d *testdb.DB) string {
	t.Helper()
	var dump strings.Builder
	tables := testdb.Scan[[]string](t, d, `SELECT array_agg(format('%I.%I', schemaname, tablename)) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	for _, table := range tables {
		dump.WriteString(testdb.Scan[string](t, d, `SELECT coalesce(string_agg(t::text, E'\n'), '') FROM `+table+` t`) + "\n")
	}
	return dump.String()
}
