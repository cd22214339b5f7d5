package verify

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"outboxrelay/envelope"
)

// Database is where the outbox is: a [pgx.Conn] or a pool.
type Database interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

const (
	// pageRows is the most rows that one transaction reads.
	pageRows = 5000
	// quick and slow are what a page should take. A page looks at a span of ids, and most of them may be other scopes'
	// or nobody's: the span grows and shrinks to meet this.
	quick, slow = 100 * time.Millisecond, time.Second
	firstSpan   = 50_000
	pageTimeout = time.Minute
)

// frameSQL begins a transaction of one scope: row security, a time limit, and guards against plans that read more than
// the page. All of it ends with the transaction.
//
// $1 scope  $2 statement time-out in milliseconds
const frameSQL = `
select set_config('aksara.current_tenant_id', $1, true), set_config('statement_timeout', $2, true),
       set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

// rowsSQL reads a page of one scope's rows, those of a part.
//
// $1 scope  $2 namespace  $3 and $4 the span of ids, the first excluded  $5 and $6 first and last bucket
//
// Locks: none. Index: primary keys. Order: id. A payload over 64 MiB isn't unfolded: no relay ever sent it.
const rowsSQL = `
select o.id, o.operation_id, o.topic, o.created_at, o.exported_at,
       coalesce(o.last_error like 'discarded: %' or o.last_error like 'dead-lettered: %', false),
       case when octet_length(o.payload::text) <= 67108864 then o.payload::text end
from SCHEMA.aksara_operation_outbox o
where o.tenant_scope = $1 and o.id > $3 and o.id <= $4
  and substring(sha256(uuid_send(o.operation_id)) from 1 for 2) between $5 and $6
  and (select op.application_namespace = $2 from SCHEMA.aksara_operations op where op.id = o.operation_id)
order by o.id
limit ROWS`

// table reads rows of the outbox.
type table struct {
	*rules
	db   Database
	rows string // rowsSQL for the schema
}

func newTable(r *rules, db Database, schema string) *table {
	text := strings.NewReplacer("SCHEMA", pgx.Identifier{schema}.Sanitize(), "ROWS", strconv.Itoa(pageRows))
	return &table{rules: r, db: db, rows: text.Replace(rowsSQL)}
}

// read hands over the rows of a part, scope by scope.
func (t *table) read(ctx context.Context, p part, take func(*row) error) error {
	for scope := range t.scopes {
		if err := t.readScope(ctx, p, scope, take); err != nil {
			return fmt.Errorf("read rows of %v: %w", t.scopes[scope], err)
		}
	}
	return nil
}

func (t *table) readScope(ctx context.Context, p part, scope int, take func(*row) error) error {
	span := int64(firstSpan)
	for after := int64(0); after < math.MaxInt64; {
		until := after + min(span, math.MaxInt64-after)
		begun := time.Now()
		last, full, err := t.page(ctx, p, scope, after, until, take)
		if err != nil {
			return err
		}
		if took := time.Since(begun); took < quick {
			span = min(span, math.MaxInt64/8) * 8
		} else if took > slow {
			span = max(span/8, 1)
		}
		after = until
		if full {
			after = last
		}
	}
	return nil
}

// page reads one page in a transaction of its own. full tells whether the span may hold more than was read.
func (t *table) page(ctx context.Context, p part, scope int, after, until int64, take func(*row) error) (last int64, full bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pageTimeout, fmt.Errorf("no answer from the database in %v", pageTimeout))
	defer cancel()
	stored, n := t.scopes[scope].Stored(), 0
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, t.db, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, frameSQL, stored, fmt.Sprint(pageTimeout.Milliseconds())); err != nil {
			return err
		}
		from, to := p.bounds()
		rows, err := tx.Query(ctx, t.rows, stored, t.namespace, after, until, from, to)
		if err != nil {
			return err
		}
		var c columns
		_, err = pgx.ForEachRow(rows, c.targets(), func() error {
			n++
			last = c.id
			r := c.row(t.rules, scope)
			return take(&r)
		})
		return err
	})
	if err != nil && context.Cause(ctx) != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return last, n == pageRows, err
}

// columns is a row as it is read.
type columns struct {
	id         int64
	operation  uuid.UUID
	topic      string
	createdAt  pgtype.Timestamptz
	exportedAt pgtype.Timestamptz
	givenUp    bool
	payload    []byte
}

func (c *columns) targets() []any {
	return []any{&c.id, &c.operation, &c.topic, &c.createdAt, &c.exportedAt, &c.givenUp, &c.payload}
}

// row makes of it what the judge takes.
func (c *columns) row(rules *rules, scope int) row {
	r := row{id: c.id, scope: scope, operation: c.operation, exportedAt: c.exportedAt.Time}
	switch {
	case !c.exportedAt.Valid:
	case c.givenUp:
		r.state = givenUp
	default:
		r.state = exported
	}
	// An infinite time has no place in an event: as the zero time it makes a fault, too.
	createdAt := c.createdAt.Time
	if c.createdAt.InfinityModifier != pgtype.Finite {
		createdAt = time.Time{}.AddDate(-1, 0, 0)
	}
	r.event, r.fault = envelope.New(rules.namespace, rules.scopes[scope], c.operation, c.topic, createdAt, c.payload)
	return r
}
