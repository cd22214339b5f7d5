"""Run the framework's own outbox exporter over one scope and record its sink.

Options: url, namespace, scope, worker, claim and retry (seconds), calls (how
often to call export_once; 0 is without end), until_empty, fail (how many first
sink calls raise), error (their text), hold (each sink call waits for a line
"release"). A line "stop" lets the call under way finish and ends; the end of
standard input ends at once. Prints a JSON line when a sink call begins and one
when the export_once that made it returns.
"""

import asyncio
import json
import os
import sys
import threading
import traceback

from aksara.durable import DurableOutboxExporter

import app

IDLE = 0.02


def say(**line):
    print(json.dumps(line), flush=True)


class Sink:
    """Records what it is given; fails and waits as the options say."""

    def __init__(self, options):
        self.options = options
        self.hold = options["hold"]
        self.calls = 0
        self.released = asyncio.Semaphore(0)

    async def __call__(self, payload):
        self.calls += 1
        say(
            sink={
                "canonical": json.dumps(
                    payload, ensure_ascii=False, sort_keys=True, separators=(",", ":")
                ),
                "keys": list(payload),
            }
        )
        if self.hold:
            await self.released.acquire()
        if self.calls <= self.options["fail"]:
            raise RuntimeError(self.options["error"])


def obey(loop, sink, stop):
    """Carry out the lines of standard input; runs in a thread of its own."""

    def act(line):
        if line == "release":
            sink.released.release()
        elif line == "stop":
            stop.set()
            sink.hold = False
            sink.released.release()

    for line in sys.stdin:
        loop.call_soon_threadsafe(act, line.strip())
    os._exit(1)  # Nobody is there any more: end as a killed process would.


async def main(options):
    sink, stop = Sink(options), asyncio.Event()
    threading.Thread(
        target=obey, args=(asyncio.get_running_loop(), sink, stop), daemon=True
    ).start()
    async with app.database(options["url"]) as db:
        exporter = DurableOutboxExporter(
            app.service(db, options["namespace"]),
            sink,
            worker_id=options["worker"],
            claim_seconds=options["claim"],
            retry_seconds=options["retry"],
        )
        calls = 0
        while not stop.is_set() and (not options["calls"] or calls < options["calls"]):
            before = sink.calls
            exported = await exporter.export_once(
                tenant_id=app.tenant_of(options["scope"])
            )
            calls += 1
            if sink.calls > before:
                say(exported=exported)
            elif options["until_empty"]:
                break
            else:
                await asyncio.sleep(IDLE)


status = 1
try:
    asyncio.run(main(app.read_options()))
    status = 0
except BaseException:
    traceback.print_exc()
finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # The thread still reads standard input: do not wait for it.
