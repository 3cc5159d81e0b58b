package invoicing_test

import (
	"sync"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

// rename changes the customer's name.
func (s *shop) rename(t *testing.T, name string) *sqlc.Customer {
	t.Helper()
	rows, err := s.CustomersByID(t.Context(), s.caller, []domain.CustomerID{s.customer})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.UpdateCustomer(t.Context(), s.caller, invoicing.UpdateCustomerInput{CustomerID: s.customer, Version: rows[0].UpdatedAt, Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value
}

// buyer is whom an invoice shows.
func (s *shop) buyer(t *testing.T, id domain.InvoiceID) string {
	t.Helper()
	parties, err := s.BuyersOf(t.Context(), s.caller, []*sqlc.Invoice{s.get(t, id)})
	if err != nil {
		t.Fatal(err)
	}
	return parties[0].Name
}

// Buyer and seller are frozen when the number is given, whichever way it is; a draft shows those of
// now; and what only grows is not changed by the server (see TestRuntimeRoleOnlyAdds).
func TestPartiesAreFrozenWithTheNumber(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	allocated, draft, left := s.take(t, s.input()), s.draft(t), s.draft(t)
	s.rename(t, "Bishop Ltd")
	if _, err := s.finalize(draft.ID, nil); err != nil {
		t.Fatal(err)
	}
	note, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: allocated.ID})
	if err != nil {
		t.Fatal(err)
	}
	s.rename(t, "Knight AG")
	for id, want := range map[domain.InvoiceID]string{allocated.ID: "Rook & Pawn", draft.ID: "Bishop Ltd", note.Note.ID: "Bishop Ltd", left.ID: "Knight AG"} {
		if got := s.buyer(t, id); got != want {
			t.Errorf("an invoice shows %s, want %s", got, want)
		}
	}
	s.healthy(t)
}

// A change that has not been committed when the number is given is not seen; one that has is, and
// whole: the invoice refers to a revision, never to a half of two.
func TestAChangeBesideAFinalisation(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	before, after := s.draft(t), s.draft(t)
	gate := s.Gate(t, "commit")
	var wg sync.WaitGroup
	wg.Go(func() { s.rename(t, "Bishop Ltd") })
	gate.Await(t, 1)
	s.Before("commit", nil) // who comes now is not held
	if _, err := s.finalize(before.ID, nil); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	wg.Wait()
	if _, err := s.finalize(after.ID, nil); err != nil {
		t.Fatal(err)
	}
	if one, two := s.buyer(t, before.ID), s.buyer(t, after.ID); one != "Rook & Pawn" || two != "Bishop Ltd" {
		t.Errorf("before the change %s, after it %s", one, two)
	}
	s.healthy(t)
}

// Two changes of one version: one is taken, and its revision is the only new one.
func TestChangesOfOneVersion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	rows, err := s.CustomersByID(t.Context(), s.caller, []domain.CustomerID{s.customer})
	if err != nil {
		t.Fatal(err)
	}
	gate := s.Gate(t, "ChangeCustomer")
	go func() {
		gate.Await(t, 2)
		gate.Open()
	}()
	var codes [2]domain.Code
	together(2, func(i int) {
		name := []string{"One", "Two"}[i]
		_, err := s.UpdateCustomer(t.Context(), s.caller, invoicing.UpdateCustomerInput{CustomerID: s.customer, Version: rows[0].UpdatedAt, Name: &name})
		codes[i] = codeOf(err)
	})
	if !(codes[0] == "" && codes[1] == domain.CodeStaleVersion || codes[1] == "" && codes[0] == domain.CodeStaleVersion) {
		t.Errorf("told %q", codes)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM customer_revisions"); n != 2 {
		t.Errorf("%d revisions", n)
	}
	s.healthy(t)
}
