package aksaratest_test

import (
	"testing"

	"outboxrelay/internal/aksaratest"
	"outboxrelay/internal/pgtest"
)

func TestMigrateUsesTheWantedSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, pgtest.Setup{Name: "empty"})
	const schema = `app "one"`
	aksaratest.Migrate(t, db.URL, schema)
	inSchema := aksaratest.WithSchema(t, db.URL, schema)
	operations := aksaratest.Generate(t, inSchema, aksaratest.GenerateOptions{
		Namespace: namespace,
		Scopes:    []string{aksaratest.NonTenant},
		Counts:    map[aksaratest.Kind]int{aksaratest.CancelReady: 1},
	})
	if got := aksaratest.OperationsState(t, inSchema); len(got) != 1 || got[0].ID != operations[0].ID ||
		got[0].State != "cancelled" || got[0].StateVersion != 2 {
		t.Errorf("got %+v, want operation %s cancelled at version 2", got, operations[0].ID)
	}
	var public int
	const query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	if err := db.Conn(t).QueryRow(t.Context(), query).Scan(&public); err != nil || public != 0 {
		t.Errorf("%d tables in schema public (%v), want none", public, err)
	}
}

func TestPruneSparesWhatIsNotExported(t *testing.T) {
	t.Parallel()
	db := oneSuccess(t)
	options := aksaratest.PruneOptions{Namespace: namespace, Scope: "tenant a", History: 1}
	if got := aksaratest.Prune(t, db.URL, options); got != (aksaratest.Pruned{}) {
		t.Errorf("pruned %+v of events that were not exported", got)
	}
	export := exporterOptions()
	export.UntilEmpty = true
	aksaratest.Export(t, db.URL, export)
	if got, want := aksaratest.Prune(t, db.URL, options), (aksaratest.Pruned{Transitions: 2}); got != want {
		t.Errorf("pruned %+v, want %+v", got, want)
	}
}
