"""A small application on Aksara: a shop whose orders are durable Operations.

Every second it admits one for each tenant and works it off. Aksara writes each
change of their state to the outbox in the same transaction. It runs until it is
stopped; README.md says how it is started.
"""

import asyncio
import itertools
import os
import sys

from aksara.db import Database
from aksara.durable import (
    DurableAction,
    DurableActionRegistry,
    DurableOperationService,
    DurableOperationWorker,
    EffectClass,
    PrincipalReference,
    PrincipalResolution,
    PrincipalResolverRegistry,
)
from aksara.security.principal import Principal

NAMESPACE = "orders"  # the relay's RELAY_NAMESPACE
USERS = "users"


async def place_order(context, command):
    return {"placed": command["article"]}


def user_of(tenant):
    """Who orders. The Operation is their tenant's, one of the relay's RELAY_TENANTS."""
    return Principal.for_user("user-1", tenant_id=tenant)


def service(database):
    actions = DurableActionRegistry()
    actions.register(DurableAction("order.place", "1", place_order, effect_class=EffectClass.READ_ONLY))
    users = PrincipalResolverRegistry()
    users.register(USERS, "1", lambda wanted: PrincipalResolution.resolved(user_of(wanted.tenant_id)))
    return DurableOperationService(database, application_namespace=NAMESPACE, actions=actions, resolvers=users)


async def main(tenants):
    database = Database(os.environ["DATABASE_URL"])
    await database.connect()
    try:
        operations = service(database)
        worker = DurableOperationWorker(operations)
        for n in itertools.count(1):
            for tenant in tenants:
                user = PrincipalReference.from_principal(user_of(tenant), resolver_key=USERS)
                await operations.admit("order.place", "1", {"article": f"article {n}"}, user)
                while (done := await worker.poll_once(tenant_id=tenant)) is not None:
                    print(f"{tenant}: operation {done.id} {done.state.value}", flush=True)
            await asyncio.sleep(1)
    finally:
        await database.disconnect()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python shop.py TENANT...")
    try:
        asyncio.run(main(sys.argv[1:]))
    except KeyboardInterrupt:
        pass
