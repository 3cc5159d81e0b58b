package metering_test

import (
	"context"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/sqlc"
)

// A first fold is about to insert the month's invoice while the month is closed: closing waits for
// it, and finalises what it made. Proves SharePeriod against LockPeriod.
func TestClosingWaitsForAFirstFold(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, other := m.used(t, "1", 7), m.another(t, 3)
	m.leavePending(t, key)
	m.clock.set(inJuly)
	closed := make(chan metering.Closed, 1)
	m.before(t, "InsertUsageInvoice", func() {
		go func() {
			defer close(closed)
			closed <- other.close(t, june)
		}()
		m.AwaitLockWaits(t, 1)
	})
	m.settle(t)
	if c := <-closed; c.Invoice == nil || c.Invoice.Number == nil || c.Invoice.Status != domain.InvoicePending {
		t.Errorf("the month was closed with the invoice %+v", c.Invoice)
	}
	m.wantBooks(t, "USAGE PENDING 7 #1")
	m.sound(t)
}

// The same without the fold's lock: closing does not wait, sees no invoice, and the fold leaves an
// open one in a closed month.
func TestWithoutTheSharedMonthAnOpenInvoiceIsStranded(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key := m.used(t, "1", 7)
	m.leavePending(t, key)
	m.clock.set(inJuly)
	fold, err := m.Owner(t).Begin(t.Context())
	check(t, err)
	period, err := instead(t, fold, "FOR SHARE", "").SharePeriod(t.Context(), sqlc.SharePeriodParams{TenantID: m.caller.TenantID, CustomerID: m.customer, Month: june})
	check(t, err)
	if period.ClosedAt != nil {
		t.Fatal("the month is closed")
	}
	// Closing with nothing pending, as it is for the close that runs beside another fold's insert.
	m.Exec(t, "UPDATE settlements SET outcome = 'SKIPPED_SUB_CENT', settled_at = now()")
	m.close(t, june)
	month, id := june, domain.NewID[domain.InvoiceID]()
	_, err = sqlc.New(fold).InsertUsageInvoice(t.Context(), sqlc.InsertUsageInvoiceParams{
		TenantID: m.caller.TenantID, ID: id, CustomerID: m.customer, Kind: domain.InvoiceUsage, Status: domain.InvoiceOpen, UsageMonth: &month,
		Currency: "EUR", TotalMinor: 0, OperationID: domain.OperationID(id), OperationFingerprint: domain.Fingerprint{1}, CreatedBy: "test",
		CreatedAt: midJune, UpdatedAt: domain.VersionAt(midJune),
	})
	check(t, err)
	check(t, fold.Commit(t.Context()))
	m.wantBooks(t, "USAGE OPEN 0")
	if n := m.count(t, "billing_periods WHERE closed_at IS NOT NULL"); n != 1 {
		t.Error("the month is not closed")
	}
}

// The month was closed first: the fold that comes after it is billed apart.
func TestClosedFirstTheFoldIsBilledApart(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key, other := m.used(t, "1", 7), m.another(t, 3)
	m.clock.set(inJuly)
	m.before(t, "LockAPIKey", func() { // announced, not settled: closing settles what the key has used
		other.close(t, june)
	})
	out := m.revoke(t, key)
	if len(out.Settlements) != 2 || out.Settlement.Outcome != domain.SettlementNothing || out.Settlement.Month.String() != "2026-07" {
		t.Errorf("settled %d times; July's is %s", len(out.Settlements), out.Settlement.Outcome)
	}
	m.wantBooks(t, "USAGE PENDING 17 #1")
	late := m.key(t, "1")
	m.useAt(t, late, 5, midJune)
	m.revoke(t, late)
	m.wantBooks(t, "USAGE PENDING 17 #1", "RESIDUAL PENDING 5 #2")
	m.wantReceipt(t, late, "FOLD: it cannot be folded", "RECOVERY: BILLED_SEPARATELY")
	m.sound(t)
}

// A month is not closed before it has ended in the customer's zone; closing again changes nothing.
func TestAMonthIsClosedWhenItHasEndedWhereTheCustomerIs(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.customer = m.customerIn(t, "America/Los_Angeles")
	m.revoke(t, m.used(t, "1", 10))
	m.used(t, "1", 7) // of a key that lives on
	m.clock.set(inJuly.Add(7*time.Hour - time.Microsecond))
	_, err := m.CloseMonth(t.Context(), m.caller.TenantID, m.customer, june)
	wantRefusal(t, err, "MONTH_NOT_OVER")
	m.wantBooks(t, "USAGE OPEN 10")
	m.clock.add(time.Microsecond)
	first := m.close(t, june)
	again := m.close(t, june)
	if first.Settlements != 1 || again.Settlements != 0 || again.Invoice == nil || again.Invoice.UpdatedAt != first.Invoice.UpdatedAt {
		t.Errorf("closed with %d settlements and %v, again with %d and %v", first.Settlements, first.Invoice, again.Settlements, again.Invoice)
	}
	m.wantBooks(t, "USAGE PENDING 17 #1")
	m.sound(t)
}

// Eight servers close a month at once: it is closed once, with one number.
func TestAMonthIsClosedOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	for range 3 {
		m.used(t, "0.5", 3)
	}
	m.clock.set(inJuly)
	servers := make([]*meter, 8)
	for i := range servers {
		servers[i] = m.another(t, 2)
	}
	together(8, func(i int) { servers[i].close(t, june) })
	m.wantBooks(t, "USAGE PENDING 4 #1")
	m.sound(t)
}

// Closing an exempt customer's month numbers its invoice, which stays waived; a month in which
// nothing accrued has none; one in which nothing was ever done is not there.
func TestClosingOfTheExemptAndWithNothing(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.exempt(t)
	m.used(t, "1", 7)
	m.clock.set(inJuly)
	m.close(t, june)
	m.wantBooks(t, "USAGE WAIVED 7 #1")
	m.charge(t) // of a closed month: the waive was verified, and stands
	m.settle(t)
	m.wantBooks(t, "USAGE WAIVED 7 #1")
	m.customer = m.customerIn(t, "UTC")
	_, err := m.CloseMonth(t.Context(), m.caller.TenantID, m.customer, june)
	wantRefusal(t, err, "NOT_FOUND input.customerId")
	m.revoke(t, m.key(t, "1"))
	m.clock.set(inJuly.AddDate(0, 1, 0))
	if c := m.close(t, domain.MonthOf(inJuly, time.UTC)); c.Invoice != nil {
		t.Errorf("nothing accrued, and there is %v", c.Invoice)
	}
	m.sound(t)
}

// The exemption ends, or begins, between closing's read of it and its last statement: the look after the
// commit makes a numbered invoice match, since nobody had verified its waive.
func TestTheExemptionFlipsWhileAMonthIsClosed(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	one.clock.set(inJuly)
	for _, c := range []struct {
		granted bool
		want    string
	}{
		{false, "USAGE PENDING 7 #1"},
		{true, "USAGE PENDING 7 #1"}, // granted after the month's end was decided: what is asked for stays asked for
	} {
		t.Run(map[bool]string{true: "granted", false: "removed"}[c.granted], func(t *testing.T) {
			m := one.afresh(t)
			if !c.granted {
				m.exempt(t)
			}
			m.useAt(t, m.key(t, "1"), 7, midJune)
			m.before(t, "MoveInvoice", func() { m.flipOnly(t, c.granted) })
			m.close(t, june)
			m.wantBooks(t, c.want)
			m.sound(t)
		})
	}
}

// An exemption was granted, or removed, and nobody has looked: closing reads it once more, and the
// month's invoice is final as the exemption says.
func TestClosingReadsTheExemptionOnceMore(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, granted := range []bool{true, false} {
		t.Run(map[bool]string{true: "granted", false: "removed"}[granted], func(t *testing.T) {
			m := one.afresh(t)
			m.clock.set(midJune)
			if !granted {
				m.exempt(t)
			}
			m.revoke(t, m.used(t, "1", 10))
			m.flipOnly(t, granted)
			m.clock.set(inJuly)
			if got, want := m.close(t, june).Invoice.Status, map[bool]domain.InvoiceStatus{true: domain.InvoiceWaived, false: domain.InvoicePending}[granted]; got != want {
				t.Errorf("the month was closed as %s, want %s", got, want)
			}
			m.sound(t)
		})
	}
}

// A look has listed a waive whose exemption has ended; before it reads it, the customer is exempt
// again, the month is closed so, and that exemption ends too. The waive of a closed month that was
// verified stands. Proves the period in reinstate.
func TestAVerifiedWaiveOfAClosedMonthStands(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.exempt(t)
	m.revoke(t, m.used(t, "1", 10))
	m.clock.set(inJuly)
	other := m.another(t, 3)
	m.before(t, "GetInvoices", func() {
		other.exempt(t)
		other.close(t, june)
		m.flipOnly(t, false)
	})
	m.charge(t)
	m.settle(t)
	m.wantBooks(t, "USAGE WAIVED 10 #1")
	m.sound(t)
}

// Case 40: a customer is gone, all its keys are revoked, and what was used late, or on another key
// before, is billed at the close, not dropped. Late usage of a month that is closed is billed apart
// at the next close.
func TestCase40WhatAccruedIsBilledAtTheClose(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	gone, live := m.used(t, "1", 10), m.key(t, "1")
	m.leavePending(t, gone)
	m.use(t, live, 3)
	m.clock.set(inJuly)
	m.close(t, june)
	m.wantBooks(t, "USAGE PENDING 13 #1")
	m.useAt(t, live, 5, midJune) // told late
	m.use(t, live, 20)
	m.clock.set(inJuly.AddDate(0, 1, 0))
	m.close(t, domain.MonthOf(inJuly, time.UTC))
	m.wantBooks(t, "USAGE PENDING 13 #1", "USAGE PENDING 20 #2", "RESIDUAL PENDING 5 #3")
	m.sound(t)
}

// Usage of the month is told while its close has summed, and not yet marked, what it settles: it
// waits, is accepted, and billed at the next close. Proves HoldAPIKey.
func TestUsageToldWhileItsMonthIsClosed(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, other := m.used(t, "1", 10), m.another(t, 3)
	m.clock.set(inJuly)
	told := make(chan struct{})
	m.before(t, "SettleUsage", func() {
		go func() {
			defer close(told)
			other.useAt(t, key, 7, midJune)
		}()
		m.AwaitLockWaits(t, 1)
	})
	m.close(t, june)
	<-told
	m.wantBooks(t, "USAGE PENDING 10 #1")
	m.use(t, key, 1)
	m.clock.set(inJuly.AddDate(0, 1, 0))
	m.close(t, domain.MonthOf(inJuly, time.UTC))
	m.wantBooks(t, "USAGE PENDING 10 #1", "USAGE PENDING 1 #2", "RESIDUAL PENDING 7 #3")
	m.sound(t)
}

// A revocation waits while a month of its key is closed, and settles what the close has left.
func TestAKeyIsRevokedWhileItsMonthIsClosed(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, other := m.used(t, "1", 10), m.another(t, 3)
	m.clock.set(inJuly)
	m.use(t, key, 3)
	revoked := make(chan struct{})
	m.before(t, "SettleUsage", func() {
		go func() {
			defer close(revoked)
			other.revoke(t, key)
		}()
		m.AwaitLockWaits(t, 1)
	})
	m.close(t, june)
	<-revoked
	m.wantBooks(t, "USAGE PENDING 10 #1", "USAGE OPEN 3")
	m.sound(t)
}

// A month that is first used after everybody's was closed is closed with a later one: it does not
// accrue for ever.
func TestMonthsThatWereLeftAreClosedWithALaterOne(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	july := domain.MonthOf(inJuly, time.UTC)
	m.clock.set(inJuly)
	key := m.key(t, "1")
	m.useAt(t, key, 5, midJune)
	m.use(t, key, 20)
	other := *m
	other.customer = m.customerIn(t, "UTC")
	other.used(t, "1", 2)
	m.clock.set(inJuly.AddDate(0, 1, 0))
	for _, dry := range []bool{true, false} {
		var told []string
		err := m.CloseMonths(t.Context(), july, &m.customer, dry, func(c metering.Closed, err error) {
			check(t, err)
			told = append(told, c.Month.String())
		})
		check(t, err)
		if len(told) != 2 || told[0] != "2026-06" || told[1] != "2026-07" {
			t.Errorf("told of %q", told)
		}
	}
	m.wantBooks(t, "USAGE PENDING 5 #1", "USAGE PENDING 20 #2")
	other.wantBooks(t)
	check(t, m.CloseMonths(context.Background(), july, nil, false, func(_ metering.Closed, err error) { check(t, err) }))
	other.wantBooks(t, "USAGE PENDING 2 #3")
	m.sound(t)
}
