package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/childproc"
)

// runSnapshot has Debezium send rows that were there before it: it reads the table.
func (s *stage) runSnapshot(ctx context.Context, d database, t topic) (went drained, err error) {
	c, err := d.newCapture(ctx)
	if err != nil {
		return went, err
	}
	p, err := c.peer(t)
	if err != nil {
		return went, err
	}
	if went, err = s.runPeer(ctx, p, t); err != nil {
		return went, err
	}
	return went, c.dropSlot(ctx)
}

// runStream has Debezium send what was written while it was down: it starts, and reads the log from where it had come to.
func (s *stage) runStream(ctx context.Context, t topic) (drained, error) {
	return s.onLog(ctx, func(c capture) (went drained, err error) {
		p, err := c.behind(ctx, t, s.operations)
		if err != nil {
			return went, err
		}
		return s.runPeer(ctx, p, t)
	})
}

// behind is a Debezium that has its place in the log, has ended, and then some operations of each tenant were written.
func (c capture) behind(ctx context.Context, t topic, operations int) (p peer, err error) {
	if err := c.begin(ctx, 1, func(context.Context, *childproc.Process) error { return nil }); err != nil {
		return p, err
	}
	if _, err := os.Stat(c.offsets()); err != nil {
		return p, fmt.Errorf("look for the place in the log: %w", err)
	}
	if err := c.database.pend(ctx, operations); err != nil {
		return p, err
	}
	return c.peer(t)
}

// runWarmStream has Debezium send what was written while its connector was stopped, in a process that has sent as much
// before, so that Java has compiled what there is to compile.
func (s *stage) runWarmStream(ctx context.Context, t topic) (drained, error) {
	return s.onLog(ctx, func(c capture) (went drained, err error) {
		err = c.begin(ctx, s.operations, func(ctx context.Context, process *childproc.Process) (err error) {
			if err := c.put(ctx, "stop", nil); err != nil {
				return err
			}
			if err := poll(ctx, time.Minute, c.stopped); err != nil {
				return err
			}
			if err := c.database.pend(ctx, s.operations); err != nil {
				return err
			}
			p, err := c.peer(t)
			if err != nil {
				return err
			}
			if err := c.put(ctx, "config", c.connector(t)); err != nil {
				return err
			}
			before, err := s.look(ctx, process.PID())
			if err != nil {
				return err
			}
			if err := c.put(ctx, "resume", nil); err != nil {
				return err
			}
			went, err = s.measurePeer(ctx, p, process, before, t)
			return err
		})
		return went, err
	})
}

// onLog runs on a database that is empty: what is to be read from the log can't be a copy. Its rows are written in the same
// way as all others, once Debezium has its place in the log.
func (s *stage) onLog(ctx context.Context, run func(capture) (drained, error)) (went drained, err error) {
	d, err := s.newDatabase(ctx, variants[1])
	if err != nil {
		return went, err
	}
	c, err := d.newCapture(ctx)
	if err != nil {
		return went, err
	}
	if went, err = run(c); err != nil {
		return went, err
	}
	if err := c.dropSlot(ctx); err != nil {
		return went, err
	}
	return went, d.drop(ctx)
}

// pend writes the rows that are to be sent: some operations of each tenant.
func (d database) pend(ctx context.Context, operations int) error {
	if err := d.fill(ctx, scopes(d.stage.tenants), operations); err != nil {
		return err
	}
	return d.stage.execute(ctx, "postgres", `checkpoint`)
}

// begin runs Debezium for the first time and has it send the events of some operations of each tenant to a topic of their
// own: it keeps no place in the log before its first event. Then it calls next, and ends Debezium.
func (c capture) begin(ctx context.Context, operations int, next func(context.Context, *childproc.Process) error) error {
	s := c.database.stage
	t, err := s.newTopic(ctx)
	if err != nil {
		return err
	}
	p, err := c.peer(t)
	if err != nil {
		return err
	}
	process, err := childproc.Start(p.command)
	if err != nil {
		return err
	}
	defer process.Kill()
	err = p.watched(ctx, process, func(ctx context.Context) error {
		if err := poll(ctx, time.Minute, c.reading); err != nil {
			return err
		}
		if err := c.database.fill(ctx, scopes(s.tenants), operations); err != nil {
			return err
		}
		return t.await(ctx, s.tenants*operations*versions)
	})
	if err != nil {
		return err
	}
	if err := next(ctx, process); err != nil {
		return err
	}
	if err := process.Stop(syscall.SIGTERM, peerGrace); err != nil {
		return err
	}
	return t.drop(ctx)
}

// reading fails unless Debezium reads the log.
func (c capture) reading(ctx context.Context) error { return c.expectSlot(ctx, true) }

// stopped fails while Debezium reads the log.
func (c capture) stopped(ctx context.Context) error { return c.expectSlot(ctx, false) }

func (c capture) expectSlot(ctx context.Context, streaming bool) error {
	return c.database.stage.connected(ctx, "postgres", func(conn *pgx.Conn) error {
		var found bool
		err := conn.QueryRow(ctx, `select exists (select from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid
			where s.slot_name = $1 and r.state in ('catchup', 'streaming'))`, c.slot).Scan(&found)
		switch {
		case err != nil:
			return err
		case found && !streaming:
			return errors.New("the log is still being read")
		case !found && streaming:
			return errors.New("the log is not being read")
		}
		return nil
	})
}

// dropSlot lets the server forget the log that Debezium would still have to read. A slot is free when the server has seen
// that its reader is gone.
func (c capture) dropSlot(ctx context.Context) error {
	return poll(ctx, time.Minute, func(ctx context.Context) error {
		return c.database.stage.execute(ctx, "postgres", `select pg_drop_replication_slot('`+c.slot+`')`)
	})
}
