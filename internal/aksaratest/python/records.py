"""Read a topic with librdkafka, which shares no code with the relay's client."""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

POLL = 0.2


def partitions(consumer, topic):
    """The topic's partitions, or None while the cluster does not show it."""
    metadata = consumer.list_topics(topic, timeout=10).topics[topic]
    if metadata.error is not None or not metadata.partitions:
        return None
    return sorted(metadata.partitions)


def wait_for_partitions(consumer, topic, deadline):
    while time.monotonic() < deadline:
        if found := partitions(consumer, topic):
            return found
        time.sleep(POLL)
    raise SystemExit(f"topic {topic!r} did not appear in time")


def read(options):
    """All records of a topic from its beginning, as confluent_kafka messages.

    Ends once every partition was read to its end and at least `count` records
    were seen; takes `seconds` at most.
    """
    topic = options["topic"]
    deadline = time.monotonic() + options["seconds"]
    consumer = Consumer(
        {
            "bootstrap.servers": options["brokers"],
            "group.id": "independent-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            **options["config"],
        }
    )
    try:
        waiting = set(wait_for_partitions(consumer, topic, deadline))
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in waiting])
        seen = []
        while waiting or len(seen) < options["count"]:
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"{len(seen)} records of {options['count']} were there in time; "
                    f"partitions not read to their end: {sorted(waiting)}"
                )
            message = consumer.poll(POLL)
            if message is None:
                continue
            error = message.error()
            if error is None:
                seen.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            else:
                raise SystemExit(f"cannot read topic {topic!r}: {error}")
        return seen
    finally:
        consumer.close()
