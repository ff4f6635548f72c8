"""The tenants and workflows of the load, and what its clients know of each other."""
import threading

# acme has no limits and a webhook for everything; the limits of tight change all the time; brief keeps ended runs for seconds
# and starts few of them a second.
TENANTS = ("acme", "tight", "brief")
QUEUE, ENTITY_QUEUE = "work", "entities"
COUNTER, MARK, FLEETING = "counter", "mark", "fleeting"  # entity types; fleeting ones have timers, start runs, finish and are deleted
LEASE_MS = 1200
CHILD = "child"  # started by parents only: children hold no slot
FIRST_LIMIT = 8  # of tight
KEY_LIMIT, WORKFLOW_LIMIT = 1, 3  # of the workflow `limited`
RETRY = {"max_attempts": 8, "backoff_ms": 10, "max_backoff_ms": 200}


def task(name, **more):
    return {"name": name, "type": "task", "queue": QUEUE, "handler": name, **more}


def definitions(step_url):
    call = {"method": "POST", "url": step_url, "body": {"n": "${input.n}"}}
    return {
        "order": {"steps": [task("pay", retry=RETRY, compensate={"handler": "undo", "queue": QUEUE}),
                            {"name": "tell", "type": "http", "request": call, "timeout_ms": 1500, "retry": {**RETRY, "max_attempts": 30}},
                            {"name": "sum", "type": "transform", "output": {"paid": "${steps.pay.output}", "told": "${steps.tell.output.body.number}"}}]},
        "saga": {"steps": [task("book", retry=RETRY, compensate={"handler": "undo", "queue": QUEUE}), task("doom", retry=RETRY)]},
        "asks": {"steps": [{"name": "ok", "type": "approval", "prompt": "Pay ${input.n}?", "content": {"amount": "${input.n}"}, "expires_s": 300, "on_expire": "fail"},
                           task("close", requires_approval={"approvers": {"count": 2}, "expires_s": 600, "on_expire": "approve"})]},
        "waits": {"steps": [{"name": "first", "type": "wait_signal", "signal": "go"}, {"name": "nap", "type": "sleep", "duration_ms": 20},
                            {"name": "second", "type": "wait_signal", "signal": "go"},
                            {"name": "sum", "type": "transform", "output": "${steps.first.output.payload + steps.second.output.payload}"}]},
        "fan": {"steps": [task("part", for_each="input.items", max_parallel=2, input={"item": "${item}"}, retry=RETRY),
                          {"name": "children", "type": "workflow", "workflow_id": CHILD, "for_each": "input.items", "input": "${item}", "on_error": "continue"},
                          {"name": "say", "type": "emit", "event": "fan.done", "payload": {"n": "${input.n}"}}]},
        CHILD: {"steps": [task("small", retry=RETRY)]},
        "nap": {"steps": [{"name": "rest", "type": "sleep", "duration_ms": 60}, {"name": "say", "type": "emit", "event": "nap.over", "payload": 1}]},
        "soon": {"timeout_s": 2, "steps": [{"name": "never", "type": "wait_signal", "signal": "never"}]},
        "limited": {"concurrency": [{"limit": WORKFLOW_LIMIT, "at_limit": "queue"}, {"key": "input.k", "limit": KEY_LIMIT, "at_limit": "queue"}],
                    "steps": [task("hold", retry=RETRY), {"name": "rest", "type": "sleep", "duration_ms": 30}]},
        "tick": {"steps": [{"name": "now", "type": "transform", "output": 1}]},
    }


# How often each is started. tick is started by schedules, child by fan.
SHARES = {"order": 5, "saga": 3, "asks": 4, "waits": 4, "fan": 2, "nap": 3, "soon": 1, "limited": 5}


def prepare(api, hook_url):
    """Everything that the load needs, on a quiet server."""
    for tenant in TENANTS:
        for name, definition in definitions(hook_url("/step")).items():
            api.workflow(tenant, name, **definition)
        for etype in (COUNTER, MARK, FLEETING):
            rules = {"queue": ENTITY_QUEUE, "handler": "add", "rollover_events": 20, "keep_generations": 2, "max_batch": 10,
                     "retry": {"backoff_ms": 10, "max_backoff_ms": 100}}
            assert api.put(f"/api/v1/entity-types/{etype}", rules, tenant=tenant).status == 200
    for tenant, settings in (("tight", {"max_concurrent_runs": FIRST_LIMIT, "max_queued_runs": 40}), ("brief", {"run_retention_s": 5, "rate_limit": {"per_second": 5, "burst": 5}})):
        assert api.put(f"/api/v1/tenants/{tenant}", settings, tenant=tenant).status == 200
    hook = api.post("/api/v1/webhooks", {"url": hook_url("/events"), "events": ["*"]}, tenant="acme")
    assert hook.status == 200, hook


class Scene:
    """What the clients of the load tell each other. Any thread may use it."""

    def __init__(self, world, ledger, seed):
        self.world, self.ledger, self.seed = world, ledger, seed
        self.lock = threading.Lock()
        self.runs = []     # (tenant, run id, workflow) as acknowledged
        self.waiting = []  # (tenant, run id) of runs that need signals
        self.streams_ended = set()  # tenants whose stream was read to the last mark

    def add_run(self, tenant, run, workflow):
        with self.lock:
            self.runs.append((tenant, run, workflow))
            if workflow == "waits":
                self.waiting.append((tenant, run))

    def take_waiting(self):
        with self.lock:
            return self.waiting.pop() if self.waiting else None

    def some_run(self, rng):
        """A recent one, mostly."""
        with self.lock:
            if not self.runs:
                return None
            return rng.choice(self.runs[-8:] if rng.random() < 0.7 else self.runs)


def some_workflow(rng):
    return rng.choices(list(SHARES), list(SHARES.values()))[0]
