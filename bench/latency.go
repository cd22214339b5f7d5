package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"outboxrelay/relay"
)

// live is how events went while they were written.
type live struct {
	delays          []time.Duration // from commit to consumer
	rate            float64         // rows a second that were written
	relay, sessions float64         // processor time of the relay and of its sessions in PostgreSQL, in cores
	memory          float64         // MiB
}

// tenancy is how many tenants the relay serves, for how many of them events are written, and how many a second.
type tenancy struct {
	served, active, rate int
	poll                 time.Duration // the relay's poll interval; 0 for the usual one
}

// latency measures from commit to consumer, for a tenant, for several, and for a few among many; and what it costs when
// nothing is written.
func latency(ctx context.Context, s *stage) ([]target, error) {
	t := table{
		title: fmt.Sprintf("Latency: events written for %s, from COMMIT's return to the consumer, in ms", s.span),
		head: []string{"tenants", "active", "poll interval", "rows/s", "p50", "p95", "p99", "longest", "relay, cores", "its PostgreSQL sessions, cores",
			"peak memory, MiB"},
	}
	var p50, p95, p99, cores, manyP99, idle, idleFew float64
	for _, of := range []tenancy{
		{1, 1, s.rate, 0}, {s.tenants, s.tenants, s.rate, 0}, {1, 1, s.fast, 0}, {s.tenants, s.tenants, s.fast, 0},
		{s.crowd, s.crowd / 100, s.rate, 0}, {s.crowd, s.crowd / 100, s.rate, time.Second},
		{s.tenants, 0, 0, 0}, {s.crowd, 0, 0, 100 * time.Millisecond}, {s.crowd, 0, 0, 0}, {s.crowd, 0, 0, time.Second},
	} {
		var all []live
		for run := range s.runs {
			l, err := s.live(ctx, s.newTopic, of)
			if err != nil {
				return nil, fmt.Errorf("%d tenants: %w", of.served, err)
			}
			s.note("latency %d of %d, %d of %d tenants, %d rows/s: p50 %s, p99 %s", run+1, s.runs, of.active, of.served, of.rate,
				percentile(l.delays, 50).Round(time.Millisecond), percentile(l.delays, 99).Round(time.Millisecond))
			all = append(all, l)
		}
		at := func(p int) []float64 {
			return each(all, func(l live) float64 { return milliseconds(percentile(l.delays, p)) })
		}
		program := median(each(all, func(l live) float64 { return l.relay }))
		sessions := median(each(all, func(l live) float64 { return l.sessions }))
		delays := []string{"-", "-", "-", "-"}
		switch {
		case of.poll != 0:
		case of.active == 0 && of.served == s.crowd:
			idle = program + sessions
		case of.active == 0:
			idleFew = program + sessions
		case of.served == s.crowd:
			manyP99 = median(at(99))
		default:
			p50, p95, p99 = max(p50, median(at(50))), max(p95, median(at(95))), max(p99, median(at(99)))
			if of.rate == s.rate {
				cores = max(cores, program+sessions)
			}
		}
		if of.active > 0 {
			delays = []string{spread(at(50), tenths), spread(at(95), tenths), spread(at(99), tenths), spread(at(100), tenths)}
		}
		cells := append([]string{whole(float64(of.served)), whole(float64(of.active)), cmp.Or(of.poll, relay.DefaultPollInterval).String(), whole(median(each(all, func(l live) float64 { return l.rate })))}, delays...)
		t.add(append(cells, hundredths(program), hundredths(sessions), spread(each(all, func(l live) float64 { return l.memory }), tenths))...)
	}
	t.print(s.out)
	return []target{
		atMost("commit to consumer, p50, ms", p50, 10, tenths),
		atMost("commit to consumer, p95, ms", p95, 25, tenths),
		atMost("commit to consumer, p99, ms", p99, 40, tenths),
		atMost(fmt.Sprintf("at %d rows/s, relay and its sessions together, cores", s.rate), cores, 0.2, hundredths),
		atMost(fmt.Sprintf("commit to consumer with %s tenants, one in a hundred active, p99, ms", whole(float64(s.crowd))), manyP99, 500, tenths),
		atMost(fmt.Sprintf("idle with %d tenants, relay and its sessions together, cores", s.tenants), idleFew, 0.02, hundredths),
		atMost(fmt.Sprintf("idle with %s tenants, likewise", whole(float64(s.crowd))), idle, 0.15, hundredths),
	}, nil
}

// live writes events with the relay and a consumer running.
func (s *stage) live(ctx context.Context, newTopic topicMaker, of tenancy) (l live, err error) {
	d, err := s.newDatabase(ctx, variants[0])
	if err != nil {
		return l, err
	}
	t, err := newTopic(ctx)
	if err != nil {
		return l, err
	}
	var more []string
	if of.poll != 0 {
		more = append(more, "RELAY_POLL_INTERVAL="+of.poll.String())
	}
	r, err := s.startRelay(d, t, scopes(of.served), more...)
	if err != nil {
		return l, err
	}
	defer r.process.Kill()
	if err := r.awaitReady(ctx); err != nil {
		return l, err
	}
	if err := r.watched(ctx, func(ctx context.Context) error { return l.measure(ctx, d, t, r, of) }); err != nil {
		return l, err
	}
	if err := r.stop(); err != nil {
		return l, err
	}
	if err := d.drop(ctx); err != nil {
		return l, err
	}
	return l, t.drop(ctx)
}

// measure writes for some tenants for a while to warm everything up, and then for the measurement.
func (l *live) measure(ctx context.Context, d database, t topic, r *relayProcess, of tenancy) error {
	c, err := t.newConsumer(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	w, err := d.newWriter(ctx, scopes(of.active), of.rate)
	if err != nil {
		return err
	}
	defer w.pool.Close()
	if err := w.write(ctx, d.stage.warmUp); err != nil {
		return err
	}
	before, err := d.work(ctx, r.process.PID())
	if err != nil {
		return err
	}
	from := time.Now()
	if err := w.write(ctx, d.stage.span); err != nil {
		return err
	}
	seconds := time.Since(from).Seconds()
	after, err := d.work(ctx, r.process.PID())
	if err != nil {
		return err
	}
	if err := c.await(ctx, w.commits); err != nil {
		return err
	}
	l.relay, l.sessions = (after.relay-before.relay).Seconds()/seconds, (after.sessions-before.sessions).Seconds()/seconds
	l.delays = c.delays(w.commits, from)
	l.rate = float64(len(l.delays)) / seconds
	l.memory, err = peakMemory(r.process.PID())
	return err
}

// pool is a connection for each lane.
func (d database) pool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.url(ownerRole))
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = lanes, lanes
	return pgxpool.NewWithConfig(ctx, config)
}

// delays are from commit to arrival, of what was committed from an instant on.
func (c *consumer) delays(commits map[string]time.Time, from time.Time) (all []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, committed := range commits {
		if !committed.Before(from) {
			all = append(all, c.arrivals[id].Sub(committed))
		}
	}
	return all
}

// work is the processor time so far of the relay and of its sessions.
type work struct{ relay, sessions time.Duration }

func (d database) work(ctx context.Context, relay int) (w work, err error) {
	if w.relay, err = cpuTime(relay); err != nil {
		return w, err
	}
	var backends []int
	err = d.stage.connected(ctx, d.name, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `select pid from pg_stat_activity where usename = $1`, relayRole)
		if err != nil {
			return err
		}
		backends, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	})
	for _, pid := range backends {
		if spent, err := runTime(pid); err == nil { // else it has just ended
			w.sessions += spent
		}
	}
	return w, err
}
