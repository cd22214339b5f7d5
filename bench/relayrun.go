package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// runRelay has the relay empty the outbox. The broker's count must be the table's, to the row.
func (s *stage) runRelay(ctx context.Context, d database, t topic) (went drained, err error) {
	before, err := s.look(ctx, 0)
	if err != nil {
		return went, err
	}
	before.client = 0 // the relay has not begun
	r, err := s.startRelay(d, t, scopes(s.tenants))
	if err != nil {
		return went, err
	}
	defer r.process.Kill()
	went.rows = s.backlog()
	var began beginning
	err = r.watched(ctx, func(ctx context.Context) error {
		if s.peers {
			if began, err = t.begin(ctx, r.process.PID()); err != nil {
				return err
			}
		}
		if err := t.await(ctx, went.rows); err != nil {
			return err
		}
		return poll(ctx, time.Minute, d.empty)
	})
	if err != nil {
		return went, err
	}
	after, err := s.look(ctx, r.process.PID())
	if err != nil {
		return went, err
	}
	went.usage = after.since(before)
	if went.memory, err = peakMemory(r.process.PID()); err != nil {
		return went, err
	}
	if err := r.stop(); err != nil {
		return went, err
	}
	if went.first, went.elapsed, err = d.span(ctx, r.started); err != nil {
		return went, err
	}
	if s.peers {
		went.going = began.until(after, went, r.started)
	}
	return went, t.expect(ctx, went.rows)
}

// empty fails unless all rows are exported.
func (d database) empty(ctx context.Context) (err error) {
	var left int
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select count(*) from aksara_operation_outbox where exported_at is null`).Scan(&left)
	})
	if err == nil && left > 0 {
		err = fmt.Errorf("%d rows are not exported", left)
	}
	return err
}

// span is from an instant to the first and to the last row marked, by the table.
func (d database) span(ctx context.Context, from time.Time) (first, last time.Duration, err error) {
	var earliest, latest time.Time
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select min(exported_at), max(exported_at) from aksara_operation_outbox`).Scan(&earliest, &latest)
	})
	return earliest.Sub(from), latest.Sub(from), err
}
