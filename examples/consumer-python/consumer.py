"""A model of a consumer: it keeps the latest state of each operation in PostgreSQL
and counts the operation's events, each once however often it is delivered, and
takes no older event for the latest.

It ends at any error and expects to be started again: the offset of what was not
handled is not committed, and what comes again is recognised. See ../README.md for
its environment.
"""

import json
import os

import psycopg
from confluent_kafka import Consumer, KafkaException

# One row for each operation, with the set of its versions that were taken. No row
# comes back for an event that was taken before; else the newest version of its
# operation. It waits for another transaction that takes one of the same operation.
TAKE = """
    insert into relay_inbox as inbox (consumer, source, operation, versions)
    values (%(consumer)s, sha256(%(source)s), %(operation)s,
            nummultirange(numrange(%(version)s::numeric, %(version)s::numeric + 1)))
    on conflict (consumer, source, operation) do update
       set versions = inbox.versions + excluded.versions, taken_at = excluded.taken_at
     where not inbox.versions @> excluded.versions
    returning (upper(versions) - 1)::bigint"""

NEWER = """
    insert into operation_state (operation, source, state, version, events)
    values (%(operation)s, convert_from(%(source)s, 'UTF8'), %(state)s, %(version)s, 1)
    on conflict (operation) do update
       set state = excluded.state, version = excluded.version, events = operation_state.events + 1"""

OLDER = "update operation_state set events = events + 1 where operation = %(operation)s"

GROUP = os.environ["KAFKA_GROUP"]


def handle(transaction, message):
    """Take one event and do what it calls for."""
    headers = dict(message.headers() or [])
    if headers.get("ce_envelope") != b"1":
        # Passed over, the event would be lost.
        raise ValueError("a version of the envelope that this consumer does not know")
    event = {
        "consumer": GROUP,
        "source": headers["ce_source"],  # compared as bytes
        "operation": headers["ce_subject"].decode(),
        "version": int(headers["ce_stateversion"]),
        "state": json.loads(message.value())["to_state"],
    }
    row = transaction.execute(TAKE, event).fetchone()
    if row is None:
        return  # a duplicate: nothing to do
    newest = row[0]
    transaction.execute(NEWER if newest == event["version"] else OLDER, event)


def main():
    consumer = Consumer({
        "bootstrap.servers": os.environ["KAFKA_BROKERS"],
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
    })
    consumer.subscribe([os.environ["KAFKA_TOPIC"]])
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        while True:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            with database.transaction():
                handle(database, message)
            # Only now: a crash before this line brings the record again, one after
            # an earlier commit would lose it.
            consumer.commit(message=message, asynchronous=False)


if __name__ == "__main__":
    main()
