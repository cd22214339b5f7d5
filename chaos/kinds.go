package main

import (
	"context"
	"time"

	"outboxrelay/internal/moments"
)

// site is what a kind of fault is done to.
type site int

const (
	relaySite    site = iota // one relay's process
	linkSite                 // relays' ways to the database
	databaseSite             // the database server
	brokerSite               // brokers' processes
	routeSite                // the clients' ways to brokers
)

// kind is a kind of fault.
type kind struct {
	name  string
	site  site
	share int // how often it is dealt, beside the others of its deck
	// counts are how many things it may hit at once; 0 stands for all.
	counts      []int
	least, most time.Duration // between its beginning and its end
	begin, end  action
	kills       bool // it is kill -9 of a relay
	// atMoment is of kinds that strike at a moment: at which. They begin when it comes, and are left out if it does not.
	atMoment func(moments.Moment) bool
}

// action does its part of a fault.
type action func(context.Context, *stage, fault) error

const (
	// lease and deliveryTimeout are the relays' settings: the shortest lease that goes with the time-out.
	lease           = 11 * time.Second
	deliveryTimeout = 2 * time.Second

	// delay is how much later each packet of a delayed connection comes, more or less.
	delay = 400 * time.Millisecond
)

// kinds are all kinds of faults, in the order of the report.
var kinds = []kind{
	{name: "relay killed, started at once", site: relaySite, share: 5, counts: one,
		begin: killRelay, end: startRelay, kills: true},
	{name: "relay killed, started later", site: relaySite, share: 3, counts: one, least: 2 * time.Second, most: 8 * time.Second,
		begin: killRelay, end: startRelay, kills: true},
	{name: "relay killed at a chosen moment", site: relaySite, share: 5, counts: one, most: time.Second,
		begin: killAtMoment, end: startRelay, kills: true, atMoment: anyMoment},
	{name: "relay frozen beyond its lease", site: relaySite, share: 2, counts: one, least: lease + time.Second, most: lease + 7*time.Second,
		begin: freezeRelay, end: thawRelay},
	{name: "relay frozen, what it says held back until after its lease", site: relaySite, share: 1, counts: one, least: lease + 4*time.Second, most: lease + 8*time.Second,
		begin: freezeAtMoment, end: letGo, atMoment: decisive},
	{name: "relay stopped and started", site: relaySite, share: 2, counts: one, most: 2 * time.Second,
		begin: stopRelay, end: startRelay},

	{name: "database restarted", site: databaseSite, share: 1, counts: one,
		begin: restartDatabase, end: nothing},
	{name: "database crashed", site: databaseSite, share: 1, counts: one, most: 6 * time.Second,
		begin: crashDatabase, end: recoverDatabase},
	{name: "database connections cut", site: linkSite, share: 1, counts: oneOrAll, most: 4 * time.Second,
		begin: onLinks((*proxy).cut), end: onLinks((*proxy).open)},
	{name: "database connections delayed", site: linkSite, share: 1, counts: oneOrAll, least: 2 * time.Second, most: 8 * time.Second,
		begin: onLinks((*proxy).delay), end: onLinks((*proxy).clear)},
	{name: "database connections blackholed", site: linkSite, share: 1, counts: oneOrAll, least: 2 * time.Second, most: lease + 4*time.Second,
		begin: onLinks((*proxy).blackhole), end: onLinks((*proxy).clear)},
	{name: "database connections held, then let go on", site: linkSite, share: 1, counts: oneOrAll, least: 2 * time.Second, most: lease + 4*time.Second,
		begin: onLinks((*proxy).hold), end: onLinks((*proxy).clear)},

	{name: "broker killed", site: brokerSite, share: 2, counts: one, most: 8 * time.Second,
		begin: killBrokers, end: startBrokers},
	{name: "two of three brokers killed", site: brokerSite, share: 1, counts: []int{2}, least: 4 * time.Second, most: 12 * time.Second,
		begin: killBrokers, end: startBrokers},
	{name: "broker stopped gracefully", site: brokerSite, share: 1, counts: one, most: 4 * time.Second,
		begin: stopBrokers, end: startBrokers},
	{name: "broker connections cut", site: routeSite, share: 1, counts: oneOrAll, most: 4 * time.Second,
		begin: onRoutes((*proxy).cut), end: onRoutes((*proxy).open)},
	{name: "broker connections delayed", site: routeSite, share: 1, counts: oneOrAll, least: 2 * time.Second, most: 8 * time.Second,
		begin: onRoutes((*proxy).delay), end: onRoutes((*proxy).clear)},
	{name: "broker connections blackholed", site: routeSite, share: 1, counts: oneOrAll, least: 2 * time.Second, most: 8 * time.Second,
		begin: onRoutes((*proxy).blackhole), end: onRoutes((*proxy).clear)},
	{name: "broker connections held, then let go on", site: routeSite, share: 1, counts: oneOrAll, least: 2 * time.Second, most: 8 * time.Second,
		begin: onRoutes((*proxy).hold), end: onRoutes((*proxy).clear)},
}

func anyMoment(moments.Moment) bool { return true }

// decisive is true when something leaves the relay that delivers events.
func decisive(m moments.Moment) bool {
	return m.Stage == moments.Sent && (m.What == moments.Produce || m.What == moments.EndTxn)
}

var (
	one      = []int{1}
	oneOrAll = []int{1, 1, 0}
)
