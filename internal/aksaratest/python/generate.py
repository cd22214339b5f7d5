"""Write operations of every wanted kind through the framework's own services.

Options: url, namespace, scopes, counts (per kind, for each scope), lanes (how
many operations run at once), retention (seconds), failures (failure codes that
failing operations take in turn). Prints the operations with the transitions
that the framework is expected to have recorded for them.
"""

import asyncio
import itertools
import json

import app
from kinds import KINDS, Lane

LIMIT = 60


def jobs(options):
    """Kinds and scopes mixed, so that neither stands in one block."""
    counts = options["counts"]
    for n in range(max(counts.values(), default=0)):
        for kind in counts:
            for scope in options["scopes"]:
                if n < counts[kind]:
                    yield kind, scope


def expected(kind, failure):
    transitions = [list(transition) for transition in KINDS[kind][1]]
    if kind == "failure" and failure is not None:
        transitions[-1][-1] = failure
    names = ("event", "from", "to", "reason")
    return [dict(zip(names, transition)) for transition in transitions]


async def one(service, kind, scope, failure):
    try:
        async with asyncio.timeout(LIMIT):
            operation = await KINDS[kind][0](Lane(service, scope, failure))
    except TimeoutError:
        raise RuntimeError(f"a {kind} operation did not end in {LIMIT} s") from None
    return {
        "id": str(operation),
        "scope": scope,
        "kind": kind,
        "transitions": expected(kind, failure),
    }


async def main(options):
    settings = {}
    if options["retention"]:
        settings["retention_seconds"] = options["retention"]
    queue = iter(list(jobs(options)))
    failures = itertools.cycle(options["failures"] or [None])
    operations = []

    async def lane(service):
        for kind, scope in queue:
            failure = next(failures) if kind == "failure" else None
            operations.append(await one(service, kind, scope, failure))

    async with app.database(options["url"], options["lanes"] + 1) as db:
        service = app.service(db, options["namespace"], **settings)
        async with asyncio.TaskGroup() as lanes:
            for _ in range(options["lanes"]):
                lanes.create_task(lane(service))
    print(json.dumps(operations))


asyncio.run(main(app.read_options()))
