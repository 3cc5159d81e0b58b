package invoicing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
)

// copyNote copies a credit note as the server's role could, under a number and an operation that are free.
func copyNote(ctx context.Context, tx pgx.Tx, note domain.InvoiceID, sequence int) error {
	if _, err := tx.Exec(ctx, "SET LOCAL ROLE countersign_runtime"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO invoices SELECT (jsonb_populate_record(n, jsonb_build_object(
		'id', gen_random_uuid(), 'operation_id', gen_random_uuid(), 'sequence', $2::int, 'number', 'CN-' || $2::int))).* FROM invoices n WHERE n.id = $1`, note, sequence)
	return err
}

// copies copies a note twice, each in a transaction of its own that does not see the other, and commits both.
func (s *shop) copies(t *testing.T, note domain.InvoiceID, waits bool) (second error) {
	t.Helper()
	ctx := t.Context()
	var txs [2]pgx.Tx
	for i := range txs {
		var err error
		if txs[i], err = s.Owner(t).Begin(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyNote(ctx, txs[0], note, 101); err != nil {
		t.Fatalf("the first: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- copyNote(ctx, txs[1], note, 102) }()
	if waits {
		s.AwaitLockWaits(t, 1)
	} else if err := <-done; err != nil {
		return err
	} else {
		done <- nil
	}
	if err := txs[0].Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		return err
	}
	return txs[1].Commit(ctx)
}

const creditedWithin = "invoices_credited_within_total"

// The database itself refuses a credit note of more than is left of its invoice, whatever the invoice says is
// credited. Proves invoices_credited_within_total of credit notes: without it the note is taken.
func TestTheDatabaseRefusesANoteOfMoreThanIsLeft(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{true, false} {
		t.Run(fmt.Sprintf("guarded %t", guarded), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			if !guarded {
				s.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT "+creditedWithin)
			}
			issued, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: s.take(t, s.input()).ID})
			if err != nil {
				t.Fatal(err)
			}
			tx, err := s.Owner(t).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = copyNote(t.Context(), tx, issued.Note.ID, 101)
			if refused := err != nil && strings.Contains(err.Error(), creditedWithin); refused != guarded || !guarded && err != nil {
				t.Errorf("a second note of all: %v", err)
			}
		})
	}
}

// Of two notes that do not see each other, and of which there is room for one, the second waits and is
// refused. Proves the lock of credit_note_fits: without it both are taken.
func TestTwoNotesThatDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	for _, locked := range []bool{true, false} {
		t.Run(fmt.Sprintf("locked %t", locked), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			if !locked {
				function := testdb.Scan[string](t, s.DB, "SELECT pg_get_functiondef('credit_note_fits'::regproc)")
				without := strings.Replace(function, " FOR NO KEY UPDATE", "", 1)
				if without == function {
					t.Fatalf("there is no lock in %s", function)
				}
				s.Exec(t, without)
			}
			part := domain.Cents(3960) // two fifths
			issued, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: s.take(t, s.input()).ID, AmountMinor: &part})
			if err != nil {
				t.Fatal(err)
			}
			err = s.copies(t, issued.Note.ID, locked)
			if refused := err != nil && strings.Contains(err.Error(), creditedWithin); refused != locked || !locked && err != nil {
				t.Errorf("the second is told %v", err)
			}
		})
	}
}
