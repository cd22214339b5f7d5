package store_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
)

// snapshot is all columns of all rows of the three tables, as JSON.
type snapshot map[rowKey]map[string]json.RawMessage

type rowKey struct{ table, id string }

func (f *fixture) snapshot(t testing.TB) snapshot {
	t.Helper()
	rows, err := f.admin.Query(t.Context(), `
		select 'outbox', id::text, to_jsonb(o)::text from aksara_operation_outbox o
		union all select 'operations', id::text, to_jsonb(o)::text from aksara_operations o
		union all select 'transitions', id::text, to_jsonb(t)::text from aksara_operation_transitions t`)
	if err != nil {
		t.Fatal(err)
	}
	all := snapshot{}
	var key rowKey
	var text string
	_, err = pgx.ForEachRow(rows, []any{&key.table, &key.id, &text}, func() error {
		columns := map[string]json.RawMessage{}
		all[key] = columns
		return json.Unmarshal([]byte(text), &columns)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func outboxKey(id int64) rowKey { return rowKey{"outbox", strconv.FormatInt(id, 10)} }

// changed lists, for each row that differs in after, the columns that do.
func (s snapshot) changed(after snapshot) map[rowKey][]string {
	differ := map[rowKey][]string{}
	for key, columns := range s {
		if after[key] == nil {
			differ[key] = []string{"deleted"}
			continue
		}
		for name, was := range columns {
			if !bytes.Equal(was, after[key][name]) {
				differ[key] = append(differ[key], name)
			}
		}
		slices.Sort(differ[key])
	}
	for key := range after {
		if s[key] == nil {
			differ[key] = []string{"inserted"}
		}
	}
	return differ
}
