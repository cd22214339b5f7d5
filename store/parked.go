package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

const (
	// parkedPage is how many rows one transaction reads, or changes together with what is
	// behind them.
	parkedPage = 100
	// BehindCap is the highest number that [Event.Behind] tells apart; one that reaches it
	// means "this many or more".
	BehindCap = 1000
)

// Parked is the [Event.State] of an event that is not sent until somebody retries or
// discards it.
const Parked = "parked"

// Event is a row of the outbox as an operator sees it, without its payload.
type Event struct {
	ID           int64
	OperationID  uuid.UUID
	StateVersion int64 // the payload's, 0 if it has none
	Type         string
	CreatedAt    time.Time // outside the years 1 to 9999 if the column is infinite
	Attempts     int
	Bytes        int64  // size of the payload's text
	Error        string // last_error; of a parked event the reason
	State        string // [Parked], "due", "in flight", "delayed" or "exported"
	Behind       int    // later unexported events of its operation, up to [BehindCap]
}

// CEID is the event's ce_id, "" if its payload has no state version.
func (e *Event) CEID() string {
	if e.StateVersion == 0 {
		return ""
	}
	return (&envelope.Event{OperationID: e.OperationID, StateVersion: e.StateVersion}).ID()
}

// Parked gives the parked events of one scope and namespace in ascending order of their
// ids. It reads them by the page, so what changes meanwhile may be there or not. The
// first error ends it.
func (s *Store) Parked(ctx context.Context, namespace string, scope envelope.Scope) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for ids, err := range s.parkedPages(ctx, namespace, scope) {
			var events []*Event
			if err == nil {
				events, err = s.Find(ctx, namespace, scope, ids)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range events {
				if e != nil && e.State == Parked && !yield(e, nil) {
					return
				}
			}
		}
	}
}

// parkedPages gives the ids of all parked rows, a page at a time.
func (s *Store) parkedPages(ctx context.Context, namespace string, scope envelope.Scope) iter.Seq2[[]EventID, error] {
	return func(yield func([]EventID, error) bool) {
		var page []EventID
		for after := int64(0); ; after = page[len(page)-1].row {
			err := s.inScope(ctx, scope, func(b *pgx.Batch) {
				b.Queue(s.sql.parkedIDs, scope.Stored(), namespace, after, parkedPage).Query(func(rows pgx.Rows) (err error) {
					page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id EventID, err error) {
						return id, row.Scan(&id.row)
					})
					return err
				})
			})
			if err != nil {
				yield(nil, fmt.Errorf("look for parked events of %s: %w", scope, err))
				return
			}
			if len(page) > 0 && !yield(page, nil) || len(page) < parkedPage {
				return
			}
		}
	}
}

// Find describes events of one scope and namespace, whatever their state; nil stands for
// one that isn't there. By its ce_id only an unexported event is found.
func (s *Store) Find(ctx context.Context, namespace string, scope envelope.Scope, ids []EventID) ([]*Event, error) {
	found := make([]*Event, 0, len(ids))
	for size := parkedPage; len(found) < len(ids); {
		page := ids[len(found):min(len(found)+size, len(ids))]
		events, err := s.find(ctx, namespace, scope, page)
		switch {
		case err == nil:
			found = append(found, events...)
			size = min(2*size, parkedPage)
		case len(page) > 1 && ctx.Err() == nil: // together their payloads may unfold to more than can be measured in time
			size = 1
		default:
			return nil, err
		}
	}
	return found, nil
}

func (s *Store) find(ctx context.Context, namespace string, scope envelope.Scope, ids []EventID) ([]*Event, error) {
	indexed, err := s.indexed(ctx)
	if err != nil {
		return nil, err
	}
	rowIDs := make([]*int64, len(ids))
	operations, versions := make([]uuid.UUID, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		if id.ByRow() {
			rowIDs[i] = &id.row
		}
		operations[i], versions[i] = id.operation, fmt.Sprint(id.version)
	}
	events := make([]*Event, len(ids))
	err = s.inScope(ctx, scope, func(b *pgx.Batch) {
		b.Queue(s.sql.parkedFind.text(indexed), scope.Stored(), namespace, rowIDs, operations, versions, BehindCap).
			Query(func(rows pgx.Rows) error { return scanEvents(rows, events) })
	})
	if err != nil {
		s.lookAgain()
		return nil, fmt.Errorf("look for events of %s: %w", scope, err)
	}
	return events, nil
}

func scanEvents(rows pgx.Rows, events []*Event) error {
	defer rows.Close()
	for rows.Next() {
		var (
			e       Event
			n       int
			version string
			created pgtype.Timestamptz
		)
		err := rows.Scan(&n, &e.ID, &e.OperationID, &version, &e.Type, &created, &e.Attempts, &e.Bytes, &e.Error, &e.State, &e.Behind)
		if err != nil {
			return err
		}
		e.StateVersion, _ = positive(version)
		e.CreatedAt = instant(created)
		events[n-1] = &e
	}
	return rows.Err()
}

// Payload is the payload's text of one row of a scope and namespace; nil if it is larger
// than is read or the row isn't there.
func (s *Store) Payload(ctx context.Context, namespace string, scope envelope.Scope, id int64) (payload []byte, err error) {
	err = s.inScope(ctx, scope, func(b *pgx.Batch) {
		b.Queue(s.sql.parkedPayload, scope.Stored(), namespace, id).Query(func(rows pgx.Rows) error {
			payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
			if len(payloads) > 0 {
				payload = payloads[0]
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the payload of event %d: %w", id, err)
	}
	return payload, nil
}
