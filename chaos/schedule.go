package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"outboxrelay/internal/moments"
)

const brokers = 3

// pace is the mean time between the beginnings of two faults.
type pace struct{ relays, servers time.Duration }

// fault is one of the schedule.
type fault struct {
	at      time.Duration  // after the start
	kind    int            // of kinds
	targets []int          // numbers of relays or brokers, from 1 on, ascending
	moment  moments.Moment // of kinds that strike at one
	lasts   time.Duration
}

// draw draws a schedule. The same arguments give the same schedule, always.
func draw(seed uint64, duration time.Duration, pace pace, relays int, instants []moments.Moment) []fault {
	r := rand.New(rand.NewPCG(seed, 0))
	ofRelays := func(k kind) bool { return k.site == relaySite }
	ofServers := func(k kind) bool { return k.site != relaySite }
	all := slices.Concat(
		deal(r, deck(ofRelays), duration, pace.relays, relays, instants),
		deal(r, deck(ofServers), duration, pace.servers, relays, instants),
	)
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return all
}

// deck holds some kinds, each as often as its share.
func deck(which func(kind) bool) (cards []int) {
	for i, k := range kinds {
		if which(k) {
			cards = append(cards, slices.Repeat([]int{i}, k.share)...)
		}
	}
	return cards
}

// deal gives faults at random times. It goes through the shuffled deck again and again, so that no kind is left out for long.
func deal(r *rand.Rand, cards []int, duration, every time.Duration, relays int, instants []moments.Moment) (faults []fault) {
	next := len(cards)
	left := map[int][]moments.Moment{} // of each kind, to be gone through
	for at := between(r, every/2, every*3/2); at < duration; at += between(r, every/2, every*3/2) {
		if next == len(cards) {
			r.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
			next = 0
		}
		k := kinds[cards[next]]
		f := fault{at: at, kind: cards[next], targets: aim(r, k, relays), lasts: between(r, k.least, k.most)}
		if k.atMoment != nil {
			if len(left[f.kind]) == 0 {
				for _, i := range r.Perm(len(instants)) {
					if k.atMoment(instants[i]) {
						left[f.kind] = append(left[f.kind], instants[i])
					}
				}
			}
			f.moment, left[f.kind] = left[f.kind][0], left[f.kind][1:]
		}
		faults = append(faults, f)
		next++
	}
	return faults
}

// aim draws what a fault hits.
func aim(r *rand.Rand, k kind, relays int) (targets []int) {
	there := 1
	switch k.site {
	case relaySite, linkSite:
		there = relays
	case brokerSite, routeSite:
		there = brokers
	}
	n := k.counts[r.IntN(len(k.counts))]
	if n == 0 {
		n = there
	}
	for _, i := range r.Perm(there)[:n] {
		targets = append(targets, i+1)
	}
	slices.Sort(targets)
	return targets
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// holds are the things that the fault has for itself: no other fault with one of them goes on at the same time.
func (f fault) holds(relays int) (things []string) {
	add := func(prefix string, numbers ...int) {
		for _, n := range numbers {
			things = append(things, fmt.Sprint(prefix, n))
		}
	}
	switch kinds[f.kind].site {
	case relaySite:
		add("relay ", f.targets...)
	case linkSite:
		add("link ", f.targets...)
	case databaseSite:
		for n := range relays {
			add("link ", n+1)
		}
	case brokerSite:
		// One such fault at a time, so that never more brokers are away than the fault says.
		add("broker ", f.targets...)
		things = append(things, "brokers")
	case routeSite:
		add("broker ", f.targets...)
	}
	slices.Sort(things) // who takes several takes them in one order, and no two wait for each other
	return things
}

// String says what is done to whom.
func (f fault) String() string {
	k := kinds[f.kind]
	var numbers []string
	for _, n := range f.targets {
		numbers = append(numbers, fmt.Sprint(n))
	}
	list := strings.Join(numbers, ", ")
	switch k.site {
	case relaySite:
		if k.atMoment != nil {
			list += ", " + f.moment.String()
		}
		return fmt.Sprintf("%s (relay %s)", k.name, list)
	case linkSite:
		return fmt.Sprintf("%s (of relay %s)", k.name, list)
	case brokerSite, routeSite:
		return fmt.Sprintf("%s (broker %s)", k.name, list)
	default:
		return k.name
	}
}
