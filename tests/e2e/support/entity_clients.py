"""Clients and workers of entities, each a process of its own, that outlive the server: see test_entity_soak.py.

    python3 entity_clients.py client|worker '{"port": …, "seed": …, …}'

A client ends when its signals are answered, a worker when its standard input ends or chance kills it. What was done is
in the file `out`, one JSON value a line."""
import datetime
import json
import os
import random
import signal
import sys
import threading
import time

import endpoint

TYPE = "counter"
CHAIN = (1 << 53) - 111  # numbers below it are the same in every JSON library


def signal_of(seed, n, entities):
    """The entity and the payload of the signal with this number. Some entities are much asked for."""
    rng = random.Random(f"{seed}-{n}")
    entity = rng.randrange(min(5, entities)) if rng.random() < 0.2 else rng.randrange(entities)
    return f"e-{entity}", {"n": n, "points": rng.randrange(1, 1000)}


def apply(state, seq, payload):
    """What the handler does with one signal: doing it twice, never, or in another order shows in the end."""
    chain = (state["chain"] * 1_000_003 + seq * 31 + payload["n"] + 1) % CHAIN
    return {"seq": seq, "count": state["count"] + 1, "sum": state["sum"] + payload["points"], "chain": chain}


def new_state():
    return {"seq": 0, "count": 0, "sum": 0, "chain": 0}


class Line:
    """One connection, opened again whenever it breaks."""

    def __init__(self, port, tenant):
        self.port, self.head = port, f"Host: localhost\r\nX-Tenant-ID: {tenant}\r\nContent-Type: application/json\r\n"
        self.sock, self.buffer = None, b""

    def send(self, path, body):
        if self.sock is None:
            self.sock, self.buffer = endpoint.connect(self.port), b""
        data = json.dumps(body, separators=(",", ":"))
        self.sock.sendall(f"POST {path} HTTP/1.1\r\n{self.head}Content-Length: {len(data)}\r\n\r\n{data}".encode())

    def _until(self, enough):
        while not enough():
            data = self.sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the server is gone")
            self.buffer += data

    def receive(self):
        self._until(lambda: b"\r\n\r\n" in self.buffer)
        head, rest = self.buffer.split(b"\r\n\r\n", 1)
        length = next(int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:"))
        self.buffer = rest
        self._until(lambda: len(self.buffer) >= length)
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return int(head.split(b" ", 2)[1]), json.loads(body)

    def broken(self):
        """Until somebody listens again nothing can be done."""
        if self.sock is not None:
            self.sock.close()
        self.sock = None
        time.sleep(0.01)

    def ask(self, path, body):
        """Asked again until it is answered: (status, body, how often it was not)."""
        unanswered = 0
        while True:
            try:
                self.send(path, body)
                return *self.receive(), unanswered
            except OSError:
                unanswered += 1
                self.broken()


class Notes:
    """Lines in a file, whole however the process ends."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, *values):
        os.write(self.fd, "".join(json.dumps(v, separators=(",", ":")) + "\n" for v in values).encode())


# --- clients ---

def client(args, number, notes):
    """Its share of the signals; a tenth of them again, at once over another connection or later."""
    rng = random.Random(f"{args['seed']}-client-{number}")
    lines, later = [Line(args["port"], args["tenant"]) for _ in range(2)], []

    def place(n):
        entity, payload = signal_of(args["seed"], n, args["entities"])
        return f"/api/v1/entities/{TYPE}/{entity}/signals", {"name": "add", "payload": payload, "dedup_key": f"k-{n}"}

    def note(n, *answers):
        for status, body, unanswered in answers:
            notes.add([n, status, body.get("seq"), body.get("duplicate"), unanswered])

    def at_once(n):
        try:
            for line in lines:
                line.send(*place(n))
            note(n, *((*line.receive(), 0) for line in lines))
        except OSError:
            for line in lines:
                line.broken()
            note(n, (*lines[0].ask(*place(n))[:2], 1))

    for n in range(number, args["signals"], args["clients"]):
        luck = rng.random()
        if luck < 0.03:
            at_once(n)
        else:
            note(n, lines[0].ask(*place(n)))
        if 0.03 <= luck < 0.10:
            later.append(n)
        while later and rng.random() < 0.15:
            again = later.pop(rng.randrange(len(later)))
            note(again, lines[1].ask(*place(again)))
    for n in later:
        note(n, lines[0].ask(*place(n)))


# --- workers ---

def ms_of(time_text):
    return round(datetime.datetime.fromisoformat(time_text).timestamp() * 1000)


def handle(given):
    """The handler. Whatever it was given must follow on what it had answered before."""
    state = given["state"] or new_state()
    for s in given["signals"]:
        if s["seq"] != state["seq"] + 1:
            raise ValueError(f"signal {s['seq']} after {state['seq']}")
        state = apply(state, s["seq"], s["payload"])
    return {"state": state, "set_timers": [{"name": "idle", "in_ms": 3_600_000}]}


class Worker:
    """Most calls are answered many at once, together with the next claim. The others come to grief in one way or another."""

    def __init__(self, args, number, notes):
        self.args, self.notes = args, notes
        self.rng = random.Random(f"{args['seed']}-worker-{number}-{os.getpid()}")
        self.line = Line(args["port"], args["tenant"])
        self.want = {"worker_id": f"w{number}-{os.getpid()}", "queues": [TYPE], "max": 16, "lease_ms": args["lease_ms"]}

    def work(self):
        done = []
        while True:
            if done:
                jobs = self.complete(done)
            else:
                jobs = self.ask("/api/v1/jobs/claim", {**self.want, "wait_ms": 200}).get("jobs", [])
            done = [pair for pair in map(self.do, jobs) if pair]

    def ask(self, path, body):
        status, said, _ = self.line.ask(path, body)
        if status not in (200, 409):
            self.notes.add({"broken": f"{path}: {status} {said}"})
        return {"status": f"{status} {said.get('code')}"} if status == 409 else said

    def complete(self, done):
        """The next jobs."""
        said = self.ask("/api/v1/jobs:complete", {"items": [item for item, _ in done], "claim": self.want})
        if "results" not in said:
            return []
        for (item, report), r in zip(done, said["results"]):
            report["status"] = f"409 {r['code']}" if r["status"] == "refused" else r["status"]
            if r["status"] == "completed" and self.rng.random() < 0.03:
                self.repeat(item, report)
        self.notes.add(*(report for _, report in done))
        return said["jobs"]

    def repeat(self, item, report):
        """What was completed stays so."""
        again = self.ask(f"/api/v1/jobs/{item['job_id']}/complete", {k: item[k] for k in ("lease_token", "output")})
        if again["status"] != "already_completed":
            self.notes.add({"broken": f"{report} again: {again}"})

    def do(self, job):
        """A result to hand in, with what is to be noted of it."""
        given, luck = job["input"], self.rng.random()
        report = {"entity": given["entity"]["id"], "job": job["job_id"], "epoch": int(job["lease_token"].split(".")[0]), "version": given["version"],
                "signals": [s["seq"] for s in given["signals"]], "expires": ms_of(job["lease_expires_at"]), "status": "lost"}
        item = {"job_id": job["job_id"], "lease_token": job["lease_token"]}
        try:
            item["output"] = handle(given)
        except ValueError as e:
            self.notes.add({"broken": f"{report}: {e}"})
            return None
        if luck < self.args["deaths"]:
            self.notes.add({**report, "status": "died"})
            os.kill(os.getpid(), signal.SIGKILL)
        if luck < 0.02:  # nobody ever hears of it again
            self.notes.add(report)
            return None
        if luck < 0.06:
            self.stumble(item, report, luck)
            return None
        return item, report

    def stumble(self, item, report, luck):
        path, lease = f"/api/v1/jobs/{item['job_id']}", {"lease_token": item["lease_token"]}
        if luck < 0.03:
            time.sleep(self.args["lease_ms"] * self.rng.uniform(1.1, 1.6) / 1000)  # heard of when its lease has ended
            said = self.ask(f"{path}/complete", {**lease, "output": item["output"]})
        elif luck < 0.05:
            said = self.ask(f"{path}/fail", {**lease, "error": {"code": "NO"}})
        else:
            said = self.ask(f"{path}/release", lease)
        self.notes.add({**report, "status": said["status"]})


def main():
    kind, args = sys.argv[1], json.loads(sys.argv[2])
    notes = Notes(args["out"])
    if kind == "client":
        run = [threading.Thread(target=client, args=(args, n, notes)) for n in args["numbers"]]
    else:
        run = [threading.Thread(target=Worker(args, n, notes).work, daemon=True) for n in args["numbers"]]
    for thread in run:
        thread.start()
    if kind == "worker":
        sys.stdin.read()
        os._exit(0)


if __name__ == "__main__":
    main()
