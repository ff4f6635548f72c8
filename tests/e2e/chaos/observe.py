"""What the server and its surroundings say: whether anything is still under way, and, when all is over, everything there is."""
import dataclasses
import re

import entities
import scene
import sse
from inspect_store import run_id_text
from pages import walk
from prometheus import metrics

LAST_MARK = "the-end"


def metric(api, name):
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", metrics(api), re.MULTILINE))


def under_way(api, world):
    """{what: how much of it} is not over yet."""
    left = {}
    for tenant in scene.TENANTS:
        shown = api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json
        left[f"{tenant} active"], left[f"{tenant} queued"] = shown["active_runs"], shown["queued_runs"]
        left[f"{tenant} not begun"] = len(walk(api, "/api/v1/runs?status=queued&limit=200", tenant))
        for etype in (scene.COUNTER, scene.MARK, scene.FLEETING):
            for entity in walk(api, f"/api/v1/entities/{etype}?limit=200", tenant):
                left[f"{tenant} {entity['type']} {entity['id']}"] = entity["inbox"]
    left["half removed"] = sum(n for n, in world.rows("SELECT count(*) FROM runs WHERE NOT EXISTS (SELECT 1 FROM events WHERE run = runs.num AND seq = 1)"))
    left["to publish"], left["to deliver"] = world.backlog()
    return {what: count for what, count in left.items() if count}


def feed_of(api, tenant):
    """The tenant's events in the order of their commits, to the last mark: [(cursor, event)]."""
    found = []
    with sse.Stream(api.port, "/api/v1/events", tenant, "0-0") as stream:
        while True:
            cursor, _, event = stream.read_one()
            found.append((cursor, event))
            if is_last_mark(event):
                return found


def is_last_mark(event):
    return event["type"] == "entity.signaled" and event["data"].get("name") == LAST_MARK


def marks_arrived(world):
    """Whether everything was published and delivered: the last mark comes after all the rest."""
    delivered = any(is_last_mark(event) for _, event in list(world.hooks.events))
    return delivered and {tenant for tenant, _, event in published(world) if is_last_mark(event)} == set(scene.TENANTS)


@dataclasses.dataclass
class Seen:
    """Everything that the checks compare the ledger with. Plain data: a test can doctor it."""
    runs: dict           # tenant → {run id: the run with its steps}
    timelines: dict      # run id → its events
    keys: dict           # (tenant, key) → run id or None
    approvals: dict      # job id → approval
    entities: dict       # (tenant, type, id) → the entity
    tenants: dict        # tenant → its settings and counters
    settings: list       # versions of the settings of tight, the oldest first
    hooks: dict          # tenant → its webhooks
    api_keys: list       # of acme
    bus: list            # (tenant, message id, event) in the order of the stream
    delivered: list      # (webhook id, event) as acme's receiver got them
    feeds: dict          # tenant → [(cursor, event)]
    checks: list         # the doctor's
    audit: dict


def see(api, world):
    runs, timelines = {}, {}
    for tenant in scene.TENANTS:
        runs[tenant] = {}
        for listed in walk(api, "/api/v1/runs?limit=200", tenant):
            shown = api.get(f"/api/v1/runs/{listed['id']}", tenant=tenant)
            if shown.status == 200:  # retention goes on meanwhile
                runs[tenant][listed["id"]] = shown.json
                timelines[listed["id"]] = walk(api, f"/api/v1/runs/{listed['id']}/events?limit=200", tenant)
    kept = world.rows("SELECT t.id, i.key, i.run_id FROM idempotency i JOIN tenants t ON t.num = i.tenant")
    return Seen(
        runs=runs, timelines=timelines,
        keys={(tenant, key): run_id_text(run) if run else None for tenant, key, run in kept},
        approvals={a["job_id"]: a for tenant in scene.TENANTS for a in walk(api, "/api/v1/approvals?limit=200", tenant)},
        entities={(tenant, e["type"], e["id"]): entities.Entity(api, tenant, e["id"], e["type"]).see()
                  for tenant in scene.TENANTS for etype in (scene.COUNTER, scene.MARK) for e in walk(api, f"/api/v1/entities/{etype}?limit=200", tenant)},
        tenants={tenant: api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json for tenant in scene.TENANTS},
        settings=walk(api, "/api/v1/tenants/tight/settings?limit=200", "tight")[::-1],
        hooks={tenant: walk(api, "/api/v1/webhooks?limit=200", tenant) for tenant in scene.TENANTS},
        api_keys=walk(api, "/api/v1/keys?limit=200", "acme"),
        bus=published(world), delivered=list(world.hooks.events),
        feeds={tenant: feed_of(api, tenant) for tenant in scene.TENANTS},
        checks=api.get("/api/v1/doctor").json["checks"], audit=api.get("/api/v1/audit/verify", tenant="*").json)


def published(world):
    with world.nats.client() as client:
        return [(m.subject.split(".")[1], m.id, m.json) for m in client.messages("PAWL")]
