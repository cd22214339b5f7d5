package relay

import (
	"errors"
	"sync"

	"outboxrelay/envelope"
)

// strangers keeps scopes from being claimed of while another kind of exporter holds rows of them,
// as far as a look at some scopes has told.
type strangers struct {
	mu     sync.Mutex
	scopes map[envelope.Scope]bool
}

func (r *Relay) keepFromStrangers(scopes []envelope.Scope, held []Held) {
	r.strangers.mu.Lock()
	defer r.strangers.mu.Unlock()
	now := map[envelope.Scope]bool{}
	for _, h := range held {
		if _, ok := slotOfToken(r.cfg.ExactlyOnce.Prefix, h.Token); !ok && !now[h.Scope] {
			now[h.Scope] = true
			r.observer.Trouble(Trouble{Kind: ForeignClaims, Scope: h.Scope, Err: errStranger})
		}
	}
	for _, scope := range scopes {
		switch before := r.strangers.scopes[scope]; {
		case now[scope] && !before:
			r.strangers.scopes[scope] = true
			r.scheduler.hold(scope)
		case !now[scope] && before:
			delete(r.strangers.scopes, scope)
			r.scheduler.letGo(scope)
		}
	}
}

var errStranger = errors.New("rows are claimed by another kind of exporter, or by relays with another RELAY_TRANSACTIONAL_ID: nobody here " +
	"can know what those have delivered, so nothing of the scope is claimed; stop them, and settle what they have left with relay ledger")
