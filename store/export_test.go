package store

import (
	"context"
	"time"

	"outboxrelay/relay"
)

// OpenWith is Open with time-outs of calls, and of their statements on the server, as
// given, that looks for the supporting index before each claim.
func OpenWith(cfg Config, call, server time.Duration) (*Store, error) {
	return open(cfg, timings{call: call, server: server, lock: server})
}

// Indexed is whether the next claim will use the supporting index.
func (s *Store) Indexed(ctx context.Context) (bool, error) { return s.indexed(ctx) }

// Frame is the statement that each transaction begins with.
func (s *Store) Frame() string { return s.sql.frame }

// ClaimText is the statement of a claim that begins at the beginning.
func (s *Store) ClaimText(req relay.Request, indexed bool) string {
	return s.claimText(claimKey{rows: req.Rows, abandoned: req.Abandoned, exact: req.Exact, indexed: indexed})
}

// GateText is the statement by which a claim keeps others away, and the number for it.
func (s *Store) GateText(req relay.Request) (text string, number int64) {
	return s.sql.gate, s.gate(req.Namespace, req.Scope)
}

// SettleTexts are the statements that settle claims.
func (s *Store) SettleTexts() (mark, late, release string) {
	return s.sql.mark, s.sql.markLate, s.sql.release
}

// DueText is the look at several scopes.
func (s *Store) DueText() string { return s.sql.due }

// WaitingText is the look whether several scopes have rows.
func (s *Store) WaitingText() string { return s.sql.waiting }
