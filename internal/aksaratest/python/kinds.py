"""The kinds of operation the generator makes, and what each must record.

Each kind is a coroutine that brings one operation to its end through the public
service, and the list of transitions (event, from, to, reason) that this writes.
"""

import asyncio
from datetime import timedelta
from uuid import uuid4

from aksara.durable import (
    DurableOperationWorker,
    InvalidDurableCommand,
    OperationNotFound,
)

import app

SHORT_LEASE = 0.03
PAUSE = 0.01

ADMITTED = ("admitted", None, "ready", None)
WAITING = ("admitted", None, "waiting_for_approval", None)
CLAIMED = ("claimed", "ready", "running", None)
SUCCEEDED = ("succeeded", "running", "succeeded", None)


class Lane:
    """One operation's way through the service, for one tenant."""

    def __init__(self, service, scope, failure=None):
        self.service = service
        self.tenant = app.tenant_of(scope)
        self.failure = failure
        self.worker = DurableOperationWorker(service)

    async def admit(self, action, **options):
        admission = await self.service.admit(
            action, app.VERSION, {"n": 1}, app.reference(self.tenant), **options
        )
        return admission.operation.id

    async def claim(self, operation, lease=None):
        # Others on the same tables (an exporter, a prune) may hold the row for
        # a moment, and a claim passes over rows that are held.
        while True:
            claim = await self.service.claim(
                tenant_id=self.tenant,
                worker_id=f"worker-{uuid4()}",
                operation_id=operation,
                lease_seconds=lease,
            )
            if claim is not None:
                return claim
            await asyncio.sleep(PAUSE)

    async def run(self, operation):
        await self.worker.execute_claim(await self.claim(operation))

    async def expire(self, operation):
        """Let claims find the operation overdue, which closes it."""
        while not await self.ended(operation):
            await self.service.claim(
                tenant_id=self.tenant, worker_id="worker", operation_id=operation
            )
            await asyncio.sleep(PAUSE)

    async def ended(self, operation):
        try:
            record = await self.service.get(
                operation, tenant_id=self.tenant, principal=app.principal(self.tenant)
            )
        except OperationNotFound:  # ended, exported and pruned
            return True
        return record.terminal

    async def cancel(self, operation):
        await self.service.request_cancellation(
            operation,
            tenant_id=self.tenant,
            principal=app.principal(self.tenant),
            requester_reference=app.reference(self.tenant),
        )

    async def decide(self, operation, approve):
        await self.service.decide_approval(
            operation,
            tenant_id=self.tenant,
            approver=app.principal(self.tenant),
            approver_reference=app.reference(self.tenant),
            approve=approve,
        )

    async def now(self):
        async with self.service.db.acquire() as connection:
            return await connection.fetchval("SELECT clock_timestamp()")


async def success(lane):
    operation = await lane.admit("succeed")
    await lane.run(operation)
    return operation


async def failure(lane):
    operation = await lane.admit("fail")
    if lane.failure is None:
        await lane.run(operation)
    else:
        claim = await lane.claim(operation)
        await lane.service.fail_attempt(
            claim, code=lane.failure, message="chosen by the application", retryable=False
        )
    return operation


async def retry(lane):
    operation = await lane.admit("fail_once")
    await lane.run(operation)
    await lane.run(operation)
    return operation


async def cancel_running(lane):
    operation = await lane.admit("succeed")
    claim = await lane.claim(operation)
    await lane.cancel(operation)
    await lane.worker.execute_claim(claim)
    return operation


async def cancel_ready(lane):
    operation = await lane.admit("succeed")
    await lane.cancel(operation)
    return operation


async def approve(lane):
    operation = await lane.admit("approved")
    await lane.decide(operation, approve=True)
    await lane.run(operation)
    return operation


async def reject(lane):
    operation = await lane.admit("approved")
    await lane.decide(operation, approve=False)
    return operation


async def deadline(lane):
    # A deadline must lie ahead when the service sees it. A busy machine may
    # need more than the first guess; a refused admission has written nothing.
    ahead = 0.1
    while True:
        instant = await lane.now() + timedelta(seconds=ahead)
        try:
            operation = await lane.admit(
                "succeed", available_at=instant, deadline_at=instant
            )
            break
        except InvalidDurableCommand:
            ahead *= 2
    await lane.expire(operation)
    return operation


async def approval_expiry(lane):
    operation = await lane.admit("approved", approval_expires_at=await lane.now())
    await lane.expire(operation)
    return operation


async def reclaim(lane):
    operation = await lane.admit("succeed")
    await lane.claim(operation, lease=SHORT_LEASE)
    await lane.run(operation)
    return operation


KINDS = {
    "success": (success, [ADMITTED, CLAIMED, SUCCEEDED]),
    "failure": (
        failure,
        [ADMITTED, CLAIMED, ("terminal_failure", "running", "failed", "executor_error")],
    ),
    "retry": (
        retry,
        [
            ADMITTED,
            CLAIMED,
            ("retry_scheduled", "running", "ready", "executor_error"),
            CLAIMED,
            SUCCEEDED,
        ],
    ),
    "cancel_running": (
        cancel_running,
        [
            ADMITTED,
            CLAIMED,
            ("cancellation_requested", "running", "running", "cancelled"),
            ("cancellation_observed", "running", "cancelled", "cancelled"),
        ],
    ),
    "cancel_ready": (
        cancel_ready,
        [ADMITTED, ("cancellation_requested", "ready", "cancelled", "cancelled")],
    ),
    "approve": (
        approve,
        [WAITING, ("approved", "waiting_for_approval", "ready", None), CLAIMED, SUCCEEDED],
    ),
    "reject": (
        reject,
        [
            WAITING,
            ("rejected", "waiting_for_approval", "cancelled", "approval_rejected"),
        ],
    ),
    "deadline": (
        deadline,
        [ADMITTED, ("deadline_expired", "ready", "expired", "deadline_expired")],
    ),
    "approval_expiry": (
        approval_expiry,
        [
            WAITING,
            ("approval_expired", "waiting_for_approval", "expired", "approval_expired"),
        ],
    ),
    "reclaim": (
        reclaim,
        [ADMITTED, CLAIMED, ("lease_reclaimed", "running", "running", None), SUCCEEDED],
    ),
}
