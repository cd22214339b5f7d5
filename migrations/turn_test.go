package migrations

import (
	"context"
	"fmt"
	"testing"
)

// Runs that start together take turns: all end well, and each object is made once.
func TestRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	const runs = 4
	db := emptyDatabase(t)
	role := newRole(t, db)
	start := make(chan struct{})
	errs := make(chan error, runs)
	reports := make([]*report, runs)
	for i := range runs {
		m, r := impatient(db.Conn(t), Options{Schema: "s", Standalone: true, GrantTo: role.name})
		reports[i] = r
		go func() {
			<-start
			errs <- m.run(t.Context(), (*migration).everything)
		}()
	}
	close(start)
	for range runs {
		if err := mustEnd(t, errs); err != nil {
			t.Errorf("run: %v", err)
		}
	}
	made := map[string]int{}
	for _, r := range reports {
		for name, outcome := range r.outcomes() {
			if outcome != AlreadyThere && outcome != Waiting {
				made[name]++
			}
		}
	}
	if len(made) != 11 {
		t.Errorf("%d objects made, want 11: %v", len(made), made)
	}
	for name, n := range made {
		if n != 1 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	wantState(t, db.Conn(t), "s", Ready)
}

// The run that waits must not keep the build of the other from ending, which a session blocked on a lock would.
func TestARunWaitsForAnotherThatBuilds(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	first, second := db.Conn(t), db.Conn(t)
	mustTables(t, first, "s")
	open := openWriter(t, db, "s")

	builder, _ := impatient(first, Options{Schema: "s"})
	built := builder.start(t.Context())
	watcher := db.Conn(t)
	eventually(t, func() error { return building(t, watcher) })

	waiter, r := impatient(second, Options{Schema: "s"})
	waited := waiter.start(t.Context())
	eventually(t, func() error {
		if !r.has(Waiting, fmt.Sprintf("another run is at work here (pid %d)", first.PgConn().PID())) {
			return errNotYet
		}
		return nil
	})

	exec(t, open, `commit`)
	for _, done := range []chan error{built, waited} {
		if err := mustEnd(t, done); err != nil {
			t.Errorf("run: %v", err)
		}
	}
	if outcome := r.outcomes()["index relay_outbox_operation"]; outcome != AlreadyThere {
		t.Errorf("the second run found the index %s", outcome)
	}
	wantState(t, watcher, "s", Ready)
}

func TestWaitingForAnotherRunEndsWithTheContext(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	conn, other := db.Conn(t), db.Conn(t)
	holder, _ := impatient(other, Options{Schema: "s"})
	if mine, _, err := holder.tryTurn(t.Context()); err != nil || !mine {
		t.Fatalf("%v, %v", mine, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m, r := impatient(conn, Options{Schema: "s", Standalone: true})
	done := m.start(ctx)
	eventually(t, func() error {
		if !r.has(Waiting, "another run") {
			return errNotYet
		}
		return nil
	})
	cancel()
	mustContain(t, mustEnd(t, done), "waiting for another run", `"s"`)

	// another schema, or a dry run, is none of its business
	mustRun(t, db.Conn(t), Options{Schema: "t", Standalone: true})
	mustRun(t, db.Conn(t), Options{Schema: "s", Standalone: true, DryRun: true})
}
