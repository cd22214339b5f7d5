package store_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/sample"
	"outboxrelay/relay"
	"outboxrelay/store"
)

const broken = "the event is too large"

// park writes operations of so many events each and has a claim park the first one of
// each. It gives their row ids operation by operation.
func (f *fixture) park(t testing.TB, scope envelope.Scope, operations, versions int) [][]int64 {
	t.Helper()
	all := f.fill(t, scope, operations, versions)
	claim := f.claim(t, scope)
	if len(claim.Rows) != operations*versions {
		t.Fatalf("claimed %d rows, want %d", len(claim.Rows), operations*versions)
	}
	verdicts := onAll(claim, relay.Verdict{Wait: 24 * time.Hour, Refund: true})
	for i := range verdicts {
		for _, rows := range all {
			if verdicts[i].Row.ID == rows[0] {
				verdicts[i].Wait, verdicts[i].Error, verdicts[i].Refund = relay.Park, broken, false
			}
		}
	}
	if _, err := f.Settle(t.Context(), claim, verdicts); err != nil {
		t.Fatal(err)
	}
	return all
}

// events reads all events of a list.
func events(t testing.TB, list iter.Seq2[*store.Event, error]) (all []*store.Event) {
	t.Helper()
	for e, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// parked is the ids of a scope's parked events.
func (f *fixture) parked(t testing.TB, scope envelope.Scope) (ids []int64) {
	t.Helper()
	for _, e := range events(t, f.Parked(t.Context(), namespace, scope)) {
		ids = append(ids, e.ID)
	}
	return ids
}

func eventIDs(t testing.TB, texts ...string) (ids []store.EventID) {
	t.Helper()
	for _, text := range texts {
		id, err := store.ParseEventID(text)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestParkedTellsWhatIsKnown(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.park(t, scope, 1, 3)[0]
		f.park(t, tenant(t, "other"), 1, 1)
		f.fillAs(t, sample.Application{Namespace: "Orders"}, scope, 1, 1)
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id > $1`, rows[2])

		all := events(t, f.Parked(t.Context(), namespace, scope))
		if len(all) != 1 {
			t.Fatalf("%d events are parked, want 1", len(all))
		}
		got := *all[0]
		want := store.Event{
			ID: rows[0], StateVersion: 1, Type: "aksara.operation.transition", Attempts: 1, Error: broken, State: store.Parked, Behind: 2,
			OperationID: value[uuid.UUID](t, f, `select operation_id from aksara_operation_outbox where id = $1`, rows[0]),
			CreatedAt:   value[time.Time](t, f, `select created_at from aksara_operation_outbox where id = $1`, rows[0]),
			Bytes:       value[int64](t, f, `select octet_length(payload::text) from aksara_operation_outbox where id = $1`, rows[0]),
		}
		if !got.CreatedAt.Equal(want.CreatedAt) {
			t.Errorf("created at %s, want %s", got.CreatedAt, want.CreatedAt)
		}
		if got.CreatedAt = want.CreatedAt; got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if id := got.CEID(); id != got.OperationID.String()+":1" {
			t.Errorf("ce_id %q", id)
		}
		payload, err := f.Payload(t.Context(), namespace, scope, rows[0])
		if stored := value[string](t, f, `select payload::text from aksara_operation_outbox where id = $1`, rows[0]); err != nil || string(payload) != stored {
			t.Errorf("payload %s, %v, want %s", payload, err, stored)
		}
		if payload, err = f.Payload(t.Context(), namespace, tenant(t, "other"), rows[0]); err != nil || payload != nil {
			t.Errorf("another tenant has payload %s, %v", payload, err)
		}
	})
}

// What a row fault may look like: no state version, no time.
func TestParkedWithoutAnEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		row := f.park(t, scope, 1, 1)[0][0]
		for _, payload := range []string{`[]`, `3`, `{}`, `{"state_version": "3"}`, `{"state_version": 3.0}`, `{"state_version": 1e30000}`, `{"state_version": {"a": [1]}}`} {
			f.exec(t, `update aksara_operation_outbox set payload = $1, created_at = 'infinity', topic = ''`, payload)
			all := events(t, f.Parked(t.Context(), namespace, scope))
			if len(all) != 1 || all[0].ID != row || all[0].CEID() != "" || all[0].CreatedAt.Year() <= 9999 {
				t.Errorf("payload %s: %+v", payload, all)
			}
			found, err := f.Find(t.Context(), namespace, scope, eventIDs(t, fmt.Sprintf("%s:3", all[0].OperationID)))
			if err != nil || found[0] != nil {
				t.Errorf("payload %s: found by version 3: %+v, %v", payload, found[0], err)
			}
		}
	})
}

func TestParkedReadsAllPages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		for _, n := range []int{0, 1, 99, 100, 101, 200, 250} {
			f.exec(t, `truncate aksara_operations cascade`)
			rows := f.fill(t, scope, n, 1)
			f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'broken'`)
			if got := f.parked(t, scope); !slices.Equal(got, slices.Concat(rows...)) {
				t.Errorf("%d parked: %d listed", n, len(got))
			}
			for range f.Parked(t.Context(), namespace, scope) {
				break // a reader that has seen enough
			}
		}
	})
}

// Parked payloads may be small in the table and hundreds of megabytes as text. To measure one takes the server a while, and
// more than it has for a statement if it measures many together.
func TestParkedWhenPayloadsUnfold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := slices.Concat(f.fill(t, scope, 40, 1)...)
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity', last_error = 'too large',
			payload = (select jsonb_agg('1e100000'::jsonb) from generate_series(1, 700))`)
		began := time.Now()
		f.exec(t, `select octet_length(payload::text) from aksara_operation_outbox where id = $1`, rows[0])
		limit := 10 * time.Since(began) // of what all of them take, a quarter
		f.Store = f.openWith(t, store.Config{Connections: 1}, patience, limit)
		var listed []int64
		for e, err := range f.Parked(t.Context(), namespace, scope) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Bytes < 64<<20 {
				t.Errorf("row %d is told to have %d bytes", e.ID, e.Bytes)
			}
			listed = append(listed, e.ID)
		}
		if !slices.Equal(listed, rows) {
			t.Errorf("%d of %d parked events are listed", len(listed), len(rows))
		}
	})
}

func TestBehindIsCapped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 1, store.BehindCap+10)[0]
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id = $1`, rows[0])
		all := events(t, f.Parked(t.Context(), namespace, scope))
		if len(all) != 1 || all[0].Behind != store.BehindCap {
			t.Errorf("%+v, want %d behind", all[0], store.BehindCap)
		}
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		rows := f.fill(t, scope, 1, 5)[0]
		operation := value[uuid.UUID](t, f, `select operation_id from aksara_operation_outbox where id = $1`, rows[0])
		foreign := f.fill(t, tenant(t, "other"), 1, 1)[0][0]
		elsewhere := f.fillAs(t, sample.Application{Namespace: "Orders"}, scope, 1, 1)[0][0]
		for i, set := range []string{
			`exported_at = clock_timestamp(), last_error = 'discarded: x'`,
			`next_attempt_at = 'infinity', last_error = 'broken'`,
			`claimed_by = 'x', claim_expires_at = clock_timestamp() + interval '1 hour'`,
			`next_attempt_at = clock_timestamp() + interval '1 hour'`,
		} {
			f.exec(t, "update aksara_operation_outbox set "+set+" where id = $1", rows[i])
		}
		states := []string{"exported", store.Parked, "in flight", "delayed", "due"}
		var asked []string
		for i := range 5 {
			asked = append(asked, fmt.Sprint(rows[4-i]), fmt.Sprintf("%s:%d", operation, i+1))
		}
		found, err := f.Find(t.Context(), namespace, scope, eventIDs(t, asked...))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if e := found[2*i]; e == nil || e.ID != rows[4-i] || e.State != states[4-i] {
				t.Errorf("%s: found %+v, want it %s", asked[2*i], e, states[4-i])
			}
			e := found[2*i+1]
			if i == 0 && e != nil {
				t.Errorf("%s: found %+v, though it is exported", asked[1], e)
			} else if i > 0 && (e == nil || e.ID != rows[i] || e.State != states[i]) {
				t.Errorf("%s: found %+v, want it %s", asked[2*i+1], e, states[i])
			}
		}
		asked = []string{fmt.Sprint(foreign), fmt.Sprint(elsewhere), "123456789", uuid.NewString() + ":1", fmt.Sprintf("%s:6", operation)}
		for _, id := range []int64{foreign, elsewhere} {
			asked = append(asked, fmt.Sprintf("%s:1", value[uuid.UUID](t, f, `select operation_id from aksara_operation_outbox where id = $1`, id)))
		}
		for name, s := range map[string]*store.Store{"restricted": f.Store, "superuser": f.open(t, store.Config{URL: f.db.URL})} {
			found, err = s.Find(t.Context(), namespace, scope, eventIDs(t, asked...))
			if err != nil || slices.ContainsFunc(found, func(e *store.Event) bool { return e != nil }) {
				t.Errorf("%s: found %+v, %v, want none", name, found, err)
			}
		}
	})
}

// With the index there is nothing to be looked up in the transitions.
func TestParkedWithTheSmallestRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[0])
	f.exec(t, `revoke select (id, operation_id, state_version) on aksara_operation_transitions from `+pgtest.User(t, f.url))
	scope := tenant(t, "acme")
	rows := f.park(t, scope, 2, 2)
	list := events(t, f.Parked(t.Context(), namespace, scope))
	if len(list) != 2 {
		t.Fatalf("%d parked, want 2", len(list))
	}
	if found, err := f.Find(t.Context(), namespace, scope, eventIDs(t, list[0].CEID())); err != nil || found[0].ID != rows[0][0] {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := f.Retry(t.Context(), namespace, scope, rows[0][:1]); err != nil {
		t.Error(err)
	}
	if _, err := f.Discard(t.Context(), namespace, scope, rows[1][:1], "no longer needed"); err != nil {
		t.Error(err)
	}
}

func TestParkedErrorsNameTheScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[0])
	f.exec(t, `revoke all on aksara_operation_outbox from `+pgtest.User(t, f.url))
	scope := tenant(t, "acme")
	_, errFind := f.Find(t.Context(), namespace, scope, eventIDs(t, "1"))
	_, errRetry := f.Retry(t.Context(), namespace, scope, []int64{1})
	_, errDiscard := f.Discard(t.Context(), namespace, scope, []int64{1}, "x")
	_, _, errAll := f.RetryAll(t.Context(), namespace, scope)
	for _, err := range []error{errFind, errRetry, errDiscard, errAll} {
		if err == nil || !strings.Contains(err.Error(), `tenant "acme"`) || code(err) != "42501" {
			t.Errorf("error %v", err)
		}
	}
}
