package ordering_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/testdb"
)

// told is a webhook in short: "paid p1 10000", "failed p1", "refunded p1 r1 4000".
func (s *store) told(t *testing.T, event string, id domain.OrderID, short string) {
	t.Helper()
	words := strings.Fields(short)
	amount, refund := domain.Cents(0), ""
	if words[0] == "refunded" {
		refund = words[2]
	}
	_, _ = fmt.Sscan(words[len(words)-1], &amount)
	s.tell(t, event, id, domain.FactKind("payment."+words[0]), words[1], refund, amount)
}

// Every state × event of the design's table, through the inbox, on real rows. The order has come to
// its state by what it was told before.
func TestEveryStateTimesEveryEvent(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	const kept = ""
	for i, c := range []struct {
		state, before, event string
		result               string // what the inbox says of the event
		status               domain.OrderStatus
		refunded             domain.Cents
		captures             string
	}{
		{"PENDING", "", "paid p1 10000", "PAID", "PAID", 0, "p1 APPLIED"},
		{"PENDING", "refunded p1 r1 4000", "paid p1 10000", "PAID", "PAID", 4000, "p1 APPLIED"},
		{"PENDING", "refunded p1 r1 10000", "paid p1 10000", "PAID", "REFUNDED", 10000, "p1 APPLIED"},
		{"PENDING", "", "paid p1 9999", "FLAGGED", "PENDING", 0, "p1 FLAGGED"},
		{"PENDING", "", "paid p1 10001", "FLAGGED", "PENDING", 0, "p1 FLAGGED"},
		{"PENDING", "paid p1 9999", "refunded p1 r1 9999", "REFUND_SETTLED", "PENDING", 0, "p1 RETURNED"},
		{"PENDING", "paid p1 9999", "paid p2 10000", "PAID", "PAID", 0, "p1 FLAGGED, p2 APPLIED"},
		{"PENDING", "", "failed p1", "PAYMENT_FAILED", "PENDING", 0, ""},
		{"PENDING", "failed p1", "failed p1", "UNCHANGED", "PENDING", 0, ""},
		{"PENDING", "failed p1", "paid p1 10000", "PAID", "PAID", 0, "p1 APPLIED"},
		{"PENDING", "", "refunded p1 r1 10000", kept, "PENDING", 0, ""},

		{"PAID", "", "failed p1", "UNCHANGED", "PAID", 0, "p1 APPLIED"},
		{"PAID", "", "paid p1 10000", "UNCHANGED", "PAID", 0, "p1 APPLIED"},
		{"PAID", "", "paid p2 10000", "REFUND_DUE", "PAID", 0, "p1 APPLIED, p2 REFUND_DUE"},
		{"PAID", "paid p2 10000", "refunded p2 r1 10000", "REFUND_SETTLED", "PAID", 0, "p1 APPLIED, p2 RETURNED"},
		{"PAID", "", "refunded p1 r1 10000", "REFUNDED", "REFUNDED", 10000, "p1 APPLIED"},
		{"PAID", "", "refunded p1 r1 4000", "PARTIALLY_REFUNDED", "PAID", 4000, "p1 APPLIED"},
		{"PAID", "refunded p1 r1 4000", "refunded p1 r1 4000", "UNCHANGED", "PAID", 4000, "p1 APPLIED"},
		{"PAID", "refunded p1 r1 4000", "refunded p1 r2 6000", "REFUNDED", "REFUNDED", 10000, "p1 APPLIED"},
		{"PAID", "refunded p1 r1 4000", "refunded p1 r2 6001", "FLAGGED", "PAID", 4000, "p1 APPLIED"},
		{"PAID", "", "refunded p2 r1 10000", kept, "PAID", 0, "p1 APPLIED"},

		{"FULFILLED", "", "failed p1", "UNCHANGED", "FULFILLED", 0, "p1 APPLIED"},
		{"FULFILLED", "", "paid p1 10000", "UNCHANGED", "FULFILLED", 0, "p1 APPLIED"},
		{"FULFILLED", "", "paid p2 10000", "REFUND_DUE", "FULFILLED", 0, "p1 APPLIED, p2 REFUND_DUE"},
		{"FULFILLED", "", "refunded p1 r1 10000", "REFUNDED", "REFUNDED", 10000, "p1 APPLIED"},
		{"FULFILLED", "", "refunded p1 r1 4000", "PARTIALLY_REFUNDED", "FULFILLED", 4000, "p1 APPLIED"},

		{"REFUNDED", "", "failed p1", "UNCHANGED", "REFUNDED", 10000, "p1 APPLIED"},
		{"REFUNDED", "", "paid p1 10000", "UNCHANGED", "REFUNDED", 10000, "p1 APPLIED"},
		{"REFUNDED", "", "paid p2 10000", "REFUND_DUE", "REFUNDED", 10000, "p1 APPLIED, p2 REFUND_DUE"},
		{"REFUNDED", "", "refunded p1 r9 10000", "FLAGGED", "REFUNDED", 10000, "p1 APPLIED"},
		{"REFUNDED", "", "refunded p1 r0 10000", "UNCHANGED", "REFUNDED", 10000, "p1 APPLIED"},

		{"CANCELLED", "", "paid p1 10000", "REFUND_DUE", "CANCELLED", 0, "p1 REFUND_DUE"},
		{"CANCELLED", "", "paid p1 1", "REFUND_DUE", "CANCELLED", 0, "p1 REFUND_DUE"},
		{"CANCELLED", "", "failed p1", "UNCHANGED", "CANCELLED", 0, ""},
		{"CANCELLED", "", "refunded p1 r1 10000", kept, "CANCELLED", 0, ""},
		{"CANCELLED", "paid p1 10000", "refunded p1 r1 10000", "REFUND_SETTLED", "CANCELLED", 0, "p1 RETURNED"},
		{"CANCELLED", "refunded p1 r1 10000", "paid p1 10000", "REFUND_DUE", "CANCELLED", 0, "p1 RETURNED"},
		{"CANCELLED", "paid p1 10000", "failed p1", "UNCHANGED", "CANCELLED", 0, "p1 REFUND_DUE"},
		{"PENDING", "", "disputed p1 1", "FLAGGED", "PENDING", 0, ""},
	} {
		// The provider's ids are one row's own.
		own := strings.NewReplacer(" p1", fmt.Sprint(" p1.", i), " p2", fmt.Sprint(" p2.", i), " r", fmt.Sprint(" r.", i, "."))
		name := fmt.Sprintf("%s, %s, %s", c.state, c.before, c.event)
		order := s.toldInto(t, domain.OrderStatus(c.state), own)
		if c.before != "" {
			s.told(t, name+" before", order, own.Replace(c.before))
		}
		s.told(t, name, order, own.Replace(c.event))
		now := s.order(t, order)
		result := testdb.Scan[string](t, s.DB, "SELECT coalesce(result, '') FROM ops.payment_events WHERE event_id = $1", name)
		captures := strings.ReplaceAll(strings.Join(s.captures(t, order), ", "), fmt.Sprint(".", i), "")
		if result != c.result || now.Status != c.status || now.RefundedMinor != c.refunded || captures != c.captures {
			t.Errorf("%s: came to %q, %s with %d refunded, %q", name, result, now.Status, now.RefundedMinor, captures)
		}
		if flagged := c.result == "FLAGGED"; flagged && now.Attention == nil {
			t.Errorf("%s: nobody is asked to look", name)
		}
	}
}

// toldInto is an order that has come to a state by webhooks, and by what a caller does.
func (s *store) toldInto(t *testing.T, state domain.OrderStatus, own *strings.Replacer) domain.OrderID {
	t.Helper()
	if state == domain.OrderCancelled {
		return s.in(t, state).ID
	}
	id := s.place(t, "sim_timeout_uncharged").ID
	if state != domain.OrderPending {
		s.told(t, own.Replace("1 p1"), id, own.Replace("paid p1 10000"))
	}
	switch state {
	case domain.OrderFulfilled:
		if _, err := moves[state](s, t, id, nil, nil); err != nil {
			t.Fatal(err)
		}
	case domain.OrderRefunded:
		s.told(t, own.Replace("2 p1"), id, own.Replace("refunded p1 r0 10000"))
	}
	return id
}

// All orders in which four events can arrive, each delivered twice: the same money is accounted for,
// nothing waits at the end, and where the table leaves no choice the order ends in the same state.
func TestFourEventsInEveryOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, c := range []struct {
		events []string
		money  string
		status domain.OrderStatus // "" where it matters which payment came first
	}{
		{
			[]string{"paid p1 10000", "failed p1", "refunded p1 r1 4000", "refunded p1 r2 6000"},
			"p1 10000 back 10000", domain.OrderRefunded,
		},
		{
			[]string{"paid p1 10000", "paid p2 10000", "failed p1", "refunded p1 r1 10000"},
			"p1 10000 back 10000, p2 10000 back 0", "",
		},
		{
			[]string{"paid p1 10000", "paid p2 10000", "refunded p2 r1 4000", "refunded p1 r2 4000"},
			"p1 10000 back 4000, p2 10000 back 4000", domain.OrderPaid,
		},
	} {
		for n, arrival := range permutations(c.events) {
			own := fmt.Sprint(".", c.events[3], n)
			id := s.place(t, "sim_timeout_uncharged").ID
			for i, event := range slices.Concat(arrival, arrival) {
				words := strings.Fields(event)
				for j := 1; j < len(words); j++ {
					if words[j][0] == 'p' || words[j][0] == 'r' {
						words[j] += strings.ReplaceAll(own, " ", "")
					}
				}
				s.told(t, fmt.Sprint(own, " ", i%4), id, strings.Join(words, " "))
			}
			now := s.order(t, id)
			money := strings.ReplaceAll(testdb.Scan[string](t, s.DB, `SELECT string_agg(format('%s %s back %s', provider_payment_id, amount_minor,
				coalesce((SELECT sum(amount_minor) FROM refunds r WHERE r.provider_payment_id = c.provider_payment_id), 0)), ', ' ORDER BY provider_payment_id)
				FROM captures c WHERE order_id = $1`, id), strings.ReplaceAll(own, " ", ""), "")
			if money != c.money || c.status != "" && now.Status != c.status {
				t.Errorf("%v: %s, %q; want %s, %q", arrival, now.Status, money, c.status, c.money)
			}
		}
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM ops.payment_events WHERE processed_at IS NULL"); n != 0 {
		t.Errorf("%d events wait", n)
	}
}

// permutations are all orders of the events.
func permutations(events []string) (all [][]string) {
	if len(events) == 0 {
		return [][]string{nil}
	}
	for i, first := range events {
		for _, rest := range permutations(slices.Delete(slices.Clone(events), i, i+1)) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}
