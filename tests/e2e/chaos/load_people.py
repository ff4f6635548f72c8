"""People who decide approvals and disagree, clients of entities, and operators who change everything under way."""
import urllib.parse

import scene
from client import Client


class Clicker(Client):
    """Decides what is pending as its own coin says, and asks again with or without its key."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-clicker-{number}")
        self.actor = f"person-{number}"

    def run(self, goes_on):
        while goes_on():
            for tenant in scene.TENANTS:
                pending = self.get("/api/v1/approvals?status=pending&limit=20", tenant).json.get("items", [])
                for approval in pending:
                    if goes_on():
                        self.decide(tenant, approval["job_id"])
            self.pause(0.15)

    def decide(self, tenant, job):
        verb = "approve" if self.chance(0.65) else "reject"
        path = f"/api/v1/approvals/{job}/{verb}"
        key = self.new_key("decide") if self.chance(0.5) else None
        self.ask(verb, "POST", path, {"reason": self.actor}, tenant, key, self.actor, job=job)
        if self.chance(0.3):  # a double click
            self.ask(verb, "POST", path, {"reason": self.actor}, tenant, key, self.actor, job=job)


class EntityClient(Client):
    """Signals and updates to a few entities, some of them twice. The number of a signal decides everything about it."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-entity-{number}")
        self.number, self.sent = number, 0

    def run(self, goes_on):
        while goes_on():
            self.pause(0.12)
            self.sent += 1
            for _ in range(1 + self.chance(0.2)):
                self.send(self.sent * 100 + self.number)

    def send(self, n):
        if n // 100 % 7 == 0:
            return self.send_fleeting(n)
        tenant, entity = scene.TENANTS[n // 100 % 3], f"e-{n // 100 % 4}"
        kind = "update" if n // 100 % 5 == 0 else "entity signal"
        path = f"/api/v1/entities/{scene.COUNTER}/{entity}/" + ("updates?wait_ms=500" if kind == "update" else "signals")
        body = {"name": "add", "payload": {"n": n, "points": n % 977 + 1}, "dedup_key": f"k-{n}"}
        return self.ask(kind, "POST", path, body, tenant, abandon=0.05, entity=entity, points=n % 977 + 1, n=n)

    def send_fleeting(self, n):
        tenant, entity = scene.TENANTS[n // 100 % 3], f"/api/v1/entities/{scene.FLEETING}/f-{self.number}"
        if self.chance(0.2):
            return self.ask("delete entity", "DELETE", entity, None, tenant, self.new_key("delete"))
        return self.ask("fleeting signal", "POST", f"{entity}/signals", {"name": "call", "payload": n, "dedup_key": f"k-{n}"}, tenant)


class Operator(Client):
    """Controls runs, releases keys, triggers schedules, changes webhooks."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-operator-{number}")
        self.scene, self.number = s, number
        self.hooks = []

    def run(self, goes_on):
        acts = (self.control, self.control, self.control, self.again, self.again, self.bulk, self.release_key, self.schedule, self.webhook, self.dead_letter,
                self.api_key, self.new_version)
        while goes_on():
            self.pause(0.2)
            self.rng.choice(acts)()

    def control(self):
        found = self.scene.some_run(self.rng)
        if found:
            tenant, run, _ = found
            action = self.rng.choice(("pause", "pause", "resume", "resume", "cancel"))
            body, key = {"reason": "chaos"} if action == "cancel" else {}, self.new_key(action) if self.chance(0.5) else None
            self.ask(action, "POST", f"/api/v1/runs/{run}/{action}", body, tenant, key, run=run)

    def again(self):
        found = self.scene.some_run(self.rng)
        if not found:
            return
        tenant, run, workflow = found
        if self.chance(0.5):
            self.ask("retry", "POST", f"/api/v1/runs/{run}/retry", {}, tenant, self.new_key("retry"), run=run)
            return
        answer = self.ask("rerun", "POST", f"/api/v1/runs/{run}/rerun", {}, tenant, self.new_key("rerun"), abandon=0.05, of=run, workflow=workflow)
        if answer is not None and answer.run_id:
            self.scene.add_run(tenant, answer.run_id, workflow)

    def bulk(self):
        tenant, group = self.rng.choice(scene.TENANTS), self.rng.choice("xyz")
        action = self.rng.choice(("pause", "resume", "retry", "resume"))
        self.ask("bulk", "POST", "/api/v1/runs:bulk", {"action": action, "filter": {"label": f"group:{group}"}, "dry_run": self.chance(0.3)}, tenant, self.new_key("bulk"))

    def release_key(self):
        """A key is used, released, and used for the same request again: two runs."""
        tenant, key = "acme", self.new_key("released")
        for life in (1, 2):
            self.ask("start", "POST", "/api/v1/workflows/nap/runs", {"input": {"n": life}}, tenant, key, workflow="nap", input={"n": life}, life=life)
            if life == 1:
                self.ask("release key", "DELETE", f"/api/v1/idempotency-keys/{urllib.parse.quote(key)}", None, tenant, self.new_key("release"), of=key)

    def schedule(self):
        tenant, name = self.rng.choice(scene.TENANTS), f"s-{self.number}"
        luck = self.rng.random()
        if luck < 0.5:
            body = {"workflow_id": "tick", "cron": self.rng.choice(("* * * * * *", "*/2 * * * * *")), "overlap": self.rng.choice(("allow", "skip", "queue")),
                    "catch_up_s": self.rng.choice((0, 20))}
            self.ask("schedule", "PUT", f"/api/v1/schedules/{name}", body, tenant, self.new_key("schedule"), schedule=name)
        elif luck < 0.8:
            self.ask("trigger", "POST", f"/api/v1/schedules/{name}/trigger", {}, tenant, self.new_key("trigger"), abandon=0.05, schedule=name)
        else:
            self.ask("unschedule", "DELETE", f"/api/v1/schedules/{name}", None, tenant, self.new_key("schedule"), schedule=name)

    def webhook(self):
        """One that receives no event that ever happens: its own life is what is tested."""
        if len(self.hooks) < 3:
            body = {"url": self.scene.world.hook_url("/spare"), "events": ["spare.event"], "description": self.new_key("hook")}
            answer = self.ask("webhook", "POST", "/api/v1/webhooks", body, "brief", self.new_key("hook"), description=body["description"])
            if answer is not None and answer.status == 200:
                self.hooks.append(answer.json["id"])
            return
        hook = self.hooks[0]
        if self.chance(0.5):
            self.ask("rotate", "POST", f"/api/v1/webhooks/{hook}/rotate", {}, "brief", self.new_key("rotate"), hook=hook)
        else:
            self.ask("delete webhook", "DELETE", f"/api/v1/webhooks/{hook}", None, "brief", self.new_key("hook"), hook=hook)
            self.hooks.remove(hook)

    def dead_letter(self):
        tenant = self.rng.choice(scene.TENANTS)
        letters = self.get("/api/v1/dead-letters?limit=20", tenant).json.get("items", [])
        if letters:
            job = self.rng.choice(letters)["job_id"]
            if self.chance(0.5):
                self.ask("retry letter", "POST", f"/api/v1/dead-letters/{job}/retry", {}, tenant, self.new_key("letter"), job=job)
            else:
                self.ask("drop letter", "DELETE", f"/api/v1/dead-letters/{job}", None, tenant, self.new_key("letter"), job=job)


    def api_key(self):
        """It is made, and revoked half of the time."""
        label = self.new_key("label")
        made = self.ask("api key", "POST", "/api/v1/keys", {"role": "viewer", "label": label}, "acme", self.new_key("key"), label=label)
        if made.status == 200 and self.chance(0.5):
            self.ask("revoke", "DELETE", f"/api/v1/keys/{made.json['id']}", None, "acme", self.new_key("key"), label=label)

    def new_version(self):
        """Runs that are under way keep theirs."""
        tenant, steps = self.rng.choice(scene.TENANTS), scene.definitions(self.scene.world.hook_url("/step"))["nap"]["steps"]
        steps[0]["duration_ms"] = self.rng.randrange(1, 100)
        self.ask("workflow", "PUT", "/api/v1/workflows/nap", {"steps": steps}, tenant, self.new_key("workflow"))


class Inspector(Client):
    """Has the doctor look at the store while everything goes on: he must find nothing at any moment."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-inspector-{number}")
        self.http.timeout = 60

    def run(self, goes_on):
        while goes_on():
            self.pause(3)
            answer = self.get("/api/v1/doctor")
            for check in answer.json.get("checks", ()):
                if not all(map(self.is_half_removed, check["found"])):
                    self.ledger.note("doctor", **check)

    @staticmethod
    def is_half_removed(finding):
        """Retention takes a run in parts, and the doctor does not tell such a run from a damaged one."""
        return finding.get("tenant") == "brief" and finding["what"] == "the timeline of a run is empty or has gaps"


class Governor(Client):
    """The only one who changes the limit of tight. A mark in the tenant's own feed before and after each change says which limits
    may be in force between two events."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-governor-{number}")
        self.limits = {}  # of each version of the settings

    def run(self, goes_on):
        now = self.get("/api/v1/tenants/tight", "tight").json
        self.limits[now["settings_version"]] = now["max_concurrent_runs"]
        while goes_on():
            self.pause(0.8)
            if len(self.limits) > 2 and self.chance(0.25):
                version = self.rng.choice(list(self.limits)[-50:])  # the server keeps a hundred
                self.change("rollback", self.limits[version], "POST", "/api/v1/tenants/tight/rollback", {"version": version})
            else:
                limit = self.rng.randrange(2, 9)
                self.change("settings", limit, "PUT", "/api/v1/tenants/tight", {"max_concurrent_runs": limit, "name": self.new_key("name")})

    def change(self, kind, limit, method, path, body):
        self.mark("before", limit)
        answer = self.ask(kind, method, path, body, "tight", self.new_key(kind), limit=limit)
        self.mark("after", limit)
        self.limits[answer.json["settings_version"]] = limit

    def mark(self, phase, limit):
        key = self.new_key("mark")
        body = {"name": phase, "payload": {"n": self.count, "points": limit}, "dedup_key": key}
        self.ask("mark", "POST", f"/api/v1/entities/{scene.MARK}/limit/signals", body, "tight", entity="limit", points=limit, n=self.count)
