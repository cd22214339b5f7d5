package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// errNotGiven is what is known when the server answered a statement with no more than a warning.
var errNotGiven = errors.New("the server accepted the statement but nothing has changed")

// owner is whose rights a statement takes, and how to find that role. $1: schema.
type owner struct {
	of    string // for people
	query string
}

func ownerOfDatabase() owner {
	return owner{"the database",
		`select pg_get_userbyid(datdba) from pg_database where $1::text is not null and datname = current_database()`}
}

func ownerOfSchema() owner {
	return owner{"the schema", `select pg_get_userbyid(nspowner) from pg_namespace where nspname = $1`}
}

// ownerOf is the owner of one of our tables, whose names need no quotes.
func ownerOf(table string) owner {
	return owner{table, `select pg_get_userbyid(c.relowner) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = '` + table + `'`}
}

// explain says what to do about a statement's failure, where that is known.
func (m *migration) explain(ctx context.Context, name string, owner owner, err error) error {
	const insufficientPrivilege, readOnly = "42501", "25006"
	switch code := sqlState(err); {
	case code == readOnly:
		return fmt.Errorf("%s: this server, or session, only reads: connect to the primary: %w", name, err)
	case code == insufficientPrivilege || errors.Is(err, errNotGiven):
		return fmt.Errorf("%s: %w: %s", name, err, m.whoMay(ctx, owner))
	case m.conn.IsClosed():
		return fmt.Errorf("%s: cut short, run this again to complete it: %w", name, err)
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// whoMay names the roles; without them the advice stands as well.
func (m *migration) whoMay(ctx context.Context, owner owner) string {
	advice := "connect as the owner of " + owner.of + " or as a superuser"
	var me, may string
	_ = m.look(ctx, "looking for the owner", func(ctx context.Context) error {
		err := m.conn.QueryRow(ctx, `select current_user`).Scan(&me)
		if err == nil {
			err = m.conn.QueryRow(ctx, owner.query, m.Schema).Scan(&may)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if me == "" || may == "" {
		return advice
	}
	return fmt.Sprintf("connected as %s; %s (%s)", quote(me), advice, quote(may))
}
