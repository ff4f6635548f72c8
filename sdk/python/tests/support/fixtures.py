"""Reading sdk/fixtures and mapping its neutral names to this library's."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from pawl._wire import to_wire

FOLDER = pathlib.Path(os.environ.get("PAWL_FIXTURES", pathlib.Path(__file__).resolve().parents[3] / "fixtures"))

# operationId: (method of the client, parameters that are positional)
OPERATIONS: dict[str, tuple[str, list[str]]] = {
    "startRun": ("start", ["workflow_id"]),
    "listRuns": ("runs.list", []),
    "getRun": ("runs.get", ["run_id"]),
    "whyRun": ("runs.why", ["run_id"]),
    "listRunEvents": ("runs.timeline", ["run_id"]),
    "watchRun": ("watch", ["run_id"]),
    "watchEvents": ("events", []),
    "cancelRun": ("cancel", ["run_id"]),
    "pauseRun": ("runs.pause", ["run_id"]),
    "resumeRun": ("runs.resume", ["run_id"]),
    "retryRun": ("runs.retry", ["run_id"]),
    "rerunRun": ("runs.rerun", ["run_id"]),
    "signalRun": ("signal", ["run_id", "name"]),
    "bulkRuns": ("runs.bulk", ["action", "filter"]),
    "claimJobs": ("jobs.claim", ["worker_id"]),
    "claimJob": ("jobs.claim_one", ["job_id", "worker_id"]),
    "getJob": ("jobs.get", ["job_id"]),
    "completeJob": ("jobs.complete", ["job_id", "lease_token"]),
    "failJob": ("jobs.fail", ["job_id", "lease_token", "error"]),
    "heartbeatJob": ("jobs.heartbeat", ["job_id", "lease_token"]),
    "releaseJob": ("jobs.release", ["job_id", "lease_token"]),
    "checkpointJob": ("jobs.checkpoint", ["job_id", "lease_token", "name"]),
    "suspendJob": ("jobs.suspend", ["job_id", "lease_token"]),
    "completeJobs": ("jobs.complete_many", ["items"]),
    "listQueues": ("jobs.queues", []),
    "listWorkers": ("jobs.workers", []),
    "listDeadLetters": ("jobs.dead_letters", []),
    "retryDeadLetter": ("jobs.retry_dead_letter", ["job_id"]),
    "dropDeadLetter": ("jobs.drop_dead_letter", ["job_id"]),
    "listApprovals": ("approvals.list", []),
    "getApproval": ("approvals.get", ["job_id"]),
    "approvalAnalytics": ("approvals.analytics", []),
    "approve": ("approve", ["job_id"]),
    "reject": ("reject", ["job_id"]),
    "listWorkflows": ("workflows.list", []),
    "getWorkflow": ("workflows.get", ["workflow_id"]),
    "putWorkflow": ("apply", ["definition"]),
    "archiveWorkflow": ("workflows.archive", ["workflow_id"]),
    "listWorkflowVersions": ("workflows.versions", ["workflow_id"]),
    "validateWorkflow": ("workflows.validate", ["workflow_id", "definition"]),
    "listEntityTypes": ("entities.list_types", []),
    "putEntityType": ("entities.put_type", ["type"]),
    "getEntityType": ("entities.get_type", ["type"]),
    "getEntityTypeStats": ("entities.stats", ["type"]),
    "listEntities": ("entities.list", ["type"]),
    "getEntity": ("entities.get", ["type", "id"]),
    "deleteEntity": ("entities.delete", ["type", "id"]),
    "signalEntity": ("entities.signal", ["type", "id", "name"]),
    "updateEntity": ("entities.update", ["type", "id", "name"]),
    "getEntityUpdate": ("entities.get_update", ["type", "id", "seq"]),
    "listEntityEvents": ("entities.timeline", ["type", "id"]),
    "listEntityGenerations": ("entities.generations", ["type", "id"]),
    "migrateEntity": ("entities.migrate", ["type", "id"]),
    "listSchedules": ("schedules.list", []),
    "putSchedule": ("schedules.put", ["schedule_id"]),
    "getSchedule": ("schedules.get", ["schedule_id"]),
    "deleteSchedule": ("schedules.delete", ["schedule_id"]),
    "triggerSchedule": ("schedules.trigger", ["schedule_id"]),
    "listWebhooks": ("webhooks.list", []),
    "createWebhook": ("webhooks.create", ["url", "events"]),
    "getWebhook": ("webhooks.get", ["webhook_id"]),
    "putWebhook": ("webhooks.put", ["webhook_id"]),
    "deleteWebhook": ("webhooks.delete", ["webhook_id"]),
    "rotateWebhook": ("webhooks.rotate", ["webhook_id"]),
    "testWebhook": ("webhooks.test", ["webhook_id"]),
    "listDeliveries": ("webhooks.deliveries", ["webhook_id"]),
    "redeliver": ("webhooks.redeliver", ["webhook_id", "delivery_id"]),
    "listTenants": ("tenants.list", []),
    "getTenant": ("tenants.get", ["tenant_id"]),
    "putTenant": ("tenants.put", ["tenant_id", "settings"]),
    "listTenantSettings": ("tenants.settings", ["tenant_id"]),
    "rollbackTenant": ("tenants.rollback", ["tenant_id"]),
    "listKeys": ("keys.list", []),
    "createKey": ("keys.create", ["role"]),
    "revokeKey": ("keys.revoke", ["key_id"]),
    "getIdempotencyKey": ("keys.idempotency", ["key"]),
    "releaseIdempotencyKey": ("keys.release_idempotency", ["key"]),
    "listOutbox": ("server.outbox", []),
    "retryParked": ("server.retry_parked", ["message_id"]),
    "listAudit": ("audit.list", []),
    "verifyAudit": ("audit.verify", []),
    "doctor": ("server.doctor", []),
    "repair": ("server.repair", []),
    "health": ("server.health", []),
    "ready": ("server.ready", []),
}


def cases(name: str) -> Any:
    """All cases of a file, as parameters named after them."""
    found = json.loads((FOLDER / name).read_text())["cases"]
    return [pytest.param(case, id=case["name"]) for case in found]


def arguments(call: dict[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """The method of a call, with its positional and named arguments."""
    method, positional = OPERATIONS[call["op"]]
    args = dict(call["args"])
    if call["op"] == "putWorkflow":
        args.setdefault("definition", {})
    if "idempotency_key" in args:
        args["key"] = args.pop("idempotency_key")
    return method, [args.pop(name) for name in positional], args


def as_json(value: Any) -> Any:
    """A result of the library as the wire would have it."""
    return json.loads(json.dumps(value, default=to_wire))


def assert_contains(actual: Any, wanted: Any, where: str = "") -> None:
    """`actual` has everything that `wanted` lists."""
    if isinstance(wanted, dict):
        assert isinstance(actual, dict), f"{where}: {actual!r} is not an object"
        for name, value in wanted.items():
            assert name in actual, f"{where}.{name} is missing"
            assert_contains(actual[name], value, f"{where}.{name}")
    elif isinstance(wanted, list):
        assert isinstance(actual, list) and len(actual) == len(wanted), f"{where}: {actual!r} is not {wanted!r}"
        for i, value in enumerate(wanted):
            assert_contains(actual[i], value, f"{where}[{i}]")
    else:
        assert actual == wanted, f"{where}: {actual!r} is not {wanted!r}"
