"""What a test does with entities: signal, ask, work on them, look."""
import urllib.parse

from actions import claim, complete
from harness import wait_until
from inspect_store import rows
from pages import walk

TYPES = "/api/v1/entity-types"
# What belongs to entities in the file. Counts of how duplicates come are no part of them.
TABLES = ("entities", "entity_states", "inbox", "entity_updates", "entity_timers", "entity_starts", "entity_generations", "entity_sweeps", "dedup", "dedup_windows",
          "jobs", "events", "timers", "feed", "runs", "audit")


def define(api, tenant, etype="account", **rules):
    r = api.put(f"{TYPES}/{etype}", {"queue": "q", "handler": "h", **rules}, tenant=tenant)
    assert r.status == 200, r
    return r.json


def contents(db):
    """Every row that has to do with entities."""
    return {table: rows(db, f"SELECT * FROM {table}") for table in TABLES}


class Entity:
    """One entity, seen by its clients and its worker. Set `api` anew when the server was started again."""

    def __init__(self, api, tenant, eid="e", etype="account"):
        self.api, self.tenant, self.eid, self.etype = api, tenant, eid, etype

    def path(self, suffix=""):
        return f"/api/v1/entities/{self.etype}/{urllib.parse.quote(self.eid, safe='')}{suffix}"

    # --- as a client ---

    def signal(self, name="add", payload=1, **more):
        """The reply, whatever it is."""
        return self.api.post(self.path("/signals"), {"name": name, "payload": payload, **more}, tenant=self.tenant)

    def send(self, name="add", payload=1, **more):
        """The number that the signal got."""
        r = self.signal(name, payload, **more)
        assert r.status == 200, r
        return r.json["seq"]

    def ask(self, dedup_key, payload=1, name="take", wait_ms=0, **kw):
        """An update."""
        return self.api.post(self.path(f"/updates?wait_ms={wait_ms}"), {"name": name, "payload": payload, "dedup_key": dedup_key}, tenant=self.tenant, **kw)

    def see(self):
        r = self.api.get(self.path(), tenant=self.tenant)
        assert r.status == 200, r
        return r.json

    def is_so(self, what, test):
        """The entity once test(it) holds."""
        def look():
            shown = self.see()
            return shown if test(shown) else None
        return wait_until(look, f"{self.eid}: {what}")

    def is_in(self, status):
        return self.is_so(f"is {status}", lambda shown: shown["status"] == status)

    def events(self, *types):
        """The timeline; with types only those."""
        return [e for e in walk(self.api, self.path("/events?limit=200"), self.tenant) if not types or e["type"] in types]

    def story(self):
        return [e["type"] for e in self.events()]

    def generations(self):
        """The oldest first."""
        return walk(self.api, self.path("/generations?limit=200"), self.tenant)[::-1]

    def migrate(self, **body):
        r = self.api.post(self.path("/migrate"), body, tenant=self.tenant)
        assert r.status == 200, r
        return r.json

    def delete(self):
        r = self.api.delete(self.path(), tenant=self.tenant)
        assert r.status == 200, r
        return r.json

    # --- as its worker ---

    def call(self, wait_ms=30_000, **more):
        """The call that waits, or comes soon."""
        jobs = claim(self.api, self.tenant, **{"queues": ["q"], "max": 10, "wait_ms": wait_ms, **more})
        assert len(jobs) == 1, jobs
        assert jobs[0]["kind"] == "entity" and jobs[0]["input"]["entity"] == {"type": self.etype, "id": self.eid}, jobs[0]
        return jobs[0]

    def no_call(self, **more):
        jobs = claim(self.api, self.tenant, **{"queues": ["q"], "max": 10, **more})
        assert jobs == [], jobs

    def answer(self, job, **output):
        r = complete(self.api, self.tenant, job, output=output)
        assert r.status == 200, r
        return r.json

    def handle(self, **output):
        """One call, answered."""
        job = self.call()
        self.answer(job, **output)
        return job


def seqs(job):
    return [s["seq"] for s in job["input"]["signals"]]


def due(job):
    return [t["name"] for t in job["input"]["timers"]]
