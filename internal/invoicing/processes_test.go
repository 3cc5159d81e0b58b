package invoicing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
)

// jobVariable carries what a separate process is to do, as JSON.
const jobVariable = "COUNTERSIGN_TEST_JOB"

// job is the work of a separate process on a shop's database.
type job struct {
	Kind     string // "allocate": take numbers; "die": take one, "die-in-rollover": begin a period, and hold the transaction open
	URL      string
	Tenant   domain.TenantID
	Series   domain.SeriesID
	Customer domain.CustomerID
	Name     string
	Numbers  int
	Joining  invoicing.Joining
	Ahead    time.Duration // how far its clock is ahead
	Midnight time.Time     // when set, its clock runs across this moment while it works
	Waits    int           // when set, it waits after so many numbers for the end of its standard input
	stdin    *os.File
}

func (s *shop) job(kind, name string, numbers int) job {
	return job{Kind: kind, URL: s.URL, Tenant: s.caller.TenantID, Series: s.series, Customer: s.customer, Name: name, Numbers: numbers, Joining: joining}
}

// start starts a process of this test's binary that does the job.
func (j job) start(t *testing.T) (process *exec.Cmd, out io.Reader) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process = exec.Command(binary)
	process.Env = append(os.Environ(), jobVariable+"="+string(text))
	process.Stderr = os.Stderr
	if j.stdin != nil {
		process.Stdin = j.stdin
	}
	if out, err = process.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process, out
}

// runJob is the separate process.
func runJob(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		panic(err)
	}
	ctx := context.Background()
	var err error
	switch j.Kind {
	case "allocate":
		err = j.allocate(ctx)
	case "die":
		err = j.die(ctx, "UPDATE series_counters SET next_number = next_number + 1 WHERE series_id = $1")
	case "die-in-rollover":
		err = j.die(ctx, `INSERT INTO series_periods SELECT tenant_id, series_id, period_start, 1, next_number - 1, now() FROM series_counters WHERE series_id = $1 FOR UPDATE`,
			"UPDATE series_counters SET next_number = 1, period_start = last_issue_date + 1 WHERE series_id = $1")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "process %s: %v\n", j.Name, err)
		return 1
	}
	return 0
}

// allocate takes numbers, one after the other, as a client does that never gives up: what is busy, unavailable or
// unknown is asked again under its key. It prints each number.
func (j job) allocate(ctx context.Context) error {
	pool, err := database.Open(ctx, j.URL, database.Options{MaxConns: 4})
	if err != nil {
		return err
	}
	defer pool.Close()
	now := newClock(j.at(0))
	s := invoicing.New(txn.New(pool, txn.Settings{Clock: now.now})).WithJoining(j.Joining)
	caller := auth.Caller{TenantID: j.Tenant, Role: domain.RoleService}
	for i := range j.Numbers {
		if i > 0 && i == j.Waits {
			if _, err := io.ReadAll(os.Stdin); err != nil {
				return err
			}
		}
		now.set(j.at(i))
		key := fmt.Sprintf("%s %d", j.Name, i)
		in := invoicing.AllocateInvoiceInput{
			SeriesID: j.Series, CustomerID: j.Customer, Currency: "EUR", IdempotencyKey: &key,
			Lines: []domain.InvoiceLineInput{{Description: "Pawn", Quantity: 1, UnitAmountMinor: 100}},
		}
		for tries := 0; ; tries++ {
			out, err := s.Allocate(ctx, caller, in)
			if err == nil {
				fmt.Println(*out.Value.Number)
				break
			}
			switch codeOf(err) {
			case domain.CodeBusy, domain.CodeUnavailable, domain.CodeOutcomeUnknown:
				if tries < 100 {
					continue
				}
			}
			return err
		}
	}
	return nil
}

// at is what the process's clock says at its i-th number: across midnight it works for the whole
// hour before and the whole hour after.
func (j job) at(i int) time.Time {
	if j.Midnight.IsZero() {
		return time.Now().Add(j.Ahead)
	}
	return j.Midnight.Add(j.Ahead - time.Hour + 2*time.Hour*time.Duration(i)/time.Duration(j.Numbers))
}

// die runs statements on the series, says so, and waits with the transaction open to be killed.
func (j job) die(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, j.URL)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql, j.Series); err != nil {
			return err
		}
	}
	fmt.Println("locked")
	time.Sleep(time.Minute) // until it is killed
	return errors.New("was not killed")
}

// awaitLocked waits until a process that is to die has its transaction open.
func awaitLocked(t *testing.T, out io.Reader) {
	t.Helper()
	if _, err := io.ReadAtLeast(out, make([]byte, len("locked\n")), len("locked\n")); err != nil {
		t.Fatalf("the process took no lock: %v", err)
	}
}

// Sixteen separate processes, each with a pool of its own, take numbers of one series while the
// backends of their connections are terminated at random: 1 to n, no hole, no twin.
func TestSixteenProcessesWhileBackendsAreTerminated(t *testing.T) {
	t.Parallel()
	const processes, each = 16, 15
	s := newShop(t)
	s.take(t, s.input())
	var workers sync.WaitGroup
	for i := range processes {
		process, _ := s.job("allocate", fmt.Sprint(i), each).start(t)
		workers.Go(func() {
			if err := process.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	killed := make(chan int)
	go func() { killed <- s.terminateBackends(ctx, t, processes*each) }()
	workers.Wait()
	stop()
	if n := <-killed; n == 0 {
		t.Error("no backend was terminated: the test proves nothing")
	} else {
		t.Logf("%d backends terminated", n)
	}
	s.wantOneTo(t, 1+processes*each)
	s.healthy(t)
}

// terminateBackends ends a backend at random, again and again until ctx ends or enough have been
// ended (on a slow machine nothing would ever finish), and returns how many.
func (s *shop) terminateBackends(ctx context.Context, t *testing.T, enough int) (killed int) {
	owner := s.Owner(t)
	for ctx.Err() == nil && killed < enough {
		var n int
		err := owner.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM (
			SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
				AND application_name = 'countersign' ORDER BY random() LIMIT 1) victim`).Scan(&n)
		if err != nil {
			t.Errorf("cannot terminate: %v", err)
			return killed
		}
		killed += n
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return killed
}

// Case 12: a client that is killed with the counter's lock held, twenty times: the next allocation
// succeeds at once, and no number is lost. The client speaks to the database by itself; the program's own allocations
// are killed in TestKilledWhileNumbering.
func TestCase12KilledMidAllocation(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	for i := range 20 {
		process, out := s.job("die", fmt.Sprint(i), 1).start(t)
		awaitLocked(t, out)
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
		s.take(t, s.input()) // its lock_timeout would end a long wait with BUSY
	}
	s.wantOneTo(t, 21)
	s.healthy(t)
}
