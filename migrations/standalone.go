package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// StandaloneSchema makes the database at url ready for a relay without Aksara: schema, tables, supporting index and
// storage parameters. It is Run with Standalone, for programs that set up a database and have nothing to tell.
func StandaloneSchema(ctx context.Context, url, schema string) error {
	return standalone(ctx, url, schema, (*migration).everything)
}

// StandaloneTables is StandaloneSchema without what the relay adds: what an Aksara that knows of no relay looks like.
func StandaloneTables(ctx context.Context, url, schema string) error {
	return standalone(ctx, url, schema, func(m *migration, ctx context.Context) error {
		if err := m.checkTables(ctx); err != nil {
			return err
		}
		return m.ensureTables(ctx)
	})
}

func standalone(ctx context.Context, url, schema string, work func(*migration, context.Context) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to set up a schema: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	return newMigration(conn, Options{Schema: schema, Standalone: true}).run(ctx, work)
}
