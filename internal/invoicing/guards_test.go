package invoicing_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// overlapped runs the allocating statement in two transactions at once: the second one begins
// while the first has taken its number and not committed. It returns the second one's error.
func overlapped(t *testing.T, s *shop, guard string) error {
	t.Helper()
	first, second := s.Owner(t), s.Owner(t)
	tx, err := first.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := allocateWithout(t, s, tx, guard); err != nil {
		t.Fatalf("the first: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := allocateWithout(t, s, second, guard)
		done <- err
	}()
	s.AwaitLockWaits(t, 1)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return <-done
}

// allocateWithout is AllocateInvoices without a part of its text ("" leaves it whole).
func allocateWithout(t *testing.T, s *shop, db sqlc.DBTX, guard string) ([]*sqlc.AllocateInvoicesRow, error) {
	if guard != "" {
		return allocateBy(t, s, testdb.Without(t, db, guard))
	}
	return allocateBy(t, s, sqlc.New(db))
}

func allocateBy(t *testing.T, s *shop, q *sqlc.Queries) ([]*sqlc.AllocateInvoicesRow, error) {
	op, err := s.caller.Operation("allocateInvoice", "", nil, s.input())
	if err != nil {
		t.Fatal(err)
	}
	id := []domain.UUID{domain.UUID(domain.NewID[domain.InvoiceID]())}
	return q.AllocateInvoices(context.Background(), sqlc.AllocateInvoicesParams{
		TenantID: s.caller.TenantID, SeriesID: s.series, Now: time.Now(), Ids: id,
		CustomerIds: []domain.UUID{domain.UUID(s.customer)}, Currencies: []string{"EUR"}, TotalsMinor: []int64{100},
		OperationIds: []domain.UUID{domain.UUID(op.ID)}, OperationFingerprints: [][]byte{op.Fingerprint}, CreatedBys: []string{"test"},
		LineInvoiceIds: id, LinePositions: []int32{1}, LineDescriptions: []string{"Pawn"}, LineQuantities: []int64{1}, LineUnitAmounts: []int64{100},
	})
}

const lock = "FOR UPDATE"

// Proves the lock, FOR UPDATE in AllocateInvoices: with it, overlapping transactions number one
// after the other.
func TestWithTheLockOverlappingTransactionsNumberInTurn(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	if err := overlapped(t, s, ""); err != nil {
		t.Errorf("the second was refused: %v", err)
	}
	s.wantOneTo(t, 3)
	s.healthy(t)
}

// Proves the index behind the lock, invoices_sequence_key: without the lock two transactions read
// the same number, and the index refuses the second.
func TestWithoutTheLockTheIndexRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	var refused *pgconn.PgError
	if err := overlapped(t, s, lock); !errors.As(err, &refused) || refused.ConstraintName != "invoices_sequence_key" {
		t.Errorf("the second got %v, want a violation of invoices_sequence_key", err)
	}
	s.wantOneTo(t, 2)
	s.healthy(t)
}

// Proves the second index, invoices_number_key: it alone refuses a printed number that is taken.
func TestWithoutLockAndFirstIndexThePrintedNumberRefuses(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	s.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT invoices_sequence_key")
	var refused *pgconn.PgError
	if err := overlapped(t, s, lock); !errors.As(err, &refused) || refused.ConstraintName != "invoices_number_key" {
		t.Errorf("the second got %v, want a violation of invoices_number_key", err)
	}
}

// Shows what lock and indexes are for: without them two buyers have one number, and the doctor
// says so.
func TestWithoutLockAndIndexesThereAreTwins(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	s.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT invoices_sequence_key, DROP CONSTRAINT invoices_number_key")
	if err := overlapped(t, s, lock); err != nil {
		t.Fatalf("something else refused: %v", err)
	}
	if got := s.sequences(t); !slices.Equal(got, []int64{1, 2, 2}) {
		t.Errorf("got %v, expected twins", got)
	}
	broken := s.broken(t)
	for _, want := range []string{"SERIES_CONTIGUOUS", "NUMBER_UNIQUE"} {
		if !slices.Contains(broken, want) {
			t.Errorf("the doctor finds %q, not %s", broken, want)
		}
	}
}

// Proves that the lock alone is enough: without the indexes it still numbers 1 to n.
func TestTheLockAloneIsEnough(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT invoices_sequence_key, DROP CONSTRAINT invoices_number_key")
	together(40, func(int) { s.take(t, s.input()) })
	s.wantOneTo(t, 40)
	s.healthy(t)
}

// Proves the lock of LockSeriesCounter, under which the day of issue is decided. A counter at
// midnight, moved by two servers whose clocks are a day apart: the one that is behind waits for
// the other's decision, and issues on the later day too.
func TestTheDayIsDecidedUnderTheLock(t *testing.T) {
	t.Parallel()
	s, behind := midnight(t)
	decide(t, s, behind, "")
	s.wantOneTo(t, 3)
	s.healthy(t)
}

// The same without the lock: the server that is behind decides by what it read before the other
// committed, and the day steps back.
func TestWithoutTheLockTheDayStepsBack(t *testing.T) {
	t.Parallel()
	s, behind := midnight(t)
	decide(t, s, behind, lock)
	if broken := s.broken(t); !slices.Contains(broken, "SERIES_CHRONOLOGICAL") {
		t.Errorf("the doctor finds %q, expected the day to have stepped back", broken)
	}
}

// midnight is a shop whose series was last used two days ago, on a server whose clock is right and
// another's that is a day behind.
func midnight(t *testing.T) (right, behind *shop) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	right = newShopAt(t, func() time.Time { return now })
	in := right.input()
	last := domain.NewDate(2026, 3, 8)
	in.IssueDate = &last
	right.take(t, in)
	return right, right.secondServer(t, func() time.Time { return now.AddDate(0, 0, -1) })
}

// decide lets the server that is behind read the counter while the other one has moved it and not
// committed.
func decide(t *testing.T, right, behind *shop, guard string) {
	t.Helper()
	gate := right.Gate(t, "commit") // holds the right one with its number taken
	var wg sync.WaitGroup
	wg.Go(func() { right.take(t, right.input()) })
	gate.Await(t, 1)
	if guard == "" {
		wg.Go(func() { behind.take(t, behind.input()) })
		right.AwaitLockWaits(t, 1)
		gate.Open()
		wg.Wait()
		return
	}
	conn := right.Owner(t) // passes no gate
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	counter, err := testdb.Without(t, tx, guard).LockSeriesCounter(t.Context(),
		sqlc.LockSeriesCounterParams{TenantID: right.caller.TenantID, SeriesID: right.series})
	if err != nil {
		t.Fatal(err)
	}
	gate.Open()
	wg.Wait()
	q := sqlc.New(tx)
	date, err := domain.IssueDate(nil, *counter.LastIssueDate, domain.DateOf(behind.db.Clock(), time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.MoveSeriesCounter(t.Context(), sqlc.MoveSeriesCounterParams{
		TenantID: right.caller.TenantID, SeriesID: right.series, PeriodStart: counter.PeriodStart,
		IssueDate: date, IssueDateEnds: date.End(time.UTC),
		NumberPrefix: counter.NumberPrefix, NumberSuffix: counter.NumberSuffix, NumberWidth: counter.NumberWidth,
	}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	behind.take(t, behind.input())
}

// Case 6's sister: two transactions that each take numbers of two series, in opposite order, do
// deadlock, and the runner's retry resolves it: both get their numbers, and none is lost.
func TestCase06OppositeOrderInOneTransactionIsRetried(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	a, b := s.series, s.newSeries(t, "B", "{CODE}{N}")
	for _, s.series = range []domain.SeriesID{a, b} {
		s.take(t, s.input()) // opens the day
	}
	var barrier sync.WaitGroup
	barrier.Add(2)
	together(2, func(i int) {
		order, first := [][]domain.SeriesID{{a, b}, {b, a}}[i], true
		_, err := txn.Run(t.Context(), s.db, txn.Write[int]{
			Apply: func(_ context.Context, tx txn.Tx) (int, error) {
				for j, series := range order {
					mine := *s
					mine.series = series
					if _, err := allocateBy(t, &mine, tx.Queries); err != nil {
						return 0, err
					}
					if j == 0 && first { // both hold their first lock before either asks for its second
						first = false
						barrier.Done()
						barrier.Wait()
					}
				}
				return 0, nil
			},
			Find: func(context.Context, *sqlc.Queries) (txn.Found[int], error) { return txn.Found[int]{}, pgx.ErrNoRows },
		})
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	})
	for _, s.series = range []domain.SeriesID{a, b} {
		s.wantOneTo(t, 3)
	}
	s.healthy(t)
}
