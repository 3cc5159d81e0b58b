package metering

import (
	"context"
	"fmt"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Closed is what closing a customer's month came to.
type Closed struct {
	CustomerID  domain.CustomerID
	Month       domain.Month
	Invoice     *sqlc.Invoice // the month's; nil if nothing accrued
	Settlements int           // made at the close, of keys that live on
}

// CloseMonth closes a customer's month, once it has ended in the customer's zone: the usage of
// every key is settled and folded, the exemption read once more, and the invoice made final and
// numbered, all while the month is held. Usage of earlier months that was told late is billed
// apart, after it. Closing again changes nothing.
func (s *Service) CloseMonth(ctx context.Context, tenant domain.TenantID, customer domain.CustomerID, month domain.Month) (Closed, error) {
	key := customer.String() + " " + month.String()
	op, err := domain.NewOperation(tenant, by, "closeMonth", "", &key, key)
	if err != nil {
		return Closed{}, err
	}
	op.KeyGiven = false
	var late []domain.SettlementID
	out, err := txn.Run(ctx, s.db, txn.Write[Closed]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (Closed, error) {
			c := closing{tx: tx, tenant: tenant, customer: customer, month: month, op: op}
			err := c.run(ctx)
			late = c.late
			return c.Closed, err
		},
		Find: func(context.Context, *sqlc.Queries) (found txn.Found[Closed], err error) { return found, errNotYet },
	})
	if err != nil {
		return Closed{CustomerID: customer, Month: month}, err
	}
	ctx = context.WithoutCancel(ctx)
	for _, id := range late {
		s.placeOrLeave(ctx, tenant, id)
	}
	s.lookOrLeave(ctx, tenant, customer)
	return out.Value, nil
}

// closing is a month being closed, in one transaction.
type closing struct {
	Closed
	tx       txn.Tx
	tenant   domain.TenantID
	customer domain.CustomerID
	month    domain.Month
	op       domain.Operation
	late     []domain.SettlementID // of earlier months: to be placed apart, afterwards
}

func (c *closing) run(ctx context.Context) error {
	c.CustomerID, c.Month = c.customer, c.month
	period, err := c.tx.LockPeriod(ctx, sqlc.LockPeriodParams{TenantID: c.tenant, CustomerID: c.customer, Month: c.month})
	if isNoRows(err) {
		return domain.Refuse(domain.CodeNotFound, domain.Input("customerId"), "the customer has used nothing in %s", c.month)
	}
	if err != nil {
		return err
	}
	if period.ClosedAt != nil {
		_, err := c.monthly(ctx)
		return err
	}
	if c.tx.Now.Before(period.EndsAt) {
		return domain.Refuse(domain.CodeMonthNotOver, nil, "the month %s ends at %s in %s", c.month, domain.FormatTime(period.EndsAt), period.TimeZone)
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	if err := c.fold(ctx); err != nil {
		return err
	}
	if _, err := c.tx.ClosePeriod(ctx, sqlc.ClosePeriodParams{TenantID: c.tenant, CustomerID: c.customer, Month: c.month, ClosedAt: &c.tx.Now.Time}); err != nil {
		return err
	}
	return c.finalise(ctx) // last, since it takes a number
}

// settle settles what every key has used up to the month and nothing has settled, in the order of
// the keys' ids. Ingestion is kept off each of them, so that what is summed is what is marked.
func (c *closing) settle(ctx context.Context) error {
	ids, err := c.tx.ListKeysWithUnsettledUsage(ctx, sqlc.ListKeysWithUnsettledUsageParams{TenantID: c.tenant, CustomerID: c.customer, Month: c.month})
	if err != nil {
		return err
	}
	for _, id := range ids {
		key, err := c.tx.HoldAPIKey(ctx, sqlc.HoldAPIKeyParams{TenantID: c.tenant, ID: id})
		if err != nil {
			return err
		}
		sums, err := c.tx.SumUnsettledUsage(ctx, sqlc.SumUnsettledUsageParams{TenantID: c.tenant, APIKeyID: id})
		if err != nil {
			return err
		}
		for _, sum := range sums {
			if sum.Month.After(c.month.Time) {
				continue
			}
			made, err := settleMonth(ctx, c.tx, key, sum)
			if err != nil {
				return err
			}
			c.Settlements++
			if sum.Month.Before(c.month.Time) {
				c.late = append(c.late, made)
			}
		}
	}
	return nil
}

// fold folds every settlement of the month that is still pending.
func (c *closing) fold(ctx context.Context) error {
	pending, err := c.tx.ListPendingSettlements(ctx, sqlc.ListPendingSettlementsParams{TenantID: c.tenant, CustomerID: c.customer, Month: c.month})
	if err != nil {
		return err
	}
	for _, one := range pending {
		p, err := readPlacement(ctx, c.tx, c.tenant, one.ID, pessimistic)
		if err != nil {
			return err
		}
		p.way = "RECOVERY"
		if _, err := p.recover(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finalise makes the month's invoice final: numbered, and waived if the customer is exempt now. A
// waived one is numbered and stays waived.
func (c *closing) finalise(ctx context.Context) error {
	invoice, err := c.monthly(ctx)
	if err != nil || invoice == nil {
		return err
	}
	if invoice, err = c.tx.LockInvoice(ctx, sqlc.LockInvoiceParams{TenantID: c.tenant, ID: invoice.ID}); err != nil {
		return err
	}
	c.Invoice = invoice
	exempt, err := exemption(ctx, c.tx.Queries, c.tenant, c.customer)
	if err != nil {
		return err
	}
	byExemption := invoice.WaivedBy != nil && *invoice.WaivedBy == domain.WaivedByExemption
	m := invoicing.Move{Op: c.op, ID: domain.NewID[domain.UUID]()}
	switch {
	case invoice.Number != nil || invoice.Status == domain.InvoiceVoid:
		return nil
	case invoice.Status == domain.InvoiceOpen && exempt != nil:
		cause := domain.WaivedByExemption
		m.To, m.WaivedBy, m.Exemption = domain.InvoiceWaived, &cause, exempt
	case invoice.Status == domain.InvoiceOpen, byExemption && exempt == nil:
		m.To = domain.InvoicePending
	default:
		m.To = invoice.Status
	}
	if err := m.Finalise(ctx, c.tx, invoice); err != nil {
		return err
	}
	c.Invoice, err = m.Run(ctx, c.tx, invoice)
	return err
}

// monthly reads the month's invoice; nil if nothing accrued.
func (c *closing) monthly(ctx context.Context) (*sqlc.Invoice, error) {
	invoice, err := c.tx.FindMonthlyInvoice(ctx, sqlc.FindMonthlyInvoiceParams{TenantID: c.tenant, CustomerID: c.customer, UsageMonth: &c.month})
	if isNoRows(err) {
		return nil, nil
	}
	c.Invoice = invoice
	return invoice, err
}

// CloseMonths closes a month, and earlier ones that are still open, of every customer of every tenant
// that has one, or of one customer, and tells each as it is done. A dry run tells which it would close.
func (s *Service) CloseMonths(ctx context.Context, month domain.Month, only *domain.CustomerID, dryRun bool, tell func(Closed, error)) error {
	arg := sqlc.EveryPeriodToCloseParams{Month: month, RowLimit: 100}
	for {
		periods, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.BillingPeriod, error) {
			return q.EveryPeriodToClose(ctx, arg)
		})
		if err != nil || len(periods) == 0 {
			return err
		}
		for _, p := range periods {
			arg.AfterTenantID, arg.AfterCustomerID, arg.AfterMonth = domain.UUID(p.TenantID), domain.UUID(p.CustomerID), p.Month.Date
			if only != nil && *only != p.CustomerID {
				continue
			}
			if dryRun {
				tell(Closed{CustomerID: p.CustomerID, Month: p.Month}, s.mayClose(p))
				continue
			}
			closed, err := s.CloseMonth(ctx, p.TenantID, p.CustomerID, p.Month)
			tell(closed, err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

func (s *Service) mayClose(p *sqlc.BillingPeriod) error {
	if s.db.Clock().Before(p.EndsAt) {
		return fmt.Errorf("the month ends at %s", domain.FormatTime(p.EndsAt))
	}
	return nil
}
