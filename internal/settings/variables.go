package settings

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// defaultCompression is the codec used when none is named.
const defaultCompression = "snappy"

// Variable describes one environment variable.
type Variable struct {
	Name string
	// Default is the value that an unset variable has; empty if none.
	Default string
	// Note says what holds instead where an unset variable has no default value.
	Note string
	// File tells whether Name + "_FILE" may name a file that holds the value.
	File bool
	// Secret tells whether the value must never be shown.
	Secret bool
	// Meaning is one line for people.
	Meaning string

	kind     kind
	min, max int64    // for numbers, durations (nanoseconds) and sizes (bytes); max also for the characters of a text
	choices  []string // for choice
	form     string   // for freeText: what kind of text, if it isn't just any
}

type kind uint8

const (
	freeText kind = iota
	boolean
	integer
	duration
	size
	choice
)

// Type says in a few words what values are allowed.
func (v Variable) Type() string {
	switch v.kind {
	case boolean:
		return "true or false"
	case integer:
		return fmt.Sprintf("number, %d to %d", v.min, v.max)
	case duration:
		return fmt.Sprintf("duration, %s to %s", formatDuration(time.Duration(v.min)), formatDuration(time.Duration(v.max)))
	case size:
		return fmt.Sprintf("size, %s to %s", formatSize(v.min), formatSize(v.max))
	case choice:
		return strings.Join(v.choices, ", ")
	}
	if v.form != "" {
		return v.form
	}
	if v.max > 0 {
		return fmt.Sprintf("text, at most %d characters", v.max)
	}
	return "text"
}

// Variables lists every variable, in the order of the documentation.
func Variables() []Variable {
	return slices.Concat(databaseVariables(), scopeVariables(), kafkaVariables(), securityVariables(),
		deliveryVariables(), claimVariables(), processVariables())
}

// variable finds a variable by its name. A name that isn't there is a mistake in
// this package.
func variable(name string) Variable {
	all := Variables()
	i := slices.IndexFunc(all, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		panic("settings: no variable is called " + name)
	}
	return all[i]
}

func databaseVariables() []Variable {
	return []Variable{
		{Name: "RELAY_DATABASE_URL", form: "connection string", Note: "libpq's PG* variables", File: true, Secret: true,
			Meaning: "Where Postgres is: a URL or libpq's keywords and values. Several hosts are allowed, then a writable one is taken. A file is read again for each new connection."},
		{Name: "RELAY_DATABASE_PASSWORD", File: true, Secret: true,
			Meaning: "Stands instead of the password in the URL. A file is read again for each new connection."},
		{Name: "RELAY_DATABASE_SCHEMA", Default: "public", form: "text, at most 63 bytes",
			Meaning: "The schema that holds the Aksara tables."},
		{Name: "RELAY_DATABASE_POOLED", Default: "false", kind: boolean,
			Meaning: "True behind a transaction pooler such as PgBouncer."},
	}
}

func scopeVariables() []Variable {
	return []Variable{
		{Name: "RELAY_NAMESPACE", Note: "required", max: 255,
			Meaning: "The application namespace to export, exact and case-sensitive: the `application_namespace` that the application gives to DurableOperationService."},
		{Name: "RELAY_TENANTS", form: "list", File: true,
			Meaning: "The tenant ids to export, exact and case-sensitive: the `tenant_id`s of the principals that admit Operations. A JSON array when it begins with `[`, else separated by commas. In the file one a line, or a JSON array; the file is looked at every 10 s."},
		{Name: "RELAY_NON_TENANT", Default: "false", kind: boolean,
			Meaning: "Also export the events that belong to no tenant. It never stands for all tenants."},
		{Name: "RELAY_WORKER_ID", Note: "the host name", max: 200,
			Meaning: "Shown in `claimed_by`, which the relay itself makes unique for each claim."},
	}
}

func kafkaVariables() []Variable {
	return []Variable{
		{Name: "RELAY_KAFKA_BROKERS", Note: "required", form: "list of host:port",
			Meaning: "The brokers to begin with, separated by commas."},
		{Name: "RELAY_KAFKA_TOPIC", Default: "aksara.operation.transitions", form: "topic name",
			Meaning: "The topic of the events; may hold `{tenant}`."},
		{Name: "RELAY_KAFKA_MIN_INSYNC_REPLICAS", Default: "2", kind: integer, min: 1, max: 100,
			Meaning: "Nothing is claimed for a topic whose `min.insync.replicas` is less, or that has fewer replicas."},
		{Name: "RELAY_KAFKA_DELIVERY_TIMEOUT", Default: "10s", kind: duration, min: int64(time.Second), max: int64(30 * time.Minute),
			Meaning: "From handing an event to the client until its outcome counts as unknown."},
		{Name: "RELAY_KAFKA_COMPRESSION", Default: defaultCompression, kind: choice,
			choices: []string{"none", "gzip", "snappy", "lz4", "zstd"},
			Meaning: "The codec of the record batches."},
		{Name: "RELAY_KAFKA_CLIENT_ID", Default: "relay", max: 200,
			Meaning: "The client id that brokers see, in their logs and quotas."},
	}
}

func securityVariables() []Variable {
	return []Variable{
		{Name: "RELAY_KAFKA_TLS", Default: "false", kind: boolean,
			Meaning: "Speak TLS with the brokers."},
		{Name: "RELAY_KAFKA_TLS_CA_FILE", Note: "the system's authorities", form: "file name",
			Meaning: "PEM certificates of the authorities to trust. Read again for each new connection."},
		{Name: "RELAY_KAFKA_TLS_CERT_FILE", form: "file name",
			Meaning: "The relay's own PEM certificate. Read again for each new connection."},
		{Name: "RELAY_KAFKA_TLS_KEY_FILE", form: "file name",
			Meaning: "The key of that certificate. Read again for each new connection."},
		{Name: "RELAY_KAFKA_SASL_MECHANISM", Note: "no SASL", kind: choice,
			choices: []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"},
			Meaning: "How the relay proves who it is."},
		{Name: "RELAY_KAFKA_SASL_USERNAME",
			Meaning: "For PLAIN and SCRAM."},
		{Name: "RELAY_KAFKA_SASL_PASSWORD", File: true, Secret: true,
			Meaning: "For PLAIN and SCRAM. A file is read again for each new connection."},
		{Name: "RELAY_KAFKA_SASL_TOKEN_FILE", form: "file name",
			Meaning: "The file with the bearer token, for OAUTHBEARER. Read again for each new connection."},
	}
}

func deliveryVariables() []Variable {
	return []Variable{
		{Name: "RELAY_DELIVERY", Default: string(AtLeastOnce), kind: choice,
			choices: []string{string(AtLeastOnce), string(ExactlyOnce)},
			Meaning: "The promise made for each event."},
		{Name: "RELAY_TRANSACTIONAL_ID", Note: "required in exactly-once", max: 200,
			Meaning: "Prefix of the transactional ids: the same for all relays that share these rows, different for all others."},
		{Name: "RELAY_INSTANCE", Note: "n of a host name `...-n`", kind: integer, min: 0, max: maxInstance,
			Meaning: "This relay's number in exactly-once, required if the host name has none; unique among the relays that share the rows."},
		{Name: "RELAY_LEDGER_TOPIC", Default: "relay.ledger", form: "topic name",
			Meaning: "The compacted topic that exactly-once keeps its ledger in."},
		{Name: "RELAY_ROW_FAULTS", Default: string(Park), kind: choice,
			choices: []string{string(Park), string(DeadLetter)},
			Meaning: "What becomes of an event that can't be sent as it is."},
		{Name: "RELAY_DEAD_LETTER_TOPIC", Note: "required with dead-letter", form: "topic name",
			Meaning: "The topic for such events; may hold `{tenant}`, and must if RELAY_KAFKA_TOPIC does."},
	}
}

func claimVariables() []Variable {
	return []Variable{
		{Name: "RELAY_CLAIM_LEASE", Default: "30s", kind: duration, min: int64(time.Second), max: int64(24 * time.Hour),
			Meaning: "How long a claim holds; `claim_seconds` of the Python exporter."},
		{Name: "RELAY_RETRY_DELAY", Default: "5s", kind: duration, min: int64(10 * time.Millisecond), max: int64(24 * time.Hour),
			Meaning: "The first wait after a failed send, multiplied by a random 0.5 to 1."},
		{Name: "RELAY_RETRY_MAX_DELAY", Default: "5m", kind: duration, min: int64(10 * time.Millisecond), max: int64(24 * time.Hour),
			Meaning: "The longest wait after a failed send, multiplied by a random 0.5 to 1."},
		{Name: "RELAY_BATCH_ROWS", Default: "1000", kind: integer, min: 1, max: 10_000,
			Meaning: "The most rows of one claim."},
		{Name: "RELAY_BATCH_BYTES", Default: "4MiB", kind: size, min: 1, max: 1 << 30,
			Meaning: "The most bytes of payload text of one claim; one row always fits."},
		{Name: "RELAY_WORKERS", Default: "4", kind: integer, min: 1, max: 8,
			Meaning: "Claims in flight at once."},
		{Name: "RELAY_POLL_INTERVAL", Default: "250ms", kind: duration, min: int64(10 * time.Millisecond), max: int64(time.Hour),
			Meaning: "The longest wait before an idle scope is looked at again; after a claim that found rows it is looked at again at once."},
	}
}

func processVariables() []Variable {
	return []Variable{
		{Name: "RELAY_HTTP_ADDRESS", Default: ":8080", form: "host:port, or off",
			Meaning: "Where to serve health, metrics and the status page; `off` turns it off."},
		{Name: "RELAY_HTTP_DETAILS", Default: "false", kind: boolean,
			Meaning: "Show tenant names and error texts over HTTP, on the page, in `/status` and in `/readyz`; else totals, and reasons in a few words."},
		{Name: "RELAY_LOG_LEVEL", Default: "info", kind: choice,
			choices: []string{"trace", "debug", "info", "warn", "error", "fatal", "panic", "disabled"},
			Meaning: "The least level that is logged."},
		{Name: "RELAY_LOG_FORMAT", Note: "json (console on a terminal)", kind: choice,
			choices: []string{"json", "console"},
			Meaning: "How log lines look."},
		{Name: "RELAY_SHUTDOWN_GRACE", Default: "20s", kind: duration, min: int64(time.Second), max: int64(time.Hour),
			Meaning: "From SIGTERM to a clean end."},
	}
}
