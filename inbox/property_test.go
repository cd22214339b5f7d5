package inbox_test

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"outboxrelay/envelope"
	"outboxrelay/inbox"
	"outboxrelay/internal/pgtest"
)

// Whatever comes in whatever order, the answers are those of a plain set of versions.
func TestAnswersAreThoseOfASet(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t, setup).Conn(t)
	rapid.Check(t, func(rt *rapid.T) {
		operation := uuid.New()
		seen := map[int64]bool{}
		newest := int64(0)
		for _, version := range rapid.SliceOfN(rapid.Int64Range(1, 12), 1, 30).Draw(rt, "versions") {
			want := inbox.Fresh
			if seen[version] {
				want = inbox.Duplicate
			} else if version < newest {
				want = inbox.Stale
			}
			expect(t, conn, event(t, envelope.NonTenant(), operation, version), want)
			seen[version] = true
			newest = max(newest, version)
		}
		if t.Failed() {
			rt.Fatal("a wrong answer")
		}
	})
}
