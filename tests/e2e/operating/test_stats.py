"""GET /api/v1/stats: what happened in the last minutes, to a tenant and to all of them."""
import harness
from checks import assert_problem
from limit_scenarios import cancel, queued, started

NOTHING = {"starts": 0, "outcomes": {"succeeded": 0, "failed": 0, "denied": 0, "cancelled": 0, "timed_out": 0}, "replays": 0, "mismatches": 0,
           "refused": 0, "waits": {"count": 0, "p50_ms": None, "p95_ms": None, "p99_ms": None}}


def stats(api, tenant, query=""):
    r = api.get(f"/api/v1/stats{query}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def total(api, tenant):
    return stats(api, tenant)["total"]


def sum_of(minutes):
    """What `total` must be, but for the percentiles."""
    figures = {name: sum(m[name] for m in minutes) for name in ("starts", "replays", "mismatches", "refused")}
    outcomes = {name: sum(m["outcomes"][name] for m in minutes) for name in NOTHING["outcomes"]}
    return {**figures, "outcomes": outcomes, "waits": sum(m["waits"]["count"] for m in minutes)}


def test_every_start_and_end_of_a_run_is_counted_once(api, tenant):
    api.workflow(tenant)
    assert total(api, tenant) == NOTHING and stats(api, tenant)["minutes"] == []
    runs = [started(api, tenant, key=f"k{n}") for n in range(4)]
    for _ in range(3):
        assert api.start(tenant, body={}, key="k0").header("Idempotent-Replayed") == "true"
    assert api.start(tenant, body={"input": 1}, key="k0").code == "IDEMPOTENCY_KEY_REUSED"
    assert api.start(tenant, wid="missing").status == 404  # neither made nor at a limit
    cancel(api, tenant, runs[3])
    api.work(tenant)
    assert total(api, tenant) == {**NOTHING, "starts": 4, "outcomes": {**NOTHING["outcomes"], "succeeded": 1, "cancelled": 1}, "replays": 3, "mismatches": 1}
    now = stats(api, tenant, "?minutes=1440")
    figures = sum_of(now["minutes"])
    assert {**now["total"], "waits": now["total"]["waits"]["count"]} == figures and 1 <= len(now["minutes"]) <= 2
    assert now["from"] <= now["minutes"][0]["at"] <= now["to"]


def test_starts_at_a_limit_and_waits_in_the_queue_are_counted(api):
    tenant = api.tenant(max_concurrent_runs=1, max_queued_runs=1, at_limit="queue")
    api.workflow(tenant)
    held = started(api, tenant)
    queued(api, tenant)
    assert api.start(tenant).code == "QUEUE_FULL" and api.start(tenant).code == "QUEUE_FULL"
    assert (total(api, tenant)["refused"], total(api, tenant)["starts"], total(api, tenant)["waits"]["count"]) == (2, 2, 0)
    cancel(api, tenant, held)
    waits = total(api, tenant)["waits"]
    assert waits["count"] == 1 and 1 <= waits["p50_ms"] == waits["p95_ms"] == waits["p99_ms"]


def test_child_runs_count_as_starts(api, tenant):
    api.workflow(tenant, "child", [{"name": "a", "type": "transform", "output": 1}])
    api.workflow(tenant, "parent", [{"name": "c", "type": "workflow", "workflow_id": "child"}])
    api.start(tenant, "parent")
    harness.wait_until(lambda: total(api, tenant)["outcomes"]["succeeded"] == 2, "both have ended")
    assert total(api, tenant)["starts"] == 2


def test_tenants_are_counted_apart_and_together(dev_server, api, tenant):
    other = api.tenant()
    before = total(api, "*")
    for t, count in ((tenant, 2), (other, 3)):
        api.workflow(t)
        for _ in range(count):
            started(api, t)
    assert (total(api, tenant)["starts"], total(api, other)["starts"]) == (2, 3)
    assert total(api, "*")["starts"] == before["starts"] + 5
    assert total(api, "nobody-has-it") == NOTHING


def test_only_a_day_can_be_asked_for(api, tenant):
    for query in ("?minutes=0", "?minutes=1441", "?minutes=x", "?hours=1"):
        assert_problem(api.get(f"/api/v1/stats{query}", tenant=tenant), 400, "BAD_REQUEST")


def test_figures_survive_a_restart_and_a_crash_loses_only_what_was_not_stored(tmp_path):
    with harness.server() as s:
        api = s.client()
        api.workflow("acme")
        for n in range(3):
            started(api, "acme", key=f"k{n}")
        api.start("acme", body={}, key="k0")
        s.stop()
        s.start()
        api = s.client()
        figures = {"starts": 3, "replays": 1}
        assert {name: total(api, "acme")[name] for name in figures} == figures
        started(api, "acme", key="later")
        assert total(api, "acme")["starts"] == 4  # the same minute, or the next one
        s.stop()
        s.start()
        api = s.client()
        started(api, "acme", key="lost")
        s.kill()
        s.start()
        api = s.client()
        assert total(api, "acme")["starts"] in (4, 5)  # 5: its minute was over and stored
        assert len(api.get("/api/v1/runs", tenant="acme").json["items"]) == 5
