package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"outboxrelay/envelope"
)

func tenant(t *testing.T, id string) envelope.Scope {
	t.Helper()
	scope, err := envelope.Tenant(id)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	s := mustLoad(t, minimal(), nil)
	want := &Settings{
		Database: Database{
			URL:      hide(hidden{name: "RELAY_DATABASE_URL", value: "postgres://relay@db/app"}),
			Password: hide(hidden{name: "RELAY_DATABASE_PASSWORD"}),
			Schema:   "public",
		},
		Namespace: "shop",
		Scopes:    []envelope.Scope{tenant(t, "acme"), tenant(t, "globex")},
		WorkerID:  host,
		Kafka: Kafka{
			Brokers: []string{"kafka:9092"}, Topic: "aksara.operation.transitions", MinInsyncReplicas: 2,
			DeliveryTimeout: 10 * time.Second, Compression: "snappy", ClientID: "relay",
			SASL: SASL{Password: hide(hidden{name: "RELAY_KAFKA_SASL_PASSWORD"})},
		},
		Delivery: AtLeastOnce, Instance: 3, LedgerTopic: "relay.ledger", RowFaults: Park,
		Lease: 30 * time.Second, RetryDelay: 5 * time.Second, RetryMaxDelay: 5 * time.Minute,
		BatchRows: 1000, BatchBytes: 4 << 20, Workers: 4, PollInterval: 250 * time.Millisecond,
		HTTPAddress: ":8080", LogLevel: "info", ShutdownGrace: 20 * time.Second,
		rows: s.rows,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("settings\n%+v\nwant\n%+v", s, want)
	}
}

func TestLoadEverything(t *testing.T) {
	t.Parallel()
	s := mustLoad(t, map[string]string{
		"RELAY_DATABASE_URL_FILE":         "url",
		"RELAY_DATABASE_PASSWORD_FILE":    "pw",
		"RELAY_DATABASE_SCHEMA":           "Ops Schema",
		"RELAY_DATABASE_POOLED":           "true",
		"RELAY_NAMESPACE":                 " Shop ",
		"RELAY_TENANTS_FILE":              "tenants",
		"RELAY_NON_TENANT":                "1",
		"RELAY_WORKER_ID":                 "relay/a",
		"RELAY_KAFKA_BROKERS":             "a:1, [::1]:65535",
		"RELAY_KAFKA_TOPIC":               "events",
		"RELAY_KAFKA_MIN_INSYNC_REPLICAS": "1",
		"RELAY_KAFKA_DELIVERY_TIMEOUT":    "1s",
		"RELAY_KAFKA_COMPRESSION":         "zstd",
		"RELAY_KAFKA_CLIENT_ID":           "me",
		"RELAY_KAFKA_TLS":                 "true",
		"RELAY_KAFKA_TLS_CA_FILE":         "/ca",
		"RELAY_KAFKA_TLS_CERT_FILE":       "/cert",
		"RELAY_KAFKA_TLS_KEY_FILE":        "/key",
		"RELAY_KAFKA_SASL_MECHANISM":      "PLAIN",
		"RELAY_KAFKA_SASL_USERNAME":       "u",
		"RELAY_KAFKA_SASL_PASSWORD":       " p ",
		"RELAY_TRANSACTIONAL_ID":          "tx",
		"RELAY_INSTANCE":                  "7",
		"RELAY_LEDGER_TOPIC":              "l",
		"RELAY_DEAD_LETTER_TOPIC":         "dead",
		"RELAY_CLAIM_LEASE":               "8.5s",
		"RELAY_RETRY_DELAY":               "1m",
		"RELAY_RETRY_MAX_DELAY":           "1m",
		"RELAY_BATCH_ROWS":                "1",
		"RELAY_BATCH_BYTES":               "1KiB",
		"RELAY_WORKERS":                   "8",
		"RELAY_POLL_INTERVAL":             "1s",
		"RELAY_HTTP_ADDRESS":              "off",
		"RELAY_HTTP_DETAILS":              "true",
		"RELAY_LOG_LEVEL":                 "debug",
		"RELAY_LOG_FORMAT":                "console",
		"RELAY_SHUTDOWN_GRACE":            "6s",
		"HOME":                            "/ignored",
	}, files{"url": "host=db user=relay\n", "pw": "p w\r\n", "tenants": "acme\r\n\r\nb c\r\n"})
	want := &Settings{
		Database: Database{
			URL:      hide(hidden{name: "RELAY_DATABASE_URL", value: "host=db user=relay", file: "url"}),
			Password: hide(hidden{name: "RELAY_DATABASE_PASSWORD", value: "p w", file: "pw"}),
			Schema:   "Ops Schema", Pooled: true,
		},
		Namespace: " Shop ",
		Scopes:    []envelope.Scope{tenant(t, "acme"), tenant(t, "b c"), envelope.NonTenant()},
		NonTenant: true, TenantsFile: "tenants", WorkerID: "relay/a",
		Kafka: Kafka{
			Brokers: []string{"a:1", "[::1]:65535"}, Topic: "events", MinInsyncReplicas: 1,
			DeliveryTimeout: time.Second, Compression: "zstd", ClientID: "me",
			TLS: TLS{Enabled: true, CAFile: "/ca", CertFile: "/cert", KeyFile: "/key"},
			SASL: SASL{Mechanism: "PLAIN", Username: "u",
				Password: hide(hidden{name: "RELAY_KAFKA_SASL_PASSWORD", value: " p "})},
		},
		Delivery: AtLeastOnce, TransactionalID: "tx", Instance: 7, LedgerTopic: "l",
		RowFaults: Park, DeadLetterTopic: "dead",
		Lease: 8500 * time.Millisecond, RetryDelay: time.Minute, RetryMaxDelay: time.Minute,
		BatchRows: 1, BatchBytes: 1024, Workers: 8, PollInterval: time.Second,
		HTTPDetails: true, LogLevel: "debug", LogFormat: "console", ShutdownGrace: 6 * time.Second,
		rows: s.rows,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("settings\n%+v\nwant\n%+v", s, want)
	}
}

// odd are texts that people set by mistake.
func odd() []string {
	return []string{" ", "30", "30s", "-1s", "$HOME", "1000000000000"}
}

// TestLoadEachVariable sets each variable to everything odd and to its own extremes,
// and wants each value either taken or refused with the name of the variable.
func TestLoadEachVariable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat
	texts := []string{"30", "30s", "-1s", "$HOME", "1000000000000"}
	number := []string{"30", "1000000000000"}
	cases := map[string]struct {
		allowed []string
		refused []string
		with    []string
	}{
		"RELAY_DATABASE_URL": {
			allowed: []string{"postgres://u:p@a,b:5433/d", "host=a port=1", "postgresql:///d?host=/run/pg", "postgres://u@h/d?sslmode=verify-full&sslrootcert=/later",
				"postgres://u@h/d?sslcert=/later&sslkey=/later", "host=a sslrootcert=/later"},
			refused: []string{"postgres://u@h:x/d", "postgres://u@h:70000/d", "postgres://u:p@ss@h/d", "postgres://u:p/w@h/d", "postgres://h/d?sslmode=x", "http://h/d", "db"},
		},
		"RELAY_DATABASE_PASSWORD": {allowed: append(odd(), `p#%[{@:/ ?`)},
		"RELAY_DATABASE_SCHEMA":   {allowed: append(texts, long("x", 63), `we"ird`), refused: []string{long("x", 64), long("é", 32), "a ", "a\nb", "a\xff"}},
		"RELAY_DATABASE_POOLED":   {allowed: []string{"true", "false", "0", "T"}, refused: []string{"yes", "on", "2"}},
		"RELAY_NAMESPACE": {allowed: append(odd(), long("é", 255), "a/b", "A"),
			refused: []string{long("x", 256), "__aksara_global__", ".", "..", "a\nb", "\xff"}},
		"RELAY_TENANTS": {allowed: append(texts, "a", "a,b", `["a"," b"]`, "a/b,c:d", "😀"),
			refused: []string{",", "a,", "a, b", "a,a", `["a","a"]`, "[", `[1]`, `{"a":1}` + "\n", "__aksara_global__", "."}},
		"RELAY_NON_TENANT":                {allowed: []string{"true", "false"}, refused: []string{"yes"}},
		"RELAY_WORKER_ID":                 {allowed: append(texts, "a/b", long("é", 200)), refused: []string{long("x", 201), "a\x1bb", " a"}},
		"RELAY_KAFKA_BROKERS":             {allowed: []string{"a:1", "a:1,b:2", "a:1 , b:2", "[::1]:9092"}, refused: []string{"a", "a:", ":1", "a:0", "a:65536", "a:x", "a:1,", "kafka://a:1", "u:p@a:1", "::1:9"}},
		"RELAY_KAFKA_TOPIC":               {allowed: append(texts[:3:3], "1000000000000", "a.b_c-D", "x{tenant}", "{tenant}{tenant}", long("t", 249)), refused: []string{".", "..", "a b", "a/b", "é", "{Tenant}", "{", long("t", 250)}},
		"RELAY_KAFKA_MIN_INSYNC_REPLICAS": {allowed: []string{"30", "1", "100"}, refused: []string{"0", "-1", "101", "1.5", "x"}},
		"RELAY_KAFKA_DELIVERY_TIMEOUT":    {allowed: []string{"30s", "1s", "30m"}, refused: []string{"0", "999ms", "30m1ns", "99999999h"}, with: []string{"RELAY_CLAIM_LEASE", "24h", "RELAY_SHUTDOWN_GRACE", "1h"}},
		"RELAY_KAFKA_COMPRESSION":         {allowed: []string{"none", "gzip", "snappy", "lz4", "zstd"}, refused: []string{"LZ4", "gzip "}},
		"RELAY_KAFKA_CLIENT_ID":           {allowed: append(texts, long("x", 200)), refused: []string{long("x", 201), "a\tb"}},
		"RELAY_KAFKA_TLS":                 {allowed: []string{"true", "false"}, refused: []string{"required"}},
		"RELAY_KAFKA_TLS_CA_FILE":         {allowed: append(texts, "/a b"), refused: []string{"a\x00b"}, with: []string{"RELAY_KAFKA_TLS", "true"}},
		"RELAY_KAFKA_TLS_CERT_FILE":       {allowed: append(texts, "/a b"), with: []string{"RELAY_KAFKA_TLS", "true", "RELAY_KAFKA_TLS_KEY_FILE", "k"}},
		"RELAY_KAFKA_TLS_KEY_FILE":        {allowed: append(texts, "/a b"), with: []string{"RELAY_KAFKA_TLS", "true", "RELAY_KAFKA_TLS_CERT_FILE", "c"}},
		"RELAY_KAFKA_SASL_MECHANISM":      {allowed: []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, refused: []string{"plain", "OAUTHBEARER", "GSSAPI"}, with: []string{"RELAY_KAFKA_SASL_USERNAME", "u", "RELAY_KAFKA_SASL_PASSWORD", "p"}},
		"RELAY_KAFKA_SASL_USERNAME":       {allowed: append(texts, long("x", 1000)), refused: []string{"a\n"}, with: []string{"RELAY_KAFKA_SASL_MECHANISM", "PLAIN", "RELAY_KAFKA_SASL_PASSWORD", "p"}},
		"RELAY_KAFKA_SASL_PASSWORD":       {allowed: odd(), with: []string{"RELAY_KAFKA_SASL_MECHANISM", "PLAIN", "RELAY_KAFKA_SASL_USERNAME", "u"}},
		"RELAY_KAFKA_SASL_TOKEN_FILE":     {allowed: texts, with: []string{"RELAY_KAFKA_SASL_MECHANISM", "OAUTHBEARER"}},
		"RELAY_DELIVERY":                  {allowed: []string{"at-least-once"}, refused: []string{"at-most-once", "exactly-once"}},
		"RELAY_TRANSACTIONAL_ID":          {allowed: append(texts, long("é", 200)), refused: []string{long("x", 201)}},
		"RELAY_INSTANCE":                  {allowed: []string{"30", "0", "999"}, refused: []string{"-1", "1000", "0x1"}},
		"RELAY_LEDGER_TOPIC":              {allowed: append(number, "30s", "-1s"), refused: []string{"{tenant}", "."}},
		"RELAY_ROW_FAULTS":                {allowed: []string{"park"}, refused: []string{"drop"}},
		"RELAY_DEAD_LETTER_TOPIC":         {allowed: append(number, "30s", "-1s", "x.{tenant}"), refused: []string{"a b", ".."}},
		"RELAY_CLAIM_LEASE":               {allowed: []string{"30s", "24h", "26.1s"}, refused: []string{"26s", "24h1s"}},
		"RELAY_RETRY_DELAY":               {allowed: []string{"30s", "10ms", "24h"}, refused: []string{"9ms", "25h", "0s"}, with: []string{"RELAY_RETRY_MAX_DELAY", "24h"}},
		"RELAY_RETRY_MAX_DELAY":           {allowed: []string{"30s", "24h"}, refused: []string{"1s", "25h"}},
		"RELAY_BATCH_ROWS":                {allowed: []string{"30", "1", "10000"}, refused: []string{"0", "10001", "1e3"}},
		"RELAY_BATCH_BYTES":               {allowed: []string{"30", "1B", "64KiB", "1GiB", "1024MiB"}, refused: []string{"0", "2GiB", "4MB", "4M", "1.5MiB", "4 MiB", "-1MiB", "MiB", "9223372036854775807GiB", "99999999999999999999"}},
		"RELAY_WORKERS":                   {allowed: []string{"1", "8"}, refused: []string{"0", "9", "30"}},
		"RELAY_POLL_INTERVAL":             {allowed: []string{"30s", "10ms", "1h"}, refused: []string{"0", "9ms", "61m"}},
		"RELAY_HTTP_ADDRESS":              {allowed: []string{":8080", "127.0.0.1:1", "[::1]:80", "host:0", "off"}, refused: []string{"8080", ":", ":x", ":65536", "OFF", "http://:8080", ":http"}},
		"RELAY_HTTP_DETAILS":              {allowed: []string{"true", "false"}, refused: []string{"maybe"}},
		"RELAY_LOG_LEVEL":                 {allowed: []string{"trace", "debug", "info", "warn", "error", "fatal", "panic", "disabled"}, refused: []string{"INFO", "verbose", "1"}},
		"RELAY_LOG_FORMAT":                {allowed: []string{"json", "console"}, refused: []string{"text"}},
		"RELAY_SHUTDOWN_GRACE":            {allowed: []string{"30s", "15s", "1h"}, refused: []string{"14s", "2h"}},
	}
	for _, v := range Variables() {
		c, ok := cases[v.Name]
		if !ok {
			t.Errorf("no case for %s", v.Name)
			continue
		}
		delete(cases, v.Name)
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			for _, value := range slices.Concat(c.allowed, c.refused, odd()) {
				env := with(append(slices.Clone(c.with), v.Name, value)...)
				_, err := Load(environOf(env), files{}.read, host)
				switch allowed := slices.Contains(c.allowed, value); {
				case allowed && err != nil:
					t.Errorf("%q: %v", value, err)
				case !allowed && err == nil:
					t.Errorf("%q was taken", value)
				case !allowed && !strings.Contains(err.Error(), v.Name):
					t.Errorf("%q: the error doesn't name the variable: %v", value, err)
				}
			}
		})
	}
	for name := range cases {
		t.Errorf("%s is no variable", name)
	}
}

func TestLoadEmptyIsUnset(t *testing.T) {
	t.Parallel()
	want := mustLoad(t, minimal(), nil)
	env := minimal()
	for _, name := range knownNames() {
		if env[name] == "" {
			env[name] = ""
		}
	}
	if got := mustLoad(t, env, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("with empty variables\n%+v\nwithout\n%+v", got, want)
	}
	wantFault(t, loadFaults(t, with("RELAY_NAMESPACE", ""), nil), "required", "RELAY_NAMESPACE")
	wantFault(t, loadFaults(t, with("RELAY_KAFKA_BROKERS", ""), nil), "required", "RELAY_KAFKA_BROKERS")
}

func TestLoadTellsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	faults := loadFaults(t, map[string]string{
		"RELAY_DATABASE_URL":           "postgres://relay@db:x/app",
		"RELAY_DATABASE_PASSWORD_FILE": "gone",
		"RELAY_TENANTS":                "a,,b",
		"RELAY_KAFKA_BROKERS":          "kafka",
		"RELAY_BATCH_BYTES":            "4MB",
		"RELAY_WORKERS":                "9",
		"RELAY_CLAIM_LEASE":            "20s",
		"RELAY_SHUTDOWN_GRACE":         "10s",
		"RELAY_TENANT":                 "a",
	}, nil)
	const want = `RELAY_DATABASE_PASSWORD_FILE: the file can't be read: file does not exist
RELAY_TENANT: is unknown: did you mean RELAY_TENANTS?
RELAY_DATABASE_URL: is no valid connection string, such as postgres://user@host:5432/database or host=... user=... (its PG* variables count too): check the port and sslmode, and in a URL, percent-encode each of # % [ { @ : / ? in a user or password, or use RELAY_DATABASE_PASSWORD
RELAY_NAMESPACE: is required
RELAY_KAFKA_BROKERS: entry 1 is not allowed: it isn't host:port; give host:port without a scheme
RELAY_BATCH_BYTES: "4MB" is not allowed: give a whole number of B, KiB, MiB or GiB, such as 4MiB, from 1B to 1GiB
RELAY_WORKERS: "9" is not allowed: give a whole number from 1 to 8
RELAY_TENANTS: entry 2: tenant id is empty
RELAY_KAFKA_DELIVERY_TIMEOUT, RELAY_CLAIM_LEASE: 10s + 3s must be less than half of 20s: give a lease of more than 26s, or a shorter delivery timeout
RELAY_KAFKA_DELIVERY_TIMEOUT, RELAY_SHUTDOWN_GRACE: 10s + 5s must be at most 10s: give a grace of at least 15s, or a shorter delivery timeout`
	if got := faults.Error(); got != want {
		t.Errorf("faults\n%s\nwant\n%s", got, want)
	}
}

func TestInstanceFromHostName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"relay-0": 0, "relay-12": 12, "a-b-999": 999, "relay-01": 1,
		"relay": -1, "": -1, "12": -1, "relay-x7": -1, "relay-1000": -1, "relay-6f7c9-24789": -1, "relay-1.example": -1,
	} {
		s, err := Load(environOf(with("RELAY_WORKER_ID", "w")), files{}.read, name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Instance != want {
			t.Errorf("host %q: instance %d, want %d", name, s.Instance, want)
		}
	}
}

func TestWorkerIDNeedsAName(t *testing.T) {
	t.Parallel()
	_, err := Load(environOf(minimal()), files{}.read, "")
	if err == nil || !strings.Contains(err.Error(), "RELAY_WORKER_ID") {
		t.Errorf("Load without a host name: %v", err)
	}
}
