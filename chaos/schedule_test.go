package main

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"outboxrelay/internal/moments"
)

var quick = pace{relays: time.Second, servers: 2 * time.Second}

func TestSeedMakesTheSchedule(t *testing.T) {
	t.Parallel()
	const seed, relays = 42, 3
	a := draw(seed, 10*time.Minute, quick, relays, moments.All())
	if b := draw(seed, 10*time.Minute, quick, relays, moments.All()); !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave two schedules")
	}
	if b := draw(seed+1, 10*time.Minute, quick, relays, moments.All()); reflect.DeepEqual(a, b) {
		t.Error("two seeds gave the same schedule")
	}
}

func TestScheduleKeepsToItsLimits(t *testing.T) {
	t.Parallel()
	const duration = 10 * time.Minute
	for seed := range uint64(20) {
		for relays := 2; relays <= 4; relays++ {
			plan := draw(seed, duration, quick, relays, moments.All())
			times := make([]int, len(kinds))
			for i, f := range plan {
				times[f.kind]++
				k := kinds[f.kind]
				if i > 0 && f.at < plan[i-1].at {
					t.Errorf("seed %d: %v comes before the one before it", seed, f)
				}
				if f.at < 0 || f.at >= duration || f.lasts < k.least || f.lasts > k.most {
					t.Errorf("seed %d: %v at %v for %v", seed, f, f.at, f.lasts)
				}
				things := max(brokers, relays)
				if k.site == relaySite || k.site == linkSite {
					things = relays
				}
				if n := len(f.targets); n == 0 || !slices.IsSorted(f.targets) || f.targets[0] < 1 || f.targets[n-1] > things {
					t.Errorf("seed %d: %v aims at %v", seed, f, f.targets)
				}
			}
			for i, n := range times {
				if n == 0 {
					t.Errorf("seed %d: no %s in %v", seed, kinds[i].name, duration)
				}
			}
		}
	}
}

// Each deck is dealt to its end before anything comes again more often than its share.
func TestEveryKindComesBeforeTheDeckIsShuffledAgain(t *testing.T) {
	t.Parallel()
	servers := deck(func(k kind) bool { return k.site != relaySite })
	var dealt []int
	for _, f := range draw(7, time.Hour, quick, 3, moments.All()) {
		if kinds[f.kind].site != relaySite {
			dealt = append(dealt, f.kind)
		}
	}
	if len(dealt) < 2*len(servers) {
		t.Fatalf("%d faults in an hour", len(dealt))
	}
	for round := range 2 {
		cards := slices.Clone(dealt[round*len(servers):][:len(servers)])
		slices.Sort(cards)
		if !slices.Equal(cards, servers) {
			t.Errorf("round %d dealt %v of %v", round, cards, servers)
		}
	}
}

// Nothing but its own fault touches a thing, and a database that is away keeps its links to itself.
func TestWhatFaultsHold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		targets []int
		want    []string
	}{
		"relay killed, started at once": {[]int{2}, []string{"relay 2"}},
		"database connections cut":      {[]int{1, 3}, []string{"link 1", "link 3"}},
		"database crashed":              {[]int{1}, []string{"link 1", "link 2", "link 3"}},
		"two of three brokers killed":   {[]int{1, 3}, []string{"broker 1", "broker 3", "brokers"}},
		"broker connections blackholed": {[]int{2}, []string{"broker 2"}},
	}
	for name, c := range cases {
		f := fault{kind: slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }), targets: c.targets}
		if f.kind < 0 {
			t.Errorf("there is no kind %q", name)
			continue
		}
		if got := f.holds(3); !slices.Equal(got, c.want) {
			t.Errorf("%v holds %v, want %v", f, got, c.want)
		}
	}
}
