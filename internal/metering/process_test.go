package metering_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/auth"
	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/txn"
)

// jobVariable carries what a separate process is to do, as JSON.
const jobVariable = "COUNTERSIGN_TEST_JOB"

// job is a mutation that a separate process begins. It stops for good where it is about to send a
// query (its sqlc name, or "commit") for the nth time, and says so: there it is killed.
type job struct {
	URL      string
	Caller   auth.Caller
	Customer domain.CustomerID
	Key      domain.APIKeyID // to be revoked; zero: an exemption is granted (Grant) or removed
	Grant    bool
	Now      time.Time
	Query    string
	Nth      int64
	sent     atomic.Int64
}

// TraceQueryStart stops at the query.
func (j *job) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if data.SQL != j.Query && !strings.HasPrefix(data.SQL, "-- name: "+j.Query+" ") || j.sent.Add(1) != j.Nth {
		return ctx
	}
	fmt.Println("there")
	select {} // until it is killed
}

// TraceQueryEnd does nothing.
func (*job) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// runJob is the separate process.
func runJob(text string) int {
	j := &job{}
	if err := json.Unmarshal([]byte(text), j); err != nil {
		panic(err)
	}
	ctx := context.Background()
	pool, err := database.Open(ctx, j.URL, database.Options{MaxConns: 2, Tune: func(c *pgxpool.Config) { c.ConnConfig.Tracer = j }})
	if err != nil {
		panic(err)
	}
	s := metering.New(txn.New(pool, txn.Settings{Clock: func() time.Time { return j.Now }}))
	switch {
	case j.Key != domain.APIKeyID{}:
		_, err = s.Revoke(ctx, j.Caller, metering.RevokeAPIKeyInput{APIKeyID: j.Key})
	case j.Grant:
		_, err = s.GrantExemption(ctx, j.Caller, metering.GrantBillingExemptionInput{CustomerID: j.Customer, Reason: "a school"})
	default:
		_, err = s.RemoveExemption(ctx, j.Caller, metering.RemoveBillingExemptionInput{CustomerID: j.Customer})
	}
	fmt.Println("never stopped:", err)
	return 1
}

// kill starts a process that does the job, and kills it with -9 where it stops. What it had not
// committed is gone when kill returns.
func (m *meter) kill(t *testing.T, j *job) {
	t.Helper()
	j.URL, j.Caller, j.Customer, j.Now = m.URL, m.caller, m.customer, m.clock.now()
	text, err := json.Marshal(j)
	check(t, err)
	binary, err := os.Executable()
	check(t, err)
	process := exec.Command(binary)
	process.Env = append(os.Environ(), jobVariable+"="+string(text))
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	check(t, err)
	check(t, process.Start())
	said := make([]byte, len("there"))
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "there" {
		t.Errorf("the process says %q (%v)", said, err)
	}
	check(t, process.Process.Kill())
	_ = process.Wait()
}

// Case 36: the process is killed at each point of a revocation. Once it is announced, the next pass of
// the job bills it, once, and a pass after that finds nothing to do; asking again is answered with
// the same settlement for ever.
func TestCase36KilledDuringARevocation(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, c := range []struct {
		name   string
		at     *job
		exempt bool
		finds  metering.Settled
	}{
		{"before the announcement is committed", &job{Query: "commit", Nth: 1}, false, metering.Settled{}},
		{"between announcement and settling", &job{Query: "LockAPIKey", Nth: 1}, false, metering.Settled{Revocations: 1}},
		{"before the settlement is committed", &job{Query: "commit", Nth: 2}, false, metering.Settled{Revocations: 1}},
		{"between settling and fold", &job{Query: "SharePeriod", Nth: 1}, false, metering.Settled{Settlements: 1}},
		{"in the fold", &job{Query: "PlaceSettlement", Nth: 1}, false, metering.Settled{Settlements: 1}},
		{"before the fold is committed", &job{Query: "commit", Nth: 3}, false, metering.Settled{Settlements: 1}},
		{"between fold and look", &job{Query: "ListLookedAtInvoices", Nth: 1}, false, metering.Settled{}},
		{"between waive and look", &job{Query: "ListLookedAtInvoices", Nth: 1}, true, metering.Settled{Looked: 1}},
		{"before the look is committed", &job{Query: "VerifyWaive", Nth: 1}, true, metering.Settled{Looked: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := one.afresh(t)
			status, outcome := "OPEN", domain.SettlementFolded
			if c.exempt {
				m.exempt(t)
				status, outcome = "WAIVED", domain.SettlementFoldedWaived
			}
			m.revoke(t, m.used(t, "1", 10))
			key := m.used(t, "1", 7)
			c.at.Key = key
			m.kill(t, c.at)
			m.conserved(t)
			if r := m.settle(t); r != c.finds {
				t.Errorf("the job did %+v, want %+v", r, c.finds)
			}
			if r := m.settle(t); r != (metering.Settled{}) {
				t.Errorf("another pass did %+v", r)
			}
			if c.name == "before the announcement is committed" { // nothing was begun
				m.wantBooks(t, "USAGE "+status+" 10")
			}
			first := m.revoke(t, key)
			m.wantBooks(t, "USAGE "+status+" 17")
			again := m.revoke(t, key)
			if s := again.Settlement; s.ID != first.Settlement.ID || s.Outcome != outcome || len(again.Settlements) != 1 || s.Quantity != 7 {
				t.Errorf("asked again: %s %d units in %d settlements", s.Outcome, s.Quantity, len(again.Settlements))
			}
			m.sound(t)
		})
	}
}

// The process is killed between an exemption's commit and its look: the sweep makes the invoices match,
// both ways.
func TestKilledBetweenAnExemptionAndItsLook(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, grant := range []bool{true, false} {
		t.Run(map[bool]string{true: "granted", false: "removed"}[grant], func(t *testing.T) {
			m := one.afresh(t)
			if !grant {
				m.exempt(t)
			}
			m.revoke(t, m.used(t, "1", 10))
			m.kill(t, &job{Grant: grant, Query: "ListLookedAtInvoices", Nth: 1})
			m.wantBooks(t, map[bool]string{true: "USAGE OPEN 10", false: "USAGE WAIVED 10"}[grant])
			if r := m.settle(t); r != (metering.Settled{Looked: 1}) {
				t.Errorf("the sweep did %+v", r)
			}
			m.wantBooks(t, map[bool]string{true: "USAGE WAIVED 10", false: "USAGE OPEN 10"}[grant])
			m.sound(t)
		})
	}
}
