package store

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/relay"
)

const (
	settleTries = 5
	settlePause = 20 * time.Millisecond // times a random 0.5 to 1.5, between tries
)

// Settle implements [relay.Store].
func (s *Store) Settle(ctx context.Context, claim relay.Claim, verdicts []relay.Verdict) ([]relay.Result, error) {
	results, err := s.SettleAll(ctx, []relay.Settlement{{Claim: claim, Verdicts: verdicts}})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// SettleAll implements [relay.Store]. Deadlocks are tried again here.
func (s *Store) SettleAll(ctx context.Context, all []relay.Settlement) ([][]relay.Result, error) {
	for try := 1; ; try++ {
		results, err := s.settle(ctx, all)
		if err == nil || !retriable(err) || try == settleTries {
			if refused(err) {
				err = relay.RowFault.Wrap(err)
			}
			return results, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Duration(float64(settlePause) * (0.5 + rand.Float64()))):
		}
	}
}

func (s *Store) settle(ctx context.Context, all []relay.Settlement) (results [][]relay.Result, err error) {
	sets, work := make([]*settlement, len(all)), make([]scoped, len(all))
	for i, one := range all {
		sets[i] = newSettlement(one.Verdicts)
		work[i] = scoped{scope: one.Claim.Scope, limit: one.Limit, queue: func(b *pgx.Batch) { s.queueSettlement(b, one.Claim, sets[i]) }}
	}
	if err := s.inScopes(ctx, work...); err != nil {
		return nil, fmt.Errorf("settle claim: %w", err)
	}
	for i, one := range all {
		if err := s.settleRest(ctx, one.Claim, sets[i]); err != nil {
			return nil, err
		}
		results = append(results, sets[i].results)
	}
	return results, nil
}

// queueSettlement adds what settles a claim that is still held, but for dead letters.
func (s *Store) queueSettlement(b *pgx.Batch, claim relay.Claim, set *settlement) {
	if len(set.marks) > 0 {
		b.Queue(s.sql.mark, set.marks, relay.Unmarked(claim.Token)).Query(set.marked(relay.Written))
	}
	if len(set.ids) > 0 {
		b.Queue(s.sql.release, set.ids, relay.Unmarked(claim.Token), set.delays, set.errors, set.refunds).Query(set.released)
	}
}

// settleRest settles what is left then.
func (s *Store) settleRest(ctx context.Context, claim relay.Claim, set *settlement) error {
	if len(set.ids) > 0 {
		s.walks.forget(claim.Scope)
	}
	if err := s.settleLetters(ctx, claim, set); err != nil {
		return fmt.Errorf("settle dead letters: %w", err)
	}
	missing := set.missing()
	switch {
	case len(missing) == 0:
		return nil
	case claim.Exact:
		return s.marksHold(ctx, claim, set)
	}
	if err := s.settleLost(ctx, claim, set, missing); err != nil {
		return fmt.Errorf("settle lost claim: %w", err)
	}
	return nil
}

// marksHold fails if rows are unexported that were marked without an error, and that the claim still holds. In exactly-once
// mode they would be sent again.
func (s *Store) marksHold(ctx context.Context, claim relay.Claim, set *settlement) error {
	var delivered []int64
	for i, v := range set.verdicts {
		if (v.Exported || v.DeadLettered) && set.results[i].Status == relay.Lost {
			delivered = append(delivered, v.Row.ID)
		}
	}
	if len(delivered) == 0 {
		return nil
	}
	rows := 0
	err := s.inScope(ctx, claim.Scope, func(b *pgx.Batch) {
		b.Queue(s.sql.unmarked, delivered, relay.Unmarked(claim.Token)).QueryRow(func(row pgx.Row) error { return row.Scan(&rows) })
	})
	if err != nil {
		return fmt.Errorf("look whether marks hold: %w", err)
	}
	if rows > 0 {
		return relay.RowFault.Wrap(fmt.Errorf("%d rows were marked exported, and are not: a trigger or a policy on the outbox discards what is written", rows))
	}
	return nil
}

// settleLetters gives rows up whose dead letters were delivered.
func (s *Store) settleLetters(ctx context.Context, claim relay.Claim, set *settlement) error {
	if len(set.letters) == 0 {
		return nil
	}
	ended, err := s.endPage(ctx, claim.Scope, s.sql.deadLetter, set.letters, relay.Unmarked(claim.Token), set.texts)
	if err != nil {
		return err
	}
	for _, e := range ended {
		set.results[set.index[e.ID]] = relay.Result{Status: relay.Written}
	}
	return s.endBehind(ctx, claim.Scope, ended)
}

// settleLost deals with rows that the claim no longer held: delivered ones are marked
// if nobody did, and a claim of ours that somebody's late mark left on an exported row
// is taken off.
func (s *Store) settleLost(ctx context.Context, claim relay.Claim, set *settlement, missing []int64) error {
	ids, operations, created := set.undecided()
	return s.inScope(ctx, claim.Scope, func(b *pgx.Batch) {
		if len(ids) > 0 {
			b.Queue(s.sql.markLate, ids, operations, created).Query(set.marked(relay.MarkedLate))
		}
		b.Queue(s.sql.clear, missing, relay.Unmarked(claim.Token))
	})
}

// settlement is a set of verdicts in the form that the statements take, and what came
// of them. Ids ascend, so that two settlements lock in the same order.
type settlement struct {
	verdicts []relay.Verdict
	results  []relay.Result
	index    map[int64]int

	marks   []int64
	ids     []int64 // of the rows that are given up; the following belong to them
	delays  []*float64
	errors  []*string
	refunds []int32

	letters []int64  // of the rows that went to the dead-letter topic
	texts   []string // for their last_error
}

func newSettlement(verdicts []relay.Verdict) *settlement {
	set := &settlement{
		verdicts: verdicts, results: make([]relay.Result, len(verdicts)), index: make(map[int64]int, len(verdicts)),
	}
	order := make([]int, len(verdicts))
	for i := range verdicts {
		order[i] = i
		set.index[verdicts[i].Row.ID] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(verdicts[a].Row.ID, verdicts[b].Row.ID)
	})
	for _, i := range order {
		set.add(&verdicts[i])
	}
	return set
}

func (set *settlement) add(v *relay.Verdict) {
	if v.Exported {
		set.marks = append(set.marks, v.Row.ID)
		return
	}
	if v.DeadLettered {
		set.letters = append(set.letters, v.Row.ID)
		set.texts = append(set.texts, v.Error)
		return
	}
	var delay *float64
	if v.Wait != relay.KeepDue {
		d := seconds(v.Wait)
		if v.Wait == relay.Park {
			d = infinity
		}
		delay = &d
	}
	var text *string
	if v.Error != "" {
		text = &v.Error
	}
	var refund int32
	if v.Refund {
		refund = 1
	}
	set.ids = append(set.ids, v.Row.ID)
	set.delays = append(set.delays, delay)
	set.errors = append(set.errors, text)
	set.refunds = append(set.refunds, refund)
}

// marked reads the answer of mark or mark_late.
func (set *settlement) marked(status relay.Status) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var id int64
		var lag float64
		_, err := pgx.ForEachRow(rows, []any{&id, &lag}, func() error {
			set.results[set.index[id]] = relay.Result{Status: status, Lag: duration(lag)}
			return nil
		})
		return err
	}
}

// released reads the answer of release.
func (set *settlement) released(rows pgx.Rows) error {
	var id int64
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		set.results[set.index[id]] = relay.Result{Status: relay.Written}
		return nil
	})
	return err
}

// missing is the rows that no statement has changed so far.
func (set *settlement) missing() (ids []int64) {
	for i, v := range set.verdicts {
		if set.results[i].Status == relay.Lost {
			ids = append(ids, v.Row.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// undecided is the delivered ones among the missing.
func (set *settlement) undecided() (ids []int64, operations []uuid.UUID, created []pgtype.Timestamptz) {
	for _, id := range set.marks {
		i := set.index[id]
		if set.results[i].Status == relay.Lost {
			row := set.verdicts[i].Row
			ids, operations = append(ids, id), append(operations, row.OperationID)
			created = append(created, timestamp(row.CreatedAt))
		}
	}
	return ids, operations, created
}
