package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// infinityYear is the year, or minus the year, that stands for infinity. No event may
// have it.
const infinityYear = 1_000_000

// instant is a timestamp as a time.
func instant(t pgtype.Timestamptz) time.Time {
	switch t.InfinityModifier {
	case pgtype.Infinity:
		return time.Date(infinityYear, 1, 1, 0, 0, 0, 0, time.UTC)
	case pgtype.NegativeInfinity:
		return time.Date(-infinityYear, 1, 1, 0, 0, 0, 0, time.UTC)
	default:
		return t.Time
	}
}

// timestamp is the reverse of instant.
func timestamp(t time.Time) pgtype.Timestamptz {
	switch t.Year() {
	case infinityYear:
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	case -infinityYear:
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	default:
		return pgtype.Timestamptz{Time: t, Valid: true}
	}
}
