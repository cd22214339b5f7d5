"""Run the framework's own retention over one scope.

Options: url, namespace, scope, history. Prints the counts of removed rows.
"""

import asyncio
import json

import app


async def main(options):
    async with app.database(options["url"]) as db:
        counts = await app.service(db, options["namespace"]).prune(
            tenant_id=app.tenant_of(options["scope"]),
            history_per_operation=options["history"],
        )
    print(json.dumps(counts))


asyncio.run(main(app.read_options()))
