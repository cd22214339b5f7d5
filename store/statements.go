package store

import (
	"embed"

	"github.com/jackc/pgx/v5"

	"outboxrelay/relay"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// mostPayload is the largest payload text that is read, in bytes. A column of 64 KiB
// can unfold to far more, since jsonb keeps 1e100000 in a few bytes.
const mostPayload = 64 << 20

// mostInline is the largest payload text, in bytes, that comes with the claim. What the
// server can't get rid of keeps it from committing, so if reading a payload ends the
// process its claim has to be there before.
const mostInline = 64 << 10

// statements holds the store's SQL, made once for one schema.
type statements struct {
	schema string // quoted
	files  templates

	frame, gate, payload, mark, markLate, release, renew, clear, status, namespaces, due, waiting, held, unmarked, identity string

	parkedIDs, parkedPayload, parkedReasons                          string
	parkedFind, parkedRetry, parkedDiscard, parkedBehind, deadLetter variants
}

// variants is a statement that looks for the rows of an operation, with the supporting
// index and without.
type variants struct{ indexed, plain string }

func (v variants) text(indexed bool) string {
	if indexed {
		return v.indexed
	}
	return v.plain
}

func newStatements(schema string, durable bool) statements {
	s := statements{schema: pgx.Identifier{schema}.Sanitize(), files: mustParse(sqlFiles, "sql/*.sql")}
	text := func(name string) string {
		return s.files.render(name, map[string]any{"Schema": s.schema, "MostBytes": mostPayload, "Durable": durable})
	}
	s.frame, s.mark, s.markLate = text("frame.sql"), text("mark.sql"), text("mark_late.sql")
	s.release, s.clear, s.status = text("release.sql"), text("clear.sql"), text("status.sql")
	s.renew, s.namespaces, s.payload, s.due = text("renew.sql"), text("namespaces.sql"), text("payload.sql"), text("due.sql")
	s.waiting, s.held, s.identity = text("waiting.sql"), text("held.sql"), text("identity.sql")
	s.unmarked, s.gate = text("unmarked.sql"), text("gate.sql")
	s.parkedIDs, s.parkedPayload, s.parkedReasons = text("parked_ids.sql"), text("parked_payload.sql"), text("parked_reasons.sql")
	both := func(name, do string) variants {
		data := func(indexed bool) map[string]any {
			return map[string]any{"Schema": s.schema, "Indexed": indexed, "Do": do}
		}
		return variants{indexed: s.files.render(name, data(true)), plain: s.files.render(name, data(false))}
	}
	s.parkedFind = both("parked_find.sql", "")
	s.parkedRetry, s.parkedDiscard = both("parked_end.sql", "retry"), both("parked_end.sql", "discard")
	s.parkedBehind, s.deadLetter = both("parked_end.sql", "behind"), both("parked_end.sql", "dead-letter")
	return s
}

// claimText is the claim statement of one kind.
func (s statements) claimText(key claimKey) string {
	return s.files.render("claim.sql", map[string]any{
		"Schema": s.schema, "Rows": key.rows, "Looks": looks(key.rows), "Abandoned": key.abandoned, "Exact": key.exact, "Gated": key.gated, "MostMarks": relay.MostMarks,
		"Indexed": key.indexed, "MostInline": mostInline,
	})
}
