package verify

import (
	"testing"

	"github.com/google/uuid"
)

func TestEachOperationIsInOnePart(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 1, 2, 7, 1000, 1 << 16, 1 << 20} {
		all := parts(n)
		if n <= 1<<16 && len(all) != max(n, 1) {
			t.Errorf("%d parts, want %d", len(all), n)
		}
		next := 0
		for _, p := range all {
			if int(p.from) != next || p.to < p.from {
				t.Fatalf("part %v of %d, want it from %d", p, n, next)
			}
			next = int(p.to) + 1
		}
		if next != 1<<16 {
			t.Errorf("%d parts end at %d", n, next)
		}
	}
}

func TestHalves(t *testing.T) {
	t.Parallel()
	for _, p := range []part{{0, 65535}, {3, 4}, {7, 9}} {
		h := p.halves()
		if h[0].from != p.from || h[1].to != p.to || h[0].to+1 != h[1].from || !p.divisible() {
			t.Errorf("halves of %v are %v", p, h)
		}
	}
	if (part{5, 5}).divisible() {
		t.Error("one bucket can be divided")
	}
}

// Ids that begin with the time fill all parts alike, and so do those that end alike.
func TestPartsAreOfLikeSize(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(i int) uuid.UUID{
		"version 4":  func(int) uuid.UUID { return uuid.New() },
		"version 7":  func(int) uuid.UUID { return uuid.Must(uuid.NewV7()) },
		"counted":    func(i int) uuid.UUID { return uuid.UUID{byte(i >> 8), byte(i)} },
		"other ends": func(i int) uuid.UUID { return uuid.UUID{14: byte(i >> 8), 15: byte(i)} },
	} {
		all := parts(4)
		counts := make([]int, len(all))
		for i := range 4000 {
			key := []byte(next(i).String())
			for n, p := range all {
				if p.holds(key) {
					counts[n]++
				}
			}
		}
		for _, n := range counts {
			if n < 800 || n > 1200 {
				t.Errorf("%s: parts hold %v of 4000", name, counts)
				break
			}
		}
	}
}

func TestKeysThatAreNoOperationsAreInTheFirstPart(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "customer-7"} {
		for i, p := range parts(3) {
			if p.holds([]byte(key)) != (i == 0) {
				t.Errorf("part %d of key %q: %t", i, key, p.holds([]byte(key)))
			}
		}
	}
}
