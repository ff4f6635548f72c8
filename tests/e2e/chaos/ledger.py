"""The ledger: every request with its key before it is sent, every acknowledgement before the client goes on, and what
handlers and receivers did. It is a file that the server knows nothing of; the checks read it when all is over.

A request is an operation (`op`) with a number. It is asked as often as needed, always with the same key and body, and is in
doubt until an answer to it is written down."""
import collections
import json
import threading

# Of an answer only these members are kept: what a promise is about.
KEPT = ("run_id", "created", "coalesced", "code", "status", "seq", "duplicate", "result", "error", "decision", "settings_version", "version", "id", "changed", "refused",
        "max_concurrent_runs", "name", "lease_expires_at", "cancel_requested", "job_id")
JOB = ("job_id", "lease_token", "attempt", "tenant", "run_id", "kind")


class Ledger:
    """The pen. Any thread may write."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "a", buffering=1)
        self.lock = threading.Lock()
        self.ops = 0
        self.acknowledged = 0
        self.kinds = {}  # op → kind, as long as it is in doubt
        self.abandoned = []  # ops whose client has died before it was answered
        self.done = collections.Counter()  # kind → how many were answered with 200; note → how many there are
        self.refusals = collections.Counter()  # "status code" of answers after which the same request was sent again
        self.unanswered = 0

    def _write(self, line):
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def asked(self, kind, request, facts):
        with self.lock:
            self.ops += 1
            self.kinds[self.ops] = kind
            self._write({"op": self.ops, "kind": kind, "request": request, "facts": facts})
            return self.ops

    def answered(self, op, status, body, replayed):
        kept = {name: body[name] for name in KEPT if name in body}
        if "run" in body:
            kept["run_id"] = body["run"]["id"]
        if "jobs" in body:
            kept["jobs"] = [{name: job[name] for name in JOB} for job in body["jobs"]]
        if "results" in body:
            kept["results"] = [{name: r.get(name) for name in ("job_id", "status", "code")} for r in body["results"]]
        with self.lock:
            self.acknowledged += 1
            self.done[self.kinds.pop(op)] += status == 200
            self._write({"op": op, "answer": status, "body": kept, "replayed": replayed})

    def note(self, what, **facts):
        """Something that was seen or done outside of the server."""
        with self.lock:
            self.done[what] += 1
            self._write({"note": what, **facts})

    def asked_again(self, why):
        with self.lock:
            if why is None:
                self.unanswered += 1
            else:
                self.refusals[why] += 1

    def abandon(self, op):
        with self.lock:
            self.abandoned.append(op)

    def take_abandoned(self):
        with self.lock:
            taken, self.abandoned = self.abandoned, []
            return taken

    def close(self):
        self.file.close()


class Op:
    """One operation as the ledger remembers it."""

    def __init__(self, number, kind, request, facts):
        self.number, self.kind, self.request, self.facts = number, kind, request, facts
        self.answers = []  # (status, body, replayed)

    @property
    def tenant(self):
        return self.request["tenant"]

    @property
    def key(self):
        return self.request["key"]

    @property
    def in_doubt(self):
        return not self.answers

    @property
    def status(self):
        return self.answers[-1][0] if self.answers else None

    @property
    def body(self):
        return self.answers[-1][1] if self.answers else {}

    def __repr__(self):
        return f"op {self.number} ({self.kind}, {self.tenant}, key {self.key})"


class Book:
    """A ledger that was written, as the checks read it."""

    def __init__(self, path):
        self.ops, self.notes = {}, collections.defaultdict(list)
        with open(path) as lines:
            for line in map(json.loads, lines):
                if "kind" in line:
                    self.ops[line["op"]] = Op(line["op"], line["kind"], line["request"], line["facts"])
                elif "op" in line:
                    self.ops[line["op"]].answers.append((line["answer"], line["body"], line["replayed"]))
                else:
                    self.notes[line.pop("note")].append(line)

    def of(self, *kinds):
        return [op for op in self.ops.values() if op.kind in kinds]

    def in_doubt(self):
        return [op for op in self.ops.values() if op.in_doubt]
