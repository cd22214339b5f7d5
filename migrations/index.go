package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// IndexName is the name of the relay's supporting index, in the schema of the outbox.
const IndexName = "relay_outbox_operation"

// State is what the catalogue says about the supporting index.
type State int

const (
	// Missing means that nothing has the index's name.
	Missing State = iota
	// Invalid means that a build was cut short, or that one is under way.
	Invalid
	// OtherDefinition means that an index of the outbox has the name, but not the columns and predicate that claims
	// count on.
	OtherDefinition
	// NameTaken means that something else has the name, which a run will not touch.
	NameTaken
	// Ready means that claims can use the index.
	Ready
)

// String returns the state in words.
func (s State) String() string {
	switch s {
	case Missing:
		return "missing"
	case Invalid:
		return "invalid: its build was cut short or is under way"
	case OtherDefinition:
		return "there with another definition"
	case NameTaken:
		return "missing, and its name taken by something else"
	case Ready:
		return "ready"
	default:
		return fmt.Sprintf("State(%d)", int(s))
	}
}

// Querier is a connection, a pool or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// IndexState judges the supporting index of the outbox in the schema. Any role may ask.
func IndexState(ctx context.Context, db Querier, schema string) (State, error) {
	// as the server spells it, which is the same text in all of PostgreSQL 13 to 18
	const predicate = `(COALESCE(exported_at, 'infinity'::timestamp with time zone) = 'infinity'::timestamp with time zone)`
	const query = `
		select t.oid is not null as ours,
		       coalesce(i.indisvalid and i.indisready and i.indislive, false) as valid,
		       coalesce(am.amname = 'btree' and not i.indisunique and i.indnatts = 2 and i.indnkeyatts = 2
		                and i.indoption::text = '0 0'
		                and pg_get_indexdef(c.oid, 1, false) = 'operation_id' and pg_get_indexdef(c.oid, 2, false) = 'id'
		                and pg_get_expr(i.indpred, i.indrelid) = $4, false) as same
		from pg_namespace n
		join pg_class c on c.relnamespace = n.oid and c.relname = $2
		left join pg_am am on am.oid = c.relam
		left join pg_index i on i.indexrelid = c.oid
		left join pg_class t on t.oid = i.indrelid and t.relnamespace = n.oid and t.relname = $3
		where n.nspname = $1`
	var ours, valid, same bool
	err := db.QueryRow(ctx, query, schema, IndexName, outbox, predicate).Scan(&ours, &valid, &same)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Missing, nil
	case err != nil:
		return Missing, fmt.Errorf("looking for index %s: %w", IndexName, err)
	case !ours:
		return NameTaken, nil
	case !valid:
		return Invalid, nil
	case !same:
		return OtherDefinition, nil
	default:
		return Ready, nil
	}
}

// ensureIndex builds the index unless it is ready, replacing what is in its place.
func (m *migration) ensureIndex(ctx context.Context) error {
	state, err := m.indexState(ctx)
	if err != nil {
		return err
	}
	step := m.indexStep(state)
	switch {
	case state == NameTaken:
		return fmt.Errorf("%s: something else in schema %s has this name: rename that first", step.Name, quote(m.Schema))
	case state == Ready:
	case m.DryRun:
		step.Outcome = step.Outcome.planned()
	default:
		err := m.patiently(ctx, step.Name, func() error { return m.buildIndex(ctx, step.Name) })
		if err != nil {
			return m.explain(ctx, step.Name, ownerOf(outbox), err)
		}
	}
	m.Report(step)
	return nil
}

func (m *migration) indexStep(state State) Step {
	step := Step{Name: "index " + IndexName}
	switch state {
	case Ready:
		step.Outcome = AlreadyThere
	case Missing:
		step.Outcome = Created
		step.SQL = m.ddl.text("index_create")
	default:
		step.Outcome = Rebuilt
		step.SQL = m.ddl.text("index_drop") + "\n" + m.ddl.text("index_create")
		step.Detail = "it was " + state.String()
	}
	return step
}

func (m *migration) indexState(ctx context.Context) (state State, err error) {
	err = m.look(ctx, "judging the supporting index", func(ctx context.Context) error {
		state, err = IndexState(ctx, m.conn, m.Schema)
		return err
	})
	return state, err
}

// buildIndex judges again, since an attempt before this one may have left something.
func (m *migration) buildIndex(ctx context.Context, name string) error {
	state, err := m.indexState(ctx)
	if err != nil || state == Ready {
		return err
	}
	if err := m.withoutTimeouts(ctx, func() error {
		stop := m.watch(ctx, name)
		defer stop()
		if state != Missing {
			if _, err := m.conn.Exec(ctx, m.ddl.text("index_drop")); err != nil {
				return err
			}
		}
		_, err := m.conn.Exec(ctx, m.ddl.text("index_create"))
		return err
	}); err != nil {
		return err
	}
	state, err = m.indexState(ctx)
	if err == nil && state != Ready {
		err = fmt.Errorf("the index is %s although its build has succeeded", state)
	}
	return err
}

// withoutTimeouts lets a statement take as long as it needs. A lock time-out would cut a concurrent build short where
// it waits for older transactions; its own lock lets reads and writes pass, so waiting for it is harmless.
func (m *migration) withoutTimeouts(ctx context.Context, work func() error) error {
	if _, err := m.conn.Exec(ctx, `set statement_timeout = 0; set lock_timeout = 0`); err != nil {
		return err
	}
	err := work()
	if m.conn.IsClosed() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, resetErr := m.conn.Exec(ctx, `reset statement_timeout; reset lock_timeout`)
	return errors.Join(err, resetErr)
}
