package faults_test

import (
	"testing"
	"time"

	"outboxrelay/internal/pgserver"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/relayproc"
)

// A database fails under load in each of these ways: all is delivered once and in order, soon after it works again, and
// the relay never has more connections than its pool allows.
func TestDatabaseFaults(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(*scene){
		"connections terminated again and again": terminated,
		"role read-only":                         roleReadOnly,
		"idle transactions ended":                idleTransactionsEnded,
		"table locked":                           tableLocked,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underLoad(newScene(t), strike)
		})
	}
	for name, strike := range map[string]func(*scene, *pgserver.Server){
		"restarts":         restarts,
		"server read-only": serverReadOnly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := newSceneOnServer(t)
			underLoad(s, func(s *scene) { strike(s, server) })
		})
	}
	t.Run("network silent", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		var link *proxy
		link, s.Role = proxied(t, s.Role)
		underLoad(s, func(s *scene) { networkSilent(s, link) })
	})
}

// underLoad runs a relay while an application writes, has the fault come and go, and judges.
func underLoad(s *scene, strike func(*scene)) {
	s.T.Helper()
	s.Fill(s.acme, 500, 3)
	s.watchConnections(poolSize)
	stopLoad := s.startLoad()
	s.run(shortLease, map[string]string{"RELAY_BATCH_ROWS": "100"})
	s.progress(100)
	strike(s)
	s.recovered()
	stopLoad()
	if *lengthy { // what was delivered and could not be marked within its lease comes twice
		s.deliveredInOrder()
	} else {
		s.deliveredOnce()
	}
}

// A minor upgrade, then a crash, and so on: the server ends with and without notice.
func restarts(s *scene, server *pgserver.Server) {
	for round := range 5 {
		s.progress(50)
		if round%2 == 1 {
			if err := server.Kill(); err != nil {
				s.T.Fatal(err)
			}
			s.alive()
		}
		if err := server.Restart(s.T.Context()); err != nil {
			s.T.Fatal(err)
		}
		s.recovered()
	}
}

// A failover proxy or an administrator ends sessions, in the middle of whatever they do.
func terminated(s *scene) {
	for range 12 {
		s.progress(15)
		s.DB.Exec(s.T, `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name = 'relay'`)
		s.alive()
	}
}

// The role's next sessions may not write; the one that is open may go on, but is ended. As after a failover to a replica
// that is promoted later, sessions that were opened meanwhile stay read-only for good.
func roleReadOnly(s *scene) {
	role := pgtest.User(s.T, s.Role)
	s.DB.Exec(s.T, "alter role "+role+" set default_transaction_read_only = on")
	s.DB.Exec(s.T, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'relay'`)
	s.unready(database)
	s.DB.Exec(s.T, "alter role "+role+" reset default_transaction_read_only")
}

// The server ends sessions that are idle in a transaction, here after the least time that can be set, from now on.
func idleTransactionsEnded(s *scene) {
	s.DB.Exec(s.T, "alter role "+pgtest.User(s.T, s.Role)+" set idle_in_transaction_session_timeout = '1ms'")
	s.DB.Exec(s.T, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'relay'`)
	s.progress(300)
	s.alive()
}

// A hosted database whose disk is full becomes read-only in all sessions at once, and writable again the same way.
func serverReadOnly(s *scene, _ *pgserver.Server) {
	s.DB.Exec(s.T, "alter system set default_transaction_read_only = on")
	s.DB.Exec(s.T, "select pg_reload_conf()")
	s.unready(database)
	s.DB.Exec(s.T, "alter system reset default_transaction_read_only")
	s.DB.Exec(s.T, "select pg_reload_conf()")
}

// A migration holds the table for longer than a statement may take.
func tableLocked(s *scene) {
	lock := s.DB.Conn(s.T)
	for _, sql := range []string{"begin", "lock table aksara_operation_outbox in access exclusive mode"} {
		if _, err := lock.Exec(s.T.Context(), sql); err != nil {
			s.T.Fatal(err)
		}
	}
	s.unready(database)
	s.lasts(time.Minute)
	if _, err := lock.Exec(s.T.Context(), "commit"); err != nil {
		s.T.Fatal(err)
	}
}

// A firewall has forgotten the connections: nothing comes back, not even an error, for longer than a call may take.
func networkSilent(s *scene, link *proxy) {
	heal := link.silence()
	s.unready(database)
	s.lasts(5 * time.Minute)
	heal()
}

// A role may ask for a stricter isolation than a queue of locked rows can live with. Two relays then compete for the rows.
func TestDefaultIsolationOfTheRole(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.DB.Exec(t, "alter role "+pgtest.User(t, s.Role)+" set default_transaction_isolation = '"+level+"'")
			s.Fill(s.acme, 1000, 3)
			other := relayproc.Start(t, s.Env("acme"))
			s.run()
			s.deliveredOnce()
			for _, p := range []*relayproc.Process{s.relay, other} {
				s.quiet(p)
			}
		})
	}
}
