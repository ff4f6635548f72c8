"""kill -9 at any moment, under all policies and limits at once: no slot is lost, no limit passed, no queued run forgotten.

PAWL_KILLS=500 makes it a soak, PAWL_SEED repeats the choices of one that failed."""
import itertools
import os
import random
import time

import pytest

import harness
from harness import wait_until
from inspect_store import assert_healthy, doctor_on_file, rows, run_id_text
from lasting_clients import LastingClients, kill_while_starting
from recount import snapshot, assert_recounted

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PAWL_KILLS", "30"))
TENANTS = ["t-0", "t-1", "t-2"]
POLICIES = ["reject", "queue", "cancel_oldest", "coalesce"]
TASK = {"name": "work", "type": "task", "handler": "noop"}
NAP = {"name": "nap", "type": "sleep", "duration_ms": 3}
STEPS = {"task": [TASK], "nap": [NAP], "both": [TASK, NAP]}
REFUSALS = {"MAX_CONCURRENT_RUNS", "QUEUE_FULL", "RATE_LIMITED"}


# --- what is set ---

def maybe(rng, chance, **members):
    return members if rng.random() < chance else {}


def random_rules(rng):
    limits = (1, 2, 3, 6)
    rules = [{"limit": rng.choice(limits)}, {"key": "input.a", "limit": rng.choice(limits)}, {"key": "input.b", "limit": rng.choice(limits)}]
    return [{**rule, **maybe(rng, 0.5, at_limit=rng.choice(POLICIES))} for rule in rng.sample(rules, rng.randrange(4))]


def configure(api, rng, tenant, limits=(None, 0, 1, 2, 3, 6, 12)):
    """Other limits, other policies, other rules."""
    settings = {
        "max_concurrent_runs": rng.choice(limits),
        "at_limit": rng.choice(POLICIES),
        "max_queued_runs": rng.choice([0, 3, 30, 100]),
        "weight": rng.choice([1, 1, 5]),
        "rate_limit": rng.choice([None, None, {"per_second": 500, "burst": 20}]),
    }
    assert api.put(f"/api/v1/tenants/{tenant}", settings, tenant=tenant).status == 200
    for wid, steps in STEPS.items():
        rules = random_rules(rng)
        api.workflow(tenant, wid, steps=steps, **({"concurrency": rules} if rules else {}))


def random_input(rng):
    """Few keys, so that many runs share them; some have none."""
    return {**maybe(rng, 0.8, a=rng.randrange(3)), **maybe(rng, 0.8, b=rng.choice("xyz"))}


# --- what happens meanwhile ---

class Load(LastingClients):
    """Starts under all policies, retries, workers that succeed, fail and give up, and people who cancel."""

    def __init__(self, server, seed):
        super().__init__(server)
        self.seed = seed
        self.numbers = itertools.count()
        self.asked = {}  # (tenant, key) → (workflow, body)
        self.runs = {}  # (tenant, key) → run_id, as acknowledged
        self.refused = set()  # (tenant, key): the last answer was a refusal
        self.answers = 0

    def rng(self, what, number):
        return random.Random(f"{self.seed}-{what}-{number}")

    def ask(self, tenant, key):
        wid, body = self.asked[tenant, key]
        with self.changed:
            self.refused.discard((tenant, key))
        if int(key.rsplit("-", 1)[1]) % 3:
            r = self.answered(lambda c: c.start(tenant, wid, body, key=key))
        else:
            flat = {"definitionId": wid, "idempotencyKey": key, **body}
            r = self.answered(lambda c: c.post("/api/v1/workflow-runs", flat, tenant=tenant))
        with self.changed:
            self.answers += 1
            if r.status == 200:
                known = self.runs.setdefault((tenant, key), r.json["run"]["id"])
                assert known == r.json["run"]["id"], f"{tenant} {key} has two runs"
            else:
                assert r.status == 429 and r.code in REFUSALS, r
                assert (tenant, key) not in self.runs, f"{tenant} {key} had a run and is refused now: {r}"
                self.refused.add((tenant, key))
        return r

    def has_answers(self, count):
        """Waits for them, but not for long."""
        with self.changed:
            self.changed.wait_for(lambda: self.answers >= count or self.failures, timeout=0.03)
            self.check()
            return self.answers >= count

    def start_runs(self, number):
        rng = self.rng("start", number)
        while self.goes_on():
            tenant, key = rng.choice(TENANTS), f"k-{number}-{next(self.numbers)}"
            body = {"input": random_input(rng), **maybe(rng, 0.4, at_limit=rng.choice(POLICIES)), **maybe(rng, 0.3, priority=rng.randrange(-2, 3))}
            self.asked[tenant, key] = rng.choice(list(STEPS)), body
            self.ask(tenant, key)
            if rng.random() < 0.3:
                self.ask(tenant, key)
            if rng.random() < 0.1:  # one of this thread's own: two threads that retry one refused key would not know which answer was last
                self.ask(*rng.choice([k for k in list(self.asked) if k[1].startswith(f"k-{number}-")]))

    def work(self, number):
        rng = self.rng("work", number)
        while self.goes_on():
            body = {"worker_id": f"w{number}", "max": 5, "wait_ms": 20, "lease_ms": 300}
            r = self.answered(lambda c: c.post("/api/v1/jobs/claim", body, tenant="*"))
            assert r.status == 200, r
            for job in r.json["jobs"]:
                self.finish(job, rng.random())

    def finish(self, job, luck):
        if luck < 0.03:
            return  # the lease runs out
        if luck < 0.2:
            verb, more = "fail", {"error": {"code": "NO", "retryable": False}}
        else:
            verb, more = "complete", {}
        r = self.answered(lambda c: c.post(f"/api/v1/jobs/{job['job_id']}/{verb}", {"lease_token": job["lease_token"], **more}, tenant="*"))
        assert r.status == 200 or (r.status == 409 and r.code == "LEASE_LOST"), r

    def cancel(self, number):
        rng = self.rng("cancel", number)
        while self.goes_on():
            with self.changed:  # every thread notifies at the head of its loop
                self.changed.wait_for(lambda: self.runs or self._stopping or self._paused)
                recent = list(self.runs.items())[-50:]
            if not recent:
                continue
            (tenant, _), run = rng.choice(recent)
            r = self.answered(lambda c: c.post(f"/api/v1/runs/{run}/cancel", tenant=tenant))
            assert r.status in (200, 409), r
            time.sleep(rng.uniform(0, 0.02))  # most runs should come to another end


# --- what must be true ---

class Ceilings:
    """How many runs a limit can have after it was lowered: as many as it had, until they end."""

    def __init__(self, s, later=False):
        """As of this moment; with `later` also what may have started until the limits were changed."""
        self.tenants, self.scopes = self.counts(s)
        if later:
            of_tenant, of_scope = self.counts(s, s.runs)
            self.tenants = {num: max(n, min(s.limit_of_tenant(num), of_tenant[num])) for num, n in self.tenants.items()}
            limits = {tuple(row[:4]): s.limit_of(num) for num, row in s.scopes.items()}
            self.scopes = {name: max(n, min(limits[name], of_scope[name])) for name, n in self.scopes.items()}

    @staticmethod
    def counts(s, runs=None):
        """({tenant: runs}, {(tenant, workflow, path, key): runs}) of those that are active, or of all these."""
        names = {num: tuple(row[:4]) for num, row in s.scopes.items()}
        of_tenant, of_scope = {num: 0 for num in s.tenants}, {name: 0 for name in names.values()}
        for run in s.active if runs is None else runs:
            of_tenant[run.tenant] += 1
            for num in s.scope_nums(run):
                of_scope[names[num]] += 1
        return of_tenant, of_scope

    def passed(self, s):
        of_tenant, of_scope = self.counts(s)
        limits = {tuple(row[:4]): s.limit_of(num) for num, row in s.scopes.items()}
        over = [f"tenant {num}: {n} runs" for num, n in of_tenant.items() if n > max(s.limit_of_tenant(num), self.tenants.get(num, 0))]
        return over + [f"{name}: {n} of {limits[name]} runs" for name, n in of_scope.items() if n > max(limits[name], self.scopes.get(name, 0))]


def check_slots(db, ceilings):
    s = snapshot(db)
    wrong = s.differences() + ceilings.passed(s)
    assert not wrong, "\n".join(wrong)


def check_answers(db, load, exactly=False):
    """Every acknowledged start is there under its key, with its run; no refused one left anything."""
    with load.changed:
        acknowledged, refused = dict(load.runs), set(load.refused)
    stored = rows(db, "SELECT t.id, i.key, i.run_id FROM idempotency i JOIN tenants t ON t.num = i.tenant WHERE i.run_id IS NOT NULL")
    kept = {(tenant, key): run_id_text(run) for tenant, key, run in stored}
    assert len(kept) == len(stored), "a key has two records"
    assert {k: kept.get(k) for k in acknowledged} == acknowledged
    assert not refused & set(kept), "a refused start has left its key"
    runs = {run_id_text(run) for (run,) in rows(db, "SELECT id FROM runs")}
    assert runs == set(kept.values()), "a run without a key, or a key without its run"
    if exactly:
        assert kept == acknowledged


def check_stories(db):
    """Each run is queued and admitted once at most, and nothing that was queued began without being admitted."""
    twice = rows(db, "SELECT run, type FROM events WHERE type IN ('run.created', 'run.queued', 'run.admitted', 'run.succeeded', 'run.failed', 'run.cancelled')"
                     " GROUP BY run, type HAVING count(*) > 1")
    assert not twice, twice
    began = rows(db, "SELECT r.num, r.status FROM runs r JOIN events q ON q.run = r.num AND q.type = 'run.queued'"
                     " WHERE r.status <> 'queued' AND r.started_at IS NOT NULL"
                     " AND NOT EXISTS (SELECT 1 FROM events a WHERE a.run = r.num AND a.type = 'run.admitted')")
    assert not began, began


def check_at_rest(db, what):
    """Whatever is queued waits for a limit that is full."""
    wait_until(lambda: not snapshot(db).startable(), f"{what}: all that fits is started")


def change_limits(s, rng, tenants, **limits):
    """While nobody asks for anything. What fits then is started, and no more; the ceilings from now on."""
    before = Ceilings(snapshot(s.db), later=True)
    for tenant in tenants:
        configure(s.client(), rng, tenant, **limits)
    if rng.random() < 0.7:  # or what goes on next comes between
        check_at_rest(s.db, "after other limits")
    check_slots(s.db, before)
    return Ceilings(snapshot(s.db))


def fill_the_queue(api, rng):
    """Many runs that wait, for all kinds of limits."""
    for tenant in TENANTS:
        configure(api, rng, tenant, limits=(0, 1, 2))
        assert api.put(f"/api/v1/tenants/{tenant}", {"max_queued_runs": None, "rate_limit": None}, tenant=tenant).status == 200
        for n in range(80):
            body = {"input": random_input(rng), "at_limit": "queue", "priority": rng.randrange(-2, 3)}
            assert api.start(tenant, rng.choice(list(STEPS)), body, key=f"last-{n}").status == 200


def drain(s, rng):
    """Workers and time alone bring every run to its end, under limits of at least 1."""
    api = s.client()
    ceilings = change_limits(s, rng, TENANTS, limits=(1, 2, 3))
    waiting = [run.num for run in snapshot(s.db).queued]

    def over():
        check_slots(s.db, ceilings)
        jobs = api.post("/api/v1/jobs/claim", {"worker_id": "last", "max": 100, "wait_ms": 10, "lease_ms": 60000}, tenant="*").json["jobs"]
        for job in jobs:
            r = api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant="*")
            assert r.status == 200, r
        return not jobs and not snapshot(s.db).runs

    wait_until(over, "every run ends", seconds=harness.PATIENCE_S * 3)
    for num in waiting:
        story = [kind for (kind,) in rows(s.db, "SELECT type FROM events WHERE run = ? ORDER BY seq", num)]
        assert "run.admitted" in story, (num, story)
    for table in ("scopes", "slots", "holding", "queue", "lines", "line_scopes"):
        assert rows(s.db, f"SELECT count(*) FROM {table}") == [(0,)], table
    return len(waiting)


def test_kills_under_load_lose_no_slot_and_no_queued_run():
    seed = os.environ.get("PAWL_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"PAWL_SEED={seed} PAWL_KILLS={KILLS}")
    rng = random.Random(seed)
    with harness.server() as s:
        for tenant in TENANTS:
            configure(s.client(), rng, tenant)
        load, ceilings = Load(s, seed), Ceilings(snapshot(s.db))
        load.begin((load.start_runs, 8), (load.work, 2), (load.cancel, 1))
        for n in range(KILLS):
            enough = load.answers + rng.choice((5, 50, 300)) * rng.uniform(0.2, 2)
            while not load.has_answers(enough):
                check_slots(s.db, ceilings)
            if n % 5 == 4:
                load.pause()
                check_at_rest(s.db, "under load")
                load.resume()
            time.sleep(rng.uniform(0, 0.02))  # the moment is random; nothing is waited for
            s.kill()
            if rng.random() < 0.3:
                kill_while_starting(s, rng)
            check_slots(s.db, ceilings)
            check_answers(s.db, load)
            s.start()
            check_at_rest(s.db, "after a kill")
            check_slots(s.db, ceilings)
            ceilings = change_limits(s, rng, [tenant for tenant in TENANTS if rng.random() < 0.7])
            load.server_is_back()
        load.end()
        assert load.unanswered >= KILLS, "the kills hit no request"
        check_at_rest(s.db, "at the end")
        check_slots(s.db, ceilings)
        check_answers(s.db, load, exactly=True)
        fill_the_queue(s.client(), rng)
        s.kill()
        assert_recounted(s.db)
        s.start()
        waited = drain(s, rng)
        check_stories(s.db)
        assert_healthy(s.client())
        s.kill()
        doctor_on_file(s.db)
        ends = dict(rows(s.db, "SELECT status, count(*) FROM runs GROUP BY status"))
        policies = {kind: rows(s.db, "SELECT count(*) FROM events WHERE type = ?", kind)[0][0] for kind in ("run.queued", "run.admitted")}
        print(f"{load.answers} answers, {load.unanswered} unanswered, {len(load.runs)} keys, {len(load.refused)} refused, {ends}, {policies}, {waited} drained")
