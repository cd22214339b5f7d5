package verify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"outboxrelay/envelope"
	"outboxrelay/internal/kafkatest"
	"outboxrelay/internal/pgtest"
	"outboxrelay/internal/sample"
	"outboxrelay/migrations"
)

// stage is a database and a broker with an outbox that is exported, and what compares them with the smallest rights.
type stage struct {
	config Config
	db     *pgtest.DB
	broker *kafkatest.Faked
	client *kgo.Client
	topic  string
	scopes []envelope.Scope
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{broker: kafkatest.Fake(t), scopes: []envelope.Scope{tenant(t, "acme"), tenant(t, "globex"), envelope.NonTenant()}}
	s.topic = s.broker.Topic(t, 3, nil)
	s.client = s.broker.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	s.db = pgtest.Database(t, pgtest.Setup{Name: "verify", Apply: func(ctx context.Context, url string) error {
		return migrations.StandaloneSchema(ctx, url, "public")
	}})
	address := s.db.Role(t, "relay", "")
	options := migrations.Options{GrantTo: strings.Trim(pgtest.User(t, address), `"`)}
	if err := migrations.Run(t.Context(), s.db.Conn(t), options); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.config = Config{
		Namespace: testNamespace, Scopes: s.scopes, Topic: func(envelope.Scope) string { return s.topic },
		Database: pool, Kafka: s.broker.Options(),
	}
	for _, scope := range s.scopes {
		s.fill(t, testNamespace, scope)
		s.export(t, testNamespace, scope)
	}
	return s
}

// fill writes 20 operations with three events each.
func (s *stage) fill(t *testing.T, namespace string, scope envelope.Scope) {
	t.Helper()
	if err := (sample.Application{Namespace: namespace}).Fill(t.Context(), s.db.Pool(t), scope, 20, 3); err != nil {
		t.Fatal(err)
	}
}

// export delivers and marks all rows of a scope, as a relay does.
func (s *stage) export(t *testing.T, namespace string, scope envelope.Scope) {
	t.Helper()
	rows, err := s.db.Pool(t).Query(t.Context(), `
		select o.operation_id, o.topic, o.created_at, o.payload::text
		from aksara_operation_outbox o join aksara_operations op on op.id = o.operation_id
		where o.tenant_scope = $1 and op.application_namespace = $2 and o.exported_at is null order by o.id`, scope.Stored(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	var topic, payload string
	var created time.Time
	var records []*kgo.Record
	_, err = pgx.ForEachRow(rows, []any{&id, &topic, &created, &payload}, func() error {
		e, err := envelope.New(namespace, scope, id, topic, created, []byte(payload))
		records = append(records, s.record(e))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.produce(t, records...)
	s.db.Exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp() where tenant_scope = $1`, scope.Stored())
}

func (s *stage) record(e envelope.Event) *kgo.Record {
	r := e.Record()
	record := &kgo.Record{Topic: s.topic, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return record
}

func (s *stage) produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// verify compares, in passes of about that many records.
func (s *stage) verify(t *testing.T, passRecords int64) *Result {
	t.Helper()
	run, err := newRun(s.config)
	if err != nil {
		t.Fatal(err)
	}
	run.passRecords = passRecords
	result, err := run.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestServersWithoutFaults(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.fill(t, "billing", s.scopes[0])
	s.export(t, "billing", s.scopes[0])
	s.fill(t, testNamespace, s.scopes[1])
	for _, passRecords := range []int64{1000, 30} {
		result := s.verify(t, passRecords)
		wantFound(t, result, map[Kind]int64{Others: 60, Waiting: 60})
		if result.Rows != 240 || result.Records != 240 || (result.Passes > 1) != (passRecords < 240) {
			t.Errorf("compared %d rows and %d records in %d passes", result.Rows, result.Records, result.Passes)
		}
	}
}

func TestServersWithFaults(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	records := s.broker.All(t, s.topic)
	again := func(change func(*kgo.Record)) {
		r := *records[0]
		r.Headers = slices.Clone(r.Headers)
		change(&r)
		s.produce(t, &kgo.Record{Topic: s.topic, Key: r.Key, Value: r.Value, Headers: r.Headers})
	}
	header := func(r *kgo.Record, key string) *kgo.RecordHeader {
		return &r.Headers[slices.IndexFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == key })]
	}
	again(func(*kgo.Record) {})
	again(func(r *kgo.Record) { r.Value = []byte(strings.Replace(string(r.Value), ": ", ":", 1)) })
	again(func(r *kgo.Record) { header(r, envelope.HeaderID).Value = []byte("x") })
	again(func(r *kgo.Record) { r.Key = []byte("customer-7") })
	e, err := envelope.New(testNamespace, tenant(t, "initech"), uuid.MustParse(string(records[0].Key)), testType, epoch, []byte(`{"state_version": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	s.produce(t, s.record(e))

	s.fill(t, testNamespace, s.scopes[2])
	s.db.Exec(t, `update aksara_operation_outbox set exported_at = clock_timestamp(),
		last_error = case when id % 3 = 0 then 'discarded: asked for' when id % 3 = 1 then 'dead-lettered: too large' end
		where exported_at is null`)
	for _, passRecords := range []int64{1000, 30} {
		wantFound(t, s.verify(t, passRecords), map[Kind]int64{
			Duplicated: 2, Altered: 1, Malformed: 2, WrongScope: 1, Lost: 20, GivenUp: 40,
		})
	}
}

// What a table holds for other scopes and applications doesn't count, however its ids lie.
func TestServersWithSparseTables(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.db.Exec(t, `alter sequence aksara_operation_outbox_id_seq restart 4000000000000`)
	s.fill(t, testNamespace, tenant(t, "initech"))
	s.fill(t, testNamespace, s.scopes[0])
	s.export(t, testNamespace, s.scopes[0])
	s.db.Exec(t, `alter sequence aksara_operation_outbox_id_seq restart 9223372036854775807`)
	admitted, err := (sample.Application{Namespace: testNamespace}).Admit(t.Context(), s.db.Pool(t), s.scopes[0])
	if err != nil {
		t.Fatal(err)
	}
	result := s.verify(t, 1000)
	wantFound(t, result, map[Kind]int64{Waiting: 1})
	if e := result.Find(Waiting).Examples[0]; e.Operation != admitted || e.Row != 9223372036854775807 {
		t.Errorf("the waiting one is %v", e)
	}
}

func TestServersWithMoreRowsThanAPage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := (sample.Application{Namespace: testNamespace}).Fill(t.Context(), s.db.Pool(t), s.scopes[0], 3000, 4); err != nil {
		t.Fatal(err)
	}
	wantFound(t, s.verify(t, 1000), map[Kind]int64{Waiting: 12000})
}

func TestServersWithRetention(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: s.topic, Partition: 0, At: 5})
	if _, err := s.broker.Admin(t).DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	result := s.verify(t, 1000)
	if err := result.Err(); err != nil || result.Find(Unjudged).Count != 5 {
		t.Errorf("%v, %v", err, result.Findings)
	}
}

func TestServersWithACompactedTopic(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.topic = s.broker.Topic(t, 1, map[string]string{"cleanup.policy": "compact"})
	s.fill(t, testNamespace, s.scopes[0])
	s.db.Exec(t, `delete from aksara_operation_outbox where exported_at is not null`)
	s.export(t, testNamespace, s.scopes[0])
	// The fake broker compacts nothing, so a record is left out instead.
	all := s.broker.All(t, s.topic)
	s.topic = s.broker.Topic(t, 1, map[string]string{"cleanup.policy": "compact"})
	for _, r := range all[1:] {
		s.produce(t, &kgo.Record{Topic: s.topic, Key: r.Key, Value: r.Value, Headers: r.Headers})
	}
	wantFound(t, s.verify(t, 1000), map[Kind]int64{Unjudged: 1})
}

// Records of aborted transactions are none, wherever they lie, and an open one is waited for.
func TestServersWithTransactions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	records := s.broker.All(t, s.topic)
	id := kafkatest.Name("writer")
	client := s.broker.Client(t, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	copied := &kgo.Record{Topic: s.topic, Key: records[0].Key, Value: records[0].Value, Headers: records[0].Headers}
	if err := client.ProduceSync(t.Context(), copied).FirstErr(); err != nil {
		t.Fatal(err)
	}

	run, err := newRun(s.config)
	if err != nil {
		t.Fatal(err)
	}
	run.topics.(*topics).stall = 300 * time.Millisecond
	if _, err := run.all(t.Context()); err == nil || !strings.Contains(err.Error(), "transaction may be open") {
		t.Errorf("with an open transaction: %v", err)
	}
	if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	wantFound(t, s.verify(t, 1000), nil)
}

func TestServersThatFail(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no topic": {func(c *Config) { c.Topic = func(envelope.Scope) string { return "none" } }, `topic "none"`},
		"no broker": {func(c *Config) {
			c.Kafka = []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1"), kgo.RetryTimeout(time.Millisecond)}
		}, "ask for the topics' starts"},
		"bad options":  {func(c *Config) { c.Kafka = []kgo.Opt{kgo.MaxVersions(nil), kgo.SeedBrokers()} }, "settings of Kafka"},
		"no schema":    {func(c *Config) { c.Schema = "elsewhere" }, `read rows of tenant "acme"`},
		"no scopes":    {func(c *Config) { c.Scopes = nil }, "required"},
		"a bad scope":  {func(c *Config) { c.Scopes = make([]envelope.Scope, 1) }, "invalid"},
		"one twice":    {func(c *Config) { c.Scopes = []envelope.Scope{s.scopes[0], s.scopes[0]} }, "twice"},
		"no namespace": {func(c *Config) { c.Namespace = "" }, "namespace is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := s.config
			test.change(&config)
			if result, err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v, want an error with %q", result, err, test.want)
			}
		})
	}
}

func TestServersAndTheEndOfAContext(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := Run(ctx, s.config); !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// What is deleted before it is read makes a pass begin anew, not a fault.
func TestServersThatDeleteMeanwhile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const fetch, times = int16(kmsg.Fetch), 2
	refused := 0
	s.broker.Cluster.ControlKey(fetch, func(request kmsg.Request) (kmsg.Response, error, bool) {
		if refused == times {
			return nil, nil, false
		}
		refused++
		s.broker.Cluster.KeepControl()
		return outOfRange(request.(*kmsg.FetchRequest)), nil, true
	})
	result := s.verify(t, 1000)
	wantFound(t, result, nil)
	if refused != times || result.Passes != 1 || result.Rows != 180 || result.Records != 180 {
		t.Errorf("%d passes, %d rows, %d records; %d fetches were refused", result.Passes, result.Rows, result.Records, refused)
	}
}

func outOfRange(request *kmsg.FetchRequest) *kmsg.FetchResponse {
	response := request.ResponseKind().(*kmsg.FetchResponse)
	for _, asked := range request.Topics {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, p := range asked.Partitions {
			partition := kmsg.NewFetchResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.OffsetOutOfRange.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// A partition whose new leader does not know its end yet is asked again.
func TestServersThatElectALeader(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var refused atomic.Bool
	s.broker.Cluster.ControlKey(int16(kmsg.ListOffsets), func(request kmsg.Request) (kmsg.Response, error, bool) {
		refused.Store(true)
		response := request.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range request.(*kmsg.ListOffsetsRequest).Topics {
			answer := kmsg.NewListOffsetsResponseTopic()
			answer.Topic = topic.Topic
			for _, partition := range topic.Partitions {
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, kerr.OffsetNotAvailable.Code
				answer.Partitions = append(answer.Partitions, p)
			}
			response.Topics = append(response.Topics, answer)
		}
		return response, nil, true
	})
	wantFound(t, s.verify(t, 1000), nil)
	if !refused.Load() {
		t.Error("offsets were not asked for")
	}
}
