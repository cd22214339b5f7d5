package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// situation is a table that the relay drains a number of rows of, and how it went each time.
type situation struct {
	way
	table, pending, tenants int // rows at first, those that are drained included
}

// backlogs measures what a row costs when much more lies in the table, pending or exported, and when the rows are of very many
// tenants. The situations take turns.
func backlogs(ctx context.Context, s *stage) ([]target, error) {
	usual, crowd := s.backlog(), s.crowd*s.ofCrowd()*versions
	much := s.tenants * s.most * versions
	var filled []database
	fill := func(tenants, operations int, prepare ...string) (d database, err error) {
		s.note("backlogs: writing %s rows of %s tenants", whole(float64(tenants*operations*versions)), whole(float64(tenants)))
		if d, err = s.newDatabase(ctx, variants[0]); err != nil {
			return d, err
		}
		filled = append(filled, d)
		if err := s.execute(ctx, d.name, prepare...); err != nil {
			return d, err
		}
		return d, d.fillAnew(ctx, scopes(tenants), operations)
	}
	few, err := fill(s.tenants, s.operations)
	if err != nil {
		return nil, err
	}
	pending, err := fill(s.tenants, s.most)
	if err != nil {
		return nil, err
	}
	exported, err := fill(s.tenants, s.most, `alter table aksara_operation_outbox alter exported_at set default clock_timestamp()`)
	if err != nil {
		return nil, err
	}
	if err := s.execute(ctx, exported.name, `alter table aksara_operation_outbox alter exported_at drop default`); err != nil {
		return nil, err
	}
	spread, err := fill(s.crowd, s.ofCrowd())
	if err != nil {
		return nil, err
	}
	all := []*situation{
		{way{name: "nothing else", run: s.exportCopy(few, s.tenants, usual)}, usual, usual, s.tenants},
		{way{name: "much more pending", run: s.exportSome(pending)}, much + usual, much + usual, s.tenants},
		{way{name: "much exported", run: s.exportSome(exported)}, much + usual, usual, s.tenants},
		{way{name: "very many tenants", run: s.exportCopy(spread, s.crowd, crowd)}, crowd, crowd, s.crowd},
	}
	if _, err := all[0].run(ctx); err != nil { // does not count: it warms the broker up
		return nil, err
	}
	for run := range s.runs {
		for _, of := range all {
			went, err := of.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.name, err)
			}
			s.note("backlogs %d of %d, %s: %s rows/s", run+1, s.runs, of.name, whole(went.speed()))
			of.went = append(of.went, went)
		}
	}
	printSituations(s, all)
	for _, d := range filled {
		if err := d.drop(ctx); err != nil {
			return nil, err
		}
	}
	return situationTargets(all), nil
}

// ofCrowd is how many operations each of very many tenants has, so that there are as many in all as usual, or a few more.
func (s sizes) ofCrowd() int { return (s.tenants*s.operations + s.crowd - 1) / s.crowd }

// exportCopy drains a copy.
func (s *stage) exportCopy(backlog database, tenants, rows int) func(context.Context) (drained, error) {
	return func(ctx context.Context) (drained, error) {
		return s.onCopy(ctx, s.newTopic, backlog, func(ctx context.Context, d database, t topic) (drained, error) {
			return s.export(ctx, d, t, tenants, rows)
		})
	}
}

// exportSome writes as many rows as usual to a table that is too large to be copied, and drains as many.
func (s *stage) exportSome(d database) func(context.Context) (drained, error) {
	return func(ctx context.Context) (went drained, err error) {
		if err := d.fill(ctx, scopes(s.tenants), s.operations); err != nil {
			return went, err
		}
		if err := s.execute(ctx, "postgres", `checkpoint`); err != nil {
			return went, err
		}
		return s.onTopic(ctx, s.newTopic, func(t topic) (drained, error) { return s.export(ctx, d, t, s.tenants, s.backlog()) })
	}
}

// export has a relay send so many rows and then stops it: it marks what it has in hand, and gives back what it hasn't sent. As many
// rows must be marked as the broker has records. The meters are read when the relay has ended.
func (s *stage) export(ctx context.Context, d database, t topic, tenants, rows int) (went drained, err error) {
	pending, err := d.pending(ctx)
	if err != nil {
		return went, err
	}
	before, err := s.lookAtEnded(ctx)
	if err != nil {
		return went, err
	}
	r, err := s.startRelay(d, t, scopes(tenants))
	if err != nil {
		return went, err
	}
	defer r.process.Kill()
	if err := r.watched(ctx, func(ctx context.Context) error { return t.await(ctx, rows) }); err != nil {
		return went, err
	}
	if went.memory, err = peakMemory(r.process.PID()); err != nil {
		return went, err
	}
	if err := r.stop(); err != nil {
		return went, err
	}
	went.elapsed = time.Since(r.started)
	after, err := s.lookAtEnded(ctx)
	if err != nil {
		return went, err
	}
	left, err := d.pending(ctx)
	if err != nil {
		return went, err
	}
	went.usage, went.rows = after.since(before), pending-left
	return went, t.expect(ctx, went.rows)
}

// lookAtEnded reads all meters. The clients are all children of ours that have ended.
func (s *stage) lookAtEnded(ctx context.Context) (u usage, err error) {
	if u, err = s.look(ctx); err != nil {
		return u, err
	}
	own, err := readStat(os.Getpid())
	u.client = own.reaped
	return u, err
}

// timeOfRow is what a row takes, as a multiple of what it takes in another situation.
func (of *situation) timeOfRow(to *situation) float64 { return to.speed() / of.speed() }

func printSituations(s *stage, all []*situation) {
	t := table{
		title: fmt.Sprintf("Backlogs: %s rows are drained", whole(float64(s.backlog()))),
		head: []string{"", "rows in the table", "pending", "tenants", "rows/s", "relay CPU, µs/row", "PostgreSQL CPU, µs/row",
			"WAL, bytes/row", "peak memory, MiB", "time per row, ratio"},
	}
	for _, of := range all {
		t.add(of.name, whole(float64(of.table)), whole(float64(of.pending)), whole(float64(of.tenants)), spread(each(of.went, drained.speed), whole),
			tenths(costOfRow(of.went, ofClient)), tenths(costOfRow(of.went, ofPostgres)), whole(costOfRow(of.went, ofWAL)),
			spread(each(of.went, func(d drained) float64 { return d.memory }), tenths), hundredths(of.timeOfRow(all[0])))
	}
	t.print(s.out)
}

func situationTargets(all []*situation) (targets []target) {
	var memory float64
	for i, of := range all {
		memory = max(memory, slices.Max(each(of.went, func(d drained) float64 { return d.memory })))
		if i == 0 {
			continue
		}
		most := 1.25
		if of.tenants > all[0].tenants {
			most = 2
		}
		targets = append(targets, atMost("a row's time, "+of.name+", times that with nothing else", of.timeOfRow(all[0]), most, hundredths))
	}
	return append(targets, atMost("the relay's memory at its highest, whatever the backlog, MiB", memory, 48, tenths))
}
