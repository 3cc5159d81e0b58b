package ordering

import (
	"context"
	"errors"
	"strconv"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// PlaceOrderInput asks for an order.
type PlaceOrderInput struct {
	IdempotencyKey     string                  `json:"-"`
	CustomerID         *domain.CustomerID      `json:"customerId"`
	Items              []domain.OrderItemInput `json:"items"`
	ExpectedTotalMinor *domain.Cents           `json:"-"`
	PaymentMethod      *string                 `json:"paymentMethod"`
}

// Place places an order once per key, and then asks for its payment. The total comes from the
// products; the provider is called outside of any transaction, once the order is safe. A payment
// that is declined, or whose outcome is not known, leaves the order PENDING.
//
// The same key and input answers with the same order, whatever has become of it, and calls no
// provider.
func (s *Service) Place(ctx context.Context, caller auth.Caller, in PlaceOrderInput) (outcome, error) {
	p, err := s.newPlacement(caller, in)
	if err != nil {
		return outcome{}, err
	}
	out, err := run(ctx, s.db, txn.Write[*sqlc.Order]{Operation: p.op, Apply: p.apply, Find: p.find})
	if err != nil || out.Replayed {
		return out, err
	}
	out.Value = s.pay(ctx, out.Value, charge{tenant: caller.TenantID, attempt: p.attempt, method: p.method, by: p.op.By})
	return out, nil
}

// placement is one order at work: what was asked, checked, under the ids it keeps on every run.
type placement struct {
	caller    auth.Caller
	op        domain.Operation
	key       string
	customer  domain.CustomerID
	asked     []domain.OrderItemInput // as they came, to say which is at fault
	items     []domain.OrderItemInput
	expected  *domain.Cents
	provider  string
	method    string
	id        domain.OrderID
	attempt   domain.AttemptID
	historyID domain.UUID
}

func (s *Service) newPlacement(caller auth.Caller, in PlaceOrderInput) (p placement, err error) {
	p = placement{
		caller: caller, key: in.IdempotencyKey, asked: in.Items, expected: in.ExpectedTotalMinor, provider: s.provider.Name(),
		method: s.provider.DefaultMethod(), id: domain.NewID[domain.OrderID](), attempt: domain.NewID[domain.AttemptID](),
		historyID: domain.NewID[domain.UUID](),
	}
	if p.customer, err = customerOf(caller, in.CustomerID); err != nil {
		return p, err
	}
	if p.items, err = domain.MergeItems(in.Items); err != nil {
		return p, err
	}
	if p.method, err = method(p.method, in.PaymentMethod); err != nil {
		return p, err
	}
	// What the key stands for: whatever order the lines came in, and whatever total was expected.
	canonical := PlaceOrderInput{CustomerID: &p.customer, Items: p.items, PaymentMethod: &p.method}
	p.op, err = caller.Operation("placeOrder", p.customer.String(), &in.IdempotencyKey, canonical)
	return p, err
}

// method is how to pay: as asked, or the provider's default.
func method(byDefault string, asked *string) (string, error) {
	if asked == nil {
		return byDefault, nil
	}
	return *asked, domain.CheckText(domain.Input("paymentMethod"), *asked, 100)
}

// customerOf is whose order it is: a customer's own, whoever else has to say.
func customerOf(caller auth.Caller, asked *domain.CustomerID) (domain.CustomerID, error) {
	switch {
	case caller.Role == domain.RoleCustomer && (asked == nil || *asked == caller.CustomerID):
		return caller.CustomerID, nil
	case asked == nil:
		return domain.CustomerID{}, domain.BadInputAt(domain.Input("customerId"), "customerId is required of this role")
	case caller.Role == domain.RoleCustomer: // another customer's id answers like an absent one
		return domain.CustomerID{}, domain.Refuse(domain.CodeNotFound, domain.Input("customerId"), "no such customer")
	}
	return *asked, nil
}

// apply prices the items by one reading of all their products, writes the order, and takes the
// stock. A row that refuses takes everything back.
func (p placement) apply(ctx context.Context, tx txn.Tx) (*sqlc.Order, error) {
	arg := sqlc.InsertOrderParams{
		TenantID: p.caller.TenantID, ID: p.id, CustomerID: p.customer, IdempotencyKey: p.key, AttemptID: domain.UUID(p.attempt),
		Provider: p.provider, Method: p.method, HistoryID: p.historyID, OperationID: p.op.ID, OperationFingerprint: p.op.Fingerprint,
		CreatedBy: p.op.By, CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
	}
	ids := make([]domain.ProductID, len(p.items))
	for i, item := range p.items {
		ids[i] = item.ProductID
	}
	// Without a lock: two statements, or one that waits for locks, can see two prices of one moment.
	products, err := tx.GetProducts(ctx, sqlc.GetProductsParams{TenantID: p.caller.TenantID, Ids: ids})
	if err != nil {
		return nil, err
	}
	if err := p.price(products, &arg); err != nil {
		return nil, err
	}
	order, err := tx.InsertOrder(ctx, arg)
	if err != nil {
		return nil, err
	}
	for i, item := range p.items { // in the order of the products' ids
		if !arg.LineTakesStock[i] {
			continue
		}
		_, err := tx.TakeStock(ctx, sqlc.TakeStockParams{TenantID: p.caller.TenantID, ProductID: item.ProductID, Quantity: int64(item.Quantity)})
		if isNoRows(err) {
			return nil, p.refuse(domain.CodeInsufficientStock, item.ProductID, "there is not enough of this product")
		}
		if err != nil {
			return nil, err
		}
	}
	return order, nil
}

// price fills in the lines and the total.
func (p placement) price(products []*sqlc.Product, arg *sqlc.InsertOrderParams) error {
	known := make(map[domain.ProductID]*sqlc.Product, len(products))
	for _, product := range products {
		known[product.ID] = product
	}
	var total domain.Cents
	for _, item := range p.items {
		product := known[item.ProductID]
		switch {
		case product == nil:
			return p.refuse(domain.CodeNotFound, item.ProductID, "no such product")
		case !product.Active:
			return p.refuse(domain.CodeProductInactive, item.ProductID, "this product is not for sale")
		case arg.Currency != "" && arg.Currency != product.Currency:
			return p.refuse(domain.CodeCurrencyMismatch, item.ProductID, "this product is sold in another currency than the one before it")
		}
		arg.Currency = product.Currency
		amount, err := product.UnitPriceMinor.Times(int64(item.Quantity))
		if err == nil {
			total, err = total.Add(amount)
		}
		if err != nil {
			return p.refuse(domain.CodeAmountOverflow, item.ProductID, err.Error())
		}
		arg.LineProductIds = append(arg.LineProductIds, domain.UUID(product.ID))
		arg.LineNames = append(arg.LineNames, product.Name)
		arg.LineQuantities = append(arg.LineQuantities, item.Quantity)
		arg.LineUnitPricesMinor = append(arg.LineUnitPricesMinor, int64(product.UnitPriceMinor))
		arg.LineAmountsMinor = append(arg.LineAmountsMinor, int64(amount))
		arg.LineTakesStock = append(arg.LineTakesStock, product.TracksStock)
	}
	if arg.TotalMinor = total; p.expected != nil && *p.expected != total {
		return &domain.PriceChangedError{
			Refusal:      *domain.Refuse(domain.CodePriceChanged, domain.Input("expectedTotalMinor"), "the total has changed since it was shown"),
			CurrentTotal: domain.Money{AmountMinor: total, Currency: arg.Currency},
		}
	}
	return nil
}

// refuse is a refusal about the first item that names a product.
func (p placement) refuse(code domain.Code, id domain.ProductID, message string) error {
	for i, item := range p.asked {
		if item.ProductID == id {
			return domain.Refuse(code, domain.Input("items", strconv.Itoa(i), "productId"), "%s", message)
		}
	}
	return errors.New("a refusal names a product that was not asked for")
}

func (p placement) find(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Order], err error) {
	row, err := q.FindOrderOfKey(ctx, sqlc.FindOrderOfKeyParams{TenantID: p.caller.TenantID, CustomerID: p.customer, IdempotencyKey: p.key})
	if err != nil {
		return found, err
	}
	return txn.Found[*sqlc.Order]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == p.id}, nil
}
