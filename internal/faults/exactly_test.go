package faults_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"outboxrelay/internal/moments"
	"outboxrelay/internal/relayproc"
)

// exactly is the environment of exactly-once mode, with a ledger of the test's own, for three instances.
func (s *scene) exactly() map[string]string {
	s.T.Helper()
	return map[string]string{
		"RELAY_DELIVERY": "exactly-once", "RELAY_INSTANCE": "0",
		"RELAY_TRANSACTIONAL_ID": s.Topic, "RELAY_LEDGER_TOPIC": s.Broker.Topic(s.T, 24, map[string]string{"cleanup.policy": "compact"}),
	}
}

// eachOnce fails unless consumers of committed records see so many events, each once and in order.
func (s *scene) eachOnce(want int) {
	s.T.Helper()
	s.Broker.AwaitCommitted(s.T, s.Topic)
	relayproc.ExactlyOnce(s.T, s.Events(), want)
}

// In exactly-once mode, killed at each moment of what the relay says: each event is there once. The same where only the connection
// is cut at that moment, so that the relay does not know what became of what it said.
func TestExactlyOnceAtEachMoment(t *testing.T) {
	t.Parallel()
	atEachMoment(t, moments.Transactions(), func(s *scene, m moments.Moment, watch *moments.Watch) {
		s.onceAfter(m, watch, true)
		another := &scene{Fixture: relayproc.New(s.T, relayproc.Standalone, s.Broker), acme: s.acme}
		another.onceAfter(m, watch, false)
	})
}

// onceAfter has a relay killed, or cut off, at a moment, and fails unless all events are there once in the end.
func (s *scene) onceAfter(m moments.Moment, watch *moments.Watch, kill bool) {
	s.T.Helper()
	env := s.Env("acme", s.exactly(), map[string]string{
		"RELAY_DATABASE_URL": s.watched(watch), "RELAY_KAFKA_CLIENT_ID": m.String(), "RELAY_WORKERS": "1",
	})
	s.inWait(m, watch, env, kill, func() { s.fillFor(m) })
	if kill {
		s.relay = relayproc.Start(s.T, env)
	}
	parked := 0
	if m.What == moments.Release {
		parked = 1 // for a fault of its own
	}
	s.Drained("next_attempt_at < 'infinity'")
	if n := s.CountRows("next_attempt_at = 'infinity'"); n != parked {
		s.T.Errorf("%d rows are parked, want %d", n, parked)
	}
	s.eachOnce(s.CountRows("true") - parked)
	s.ready() // before that a signal ends it at once
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
}

// inWait starts a relay and waits until its moment has come, which is about 60 events, and not about the ledger's first entry.
func (s *scene) inWait(m moments.Moment, watch *moments.Watch, env map[string]string, kill bool, fill func()) {
	s.T.Helper()
	started := make(chan *relayproc.Process, 1)
	act := func() {
		if p := <-started; kill {
			p.Kill()
		}
	}
	var trap *moments.Trap
	if m.What == moments.InitProducerID {
		trap = watch.Arm(m, act)
	}
	s.relay = relayproc.Start(s.T, env)
	started <- s.relay
	if trap == nil {
		s.ready()
		trap = watch.Arm(m, act)
	}
	fill()
	relayproc.Until(s.T, "the moment "+m.String(), func() error {
		select {
		case <-trap.Sprung():
			return nil
		default:
			return errNotYet
		}
	})
}

// fillFor writes events for which a moment will come, in one transaction.
func (s *scene) fillFor(m moments.Moment) {
	s.T.Helper()
	tx, err := s.Pool.Begin(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	if err := relayproc.App.Fill(s.T.Context(), tx, s.acme, 20, 3); err != nil {
		s.T.Fatal(err)
	}
	change := map[string]string{
		moments.Payloads: `update aksara_operation_outbox set payload = payload || '{"more": 1e70000}'`,
		moments.Release: `update aksara_operation_outbox set payload = payload - 'state_version'
			where id = (select max(id) from aksara_operation_outbox)`,
	}[m.What]
	if change != "" {
		_, err = tx.Exec(s.T.Context(), change)
	}
	if err = errors.Join(err, tx.Commit(s.T.Context())); err != nil {
		s.T.Fatal(err)
	}
}

// Many tenants with a little each, and several relays: each event is there once, and one transaction holds many tenants'.
func TestExactlyOnceManyTenants(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var tenants []string
	for i := range 200 {
		id := fmt.Sprintf("tenant-%03d", i)
		tenants = append(tenants, id)
		s.Fill(relayproc.Tenant(t, id), 3, 3)
	}
	mode := s.exactly()
	for i := range 2 {
		s.relay = relayproc.Start(t, s.Env(strings.Join(tenants, ","), mode, map[string]string{"RELAY_INSTANCE": strconv.Itoa(i), "RELAY_WORKERS": "2"}))
	}
	s.Drained("true")
	s.eachOnce(1800)
	if n := len(s.Broker.All(t, mode["RELAY_LEDGER_TOPIC"])); n > 600 {
		t.Errorf("%d transactions for 600 operations of 200 tenants, want several in one", n)
	}
}

// Two relays take themselves for the same one: slow, but each event is there once.
func TestExactlyOnceTwiceTheSameInstance(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Fill(s.acme, 100, 3)
	mode := s.exactly()
	relayproc.Start(t, s.Env("acme", mode))
	s.relay = relayproc.Start(t, s.Env("acme", mode))
	for range 10 {
		s.Fill(s.acme, 10, 3)
		s.Drained("true")
	}
	s.eachOnce(600)
}

// says waits until the relay's log has a text.
func (s *scene) says(p *relayproc.Process, text string) {
	s.T.Helper()
	relayproc.Until(s.T, "the relay to say "+text, func() error {
		if !strings.Contains(p.Log.String(), text) {
			return errNotYet
		}
		return nil
	})
}

// Another database has relays with the same prefix and ledger, by mistake. The first has made an entry for one slot only; the second,
// started while the first runs or after it has ended, names that slot and claims nothing by any, nor does it fence the first. It goes
// on with a prefix of its own.
func TestExactlyOnceOnePrefixForTwoDatabases(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"while the first runs": true, "after the first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := newScene(t), newScene(t)
			mode := s.exactly()
			s.Fill(s.acme, 10, 3)
			s.run(mode, oneWorker)
			s.Drained("true")
			s.ready()
			if !runs {
				s.stop()
			}

			other.Fill(other.acme, 10, 3)
			other.Topic = s.Topic
			// Of another instance: it has no slot of which there is an entry.
			for _, instance := range []string{"0", "1"} {
				other.run(mode, shortLease, map[string]string{"RELAY_INSTANCE": instance, "RELAY_WORKERS": "4", "RELAY_HTTP_DETAILS": "true"})
				other.unready("nothing is claimed by any slot: slot " + mode["RELAY_TRANSACTIONAL_ID"] + "-0-0: the ledger's last entry is of other rows, in ")
				other.says(other.relay, "a slot can't be used, so nothing is claimed by it")
				other.says(other.relay, "slot "+mode["RELAY_TRANSACTIONAL_ID"]+"-0-0: the ledger's last entry is of other rows")
				relayproc.Until(t, "all slots to be refused", func() error {
					if _, body := other.relay.Get("/metrics"); !strings.Contains(body, "\nrelay_slots{state=\"stuck\"} 4\n") {
						return errNotYet
					}
					return nil
				})
				if n := other.CountRows("claimed_by is not null or export_attempts > 0 or exported_at is not null"); n > 0 {
					t.Errorf("%d rows were claimed", n)
				}
				other.relay.Kill()
			}
			if runs {
				s.Fill(s.acme, 10, 3)
				s.Drained("true")
				s.quiet(s.relay)
				s.clean()
			}

			other.run(mode, map[string]string{"RELAY_TRANSACTIONAL_ID": mode["RELAY_TRANSACTIONAL_ID"] + "-other"})
			other.Drained("true")
			s.eachOnce(s.CountRows("true") + 30)
		})
	}
}

// Relays that serve different tenants of one database share a prefix. With numbers of their own they don't meet; with the same
// one each fences the other, and the log says so. Each event is there once either way.
func TestExactlyOnceOtherScopes(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"0", "1"} {
		t.Run("instance "+second, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			mode, globex := s.exactly(), relayproc.Tenant(t, "globex")
			mode["RELAY_LEDGER_TOPIC"] = s.Broker.Topic(t, 16, map[string]string{"cleanup.policy": "compact"})
			s.relay = relayproc.Start(t, s.Env("acme", mode, oneWorker))
			other := relayproc.Start(t, s.Env("globex", mode, oneWorker, map[string]string{"RELAY_INSTANCE": second}))
			s.ready()
			rounds := 0
			// A log tells of such trouble once a minute at most, and may have told of other trouble of the slot.
			relayproc.Within(t, 3*time.Minute, "each to have its turn", func() error {
				s.Fill(s.acme, 10, 3)
				s.Fill(globex, 10, 3)
				s.Drained("true")
				named := strings.Contains(s.relay.Log.String()+other.Log.String(), "if another relay has the same RELAY_INSTANCE, give it another")
				if rounds++; rounds < 10 || named != (second == "0") {
					return fmt.Errorf("after %d rounds a log names the number that two have: %t", rounds, named)
				}
				return nil
			})
			s.eachOnce(rounds * 60)
		})
	}
}

// The ledger is lost while claims are undecided: they are left alone, and the log says why.
func TestExactlyOnceLedgerLost(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	s.Fill(s.acme, 10, 3)
	s.DB.Exec(t, `update aksara_operation_outbox set claimed_by = $1 || '-0-0#0123456789abcdef', claim_expires_at = now() + interval '1 minute'`,
		mode["RELAY_TRANSACTIONAL_ID"])
	s.run(mode, map[string]string{"RELAY_WORKERS": "1"})
	s.says(s.relay, "the ledger has no entry of it although there are claims by it")
	if n := s.CountRows("claimed_by is null"); n > 0 {
		t.Errorf("%d rows were released", n)
	}
}

// Rows that a relay of the other mode held when it was killed: nobody can know whether their events were delivered, so nothing of
// their scope is claimed, the log says why, other scopes go on, and this one too when the claims have been settled.
func TestExactlyOnceForeignClaims(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Fill(s.acme, 5, 1)
	s.DB.Exec(t, `update aksara_operation_outbox set claimed_by = 'worker/0123456789abcdef', claim_expires_at = now() - interval '1 second'`)
	s.Fill(s.acme, 5, 1)
	s.Fill(relayproc.Tenant(t, "globex"), 5, 1)
	s.relay = relayproc.Start(t, s.Env("acme,globex", s.exactly(), shortLease))
	s.Drained("tenant_scope = 'globex'")
	s.says(s.relay, "another exporter works on the same rows")
	if n := s.CountRows("tenant_scope = 'acme' and (exported_at is not null or claimed_by like '%#%')"); n > 0 {
		t.Errorf("%d rows were claimed beside another exporter's", n)
	}
	s.eachOnce(5)
	s.DB.Exec(t, "update aksara_operation_outbox set claimed_by = null, claim_expires_at = null where exported_at is null")
	s.Drained("true")
	s.eachOnce(15)
}

// A tenant is taken out while its claim is undecided, since the relay was killed: another relay, which never served the tenant,
// does not touch the rows and claims nothing by any of its slots, until it is told of the tenant: then it settles them and goes on.
func TestExactlyOnceTenantTakenOut(t *testing.T) {
	t.Parallel()
	atEachMoment(t, []moments.Moment{{What: moments.EndTxn, Stage: moments.Done}}, func(s *scene, m moments.Moment, watch *moments.Watch) {
		mode := s.exactly()
		s.inWait(m, watch, s.Env("acme", mode, map[string]string{
			"RELAY_DATABASE_URL": s.watched(watch), "RELAY_KAFKA_CLIENT_ID": m.String(), "RELAY_WORKERS": "1",
		}), true, func() { s.fillFor(m) })
		s.Fill(relayproc.Tenant(s.T, "globex"), 10, 3)
		tenants := filepath.Join(s.T.TempDir(), "tenants")
		configure := func(list string) {
			if err := os.WriteFile(tenants, []byte(list), 0o644); err != nil {
				s.T.Fatal(err)
			}
		}
		configure("globex")
		s.relay = relayproc.Start(s.T, s.Env("", mode, map[string]string{"RELAY_TENANTS_FILE": tenants}))
		s.says(s.relay, "nothing is claimed by any slot: slot "+mode["RELAY_TRANSACTIONAL_ID"]+"-0-0: a claim that was committed holds rows of tenant")
		s.unready(broker)
		if n := s.CountRows("exported_at is null and claimed_by is not null"); n == 0 {
			s.T.Error("no row is claimed any more")
		}
		if n := s.CountRows("tenant_scope = 'globex' and export_attempts > 0"); n > 0 {
			s.T.Errorf("%d rows were claimed", n)
		}
		configure("acme\nglobex")
		s.Drained("true")
		s.eachOnce(90)
	})
}

// The database refuses to claim one tenant's rows. Others, which were claimed of in one transaction with it, go on, and it too
// when the database allows it.
func TestExactlyOnceTenantRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.DB.Exec(t, `create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
		create trigger refuse before update on aksara_operation_outbox for each row
			when (old.tenant_scope = 'acme') execute function refuse()`)
	tenants := []string{"acme", "globex", "initech", "umbrella"}
	for _, id := range tenants {
		s.Fill(relayproc.Tenant(t, id), 20, 3)
	}
	s.relay = relayproc.Start(t, s.Env(strings.Join(tenants, ","), s.exactly(), map[string]string{"RELAY_WORKERS": "2"}))
	s.Drained("tenant_scope <> 'acme'")
	s.eachOnce(180)
	s.says(s.relay, "not this one")
	s.DB.Exec(t, "drop trigger refuse on aksara_operation_outbox")
	s.Drained("true")
	s.eachOnce(240)
}
