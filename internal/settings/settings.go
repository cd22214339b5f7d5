// Package settings turns the relay's environment variables into one typed and
// validated configuration.
//
// [Load] is the way in. It reads no environment of its own: the caller hands it
// os.Environ(), so that one place of the program alone touches the outside. It
// finds all faults at once, each with the names of its variables, and repeats no
// secret. [Variables] is the one list of all variables; the documentation and
// "relay config" are made from it.
//
// Empty means unset. What may change while the relay runs is read again from its
// file: secrets by [Secret.Read], tenants by [TenantsFile]. Everything else stays
// as it was loaded, and a *Settings may be read from several goroutines.
package settings

import (
	"time"

	"outboxrelay/envelope"
)

// Settings is everything that the relay was told. Only [Load] makes it. Where it was
// loaded with optional variables, what is said of those holds if they are set.
type Settings struct {
	Database Database

	// Namespace is the application namespace to export, exact and case-sensitive.
	Namespace string
	// Scopes are what to export: the tenants in the order given, then the
	// non-tenant scope if NonTenant. There is at least one and none stands twice.
	Scopes    []envelope.Scope
	NonTenant bool
	// TenantsFile is where the tenants came from, or empty; see [NewTenantsFile].
	TenantsFile string
	// WorkerID is the part of claimed_by that people recognise; at most 200
	// characters, so that a token fits behind it.
	WorkerID string

	Kafka Kafka

	Delivery Delivery
	// TransactionalID is the prefix of the transactional ids; set in exactly-once.
	TransactionalID string
	// Instance is this relay's number, or -1 if it has none; at least 0 in
	// exactly-once.
	Instance    int
	LedgerTopic string

	RowFaults RowFaults
	// DeadLetterTopic may hold {tenant}, see [TopicFor]; set with [DeadLetter].
	DeadLetterTopic string

	// Lease is how long a claim holds: more than twice Kafka.DeliveryTimeout + 3s.
	Lease time.Duration
	// RetryDelay and RetryMaxDelay are the first and the longest wait after a failed
	// send, before the random factor of 0.5 to 1.
	RetryDelay, RetryMaxDelay time.Duration
	// BatchRows and BatchBytes bound one claim: rows, and bytes of payload text.
	BatchRows, BatchBytes int
	// Workers is the number of claims in flight at once.
	Workers int
	// PollInterval is the longest wait before an idle scope is looked at again.
	PollInterval time.Duration

	// HTTPAddress is host:port to listen on; empty turns HTTP off.
	HTTPAddress string
	// HTTPDetails allows tenant names and error texts on the page and in /status.
	HTTPDetails bool

	// LogLevel is a level's name as zerolog spells it.
	LogLevel string
	// LogFormat is json or console; empty leaves it to the kind of standard error:
	// console on a terminal, else json.
	LogFormat string
	// ShutdownGrace is the time from SIGTERM to a clean end, at least
	// Kafka.DeliveryTimeout + 5s.
	ShutdownGrace time.Duration

	rows []Row // see Describe
}

// Database says where the outbox is.
type Database struct {
	// URL is a connection string, a URL or libpq's keywords and values. If it isn't
	// set, libpq's PG* variables say it all.
	URL Secret
	// Password, if set, stands instead of the one in URL.
	Password Secret
	// Schema holds the Aksara tables; a bare name, to be quoted in SQL.
	Schema string
	// Pooled tells of a transaction pooler between the relay and Postgres.
	Pooled bool
}

// Read gives the connection string and password for a new connection; those that
// came from a file are read again. The connection string passes the check that
// [Load] makes. An error names the variable and holds no secret.
func (d Database) Read(readFile func(string) ([]byte, error)) (url, password string, err error) {
	if url, err = d.URL.Read(readFile); err != nil {
		return "", "", err
	}
	if problem := connStringProblem(url); problem != "" {
		return "", "", Fault{Names: []string{"RELAY_DATABASE_URL"}, Problem: problem}
	}
	password, err = d.Password.Read(readFile)
	return url, password, err
}

// Kafka says where the events go.
type Kafka struct {
	// Brokers are host:port, at least one.
	Brokers []string
	// Topic may hold {tenant}, see [TopicFor].
	Topic string
	// MinInsyncReplicas is what a topic must promise (min.insync.replicas), and as
	// many replicas must it have.
	MinInsyncReplicas int
	// DeliveryTimeout counts from handing an event to the client until its outcome
	// is called unknown.
	DeliveryTimeout time.Duration
	// Compression is none, gzip, snappy, lz4 or zstd.
	Compression string
	TLS         TLS
	SASL        SASL
	ClientID    string
}

// TLS holds the names of PEM files; read them again for each new connection.
type TLS struct {
	Enabled bool
	// CAFile is empty for the system's authorities.
	CAFile string
	// CertFile and KeyFile are both set or both empty.
	CertFile, KeyFile string
}

// SASL is empty (no Mechanism), or complete for its mechanism.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
	Mechanism string
	// Username and Password are set for all mechanisms but OAUTHBEARER.
	Username string
	Password Secret
	// TokenFile holds the bearer token; set for OAUTHBEARER. Read it again for each
	// new connection.
	TokenFile string
}

// Delivery is the promise made for each event.
type Delivery string

// The two promises.
const (
	AtLeastOnce Delivery = "at-least-once"
	ExactlyOnce Delivery = "exactly-once"
)

// RowFaults is what becomes of an event that can't be sent as it is.
type RowFaults string

// The two ways: parked in the table, or sent to the dead-letter topic.
const (
	Park       RowFaults = "park"
	DeadLetter RowFaults = "dead-letter"
)
