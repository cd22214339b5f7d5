package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"outboxrelay/internal/relayproc"
)

var oneWorker = map[string]string{"RELAY_WORKERS": "1"}

// crashUnmarked has a relay killed behind a commit and before its mark: 30 events are in the topic, and their rows claimed. The
// lease is over, and no relay runs.
func (s *scene) crashUnmarked(mode map[string]string) (claim string) {
	s.T.Helper()
	s.Fill(s.acme, 10, 3)
	letMarks := s.HoldMarks()
	s.run(mode, oneWorker)
	relayproc.Until(s.T, "a transaction", func() error { return unequal(30, len(s.Records())) })
	s.relay.Kill()
	letMarks()
	s.expire()
	if err := s.Pool.QueryRow(s.T.Context(), "select distinct claimed_by from aksara_operation_outbox where exported_at is null").Scan(&claim); err != nil {
		s.T.Fatal(err)
	}
	return claim
}

// expire ends the leases of all claims.
func (s *scene) expire() {
	s.T.Helper()
	s.DB.Exec(s.T, "update aksara_operation_outbox set claim_expires_at = now() - interval '1 second' where claimed_by is not null")
}

// replaceLedger deletes the ledger's topic and makes it anew.
func (s *scene) replaceLedger(mode map[string]string) {
	s.T.Helper()
	admin, ledger, compact := s.Broker.Admin(s.T), mode["RELAY_LEDGER_TOPIC"], "compact"
	if _, err := admin.DeleteTopic(s.T.Context(), ledger); err != nil {
		s.T.Fatal(err)
	}
	relayproc.Until(s.T, "a new ledger", func() error {
		_, err := admin.CreateTopic(s.T.Context(), 8, -1, map[string]*string{"cleanup.policy": &compact}, ledger)
		return err
	})
	relayproc.Until(s.T, "the broker to know it instead of the old one", func() error {
		ends, err := admin.ListEndOffsets(s.T.Context(), ledger)
		if err = errors.Join(err, ends.Error()); err != nil {
			return err
		}
		var records int64
		ends.Each(func(o kadm.ListedOffset) { records += o.Offset })
		if partitions := len(ends[ledger]); partitions != 8 || records > 0 {
			return fmt.Errorf("it has %d partitions and %d records", partitions, records)
		}
		return nil
	})
}

// fates are what relay ledger list says of each claim.
func (s *scene) fates(mode map[string]string) map[string]string {
	s.T.Helper()
	out, errs, status := relayproc.Command(s.T, s.Env("acme", mode), "ledger", "list", "--json")
	var claims []struct{ Claim, Fate, Error string }
	if err := json.Unmarshal([]byte(out), &claims); status != 0 || err != nil {
		s.T.Fatalf("relay ledger list: status %d, %v, %s%s", status, err, out, errs)
	}
	fates := map[string]string{}
	for _, c := range claims {
		fates[c.Claim] = c.Fate + c.Error
	}
	return fates
}

// wantFates fails unless relay ledger list says these fates of these claims, and of no others.
func (s *scene) wantFates(mode map[string]string, want map[string]string) {
	s.T.Helper()
	got := s.fates(mode)
	for claim, fate := range want {
		if got[claim] != fate {
			s.T.Errorf("fate of claim %s: %q, want %q", claim, got[claim], fate)
		}
	}
	if len(got) != len(want) {
		s.T.Errorf("%d claims are listed, want %d: %v", len(got), len(want), got)
	}
}

// ledger runs relay ledger, and fails unless it ends with a status and says something.
func (s *scene) ledger(mode map[string]string, status int, says string, args ...string) {
	s.T.Helper()
	out, errs, got := relayproc.Command(s.T, s.Env("acme", mode), append([]string{"ledger"}, args...)...)
	if got != status || !strings.Contains(out+errs, says) {
		s.T.Errorf("relay ledger %v: status %d, want %d and %q:\n%s%s", args, got, status, says, out, errs)
	}
}

// The ledger is deleted and made anew while a claim is undecided. The relay claims nothing by its slot and says why; it takes a person's
// word, with what that may cost, to send the events again or never. Then the relay goes on by itself.
func TestExactlyOnceLedgerMadeAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, word, says string
		times            int // that the events come which were committed
	}{
		{"release", "--may-duplicate", "released", 2},
		{"mark", "--may-lose", "marked", 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			mode := s.exactly()
			claim := s.crashUnmarked(mode)
			s.replaceLedger(mode)
			s.run(mode, oneWorker)
			s.says(s.relay, "the ledger has no entry of it although there are claims by it")
			s.unready(broker)
			s.Fill(s.acme, 10, 3)
			s.wantFates(mode, map[string]string{claim: "nobody knows: the ledger has no entry"})
			s.ledger(mode, 2, c.word, c.what, claim)
			if n := s.CountRows("claimed_by = $1", claim); n != 30 {
				t.Errorf("%d rows are held by the claim after a refusal, want 30", n)
			}
			if n := s.CountRows("claimed_by is null and exported_at is null"); n != 30 {
				t.Errorf("%d rows wait, want the 30 that were written since", n)
			}
			s.ledger(mode, 0, claim+": "+c.says, c.what, claim, c.word)
			s.Drained("true")
			s.wantFates(mode, nil)
			s.Broker.AwaitCommitted(t, s.Topic)
			times := relayproc.InOrder(t, s.Events())
			total := 0
			for _, n := range times {
				total += n
			}
			if len(times) != 60 || total != 30*c.times+30 {
				t.Errorf("%d events came %d times, want 60 of which 30 come %d times", len(times), total, c.times)
			}
		})
	}
}

// Of what the ledger tells, a person's word changes nothing: relays settle it.
func TestExactlyOnceLedgerTells(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	committed := s.crashUnmarked(mode)
	s.Fill(s.acme, 5, 3)
	aborted := mode["RELAY_TRANSACTIONAL_ID"] + "-0-0#0123456789abcdef"
	s.DB.Exec(t, "update aksara_operation_outbox set claimed_by = $1, claim_expires_at = now() - interval '1 second' where claimed_by is null", aborted)
	s.wantFates(mode, map[string]string{committed: "committed", aborted: "not committed"})
	s.ledger(mode, 1, "the ledger says that it was committed: a relay that runs settles it so", "release", committed, "--may-duplicate")
	s.ledger(mode, 1, "the ledger says that it was not committed", "mark", aborted, "--may-lose")
	if n := s.CountRows("exported_at is null and claimed_by is not null"); n != 45 {
		t.Errorf("%d rows are claimed, want all 45", n)
	}
	s.run(mode, oneWorker)
	s.Drained("true")
	s.eachOnce(45)
}

// What another exporter holds can't be settled while its lease runs. Then it can, and its scope is served again.
func TestExactlyOnceForeignClaimIsReleased(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mode := s.exactly()
	const claim = "worker/0123456789abcdef"
	s.Fill(s.acme, 10, 3)
	s.DB.Exec(t, "update aksara_operation_outbox set claimed_by = $1, claim_expires_at = now() + interval '1 hour'", claim)
	s.Fill(s.acme, 10, 3)
	s.run(mode, oneWorker, shortLease)
	s.says(s.relay, "another exporter works on the same rows")
	s.wantFates(mode, map[string]string{claim: "in flight"})
	s.ledger(mode, 1, "its lease runs: stop the exporter that made it", "release", claim, "--may-duplicate")
	s.expire()
	s.wantFates(mode, map[string]string{claim: "nobody knows: another exporter's"})
	if n := s.exported(); n > 0 {
		t.Errorf("%d rows were exported beside another exporter's", n)
	}
	s.ledger(mode, 0, claim+": released", "release", claim, "--may-duplicate")
	s.Drained("true")
	s.eachOnce(60)
}
