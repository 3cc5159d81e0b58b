package domain

import (
	"encoding/hex"
	"strings"
	"testing"
)

func operation(t *testing.T, tenant TenantID, mutation, scope string, key *string, input any) Operation {
	t.Helper()
	op, err := NewOperation(tenant, "tok", mutation, scope, key, input)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// The same write, asked for again by whichever server and release, has the same id: that is what
// makes asking again safe. Another tenant, mutation, scope or key is another write.
func TestOperationIDs(t *testing.T) {
	t.Parallel()
	key, other := "order-17", "order-18"
	tenant := TenantID(ordinary)
	first := operation(t, tenant, "placeOrder", "cus_1", &key, nil)
	if got, want := hex.EncodeToString(first.ID[:]), "98340ec7f2675491b4cf8b4c14d26e8b"; got != want {
		t.Errorf("the operation is %s, and was %s: rows in databases hold the old ones", got, want)
	}
	if again := operation(t, tenant, "placeOrder", "cus_1", &key, "another input"); again.ID != first.ID {
		t.Error("asked for again, the operation has another id")
	}
	for name, op := range map[string]Operation{
		"tenant":                  operation(t, TenantID(greatest), "placeOrder", "cus_1", &key, nil),
		"mutation":                operation(t, tenant, "retryPayment", "cus_1", &key, nil),
		"scope":                   operation(t, tenant, "placeOrder", "cus_2", &key, nil),
		"no scope":                operation(t, tenant, "placeOrder", "", &key, nil),
		"key":                     operation(t, tenant, "placeOrder", "cus_1", &other, nil),
		"key made by the server":  operation(t, tenant, "placeOrder", "cus_1", nil, nil),
		"scope that ends earlier": operation(t, tenant, "placeOrder", "cus_", new("1"+key), nil),
	} {
		if op.ID == first.ID {
			t.Errorf("another %s is the same operation", name)
		}
	}
}

// A key is the client's or the server's, and is told apart. The client's is 1 to 255 characters,
// whatever they are.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"x", " ", strings.Repeat("k", MaxIdempotencyKey), strings.Repeat("😀", MaxIdempotencyKey)} {
		if op := operation(t, TenantID{}, "m", "", &key, nil); op.Key != key || !op.KeyGiven || op.By != "tok" {
			t.Errorf("%q became %+v", key, op)
		}
	}
	for _, key := range []string{"", strings.Repeat("k", MaxIdempotencyKey+1)} {
		if _, err := NewOperation(TenantID{}, "tok", "m", "", &key, nil); code(err) != CodeBadInput || path(err) != "input.idempotencyKey" {
			t.Errorf("a key of %d characters: %v at %s, want BAD_INPUT", len(key), err, path(err))
		}
	}
	made := map[string]bool{}
	for range 100 {
		op := operation(t, TenantID{}, "m", "", nil, nil)
		if op.KeyGiven || op.Key == "" || made[op.Key] {
			t.Fatalf("the server made the key %q (given: %v)", op.Key, op.KeyGiven)
		}
		made[op.Key] = true
		if again := operation(t, TenantID{}, "m", "", &op.Key, nil); again.ID != op.ID {
			t.Error("the key that the server made does not ask for the same write again")
		}
	}
}

// The fingerprint is of the input alone: who asks, for what and under which key is said elsewhere.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	type input struct {
		Name string `json:"name"`
		Note *string
		Key  string `json:"-"`
	}
	key, note := "k", "n"
	first := operation(t, TenantID{}, "m", "", &key, input{Name: "Rook", Key: "one"}).Fingerprint
	for name, op := range map[string]Operation{
		"another tenant": operation(t, TenantID{1}, "m", "", &key, input{Name: "Rook"}),
		"another key":    operation(t, TenantID{}, "m", "", nil, input{Name: "Rook", Key: "two"}),
	} {
		if !op.Fingerprint.Equal(first) {
			t.Errorf("%s: another fingerprint of the same input", name)
		}
	}
	for name, in := range map[string]input{"name": {Name: "Pawn"}, "note": {Name: "Rook", Note: &note}, "case": {Name: "rook"}} {
		if operation(t, TenantID{}, "m", "", &key, in).Fingerprint.Equal(first) {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
	if len(first) != 33 || first[0] != fingerprintVersion {
		t.Errorf("a fingerprint is %x, want a version byte and 32 more", first)
	}
	if Fingerprint(nil).Equal(first) {
		t.Error("no fingerprint is equal to one")
	}
	if _, err := NewOperation(TenantID{}, "tok", "m", "", &key, func() {}); err == nil {
		t.Error("an input without a canonical form has a fingerprint")
	}
}
