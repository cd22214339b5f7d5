package verify

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// chance is a relay at work, by chance: crashes between delivery and mark, discards, pruning, retention.
type chance struct {
	*world
	*rand.Rand
	operations []uuid.UUID
	versions   map[uuid.UUID]int64
}

func newChance(t *testing.T, seed uint64) *chance {
	c := &chance{world: newWorld(t), Rand: rand.New(rand.NewPCG(seed, 1)), versions: map[uuid.UUID]int64{}}
	for range 1 + c.IntN(12) {
		var id uuid.UUID
		for i := range id {
			id[i] = byte(c.IntN(256))
		}
		c.operations = append(c.operations, id)
	}
	for range 40 + c.IntN(200) {
		c.clock = c.clock.Add(time.Duration(c.IntN(1200)) * time.Second)
		c.step(c.IntN(len(c.operations)))
	}
	return c
}

// step does something to one operation.
func (c *chance) step(n int) {
	operation, scope := c.operations[n], n%len(c.scopes)
	rows := slices.DeleteFunc(slices.Clone(c.rows), func(r *row) bool { return r.operation != operation })
	due := slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return r.state != waiting })
	switch chance := c.IntN(20); {
	case chance < 8 || len(rows) == 0:
		c.versions[operation]++
		c.write(scope, operation, c.versions[operation])
	case chance < 17 && len(due) > 0:
		c.claim(due[:1+c.IntN(len(due))])
	case chance == 17 && len(due) > 0:
		due[0].state, due[0].exportedAt = givenUp, c.clock
	case chance > 17 && rows[0].state != waiting:
		c.prune(rows[0])
	}
}

// claim delivers rows and marks some, or none after a crash.
func (c *chance) claim(rows []*row) {
	for _, r := range rows {
		c.deliver(r)
	}
	marked := c.IntN(len(rows) + 1)
	if c.IntN(3) > 0 {
		marked = len(rows)
	}
	begun := c.clock
	c.clock = c.clock.Add(time.Duration(c.IntN(300)) * time.Second)
	for _, r := range rows[:marked] {
		c.mark(r)
	}
	c.clock = begun
}

func TestNoFaultsByChance(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		c := newChance(t, seed)
		for partition := range int32(c.partitions) {
			if c.IntN(2) == 0 {
				c.trimmed[partition] = c.IntN(1 + len(c.records)/c.partitions)
			}
		}
		whole := c.verify(t, 1<<30, 0)
		if err := whole.Err(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		// Neither the number of passes nor parts that are too large make a difference.
		for passRecords, most := range map[int64]int{10: 0, 1 << 40: 20} {
			if some := c.verify(t, passRecords, most); !maps.Equal(found(some), found(whole)) ||
				some.Rows != whole.Rows || some.Records != whole.Records {
				t.Errorf("seed %d: in %d passes of %d found %v, in one %v", seed, some.Passes, most, found(some), found(whole))
			}
		}
	}
}

func TestPlantedFaultsByChance(t *testing.T) {
	t.Parallel()
	for name, test := range plants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				c := newChance(t, seed)
				c.topics = []string{"of-acme", "events", "events"}
				for _, r := range c.records {
					r.place.Topic = c.topics[c.scopeOf(&r.event)]
				}
				before := found(c.verify(t, 50, 0))
				test.plant(c.world, c.export(1, 4))
				result := c.verify(t, 50, 0)
				for kind, n := range test.want {
					if got := result.Find(kind).Count - before[kind]; got != n {
						t.Errorf("seed %d: %d more %s, want %d", seed, got, kind, n)
					}
				}
				if result.Err() == nil {
					t.Errorf("seed %d: no fault", seed)
				}
			}
		})
	}
}
