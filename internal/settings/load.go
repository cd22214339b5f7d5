package settings

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/sethvargo/go-envconfig"

	"outboxrelay/envelope"
)

// maxInstance bounds RELAY_INSTANCE. Three digits: the random five that end the
// name of a Kubernetes Deployment's pod may all be digits and must not pass as one.
const maxInstance = 999

// loader is the work of one [Load].
type loader struct {
	given    map[string]string // the variables that are set
	readFile func(string) ([]byte, error)
	hostname string
	optional []string // variables that need not be set this time
	faults   Faults   // of single variables
	rules    Faults   // of rules between variables
}

// texts are the variables before anything is made of them.
type texts struct {
	DatabaseURL      string `env:"RELAY_DATABASE_URL"`
	DatabasePassword string `env:"RELAY_DATABASE_PASSWORD"`
	DatabaseSchema   string `env:"RELAY_DATABASE_SCHEMA"`
	DatabasePooled   string `env:"RELAY_DATABASE_POOLED"`

	Namespace string `env:"RELAY_NAMESPACE"`
	Tenants   string `env:"RELAY_TENANTS"`
	NonTenant string `env:"RELAY_NON_TENANT"`
	WorkerID  string `env:"RELAY_WORKER_ID"`

	KafkaBrokers           string `env:"RELAY_KAFKA_BROKERS"`
	KafkaTopic             string `env:"RELAY_KAFKA_TOPIC"`
	KafkaMinInsyncReplicas string `env:"RELAY_KAFKA_MIN_INSYNC_REPLICAS"`
	KafkaDeliveryTimeout   string `env:"RELAY_KAFKA_DELIVERY_TIMEOUT"`
	KafkaCompression       string `env:"RELAY_KAFKA_COMPRESSION"`
	KafkaClientID          string `env:"RELAY_KAFKA_CLIENT_ID"`

	KafkaTLS           string `env:"RELAY_KAFKA_TLS"`
	KafkaTLSCAFile     string `env:"RELAY_KAFKA_TLS_CA_FILE"`
	KafkaTLSCertFile   string `env:"RELAY_KAFKA_TLS_CERT_FILE"`
	KafkaTLSKeyFile    string `env:"RELAY_KAFKA_TLS_KEY_FILE"`
	KafkaSASLMechanism string `env:"RELAY_KAFKA_SASL_MECHANISM"`
	KafkaSASLUsername  string `env:"RELAY_KAFKA_SASL_USERNAME"`
	KafkaSASLPassword  string `env:"RELAY_KAFKA_SASL_PASSWORD"`
	KafkaSASLTokenFile string `env:"RELAY_KAFKA_SASL_TOKEN_FILE"`

	Delivery        string `env:"RELAY_DELIVERY"`
	TransactionalID string `env:"RELAY_TRANSACTIONAL_ID"`
	Instance        string `env:"RELAY_INSTANCE"`
	LedgerTopic     string `env:"RELAY_LEDGER_TOPIC"`
	RowFaults       string `env:"RELAY_ROW_FAULTS"`
	DeadLetterTopic string `env:"RELAY_DEAD_LETTER_TOPIC"`

	ClaimLease    string `env:"RELAY_CLAIM_LEASE"`
	RetryDelay    string `env:"RELAY_RETRY_DELAY"`
	RetryMaxDelay string `env:"RELAY_RETRY_MAX_DELAY"`
	BatchRows     string `env:"RELAY_BATCH_ROWS"`
	BatchBytes    string `env:"RELAY_BATCH_BYTES"`
	Workers       string `env:"RELAY_WORKERS"`
	PollInterval  string `env:"RELAY_POLL_INTERVAL"`

	HTTPAddress   string `env:"RELAY_HTTP_ADDRESS"`
	HTTPDetails   string `env:"RELAY_HTTP_DETAILS"`
	LogLevel      string `env:"RELAY_LOG_LEVEL"`
	LogFormat     string `env:"RELAY_LOG_FORMAT"`
	ShutdownGrace string `env:"RELAY_SHUTDOWN_GRACE"`
}

// Load makes settings of the variables in environ, which has the form of
// os.Environ(). readFile reads the files that _FILE variables name, and hostname
// stands in for what isn't set. If anything is wrong there are no settings, and the
// error is a [Faults] with everything that is wrong.
//
// A command that uses a part of the settings names the required variables that it
// does without, as optional; what is set must be right even so.
//
// go-envconfig only decodes to text here: it would stop at the first error, name Go
// fields instead of variables, and let an empty value win over a default.
func Load(environ []string, readFile func(string) ([]byte, error), hostname string, optional ...string) (*Settings, error) {
	l := &loader{given: environment(environ), readFile: readFile, hostname: hostname, optional: optional}
	var t texts
	if err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: &t, Lookuper: l}); err != nil {
		return nil, fmt.Errorf("settings: decode the environment: %w", err)
	}
	l.checkUnknown()
	s := l.settings(t)
	l.checkRules(s)
	if faults := slices.Concat(l.faults, l.rules); len(faults) > 0 {
		return nil, faults
	}
	s.rows = l.describe(s, t)
	return s, nil
}

// HTTPAddress is where a relay with this environment answers HTTP, empty if nowhere.
// Nothing else is looked at: whoever asks a relay how it does can do so while a file
// that the relay once read is gone.
func HTTPAddress(environ []string) (string, error) {
	l := &loader{given: environment(environ)}
	text, _ := l.Lookup("RELAY_HTTP_ADDRESS")
	address := l.httpAddress(text)
	if len(l.faults) > 0 {
		return "", l.faults
	}
	return address, nil
}

// needs tells whether a required variable is so this time too.
func (l *loader) needs(name string) bool { return !slices.Contains(l.optional, name) }

// settings parses each variable by itself, in the order of the documentation.
func (l *loader) settings(t texts) *Settings {
	s := &Settings{
		Database:    l.database(t),
		Namespace:   l.namespace(t.Namespace),
		NonTenant:   l.boolean("RELAY_NON_TENANT", t.NonTenant),
		TenantsFile: l.fileOf(variable("RELAY_TENANTS")),
		WorkerID:    l.workerID(t.WorkerID),
		Kafka:       l.kafka(t),

		Delivery:        Delivery(l.choice("RELAY_DELIVERY", t.Delivery)),
		TransactionalID: l.plain("RELAY_TRANSACTIONAL_ID", t.TransactionalID),
		Instance:        l.instance(t.Instance),
		LedgerTopic:     l.topic("RELAY_LEDGER_TOPIC", t.LedgerTopic),
		RowFaults:       RowFaults(l.choice("RELAY_ROW_FAULTS", t.RowFaults)),
		DeadLetterTopic: l.topicTemplate("RELAY_DEAD_LETTER_TOPIC", t.DeadLetterTopic),

		Lease:         l.duration("RELAY_CLAIM_LEASE", t.ClaimLease),
		RetryDelay:    l.duration("RELAY_RETRY_DELAY", t.RetryDelay),
		RetryMaxDelay: l.duration("RELAY_RETRY_MAX_DELAY", t.RetryMaxDelay),
		BatchRows:     l.integer("RELAY_BATCH_ROWS", t.BatchRows),
		BatchBytes:    l.size("RELAY_BATCH_BYTES", t.BatchBytes),
		Workers:       l.integer("RELAY_WORKERS", t.Workers),
		PollInterval:  l.duration("RELAY_POLL_INTERVAL", t.PollInterval),

		HTTPAddress:   l.httpAddress(t.HTTPAddress),
		HTTPDetails:   l.boolean("RELAY_HTTP_DETAILS", t.HTTPDetails),
		LogLevel:      l.choice("RELAY_LOG_LEVEL", t.LogLevel),
		LogFormat:     l.choice("RELAY_LOG_FORMAT", t.LogFormat),
		ShutdownGrace: l.duration("RELAY_SHUTDOWN_GRACE", t.ShutdownGrace),
	}
	s.Scopes = withNonTenant(l.tenants(t.Tenants), s.NonTenant)
	return s
}

func (l *loader) namespace(text string) string {
	const name = "RELAY_NAMESPACE"
	if text == "" {
		if l.needs(name) {
			l.fault(name, "is required")
		}
		return ""
	}
	if err := envelope.CheckNamespace(text); err != nil {
		l.fault(name, "%v", err)
	}
	return text
}

func (l *loader) tenants(text string) []envelope.Scope {
	const name = "RELAY_TENANTS"
	parse, shown := ParseTenants, name
	if l.fileOf(variable(name)) != "" {
		parse, shown = ParseTenantLines, name+fileSuffix
	}
	if text == "" {
		return nil
	}
	tenants, err := parse(text)
	if err != nil {
		l.fault(shown, "%v", err)
	}
	return tenants
}

func (l *loader) workerID(text string) string {
	const name = "RELAY_WORKER_ID"
	if text == "" {
		text = l.hostname
	}
	if text == "" && l.needs(name) {
		l.fault(name, "is required: this host has no name to take instead")
	}
	return l.plain(name, text)
}

// instance is the number given, or the one that ends the host name, or -1.
func (l *loader) instance(text string) int {
	if text != "" {
		return l.integer("RELAY_INSTANCE", text)
	}
	match := regexp.MustCompile(`-([0-9]{1,3})$`).FindStringSubmatch(l.hostname)
	if match == nil {
		return -1
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return -1
	}
	return n
}
