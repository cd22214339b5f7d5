package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

// node is a step of a plan as the server tells it, with what its run cost.
type node struct {
	Type     string  `json:"Node Type"`
	Index    string  `json:"Index Name"`
	Relation string  `json:"Relation Name"`
	Subplan  string  `json:"Subplan Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Plans    []node
}

// explain runs the claim of a request in a transaction that is rolled back.
func (f *fixture) explain(t testing.TB, req relay.Request) node {
	t.Helper()
	return f.explainText(t, req.Scope, f.ClaimText(req, f.indexed), claimArguments(req))
}

// explainText runs a statement in a transaction of a scope that is rolled back.
func (f *fixture) explainText(t testing.TB, scope envelope.Scope, text string, args []any) node {
	t.Helper()
	return explainIn(t, f.frame(t, scope), text, args)
}

// explainIn runs a statement in a transaction, which it rolls back.
func explainIn(t testing.TB, tx pgx.Tx, text string, args []any) node {
	t.Helper()
	var answer []byte
	if err := tx.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+text, args...).Scan(&answer); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(answer, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// buffers is how many blocks a plan has looked at.
func (n node) buffers() int { return n.Hit + n.Read }

// all lists a plan's nodes.
func (n node) all() []node {
	list := []node{n}
	for _, child := range n.Plans {
		list = append(list, child.all()...)
	}
	return list
}

// part finds the nodes of a named subplan.
func (n node) part(name string) []node {
	for _, child := range n.all() {
		if child.Subplan == name {
			return child.all()
		}
	}
	return nil
}

// check makes sure that a claim of so many rows was a walk along the pending index
// that ended with the last row it locked, and that every other look was a probe.
func (n node) check(t testing.TB, f *fixture, rows int) {
	t.Helper()
	due := n.part("CTE due")
	walk := slices.IndexFunc(due, func(n node) bool { return n.Index == "idx_aksara_operation_outbox_pending" })
	if walk < 0 || due[walk].Type != "Index Scan" || int(due[walk].Rows) != rows {
		t.Errorf("the claim is no walk over %d rows of the pending index: %s", rows, n)
	}
	probe := "aksara_operation_transitions_operation_id_state_version_key"
	if f.indexed {
		probe = "relay_outbox_operation"
	}
	if !slices.ContainsFunc(n.part("CTE ready"), func(n node) bool { return n.Index == probe && n.Loops > 0 }) {
		t.Errorf("the first rows of an operation are not found by a probe of %s: %s", probe, n)
	}
	for _, step := range n.all() {
		if step.Relation != "" && !strings.HasPrefix(step.Type, "Index") && step.Type != "Tid Scan" && step.Type != "ModifyTable" {
			t.Errorf("the claim has a %s: %s", step.Type, n)
		}
		if step.Type == "Sort" && int(step.Rows) > rows {
			t.Errorf("the claim sorts %.0f rows: %s", step.Rows, n)
		}
	}
}

// String is the plan in short, on one line.
func (n node) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %s rows=%.0f loops=%.0f buffers=%d", n.Subplan, n.Type, n.Index, n.Rows, n.Loops, n.buffers())
	for _, child := range n.Plans {
		fmt.Fprintf(&b, " (%s)", child)
	}
	return b.String()
}
