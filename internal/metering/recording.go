package metering

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// recording is a request of usage at work in its transaction.
type recording struct {
	Recorded
	tx     txn.Tx
	caller auth.Caller
	events []UsageEventInput
	twins  []usage // of events that stand earlier in the request
	doubts []doubt
}

// usage is an event with what its key says of it.
type usage struct {
	UsageEventInput
	place    int
	customer domain.CustomerID
	month    domain.Month
}

// doubt is an event that is not recorded: a duplicate if it is known, else refused.
type doubt struct {
	usage
	refusal error
}

func (u usage) same(row *sqlc.UsageEvent) bool {
	return row.APIKeyID == u.APIKeyID && row.Quantity == u.Quantity && row.OccurredAt.Equal(u.OccurredAt)
}

func (u usage) refuse(code domain.Code, field, message string) error {
	return domain.Refuse(code, domain.Input("events", strconv.Itoa(u.place), field), "%s", message)
}

func (r *recording) run(ctx context.Context) error {
	keys, customers, err := r.keys(ctx)
	if err != nil {
		return err
	}
	events, err := r.judge(keys, customers)
	if err != nil {
		return err
	}
	if err := r.pin(ctx, events, customers); err != nil { // periods come before keys
		return err
	}
	active, err := r.hold(ctx, slices.Concat(events, r.twins))
	if err != nil {
		return err
	}
	events = slices.DeleteFunc(events, func(u usage) bool {
		if !active[u.APIKeyID] {
			r.doubt(u, domain.CodeKeyRevoked, "apiKeyId", "the key is revoked")
		}
		return !active[u.APIKeyID]
	})
	for _, u := range r.twins {
		if active[u.APIKeyID] {
			r.doubt(u, domain.CodeEventConflict, "id", "an event with this id was refused in the same request")
		} else {
			r.doubt(u, domain.CodeKeyRevoked, "apiKeyId", "the key is revoked")
		}
	}
	if err := r.insert(ctx, events); err != nil {
		return err
	}
	return r.recall(ctx)
}

func (r *recording) doubt(u usage, code domain.Code, field, message string) {
	r.doubts = append(r.doubts, doubt{u, u.refuse(code, field, message)})
}

// keys reads the events' keys and their customers, without a lock.
func (r *recording) keys(ctx context.Context) (map[domain.APIKeyID]*sqlc.APIKey, map[domain.CustomerID]*sqlc.Customer, error) {
	var ids []domain.APIKeyID
	for _, e := range r.events {
		ids = append(ids, e.APIKeyID)
	}
	rows, err := r.tx.GetAPIKeys(ctx, sqlc.GetAPIKeysParams{TenantID: r.caller.TenantID, Ids: ids})
	if err != nil {
		return nil, nil, err
	}
	keys, of := map[domain.APIKeyID]*sqlc.APIKey{}, []domain.CustomerID{}
	for _, row := range rows {
		keys[row.ID], of = row, append(of, row.CustomerID)
	}
	people, err := r.tx.GetCustomers(ctx, sqlc.GetCustomersParams{TenantID: r.caller.TenantID, Ids: of})
	customers := map[domain.CustomerID]*sqlc.Customer{}
	for _, c := range people {
		customers[c.ID] = c
	}
	return keys, customers, err
}

// judge doubts what could not be recorded whatever happens, and says whose month each event is of.
// An id that stands twice counts once: its twins are judged by what becomes of the first.
func (r *recording) judge(keys map[domain.APIKeyID]*sqlc.APIKey, customers map[domain.CustomerID]*sqlc.Customer) ([]usage, error) {
	var good []usage
	seen := map[string]bool{}
	for i, e := range r.events {
		if err := domain.CheckText(domain.Input("events", strconv.Itoa(i), "id"), e.ID, 255); err != nil {
			return nil, err
		}
		e.OccurredAt = domain.VersionAt(e.OccurredAt).Time
		u := usage{UsageEventInput: e, place: i}
		key := keys[e.APIKeyID]
		switch {
		case key == nil:
			r.doubt(u, domain.CodeNotFound, "apiKeyId", "no such key")
		case e.Quantity < 1:
			r.doubt(u, domain.CodeInvalidQuantity, "quantity", "a quantity is at least 1")
		case e.OccurredAt.After(r.tx.Now.Add(maxAhead)), e.OccurredAt.Before(r.tx.Now.Add(-maxAge)):
			r.doubt(u, domain.CodeOutOfRange, "occurredAt", "usage is recorded within 92 days, and not ahead of time")
		case seen[e.ID]:
			r.twins = append(r.twins, u)
		default:
			seen[e.ID] = true
			zone, err := domain.ParseTimeZone(customers[key.CustomerID].TimeZone)
			if err != nil {
				return nil, err
			}
			u.customer, u.month = key.CustomerID, domain.MonthOf(e.OccurredAt, zone)
			good = append(good, u)
		}
	}
	slices.SortFunc(good, func(a, b usage) int { return strings.Compare(a.ID, b.ID) })
	return good, nil
}

// pin makes the rows of the months that the events are of.
func (r *recording) pin(ctx context.Context, events []usage, customers map[domain.CustomerID]*sqlc.Customer) error {
	type period struct {
		customer domain.CustomerID
		month    time.Time
	}
	pinned := map[period]bool{}
	months := map[domain.CustomerID][]domain.Month{}
	for _, u := range events {
		if p := (period{u.customer, u.month.Time}); !pinned[p] {
			pinned[p] = true
			months[u.customer] = append(months[u.customer], u.month)
		}
	}
	of := make([]domain.CustomerID, 0, len(months))
	for id := range months {
		of = append(of, id)
	}
	slices.SortFunc(of, func(a, b domain.CustomerID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range of {
		slices.SortFunc(months[id], func(a, b domain.Month) int { return a.Compare(b.Time) })
		if err := pin(ctx, r.tx.Queries, customers[id], months[id]...); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps the keys of the events active, and says which are.
func (r *recording) hold(ctx context.Context, events []usage) (map[domain.APIKeyID]bool, error) {
	var ids []domain.APIKeyID
	for _, u := range events {
		ids = append(ids, u.APIKeyID)
	}
	rows, err := r.tx.ShareActiveKeys(ctx, sqlc.ShareActiveKeysParams{TenantID: r.caller.TenantID, Ids: ids})
	active := map[domain.APIKeyID]bool{}
	for _, row := range rows {
		active[row.ID] = true
	}
	return active, err
}

// insert writes the events; those that are known already it doubts.
func (r *recording) insert(ctx context.Context, events []usage) error {
	if len(events) == 0 {
		return nil
	}
	arg := sqlc.InsertUsageParams{TenantID: r.caller.TenantID, RecordedBy: r.caller.By(), RecordedAt: r.tx.Now.Time}
	for _, u := range events {
		arg.EventIds = append(arg.EventIds, u.ID)
		arg.APIKeyIds = append(arg.APIKeyIds, domain.UUID(u.APIKeyID))
		arg.CustomerIds = append(arg.CustomerIds, domain.UUID(u.customer))
		arg.Months = append(arg.Months, u.month.Date)
		arg.Quantities = append(arg.Quantities, u.Quantity)
		arg.OccurredAts = append(arg.OccurredAts, u.OccurredAt)
	}
	inserted, err := r.tx.InsertUsage(ctx, arg)
	if err != nil {
		return err
	}
	r.Accepted = int32(len(inserted))
	fresh := map[string]bool{}
	for _, row := range inserted {
		fresh[row.EventID] = true
	}
	for _, u := range events {
		if !fresh[u.ID] {
			r.doubts = append(r.doubts, doubt{u, nil})
		}
	}
	return nil
}

// recall compares what was not recorded with what is known, in a new statement: an event counts
// once for ever, so one that is told again is a success, however late, and though its key be revoked.
func (r *recording) recall(ctx context.Context) error {
	if len(r.doubts) == 0 {
		return nil
	}
	arg := sqlc.GetUsageParams{TenantID: r.caller.TenantID}
	for _, d := range r.doubts {
		arg.EventIds = append(arg.EventIds, d.ID)
	}
	rows, err := r.tx.GetUsage(ctx, arg)
	if err != nil {
		return err
	}
	known := map[string]*sqlc.UsageEvent{}
	for _, row := range rows {
		known[row.EventID] = row
	}
	slices.SortFunc(r.doubts, func(a, b doubt) int { return cmp.Compare(a.place, b.place) })
	for _, d := range r.doubts {
		switch row := known[d.ID]; {
		case row == nil && d.refusal == nil:
			return errors.New("a usage event is neither new nor known")
		case row == nil:
			r.Refused = append(r.Refused, d.refusal)
		case d.same(row):
			r.Duplicates++
		default:
			r.Refused = append(r.Refused, d.refuse(domain.CodeEventConflict, "id", "an event with this id and other content is known"))
		}
	}
	return nil
}
