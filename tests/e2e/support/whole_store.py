"""A store with everything that one can hold, what its server answers about it, and what goes on in it."""
import json
import re
import urllib.parse

import harness
import openapi
import sse
from actions import claim_one, complete, fail, show
from entities import Entity

HEADERS = {"X-API-Key": harness.ROOT_KEY}
FAR = "2999-01-01T00:00:00Z"
# Answered without the store, or about the process.
NOT_STORED = {"/api/v1/backup", "/api/v1/cluster", "/api/v1/doctor", "/api/v1/me", "/api/v1/sign-in", "/api/v1/workers", "/healthz", "/metrics", "/openapi.json", "/readyz"}


def task(name="a", **more):
    return {"name": name, "type": "task", "handler": "h", **more}


class WholeStore:
    """`api` is an administrator's client of the server that has the store; set it anew after a move."""

    def __init__(self, api):
        self.api = api
        self.replays = []  # (method, path, body, key, tenant, what was answered)
        self.runs = {}
        self.last = {}  # run of each tenant

    # --- making it ---

    def once(self, method, path, body, key, tenant):
        """A change with a key, which is to be answered again."""
        r = self.api.call(method, path, body, key=key, tenant=tenant)
        assert r.status in (200, 202), r
        again = self.api.call(method, path, body, key=key, tenant=tenant)
        self.replays.append((method, path, body, key, tenant, (again.status, again.json)))
        return r.json

    def start(self, name, tenant, wid="w", **body):
        started = self.once("POST", f"/api/v1/workflows/{wid}/runs", {"input": {"n": 1}, **body}, f"start-{name}", tenant)
        self.runs[name] = (tenant, started["run_id"])
        return started["run_id"]

    def tenant(self, tid, **settings):
        assert self.api.put(f"/api/v1/tenants/{tid}", settings).status == 200
        self.api.workflow(tid, "w", [task()])

    def fill(self, hook_url):
        self.limits()
        self.states()
        self.decisions()
        self.waits()
        self.entities()
        self.others(hook_url)
        for tenant in self.tenants():
            self.end_with(tenant)
        self.settle()
        return self

    def settle(self):
        """Until nothing moves by itself."""
        deliveries = f"/api/v1/webhooks/{self.hook['id']}/deliveries?limit=200"
        states = lambda: {d["state"] for d in self.api.get(deliveries, tenant="told").json["items"]}
        harness.wait_until(lambda: states() == {"delivered"}, "deliveries")

    def limits(self):
        """Two active runs, one of them handed out, and two that are queued."""
        self.tenant("limited", max_concurrent_runs=2, at_limit="queue", weight=3, rate_limit={"per_second": 1000, "burst": 1000}, name="Räte & Söhne")
        for name in ("held", "active", "queued-1", "queued-2"):
            self.start(name, "limited", labels={"k": name})
        self.lease = self.api.post("/api/v1/jobs/claim", {"worker_id": "w1", "max": 1, "lease_ms": 3600_000}, tenant="limited").json["jobs"][0]
        assert self.api.put("/api/v1/tenants/limited", {"weight": 2}).status == 200

    def states(self):
        """Runs that have ended, in each way, and some that cannot go on."""
        t = "ended"
        self.tenant(t, idempotency_retention_s=86400)
        self.start("succeeded", t)
        assert complete(self.api, t, claim_one(self.api, t), output={"ok": "\u00fc\u2603"}).status == 200
        self.api.workflow(t, "once", [task(retry={"max_attempts": 1})])
        self.start("failed", t, "once")
        assert fail(self.api, t, claim_one(self.api, t), message="it broke", retryable=False).status == 200
        run = self.start("cancelled", t)
        self.once("POST", f"/api/v1/runs/{run}/cancel", {"reason": "no"}, "cancel", t)
        run = self.start("paused", t)
        assert self.api.post(f"/api/v1/runs/{run}/pause", {}, tenant=t).status == 200
        self.start("delayed", t, start_at=FAR)
        self.api.workflow(t, "kid", [{"name": "s", "type": "sleep", "until": FAR}])
        self.api.workflow(t, "parent", [{"name": "k", "type": "workflow", "workflow_id": "kid"}, task("b")])
        self.start("parent", t, "parent")

    def decisions(self):
        t = "asked"
        self.tenant(t)
        self.key = self.once("POST", "/api/v1/keys", {"tenant": t, "role": "approver", "label": "ann"}, "key", t)
        gone = self.api.post("/api/v1/keys", {"tenant": t, "role": "viewer"}).json
        assert self.api.delete(f"/api/v1/keys/{gone['id']}", tenant=t).status == 200
        self.api.workflow(t, "pay", [task(requires_approval=True)])
        for name in ("approved", "denied", "undecided"):
            self.start(name, t, "pay")
        self.approvals = {name: self.job_of(name) for name in ("approved", "denied", "undecided")}
        for name, verb in (("approved", "approve"), ("denied", "reject")):
            assert self.decide(name, verb).status == 200

    def decide(self, name, verb):
        return self.api.post(f"/api/v1/approvals/{self.approvals[name]}/{verb}", {"reason": "r"}, headers={"X-API-Key": self.key["key"]})

    def job_of(self, name):
        tenant, run = self.runs[name]
        return show(self.api, tenant, run)["steps"][0]["job_id"]

    def waits(self):
        """For a signal, for items, and a durable function that is suspended."""
        t = "waiting"
        self.tenant(t)
        self.api.workflow(t, "signal", [{"name": "s", "type": "wait_signal", "signal": "go"}, task("b")])
        run = self.start("signal", t, "signal")
        self.once("POST", f"/api/v1/runs/{run}/signals", {"name": "other", "payload": [1], "dedup_key": "k"}, "signal", t)
        self.api.workflow(t, "each", [task(for_each="input.items", max_parallel=2, queue="items")])
        self.start("each", t, "each", input={"items": [1, 2, 3]})
        self.start("durable", t)
        job = claim_one(self.api, t)
        path, lease = f"/api/v1/jobs/{job['job_id']}", {"lease_token": job["lease_token"]}
        assert self.api.post(f"{path}/checkpoints", {**lease, "name": "done", "output": {"n": 1}}, tenant=t).status == 200
        assert self.api.post(f"{path}/suspend", {**lease, "signal": "go", "until": FAR}, tenant=t).status == 200

    def entities(self):
        """One with a state, timers and a signal that waits; one that is finished."""
        t = "lived"
        self.tenant(t)
        kind = {"queue": "q", "handler": "h", "rollover_events": 5, "keep_generations": 3}
        self.once("PUT", "/api/v1/entity-types/account", kind, "type", t)
        self.entity, ended = (Entity(self.api, t, eid) for eid in ("a/1", "over"))
        for i in range(6):
            self.once("POST", self.entity.path("/signals"), {"name": "add", "payload": i, "dedup_key": f"d{i}"}, f"add-{i}", t)
            self.entity.handle(state={"sum": i}, set_timers=[{"name": "later", "at": "2099-01-01T00:00:00Z", "payload": [1]}])
        self.entity.ask("u1")
        self.entity.handle(state={"sum": 7}, results=[{"seq": 7, "result": {"ok": True}}])
        ended.send()
        ended.handle(state=1, finished=True)
        self.entity.send(payload="waits", dedup_key="last")

    def others(self, hook_url):
        t = "told"
        self.tenant(t)
        self.hook = self.once("POST", "/api/v1/webhooks", {"url": hook_url, "events": ["run.*"]}, "hook", t)
        for name, paused in (("yearly", False), ("paused", True)):
            body = {"workflow_id": "w", "cron": "0 0 1 1 *", "timezone": "Europe/Berlin", "paused": paused, "input": {"n": 1}}
            self.once("PUT", f"/api/v1/schedules/{name}", body, f"schedule-{name}", t)
        self.once("POST", "/api/v1/schedules/yearly/trigger", {}, "trigger", t)
        self.start("told", t)

    # --- what is answered ---

    def tenants(self):
        return [t["id"] for t in self.api.get("/api/v1/tenants?limit=100").json["items"]]

    def answers(self):
        """{(tenant, path): answer}, for every route that answers from the store."""
        found = {}

        def get(path, tenant=None):
            r = self.api.get(path, tenant=tenant)
            assert r.status == 200, r
            body = re.sub(rb"since the server started \d+ s ago", b"", r.raw)  # that is about the process
            found[tenant, path] = json.loads(body) if r.header("Content-Type") == "application/json" else body
            return found[tenant, path]

        def items(path, tenant, member="id"):
            return [i[member] for i in get(f"{path}?limit=200", tenant)["items"]]

        for path in ("/api/v1/tenants?limit=100", "/api/v1/keys", "/api/v1/audit?limit=200", "/api/v1/outbox"):
            get(path)
        for t in self.tenants():
            self.answers_of(t, get, items)
        for tenant in self.last:
            found[tenant, "/api/v1/events"] = self.stream(tenant)
        for *_, key, tenant, _ in self.replays:
            get(f"/api/v1/idempotency-keys/{key}", tenant)
        asked = {openapi.template_of("GET", path) for _, path in found}
        assert asked == {path for method, path in openapi.operations() if method == "GET"} - NOT_STORED
        return found

    def answers_of(self, t, get, items):
        for path in (f"/api/v1/tenants/{t}", f"/api/v1/tenants/{t}/settings"):
            get(path)
        for path in ("/api/v1/audit?limit=200", "/api/v1/audit/export", "/api/v1/audit/verify", "/api/v1/dead-letters", "/api/v1/queues", "/api/v1/admission"):
            get(path, t)
        get("/api/v1/approvals/analytics", t).pop("since")  # 30 days ago
        stats = get("/api/v1/stats?minutes=1440", t)
        del stats["from"], stats["to"]  # a day ago, and now
        for wid in items("/api/v1/workflows", t):
            get(f"/api/v1/workflows/{wid}", t), get(f"/api/v1/workflows/{wid}/versions", t)
        for run in items("/api/v1/runs", t):
            shown = get(f"/api/v1/runs/{run}", t)
            get(f"/api/v1/runs/{run}/events?limit=200", t), get(f"/api/v1/runs/{run}/why", t)
            for job in {s["job_id"] for s in shown["steps"] if s.get("job_id")}:
                get(f"/api/v1/jobs/{job}", t)
        for approval in items("/api/v1/approvals", t, "job_id"):
            get(f"/api/v1/approvals/{approval}", t)
        for sid in items("/api/v1/schedules", t):
            get(f"/api/v1/schedules/{sid}", t)
        for hook in items("/api/v1/webhooks", t):
            get(f"/api/v1/webhooks/{hook}", t), get(f"/api/v1/webhooks/{hook}/deliveries?limit=200", t)
        for kind in items("/api/v1/entity-types", t, "type"):
            get(f"/api/v1/entity-types/{kind}", t), get(f"/api/v1/entity-types/{kind}/stats", t)
            for eid in items(f"/api/v1/entities/{kind}", t):
                path = f"/api/v1/entities/{kind}/{urllib.parse.quote(eid, safe='')}"
                get(path, t), get(f"{path}/events?limit=200", t), get(f"{path}/inbox?limit=200", t), get(f"{path}/generations?limit=200", t)
        if t == "lived":
            get(self.entity.path("/updates/7"), t)

    def stream(self, tenant, after="0-0"):
        """The events of a tenant after a cursor, up to the end of its last run, which was cancelled."""
        with sse.Stream(self.api.port, "/api/v1/events", tenant, after, headers=[f"X-API-Key: {harness.ROOT_KEY}"]) as s:
            while not s.events or s.events[-1][1] != "run.cancelled" or s.events[-1][2]["subject"] != self.last[tenant]:
                assert s.read_one()
            return s.events

    def end_with(self, tenant):
        """A run that is cancelled at once."""
        self.last[tenant] = self.api.start(tenant, "w").json["run_id"]
        assert self.api.post(f"/api/v1/runs/{self.last[tenant]}/cancel", {}, tenant=tenant).status == 200

    # --- what goes on ---

    def assert_replays(self):
        """Every change that was made is answered as it was, and nothing happens."""
        for method, path, body, key, tenant, answered in self.replays:
            again = self.api.call(method, path, body, key=key, tenant=tenant)
            assert (again.status, again.json) == answered, (path, again)
            if path.endswith("/runs"):
                assert self.api.call(method, path, {**body, "priority": 9}, key=key, tenant=tenant).code == "IDEMPOTENCY_KEY_REUSED"

    def assert_goes_on(self):
        """What waited is still waited for: by workers, by people, by signals, by limits."""
        api = self.api
        assert complete(api, "limited", self.lease, output=1).status == 200, "a lease is still held"
        for _ in range(3):
            assert complete(api, "limited", claim_one(api, "limited", max=1), output=1).status == 200
        assert {self.status(name) for name in ("held", "active", "queued-1", "queued-2")} == {"succeeded"}
        assert self.decide("approved", "approve").status == 200 and self.decide("approved", "reject").status == 409
        assert self.decide("undecided", "approve").status == 200
        for name in ("signal", "durable"):
            _, run = self.runs[name]
            assert api.post(f"/api/v1/runs/{run}/signals", {"name": "go", "payload": name}, tenant="waiting").status == 200
        for _ in range(2):
            assert complete(api, "waiting", claim_one(api, "waiting", max=1), output=1).status == 200
        assert {self.status(name) for name in ("signal", "durable")} == {"succeeded"}
        _, run = self.runs["paused"]
        assert api.post(f"/api/v1/runs/{run}/resume", {}, tenant="ended").status == 200
        assert complete(api, "ended", claim_one(api, "ended"), output=1).status == 200
        self.entity.api = api
        assert self.entity.signal(dedup_key="last", payload="waits").json["duplicate"] is True
        assert [s["payload"] for s in self.entity.handle(state={"sum": 8})["input"]["signals"]] == ["waits"]
        assert self.entity.see()["state"] == {"sum": 8}

    def status(self, name):
        tenant, run = self.runs[name]
        return show(self.api, tenant, run)["status"]
