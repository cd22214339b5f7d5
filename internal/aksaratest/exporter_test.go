package aksaratest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
)

// oneSuccess writes one operation with three events and returns its database.
func oneSuccess(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.Database(t, aksaratest.Setup(t))
	aksaratest.Generate(t, db.URL, aksaratest.GenerateOptions{
		Namespace: namespace,
		Scopes:    []string{"tenant a"},
		Counts:    map[aksaratest.Kind]int{aksaratest.Success: 1},
	})
	return db
}

func exporterOptions() aksaratest.ExporterOptions {
	return aksaratest.ExporterOptions{Namespace: namespace, Scope: "tenant a", WorkerID: "python"}
}

func TestExporterRecordsWhatItsSinkGot(t *testing.T) {
	t.Parallel()
	db := oneSuccess(t)
	before := aksaratest.OperationsState(t, db.URL)

	untilEmpty := exporterOptions()
	untilEmpty.UntilEmpty = true
	observed := aksaratest.Export(t, db.URL, untilEmpty)

	want := canonicalPayloads(t, db)
	var got []string
	for _, call := range observed {
		if !call.Returned || !call.Exported {
			t.Errorf("not exported: %+v", call)
		}
		got = append(got, call.Canonical)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	keys := []string{"event", "to_state", "attempt_id", "from_state", "reason_code", "operation_id", "state_version"}
	if !slices.Equal(observed[0].Keys, keys) {
		t.Errorf("the sink saw the names %q, want %q", observed[0].Keys, keys)
	}
	if after := aksaratest.OperationsState(t, db.URL); len(before) != 1 || !slices.Equal(before, after) {
		t.Errorf("states before %+v, after %+v", before, after)
	}
}

func TestExporterFailsItsFirstCalls(t *testing.T) {
	t.Parallel()
	db := oneSuccess(t)
	failing := exporterOptions()
	failing.FailFirst, failing.Calls, failing.Error = 2, 3, "broker says no"
	observed := aksaratest.Export(t, db.URL, failing)

	var exported []bool
	for _, call := range observed {
		exported = append(exported, call.Exported)
	}
	if want := []bool{false, false, true}; !slices.Equal(exported, want) {
		t.Errorf("exported %v, want %v", exported, want)
	}
	if observed[0].Canonical != observed[2].Canonical {
		t.Errorf("another event was sent again: %q, then %q", observed[0].Canonical, observed[2].Canonical)
	}
	connection := db.Conn(t)
	var attempts int
	const query = "SELECT export_attempts FROM aksara_operation_outbox ORDER BY id LIMIT 1"
	if err := connection.QueryRow(t.Context(), query).Scan(&attempts); err != nil || attempts != 3 {
		t.Errorf("%d attempts (%v), want 3", attempts, err)
	}
}

func TestExporterHoldsItsSinkUntilReleased(t *testing.T) {
	t.Parallel()
	db := oneSuccess(t)
	holding := exporterOptions()
	holding.Hold = true
	exporter := aksaratest.StartExporter(t, db.URL, holding)

	exporter.WaitObserved(1)
	if claimed := claims(t, db, "python"); claimed != 1 {
		t.Errorf("%d claims while the sink waits, want 1", claimed)
	}
	exporter.Release()
	if first := exporter.WaitReturned(1)[0]; !first.Exported {
		t.Errorf("released call was not exported: %+v", first)
	}
	exporter.WaitObserved(2)
	observed := exporter.Stop()
	if n := len(observed); n != 2 || !observed[1].Exported {
		t.Errorf("%d calls, want 2, both exported: %+v", n, observed)
	}
}

func TestKilledExporterLeavesItsClaim(t *testing.T) {
	t.Parallel()
	db := oneSuccess(t)
	holding := exporterOptions()
	holding.Hold = true
	exporter := aksaratest.StartExporter(t, db.URL, holding)
	exporter.WaitObserved(1)
	exporter.Kill()
	if claimed := claims(t, db, "python"); claimed != 1 {
		t.Errorf("%d claims after the kill, want 1", claimed)
	}
}

// claims counts the rows that worker has claimed.
func claims(t *testing.T, db *pgtest.DB, worker string) (n int) {
	t.Helper()
	const query = "SELECT count(*) FROM aksara_operation_outbox WHERE claimed_by = $1"
	if err := db.Conn(t).QueryRow(t.Context(), query, worker).Scan(&n); err != nil {
		t.Fatalf("count claims: %v", err)
	}
	return n
}

// canonicalPayloads returns the outbox's payloads in its order, each as JSON without blanks and with its names sorted.
func canonicalPayloads(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	rows, err := db.Conn(t).Query(t.Context(), "SELECT payload FROM aksara_operation_outbox ORDER BY id")
	if err != nil {
		t.Fatalf("read the outbox: %v", err)
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
	if err != nil {
		t.Fatalf("read the outbox: %v", err)
	}
	var canonical []string
	for _, payload := range payloads {
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatalf("encode a payload: %v", err)
		}
		canonical = append(canonical, string(text))
	}
	return canonical
}
