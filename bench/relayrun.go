package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
)

// runRelay has a relay empty the outbox.
func (s *stage) runRelay(ctx context.Context, d database, t topic) (drained, error) {
	return s.runRelays(ctx, d, t, 1, scopes(s.tenants))
}

// runRelays has relays, all alike, empty the outbox of some tenants together. The broker's count must be the table's, to the row.
func (s *stage) runRelays(ctx context.Context, d database, t topic, count int, tenants []envelope.Scope) (went drained, err error) {
	before, err := s.look(ctx)
	if err != nil {
		return went, err
	}
	before.client = 0 // no relay has begun
	went.rows = s.backlog()
	var began beginning
	relays := make([]*relayProcess, count)
	work := func(ctx context.Context) error {
		if s.peers {
			if began, err = t.begin(ctx, relays[0].process.PID()); err != nil {
				return err
			}
		}
		if err := t.await(ctx, went.rows); err != nil {
			return err
		}
		return poll(ctx, time.Minute, d.empty)
	}
	for i := range relays {
		if relays[i], err = s.startRelay(d, t, tenants); err != nil {
			return went, err
		}
		defer relays[i].process.Kill()
		watching := work
		work = func(ctx context.Context) error { return relays[i].watched(ctx, watching) }
	}
	if err := work(ctx); err != nil {
		return went, err
	}
	var pids []int
	for _, r := range relays {
		pids = append(pids, r.process.PID())
	}
	after, err := s.look(ctx, pids...)
	if err != nil {
		return went, err
	}
	went.usage = after.since(before)
	for _, r := range relays {
		memory, err := peakMemory(r.process.PID())
		if err != nil {
			return went, err
		}
		went.memory = max(went.memory, memory)
		if err := r.stop(); err != nil {
			return went, err
		}
	}
	if went.first, went.elapsed, err = d.span(ctx, relays[0].started); err != nil {
		return went, err
	}
	if s.peers {
		went.going = began.until(after, went, relays[0].started)
	}
	return went, t.expect(ctx, went.rows)
}

// empty fails unless all rows are exported.
func (d database) empty(ctx context.Context) error {
	left, err := d.pending(ctx)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d rows are not exported", left)
	}
	return err
}

// pending is how many rows are not exported.
func (d database) pending(ctx context.Context) (rows int, err error) {
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select count(*) from aksara_operation_outbox where exported_at is null`).Scan(&rows)
	})
	return rows, err
}

// span is from an instant to the first and to the last row marked, by the table.
func (d database) span(ctx context.Context, from time.Time) (first, last time.Duration, err error) {
	var earliest, latest time.Time
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select min(exported_at), max(exported_at) from aksara_operation_outbox`).Scan(&earliest, &latest)
	})
	return earliest.Sub(from), latest.Sub(from), err
}
