"""Print every record of a topic as the CloudEvents SDK understands it.

Options: see records.py. A record that is no valid event ends the run.
"""

import json

from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event

import app
import records


def event(message):
    place = f"partition {message.partition()} offset {message.offset()}"
    try:
        parsed = from_binary_event(
            KafkaMessage(dict(message.headers() or []), message.key(), message.value())
        )
    except Exception as error:
        raise SystemExit(f"record at {place} is no CloudEvent: {error!r}") from None
    attributes = {
        name: value.isoformat() if name == "time" else value
        for name, value in parsed.get_attributes().items()
    }
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "attributes": attributes,
        "data": parsed.get_data(),
    }


print(json.dumps([event(message) for message in records.read(app.read_options())]))
