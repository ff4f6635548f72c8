"""A tenant whose limit is reached, and one more start: whichever limit it is, whoever says what happens then."""
from inspect_store import all_runs, record

# The limits of a definition that fill up with the first run of the customer.
RULES = {"tenant": None, "workflow": {"limit": 1}, "key": {"key": "input.customer", "limit": 1}}
# What somebody says whom nobody should listen to.
OTHER = {"reject": "queue", "queue": "cancel_oldest", "cancel_oldest": "coalesce", "coalesce": "reject"}
# (which limit, who says the policy): a rule of a workflow says nothing about the tenant's limit.
WHERE = [("tenant", "tenant"), ("tenant", "request"), ("workflow", "tenant"), ("workflow", "rule"), ("workflow", "request"),
         ("key", "tenant"), ("key", "rule"), ("key", "request")]
ROUTES = ["nested", "flat"]


class LimitScenario:
    """A limit of 1 that `held` has taken. Everybody whose word counts less than `said_by` says something else."""

    def __init__(self, api, policy, by, said_by, route="nested"):
        self.api, self.policy, self.by, self.route = api, policy, by, route
        ranks = ["tenant", "rule", "request"]
        says = {who: policy if who == said_by else OTHER[policy] for who in ranks[: ranks.index(said_by) + 1]}
        self.wish = {"at_limit": says["request"]} if "request" in says else {}
        settings = {"at_limit": says["tenant"]}
        if by == "tenant":
            settings["max_concurrent_runs"] = 1
        self.tenant = api.tenant(**settings)
        rule = RULES[by]
        if rule is not None and "rule" in says:
            rule = {**rule, "at_limit": says["rule"]}
        api.workflow(self.tenant, **({"concurrency": rule} if rule else {}))
        self.held = self.ask("held").json["run"]["id"]

    def ask(self, key, n=1, **more):
        """A start by this key; another n is another body."""
        body = {"input": {"customer": "c", "n": n}, **self.wish, **more}
        if self.route == "flat":
            return self.api.post("/api/v1/workflow-runs", {"definitionId": "hold", **body}, key=key, tenant=self.tenant)
        return self.api.start(self.tenant, body=body, key=key)

    def run(self, run_id):
        r = self.api.get(f"/api/v1/runs/{run_id}", tenant=self.tenant)
        assert r.status == 200, r
        return r.json

    def events(self, run_id):
        r = self.api.get(f"/api/v1/runs/{run_id}/events", tenant=self.tenant)
        assert r.status == 200, r
        return [e["type"] for e in r.json["items"]]

    def cancel(self, run_id):
        r = self.api.post(f"/api/v1/runs/{run_id}/cancel", tenant=self.tenant)
        assert r.status == 200 and r.json["status"] == "cancelled", r

    def counts(self):
        """(runs ever made, active, queued)"""
        r = self.api.get(f"/api/v1/tenants/{self.tenant}", tenant=self.tenant)
        assert r.status == 200, r
        return len(all_runs(self.api, self.tenant)), r.json["active_runs"], r.json["queued_runs"]

    # --- what must be true ---

    def assert_rejected(self, r, current=1, limit=1):
        """429 that names the limit, and nothing is kept under the key."""
        assert r.status == 429 and r.code == "MAX_CONCURRENT_RUNS" and r.json["retryable"] is True, r
        assert (r.json["limited_by"], r.json["current"], r.json["limit"]) == (self.by, current, limit), r
        assert int(r.header("Retry-After")) >= 1
        policy = {"tenant": "concurrent-runs", "workflow": "concurrent-runs-of-workflow", "key": "concurrent-runs-of-key"}[self.by]
        assert r.header("RateLimit-Policy") == f'"{policy}";q={limit}' and r.header("RateLimit").startswith(f'"{policy}";r=0;t=')

    def assert_made(self, r, status):
        assert r.status == 200 and r.json["created"] is True and "coalesced" not in r.json, r
        assert r.json["run"]["status"] == status and r.header("Idempotent-Replayed") is None, r
        return r.json["run"]["id"]

    def assert_coalesced(self, r, into):
        assert r.status == 200 and r.json["created"] is False and r.json["coalesced"] is True, r
        assert r.json["run"]["id"] == r.json["run_id"] == into and r.header("Idempotent-Replayed") is None, r

    def assert_replays(self, key, run_id, n=1):
        """Asked again, the key names the same run, changes nothing, and takes no other body."""
        before = self.counts()
        r = self.ask(key, n)
        assert r.status == 200 and r.json["created"] is False and r.header("Idempotent-Replayed") == "true", r
        assert r.json["run"]["id"] == r.json["run_id"] == run_id, r
        for other in ({"n": n + 1}, {"n": n, "at_limit": OTHER[self.wish.get("at_limit", "queue")]}, {"n": n, "priority": 1}):
            r = self.ask(key, **other)
            assert r.status == 422 and r.code == "IDEMPOTENCY_KEY_REUSED", r
        assert record(self.api, self.tenant, key)["run_id"] == run_id
        assert self.counts() == before


# --- requests about tenants and runs ---

def get_tenant(api, tenant):
    return api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json


def set_tenant(api, tenant, **settings):
    r = api.put(f"/api/v1/tenants/{tenant}", settings, tenant=tenant)
    assert r.status == 200, r


def status(api, tenant, run):
    return api.get(f"/api/v1/runs/{run}", tenant=tenant).json["status"]


def statuses(api, tenant, runs):
    return [status(api, tenant, run) for run in runs]


def cancel(api, tenant, run):
    r = api.post(f"/api/v1/runs/{run}/cancel", tenant=tenant)
    assert r.status == 200, r


def started(api, tenant, wid="hold", key=None, **body):
    """The id of a run that begins at once."""
    r = api.start(tenant, wid, body=body, key=key)
    assert r.status == 200 and r.json["created"] is True and r.json["run"]["status"] == "running", r
    return r.json["run_id"]


def queued(api, tenant, wid="hold", key=None, **body):
    r = api.start(tenant, wid, body=body, key=key)
    assert r.status == 200 and r.json["created"] is True and r.json["run"]["status"] == "queued", r
    return r.json["run_id"]
