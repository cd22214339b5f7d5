package main

import (
	"context"
	"fmt"
)

// shared is a backlog that so many relays drain together, and how it went each time.
type shared struct {
	tenants, relays int
	went            []drained
}

func (s *shared) speed() float64 { return median(each(s.went, drained.speed)) }

// severalRelays measures how relays share a database: a backlog of one tenant, and one of several, drained by one relay, by two
// and by four. It fails if the broker has a record more than there are rows: relays that run undisturbed send nothing twice.
func severalRelays(ctx context.Context, s *stage) ([]target, error) {
	var all []*shared
	for _, tenants := range []int{1, s.tenants} {
		backlog, err := s.newDatabase(ctx, variants[0])
		if err != nil {
			return nil, err
		}
		s.note("filling a database with %s rows of %d tenants", whole(float64(s.backlog())), tenants)
		if err := backlog.fill(ctx, scopes(tenants), s.operations*s.tenants/tenants); err != nil {
			return nil, err
		}
		counts := []*shared{{tenants: tenants, relays: 1}, {tenants: tenants, relays: 2}, {tenants: tenants, relays: 4}}
		for run := range s.runs {
			for _, c := range counts {
				went, err := s.onCopy(ctx, s.newTopic, backlog, func(ctx context.Context, d database, t topic) (drained, error) {
					return s.runRelays(ctx, d, t, c.relays, scopes(tenants))
				})
				if err != nil {
					return nil, fmt.Errorf("%d relays, %d tenants: %w", c.relays, tenants, err)
				}
				s.note("%d of %d, relays %d, tenants %d: %s rows/s", run+1, s.runs, c.relays, tenants, whole(went.speed()))
				c.went = append(c.went, went)
			}
		}
		if err := backlog.drop(ctx); err != nil {
			return nil, err
		}
		all = append(all, counts...)
	}
	printShared(s, all)
	return []target{
		atLeast("two relays on one tenant, times one relay", all[1].speed()/all[0].speed(), 1, hundredths),
		atLeast(fmt.Sprintf("two relays on %d tenants, times one relay", s.tenants), all[4].speed()/all[3].speed(), 1, hundredths),
	}, nil
}

func printShared(s *stage, all []*shared) {
	t := table{
		title: fmt.Sprintf("Relays: %s rows", whole(float64(s.backlog()))),
		head:  []string{"tenants", "relays", "rows/s", "relays' CPU, µs/row", "PostgreSQL CPU, µs/row", "WAL, bytes/row", "peak memory of one, MiB"},
	}
	for _, c := range all {
		t.add(whole(float64(c.tenants)), whole(float64(c.relays)), spread(each(c.went, drained.speed), whole),
			tenths(costOfRow(c.went, ofClient)), tenths(costOfRow(c.went, ofPostgres)), whole(costOfRow(c.went, ofWAL)),
			spread(each(c.went, func(d drained) float64 { return d.memory }), tenths))
	}
	t.print(s.out)
}
