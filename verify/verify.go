package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"outboxrelay/envelope"
)

const (
	// passRecords is how many of the topics' records one pass should keep in mind, and heldMost the events and operations,
	// from table or topics, that it keeps at most: beyond, the pass is given up and its part halved. With what is on its
	// way from Kafka they make for less than 200 MiB in all.
	passRecords = 400_000
	heldMost    = 700_000

	defaultExamples = 10
	// tries is how often a pass begins anew because records were deleted while they were read.
	tries = 3
)

// Config says what is compared. All but Schema, ExactlyOnce, Examples and Progress are required.
type Config struct {
	Namespace string           // the application's, exact
	Scopes    []envelope.Scope // whose events are compared
	// Topic gives the topic of a scope's events. It is called once for each.
	Topic func(envelope.Scope) string
	// ExactlyOnce makes duplicates faults.
	ExactlyOnce bool

	// Database needs to read aksara_operation_outbox, and of aksara_operations id and application_namespace.
	Database Database
	Schema   string // where the tables are; "" stands for public
	// Kafka is how to reach the cluster: kgo.SeedBrokers, security. READ, DESCRIBE and DESCRIBE_CONFIGS on the topics
	// are needed.
	Kafka []kgo.Opt

	// Examples is the most examples of each kind of finding; 0 stands for 10.
	Examples int
	// Progress, if not nil, is told now and then how far it is, by the goroutine that called Run.
	Progress func(Progress)
}

// Progress is how far a verification is.
type Progress struct {
	Pass, Passes  int   // Passes may grow
	Rows, Records int64 // that were compared
}

// Run compares the table with the topics. An error says why they can't be compared; what is wrong with the events is in
// the result.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	r, err := newRun(cfg)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return r.all(ctx)
}

func newRun(cfg Config) (*run, error) {
	r, err := newRules(cfg)
	if err != nil {
		return nil, err
	}
	names := slices.Compact(slices.Sorted(slices.Values(r.topics)))
	return &run{
		rules: r, most: heldMost, passRecords: passRecords, tell: cfg.Progress,
		table:  newTable(r, cfg.Database, cmp.Or(cfg.Schema, "public")),
		topics: &topics{options: cfg.Kafka, names: names, stall: stallTimeout},
	}, nil
}

func newRules(cfg Config) (*rules, error) {
	if err := envelope.CheckNamespace(cfg.Namespace); err != nil {
		return nil, err
	}
	if len(cfg.Scopes) == 0 || cfg.Topic == nil || cfg.Database == nil {
		return nil, errors.New("config: Scopes, Topic and Database are required")
	}
	r := &rules{
		namespace: cfg.Namespace, scopes: cfg.Scopes, index: map[envelope.Scope]int{},
		exactlyOnce: cfg.ExactlyOnce, examples: cmp.Or(cfg.Examples, defaultExamples),
	}
	for i, scope := range cfg.Scopes {
		if _, twice := r.index[scope]; twice || !scope.Valid() {
			return nil, fmt.Errorf("%v is invalid or stands there twice", scope)
		}
		r.index[scope] = i
		r.topics = append(r.topics, cfg.Topic(scope))
	}
	return r, nil
}

// run is one verification.
type run struct {
	*rules
	most        int
	passRecords int64
	table       interface {
		read(ctx context.Context, p part, take func(*row) error) error
	}
	topics interface {
		size(ctx context.Context) (int64, error)
		read(ctx context.Context, p part, take func(*history, *record) error) (map[string]*history, error)
	}
	tell func(Progress) // may be nil
	Progress
}

// all makes as many passes as it takes.
func (r *run) all(ctx context.Context) (*Result, error) {
	size, err := r.topics.size(ctx)
	if err != nil {
		return nil, err
	}
	found, result := newTally(r.examples), &Result{}
	todo := parts(int(size/r.passRecords) + 1)
	for len(todo) > 0 {
		r.Progress = Progress{result.Passes + 1, result.Passes + len(todo), result.Rows, result.Records}
		j, err := r.stubborn(ctx, todo[0])
		if errors.Is(err, errTooMany) {
			todo = append(todo[0].halves(), todo[1:]...)
			continue
		}
		if err != nil {
			return nil, err
		}
		todo = todo[1:]
		found.merge(j.tally)
		result.Passes++
		result.Rows += j.rowCount
		result.Records += j.recordCount
	}
	result.Findings = found.findings(r.exactlyOnce)
	return result, nil
}

// stubborn makes a pass, anew if records were deleted meanwhile.
func (r *run) stubborn(ctx context.Context, p part) (j *judge, err error) {
	before := r.Progress
	for range tries {
		r.Progress = before
		if j, err = r.pass(ctx, p); !errors.Is(err, kerr.OffsetOutOfRange) {
			break
		}
	}
	return j, err
}

// pass compares one part. The table comes first: what is marked exported there is in a topic already.
func (r *run) pass(ctx context.Context, p part) (*judge, error) {
	limit := r.most
	if !p.divisible() {
		limit = 0
	}
	j := newJudge(r.rules, limit)
	err := r.table.read(ctx, p, func(row *row) error {
		r.count(&r.Rows)
		return j.takeRow(row)
	})
	if err != nil {
		return nil, err
	}
	histories, err := r.topics.read(ctx, p, func(h *history, record *record) error {
		r.count(&r.Records)
		return j.takeRecord(h, record)
	})
	if err != nil {
		return nil, err
	}
	if j.overtaken() {
		if err := r.table.read(ctx, p, j.takeAgain); err != nil {
			return nil, err
		}
	}
	j.conclude(histories)
	return j, nil
}

// tellEvery is how many rows or records lie between two calls of Progress.
const tellEvery = 10_000

// count counts one row or record.
func (r *run) count(n *int64) {
	*n++
	if r.tell != nil && *n%tellEvery == 0 {
		r.tell(r.Progress)
	}
}
