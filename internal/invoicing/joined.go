package invoicing

import (
	"cmp"
	"context"
	"errors"
	"time"

	"countersign/internal/domain"
	"countersign/internal/join"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Joining bounds how allocations of one series share a transaction. The zero value of each means
// its default.
type Joining struct {
	Batch int // 128: allocations in one transaction, at most; 1 switches joining off
	Queue int // 10,000: allocations that wait for a transaction, of all series together, at most
}

// What allocations may have in lines: together in one transaction, since the counter is locked while they
// are written, and on average while they wait.
const (
	linesTogether = 2000
	linesEach     = 10
)

// WithJoining is the service with other bounds of joining.
func (s *Service) WithJoining(j Joining) *Service {
	j = Joining{Batch: cmp.Or(j.Batch, 128), Queue: cmp.Or(j.Queue, 10_000)}
	out := &Service{db: s.db}
	if j.Batch > 1 {
		out.joined = newJoined(s.db, j)
	}
	return out
}

// Waiting is how many allocations wait for a statement to share.
func (s *Service) Waiting() int {
	if s.joined == nil {
		return 0
	}
	return s.joined.group.Waiting()
}

// joined lets allocations of one series share statements: while one is in flight, those that arrive
// wait for the next, so that many numbers cost one lock and one COMMIT.
type joined struct {
	db    *txn.DB
	group *join.Group[line, *allocation, txn.Result[*sqlc.Invoice]]
}

// line is where allocations queue: those that the same statement can make. The zero date stands
// for allocations that ask for no day.
type line struct {
	tenant domain.TenantID
	series domain.SeriesID
	date   domain.Date
}

// flightTimeout is far beyond what the writes of a flight take, each of which has a deadline of its own,
// those included that are run once more.
const flightTimeout = 3 * time.Minute

func newJoined(db *txn.DB, j Joining) *joined {
	out := &joined{db: db}
	limits := join.Limits{Batch: j.Batch, Queue: j.Queue, Timeout: flightTimeout, Load: linesTogether, Hold: linesEach * j.Queue}
	out.group = join.New(limits, out.fly).Weighed(func(a *allocation) int { return len(a.in.Lines) })
	return out
}

// allocate waits for a statement to share. A client that hangs up before it was sent leaves
// nothing; after that its invoice is made, like its neighbours'.
func (j *joined) allocate(ctx context.Context, a *allocation) (txn.Outcome[*sqlc.Invoice], error) {
	result, err := j.group.Do(ctx, a.line(), a)
	switch {
	case errors.Is(err, join.ErrFull):
		return result.Outcome, domain.Busy().Because(err)
	case err != nil && ctx.Err() != nil:
		return result.Outcome, txn.ErrCancelled
	case err != nil:
		return result.Outcome, err
	}
	return result.Outcome, result.Err
}

func (a *allocation) line() line {
	l := line{tenant: a.caller.TenantID, series: a.in.SeriesID}
	if a.in.IssueDate != nil {
		l.date = *a.in.IssueDate
	}
	return l
}

// fly makes the allocations of one line. Where the counter stands on another day, the first
// allocation moves it, and the others follow together.
func (j *joined) fly(ctx context.Context, _ line, of []*allocation) ([]txn.Result[*sqlc.Invoice], error) {
	results := make([]txn.Result[*sqlc.Invoice], 0, len(of))
	for len(of) > 0 {
		made := txn.RunTogether(ctx, j.db, batch(of))
		away := len(made)
		for i, r := range made {
			if counterAway(r.Err) {
				away = i
				break
			}
		}
		results, of = append(results, made[:away]...), of[away:]
		if len(of) > 0 {
			out, err := txn.Run(ctx, j.db, of[0].moving())
			results, of = append(results, txn.Result[*sqlc.Invoice]{Outcome: out, Err: err}), of[1:]
		}
	}
	return results, nil
}

// batch is allocations as one statement makes them.
func batch(of []*allocation) txn.Batch[*sqlc.Invoice] {
	b := txn.Batch[*sqlc.Invoice]{Writes: make([]txn.Write[*sqlc.Invoice], len(of))}
	for i, a := range of {
		b.Writes[i] = a.write()
	}
	b.Apply = func(ctx context.Context, tx txn.Tx, places []int) ([]*sqlc.Invoice, error) {
		return take(ctx, tx, at(of, places), of[0].in.IssueDate)
	}
	b.Find = func(ctx context.Context, q *sqlc.Queries, places []int) (map[int]txn.Found[*sqlc.Invoice], error) {
		arg := sqlc.FindInvoicesOfOperationsParams{TenantID: of[0].caller.TenantID}
		place := make(map[domain.OperationID]int, len(places))
		for _, i := range places {
			arg.OperationIds = append(arg.OperationIds, of[i].op.ID)
			place[of[i].op.ID] = i
		}
		rows, err := q.FindInvoicesOfOperations(ctx, arg)
		found := make(map[int]txn.Found[*sqlc.Invoice], len(rows))
		for _, row := range rows {
			i := place[row.OperationID]
			found[i] = of[i].found(row)
		}
		return found, err
	}
	return b
}

func at(of []*allocation, places []int) []*allocation {
	some := make([]*allocation, len(places))
	for i, place := range places {
		some[i] = of[place]
	}
	return some
}
