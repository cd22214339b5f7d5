"""A small Aksara application: its actions, its users and its service."""

import json
import sys
from contextlib import asynccontextmanager

from aksara.db import Database
from aksara.durable import (
    DurableAction,
    DurableActionRegistry,
    DurableOperationService,
    EffectClass,
    PrincipalReference,
    PrincipalResolution,
    PrincipalResolverRegistry,
)
from aksara.durable.types import GLOBAL_TENANT_SCOPE
from aksara.security.principal import Principal

VERSION = "1"


class Transient(Exception):
    """A failure that the action below declares worth another attempt."""


async def succeed(context, command):
    return {"done": True}


async def fail(context, command):
    raise RuntimeError("this action always fails")


async def fail_once(context, command):
    if context.fence == 1:
        raise Transient("this action fails on its first attempt")
    return {"done": True}


def actions():
    registry = DurableActionRegistry()
    for name, handler, approval in (
        ("succeed", succeed, False),
        ("fail", fail, False),
        ("fail_once", fail_once, False),
        ("approved", succeed, True),
    ):
        registry.register(
            DurableAction(
                name,
                VERSION,
                handler,
                effect_class=EffectClass.READ_ONLY,
                approval_required=approval,
                retry_classifier=lambda error: isinstance(error, Transient),
            )
        )
    return registry


def principal(tenant):
    return Principal.for_user("user-1", tenant_id=tenant)


def reference(tenant):
    return PrincipalReference(
        resolver_key="users",
        resolver_version=VERSION,
        identity_namespace="application",
        principal_kind="user",
        subject_id="user-1",
        tenant_id=tenant,
    )


def resolvers():
    registry = PrincipalResolverRegistry()
    registry.register(
        "users",
        VERSION,
        lambda wanted: PrincipalResolution.resolved(principal(wanted.tenant_id)),
    )
    return registry


def tenant_of(scope):
    """The tenant id Aksara is called with for what it stores as tenant_scope."""
    return None if scope == GLOBAL_TENANT_SCOPE else scope


def read_options():
    """The options of this run: the first line of standard input, as JSON."""
    return json.loads(sys.stdin.readline())


@asynccontextmanager
async def database(url, connections=2):
    db = Database(url, min_size=1, max_size=connections)
    await db.connect()
    try:
        yield db
    finally:
        await db.disconnect()


def service(db, namespace, **settings):
    return DurableOperationService(
        db,
        application_namespace=namespace,
        actions=actions(),
        resolvers=resolvers(),
        **settings,
    )
