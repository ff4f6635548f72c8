"""The command line at the limits: why a run waits, what a start met, a tenant's settings with their history, the gate."""
import json
import re

import pytest

import harness
from cli import pawl

STEPS = [{"name": "work", "type": "task", "handler": "noop"}, {"name": "rest", "type": "sleep", "duration_ms": 600000}]


@pytest.fixture
def run(dev_server, tenant):
    """The command with this test's server and tenant in its environment."""
    return lambda *args, **kw: pawl(*args, **{"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant, **kw})


@pytest.fixture
def start(run, api, tenant):
    """start(input, *flags): the id of a new run of a workflow with one slot per customer."""
    api.workflow(tenant, "w", STEPS, concurrency={"key": "input.customer", "limit": 1})

    def one(value, *flags):
        r = run("run", "start", "w", "--input", json.dumps(value), *flags)
        assert r.code == 0, r
        return r.out.split()[0]

    return one


def settings(api, tenant):
    return api.get(f"/api/v1/tenants/{tenant}").json


def table_after(out, title):
    """The rows of the table whose first column has this title, up to the next empty line."""
    lines = out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(title))
    rows = []
    for line in lines[first + 1:]:
        if not line:
            break
        rows.append(line.split())
    return rows


# --- run why ---

def test_why_names_the_limit_its_holders_and_the_place(run, start):
    holder = start({"customer": "ada"})
    first, second = start({"customer": "ada"}, "--at-limit", "queue"), start({"customer": "ada"}, "--at-limit", "queue")
    for place, waiting in enumerate((first, second), 1):
        r = run("run", "why", waiting)
        lines = r.out.splitlines()
        assert r.code == 0 and lines[0] == "1 of 1 runs of workflow w with key ada are active.", r
        assert lines[1] == f"place {place} in the queue for its limit; 2 runs of the tenant are queued"
        assert "key input.customer = ada: 1 of 1 runs are active" in lines
        assert [row[:3] for row in table_after(r.out, "HELD BY")] == [[holder, "w", "running"]]


def test_why_shows_every_limit_that_is_full(run, start, api, tenant):
    api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 2})
    holders = [start({"customer": c}) for c in ("ada", "bob")]
    r = run("run", "why", start({"customer": "ada"}, "--at-limit", "queue"))
    by_key, by_tenant = r.out.split("\n\n")[1:]
    assert by_key.startswith("key input.customer = ada: 1 of 1 runs are active\n") and holders[0] in by_key and holders[1] not in by_key, r
    assert by_tenant.startswith("tenant: 2 of 2 runs are active\n") and all(h in by_tenant for h in holders), r


def test_why_names_a_limit_of_runs_without_a_key_and_one_of_a_workflow(run, start, api, tenant):
    start({})
    assert "\nkey input.customer = -: 1 of 1 runs are active\n" in run("run", "why", start({}, "--at-limit", "queue")).out
    api.workflow(tenant, "whole", concurrency={"limit": 1, "at_limit": "queue"})
    assert run("run", "start", "whole").code == 0
    waiting = run("run", "start", "whole", "--json").json["run_id"]
    assert "\nworkflow: 1 of 1 runs are active\n" in run("run", "why", waiting).out


def test_why_says_how_many_holders_it_does_not_name(run, api, tenant):
    api.workflow(tenant, "w")
    api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 23, "at_limit": "queue"})
    runs = [api.start(tenant, "w").json["run_id"] for _ in range(24)]
    r = run("run", "why", runs[-1])
    assert [row[0] for row in table_after(r.out, "HELD BY")][:20] == runs[:20] and r.out.endswith("\nand 3 more\n"), r


def test_why_of_an_active_run_says_what_its_step_waits_for(run, start, api, tenant):
    one, two = start({"customer": 1}), start({"customer": 2})
    r = run("run", "why", two)
    assert r.out.splitlines()[0].startswith("Step work is waiting for a worker. No worker has polled queue default since the server started "), r
    assert table_after(r.out, "STEP")[0][:4] == ["work", "worker_queue", "default", "2"]
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w7"}, tenant=tenant).json["jobs"][0]
    r = run("run", "why", one)
    assert job["run_id"] == one and r.out.splitlines()[0] == f"Step work is running on worker w7, attempt 1. Its lease expires at {job['lease_expires_at']}.", r
    assert table_after(r.out, "STEP")[0][:2] == ["work", "worker"] and "w7" in table_after(r.out, "STEP")[0]
    api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant=tenant)
    r = run("run", "why", one)
    due = api.get(f"/api/v1/runs/{one}/why", tenant=tenant).json["waits_for"][0]["due_at"]
    assert r.out.splitlines()[0] == f"Step rest is sleeping until {due}." and due in table_after(r.out, "STEP")[0], r


def test_why_of_a_run_that_is_over(run, start):
    done = start({})
    assert run("run", "cancel", done).code == 0
    r = run("run", "why", done)
    assert r.code == 0 and r.out.count("\n") == 1 and "ended" in r.out and "cancelled" in r.out, r


def test_why_as_json_is_the_servers_answer(run, start, api, tenant):
    start({})
    waiting = start({}, "--at-limit", "queue")
    assert run("run", "why", waiting, "--json").json == api.get(f"/api/v1/runs/{waiting}/why", tenant=tenant).json


def test_why_of_no_run(run):
    r = run("run", "why", "0190b3c4-0000-7000-8000-000000000000")
    assert r.code == 1 and "RUN_NOT_FOUND" in r.err and r.out == "", r


# --- run start ---

def test_start_says_what_became_of_it(run, start):
    flags = ("run", "start", "w", "--input", '{"customer":"ada"}')
    first = run(*flags)
    run_id = first.out.split()[0]
    assert first.out == f"{run_id}  created  running\n"
    coalesced = (*flags, "--at-limit", "coalesce", "--idempotency-key", "again")
    assert run(*coalesced).out == f"{run_id}  coalesced  running\n"
    assert run(*coalesced).out == f"{run_id}  replayed  running\n"
    queued = run(*flags, "--at-limit", "queue")
    assert queued.code == 0 and queued.out.split()[1:] == ["created", "queued"], queued
    r = run(*flags, "--at-limit", "reject")
    assert r.code == 1 and "MAX_CONCURRENT_RUNS" in r.err and "input.customer" in r.err, r
    newest = run(*flags, "--at-limit", "cancel_oldest")
    assert newest.out.split()[1:] == ["created", "running"] and run("run", "show", run_id, "--json").json["status"] == "cancelled"
    r = run(*flags, "--at-limit", "shrug")
    assert r.code == 2 and "cancel_oldest" in r.err, r


# --- tenant set ---

def test_a_rate_limit_is_set_and_taken_away(run, api, tenant):
    assert run("tenant", "set", tenant, "--rate-per-second", "5", "--rate-burst", "20").code == 0
    assert settings(api, tenant)["rate_limit"] == {"per_second": 5, "burst": 20}
    assert run("tenant", "set", tenant, "--weight", "3").code == 0
    assert settings(api, tenant)["rate_limit"] == {"per_second": 5, "burst": 20}
    assert run("tenant", "set", tenant, "--rate-per-second", "none").code == 0
    assert settings(api, tenant)["rate_limit"] is None


@pytest.mark.parametrize("flags", [("--rate-per-second", "5"), ("--rate-burst", "5"), ("--rate-burst", "none"), ("--rate-per-second", "none", "--rate-burst", "5"),
                                   ("--rate-per-second", "0", "--rate-burst", "5"), ("--gate-lock-ttl-ms", "0"), ("--gate-max-wait-ms", "long")])
def test_half_a_setting_is_a_mistake_and_changes_nothing(run, api, tenant, flags):
    before = settings(api, tenant)
    r = run("tenant", "set", tenant, *flags)
    assert r.code == 2 and flags[0] in r.err and settings(api, tenant) == before, r


@pytest.mark.parametrize("flags", [("--gate-policy", "equal_jitter"), ("--gate-max-wait-ms", "700"), ("--gate-retry-delay-ms", "7"), ("--gate-lock-ttl-ms", "7000")])
def test_gate_flags_that_would_have_no_effect_are_refused(run, api, tenant, flags):
    before = settings(api, tenant)
    r = run("tenant", "set", tenant, *flags, "--weight", "3")
    assert r.code == 1 and "no external admission gate" in r.err and r.out == "" and settings(api, tenant) == before, r
    new = tenant + "-new"
    assert run("tenant", "set", new, *flags).code == 1 and api.get(f"/api/v1/tenants/{new}").status == 404


def test_gate_flags_with_the_defaults_change_nothing(run, api, tenant):
    before = settings(api, tenant)
    assert run("tenant", "set", tenant, "--gate-policy", "full_jitter", "--gate-max-wait-ms", "2000", "--gate-retry-delay-ms", "default").code == 0
    assert settings(api, tenant) == before


def test_a_gate_that_cannot_be_read_is_not_overwritten():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        viewer = pawl("key", "create", "--tenant", "acme", "--role", "viewer", PAWL_URL=s.url, PAWL_API_KEY=harness.ROOT_KEY).out.strip()
        r = pawl("tenant", "set", "acme", "--gate-policy", "fixed", PAWL_URL=s.url, PAWL_API_KEY=viewer)
        assert r.code == 1 and "FORBIDDEN" in r.err and r.out == "", r
    r = pawl("tenant", "set", "acme", "--gate-policy", "fixed", "--timeout-s", "1", PAWL_URL=s.url)
    assert r.code == 3, r


def test_an_unknown_policy_is_refused_by_name(run, tenant):
    for flag, known in (("--at-limit", "coalesce"), ("--gate-policy", "decorrelated")):
        r = run("tenant", "set", tenant, flag, "shrug")
        assert r.code == 2 and known in r.err, r


# --- tenant history and rollback ---

def test_history_says_who_changed_what(run, tenant):
    assert run("tenant", "set", tenant, "--max-concurrent-runs", "2", "--at-limit", "queue", PAWL_ACTOR="ada").code == 0
    assert run("tenant", "set", tenant, "--rate-per-second", "5", "--rate-burst", "20", PAWL_ACTOR="bob").code == 0
    r = run("tenant", "history", tenant)
    assert r.code == 0 and r.rows[0] == ["VERSION", "AT", "BY", "CHANGED"], r
    newest, middle, oldest = ([row[0], row[2], " ".join(row[3:])] for row in r.rows[1:])
    assert newest[:2] == ["3", "bob"] and "rate_limit" in newest[2] and "(was null)" in newest[2]
    assert middle == ["2", "ada", 'max_concurrent_runs 2 (was null), at_limit "queue" (was "reject")']
    assert oldest[:2] == ["1", "dev"] and 'at_limit "reject"' in oldest[2]


def test_history_as_json_is_the_servers_answer(run, api, tenant):
    run("tenant", "set", tenant, "--weight", "2")
    assert run("tenant", "history", tenant, "--json").json == api.get(f"/api/v1/tenants/{tenant}/settings?limit=200").json
    assert [v["version"] for v in run("tenant", "history", tenant, "--json").json["items"]] == [2, 1]


def test_setting_what_is_set_makes_no_version(run, tenant):
    for _ in range(3):
        assert run("tenant", "set", tenant, "--weight", "2", "--gate-policy", "full_jitter", "--json").json["settings_version"] == 2


def test_rollback_goes_back_one_version_or_to_the_one_named(run, api, tenant):
    for limit in (1, 2, 3):
        run("tenant", "set", tenant, "--max-concurrent-runs", str(limit))
    r = run("tenant", "rollback", tenant)
    assert r.code == 0 and re.search(r"^max_concurrent_runs +2$", r.out, re.M) and re.search(r"^settings_version +5$", r.out, re.M), r
    assert run("tenant", "rollback", tenant, "--to", "1", "--json").json["max_concurrent_runs"] is None
    assert settings(api, tenant)["settings_version"] == 6
    history = run("tenant", "history", tenant)
    assert history.rows[1][0] == "6" and history.rows[1][3:] == ["max_concurrent_runs", "null", "(was", "2)"], history


def test_rollback_to_a_version_that_is_not_there(run, api, tenant):
    for flags in (("--to", "9"), ()):  # a new tenant has nothing before its first version
        r = run("tenant", "rollback", tenant, *flags)
        assert r.code == 1 and "SETTINGS_VERSION_NOT_FOUND" in r.err and r.out == "", r
    assert settings(api, tenant)["settings_version"] == 1
    r = run("tenant", "rollback", tenant, "--to", "0")
    assert r.code == 2 and "--to" in r.err, r


def test_a_repeated_rollback_with_its_key_goes_back_once(run, api, tenant):
    for limit in (1, 2, 3):
        run("tenant", "set", tenant, "--max-concurrent-runs", str(limit))
    for _ in range(2):
        assert run("tenant", "rollback", tenant, "--idempotency-key", "undo", "--json").json["max_concurrent_runs"] == 2
    assert settings(api, tenant)["settings_version"] == 5


def test_history_and_rollback_work_on_a_file(tmp_path):
    store = harness.stores.url(tmp_path / "pawl.db")
    for limit in ("1", "2"):
        assert pawl("tenant", "set", "acme", "--max-concurrent-runs", limit, "--weight", limit, "--store", store).code == 0
    assert pawl("tenant", "rollback", "acme", "--store", store).code == 0
    r = pawl("tenant", "history", "acme", "--store", store)
    assert [row[0] for row in r.rows[1:]] == ["3", "2", "1"] and "max_concurrent_runs 1 (was 2)" in r.out, r


# --- the gate ---

def test_the_gate_of_the_store_is_ready_with_it(api):
    assert api.get("/readyz").json["dependencies"]["gate"] == {"status": "ok", "kind": "store"}


@pytest.mark.parametrize("gate", ["rediss://127.0.0.1:6379", "redis://", "redis://127.0.0.1:x", "redis://127.0.0.1/x", "Store", "memory"])
def test_a_gate_that_there_is_not_is_a_mistake(tmp_path, gate):
    for args, variables in ((("--gate", gate), {}), ((), {"PAWL_GATE": gate})):
        r = pawl("serve", *args, cwd=tmp_path, **variables)
        assert r.code == 2 and gate in r.err and "store" in r.err and r.out == "" and not list(tmp_path.iterdir()), r


def test_the_gate_of_the_store_may_be_named():
    for flags, env in ((("--gate", "store"), {}), ((), {"PAWL_GATE": "store"})):
        with harness.server(*flags, env=env) as s:
            assert s.client().get("/readyz").json["dependencies"]["gate"]["kind"] == "store"


def test_a_tenant_asks_for_the_gate_in_redis_and_goes_back():
    with harness.server("--gate", "redis://127.0.0.1:1") as s:  # nobody starts anything
        def put(*flags):
            r = pawl("tenant", "set", "acme", *flags, "--json", PAWL_URL=s.url)
            return r, r.json["gate"] if r.code == 0 else None

        assert put("--weight", "2")[1]["kind"] == "store"
        assert put("--gate", "redis")[1] == {"kind": "redis", "max_wait_ms": 2000, "lock_ttl_ms": 10000, "retry_delay_ms": 10, "policy": "full_jitter"}
        assert put("--gate-policy", "fixed", "--gate-max-wait-ms", "50")[1] == {"kind": "redis", "max_wait_ms": 50, "lock_ttl_ms": 10000, "retry_delay_ms": 10, "policy": "fixed"}
        r, _ = put("--gate", "store", "--gate-policy", "fixed")
        assert r.code == 2 and "--gate store" in r.err, r
        assert put("--gate", "store")[1] == {"kind": "store", "max_wait_ms": 2000, "lock_ttl_ms": 10000, "retry_delay_ms": 10, "policy": "full_jitter"}
        assert put("--gate-lock-ttl-ms", "7")[1]["kind"] == "redis", "settings of a gate ask for one"
