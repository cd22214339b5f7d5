package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"outboxrelay/envelope"
	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/sample"
	"outboxrelay/relay"
	"outboxrelay/store"
)

func (f *fixture) retry(t testing.TB, scope envelope.Scope, ids ...int64) []store.Ended {
	t.Helper()
	done, err := f.Retry(t.Context(), namespace, scope, ids)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func (f *fixture) discard(t testing.TB, scope envelope.Scope, ids ...int64) []store.Ended {
	t.Helper()
	done, err := f.Discard(t.Context(), namespace, scope, ids, "no longer needed")
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// checkEnded compares ids and numbers behind, which alternate in want.
func checkEnded(t testing.TB, got []store.Ended, want ...int64) {
	t.Helper()
	var flat []int64
	for _, e := range got {
		flat = append(flat, e.ID, int64(e.Behind))
	}
	if !slices.Equal(flat, want) {
		t.Errorf("ended %v, want %v", flat, want)
	}
}

// The whole operation comes back at once, in order, and keeps what it has been through.
func TestRetry(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		all := f.park(t, scope, 2, 4)
		if claim := f.claim(t, scope); claim.Seen != 0 {
			t.Fatalf("a claim saw %d rows", claim.Seen)
		}
		before := f.snapshot(t)
		checkEnded(t, f.retry(t, scope, all[0][0]), all[0][0], 3)
		changed := before.changed(f.snapshot(t))
		for _, id := range all[0] {
			if got := changed[outboxKey(id)]; !slices.Equal(got, []string{"next_attempt_at"}) {
				t.Errorf("row %d: changed %s, want next_attempt_at", id, got)
			}
		}
		if len(changed) != 4 {
			t.Errorf("changed %v, want the 4 rows of one operation", changed)
		}
		claim := f.claim(t, scope)
		if !slices.Equal(ids(claim), all[0]) || claim.Rows[0].Attempts != 2 || claim.Rows[1].Attempts != 1 {
			t.Errorf("claimed %d, %d attempts, want %d", ids(claim), claim.Rows[0].Attempts, all[0])
		}
		if got := value[string](t, f, `select last_error from aksara_operation_outbox where id = $1`, all[0][0]); got != broken {
			t.Errorf("last_error is %q while it is tried again", got)
		}
		f.settle(t, claim, relay.Verdict{Exported: true})
		if n := value[int](t, f, `select count(*) from aksara_operation_outbox where exported_at is not null and last_error is null`); n != 4 {
			t.Errorf("%d rows exported, want 4", n)
		}
		if got := f.parked(t, scope); !slices.Equal(got, all[1][:1]) {
			t.Errorf("parked: %d, want %d", got, all[1][:1])
		}
	})
}

// The event counts as exported, and what waited for it goes on at once.
func TestDiscard(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := envelope.NonTenant()
		rows := f.park(t, scope, 1, 4)[0]
		before := f.snapshot(t)
		checkEnded(t, f.discard(t, scope, rows[0]), rows[0], 3)
		changed := before.changed(f.snapshot(t))
		if got := changed[outboxKey(rows[0])]; !slices.Equal(got, []string{"exported_at", "last_error"}) {
			t.Errorf("changed %s of the event, want exported_at and last_error", got)
		}
		for _, id := range rows[1:] {
			if got := changed[outboxKey(id)]; !slices.Equal(got, []string{"next_attempt_at"}) {
				t.Errorf("changed %s of row %d behind it, want next_attempt_at", got, id)
			}
		}
		if len(changed) != 4 {
			t.Errorf("changed %v", changed)
		}
		if got := value[string](t, f, `select last_error from aksara_operation_outbox where id = $1`, rows[0]); got != "discarded: no longer needed" {
			t.Errorf("last_error %q", got)
		}
		if got := ids(f.claim(t, scope)); !slices.Equal(got, rows[1:]) {
			t.Errorf("claimed %d, want %d", got, rows[1:])
		}
	})
}

func TestDiscardStoresAnyReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t, variants()[0])
	scope := tenant(t, "acme")
	for reason, want := range map[string]string{
		"a\x00b\xffc":                 "discarded: a\uFFFDb\uFFFDc",
		strings.Repeat("😀", 3000):     "discarded: " + strings.Repeat("😀", 1989),
		"it's \"x\"; drop\ntable -- ": "discarded: it's \"x\"; drop\ntable -- ",
	} {
		id := f.park(t, scope, 1, 1)[0][0]
		if _, err := f.Discard(t.Context(), namespace, scope, []int64{id}, reason); err != nil {
			t.Fatal(err)
		}
		got := value[string](t, f, `select last_error from aksara_operation_outbox where id = $1`, id)
		if got != want || utf8.RuneCountInString(got) > 2000 {
			t.Errorf("last_error %.60q, want %.60q", got, want)
		}
	}
}

// Only what is parked in this scope and namespace is touched.
func TestEndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		var asked []int64
		for _, set := range []string{
			`next_attempt_at = clock_timestamp()`,
			`next_attempt_at = clock_timestamp() + interval '1 hour', last_error = 'broken'`,
			`claimed_by = 'x', claim_expires_at = clock_timestamp() + interval '1 hour'`,
			`claimed_by = 'x', claim_expires_at = clock_timestamp() + interval '1 hour', next_attempt_at = 'infinity'`,
			`exported_at = clock_timestamp()`,
			`exported_at = clock_timestamp(), next_attempt_at = 'infinity', last_error = 'discarded: x'`,
		} {
			id := f.fill(t, scope, 1, 2)[0][0]
			f.exec(t, "update aksara_operation_outbox set "+set+" where id = $1", id)
			asked = append(asked, id)
		}
		foreign := f.fill(t, tenant(t, "other"), 1, 2)[0][0]
		elsewhere := f.fillAs(t, sample.Application{Namespace: "Orders"}, scope, 1, 2)[0][0]
		f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id = any($1)`, []int64{foreign, elsewhere})
		asked = append(asked, foreign, elsewhere, 123456789)

		before := f.snapshot(t)
		for name, s := range map[string]*store.Store{"restricted": f.Store, "superuser": f.open(t, store.Config{URL: f.db.URL})} {
			retried, err := s.Retry(t.Context(), namespace, scope, asked)
			discarded, err2 := s.Discard(t.Context(), namespace, scope, asked, "x")
			if err != nil || err2 != nil || len(retried) != 0 || len(discarded) != 0 {
				t.Errorf("%s: retried %v, %v, discarded %v, %v, want none", name, retried, err, discarded, err2)
			}
		}
		if changed := before.changed(f.snapshot(t)); len(changed) != 0 {
			t.Errorf("changed %v", changed)
		}
	})
}

// Behind the event: rows in flight are somebody else's, parked ones wait for a word of
// their own, exported ones are done.
func TestEndSparesSomeBehind(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, f *fixture) {
		for name, end := range map[string]func(testing.TB, envelope.Scope, ...int64) []store.Ended{"retry": f.retry, "discard": f.discard} {
			scope := tenant(t, name)
			rows := f.park(t, scope, 1, 6)[0]
			f.exec(t, `update aksara_operation_outbox set claimed_by = 'x', claim_expires_at = clock_timestamp() + interval '1 hour' where id = $1`, rows[1])
			f.exec(t, `update aksara_operation_outbox set claimed_by = 'x', claim_expires_at = clock_timestamp() - interval '1 hour' where id = $1`, rows[2])
			f.exec(t, `update aksara_operation_outbox set next_attempt_at = 'infinity' where id = $1`, rows[3])
			f.exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp() where id = $1`, rows[4])
			before := f.snapshot(t)
			checkEnded(t, end(t, scope, rows[0]), rows[0], 2)
			changed := before.changed(f.snapshot(t))
			for i, want := range []bool{true, false, true, false, false, true} {
				if got := changed[outboxKey(rows[i])] != nil; got != want {
					t.Errorf("%s: row %d of 6 changed: %t, want %t", name, i+1, got, want)
				}
			}
		}
	})
}

// A retry of many stands behind what is due already, in its scope, and in front of what
// comes later.
func TestRetryAll(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		scope := tenant(t, "acme")
		f.park(t, scope, 250, 2)
		f.park(t, tenant(t, "other"), 1, 1)
		older := slices.Concat(f.fill(t, scope, 5, 1)...)
		events, behind, err := f.RetryAll(t.Context(), namespace, scope)
		if err != nil || events != 250 || behind != 250 {
			t.Errorf("retried %d and %d behind, %v, want 250 and 250", events, behind, err)
		}
		newer := slices.Concat(f.fill(t, scope, 5, 1)...)
		req := request(scope)
		req.Rows = 5
		if got := ids(f.claimWith(t, req)); !slices.Equal(got, older) {
			t.Errorf("claimed %d first, want %d", got, older)
		}
		req.Rows = 500
		if got := f.claimWith(t, req); len(got.Rows) != 500 || slices.Contains(ids(got), newer[0]) {
			t.Errorf("claimed %d rows then, want the 500 retried ones", len(got.Rows))
		}
		if got := ids(f.claim(t, scope)); !slices.Equal(got, newer) {
			t.Errorf("claimed %d last, want %d", got, newer)
		}
		if events, behind, err = f.RetryAll(t.Context(), namespace, scope); err != nil || events+behind != 0 {
			t.Errorf("again: %d, %d, %v, want none", events, behind, err)
		}
		if got := f.parked(t, tenant(t, "other")); len(got) != 1 {
			t.Errorf("%d events of the other tenant are parked, want 1", len(got))
		}
	})
}

// Aksara keeps an operation as long as one of its events is not exported. A discarded
// event is no longer in its way.
func TestPruneTakesDiscardedEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t, aksara())
	scope := tenant(t, "acme")
	aksaratest.Generate(t, f.db.URL, aksaratest.GenerateOptions{
		Namespace: namespace, Scopes: []string{"acme"}, Counts: map[aksaratest.Kind]int{aksaratest.Success: 1},
		Retention: time.Millisecond,
	})
	claim := f.claim(t, scope)
	verdicts := onAll(claim, relay.Verdict{Exported: true})
	verdicts[2].Exported, verdicts[2].Wait, verdicts[2].Error = false, relay.Park, broken
	if _, err := f.Settle(t.Context(), claim, verdicts); err != nil {
		t.Fatal(err)
	}
	options := aksaratest.PruneOptions{Namespace: namespace, Scope: "acme", History: 1}
	if got, want := aksaratest.Prune(t, f.db.URL, options), (aksaratest.Pruned{Transitions: 1}); got != want {
		t.Errorf("pruned %+v beside a parked event, want %+v", got, want)
	}
	checkEnded(t, f.discard(t, scope, claim.Rows[2].ID), claim.Rows[2].ID, 0)
	if got, want := aksaratest.Prune(t, f.db.URL, options), (aksaratest.Pruned{Transitions: 1, Operations: 1}); got != want {
		t.Errorf("pruned %+v after the discard, want %+v", got, want)
	}
}
