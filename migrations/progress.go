package migrations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// progress is what the server tells about a concurrent build, or about the drop before it.
type progress struct {
	phase                     string // empty: not building, or not yet
	blocksDone, blocksTotal   int64
	tuplesDone, tuplesTotal   int64
	lockersDone, lockersTotal int64
	blockers                  []int32 // the sessions, by process id, that are waited for
}

// String tells it to people. Whoever waits for a session wants to know which one.
func (p progress) String() string {
	var parts []string
	if p.phase != "" {
		parts = append(parts, p.phase)
	}
	switch {
	case p.lockersTotal > 0:
		parts = append(parts, fmt.Sprintf("%d of %d transactions have ended", p.lockersDone, p.lockersTotal))
	case p.blocksTotal > 0:
		parts = append(parts, fmt.Sprintf("%d of %d blocks", p.blocksDone, p.blocksTotal))
	case p.tuplesTotal > 0:
		parts = append(parts, fmt.Sprintf("%d of %d rows", p.tuplesDone, p.tuplesTotal))
	}
	if len(p.blockers) > 0 {
		parts = append(parts, "waiting for the transaction of pid "+strings.Trim(fmt.Sprint(p.blockers), "[]"))
	}
	return strings.Join(parts, ", ")
}

// watch reports how a build on m.conn is getting on, each time that has changed, until stop is called; stop returns
// when no more reports will come. The connection is busy, so it takes a second one, and not before the build has taken
// a while. A build without a watcher is a build: when there is no connection to be had, nothing is reported.
func (m *migration) watch(ctx context.Context, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	config, pid := m.conn.Config(), m.conn.PgConn().PID()
	go func() {
		defer close(done)
		ticker := time.NewTicker(m.progress)
		defer ticker.Stop()
		if !tick(ctx, ticker) {
			return
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return
		}
		defer conn.Close(context.WithoutCancel(ctx))
		for last := ""; ; {
			now, err := readProgress(ctx, conn, pid)
			if err != nil {
				return
			}
			if text := now.String(); text != last {
				m.Report(Step{Name: name, Outcome: Building, Detail: text})
				last = text
			}
			if !tick(ctx, ticker) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func tick(ctx context.Context, ticker *time.Ticker) bool {
	select {
	case <-ticker.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func readProgress(ctx context.Context, conn *pgx.Conn, pid uint32) (p progress, err error) {
	const query = `
		select coalesce(p.phase, ''), coalesce(p.blocks_done, 0), coalesce(p.blocks_total, 0),
		       coalesce(p.tuples_done, 0), coalesce(p.tuples_total, 0),
		       coalesce(p.lockers_done, 0), coalesce(p.lockers_total, 0), pg_blocking_pids(s.pid)
		from (select $1::int as pid) s
		left join pg_stat_progress_create_index p on p.pid = s.pid`
	err = conn.QueryRow(ctx, query, pid).Scan(&p.phase, &p.blocksDone, &p.blocksTotal,
		&p.tuplesDone, &p.tuplesTotal, &p.lockersDone, &p.lockersTotal, &p.blockers)
	return p, err
}
