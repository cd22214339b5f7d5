package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
	"outboxrelay/internal/monitor"
	"outboxrelay/internal/settings"
	"outboxrelay/kafkasink"
	"outboxrelay/relay"
	"outboxrelay/store"
)

const (
	tenantsEvery = 10 * time.Second // between two looks at the tenants' file
	topicsWait   = 5 * time.Second
	schemaEvery  = 5 * time.Second // between two looks at a schema that won't do yet
)

// relay relays until ctx ends.
func (a *app) relay(ctx context.Context, args []string) error {
	if err := parse(flags("run"), args); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	log := newLogger(s, a.stderr)
	db, err := openStore(s)
	if err != nil {
		return err
	}
	defer db.Close()
	diary := newDiary(log)
	metrics := monitor.NewMetrics(release, runtime.Version(), len(s.Scopes))
	metrics.Pool(db.Pool().Stat)
	config := sinkConfig(s, diary.client)
	config.Hooks = []kgo.Hook{metrics.Client()}
	sink, err := kafkasink.New(config)
	if err != nil {
		return err
	}
	defer sink.Close()
	p, err := newProcess(s, log, diary, db, sink, metrics)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// newProcess makes a relay between a store and a sink.
func newProcess(s *settings.Settings, log zerolog.Logger, diary *diary, db *store.Store, sink *kafkasink.Sink, metrics *monitor.Metrics) (*process, error) {
	board := monitor.NewBoard(monitor.About{
		Namespace: s.Namespace, Version: release, Worker: s.WorkerID, Delivery: string(s.Delivery), CountCap: store.CountCap,
		Details: s.HTTPDetails,
	})
	board.Scopes(s.Scopes)
	r, err := relay.New(relayConfig(s, sink, db), db, sink, observers{diary, metrics, board})
	if err != nil {
		return nil, err
	}
	r.SetScopes(s.Scopes)
	return &process{
		settings: s, log: log, diary: diary, store: db, sink: sink, relay: r, metrics: metrics, board: board, scopes: s.Scopes,
		topicsWait: topicsWait,
	}, nil
}

// errUnheard is why a relay that starts isn't ready before the database's first answer.
var errUnheard = errors.New("the relay has just started and has not heard from the database yet")

// process is a relay that runs, with all that goes on beside it.
type process struct {
	settings *settings.Settings
	log      zerolog.Logger
	diary    *diary
	store    *store.Store
	sink     *kafkasink.Sink
	relay    *relay.Relay
	metrics  *monitor.Metrics
	board    *monitor.Board

	topicsWait time.Duration // for the first look at the topics

	mu     sync.Mutex
	scopes []envelope.Scope
	schema error // why the database won't do, nil once it does
}

func (p *process) run(ctx context.Context) error {
	p.log.Info().Str("version", release).Str("namespace", p.settings.Namespace).Int("scopes", len(p.settings.Scopes)).
		Strs("brokers", p.settings.Kafka.Brokers).Str("topic", p.settings.Kafka.Topic).Msg("relay starts")
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()

	p.setSchema(errUnheard)
	if err := p.serve(beside, &others); err != nil {
		return err
	}
	if p.settings.TenantsFile != "" {
		file := settings.NewTenantsFile(p.settings, os.ReadFile)
		others.Go(func() {
			file.Watch(beside, tenantsEvery, func(scopes []envelope.Scope, err error) { p.tenants(beside, scopes, err) })
		})
	}
	others.Go(func() { p.measure(beside) })

	if !p.awaitSchema(ctx) {
		p.log.Info().Msg("relay stopped before it began")
		return nil
	}
	p.learnTopics(ctx, p.settings.Scopes)
	others.Go(func() { every(beside, healthEvery, func() { p.explain(beside) }) })
	err := p.relay.Run(ctx)
	p.log.Info().Msg("relay stopped")
	return err
}

// awaitSchema waits until the database holds what the relay needs; false if ctx ended
// first. What only weakens the relay is told once.
func (p *process) awaitSchema(ctx context.Context) bool {
	for {
		findings := p.store.Inspect(ctx, p.settings.Namespace, p.settings.Scopes)
		err := failure(findings)
		p.setSchema(err)
		if err == nil {
			for _, f := range findings {
				if f.Level == relay.Warn {
					p.log.Warn().Str("check", f.Check).Str("do", f.Do).Msg(printable(f.Seen))
				}
			}
			return ctx.Err() == nil
		}
		if ctx.Err() != nil {
			return false // the look was cut short, so what it says is no trouble
		}
		p.diary.Trouble(relay.Trouble{Kind: relay.DatabaseTrouble, Err: err})
		select {
		case <-ctx.Done():
			return false
		case <-time.After(schemaEvery):
		}
	}
}

// learnTopics gives the sink a moment to read the settings of the scopes' topics, so
// that not having done so yet isn't reported as trouble.
func (p *process) learnTopics(ctx context.Context, scopes []envelope.Scope) {
	ctx, cancel := context.WithTimeout(ctx, p.topicsWait)
	defer cancel()
	for _, scope := range scopes {
		_ = p.sink.Ready(scope) // makes its topic known; all are read together
	}
	for _, scope := range scopes {
		p.sink.AwaitLook(ctx, scope) // what stands in the way is told when it is claimed
	}
}

// failure is all failed findings as one error, nil if there are none.
func failure(findings []relay.Finding) error {
	var all []error
	for _, f := range findings {
		if f.Level == relay.Fail {
			all = append(all, fmt.Errorf("%s: %s", f.Seen, f.Do))
		}
	}
	return errors.Join(all...)
}

const badTenantsFile = "the tenants' file is not taken over; the last good list stays"

// tenants takes news of the tenants' file.
func (p *process) tenants(ctx context.Context, scopes []envelope.Scope, err error) {
	p.metrics.TenantsFile(err == nil)
	if err != nil {
		p.log.Error().Err(err).Msg(badTenantsFile)
		return
	}
	p.mu.Lock()
	p.scopes = scopes
	p.mu.Unlock()
	p.learnTopics(ctx, scopes)
	p.relay.SetScopes(scopes)
	p.metrics.Scopes(len(scopes))
	p.log.Info().Int("scopes", len(scopes)).Msg("the tenants' file was taken over")
}

// serve answers HTTP until ctx ends.
func (p *process) serve(ctx context.Context, others *sync.WaitGroup) error {
	if p.settings.HTTPAddress == "" {
		return nil
	}
	listener, err := net.Listen("tcp", p.settings.HTTPAddress)
	if err != nil {
		return fmt.Errorf("RELAY_HTTP_ADDRESS: %w", err)
	}
	p.log.Info().Stringer("address", listener.Addr()).Msg("HTTP is served")
	others.Go(func() {
		if err := monitor.Serve(ctx, listener, p.handler()); err != nil {
			p.log.Error().Err(err).Msg("HTTP is no longer served")
		}
	})
	return nil
}

func (p *process) handler() http.Handler {
	return monitor.Handler(p.metrics, p.board, p.live, p.ready)
}

// live is nil as long as the loop makes progress, whatever the servers do.
func (p *process) live() error {
	if stuck := p.relay.Health().Stuck; stuck > 0 {
		return fmt.Errorf("a worker has made no step for %s", stuck.Round(time.Second))
	}
	return nil
}

// ready is nil if database and broker answered lately. The reason is told in full only
// where details may be shown, because it can name a tenant.
func (p *process) ready() error {
	where, err := p.unready()
	if err == nil || p.settings.HTTPDetails {
		return err
	}
	return errors.New(where)
}

func (p *process) unready() (where string, err error) {
	if err := p.databaseError(); errors.Is(err, errUnheard) {
		return errUnheard.Error(), errUnheard
	} else if err != nil {
		return "the database does not do what is needed", err
	}
	return "no event can be sent to Kafka", p.brokerError()
}

// databaseError is why the database does not do what is needed, nil if it does.
func (p *process) databaseError() error {
	if err := cmp.Or(p.schemaError(), p.relay.Health().Database); err != nil {
		return fmt.Errorf("database: %w", told(err, p.settings.Database.Password.From()))
	}
	return nil
}

// brokerError is why no event can be sent, nil if those of one scope can.
func (p *process) brokerError() error {
	if seen, err := p.sink.Health(); err != nil {
		return fmt.Errorf("broker: %w", err)
	} else if since := time.Since(seen); since > time.Minute {
		return fmt.Errorf("broker: no answer for %s", since.Round(time.Second))
	}
	if err := p.relay.Health().Slots.Err; err != nil {
		return fmt.Errorf("slots: %w", err)
	}
	return p.anyScopeReady()
}

// anyScopeReady is nil if the events of at least one scope can be sent.
func (p *process) anyScopeReady() (err error) {
	for _, scope := range p.currentScopes() {
		if err = cmp.Or(p.sink.Ready(scope), p.relay.Stalled(scope)); err == nil {
			return nil
		}
	}
	return err
}

func (p *process) setSchema(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schema = err
}

func (p *process) schemaError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.schema
}

func (p *process) currentScopes() []envelope.Scope {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scopes
}
