package monitor

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	pageScopes     = 15   // that the page shows unless asked for more
	pageScopesMost = 1000 // that it shows at most
)

// Query is which scopes a reader of the page wants to see.
type Query struct {
	Find  string // part of the tenant's name, in whichever case
	Order string // due, delayed, parked or name; else by age
	Limit int
}

// Page is what the page shows. Without details it names no tenant and no error, and the
// query has no effect on it.
type Page struct {
	About
	Uptime   float64    `json:"uptime_seconds"`
	Live     Condition  `json:"live"`
	Database Condition  `json:"database"`
	Broker   Condition  `json:"broker"`
	Pace     Pace       `json:"pace"`
	Counted  *float64   `json:"counted_seconds_ago"` // null before all scopes were counted once
	Totals   Counts     `json:"totals"`
	Capped   Capped     `json:"capped"`
	Scopes   PageScopes `json:"scopes"`
	Parked   []Parked   `json:"parked"`
}

// Capped tells that a total is more than the sum, since a scope's count reached the cap.
type Capped struct {
	Waiting bool `json:"waiting"`
	Parked  bool `json:"parked"`
}

// Condition is how something is, and for how long it has been so.
type Condition struct {
	OK    bool    `json:"ok"`
	Since float64 `json:"seconds"`
	Error string  `json:"error,omitempty"`
}

// PageScopes is the scopes of a page, the worst first.
type PageScopes struct {
	Configured int      `json:"configured"`
	Waiting    int      `json:"waiting"` // scopes that have something to deliver
	Found      int      `json:"found"`   // scopes that the query finds
	List       []posted `json:"list"`    // as many of those as the query asks for
}

// Page is what the page shows to a reader's query.
func (b *Board) Page(q Query) Page {
	now := time.Now()
	p := Page{About: b.about, Uptime: now.Sub(b.started).Seconds(), Pace: b.pace.view(now)}
	b.mu.RLock()
	defer b.mu.RUnlock()
	p.Live = b.condition(b.live, b.started)
	p.Database, p.Broker = b.condition(b.servers[0].err, b.servers[0].since), b.condition(b.servers[1].err, b.servers[1].since)
	p.Totals = b.totals()
	if !b.counted.IsZero() {
		ago := now.Sub(b.counted).Seconds()
		p.Counted = &ago
	}
	p.Scopes.Configured = len(b.scopes)
	for i := range b.scopes {
		c := &b.scopes[i].Counts
		if c.Waiting() > 0 {
			p.Scopes.Waiting++
		}
		p.Capped.Waiting = p.Capped.Waiting || max(c.Due, c.InFlight, c.Delayed) >= b.about.CountCap
		p.Capped.Parked = p.Capped.Parked || c.Parked >= b.about.CountCap
	}
	if b.about.Details {
		p.Scopes.Found, p.Scopes.List = b.find(q)
		p.Parked = b.parked
	}
	return p
}

func (b *Board) condition(err error, since time.Time) Condition {
	c := Condition{OK: err == nil, Since: time.Since(since).Seconds()}
	if err != nil && b.about.Details {
		c.Error = err.Error()
	}
	return c
}

// find gives the scopes that a query asks for, and how many there would be.
func (b *Board) find(q Query) (found int, list []posted) {
	part := strings.ToLower(q.Find)
	var match []*posted
	for i := range b.scopes {
		if s := &b.scopes[i]; part == "" || strings.Contains(strings.ToLower(s.name()), part) {
			match = append(match, s)
		}
	}
	slices.SortStableFunc(match, order(q.Order))
	limit := min(cmp.Or(max(q.Limit, 0), pageScopes), pageScopesMost, len(match))
	list = make([]posted, limit)
	for i := range list {
		list[i] = *match[i]
	}
	return len(match), list
}

// name is how the page calls a scope.
func (s *posted) name() string {
	if s.Tenant == nil {
		return "non-tenant scope"
	}
	return *s.Tenant
}

// order compares scopes, the worst first: by what is asked for, and then by age and number.
func order(by string) func(x, y *posted) int {
	first := map[string]func(s *posted) int{
		"due":     func(s *posted) int { return s.Due },
		"delayed": func(s *posted) int { return s.Delayed },
		"parked":  func(s *posted) int { return s.Parked },
	}[by]
	return func(x, y *posted) int {
		if by == "name" {
			return strings.Compare(x.name(), y.name())
		}
		if first != nil {
			if c := cmp.Compare(first(y), first(x)); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(y.OldestDue, x.OldestDue), cmp.Compare(y.Waiting(), x.Waiting()), cmp.Compare(y.Parked, x.Parked))
	}
}
