package relayproc

import (
	"errors"
	"fmt"
)

// HoldMarks keeps whoever marks a row exported waiting, by a trigger and an advisory lock: the broker has the record, the
// table does not know yet. Release is called after the relay was killed, once: it ends the relay's sessions, so that no
// mark which waits is carried out, and lets marks through again.
func (f *Fixture) HoldMarks() (release func()) {
	f.T.Helper()
	conn := f.DB.Conn(f.T)
	f.DB.Exec(f.T, `
		create function hold_mark() returns trigger language plpgsql as $$
		begin
			perform pg_advisory_xact_lock(4711);
			return new;
		end $$;
		create trigger hold_mark before update on aksara_operation_outbox
		for each row when (old.exported_at is null and new.exported_at is not null) execute function hold_mark();`)
	if _, err := conn.Exec(f.T.Context(), "select pg_advisory_lock(4711)"); err != nil {
		f.T.Fatal(err)
	}
	return func() {
		f.T.Helper()
		Until(f.T, "the crashed relay's sessions to end", func() error {
			if n := f.Count("select count(*) from pg_stat_activity where datname = current_database() and application_name = 'relay'"); n > 0 {
				_, err := f.Pool.Exec(f.T.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'relay'")
				return errors.Join(fmt.Errorf("%d are left", n), err)
			}
			return nil
		})
		if _, err := conn.Exec(f.T.Context(), "drop trigger hold_mark on aksara_operation_outbox; drop function hold_mark()"); err != nil {
			f.T.Fatal(err)
		}
		if _, err := conn.Exec(f.T.Context(), "select pg_advisory_unlock(4711)"); err != nil {
			f.T.Fatal(err)
		}
	}
}
