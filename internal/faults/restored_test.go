package faults_test

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"outboxrelay/envelope"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// A database is replaced by a copy of an earlier time while the topic goes on. In the copy the ids of what was written since
// stand for other events. All that the copy says is unexported is delivered, and nothing else is marked, neither by a relay
// that is started then nor by one that goes on and has a claim in hand that it could not settle before.
func TestDatabaseIsRestored(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"while the relay is stopped": false, "under a running relay": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.Fill(s.acme, 100, 3)
			s.run()
			s.Drained("true")
			s.stop()
			s.Fill(s.acme, 100, 2)
			backup := s.copyDatabase()
			s.run()
			s.Drained("true")

			if running {
				s.refuseMarks()
			}
			s.Fill(s.acme, 100, 3)
			s.inTopic(800)
			if !running {
				s.Drained("true")
				s.stop()
			}
			s.replaceDatabase(backup)
			if running {
				s.Drained("true")
			} else {
				s.run()
			}
			s.recovered()
			s.Drained("true")
			s.holdsCopy(300, 500)
			s.clean()
		})
	}
}

// stop has the relay end well.
func (s *scene) stop() {
	s.T.Helper()
	if status := s.relay.Stop(); status != 0 {
		s.T.Errorf("relay ended with status %d", status)
	}
}

// refuseMarks has the database refuse to mark rows as exported, as one that is out of room may.
func (s *scene) refuseMarks() {
	s.T.Helper()
	s.DB.Exec(s.T, `create function refuse() returns trigger language plpgsql as $$ begin raise disk_full; end $$;
		create trigger refuse before update on aksara_operation_outbox for each row
			when (old.exported_at is null and new.exported_at is not null) execute function refuse()`)
}

// inTopic waits until the topic has so many records.
func (s *scene) inTopic(records int) {
	s.T.Helper()
	admin := s.Broker.Admin(s.T)
	relayproc.Until(s.T, "events to be in the topic", func() error {
		ends, err := admin.ListEndOffsets(s.T.Context(), s.Topic)
		n := 0
		for _, end := range ends[s.Topic] {
			n += int(end.Offset)
		}
		if err != nil {
			return err
		}
		return unequal(records, n)
	})
}

// copyDatabase makes a copy of the database, which nobody can use meanwhile, and gives its address.
func (s *scene) copyDatabase() (address *pgtest.DB) {
	s.T.Helper()
	backup, server := s.DB.Name+"_copy", s.sibling("postgres")
	s.T.Cleanup(func() { server.Exec(s.T, "drop database if exists "+backup+" with (force)") })
	s.withoutUsers(server, "create database "+backup+" template "+s.DB.Name)
	server.Exec(s.T, "alter database "+s.DB.Name+" allow_connections true")
	return s.sibling(backup)
}

// replaceDatabase puts a copy in the database's place, after as many events were written to it as to the database since it
// was made.
func (s *scene) replaceDatabase(backup *pgtest.DB) {
	s.T.Helper()
	away, server := s.DB.Name+"_away", s.sibling("postgres")
	s.T.Cleanup(func() { server.Exec(s.T, "drop database if exists "+away+" with (force)") })
	conn := backup.Conn(s.T)
	if err := relayproc.App.Fill(s.T.Context(), conn, s.acme, 100, 3); err != nil {
		s.T.Fatal(err)
	}
	_ = conn.Close(s.T.Context()) // else it keeps the copy from being renamed, which fails
	last := s.Count("select max(id) from aksara_operation_outbox")
	s.withoutUsers(server, "alter database "+s.DB.Name+" rename to "+away)
	server.Exec(s.T, "alter database "+backup.Name+" rename to "+s.DB.Name)
	if n := s.Count("select max(id) from aksara_operation_outbox"); n != last {
		s.T.Fatalf("the last id is %d and was %d, so ids do not stand for other events", n, last)
	}
}

// withoutUsers locks everybody out of the database, and does something that needs that.
func (s *scene) withoutUsers(server *pgtest.DB, do string) {
	s.T.Helper()
	server.Exec(s.T, "alter database "+s.DB.Name+" allow_connections false")
	s.Pool.Reset()
	server.Exec(s.T, "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", s.DB.Name)
	server.Exec(s.T, do)
}

// sibling is another database of the same server.
func (s *scene) sibling(name string) *pgtest.DB {
	s.T.Helper()
	address, err := url.Parse(s.DB.URL)
	if err != nil {
		s.T.Fatal(err)
	}
	address.Path = "/" + name
	return &pgtest.DB{Name: name, URL: address.String()}
}

// holdsCopy fails unless the topic holds the events of the table, in order: those after id exported twice, up to id copied,
// since the original's relay exported them too, and all others once. No row was claimed again without need.
func (s *scene) holdsCopy(exported, copied int64) {
	s.T.Helper()
	times := relayproc.InOrder(s.T, s.Events())
	rows, err := s.Pool.Query(s.T.Context(), `select id, operation_id, (payload->>'state_version')::bigint, export_attempts
		from aksara_operation_outbox`)
	if err != nil {
		s.T.Fatal(err)
	}
	event := envelope.Event{Namespace: relayproc.Namespace, Scope: s.acme}
	var id, attempts int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &event.OperationID, &event.StateVersion, &attempts}, func() error {
		want := 1
		if id > exported && id <= copied {
			want = 2
		}
		if n := times[event.Source()+" "+event.ID()]; n != want || attempts != 1 {
			s.T.Errorf("the event of row %d came %d times and was claimed %d times, want %d and 1", id, n, attempts, want)
		}
		return nil
	}); err != nil {
		s.T.Fatal(err)
	}
}
