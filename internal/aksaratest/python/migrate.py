"""Create Aksara's durable tables in an empty database.

Options: url, schema (made when it is not there; the url's search_path names it).
Prints {}.
"""

import asyncio
import tempfile
from pathlib import Path

from aksara.migrations import apply_migrations

import app


async def main(options):
    async with app.database(options["url"]) as db:
        if schema := options["schema"]:
            quoted = '"' + schema.replace('"', '""') + '"'
            await db.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted}")
        # The application has no migrations of its own: an empty folder stands
        # for them. The framework's tables come from include_internal.
        with tempfile.TemporaryDirectory() as empty:
            result = await apply_migrations(
                db, Path(empty), verbose=False, include_internal=True
            )
    if result["errors"]:
        raise SystemExit(f"migrations failed: {result['errors']}")
    print("{}")


asyncio.run(main(app.read_options()))
