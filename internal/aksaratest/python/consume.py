"""Print every record of a topic, byte for byte.

Options: see records.py. Byte strings are printed in base64, absent ones as null.
"""

import base64
import json

import app
import records


def encode(value):
    return None if value is None else base64.b64encode(value).decode("ascii")


def plain(message):
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "key": encode(message.key()),
        "value": encode(message.value()),
        "headers": [
            {"name": name, "value": encode(value)}
            for name, value in message.headers() or []
        ],
        "timestamp": message.timestamp()[1],
    }


print(json.dumps([plain(message) for message in records.read(app.read_options())]))
