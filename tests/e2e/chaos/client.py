"""A client that asks until it is answered, and writes everything into the ledger first."""
import http.client
import random
import time

import harness

TIMEOUT_S = 8
LONGEST_PAUSE_S = 0.5
GIVE_UP_S = 600  # of asking for one answer: by then something is stuck


class Answer:
    def __init__(self, reply):
        self.status, self.raw = reply.status, reply.raw
        self.json = reply.json if reply.raw else {}
        self.code = self.json.get("code") if self.status >= 400 else None
        self.replayed = reply.header("Idempotent-Replayed") == "true"

    @property
    def run_id(self):
        """Of a run that this answer acknowledges, whichever route was asked."""
        return (self.json["run"]["id"] if "run" in self.json else self.json.get("run_id")) if self.status == 200 else None

    def __repr__(self):
        return f"<{self.status} {self.raw[:300]!r}>"


class Client:
    """For one thread."""

    def __init__(self, port, ledger, seed):
        self.ledger, self.rng = ledger, random.Random(seed)
        self.http = harness.Client(port, timeout=TIMEOUT_S)
        self.names = f"{seed}-"
        self.count = 0

    def new_key(self, word="k"):
        self.count += 1
        return f"{word}-{self.names}{self.count}"

    def chance(self, p):
        return self.rng.random() < p

    def pause(self, longest_s):
        time.sleep(self.rng.uniform(0, longest_s))  # how fast it works; nothing is waited for

    def ask(self, kind, method, path, body=None, tenant=None, key=None, actor=None, abandon=0.0, **facts):
        """The answer. With `abandon`, sometimes None: the client has died, and the operation stays in doubt until somebody repeats it."""
        request = {"method": method, "path": path, "body": body, "tenant": tenant, "key": key, "actor": actor}
        op = self.ledger.asked(kind, request, facts)
        return self._ask(op, request, abandon)

    def repeat(self, op):
        """Asks what its own client gave up, as that would have."""
        return self._ask(op.number, op.request, 0.0)

    def _ask(self, op, request, abandon):
        bound, give_up = 0.02, time.monotonic() + GIVE_UP_S
        while True:
            answer = self._once(request)
            if answer is not None and not self._must_ask_again(answer):
                self.ledger.answered(op, answer.status, answer.json, answer.replayed)
                return answer
            self.ledger.asked_again(None if answer is None else f"{answer.status} {answer.code}")
            if answer is None and self.chance(abandon):
                return self.ledger.abandon(op)
            assert time.monotonic() < give_up, f"op {op} is never answered: {request} {answer}"
            time.sleep(self.rng.uniform(0, bound))
            bound = min(bound * 2, LONGEST_PAUSE_S)

    def _once(self, request):
        headers = {"X-Actor": request["actor"]} if request["actor"] else None
        try:
            reply = self.http.call(request["method"], request["path"], request["body"], key=request["key"], tenant=request["tenant"], headers=headers)
        except (OSError, http.client.HTTPException):
            return None
        # http.client takes a head that was cut off for a whole one.
        return Answer(reply) if reply.header("Content-Length") else None

    @staticmethod
    def _must_ask_again(answer):
        return answer.status >= 500 or answer.code == "IDEMPOTENCY_IN_FLIGHT"

    def get(self, path, tenant=None):
        """A read, until it is answered; nothing of it is written down."""
        while True:
            answer = self._once({"method": "GET", "path": path, "body": None, "tenant": tenant, "key": None, "actor": None})
            if answer is not None and answer.status < 500:
                return answer
            self.pause(0.1)
