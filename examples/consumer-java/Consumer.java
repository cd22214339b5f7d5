import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A model of a consumer: it keeps the latest state of each operation in PostgreSQL and counts the operation's events,
 * each once however often it is delivered, and takes no older event for the latest.
 *
 * <p>It ends at any error and expects to be started again: the offset of what was not handled is not committed, and what
 * comes again is recognised. See ../README.md for its environment.
 */
public class Consumer {
    // One row for each operation, with the set of its versions that were taken. No row comes back for an event that was
    // taken before; else the newest version of its operation. It waits for another transaction that takes one of the
    // same operation.
    static final String TAKE = """
            insert into relay_inbox as inbox (consumer, source, operation, versions)
            values (?, sha256(?), ?, nummultirange(numrange(?::numeric, ?::numeric + 1)))
            on conflict (consumer, source, operation) do update
               set versions = inbox.versions + excluded.versions, taken_at = excluded.taken_at
             where not inbox.versions @> excluded.versions
            returning (upper(versions) - 1)::bigint""";

    static final String NEWER = """
            insert into operation_state (operation, source, state, version, events)
            values (?, ?, ?::jsonb ->> 'to_state', ?, 1)
            on conflict (operation) do update
               set state = excluded.state, version = excluded.version, events = operation_state.events + 1""";

    static final String OLDER = "update operation_state set events = events + 1 where operation = ?";

    static final String GROUP = System.getenv("KAFKA_GROUP");

    public static void main(String[] args) throws SQLException {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", System.getenv("KAFKA_BROKERS"),
                "group.id", GROUP,
                "auto.offset.reset", "earliest",
                "isolation.level", "read_committed",
                "enable.auto.commit", false,
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
                Connection database = DriverManager.getConnection(System.getenv("DATABASE_URL"))) {
            database.setAutoCommit(false);
            consumer.subscribe(List.of(System.getenv("KAFKA_TOPIC")));
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    handle(database, record);
                    database.commit();
                }
                // Only now: a crash before this line brings the records again, one after an earlier commit would lose
                // them.
                consumer.commitSync();
            }
        }
    }

    /** Takes one event and does what it calls for. */
    static void handle(Connection transaction, ConsumerRecord<byte[], byte[]> record) throws SQLException {
        if (!"1".equals(header(record, "ce_envelope"))) {
            // Passed over, the event would be lost.
            throw new IllegalStateException("a version of the envelope that this consumer does not know");
        }
        String source = header(record, "ce_source");
        UUID operation = UUID.fromString(header(record, "ce_subject"));
        long version = Long.parseLong(header(record, "ce_stateversion"));

        long newest;
        try (var take = transaction.prepareStatement(TAKE)) {
            take.setString(1, GROUP);
            take.setBytes(2, source.getBytes(StandardCharsets.UTF_8)); // compared as bytes
            take.setObject(3, operation);
            take.setLong(4, version);
            take.setLong(5, version);
            var row = take.executeQuery();
            if (!row.next()) {
                return; // a duplicate: nothing to do
            }
            newest = row.getLong(1);
        }
        if (newest > version) {
            try (var older = transaction.prepareStatement(OLDER)) {
                older.setObject(1, operation);
                older.executeUpdate();
            }
            return;
        }
        try (var newer = transaction.prepareStatement(NEWER)) {
            newer.setObject(1, operation);
            newer.setString(2, source);
            newer.setString(3, new String(record.value(), StandardCharsets.UTF_8));
            newer.setLong(4, version);
            newer.executeUpdate();
        }
    }

    /** The value of a header that each event has exactly once. */
    static String header(ConsumerRecord<byte[], byte[]> record, String name) {
        var header = record.headers().lastHeader(name);
        return header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
    }
}
