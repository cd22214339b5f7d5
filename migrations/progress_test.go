package migrations

import "testing"

func TestProgressText(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]progress{
		"":                                     {},
		"waiting for the transaction of pid 7": {blockers: []int32{7}},
		"waiting for writers before build, 1 of 3 transactions have ended, waiting for the transaction of pid 7 8": {
			phase: "waiting for writers before build", lockersDone: 1, lockersTotal: 3, blockers: []int32{7, 8}},
		"building index: scanning table, 20 of 80 blocks":     {phase: "building index: scanning table", blocksDone: 20, blocksTotal: 80, tuplesTotal: 9},
		"building index: loading tuples in tree, 5 of 9 rows": {phase: "building index: loading tuples in tree", tuplesDone: 5, tuplesTotal: 9},
		"initializing": {phase: "initializing"},
	} {
		if got := p.String(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// A build goes on when nobody can watch it.
func TestBuildWithoutAWatcher(t *testing.T) {
	t.Parallel()
	db := emptyDatabase(t)
	owner := newRole(t, db)
	db.Exec(t, `create schema s authorization `+quote(owner.name)+`; alter role `+quote(owner.name)+` connection limit 1`)
	conn := owner.conn(t)
	mustRun(t, conn, Options{Schema: "s", Standalone: true})
	exec(t, conn, newDDL("s", "").text("index_drop"))

	other := db.Conn(t)
	open := openWriter(t, db, "s")
	m, r := impatient(conn, Options{Schema: "s"})
	done := m.start(t.Context())
	eventually(t, func() error { return building(t, other) })
	exec(t, open, `commit`)
	if err := mustEnd(t, done); err != nil {
		t.Fatal(err)
	}
	if seen := r.outcomesOf(Building); len(seen) != 0 {
		t.Errorf("reported %v", seen)
	}
	wantState(t, other, "s", Ready)
}
