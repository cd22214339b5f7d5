package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
	"outboxrelay/relay"
	"outboxrelay/store"
)

// sinkFunc is a sink of the test's own.
type sinkFunc func(e envelope.Event) error

func (sinkFunc) Ready(envelope.Scope) error { return nil }

func (s sinkFunc) Publish(_ context.Context, events []envelope.Event, answer func(int, error)) {
	for i := range events {
		answer(i, s(events[i]))
	}
}

// newRelay makes a relay in this process, with a sink of the test's own.
func (f *fixture) newRelay(worker string, cfg relay.Config, sink relay.Sink) *relay.Relay {
	f.T.Helper()
	db, err := store.Open(store.Config{URL: f.Role, Schema: "public"})
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(db.Close)
	cfg.Namespace, cfg.WorkerID = relayproc.Namespace, worker
	r, err := relay.New(cfg, db, sink, nil)
	if err != nil {
		f.T.Fatal(err)
	}
	return r
}

// A sink fails, then works: every column of the row is as the contract says at each
// step, and the Operation is untouched.
func TestFailureThenRetry(t *testing.T) {
	t.Parallel()
	f := newFixture(t, aksaratest.Setup(t))
	aksaratest.Generate(t, f.DB.URL, aksaratest.GenerateOptions{
		Namespace: relayproc.Namespace, Scopes: []string{"acme"}, Counts: map[aksaratest.Kind]int{aksaratest.CancelReady: 1},
	})
	states := aksaratest.OperationsState(t, f.DB.URL)
	before := f.rows("true")
	fail := errors.New("broken \x00 \xff pipe")
	r := f.newRelay("w", relay.Config{RetryDelay: 2 * time.Second, RetryMaxDelay: 2 * time.Second},
		sinkFunc(func(envelope.Event) error { return fail }))
	acme := relayproc.Tenant(t, "acme")

	outcome, err := r.ExportOnce(t.Context(), acme)
	if outcome != relay.SinkFailed || !errors.Is(err, fail) {
		t.Fatalf("ExportOnce: %v, %v", outcome, err)
	}
	after := f.rows("true")
	wait := f.Count(`select round(extract(epoch from next_attempt_at - clock_timestamp()) * 1000)::int from aksara_operation_outbox where id = 1`)
	if wait < 0 || wait > 2000 {
		t.Errorf("the row is due again in %d ms, want 1 to 2 s less what the test took", wait)
	}
	want := with(before[0], row{
		"export_attempts": "1", "last_error": "broken \uFFFD \uFFFD pipe", "next_attempt_at": after[0]["next_attempt_at"],
	})
	same(t, "failed row", after[0], want)
	same(t, "row behind it", after[1], before[1])

	// The row behind it isn't taken while the first waits.
	outcome, err = r.ExportOnce(t.Context(), acme)
	if outcome != relay.Empty || err != nil {
		t.Fatalf("ExportOnce while the first row waits: %v, %v", outcome, err)
	}
	fail = nil
	for range 2 {
		relayproc.Until(t, "an export", func() error {
			outcome, err := r.ExportOnce(t.Context(), acme)
			if outcome != relay.Exported {
				return fmt.Errorf("%v, %w", outcome, errors.Join(err))
			}
			return nil
		})
	}
	exported := f.rows("true")
	same(t, "exported row", exported[0], with(before[0], row{
		"export_attempts": "2", "exported_at": exported[0]["exported_at"], "next_attempt_at": after[0]["next_attempt_at"],
	}))
	if exported[0]["exported_at"] == "<null>" || exported[1]["export_attempts"] != "1" {
		t.Errorf("rows after the export: %v", exported)
	}
	if outcome, err = r.ExportOnce(t.Context(), acme); outcome != relay.Empty || err != nil {
		t.Errorf("ExportOnce with nothing left: %v, %v", outcome, err)
	}
	if now := aksaratest.OperationsState(t, f.DB.URL); fmt.Sprint(now) != fmt.Sprint(states) {
		t.Error("the operation changed")
	}
}

func with(r row, changes row) row {
	out := row{}
	for k, v := range r {
		out[k] = v
	}
	for k, v := range changes {
		out[k] = v
	}
	return out
}

func same(t *testing.T, what string, got, want row) {
	t.Helper()
	for column := range want {
		if got[column] != want[column] {
			t.Errorf("%s: %s is %q, want %q", what, column, got[column], want[column])
		}
	}
}

// A sink is slow past its lease and another relay takes over: the late owner changes
// nothing of the new owner's, and the row ends clean whoever is first.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"late owner answers first", "new owner answers first", "late owner's send fails"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, relayproc.Standalone)
			acme := relayproc.Tenant(t, "acme")
			f.Fill(acme, 1, 1)
			cfg := relay.Config{Lease: 9 * time.Second, DeliveryTimeout: time.Second, Grace: 3 * time.Second}
			slow, quick := newGatedSink(), newGatedSink()
			old, next := f.newRelay("old", cfg, slow), f.newRelay("new", cfg, quick)
			oldEnded := run(t, old, acme)
			slow.sent(t)
			old.SetScopes(nil)                                                                      // it has four workers, and the next would take the row again
			f.DB.Exec(t, "update aksara_operation_outbox set claim_expires_at = clock_timestamp()") // instead of waiting for it
			newEnded := run(t, next, acme)
			quick.sent(t)
			next.SetScopes(nil)
			claimed := f.rows("true")[0]
			if claimed["claimed_by"][:4] != "new/" || claimed["export_attempts"] != "2" {
				t.Fatalf("after the takeover: %v", claimed)
			}
			switch first {
			case "late owner answers first":
				slow.answer <- nil
				f.Drained("true")
				same(t, "row that the late owner marked", f.rows("true")[0],
					with(claimed, row{"exported_at": f.rows("true")[0]["exported_at"]}))
				quick.answer <- nil
			case "new owner answers first":
				quick.answer <- nil
				f.Drained("true")
				slow.answer <- nil
			case "late owner's send fails":
				slow.answer <- errors.New("too late")
				oldEnded()
				same(t, "row after the late failure", f.rows("true")[0], claimed)
				quick.answer <- nil
				f.Drained("true")
			}
			newEnded()
			oldEnded()
			end := f.rows("true")[0]
			same(t, "row in the end", end, with(claimed, row{
				"exported_at": end["exported_at"], "claimed_by": "<null>", "claim_expires_at": "<null>", "last_error": "<null>",
			}))
			if end["exported_at"] == "<null>" {
				t.Error("the row isn't exported")
			}
		})
	}
}

// run runs a relay in the background and gives a function that ends it.
func run(t *testing.T, r *relay.Relay, scope envelope.Scope) (end func()) {
	t.Helper()
	r.SetScopes([]envelope.Scope{scope})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	var over bool
	end = func() {
		t.Helper()
		if over {
			return
		}
		over = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(end)
	return end
}

// gatedSink answers each event when the test says so.
type gatedSink struct {
	events chan envelope.Event
	answer chan error
}

func newGatedSink() *gatedSink {
	return &gatedSink{events: make(chan envelope.Event, 100), answer: make(chan error, 100)}
}

func (*gatedSink) Ready(envelope.Scope) error { return nil }

func (s *gatedSink) Publish(ctx context.Context, events []envelope.Event, answer func(int, error)) {
	for i := range events {
		s.events <- events[i]
		select {
		case err := <-s.answer:
			answer(i, err)
		case <-ctx.Done():
			return
		}
	}
}

// sent waits for an event to reach the sink.
func (s *gatedSink) sent(t *testing.T) envelope.Event {
	t.Helper()
	select {
	case e := <-s.events:
		return e
	case <-time.After(relayproc.Patience):
		t.Fatal("no event reached the sink")
		panic("unreachable")
	}
}

// Events that can't be sent as they are don't stop their neighbours; the rest of their
// operation waits for them.
func TestRowFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t, pgtest.Setup{Name: relayproc.Standalone.Name, Apply: relayproc.Standalone.Apply})
	f.Topic = f.Broker.Topic(t, 3, map[string]string{"max.message.bytes": "20000"})
	acme := relayproc.Tenant(t, "acme")
	f.Fill(acme, 20, 3)
	operations := f.operations()
	tooLarge, wrongName, noVersion := operations[3], operations[7], operations[11]
	f.DB.Exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more', repeat(md5(id::text), 1000))
		where operation_id = $1 and (payload->>'state_version')::int = 1`, tooLarge)
	f.DB.Exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('operation_id', gen_random_uuid())
		where operation_id = $1 and (payload->>'state_version')::int = 2`, wrongName)
	f.DB.Exec(t, `update aksara_operation_outbox set payload = '"PAYLOAD-TEXT"'
		where operation_id = $1 and (payload->>'state_version')::int = 3`, noVersion)

	p := relayproc.Start(t, f.Env("acme"))
	f.Drained("operation_id <> all ($1)", []string{tooLarge, wrongName, noVersion})
	relayproc.Until(t, "three parked rows", func() error {
		if n := f.Count("select count(*) from aksara_operation_outbox where next_attempt_at = 'infinity'"); n != 3 {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	for operation, want := range map[string]struct {
		exported int
		reason   string
	}{
		tooLarge:  {0, "20000 at most (max.message.bytes, segment.bytes)"},
		wrongName: {1, "names another operation"},
		noVersion: {2, "no JSON object"},
	} {
		parked := f.rows("operation_id = $1 and next_attempt_at = 'infinity'", operation)
		if len(parked) != 1 || !strings.Contains(parked[0]["last_error"], want.reason) {
			t.Errorf("parked rows of operation %s: %v, want one with %q", operation, parked, want.reason)
		}
		if n := f.Count("select count(*) from aksara_operation_outbox where operation_id = $1 and exported_at is not null", operation); n != want.exported {
			t.Errorf("%d rows of operation %s are exported, want %d", n, operation, want.exported)
		}
	}
	if n := f.Count("select count(*) from aksara_operation_outbox where claimed_by is not null"); n != 0 {
		t.Errorf("%d rows are left claimed", n)
	}
	relayproc.ExactlyOnce(t, f.Events(), 17*3+0+1+2)
	if strings.Contains(p.Log.String(), "PAYLOAD-TEXT") {
		t.Error("a payload stands in the log")
	}
}

// operations gives the ids of all operations in the order of their first rows.
func (f *fixture) operations() (ids []string) {
	f.T.Helper()
	for _, r := range f.rows("(payload->>'state_version')::int = 1") {
		ids = append(ids, r["operation_id"])
	}
	return ids
}
