package faults_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"outboxrelay/internal/relayproc"
)

// A trigger refuses to have one tenant's rows marked, as an audit may. The events of another tenant come through at once, no row
// is parked, and when the trigger is gone all are marked.
func TestMarksRefusedForOneTenant(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	globex := relayproc.Tenant(t, "globex")
	s.DB.Exec(t, `create function refuse() returns trigger language plpgsql as $$ begin
		if new.tenant_scope = 'acme' and new.exported_at is not null then raise exception 'the audit of acme failed'; end if;
		return new; end $$`)
	s.DB.Exec(t, `create trigger refuse before update on aksara_operation_outbox for each row execute function refuse()`)
	s.Fill(s.acme, 2000, 1)
	s.relay = relayproc.Start(t, s.Env("acme,globex", shortLease, map[string]string{"RELAY_BATCH_ROWS": "100", "RELAY_WORKERS": "2"}))
	relayproc.Until(t, "some claims that can't be marked", func() error {
		return unequal(200, min(200, s.CountRows("claimed_by is not null")))
	})
	for range 10 {
		before := s.CountRows("tenant_scope = 'globex'")
		s.Fill(globex, 1, 1)
		relayproc.Within(t, recovery, "an event of the other tenant", func() error {
			return unequal(before+1, s.CountRows("tenant_scope = 'globex' and exported_at is not null"))
		})
	}
	s.alive()
	s.DB.Exec(t, "drop trigger refuse on aksara_operation_outbox")
	s.deliveredInOrder()
}

// Somebody's transaction holds rows of one tenant for longer than statements may take: the events of another come through.
func TestRowsLockedForOneTenant(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	globex := relayproc.Tenant(t, "globex")
	s.Fill(s.acme, 3000, 1)
	s.relay = relayproc.Start(t, s.Env("acme,globex", map[string]string{"RELAY_BATCH_ROWS": "100", "RELAY_WORKERS": "1"}))
	s.progress(1)
	var tx pgx.Tx
	relayproc.Until(t, "a claim's rows to be locked before they are marked", func() (err error) {
		if tx, err = s.Pool.Begin(t.Context()); err != nil {
			return err
		}
		var caught int
		if err := tx.QueryRow(t.Context(), `select count(*) filter (where row.claimed_by is not null and row.exported_at is null) from (
			select claimed_by, exported_at from aksara_operation_outbox where tenant_scope = 'acme' for update) row`).Scan(&caught); err != nil {
			return err
		}
		if caught > 0 {
			return nil
		}
		s.Fill(s.acme, 100, 1)
		return errors.Join(errNotYet, tx.Rollback(t.Context()))
	})
	begin := time.Now()
	s.Fill(globex, 1, 1)
	relayproc.Within(t, recovery, "an event of the other tenant", func() error {
		return unequal(1, s.CountRows("tenant_scope = 'globex' and exported_at is not null"))
	})
	t.Logf("it took %s", time.Since(begin))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.deliveredInOrder()
}

// Brokers take no batch that is larger than a segment, whatever max.message.bytes says: batches keep below that, and an event
// that doesn't is parked, alone.
func TestSegmentSmallerThanMessages(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Topic = s.Broker.Topic(t, 1, map[string]string{"max.message.bytes": "8388608", "segment.bytes": "1048576"})
	s.Fill(s.acme, 300, 1)
	s.DB.Exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more',
		(select string_agg(md5(random()::text), '') from generate_series(1, 600)))`)
	s.DB.Exec(t, `update aksara_operation_outbox set payload = payload || jsonb_build_object('more',
		(select jsonb_agg('1e100000'::jsonb) from generate_series(1, 12))) where id = (select min(id) + 150 from aksara_operation_outbox)`)
	s.run(map[string]string{"RELAY_KAFKA_COMPRESSION": "none"})
	s.Drained("next_attempt_at < 'infinity'")
	if n := s.CountRows("next_attempt_at = 'infinity' and strpos(last_error, 'segment.bytes') > 0"); n != 1 {
		t.Errorf("%d rows are parked for that, want 1", n)
	}
	relayproc.ExactlyOnce(t, s.Events(), 299)
}
