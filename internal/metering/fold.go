package metering

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// by is who folds, in the rows that a fold makes.
const by = "metering"

// attempt is one to place a settlement, and what it came to: a line of the receipt.
type attempt struct {
	way, saw  string
	exemption *domain.ExemptionID
	result    string
}

// placement is a settlement being placed, in one transaction: everything that decides where its
// value goes, read anew.
type placement struct {
	tx         txn.Tx
	way        string
	settlement *sqlc.Settlement
	period     *sqlc.BillingPeriod
	invoice    *sqlc.Invoice // the month's; nil if there is none yet
	customer   *sqlc.Customer
	exemption  *domain.ExemptionID // that stands; nil if none does
	earlier    []attempt           // that came to nothing
}

// saw is what an attempt saw, for the receipt.
func (p *placement) saw() string {
	month := "month open"
	if p.period.ClosedAt != nil {
		month = "month closed"
	}
	if p.invoice == nil {
		return month + ", no invoice"
	}
	return fmt.Sprintf("%s, invoice %s at %s", month, p.invoice.Status, domain.FormatTime(p.invoice.UpdatedAt.Time))
}

// came is what this attempt came to.
func (p *placement) came(result string) attempt { return attempt{p.way, p.saw(), p.exemption, result} }

// errRecover says that the value cannot be folded by a guarded update, and why: recovery decides.
var errRecover = errors.New("to be recovered")

// place puts a settlement's value where it belongs. It tries the guarded update first, which holds
// nobody up and reads every input again after each refusal; what cannot be folded so, and what five
// refusals have worn out, ends in recovery, which locks, reads and decides. No path drops the value.
func (s *Service) place(ctx context.Context, tenant domain.TenantID, id domain.SettlementID) (*sqlc.Settlement, error) {
	var refusals []attempt // of this call; the attempt that succeeds writes them down
	out, err := txn.Run(ctx, s.db, s.placing(tenant, id, func(ctx context.Context, tx txn.Tx) (*sqlc.Settlement, error) {
		p, err := readPlacement(ctx, tx, tenant, id, optimistic)
		if err != nil || p.settlement.Outcome != domain.SettlementPending {
			return p.settlement, err
		}
		p.way, p.earlier = "FOLD", refusals
		placed, err := p.fold(ctx)
		switch {
		case errors.Is(err, txn.ErrRefused):
			refusals = append(refusals, p.came("the invoice was moved since it was read"))
		case txn.IsConflict(err) && p.invoice == nil:
			refusals = append(refusals, p.came("another fold made the month's invoice"))
		case errors.Is(err, errRecover):
			refusals = append(refusals, p.came("it cannot be folded"))
		}
		return placed, err
	}))
	worn := errors.Is(err, txn.ErrRefused) || isBusyConflict(err)
	if !errors.Is(err, errRecover) && !worn {
		return out.Value, err
	}
	out, err = txn.Run(ctx, s.db, s.placing(tenant, id, func(ctx context.Context, tx txn.Tx) (*sqlc.Settlement, error) {
		p, err := readPlacement(ctx, tx, tenant, id, pessimistic)
		if err != nil || p.settlement.Outcome != domain.SettlementPending {
			return p.settlement, err
		}
		p.way, p.earlier = "RECOVERY", refusals
		return p.recover(ctx)
	}))
	return out.Value, err
}

// placing is the write of a placement. The settlement's own outcome says whether it was placed.
func (s *Service) placing(tenant domain.TenantID, id domain.SettlementID, apply func(context.Context, txn.Tx) (*sqlc.Settlement, error)) txn.Write[*sqlc.Settlement] {
	return txn.Write[*sqlc.Settlement]{
		Apply: apply,
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Settlement], err error) {
			row, err := settlement(ctx, q, tenant, id)
			if err == nil && row.Outcome == domain.SettlementPending {
				err = errNotYet
			}
			return txn.Found[*sqlc.Settlement]{Value: row, Own: true}, err
		},
	}
}

func settlement(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, id domain.SettlementID) (*sqlc.Settlement, error) {
	rows, err := q.GetSettlements(ctx, sqlc.GetSettlementsParams{TenantID: tenant, Ids: []domain.SettlementID{id}})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, noSuch("settlement", "id")
	}
	return rows[0], nil
}

// fold is the optimistic way: one guarded statement carries the whole check of the invoice.
func (p *placement) fold(ctx context.Context) (*sqlc.Settlement, error) {
	switch p.decide() {
	case domain.PlaceInNewInvoice:
		return p.open(ctx)
	case domain.PlaceInInvoice:
		return p.put(ctx)
	}
	return nil, errRecover
}

// recover is the pessimistic way: month, settlement and invoice are held, so what is decided is so.
func (p *placement) recover(ctx context.Context) (*sqlc.Settlement, error) {
	switch p.decide() {
	case domain.PlaceInNewInvoice:
		return p.open(ctx)
	case domain.PlaceInInvoice, domain.PlaceInWaived, domain.PlaceReinstated:
		return p.put(ctx)
	}
	return p.apart(ctx)
}

func (p *placement) decide() domain.Placing {
	status, waivedBy, numbered := domain.InvoiceStatus(""), "", false
	if p.invoice != nil {
		status, numbered = p.invoice.Status, p.invoice.Number != nil
		if p.invoice.WaivedBy != nil {
			waivedBy = *p.invoice.WaivedBy
		}
	}
	return domain.Place(status, waivedBy, numbered, p.exemption != nil, p.period.ClosedAt != nil)
}

// status is where an invoice goes that accrues: waived while the customer is exempt.
func (p *placement) status() (domain.InvoiceStatus, *string) {
	if p.exemption != nil {
		cause := domain.WaivedByExemption
		return domain.InvoiceWaived, &cause
	}
	return domain.InvoiceOpen, nil
}

func (p *placement) outcome() domain.SettlementOutcome {
	if p.exemption != nil {
		return domain.SettlementFoldedWaived
	}
	return domain.SettlementFolded
}

// open makes the month's invoice with the settlement as its first line. Losing the race for that is
// a conflict like any other.
func (p *placement) open(ctx context.Context) (*sqlc.Settlement, error) {
	status, cause := p.status()
	invoice, err := p.insertInvoice(ctx, domain.InvoiceUsage, status, cause)
	if err != nil {
		return nil, err
	}
	return p.line(ctx, invoice, p.outcome())
}

// put folds into the month's invoice by the guarded update.
func (p *placement) put(ctx context.Context) (*sqlc.Settlement, error) {
	total, adjustment, err := domain.AddExact(p.invoice.TotalMinor, p.invoice.RoundingAdjustment, p.settlement.Amount)
	if err != nil {
		return nil, err
	}
	status, cause := p.status()
	invoice, err := p.tx.FoldIntoInvoice(ctx, sqlc.FoldIntoInvoiceParams{
		TenantID: p.invoice.TenantID, ID: p.invoice.ID, ToStatus: status, WaivedBy: cause, ExemptionID: p.exemption,
		TotalMinor: total, RoundingAdjustment: adjustment,
		AllowedStatuses:   []domain.InvoiceStatus{p.invoice.Status},
		ExpectedUpdatedAt: p.invoice.UpdatedAt, NextVersion: p.invoice.UpdatedAt.Next(p.tx.Now.Time),
	})
	if isNoRows(err) {
		return nil, txn.ErrRefused
	}
	if err != nil {
		return nil, err
	}
	if invoice.Status != p.invoice.Status {
		key := fmt.Sprintf("%s round %d", p.settlement.ID, p.settlement.Round)
		op, err := domain.NewOperation(invoice.TenantID, by, "foldMovesInvoice", "", &key, invoice.Status)
		if err != nil {
			return nil, err
		}
		if err := invoicing.Remember(ctx, p.tx, p.invoice, invoicing.Move{To: invoice.Status, Op: op, ID: domain.NewID[domain.UUID]()}); err != nil {
			return nil, err
		}
	}
	return p.line(ctx, invoice, p.outcome())
}

// apart bills the value on an invoice of its own, with a number of its own, which comes last: waived if
// the customer is exempt. What is less than one minor unit is skipped, and the skip is a row.
func (p *placement) apart(ctx context.Context) (*sqlc.Settlement, error) {
	if p.settlement.Amount.LessThanOne() {
		return p.end(ctx, domain.SettlementSkipped, nil)
	}
	status, cause := p.status()
	invoice, err := p.insertInvoice(ctx, domain.InvoiceResidual, status, cause)
	if err != nil {
		return nil, err
	}
	placed, err := p.line(ctx, invoice, domain.SettlementBilledSeparately)
	if err != nil {
		return nil, err
	}
	born := invoicing.Move{To: status, Born: true}
	if status == domain.InvoiceOpen {
		born.To = domain.InvoicePending
	}
	if err := born.Finalise(ctx, p.tx, invoice); err != nil {
		return nil, err
	}
	_, err = born.Run(ctx, p.tx, invoice)
	return placed, err
}

func (p *placement) insertInvoice(ctx context.Context, kind domain.InvoiceKind, status domain.InvoiceStatus, cause *string) (*sqlc.Invoice, error) {
	total, adjustment, err := domain.AddExact(0, domain.Decimal{}, p.settlement.Amount)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%s round %d", p.settlement.ID, p.settlement.Round)
	op, err := domain.NewOperation(p.settlement.TenantID, by, "placeSettlement", "", &key, p.settlement.ID)
	if err != nil {
		return nil, err
	}
	arg := sqlc.InsertUsageInvoiceParams{
		TenantID: p.settlement.TenantID, ID: domain.NewID[domain.InvoiceID](), CustomerID: p.settlement.CustomerID, Kind: kind, Status: status,
		UsageMonth: &p.settlement.Month, Currency: p.customer.Currency, TotalMinor: total, RoundingAdjustment: adjustment, WaivedBy: cause,
		OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: by, CreatedAt: p.tx.Now.Time, UpdatedAt: p.tx.Now,
	}
	if cause != nil {
		arg.ExemptionID = p.exemption
	}
	return p.tx.InsertUsageInvoice(ctx, arg)
}

// line adds the settlement's line, once per round, and ends the settlement in the same transaction.
func (p *placement) line(ctx context.Context, invoice *sqlc.Invoice, outcome domain.SettlementOutcome) (*sqlc.Settlement, error) {
	s := p.settlement
	_, err := p.tx.InsertSettlementLine(ctx, sqlc.InsertSettlementLineParams{
		TenantID: s.TenantID, InvoiceID: invoice.ID, Description: fmt.Sprintf("API usage, %s, %s", s.Month, s.APIKeyID),
		Quantity: s.Quantity, UnitPrice: s.UnitPrice, ExactAmount: s.Amount, SettlementID: &s.ID, SettlementRound: &s.Round,
	})
	if err != nil {
		return nil, err
	}
	return p.end(ctx, outcome, &invoice.ID)
}

// end writes the receipt, and where the value went.
func (p *placement) end(ctx context.Context, outcome domain.SettlementOutcome, invoice *domain.InvoiceID) (*sqlc.Settlement, error) {
	s := p.settlement
	for _, r := range append(slices.Clip(p.earlier), p.came(string(outcome))) {
		_, err := p.tx.InsertSettlementAttempt(ctx, sqlc.InsertSettlementAttemptParams{
			TenantID: s.TenantID, SettlementID: s.ID, Round: s.Round, Way: r.way, Saw: r.saw, ExemptionID: r.exemption, Result: r.result, AttemptedAt: p.tx.Now.Time,
		})
		if err != nil {
			return nil, err
		}
	}
	placed, err := p.tx.PlaceSettlement(ctx, sqlc.PlaceSettlementParams{
		TenantID: s.TenantID, ID: s.ID, Outcome: outcome, InvoiceID: invoice, ExemptionID: p.exemption, SettledAt: &p.tx.Now.Time,
		ExpectedUpdatedAt: s.UpdatedAt, NextVersion: s.UpdatedAt.Next(p.tx.Now.Time),
	})
	if isNoRows(err) {
		return nil, txn.ErrRefused
	}
	return placed, err
}
