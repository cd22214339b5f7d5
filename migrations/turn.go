package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// alone does the work while no other run on the same schema does.
//
// The lock is asked for and never waited for. A statement that waits for an advisory lock holds a snapshot, CREATE INDEX
// CONCURRENTLY in the run that has the lock waits for all older snapshots, and so each would wait for the other. Between
// two tries the session is idle and in nobody's way. The server drops the lock with the session, so a run that was
// killed blocks others no longer than the server takes to end its last statement.
func (m *migration) alone(ctx context.Context, work func() error) error {
	mine, other, err := m.tryTurn(ctx)
	if err == nil && !mine {
		m.Report(Step{
			Name:    "schema " + quote(m.Schema),
			Outcome: Waiting,
			Detail:  fmt.Sprintf("another run is at work here (pid %d)", other),
		})
	}
	for err == nil && !mine {
		if err = m.pause(ctx); err == nil {
			mine, _, err = m.tryTurn(ctx)
		}
		if err != nil {
			err = fmt.Errorf("waiting for another run on schema %s (pid %d) to end: %w", quote(m.Schema), other, err)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(work(), m.endTurn(ctx))
}

// turnKey is the key of the advisory lock: one for each schema, in each database.
const turnKey = `hashtextextended('relay migrate ' || $1, 0)`

// tryTurn also tells which session has the lock, 0 when it has just let it go.
func (m *migration) tryTurn(ctx context.Context) (mine bool, other int32, err error) {
	const query = `
		select pg_try_advisory_lock(` + turnKey + `), coalesce((
			select l.pid from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
			where l.locktype = 'advisory' and l.granted and l.objsubid = 1
			  and (l.classid::bigint << 32) | l.objid::bigint = ` + turnKey + `), 0)`
	err = m.look(ctx, "asking whether another run is at work", func(ctx context.Context) error {
		return m.conn.QueryRow(ctx, query, m.Schema).Scan(&mine, &other)
	})
	return mine, other, err
}

// endTurn works after ctx has ended too, unless the connection went with it; then the lock has gone as well.
func (m *migration) endTurn(ctx context.Context) error {
	if m.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := m.conn.Exec(ctx, `select pg_advisory_unlock(`+turnKey+`)`, m.Schema); err != nil {
		return fmt.Errorf("telling other runs that this one has ended: %w", err)
	}
	return nil
}
