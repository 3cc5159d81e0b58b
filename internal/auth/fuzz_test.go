package auth_test

import (
	"testing"

	"countersign/internal/auth"
	"countersign/internal/domain"
)

// FuzzToken: a token that parses is one that could have been printed, letter by letter, and one letter
// changed or moved in a printed one is noticed.
func FuzzToken(f *testing.F) {
	printed := auth.NewTokenOf(domain.TenantID{1, 15: 2})
	f.Add(printed, uint8(10), byte('0'))
	f.Add(printed+"\n", uint8(67), byte('z'))
	f.Add("cst_", uint8(4), byte('\n'))
	f.Add(auth.TokenPrefix+"0000000000000000000000000000000000000000000000000000000000000000", uint8(0), byte('C'))
	f.Fuzz(func(t *testing.T, token string, place uint8, letter byte) {
		if _, ok := auth.ParseToken(token); ok {
			raw, err := auth.Encoding.DecodeString(token[len(auth.TokenPrefix):])
			if err != nil || auth.TokenPrefix+auth.Encoding.EncodeToString(raw) != token {
				t.Fatalf("%q is taken, and would never be printed", token)
			}
		}
		right := auth.NewTokenOf(domain.TenantID{place, letter})
		if tenant, ok := auth.ParseToken(right); !ok || tenant != (domain.TenantID{place, letter}) {
			t.Fatalf("%s is not taken, or for another tenant's", right)
		}
		wrong := []byte(right)
		at := int(place) % len(wrong)
		wrong[at] = letter
		if _, ok := auth.ParseToken(string(wrong)); ok != (right[at] == letter) {
			t.Fatalf("%s is a token, and %s is taken for one", right, wrong)
		}
		for i := 1; i < len(wrong); i++ {
			swapped := []byte(right)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			if _, ok := auth.ParseToken(string(swapped)); ok != (right[i-1] == right[i]) {
				t.Fatalf("%s is a token, and %s is taken for one", right, swapped)
			}
		}
	})
}
