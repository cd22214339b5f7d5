package store

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/relay"
)

const (
	// backlogReaders is how many scopes are counted at once.
	backlogReaders = 4
	// backlogLines is how many scopes are told of one by one.
	backlogLines = 100
)

// Backlog tells how many events wait in each scope, one finding a scope for up to 100
// scopes; of more, those where something waits come first. A scope where nothing waits
// in the namespace, but something in another one, is a warning: the namespace may be
// wrong.
func (s *Store) Backlog(ctx context.Context, namespace string, scopes []envelope.Scope) []relay.Finding {
	each := make([]backlog, len(scopes))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(backlogReaders, len(scopes)) {
		readers.Go(func() {
			for i := range next {
				each[i] = s.backlog(ctx, namespace, scopes[i])
			}
		})
	}
	for i := range scopes {
		next <- i
	}
	close(next)
	readers.Wait()
	return summarise(namespace, each)
}

// backlog is how one scope stands.
type backlog struct {
	scope  envelope.Scope
	status Status
	others []string // namespaces in which events wait, if none does in the right one
	err    error
}

func (s *Store) backlog(ctx context.Context, namespace string, scope envelope.Scope) backlog {
	b := backlog{scope: scope}
	if b.status, b.err = s.Status(ctx, namespace, scope); b.err == nil && b.waiting() == 0 {
		b.others, b.err = s.otherNamespaces(ctx, namespace, scope)
	}
	return b
}

func (b backlog) waiting() int {
	return b.status.Due + b.status.InFlight + b.status.Delayed + b.status.Parked
}

// otherNamespaces names up to three other namespaces among the first unexported rows
// of a scope.
func (s *Store) otherNamespaces(ctx context.Context, namespace string, scope envelope.Scope) (names []string, err error) {
	err = s.inScope(ctx, scope, func(b *pgx.Batch) {
		b.Queue(s.sql.namespaces, scope.Stored(), namespace).Query(func(rows pgx.Rows) (err error) {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for other namespaces of %s: %w", scope, err)
	}
	return names, nil
}

// summarise makes the findings. Scopes that can't be counted are one finding, since
// they all have the same reason.
func summarise(namespace string, all []backlog) []relay.Finding {
	var f findings
	var quiet []backlog
	var failed, untold, more int
	for _, b := range all {
		switch {
		case b.err != nil:
			if failed++; failed == 1 {
				f.fail(backlogCheck, b.err.Error(), "see the other checks of the database")
			}
		case b.waiting() == 0 && len(b.others) == 0 && len(all) > backlogLines:
			quiet = append(quiet, b)
		case len(f) < backlogLines:
			b.tell(&f, namespace)
		default:
			untold, more = untold+1, more+b.waiting()
		}
	}
	for len(quiet) > 0 && len(f) < backlogLines {
		quiet[0].tell(&f, namespace)
		quiet = quiet[1:]
	}
	if failed > 1 {
		f.fail(backlogCheck, moreScopes(failed-1)+" could not be counted", "see the other checks of the database")
	}
	if untold > 0 {
		f.ok(backlogCheck, fmt.Sprintf("%s, in which at least %d events wait", moreScopes(untold), more))
	}
	if len(quiet) > 0 {
		f.ok(backlogCheck, moreScopes(len(quiet))+", in which nothing waits")
	}
	return f
}

func moreScopes(n int) string { return relay.Count(n, "more scope", "more scopes") }

const backlogCheck = "waiting events"

func (b backlog) tell(f *findings, namespace string) {
	if len(b.others) > 0 {
		quoted := make([]string, len(b.others))
		for i, name := range b.others {
			quoted[i] = fmt.Sprintf("%q", name)
		}
		f.warn(backlogCheck, fmt.Sprintf("%s: nothing waits in namespace %q, but events wait in %s", b.scope, namespace, strings.Join(quoted, ", ")),
			"make sure that RELAY_NAMESPACE is right: it is exact and case-sensitive")
		return
	}
	if b.waiting() == 0 {
		seen := fmt.Sprintf("%s: nothing waits in namespace %q", b.scope, namespace)
		if _, named := b.scope.Tenant(); named {
			// Nothing tells a tenant without events from one that is not there.
			seen += "; if something should, is the tenant's name right? It is exact and case-sensitive"
		}
		f.ok(backlogCheck, seen)
		return
	}
	s := b.status
	f.ok(backlogCheck, fmt.Sprintf("%s: %s due, %s in flight, %s delayed, %s parked",
		b.scope, capped(s.Due), capped(s.InFlight), capped(s.Delayed), capped(s.Parked)))
}

// capped is a count as people read it.
func capped(n int) string {
	if n >= CountCap {
		return fmt.Sprintf("%d+", CountCap)
	}
	return fmt.Sprint(n)
}
