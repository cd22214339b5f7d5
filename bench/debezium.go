package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"outboxrelay/internal/childproc"
	"outboxrelay/internal/javalibs"
)

const (
	// debeziumVersion and connectVersion are the same as in the pom.xml.
	debeziumVersion = "3.6.1.Final"
	connectVersion  = "4.3.1"

	// connectHeap is what Kafka's own script gives a Connect worker.
	connectHeap = "-Xms256m -Xmx2g"

	connectorName = "outbox"
	publication   = "outbox"
)

// debeziumProject lists Debezium's jars for Maven.
//
//go:embed peers/debezium/pom.xml
var debeziumProject string

// connectLogging prints warnings.
const connectLogging = `<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
`

// prepareDebezium finds Java and fetches the jars.
func (s *stage) prepareDebezium(ctx context.Context) (err error) {
	if s.java, err = javalibs.Java(); err != nil {
		return err
	}
	s.debezium, err = javalibs.Folder(ctx, "debezium-"+debeziumVersion+"-connect-"+connectVersion, debeziumProject)
	return err
}

// capture is one Debezium: which database it reads and where it writes.
type capture struct {
	database database
	slot     string
	dir      string // keeps how far it has come
	address  string // where Connect serves HTTP
}

// newCapture lets Debezium read the outbox of a database.
func (d database) newCapture(ctx context.Context) (c capture, err error) {
	ports, err := childproc.FreePorts(1)
	if err != nil {
		return c, err
	}
	c = capture{database: d, slot: d.stage.newName("slot"), address: childproc.Loopback(ports[0])}
	c.dir = filepath.Join(d.stage.dir.Path, c.slot)
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return c, err
	}
	return c, d.stage.execute(ctx, d.name,
		`create publication `+publication+` for table aksara_operation_outbox with (publish = 'insert')`,
		`grant select on aksara_operation_outbox to `+peerRole)
}

// peer is the Debezium that writes to a topic.
func (c capture) peer(t topic) (peer, error) {
	s := c.database.stage
	files := map[string]string{
		"log4j2.xml":           connectLogging,
		"worker.properties":    properties(connectWorker(s.kafka.Addrs(), c.address, c.offsets())),
		"connector.properties": properties(c.connector(t)),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			return peer{}, err
		}
	}
	arguments := append(strings.Fields(connectHeap), "-XX:+UseG1GC", "-XX:-UsePerfData", "-cp", javalibs.ClassPath(s.debezium),
		"-Dlog4j2.configurationFile=log4j2.xml", "-Djava.io.tmpdir="+c.dir,
		"org.apache.kafka.connect.cli.ConnectStandalone", "worker.properties", "connector.properties")
	return peer{
		command: childproc.Command{
			Path: s.java, Args: arguments, Dir: c.dir,
			Env: childproc.Environment("KAFKA_", "CLASSPATH", "PG"),
			Log: filepath.Join(c.dir, "log"), Temp: s.dir,
		},
		health: c.health,
		// It writes down how far it has come once a minute and at its end, whatever it has sent.
		marked: func(context.Context) error { return nil },
	}, nil
}

// connector are its settings for a topic.
func (c capture) connector(t topic) [][2]string {
	return debeziumConnector(c.database.stage.postgres.Port(), c.database.name, c.slot, t.name)
}

// offsets is the file that tells how far it has come.
func (c capture) offsets() string { return filepath.Join(c.dir, "offsets") }

// connectWorker are the settings of Connect. Its producers wait for all replicas in sync, by default.
func connectWorker(brokers []string, address, offsets string) [][2]string {
	return [][2]string{
		{"bootstrap.servers", strings.Join(brokers, ",")},
		{"listeners", "HTTP://" + address},
		{"offset.storage.file.filename", offsets},
		{"plugin.discovery", "service_load"}, // starts faster
		{"topic.creation.enable", "false"},
		{"key.converter", "org.apache.kafka.connect.storage.StringConverter"}, // the bytes as they are
		{"value.converter", "org.apache.kafka.connect.storage.StringConverter"},
	}
}

// debeziumConnector are the settings of Debezium and its event router for Aksara's outbox.
func debeziumConnector(port int, database, slot, topic string) [][2]string {
	return [][2]string{
		{"name", connectorName},
		{"connector.class", "io.debezium.connector.postgresql.PostgresConnector"},
		{"tasks.max", "1"},
		{"database.hostname", "127.0.0.1"},
		{"database.port", fmt.Sprint(port)},
		{"database.user", peerRole},
		{"database.password", "none"}, // it asks for one; the server does not
		{"database.dbname", database},
		{"database.sslmode", "disable"},
		{"topic.prefix", "bench"},
		{"table.include.list", "public.aksara_operation_outbox"},
		{"column.include.list", "public.aksara_operation_outbox.(id|operation_id|topic|tenant_scope|created_at|payload)"},
		{"plugin.name", "pgoutput"},
		{"slot.name", slot},
		{"publication.name", publication},
		{"publication.autocreate.mode", "disabled"},
		{"snapshot.mode", "initial"}, // no rows where it has read the log before
		{"tombstones.on.delete", "false"},
		{"extended.headers.enabled", "false"}, // four headers about the connector itself

		// Four times the defaults, to have a batch ready whenever the producer has room.
		{"max.batch.size", "8192"},
		{"max.queue.size", "32768"},
		{"producer.override.linger.ms", "5"},
		{"producer.override.batch.size", "262144"},
		{"producer.override.compression.type", "snappy"}, // the relay's

		{"transforms", "outbox"},
		{"transforms.outbox.type", "io.debezium.transforms.outbox.EventRouter"},
		{"transforms.outbox.table.field.event.id", "id"},
		{"transforms.outbox.table.field.event.key", "operation_id"},
		{"transforms.outbox.table.field.event.payload", "payload"},
		{"transforms.outbox.table.expand.json.payload", "false"},
		{"transforms.outbox.table.fields.additional.placement", "topic:header:type,tenant_scope:header,created_at:header:time"},
		{"transforms.outbox.route.by.field", "topic"},
		{"transforms.outbox.route.topic.replacement", topic},
	}
}

// properties is a file of Java's. No name or value here has a character that would have to be escaped.
func properties(settings [][2]string) string {
	var text strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&text, "%s=%s\n", s[0], s[1])
	}
	return text.String()
}
