"""Clients that start runs, signal them and read their streams."""
import http.client
import threading
import time
import zlib

import observe
import scene
import sse
from client import Client

AT_LIMIT = (None, "reject", "queue", "queue", "queue", "cancel_oldest", "coalesce")


def is_flat(key):
    """Whether this key's runs are started with the flat route: always the same for one key."""
    return zlib.crc32(key.encode()) % 3 == 0


def some_body(client, workflow, tenant):
    rng = client.rng
    n = rng.randrange(1, 1_000_000)
    body = {"input": {"n": n, "k": rng.choice("abc"), "items": [n + i for i in range(rng.randrange(0, 4))]}, "labels": {"group": rng.choice("xyz")}}
    if tenant == "tight":
        at_limit = rng.choice(AT_LIMIT)
        body.update({"priority": rng.randrange(-3, 4)}, **({"at_limit": at_limit} if at_limit else {}))
    if workflow == "nap" and client.chance(0.3):
        seconds = time.time() + client.scene.world.clock_offset_s + rng.uniform(0, 2)
        body["start_at"] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + "Z"
    return body


class Starter(Client):
    """Starts with keys: once, twice at the same moment, again later, again with another payload."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-starter-{number}")
        self.scene, self.twin = s, Client(s.world.port, s.ledger, f"{s.seed}-twin-{number}")
        self.past = []  # (tenant, workflow, body, key)

    def run(self, goes_on):
        while goes_on():
            self.pause(0.12)
            luck = self.rng.random()
            if luck < 0.15 and self.past:
                self.start(self, *self.rng.choice(self.past[-50:]))
            elif luck < 0.22 and self.past:
                self.start_other(*self.rng.choice(self.past[-50:]))
            else:
                self.start_new(luck)

    def start_new(self, luck):
        tenant, workflow = self.rng.choice(scene.TENANTS), scene.some_workflow(self.rng)
        order = (tenant, workflow, some_body(self, workflow, tenant), self.new_key())
        if luck > 0.9:  # the first request and its duplicate race
            other = threading.Thread(target=self.start, args=(self.twin, *order))
            other.start()
            self.start(self, *order)
            other.join()
        else:
            self.start(self, *order)

    def start(self, client, tenant, workflow, body, key):
        facts = {"workflow": workflow, "input": body["input"]}
        if is_flat(key):
            answer = client.ask("start", "POST", "/api/v1/workflow-runs", {"definitionId": workflow, **body}, tenant, key, abandon=0.05, **facts)
        else:
            wait = "?wait_ms=300" if client.chance(0.1) else ""
            answer = client.ask("start", "POST", f"/api/v1/workflows/{workflow}/runs{wait}", body, tenant, key, abandon=0.05, **facts)
        if answer is not None and answer.run_id:
            self.scene.add_run(tenant, answer.run_id, workflow)
            if client is self:
                self.past.append((tenant, workflow, body, key))

    def start_other(self, tenant, workflow, body, key):
        """The key belongs to another request."""
        other = {**body, "input": {**body["input"], "n": -1}}
        path, more = ("/api/v1/workflow-runs", {"definitionId": workflow}) if is_flat(key) else (f"/api/v1/workflows/{workflow}/runs", {})
        self.ask("reused key", "POST", path, {**more, **other}, tenant, key)


class Signaller(Client):
    """Sends each waiting run its two signals, each at least twice."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-signaller-{number}")
        self.scene = s

    def run(self, goes_on):
        while goes_on():
            found = self.scene.take_waiting()
            if found is None:
                self.pause(0.1)
                continue
            self.signal(*found)

    def signal(self, tenant, run):
        sends = [n for n in (1, 2) for _ in range(2 + self.chance(0.2))]
        self.rng.shuffle(sends)
        for n in sends:
            # The payload belongs to the run: whoever finds the same run again sends the same signals.
            body = {"name": "go", "payload": n * (1 + int(run[-6:], 16)), "dedup_key": f"go-{n}"}
            self.ask("signal", "POST", f"/api/v1/runs/{run}/signals", body, tenant, run=run)


class Follower(Client):
    """Reads the stream of a tenant, or of one run after another, and resumes it after the last event whenever it breaks."""

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-follower-{number}")
        self.scene, self.number = s, number

    def run(self, goes_on):
        if self.number < len(scene.TENANTS):
            tenant = scene.TENANTS[self.number]
            self.follow(goes_on, "/api/v1/events", tenant, "0-0", f"tenant {tenant}")
            return
        while goes_on():
            self.pause(0.1)
            found = self.scene.some_run(self.rng)
            if found is not None:
                tenant, run, _ = found
                self.follow(goes_on, f"/api/v1/runs/{run}/events", tenant, "0", f"run {run} {self.new_key('s')}")

    def follow(self, goes_on, path, tenant, last, name):
        while goes_on():
            try:
                with sse.Stream(self.http.port, path, tenant, last) as stream:
                    stream.sock.settimeout(1.0)
                    while goes_on() and (event := self.next(stream)):
                        if event[1] == "reset":
                            self.ledger.note("reset", stream=name, after=last)
                            continue
                        last = event[0]
                        if name.startswith("tenant") and observe.is_last_mark(event[2]):
                            self.scene.streams_ended.add(tenant)
                        self.ledger.note("streamed", stream=name, cursor=last, id=event[2].get("id"), type=event[1], seq=event[2].get("seq"))
                    if goes_on() and name.startswith("run"):
                        return self.ledger.note("stream ended", stream=name)
            except AssertionError:  # no stream: the answer of a server that stops, or a run that retention removed
                self.pause(0.05)
                if name.startswith("run") and self.get(path.removesuffix("/events"), tenant).status == 404:
                    return None
            except (OSError, http.client.HTTPException, ValueError):
                self.pause(0.05)
        return None

    @staticmethod
    def next(stream):
        """The next whole event; None at the end."""
        block = ""
        while line := stream.line():
            block += line
            if line == "\n":
                events, _ = sse.parse(block)
                if events:
                    return events[0]
                block = ""
        return None
