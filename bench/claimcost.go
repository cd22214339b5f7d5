package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"outboxrelay/relay"
	"outboxrelay/store"
)

// batchRows is the relay's default.
const batchRows = relay.DefaultBatchRows

// perRow is what one row costs, in microseconds.
type perRow struct{ claim, claimCPU, settle, settleCPU float64 }

// pile is a tenant with a number of rows pending, in a database of its own.
type pile struct {
	database
	store   *store.Store
	backend int // the server process of the store's only connection
	table   int // rows of the table, those included that were exported before
	pending int
	costs   []perRow
}

// claimCost measures claims and settlements where much is pending and where little is, in turns. Little is pending in a
// table as large, so that only what is pending differs, and in a small one, which the processor's caches hold.
func claimCost(ctx context.Context, s *stage) ([]target, error) {
	t := table{
		title: fmt.Sprintf("Claim: %s rows at a time", whole(batchRows)),
		head: []string{"", "rows", "pending", "claim, µs/row", "its PostgreSQL CPU, µs/row", "settle, µs/row",
			"its PostgreSQL CPU, µs/row", "claim's ratio", "its CPU's ratio"},
	}
	var worst float64
	for _, v := range variants {
		piles, err := s.measurePiles(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		much := piles[0]
		for _, p := range piles {
			wall, cpu := ratio(much, p, func(c perRow) float64 { return c.claim }), ratio(much, p, func(c perRow) float64 { return c.claimCPU })
			if p.table == much.table {
				worst = max(worst, wall, cpu)
			}
			t.add(v.name, whole(float64(p.table)), whole(float64(p.pending)),
				spread(each(p.costs, func(c perRow) float64 { return c.claim }), tenths),
				spread(each(p.costs, func(c perRow) float64 { return c.claimCPU }), tenths),
				spread(each(p.costs, func(c perRow) float64 { return c.settle }), tenths),
				spread(each(p.costs, func(c perRow) float64 { return c.settleCPU }), tenths),
				hundredths(wall), hundredths(cpu))
		}
	}
	t.print(s.out)
	return []target{atMost("claim cost a row, much pending to little in tables of one size, worst ratio", worst, 1.5, hundredths)}, nil
}

func ratio(p, to *pile, value func(perRow) float64) float64 {
	return median(each(p.costs, value)) / median(each(to.costs, value))
}

// measurePiles measures them after some measurements that do not count. A server process pays when it looks at a page
// of the shared memory for the first time, and a relay keeps its connections.
func (s *stage) measurePiles(ctx context.Context, v variant) (piles []*pile, err error) {
	for _, operations := range []struct{ exported, pending int }{{0, s.many}, {s.many - s.few, s.few}, {0, s.few}} {
		p, err := s.newPile(ctx, v, operations.exported, operations.pending)
		if err != nil {
			return nil, err
		}
		defer p.store.Close()
		piles = append(piles, p)
	}
	for run := -s.warmUps; run < s.runs; run++ {
		for _, p := range piles {
			cost, err := p.measure(ctx)
			if err != nil {
				return nil, err
			}
			if run < 0 {
				continue
			}
			s.note("claim %d of %d, %s: %s µs/row", run+1, s.runs, p, tenths(cost.claim))
			p.costs = append(p.costs, cost)
		}
	}
	for _, p := range piles {
		err = errors.Join(err, p.drop(ctx))
	}
	return piles, err
}

// String says which pile it is.
func (p *pile) String() string {
	return fmt.Sprintf("%s of %s rows pending", whole(float64(p.pending)), whole(float64(p.table)))
}

// newPile writes operations whose events were exported, and then some whose events are pending.
func (s *stage) newPile(ctx context.Context, v variant, exported, pending int) (p *pile, err error) {
	p = &pile{table: (exported + pending) * versions, pending: pending * versions}
	s.note("claim, %s: writing %s", v.name, p)
	if p.database, err = s.newDatabase(ctx, v); err != nil {
		return nil, err
	}
	if exported > 0 {
		if err := p.fill(ctx, scopes(1), exported); err != nil {
			return nil, err
		}
		if err := s.execute(ctx, p.name, `update aksara_operation_outbox set exported_at = clock_timestamp()`); err != nil {
			return nil, err
		}
	}
	if err := p.fill(ctx, scopes(1), pending); err != nil {
		return nil, err
	}
	p.store, err = store.Open(store.Config{URL: p.url(relayRole), Schema: "public", Connections: 1})
	if err != nil {
		return nil, err
	}
	return p, p.store.Pool().QueryRow(ctx, `select pg_backend_pid()`).Scan(&p.backend)
}

// measure takes some batches off the pile and puts as much on it again. The first batch does not count: it prepares
// statements, and reads again what others have pushed out of the caches.
func (p *pile) measure(ctx context.Context) (sum perRow, err error) {
	batches := p.stage.batches
	if _, err := p.batch(ctx); err != nil {
		return sum, err
	}
	for range batches {
		cost, err := p.batch(ctx)
		if err != nil {
			return sum, err
		}
		sum.claim += cost.claim / float64(batches)
		sum.claimCPU += cost.claimCPU / float64(batches)
		sum.settle += cost.settle / float64(batches)
		sum.settleCPU += cost.settleCPU / float64(batches)
	}
	taken := (batches + 1) * batchRows
	return sum, p.fill(ctx, scopes(1), taken/versions)
}

// batch claims and settles one batch.
func (p *pile) batch(ctx context.Context) (cost perRow, err error) {
	var claim relay.Claim
	cost.claim, cost.claimCPU, err = p.timed(func() (err error) {
		claim, err = p.store.Claim(ctx, relay.Request{
			Namespace: application.Namespace, Scope: scopes(1)[0], Token: p.stage.newName("token"),
			Lease: time.Minute, Rows: batchRows, Bytes: relay.DefaultBatchBytes,
		})
		return err
	})
	if err != nil {
		return cost, err
	}
	if len(claim.Rows) != batchRows {
		return cost, fmt.Errorf("claimed %d rows instead of %d", len(claim.Rows), batchRows)
	}
	cost.settle, cost.settleCPU, err = p.timed(func() error { return p.settle(ctx, claim) })
	return cost, err
}

func (p *pile) settle(ctx context.Context, claim relay.Claim) error {
	verdicts := make([]relay.Verdict, len(claim.Rows))
	for i := range claim.Rows {
		verdicts[i] = relay.Verdict{Row: &claim.Rows[i], Exported: true}
	}
	results, err := p.store.Settle(ctx, claim, verdicts)
	for _, r := range results {
		if r.Status != relay.Written {
			return errors.New("a claim was lost")
		}
	}
	return err
}

// timed gives a call's time and its server process's, for each row of a batch.
func (p *pile) timed(call func() error) (wall, cpu float64, err error) {
	cpuBefore, err := runTime(p.backend)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := call(); err != nil {
		return 0, 0, err
	}
	wall = microseconds(time.Since(start)) / batchRows
	cpuAfter, err := runTime(p.backend)
	return wall, microseconds(cpuAfter-cpuBefore) / batchRows, err
}
