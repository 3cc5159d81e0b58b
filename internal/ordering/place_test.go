package ordering_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// The same key and input is the same order whatever has become of it and of its products since: the
// replay is decided before price, stock and product checks, and calls no provider.
func TestAReplayIsDecidedFirst(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.product = s.newProduct(t, "KING", s.product.UnitPrice(), ptr(int64(1)))
	in := s.input("key", payment.SimOK)
	in.ExpectedTotalMinor = ptr(domain.Cents(10000))
	first, err := s.Place(t.Context(), s.caller, in)
	if err != nil || first.Replayed || first.Value.Status != domain.OrderPaid {
		t.Fatalf("the first: %+v, %v", first, err)
	}
	if left := testdb.Scan[int](t, s.DB, "SELECT available FROM product_stock"); left != 0 {
		t.Fatalf("%d are left", left)
	}
	if _, err := s.UpdateProduct(t.Context(), s.caller, ordering.UpdateProductInput{
		ProductID: s.product.ID, Version: s.product.UpdatedAt, UnitPriceMinor: ptr(domain.Cents(1)), Active: ptr(false),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refund(t.Context(), s.caller, ordering.RefundOrderInput{OrderID: first.Value.ID}); err != nil {
		t.Fatal(err)
	}
	in.ExpectedTotalMinor = ptr(domain.Cents(77)) // what was expected is no part of what was asked
	again, err := s.Place(t.Context(), s.caller, in)
	if err != nil || !again.Replayed || again.Value.ID != first.Value.ID || again.Value.Status != domain.OrderRefunded {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if n := s.provider.charges.Load(); n != 1 {
		t.Errorf("the provider was called %d times", n)
	}
}

// One cart has one fingerprint: lines in another order, and split ones, are the same request.
// Another quantity, product or way to pay is another, and is told nothing of the order.
func TestCase24OneKeyOneInput(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pawn := s.newProduct(t, "PAWN", domain.Money{AmountMinor: 100, Currency: "EUR"}, nil)
	item := func(quantity int32, of domain.ProductID) domain.OrderItemInput {
		return domain.OrderItemInput{ProductID: of, Quantity: quantity}
	}
	ask := func(method *string, items ...domain.OrderItemInput) (bool, *domain.OrderID, error) {
		in := s.input("1", "")
		in.Items, in.PaymentMethod = items, method
		out, err := s.Place(t.Context(), s.caller, in)
		if out.Value == nil {
			return false, nil, err
		}
		return out.Replayed, &out.Value.ID, err
	}
	_, id, err := ask(nil, item(1, s.product.ID), item(2, pawn.ID))
	if err != nil {
		t.Fatal(err)
	}
	for name, items := range map[string][]domain.OrderItemInput{
		"the same":      {item(1, s.product.ID), item(2, pawn.ID)},
		"another order": {item(2, pawn.ID), item(1, s.product.ID)},
		"split":         {item(1, pawn.ID), item(1, s.product.ID), item(1, pawn.ID)},
	} {
		for _, method := range []*string{nil, ptr(payment.SimOK)} { // the default, said or not
			if replayed, again, err := ask(method, items...); err != nil || !replayed || *again != *id {
				t.Errorf("%s: replayed %v, %v", name, replayed, err)
			}
		}
	}
	for name, c := range map[string]struct {
		method *string
		items  []domain.OrderItemInput
	}{
		"another quantity": {nil, []domain.OrderItemInput{item(2, s.product.ID), item(2, pawn.ID)}},
		"a line less":      {nil, []domain.OrderItemInput{item(1, s.product.ID)}},
		"another product":  {nil, []domain.OrderItemInput{item(1, s.product.ID), item(2, domain.ProductID{9})}},
		"another method":   {ptr(payment.SimSlow), []domain.OrderItemInput{item(1, s.product.ID), item(2, pawn.ID)}},
	} {
		_, other, err := ask(c.method, c.items...)
		wantCode(t, err, domain.CodeIdempotencyKeyReused)
		if other != nil || strings.Contains(err.Error(), id.String()) {
			t.Errorf("%s: the refusal tells of the order: %v", name, err)
		}
	}
	if n := s.count(t, "orders"); n != 1 {
		t.Errorf("%d orders", n)
	}
}

// Case 24: the key "1" of two tenants, and of two customers of one tenant, places an order each.
// Keys are compared exactly.
func TestCase24AKeyIsItsCustomers(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	other, sister := s.otherTenant(t), *s
	sister.customer = s.newCustomer(t)
	seen := map[domain.OrderID]bool{}
	for _, one := range []*store{s, other, &sister} {
		for _, key := range []string{"1", "1 ", " 1", "１", "01", "i", "I"} {
			out, err := one.Place(t.Context(), one.caller, one.input(key, payment.SimOK))
			if err != nil || out.Replayed {
				t.Errorf("%q: replayed %v, %v", key, out.Replayed, err)
				continue
			}
			seen[out.Value.ID] = true
		}
	}
	if len(seen) != 21 {
		t.Errorf("%d orders, want 21", len(seen))
	}
	for _, key := range []string{"", strings.Repeat("k", 256)} {
		_, err := s.Place(t.Context(), s.caller, s.input(key, payment.SimOK))
		wantCode(t, err, domain.CodeBadInput)
	}
	if _, err := s.Place(t.Context(), s.caller, s.input(strings.Repeat("é", 255), payment.SimOK)); err != nil {
		t.Errorf("a key of 255 characters: %v", err)
	}
}

// Case 25: what cannot be counted is refused, and leaves no row. So is what is not for sale, or not
// in one currency, or not the store's.
func TestCase25RefusedWithoutARow(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	id, yen := s.product.ID, s.newProduct(t, "YEN", domain.Money{AmountMinor: 500, Currency: "JPY"}, nil).ID
	gone := s.newProduct(t, "GONE", s.product.UnitPrice(), nil)
	if _, err := s.UpdateProduct(t.Context(), s.caller, ordering.UpdateProductInput{ProductID: gone.ID, Version: gone.UpdatedAt, Active: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	foreign := s.otherTenant(t)
	for name, c := range map[string]struct {
		items []domain.OrderItemInput
		code  domain.Code
	}{
		"-5":                 {[]domain.OrderItemInput{{ProductID: id, Quantity: -5}}, domain.CodeInvalidQuantity},
		"0":                  {[]domain.OrderItemInput{{ProductID: id}}, domain.CodeInvalidQuantity},
		"1 and -5":           {[]domain.OrderItemInput{{ProductID: id, Quantity: 1}, {ProductID: id, Quantity: -5}}, domain.CodeInvalidQuantity},
		"two currencies":     {[]domain.OrderItemInput{{ProductID: id, Quantity: 1}, {ProductID: yen, Quantity: 1}}, domain.CodeCurrencyMismatch},
		"not for sale":       {[]domain.OrderItemInput{{ProductID: gone.ID, Quantity: 1}}, domain.CodeProductInactive},
		"another tenant's":   {[]domain.OrderItemInput{{ProductID: foreign.product.ID, Quantity: 1}}, domain.CodeNotFound},
		"nothing":            {nil, domain.CodeBadInput},
		"more than an int32": {[]domain.OrderItemInput{{ProductID: id, Quantity: math.MaxInt32}, {ProductID: id, Quantity: 1}}, domain.CodeInvalidQuantity},
	} {
		in := s.input(name, payment.SimOK)
		in.Items = c.items
		_, err := s.Place(t.Context(), s.caller, in)
		wantCode(t, err, c.code)
	}
	in := s.input("another tenant's customer", payment.SimOK)
	in.CustomerID = &foreign.customer
	_, err := s.Place(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeNotFound)
	for _, table := range []string{"orders", "order_lines", "order_history", "payment_attempts", "ops.simulated_payments"} {
		if n := s.count(t, table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
}

// Case 26: large amounts are exact to the last digit, or a typed refusal.
func TestCase26LargeAmounts(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for sku, c := range map[string]struct {
		price    domain.Cents
		quantity []int32
		want     string
	}{
		"9999999999 × 3":    {9999999999, []int32{3}, "29999999997"},
		"2^53 + 1":          {1<<53 + 1, []int32{1}, "9007199254740993"},
		"all of it":         {math.MaxInt64, []int32{1}, "9223372036854775807"},
		"9·10^18 × 2":       {9e18, []int32{2}, ""},
		"9·10^18 twice":     {9e18, []int32{1, 1}, ""},
		"the largest of 4G": {1 << 32, []int32{math.MaxInt32}, "9223372032559808512"},
		"one too many":      {1<<32 + 3, []int32{math.MaxInt32}, ""},
	} {
		in := s.input(sku, payment.SimOK)
		in.Items = nil
		for i, quantity := range c.quantity {
			p := s.newProduct(t, sku+strings.Repeat("'", i), domain.Money{AmountMinor: c.price, Currency: "EUR"}, nil)
			in.Items = append(in.Items, domain.OrderItemInput{ProductID: p.ID, Quantity: quantity})
		}
		out, err := s.Place(t.Context(), s.caller, in)
		if c.want == "" {
			wantCode(t, err, domain.CodeAmountOverflow)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", sku, err)
			continue
		}
		var printed bytes.Buffer
		out.Value.TotalMinor.MarshalGQL(&printed)
		if printed.String() != `"`+c.want+`"` || out.Value.Status != domain.OrderPaid {
			t.Errorf("%s: %s, %s; want %s", sku, printed.String(), out.Value.Status, c.want)
		}
	}
}

// Case 27: minor units go to the provider and come back as they are, with three digits or with none.
func TestCase27MinorUnitsOfEachCurrency(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, price := range []domain.Money{{AmountMinor: 18600, Currency: "KWD"}, {AmountMinor: 500, Currency: "JPY"}} {
		s.product = s.newProduct(t, string(price.Currency), price, nil)
		order := s.place(t, payment.SimOK)
		type row struct{ provider, capture domain.Money }
		var got row
		conn := s.Owner(t)
		if err := conn.QueryRow(t.Context(), `SELECT p.amount_minor, p.currency, c.amount_minor, c.currency
			FROM ops.simulated_payments p JOIN captures c ON c.provider_payment_id = p.payment_id WHERE p.reference = $1`, order.ID.String()).
			Scan(&got.provider.AmountMinor, &got.provider.Currency, &got.capture.AmountMinor, &got.capture.Currency); err != nil {
			t.Fatal(err)
		}
		if got != (row{price, price}) || order.Total() != price || order.Status != domain.OrderPaid {
			t.Errorf("%v: %s for %v, the provider took %v", price, order.Status, order.Total(), got)
		}
	}
}

// A buyer who was shown another total is told the current one, and nothing is placed.
func TestAnExpectedTotal(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	in := s.input("key", payment.SimOK)
	in.ExpectedTotalMinor = ptr(domain.Cents(9900))
	_, err := s.Place(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodePriceChanged)
	var changed *domain.PriceChangedError
	if !errors.As(err, &changed) || changed.CurrentTotal != (domain.Money{AmountMinor: 10000, Currency: "EUR"}) {
		t.Errorf("got %+v, want the current total", changed)
	}
	in.ExpectedTotalMinor = &changed.CurrentTotal.AmountMinor // the refused key is still free
	if out, err := s.Place(t.Context(), s.caller, in); err != nil || out.Replayed || out.Value.Status != domain.OrderPaid {
		t.Errorf("with the current total: %+v, %v", out, err)
	}
}
