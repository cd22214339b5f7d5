package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// drained is how one way of emptying the outbox went.
type drained struct {
	usage
	rows    int
	elapsed time.Duration   // from the start to the last row marked
	first   time.Duration   // from the start to the first row marked
	memory  float64         // the most that was resident, in MiB; 0 if not measured
	going   lap             // from the first record on; no rows if not measured
	commits []time.Duration // what writers' transactions took meanwhile, if writers wrote
}

func (d drained) speed() float64 { return float64(d.rows) / d.elapsed.Seconds() }

// lap is a part of it.
type lap struct {
	usage
	rows    int
	elapsed time.Duration
}

func (l lap) speed() float64 { return float64(l.rows) / l.elapsed.Seconds() }

// way is one way of emptying the outbox, and how it went each time.
type way struct {
	name string
	run  func(context.Context) (drained, error)
	went []drained
}

// speed is the median, in rows a second.
func (w *way) speed() float64 { return median(each(w.went, drained.speed)) }

// costOfRow is the median of what a row has cost.
func costOfRow(went []drained, cost func(usage) float64) float64 {
	return median(each(went, func(d drained) float64 { return cost(d.usage) / float64(d.rows) }))
}

// ways are the relay, what it is to be much faster than, what it can't be faster than, and what others have made.
type ways struct {
	indexed, control, plain, loop, producer *way // control is indexed once more: what differs between the two is noise
	peers                                   []*way
}

func (w ways) all() []*way {
	return append([]*way{w.indexed, w.control, w.plain, w.loop, w.producer}, w.peers...)
}

// drain measures the relay on a backlog beside a loop that takes one row at a time and beside a producer that has the
// records in memory. The ways take turns, so that a change of the machine's mood hits all of them.
func drain(ctx context.Context, s *stage) ([]target, error) {
	ways, err := s.prepareDrain(ctx)
	if err != nil {
		return nil, err
	}
	for run := range s.runs {
		for _, w := range ways.all() {
			went, err := w.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			s.note("drain %d of %d, %s: %s rows/s", run+1, s.runs, w.name, whole(went.speed()))
			w.went = append(w.went, went)
		}
	}
	ways.print(s)
	if s.peers {
		ways.printLaps(s)
	}
	return ways.targets(), nil
}

// prepareDrain fills the tables of both variants, takes the records into memory, and warms the broker up with them.
func (s *stage) prepareDrain(ctx context.Context) (w ways, err error) {
	s.note("filling two databases with %s rows each", whole(float64(s.backlog())))
	var filled [2]database
	for i, v := range variants {
		if filled[i], err = s.newDatabase(ctx, v); err != nil {
			return w, err
		}
		if err := filled[i].fill(ctx, scopes(s.tenants), s.operations); err != nil {
			return w, err
		}
	}
	records, err := filled[0].records(ctx)
	if err != nil {
		return w, err
	}
	on := func(backlog database, run func(context.Context, database, topic) (drained, error)) func(context.Context) (drained, error) {
		return func(ctx context.Context) (drained, error) { return s.onCopy(ctx, s.newTopic, backlog, run) }
	}
	w = ways{
		indexed: &way{name: "relay, " + variants[0].name, run: on(filled[0], s.runRelay)},
		control: &way{name: "the same once more", run: on(filled[0], s.runRelay)},
		plain:   &way{name: "relay, " + variants[1].name, run: on(filled[1], s.runRelay)},
		loop:    &way{name: "one row at a time", run: on(filled[0], s.runOneByOne)},
		producer: &way{name: "producer alone, no database", run: func(ctx context.Context) (drained, error) {
			return s.onTopic(ctx, s.newTopic, func(t topic) (drained, error) { return s.runProducer(ctx, t, records) })
		}},
		peers: s.peerWays(filled[1]),
	}
	_, err = w.producer.run(ctx)
	return w, err
}

// onTopic runs on a topic of its own.
func (s *stage) onTopic(ctx context.Context, newTopic topicMaker, run func(topic) (drained, error)) (went drained, err error) {
	t, err := newTopic(ctx)
	if err != nil {
		return went, err
	}
	if went, err = run(t); err != nil {
		return went, err
	}
	return went, t.drop(ctx)
}

// onCopy runs on a copy of the backlog and a topic of its own. The checkpoint lets all start alike: soon after one, a
// page's first change costs more log.
func (s *stage) onCopy(ctx context.Context, newTopic topicMaker, backlog database, run func(context.Context, database, topic) (drained, error)) (drained, error) {
	return s.onTopic(ctx, newTopic, func(t topic) (went drained, err error) {
		d, err := backlog.copy(ctx)
		if err != nil {
			return went, err
		}
		if err := s.execute(ctx, "postgres", `checkpoint`); err != nil {
			return went, err
		}
		if went, err = run(ctx, d, t); err != nil {
			return went, err
		}
		return went, d.drop(ctx)
	})
}

// print prints a line for each way.
func (w ways) print(s *stage) {
	t := table{
		title: fmt.Sprintf("Drain: %s rows of %d tenants", whole(float64(s.backlog())), s.tenants),
		head: []string{"", "rows/s", "times one at a time", "client CPU, µs/row", "PostgreSQL CPU, µs/row",
			"Kafka CPU, µs/row", "WAL, bytes/row", "until first row, s", "peak memory, MiB"},
	}
	for _, way := range w.all() {
		memory := "-"
		if way.went[0].memory > 0 {
			memory = spread(each(way.went, func(d drained) float64 { return d.memory }), tenths)
		}
		t.add(way.name, spread(each(way.went, drained.speed), whole), tenths(way.speed()/w.loop.speed()),
			tenths(costOfRow(way.went, ofClient)), tenths(costOfRow(way.went, ofPostgres)), tenths(costOfRow(way.went, ofKafka)), whole(costOfRow(way.went, ofWAL)),
			hundredths(median(each(way.went, func(d drained) float64 { return d.first.Seconds() }))), memory)
	}
	t.print(s.out)
}

func (w ways) targets() []target {
	slower := min(w.indexed.speed(), w.plain.speed())
	memory := slices.Max(each(slices.Concat(w.indexed.went, w.control.went, w.plain.went), func(d drained) float64 { return d.memory }))
	targets := []target{
		atLeast("drain, rows/s", w.indexed.speed(), 40_000, whole),
		atLeast("drain, times a loop that takes one row at a time", slower/w.loop.speed(), 10, tenths),
		atMost("drain, the relay's CPU, µs/row", costOfRow(w.indexed.went, ofClient), 5, tenths),
		atMost("drain, PostgreSQL's CPU, µs/row", costOfRow(w.indexed.went, ofPostgres), 18, tenths),
		atMost("drain, PostgreSQL's CPU on Aksara's schema alone, µs/row", costOfRow(w.plain.went, ofPostgres), 32, tenths),
		atMost("drain, WAL, bytes/row", costOfRow(w.indexed.went, ofWAL), 900, whole),
		atMost("drain, WAL on Aksara's schema alone, bytes/row", costOfRow(w.plain.went, ofWAL), 2000, whole),
		atMost("drain, the relay's memory at its highest, MiB", memory, 48, tenths),
	}
	for _, peer := range w.peers {
		switch peer.name {
		case debeziumFromLog:
			targets = append(targets, atLeast("drain, times Debezium", w.indexed.speed()/peer.speed(), 3, tenths))
		case watermillForwarder:
			targets = append(targets, atLeast("drain, times Watermill's forwarder", w.indexed.speed()/peer.speed(), 6, tenths))
		}
	}
	return targets
}
