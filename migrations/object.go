package migrations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// object is anything that one transaction brings about.
type object struct {
	name  string                                  // for people
	file  string                                  // its statement
	made  Outcome                                 // what running that statement is called
	owner owner                                   // whose rights it takes
	there func(ctx context.Context) (bool, error) // judged by the catalogue
}

// ensure leaves the object as it should be and reports it.
func (m *migration) ensure(ctx context.Context, o object) error {
	there, err := m.judge(ctx, o)
	if err != nil {
		return err
	}
	step := Step{Name: o.name, Outcome: AlreadyThere}
	if !there {
		step.SQL = m.ddl.text(o.file)
		step.Outcome = o.made.planned()
	}
	if !there && !m.DryRun {
		if err := m.apply(ctx, o, step.SQL); err != nil {
			return err
		}
		step.Outcome = o.made
	}
	m.Report(step)
	return nil
}

// apply trusts the catalogue only: a GRANT by someone who may not give is no more than a warning.
func (m *migration) apply(ctx context.Context, o object, sql string) error {
	if err := m.patiently(ctx, o.name, func() error { return m.transact(ctx, sql) }); err != nil {
		return m.explain(ctx, o.name, o.owner, err)
	}
	there, err := m.judge(ctx, o)
	if err == nil && !there {
		err = m.explain(ctx, o.name, o.owner, errNotGiven)
	}
	return err
}

func (m *migration) judge(ctx context.Context, o object) (there bool, err error) {
	err = m.look(ctx, "looking for "+o.name, func(ctx context.Context) error {
		there, err = o.there(ctx)
		return err
	})
	return there, err
}

// transact runs statements that take strong locks, all or none, each waiting for its lock a short time only.
func (m *migration) transact(ctx context.Context, sql string) error {
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	return pgx.BeginTxFunc(ctx, m.conn, options, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('lock_timeout', $1, true), set_config('statement_timeout', '0', true)`,
			fmt.Sprintf("%dms", m.timings.lock.Milliseconds()))
		if err == nil {
			_, err = tx.Exec(ctx, sql)
		}
		return err
	})
}

// patiently tries again while other sessions are in the way.
func (m *migration) patiently(ctx context.Context, name string, try func() error) error {
	begun := time.Now()
	for {
		err := try()
		if !inTheWay(err) {
			return err
		}
		if waited := time.Since(begun); waited >= m.patience {
			return fmt.Errorf("given up after %s: end the transaction that is in the way (see pg_locks), then run this again: %w",
				waited.Round(time.Second), err)
		}
		m.Report(Step{Name: name, Outcome: Waiting, Detail: "another session's transaction holds a lock on it; trying again"})
		if err := m.pause(ctx); err != nil {
			return err
		}
	}
}

// inTheWay tells whether the same statement may succeed once another session has ended its transaction.
func inTheWay(err error) bool {
	const lockNotAvailable, deadlockDetected = "55P03", "40P01"
	code := sqlState(err)
	return code == lockNotAvailable || code == deadlockDetected
}

func sqlState(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

// pause waits for half to one and a half of the retry time, so that two runs don't keep meeting.
func (m *migration) pause(ctx context.Context) error {
	select {
	case <-time.After(m.retry/2 + rand.N(m.retry)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look bounds a statement that only reads the catalogue.
func (m *migration) look(ctx context.Context, what string, read func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, m.answer)
	defer cancel()
	err := read(bounded)
	switch {
	case err == nil:
		return nil
	case bounded.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%s took longer than %s: %w", what, m.answer, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
