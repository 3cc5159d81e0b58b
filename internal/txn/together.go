package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// Batch is several writes of one kind that one statement makes together.
type Batch[T any] struct {
	Writes []Write[T] // each as it runs alone, in one statement too
	// Apply makes the writes at these places by one statement, a transaction of its own, and
	// returns their effects in order.
	Apply func(ctx context.Context, tx Tx, places []int) ([]T, error)
	// Find reads what earlier runs of the writes at these places came to, by place.
	Find func(ctx context.Context, q *sqlc.Queries, places []int) (map[int]Found[T], error)
}

// Result is what one write of a batch came to.
type Result[T any] struct {
	Outcome[T]
	Err error
}

// RunTogether makes each write of a batch take effect exactly once, by one statement where it can,
// or tells why it did not. What fails the statement fails only the writes that are at fault:
//
//   - an operation that has taken effect before is found, and answered; the others run again;
//   - another constraint, or a value, is at fault in one half of the batch or the other: each runs
//     by itself, down to a write alone, which Run judges;
//   - a database that is busy or away, or a statement that finds nothing to do, answers to all;
//   - where the answer to the statement is lost, each write is run again alone, under Run's rule
//     for an unknown outcome.
//
// A batch belongs to no client, and finishes within WriteTimeout.
func RunTogether[T any](ctx context.Context, db *DB, b Batch[T]) []Result[T] {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.WriteTimeout)
	defer cancel()
	t := together[T]{db, b, make([]Result[T], len(b.Writes))}
	first, twins := t.distinct()
	t.run(ctx, first)
	for _, place := range twins { // the first of its key has landed, and is found
		t.alone(ctx, place, nil)
	}
	return t.results
}

// together is a batch at work.
type together[T any] struct {
	db *DB
	Batch[T]
	results []Result[T]
}

// distinct are the places of each operation's first write, and those of its twins.
func (t together[T]) distinct() (first, twins []int) {
	seen := make(map[domain.OperationID]bool, len(t.Writes))
	for place, w := range t.Writes {
		if seen[w.ID] {
			twins = append(twins, place)
			continue
		}
		seen[w.ID] = true
		first = append(first, place)
	}
	return first, twins
}

// run makes the writes at these places, together as far as it goes.
func (t together[T]) run(ctx context.Context, places []int) {
	values, err := attemptOnce(ctx, t.db, Write[[]T]{OneStatement: true, Apply: func(ctx context.Context, tx Tx) ([]T, error) {
		return t.Apply(ctx, tx, places)
	}})
	if err == nil {
		for i, place := range places {
			w := t.Writes[place]
			t.results[place].Outcome = Outcome[T]{Value: values[i], Key: w.Key, KeyMade: !w.KeyGiven}
			t.observe(place)
		}
		return
	}
	failure := err
	v, err := classify(failure)
	t.db.Logger.DebugContext(ctx, "a batch failed", "writes", len(places), "error", err)
	switch {
	case v == lost:
		t.unknown(ctx, places, failure)
	case (v == answer || v == decided) && !ofOneWrite(err):
		for _, place := range places {
			t.results[place].Err = err
			t.observe(place)
		}
	case len(places) == 1:
		t.alone(ctx, places[0], failure)
	case v == replayed:
		t.sift(ctx, places)
	default:
		t.halve(ctx, places)
	}
}

// ofOneWrite says whether an answer is about one write: a constraint or a value of it, and not the
// state of the database.
func ofOneWrite(err error) bool {
	var violation *pgconn.PgError
	var refusal domain.UserError
	if !errors.As(err, &violation) {
		return false
	}
	return !errors.As(err, &refusal) || refusal.GetCode() != domain.CodeBusy && refusal.GetCode() != domain.CodeUnavailable
}

// sift answers the writes that took effect before, in a statement of its own, and runs the rest.
func (t together[T]) sift(ctx context.Context, places []int) {
	found, err := Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) (map[int]Found[T], error) {
		return t.Find(ctx, q, places)
	})
	if err != nil || len(found) == 0 { // nobody's: a race that Run decides
		t.halve(ctx, places)
		return
	}
	var rest []int
	for _, place := range places {
		if f, ok := found[place]; ok {
			r := &t.results[place]
			r.Outcome, r.Err = t.Writes[place].replayed(f)
			t.observe(place)
			continue
		}
		rest = append(rest, place)
	}
	if len(rest) > 0 {
		t.run(ctx, rest)
	}
}

// halve runs each half by itself.
func (t together[T]) halve(ctx context.Context, places []int) {
	t.run(ctx, places[:len(places)/2])
	t.run(ctx, places[len(places)/2:])
}

// unknown runs each write again alone, all at once: the pool bounds how many, and none waits for
// another's time-out.
func (t together[T]) unknown(ctx context.Context, places []int, failure error) {
	var group sync.WaitGroup
	for _, place := range places {
		group.Go(func() {
			defer func() {
				if p := recover(); p != nil { // in a goroutine of its own it would end the process
					t.results[place].Err = fmt.Errorf("panic in a joined write: %v", p)
				}
			}()
			t.alone(ctx, place, failure)
		})
	}
	group.Wait()
}

// observe tells how a write ended that was not run alone.
func (t together[T]) observe(place int) {
	r := t.results[place]
	t.db.observe("write", r.Replayed, 1, r.Err)
}

// alone runs one write by itself, after its first attempt has failed as told, if one was made.
func (t together[T]) alone(ctx context.Context, place int, failure error) {
	r := &t.results[place]
	r.Outcome, r.Err = run(ctx, t.db, t.Writes[place], failure)
}
