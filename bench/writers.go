package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"outboxrelay/internal/childproc"
)

// writers measures what a writer's transaction takes while nobody drains, while the relay drains a backlog as fast as it can, and
// with -peers while Debezium does.
func writers(ctx context.Context, s *stage) ([]target, error) {
	backlog, err := s.newDatabase(ctx, variants[0])
	if err != nil {
		return nil, err
	}
	s.note("writers: filling a database with %s rows", whole(float64(s.lastingRows())))
	if err := backlog.fill(ctx, scopes(s.tenants), s.lasting); err != nil {
		return nil, err
	}
	on := func(run func(context.Context, database, topic) (drained, error)) func(context.Context) (drained, error) {
		return func(ctx context.Context) (drained, error) { return s.onCopy(ctx, s.newTopic, backlog, run) }
	}
	all := []*way{{name: "nobody", run: on(s.writeAlone)}, {name: "relay", run: on(s.writeBesideRelay)}}
	if s.peers {
		all = append(all, &way{name: debeziumFromLog, run: func(ctx context.Context) (drained, error) {
			return s.onTopic(ctx, s.newTopic, func(t topic) (drained, error) { return s.writeBesideDebezium(ctx, t) })
		}})
	}
	for run := range s.runs {
		for _, w := range all {
			went, err := w.run(ctx)
			if err == nil && len(went.commits) == 0 {
				err = fmt.Errorf("no transaction fell into the %s that it took", went.elapsed)
			}
			if err != nil {
				return nil, fmt.Errorf("%s drains: %w", w.name, err)
			}
			s.note("writers %d of %d, %s drains: p50 %s ms, p99 %s ms", run+1, s.runs, w.name,
				tenths(milliseconds(percentile(went.commits, 50))), tenths(milliseconds(percentile(went.commits, 99))))
			w.went = append(w.went, went)
		}
	}
	printWriters(s, all)
	var targets []target
	if s.peers {
		ratio := median(all[1].commits(99)) / median(all[2].commits(99))
		targets = append(targets, atMost("a writer's p99 while the relay drains, times that while Debezium does", ratio, 1.2, hundredths))
	}
	return targets, backlog.drop(ctx)
}

// lastingRows is how many rows are drained while writers write.
func (s sizes) lastingRows() int { return s.tenants * s.lasting * versions }

// commits is a percentile of what writers' transactions took in each run, in milliseconds.
func (w *way) commits(p int) []float64 {
	return each(w.went, func(d drained) float64 { return milliseconds(percentile(d.commits, p)) })
}

// writeAlone has writers write while nobody drains.
func (s *stage) writeAlone(ctx context.Context, d database, _ topic) (went drained, err error) {
	w, err := d.newWriter(ctx, scopes(s.tenants), s.rate)
	if err != nil {
		return went, err
	}
	defer w.pool.Close()
	if err := w.write(ctx, s.warmUp); err != nil {
		return went, err
	}
	from := time.Now()
	err = w.write(ctx, s.span)
	went.elapsed, went.commits = time.Since(from), w.took(from, time.Now())
	return went, err
}

func (s *stage) writeBesideRelay(ctx context.Context, d database, t topic) (went drained, err error) {
	ports, err := childproc.FreePorts(1)
	if err != nil {
		return went, err
	}
	return s.writeBeside(ctx, peer{
		command: s.relayCommand(d, t, scopes(s.tenants), childproc.Loopback(ports[0])),
		health:  func(context.Context) error { return nil }, // it ends when it fails
		marked:  d.empty,
	}, d, t)
}

func (s *stage) writeBesideDebezium(ctx context.Context, t topic) (drained, error) {
	return s.onLog(ctx, func(c capture) (went drained, err error) {
		p, err := c.behind(ctx, t, s.lasting)
		if err != nil {
			return went, err
		}
		return s.writeBeside(ctx, p, c.database, t)
	})
}

// writeBeside has writers write while somebody drains a backlog. What counts is the time from the first record at the broker until
// there are as many as the backlog has rows: in that time the drain never waits for the writers. In the end the broker's count
// must be that of the backlog and of what was written.
func (s *stage) writeBeside(ctx context.Context, p peer, d database, t topic) (went drained, err error) {
	w, err := d.newWriter(ctx, scopes(s.tenants), s.rate)
	if err != nil {
		return went, err
	}
	defer w.pool.Close()
	if err := w.write(ctx, s.warmUp); err != nil {
		return went, err
	}
	process, err := childproc.Start(p.command)
	if err != nil {
		return went, err
	}
	defer process.Kill()
	err = p.watched(ctx, process, func(ctx context.Context) error {
		err := w.during(ctx, func(ctx context.Context) error {
			began, err := t.begin(ctx, process.PID())
			if err != nil {
				return err
			}
			err = t.await(ctx, s.lastingRows())
			went.rows, went.elapsed = s.lastingRows()-int(began.records), time.Since(began.at)
			went.commits = w.took(began.at, time.Now())
			return err
		})
		if err != nil {
			return err
		}
		if err := t.await(ctx, s.lastingRows()+len(w.commits)); err != nil {
			return err
		}
		return poll(ctx, time.Minute, p.marked)
	})
	if err != nil {
		return went, err
	}
	if err := process.Stop(syscall.SIGTERM, peerGrace); err != nil {
		return went, err
	}
	return went, t.expect(ctx, s.lastingRows()+len(w.commits))
}

func printWriters(s *stage, all []*way) {
	t := table{
		title: fmt.Sprintf("Writers: %d rows/s while %s rows are drained, a transaction from BEGIN to COMMIT's return, in ms", s.rate, whole(float64(s.lastingRows()))),
		head:  []string{"who drains", "rows/s drained", "seconds", "rows/s written", "p50", "p95", "p99", "longest"},
	}
	for _, w := range all {
		speed := "-"
		if w.went[0].rows > 0 {
			speed = spread(each(w.went, drained.speed), whole)
		}
		t.add(w.name, speed,
			tenths(median(each(w.went, func(d drained) float64 { return d.elapsed.Seconds() }))),
			whole(median(each(w.went, func(d drained) float64 { return float64(len(d.commits)) / d.elapsed.Seconds() }))),
			spread(w.commits(50), tenths), spread(w.commits(95), tenths), spread(w.commits(99), tenths), spread(w.commits(100), tenths))
	}
	t.print(s.out)
}
