package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"outboxrelay/envelope"
)

// Defaults of [Config].
const (
	DefaultLease           = 30 * time.Second
	DefaultDeliveryTimeout = 10 * time.Second
	DefaultRetryDelay      = 5 * time.Second
	DefaultRetryMaxDelay   = 5 * time.Minute
	DefaultBatchRows       = 1000
	DefaultBatchBytes      = 4 << 20
	DefaultWorkers         = 4
	DefaultPollInterval    = 250 * time.Millisecond
	DefaultGrace           = 20 * time.Second
)

// Config is how a relay works. Zero values stand for the defaults.
type Config struct {
	// Namespace is the application namespace whose events are relayed, exact and
	// case-sensitive. Required.
	Namespace string
	// WorkerID is shown at the front of claimed_by. Claims are unique without it.
	WorkerID string

	// Lease is for how long a claim holds its rows, on the database's clock.
	Lease time.Duration
	// DeliveryTimeout is from handing an event to the sink until it counts as unknown.
	// Together with a margin of 3 s it must be less than half of Lease.
	DeliveryTimeout time.Duration
	// RetryDelay and RetryMaxDelay are the first and the longest wait after a failed
	// send; each is multiplied by a random 0.5 to 1.
	RetryDelay, RetryMaxDelay time.Duration

	// BatchRows and BatchBytes are the most rows, and bytes of payload text, of one
	// claim; one row always fits.
	BatchRows  int
	BatchBytes int64
	// MostFollowed is how many bytes of events may wait in the background for answers; 0 for as much
	// as 4 full claims of each worker hold, which is also the most.
	MostFollowed int64
	// Workers is how many claims are in flight at once.
	Workers int
	// PollInterval is the longest wait before an idle scope is looked at again.
	PollInterval time.Duration
	// DeadLetters is where events go that can't be sent as they are, before their rows
	// count as exported; nil: such rows are parked.
	DeadLetters DeadLetters
	// ExactlyOnce, if not nil, has each event delivered exactly once, by at most [SlotsPerInstance]
	// workers. That DeadLetters is set means then that its sink sends such letters.
	ExactlyOnce *ExactlyOnce
	// Grace is how long [Relay.Run] may take to end after its context did.
	Grace time.Duration
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	def(&c.Lease, DefaultLease)
	def(&c.DeliveryTimeout, DefaultDeliveryTimeout)
	def(&c.RetryDelay, DefaultRetryDelay)
	def(&c.RetryMaxDelay, DefaultRetryMaxDelay)
	def(&c.PollInterval, DefaultPollInterval)
	def(&c.Grace, DefaultGrace)
	if c.WorkerID == "" {
		c.WorkerID = "relay"
	}
	if c.BatchRows == 0 {
		c.BatchRows = DefaultBatchRows
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = DefaultBatchBytes
	}
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if err := envelope.CheckNamespace(c.Namespace); err != nil {
		faults = append(faults, err)
	}
	if c.DeliveryTimeout+leaseMargin >= c.Lease/2 {
		faults = append(faults, fmt.Errorf("delivery timeout %s + %s must be less than half of the lease %s",
			c.DeliveryTimeout, leaseMargin, c.Lease))
	}
	for _, d := range []struct {
		name string
		time.Duration
	}{
		{"delivery timeout", c.DeliveryTimeout}, {"retry delay", c.RetryDelay}, {"longest retry delay", c.RetryMaxDelay},
		{"poll interval", c.PollInterval}, {"grace", c.Grace},
	} {
		if d.Duration < 0 {
			faults = append(faults, fmt.Errorf("%s is negative", d.name))
		}
	}
	if c.BatchRows < 1 || c.BatchBytes < 1 || c.Workers < 1 {
		faults = append(faults, errors.New("batch rows, batch bytes and workers must be 1 or more"))
	}
	if c.ExactlyOnce != nil && c.Workers > SlotsPerInstance {
		faults = append(faults, fmt.Errorf("exactly-once has %d workers at most", SlotsPerInstance))
	}
	return errors.Join(faults...)
}

// Relay takes events from a [Store] to a [Sink]. It is safe for concurrent use.
type Relay struct {
	cfg       Config
	store     Store
	sink      Sink
	observer  Observer
	policy    policy
	scheduler *scheduler
	database  *gate
	pulse     *pulse
	abandoned *abandoned

	started     time.Time      // when Run was called
	background  sync.WaitGroup // sends, and waits for late answers
	flights     sync.Map       // the deliveries under way
	insisting   chan struct{}  // holds the places of the calls that try a settlement again
	settlements chan settling  // to be written together with others
	followed    atomic.Int64   // bytes of the claims that are followed in the background

	identityMu sync.Mutex
	identity   string // see source
	slots      slotHealth
	condemned  condemned
	strangers  strangers
}

// New makes a relay; observer may be nil. Nothing happens before [Relay.Run] or
// [Relay.ExportOnce].
func New(cfg Config, store Store, sink Sink, observer Observer) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("relay configuration: %w", err)
	}
	if observer == nil {
		observer = Unobserved{}
	}
	p := policy{retry: cfg.RetryDelay, maxRetry: cfg.RetryMaxDelay, buries: cfg.DeadLetters != nil, random: rand.Float64}
	r := &Relay{
		cfg: cfg, store: store, sink: sink, observer: observer, policy: p,
		database: newGate(p.jitter), pulse: newPulse(cfg.Workers + 1), abandoned: newAbandoned(),
		insisting: make(chan struct{}, insistAtOnce), settlements: make(chan settling),
		strangers: strangers{scopes: map[envelope.Scope]bool{}},
	}
	if cfg.ExactlyOnce != nil {
		r.slots.expect(cfg.Workers)
	}
	r.scheduler = newScheduler(cfg.PollInterval, topicOf(sink), func() float64 { return float64(r.followed.Load()) / float64(r.mostFollowed()) })
	return r, nil
}

// makeClaim makes one claim, of as many bytes as usual if req does not say, and reports it.
func (r *Relay) makeClaim(ctx context.Context, req Request) (Claim, error) {
	req = r.complete(req)
	start := time.Now()
	claim, err := r.store.Claim(ctx, req)
	if err != nil {
		return Claim{}, err
	}
	r.made(claim, time.Since(start))
	return claim, nil
}

// complete adds to a request what is the same in all of them.
func (r *Relay) complete(req Request) Request {
	req.Namespace, req.Token = r.cfg.Namespace, cmp.Or(req.Token, newToken(r.cfg.WorkerID))
	req.Lease, req.Bytes = r.cfg.Lease, cmp.Or(req.Bytes, r.cfg.BatchBytes)
	return req
}

// made tells of a claim.
func (r *Relay) made(claim Claim, took time.Duration) {
	r.observer.Claimed(claim, took)
	if claim.Abandoned {
		r.abandoned.add(claim.Scope)
	}
	for i := range claim.Rows {
		if by := claim.Rows[i].Expired; by != "" && !isToken(by) {
			r.observer.Trouble(Trouble{Kind: ForeignClaims, Scope: claim.Scope, Err: errForeign})
			break
		}
	}
}

var errForeign = errors.New("a claim that ran out was not a relay's: while another exporter works on the same rows, " +
	"the order of an operation's events is only what that one leaves of it")
