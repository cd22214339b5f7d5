package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// actionPatience bounds what a fault does by itself, such as starting a broker.
	actionPatience = 3 * time.Minute
	// room is how long a fault waits for what it hits, before it is left out: on a slow machine, servers that take long to
	// start would else never be left in peace.
	room      = 2 * time.Second
	tellEvery = 5 * time.Second
)

// happened is a fault that took place.
type happened struct {
	fault
	begun, ended time.Time // before it began, or when its moment had come; when all was as before
}

// history is what the test has done.
type history struct {
	faults  []happened
	skipped int // faults that found no room, or whose moment did not come
	known   map[uuid.UUID]int
	failed  int64 // transactions of the application
	rest    int   // rows that are not exported in the end
	drained time.Duration
}

// play lets the application write, breaks things by the plan, and then waits for the relays to finish.
func (s *stage) play(ctx context.Context, plan []fault) (h history, err error) {
	app, err := s.pool(ctx, ownerRole)
	if err != nil {
		return h, err
	}
	defer app.Close()
	watch, err := s.pool(ctx, "postgres")
	if err != nil {
		return h, err
	}
	defer watch.Close()
	for _, r := range s.relays {
		if err := r.start(); err != nil {
			return h, err
		}
	}
	w := &writers{pool: app, seed: s.seed, rate: s.rate, known: map[uuid.UUID]int{}}
	s.note("%d faults are planned within %v", len(plan), s.duration)
	if h.faults, err = s.fray(ctx, plan, w, watch); err != nil {
		return h, err
	}
	h.skipped, h.known, h.failed = len(plan)-len(h.faults), w.known, w.failed.Load()
	s.note("the faults are over; waiting for the relays")
	h.rest, h.drained, err = s.wait(ctx, watch)
	if err != nil {
		return h, err
	}
	for _, r := range s.relays {
		if err := r.stop(); err != nil {
			return h, err
		}
	}
	return h, nil
}

// fray carries the plan out while the application writes and somebody tells how it goes.
func (s *stage) fray(ctx context.Context, plan []fault, w *writers, watch *pgxpool.Pool) ([]happened, error) {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { w.write(writing) })
	group.Go(func() {
		for await(writing, time.After(tellEvery)) {
			exported, waiting, err := look(writing, watch)
			if err != nil {
				s.note("  committed %d; the database does not answer", w.committed.Load())
				continue
			}
			s.note("  committed %d, exported %d, waiting %d", w.committed.Load(), exported, waiting)
		}
	})
	return s.carryOut(ctx, plan)
}

// look counts rows.
func look(ctx context.Context, watch *pgxpool.Pool) (exported, waiting int, err error) {
	ctx, cancel := context.WithTimeout(ctx, tellEvery)
	defer cancel()
	err = watch.QueryRow(ctx, `select count(exported_at), count(*) - count(exported_at) from aksara_operation_outbox`).Scan(&exported, &waiting)
	return exported, waiting, err
}

// wait waits until no row is unexported, or for as long as is allowed, and gives how many are left.
func (s *stage) wait(ctx context.Context, watch *pgxpool.Pool) (rest int, took time.Duration, err error) {
	begun := time.Now()
	deadline := time.After(s.drain)
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	for {
		_, rest, err = look(ctx, watch)
		took = time.Since(begun)
		if err == nil && rest == 0 {
			return rest, took, nil
		}
		select {
		case <-ctx.Done():
			return rest, took, context.Cause(ctx)
		case <-deadline:
			s.note("given up after %v: %d rows are left", s.drain, rest)
			return rest, took, err
		case <-tell.C:
			s.note("  waiting %d", rest)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// carryOut begins each fault at its time, and returns when all have ended. One that finds no room, or no moment, is left out.
func (s *stage) carryOut(ctx context.Context, plan []fault) (done []happened, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	over, stop := context.WithDeadline(ctx, begun.Add(s.duration))
	defer stop()
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		free  = newRegister()
	)
	for _, f := range plan {
		if !await(over, time.After(time.Until(begun.Add(f.at)))) {
			break
		}
		group.Go(func() {
			things := f.holds(len(s.relays))
			waiting, stop := context.WithTimeout(over, room)
			defer stop()
			if !free.take(waiting, things) {
				return
			}
			defer free.give(things)
			h, err := s.inflict(ctx, f)
			if errors.Is(err, errNoMoment) {
				return
			}
			if err != nil {
				cancel(fmt.Errorf("%v: %w", f, err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			done = append(done, h)
		})
	}
	<-over.Done()
	group.Wait()
	return done, context.Cause(ctx)
}

// inflict begins a fault, lets it last, and ends it.
func (s *stage) inflict(ctx context.Context, f fault) (h happened, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.lasts+actionPatience, errors.New("took too long"))
	defer cancel()
	k := kinds[f.kind]
	h = happened{fault: f, begun: time.Now()}
	s.note("+ %v, for %v", f, f.lasts.Round(100*time.Millisecond))
	if err := k.begin(ctx, s, f); err != nil {
		return h, err
	}
	if k.atMoment != nil {
		h.begun = time.Now()
	}
	if f.lasts > 0 && !await(ctx, time.After(f.lasts)) {
		return h, context.Cause(ctx)
	}
	if err := k.end(ctx, s, f); err != nil {
		return h, err
	}
	h.ended = time.Now()
	s.note("- %v, after %v", f, h.ended.Sub(h.begun).Round(100*time.Millisecond))
	return h, nil
}
