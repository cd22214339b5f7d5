package relaytest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// Outbox is a store under test, and the way to its rows behind its back.
type Outbox interface {
	relay.Store

	// Add appends the next n events of an operation, due at once, and makes the
	// operation if there is none yet.
	Add(namespace string, scope envelope.Scope, operation uuid.UUID, n int)
	// Rows gives a scope's rows, by ascending id.
	Rows(scope envelope.Scope) []Stored
	// Seize claims a row as another exporter would, whatever its state.
	Seize(id int64, by string, lease time.Duration)
	// Now is the clock that due times and leases are judged by.
	Now() time.Time
	// Pass lets time pass for due times and leases.
	Pass(d time.Duration)
}

// ExerciseStore holds implementations of [relay.Store] against its comments. open
// gives each case an empty outbox of its own.
func ExerciseStore(t *testing.T, open func(t *testing.T) Outbox) {
	t.Helper()
	cases := map[string]func(*storeCase){
		"claim/nothing to claim":                    nothingToClaim,
		"claim/what a claim holds":                  whatAClaimHolds,
		"claim/row limit":                           rowLimit,
		"claim/byte budget":                         byteBudget,
		"claim/scopes and namespaces are apart":     scopesAreApart,
		"claim/ended context":                       endedContext,
		"lease/keeps others out until it ends":      leaseKeepsOthersOut,
		"lease/of another exporter":                 leaseOfAnotherExporter,
		"lease/marks of those who tried again":      abandonedAgain,
		"lease/abandoned rows come on their own":    abandonedApart,
		"lease/fewer abandoned rows each time":      abandonedFewer,
		"lease/no abandoned rows alone":             abandonedWary,
		"order/an operation in flight is left":      operationInFlight,
		"order/behind a delayed row":                behindADelayedRow,
		"order/behind a parked row":                 behindAParkedRow,
		"order/interleaved operations":              interleavedOperations,
		"settle/exported":                           settleExported,
		"settle/delayed":                            settleDelayed,
		"settle/given back":                         settleGivenBack,
		"settle/parked":                             settleParked,
		"settle/mixed":                              settleMixed,
		"settle/again":                              settleAgain,
		"settle/dead-lettered":                      settleDeadLettered,
		"settle/dead-lettered after a take-over":    settleLostLetter,
		"settle/long error text":                    settleLongText,
		"settle/after the lease, not taken over":    settleExpired,
		"settle/after a take-over, failed":          settleLostFailure,
		"settle/after a take-over, delivered":       settleLostSuccess,
		"settle/after somebody else's export":       settleExportedByOther,
		"due/first rows of several scopes":          dueOfSeveral,
		"due/ended context":                         dueEnded,
		"renew/a new lease":                         renewLease,
		"renew/what is lost":                        renewLost,
		"several/claims and settlements":            severalScopes,
		"several/ended context":                     severalEnded,
		"concurrent/each row is in one claim alone": concurrentClaims,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(&storeCase{T: t, outbox: open(t), scope: tenant(t, "acme"), seen: map[string]bool{}})
		})
	}
}

const (
	namespace = "orders"
	lease     = 30 * time.Second
	// slack is what a clock reading may be off by: the time that a call takes.
	slack = 10 * time.Second
)

// storeCase is one case's outbox and the steps that cases are made of.
type storeCase struct {
	*testing.T
	outbox Outbox
	scope  envelope.Scope
	seen   map[string]bool // tokens
}

func tenant(t *testing.T, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// operation makes an operation with n events.
func (c *storeCase) operation(n int) uuid.UUID {
	id := uuid.New()
	c.outbox.Add(namespace, c.scope, id, n)
	return id
}

// request is for a claim of everything.
func (c *storeCase) request() relay.Request {
	return relay.Request{
		Namespace: namespace, Scope: c.scope, Token: "worker/" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16],
		Lease: lease, Rows: 1000, Bytes: 1 << 20,
	}
}

// claim makes a claim, and checks what holds for every claim.
func (c *storeCase) claim(change ...func(*relay.Request)) relay.Claim {
	c.Helper()
	req := c.request()
	for _, f := range change {
		f(&req)
	}
	claim, err := c.outbox.Claim(c.Context(), req)
	if err != nil {
		c.Fatalf("claim: %v", err)
	}
	if claim.Scope != req.Scope || claim.Token != req.Token {
		c.Errorf("claim is of %s under %q, want %s under %q", claim.Scope, claim.Token, req.Scope, req.Token)
	}
	if len(claim.Rows) > req.Rows || len(claim.Rows) > claim.Seen {
		c.Errorf("claim holds %d rows: asked for %d, saw %d", len(claim.Rows), req.Rows, claim.Seen)
	}
	for i := 1; i < len(claim.Rows); i++ {
		if claim.Rows[i-1].ID >= claim.Rows[i].ID {
			c.Errorf("rows %d and %d of the claim are not in ascending order", i-1, i)
		}
	}
	return claim
}

// claimed makes a claim, and checks how many rows it holds.
func (c *storeCase) claimed(want int, change ...func(*relay.Request)) relay.Claim {
	c.Helper()
	claim := c.claim(change...)
	if len(claim.Rows) != want {
		c.Fatalf("claim holds %d rows (saw %d, pushed %d), want %d", len(claim.Rows), claim.Seen, claim.Pushed, want)
	}
	return claim
}

// abandoned makes a claim of rows that were left behind, and checks how many it holds.
func (c *storeCase) abandoned(want int) relay.Claim {
	c.Helper()
	req := c.request()
	req.Abandoned = true
	claim, err := c.outbox.Claim(c.Context(), req)
	if err != nil {
		c.Fatalf("claim of an abandoned row: %v", err)
	}
	if len(claim.Rows) != want {
		c.Fatalf("claim of abandoned rows holds %d, want %d", len(claim.Rows), want)
	}
	if want > 0 && strings.TrimRight(claim.Token, "!") != req.Token {
		c.Errorf("claim is under %q, want %q with marks", claim.Token, req.Token)
	}
	return claim
}

// settle writes one verdict for each row of the claim, and checks what became of them.
func (c *storeCase) settle(claim relay.Claim, want relay.Status, verdicts ...relay.Verdict) []relay.Result {
	c.Helper()
	for i := range verdicts {
		verdicts[i].Row = &claim.Rows[i]
	}
	results, err := c.outbox.Settle(c.Context(), claim, verdicts)
	if err != nil {
		c.Fatalf("settle: %v", err)
	}
	if len(results) != len(verdicts) {
		c.Fatalf("settle gave %d results for %d verdicts", len(results), len(verdicts))
	}
	for i, r := range results {
		if r.Status != want {
			c.Errorf("verdict %d ended with status %d, want %d", i, r.Status, want)
		}
	}
	return results
}

// row gives the scope's row with index i.
func (c *storeCase) row(i int) Stored {
	c.Helper()
	rows := c.outbox.Rows(c.scope)
	if i >= len(rows) {
		c.Fatalf("the outbox holds %d rows, want more than %d", len(rows), i)
	}
	return rows[i]
}

// free checks that no claim is on a row.
func (c *storeCase) free(r Stored) {
	c.Helper()
	if r.ClaimedBy != "" || !r.Expires.IsZero() {
		c.Errorf("row %d carries a claim of %q until %s, want none", r.ID, r.ClaimedBy, r.Expires)
	}
}

// dueIn checks when a row comes due.
func (c *storeCase) dueIn(r Stored, want time.Duration) {
	c.Helper()
	in := r.Due.Sub(c.outbox.Now())
	if r.Parked || in > want+slack || in < want-slack {
		c.Errorf("row %d is due in %s (parked %t), want %s", r.ID, in, r.Parked, want)
	}
}
