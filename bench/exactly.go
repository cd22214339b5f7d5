package main

import (
	"context"
	"fmt"
	"time"
)

// exactlyOnce measures what exactly-once mode costs: a backlog and live events in both modes, in turns.
func exactlyOnce(ctx context.Context, s *stage) ([]target, error) {
	backlog, err := s.newDatabase(ctx, variants[0])
	if err != nil {
		return nil, err
	}
	s.note("filling a database with %s rows", whole(float64(s.backlog())))
	if err := backlog.fill(ctx, scopes(s.tenants), s.operations); err != nil {
		return nil, err
	}
	modes := []*mode{{name: "at-least-once", newTopic: s.newTopic}, {name: "exactly-once", newTopic: s.newExactTopic}}
	for run := range s.runs {
		for _, m := range modes {
			went, err := s.onCopy(ctx, m.newTopic, backlog, s.runRelay)
			if err != nil {
				return nil, fmt.Errorf("drain %s: %w", m.name, err)
			}
			l, err := s.live(ctx, m.newTopic, tenancy{served: s.tenants, active: s.tenants, rate: s.rate})
			if err != nil {
				return nil, fmt.Errorf("latency %s: %w", m.name, err)
			}
			s.note("%d of %d, %s: %s rows/s; p50 %s, p99 %s", run+1, s.runs, m.name, whole(went.speed()),
				percentile(l.delays, 50).Round(time.Millisecond), percentile(l.delays, 99).Round(time.Millisecond))
			m.drains, m.lives = append(m.drains, went), append(m.lives, l)
		}
	}
	printModes(s, modes)
	ratio := modes[1].speed() / modes[0].speed()
	return []target{
		atLeast("exactly-once, drain, times at-least-once", ratio, 0.9, hundredths),
		atMost("exactly-once, commit to consumer, p50, ms", median(modes[1].at(50)), 25, tenths),
		atMost("exactly-once, commit to consumer, p99, ms", median(modes[1].at(99)), 150, tenths),
	}, backlog.drop(ctx)
}

// mode is one of delivering, and how it went each time.
type mode struct {
	name     string
	newTopic topicMaker
	drains   []drained
	lives    []live
}

func (m *mode) speed() float64 { return median(each(m.drains, drained.speed)) }

// at is a percentile of the delays of each run, in milliseconds.
func (m *mode) at(p int) []float64 {
	return each(m.lives, func(l live) float64 { return milliseconds(percentile(l.delays, p)) })
}

func printModes(s *stage, modes []*mode) {
	t := table{
		title: fmt.Sprintf("Exactly once: %s rows of %d tenants, and %d rows/s for %s", whole(float64(s.backlog())), s.tenants, s.rate, s.span),
		head: []string{"", "drain, rows/s", "relay CPU, µs/row", "PostgreSQL CPU, µs/row", "Kafka CPU, µs/row", "peak memory, MiB",
			"p50, ms", "p95, ms", "p99, ms", "relay, cores", "its PostgreSQL sessions, cores"},
	}
	for _, m := range modes {
		t.add(m.name, spread(each(m.drains, drained.speed), whole),
			tenths(costOfRow(m.drains, ofClient)), tenths(costOfRow(m.drains, ofPostgres)), tenths(costOfRow(m.drains, ofKafka)),
			spread(each(m.drains, func(d drained) float64 { return d.memory }), tenths),
			spread(m.at(50), tenths), spread(m.at(95), tenths), spread(m.at(99), tenths),
			hundredths(median(each(m.lives, func(l live) float64 { return l.relay }))),
			hundredths(median(each(m.lives, func(l live) float64 { return l.sessions }))))
	}
	t.print(s.out)
}
