package invoicing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// guard is a part of a query, with what takes its place when it is taken away; or, of no query, a constraint.
type guard struct{ query, part, by string }

// The guards of an invoice's life.
var (
	theLock      = guard{query: "LockInvoice", part: "FOR NO KEY UPDATE"}
	theVersion   = guard{"MoveInvoice", "invoices.updated_at = $17", "$17::timestamptz IS NOT NULL"}
	theStatuses  = guard{"MoveInvoice", "invoices.status = ANY($16)", "$16::text[] IS NOT NULL"}
	editsVersion = guard{"ReplaceDraftLines", "invoices.updated_at = $7", "$7::timestamptz IS NOT NULL"}
	editsDraft   = guard{query: "ReplaceDraftLines", part: "invoices.status = 'DRAFT' AND "}
	thePositions = guard{part: "invoice_lines_pkey"}
	notNumbered  = guard{part: "invoices_draft_not_numbered"}
	thePlace     = guard{part: "invoice_history_position_key"} // a move with a number is written down before it is made
	theNotes     = guard{part: creditedWithin}
)

// step is what a use case does in its transaction with an invoice that it holds.
type step func(t *testing.T, s *shop, tx txn.Tx, invoice *sqlc.Invoice) error

// operation is one of its own for each step.
func (s *shop) operation(t *testing.T, mutation string) domain.Operation {
	op, err := s.caller.Operation(mutation, "", nil, mutation)
	if err != nil {
		t.Error(err)
	}
	return op
}

// moving is a step by the guarded update, which decide says.
func moving(mutation string, decide func(s *shop, tx txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error)) step {
	return func(t *testing.T, s *shop, tx txn.Tx, invoice *sqlc.Invoice) error {
		m, err := decide(s, tx, invoice)
		if err != nil {
			return err
		}
		m.Op, m.ID = s.operation(t, mutation), domain.NewID[domain.UUID]()
		_, err = m.Run(context.Background(), tx, invoice)
		return err
	}
}

var (
	finalise = moving("finalizeInvoice", func(s *shop, tx txn.Tx, invoice *sqlc.Invoice) (m invoicing.Move, err error) {
		if invoice.Status != domain.InvoiceDraft {
			return m, domain.IllegalInvoiceMove(invoice.Status, domain.InvoicePending)
		}
		n, err := invoicing.NumberBy(context.Background(), tx.Queries, s.caller.TenantID, domain.DocumentInvoice, &s.series, nil)
		return invoicing.Move{To: domain.InvoicePending, Number: n}, err
	})
	drop = moving("deleteDraftInvoice", func(_ *shop, _ txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error) {
		return invoicing.Move{To: domain.InvoiceDeleted}, invoice.Status.CheckMove(domain.InvoiceDeleted)
	})
	void = moving("voidInvoice", func(_ *shop, _ txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error) {
		if invoice.PaidMinor != 0 {
			return invoicing.Move{}, domain.IllegalInvoiceMove(invoice.Status, domain.InvoiceVoid)
		}
		return invoicing.Move{To: domain.InvoiceVoid, Reason: ptr("wrong")}, invoice.Status.CheckMove(domain.InvoiceVoid)
	})
	payPart = moving("recordInvoicePayment", func(_ *shop, tx txn.Tx, invoice *sqlc.Invoice) (invoicing.Move, error) {
		p := invoicing.Payment{Amount: domain.Money{AmountMinor: 6000, Currency: "EUR"}, Reference: domain.NewID[domain.InvoiceID]().String()}
		return invoicing.DecidePayment(context.Background(), tx, invoice, p, false)
	})
)

func creditPart(t *testing.T, s *shop, tx txn.Tx, invoice *sqlc.Invoice) error {
	in := invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID, AmountMinor: ptr(domain.Cents(6000)), Reason: "sent back"}
	return in.Issue(context.Background(), tx, s.operation(t, "issueCreditNote"), invoice)
}

// edit replaces the lines by one of 29.00.
func edit(t *testing.T, s *shop, tx txn.Tx, invoice *sqlc.Invoice) error {
	if invoice.Status != domain.InvoiceDraft {
		return domain.IllegalInvoiceMove(invoice.Status, domain.InvoiceDraft)
	}
	ctx := context.Background()
	from, err := tx.NextInvoiceLine(ctx, sqlc.NextInvoiceLineParams{TenantID: invoice.TenantID, InvoiceID: invoice.ID})
	if err != nil {
		return err
	}
	if _, err := tx.ReplaceDraftLines(ctx, sqlc.ReplaceDraftLinesParams{
		TenantID: invoice.TenantID, ID: invoice.ID, LinesFrom: from, TotalMinor: 2900, ExpectedUpdatedAt: invoice.UpdatedAt, NextVersion: invoice.UpdatedAt.Next(tx.Now.Time),
		LinePositions: []int32{from}, LineDescriptions: []string{"Clock"}, LineQuantities: []int64{1}, LineUnitAmounts: []int64{2900},
		LineTaxRates: []string{""}, LineTaxTreatments: []string{""}, LineTaxesMinor: []int64{0},
	}); err != nil {
		return err
	}
	return invoicing.Remember(ctx, tx, invoice, invoicing.Move{To: domain.InvoiceDraft, Op: s.operation(t, "updateDraftInvoice"), ID: domain.NewID[domain.UUID]()})
}

// overlap takes one step of an invoice in a transaction, and another while the first is not committed, without
// some guards. It returns the other's error.
func (s *shop) overlap(t *testing.T, id domain.InvoiceID, one, other step, without []guard) error {
	t.Helper()
	ctx := t.Context()
	first, err := s.Owner(t).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Owner(t).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	take := func(db sqlc.DBTX, step step) error {
		tx := txn.Tx{Queries: sqlc.New(db), Now: domain.VersionAt(time.Now())}
		invoice, err := invoicing.LockInvoice(ctx, tx, s.caller.TenantID, id, "invoiceId")
		if err != nil {
			return err
		}
		return step(t, s, tx, invoice)
	}
	if err := take(first, one); err != nil {
		t.Fatalf("the first: %v", err)
	}
	db := sqlc.DBTX(second)
	for _, g := range without {
		if g.query != "" {
			db = testdb.Weaken(t, db, g.query, g.part, g.by)
		}
	}
	done := make(chan error, 1)
	go func() {
		err := take(db, other)
		if err == nil {
			err = second.Commit(ctx)
		} else {
			_ = second.Rollback(ctx)
		}
		done <- err
	}()
	s.AwaitLockWaits(t, 1)
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	return <-done
}

// Proves the lock of LockInvoice, the version and the statuses in MoveInvoice and in ReplaceDraftLines, and the
// constraints behind them. Somebody has made a move of an invoice and not committed it, and somebody else decides on
// another one. Any one of the guards is enough: with it alone the books are right, whether the second move is refused
// or follows from the first. Without all of them both moves are made of the same invoice, and the doctor finds the damage.
func TestTheGuardsOfAnInvoicesLife(t *testing.T) {
	t.Parallel()
	whole, unconstrained := newShop(t), newShop(t)
	unconstrained.Exec(t, "ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_pkey CASCADE")
	unconstrained.Exec(t, "ALTER TABLE invoice_history DROP CONSTRAINT invoice_history_position_key")
	unconstrained.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT invoices_draft_not_numbered, DROP CONSTRAINT "+creditedWithin)
	for n, c := range []struct {
		name       string
		one, other step
		guards     []guard
		damage     string
	}{
		{"finalised twice", finalise, finalise, []guard{theLock, theVersion, theStatuses, thePlace}, "SERIES_CONTIGUOUS"},
		{"finalised while it is deleted", drop, finalise, []guard{theLock, theVersion, theStatuses, thePlace}, "INVOICE_HISTORY_LEGAL"},
		{"deleted while it is finalised", finalise, drop, []guard{theLock, theVersion, theStatuses, notNumbered}, "DRAFT_NOT_NUMBERED"},
		{"edited while it is finalised", finalise, edit, []guard{theLock, editsVersion, editsDraft}, "INVOICE_HISTORY_LEGAL"},
		{"edited while it is deleted", drop, edit, []guard{theLock, editsVersion, editsDraft}, "INVOICE_HISTORY_LEGAL"},
		{"edited twice", edit, edit, []guard{theLock, editsVersion, thePositions}, "TOTAL_IS_SUM_OF_LINES"},
		{"final, credited twice", creditPart, creditPart, []guard{theLock, theVersion, theNotes}, "CREDITS_ACCOUNTED_FOR"},
		{"final, paid twice", payPart, payPart, []guard{theLock, theVersion}, "PAYMENTS_ACCOUNTED_FOR"},
		{"final, paid while it is credited", creditPart, payPart, []guard{theLock, theVersion}, "CREDITS_ACCOUNTED_FOR"},
		{"final, credited while it is paid", payPart, creditPart, []guard{theLock, theVersion}, "PAYMENTS_ACCOUNTED_FOR"},
		{"final, voided while it is paid", payPart, void, []guard{theLock, theVersion}, "PAYMENTS_ACCOUNTED_FOR"},
		{"final, paid while it is voided", void, payPart, []guard{theLock, theVersion, theStatuses}, "INVOICE_HISTORY_LEGAL"},
		{"final, credited while it is voided", void, creditPart, []guard{theLock, theVersion, theStatuses}, "INVOICE_HISTORY_LEGAL"},
	} {
		for i := -1; i < len(c.guards); i++ {
			kept, without := "no guard", slices.Clone(c.guards)
			if i >= 0 {
				kept, without = c.guards[i].query+" "+c.guards[i].part, slices.Delete(without, i, i+1)
			}
			t.Run(c.name+", with "+kept, func(t *testing.T) {
				s := whole
				if slices.ContainsFunc(without, func(g guard) bool { return g.query == "" }) {
					s = unconstrained
				}
				s = s.afresh(t, fmt.Sprintf("shop-%d-%d", n, i+1))
				invoice := s.draft(t)
				if strings.HasPrefix(c.name, "final,") {
					invoice = s.take(t, s.input())
				}
				err := s.overlap(t, invoice.ID, c.one, c.other, without)
				switch broken := s.brokenOf(t, s.caller.TenantID); {
				case i >= 0 && len(broken) > 0:
					t.Errorf("the second was answered %v, and the doctor finds %q", err, broken)
				case i < 0 && (err != nil || !slices.Contains(broken, c.damage)):
					t.Errorf("the second was answered %v, and the doctor finds %q, not %s", err, broken, c.damage)
				}
			})
		}
	}
}

// Proves the lock of LockInvoice where nothing stands behind it: of two invoices that are to replace each other, each
// voided by somebody who has looked at the other one, the second is refused, since the one that it would name is void.
// Without the lock each sees the other as it was: both are void, nothing stands for either, and the doctor says so.
func TestTheLockOfAReplacement(t *testing.T) {
	t.Parallel()
	one := newShop(t)
	for _, locked := range []bool{true, false} {
		s := one.afresh(t, fmt.Sprintf("shop-%t", locked))
		a, b := s.take(t, s.input()), s.take(t, s.input()) // in the order of their ids, in which they are locked
		var begun [2]pgx.Tx
		var txs [2]txn.Tx
		for i := range begun {
			var err error
			if begun[i], err = s.Owner(t).Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			db := sqlc.DBTX(begun[i])
			if !locked {
				db = testdb.Weaken(t, db, theLock.query, theLock.part, "")
			}
			txs[i] = txn.Tx{Queries: sqlc.New(db), Now: domain.VersionAt(time.Now())}
		}
		look := func(tx txn.Tx) (held [2]*sqlc.Invoice, err error) {
			for i, id := range []domain.InvoiceID{a.ID, b.ID} {
				if held[i], err = invoicing.LockInvoice(context.Background(), tx, s.caller.TenantID, id, "invoiceId"); err != nil {
					return held, err
				}
			}
			return held, nil
		}
		replace := func(i int, invoice, by *sqlc.Invoice) error {
			if by.Status == domain.InvoiceVoid {
				return domain.IllegalInvoiceMove(by.Status, domain.InvoiceVoid)
			}
			m := invoicing.Move{To: domain.InvoiceVoid, Reason: ptr("wrong"), ReplacedBy: &by.ID, Op: s.operation(t, "voidInvoice"), ID: domain.NewID[domain.UUID]()}
			if _, err := m.Run(context.Background(), txs[i], invoice); err != nil {
				return err
			}
			return begun[i].Commit(context.Background())
		}
		first, err := look(txs[0])
		if err != nil {
			t.Fatal(err)
		}
		var second [2]*sqlc.Invoice
		looked := make(chan error, 1)
		go func() {
			var err error
			second, err = look(txs[1])
			looked <- err
		}()
		if locked {
			s.AwaitLockWaits(t, 1)
		} else if err := <-looked; err != nil {
			t.Fatal(err)
		}
		if err := replace(0, first[0], first[1]); err != nil {
			t.Fatal(err)
		}
		if locked {
			if err := <-looked; err != nil {
				t.Fatal(err)
			}
		}
		err = replace(1, second[1], second[0])
		broken := s.brokenOf(t, s.caller.TenantID)
		if locked && (codeOf(err) != domain.CodeIllegalTransition || len(broken) > 0) || !locked && (err != nil || !slices.Contains(broken, "REPLACEMENT_STANDS")) {
			t.Errorf("locked %t: the second was answered %v, and the doctor finds %q", locked, err, broken)
		}
		for _, tx := range begun {
			_ = tx.Rollback(context.Background())
		}
	}
}
