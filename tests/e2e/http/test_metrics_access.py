"""Who may read the metrics, and what is shown when there are many tenants and queues."""
import re

import pytest

import endpoint
import harness
from actions import task
from checks import assert_problem
from prometheus import metrics, parse

ROOT = "root-key-for-tests-0123456789abcdef"


def gauge(text, name):
    return {dict(labels).get("tenant") or dict(labels)["queue"]: v for (full, labels), v in parse(text).items() if full == name}


@pytest.fixture(scope="module")
def locked():
    with harness.server("--metrics-listen", "127.0.0.1:0", dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        yield s


@pytest.fixture(scope="module")
def aside(locked):
    """A client of the address that is for health and metrics only."""
    url = re.search(r"serving metrics and health url=(http://127\.0\.0\.1:\d+)", locked.log()).group(1)
    return harness.Client(endpoint.started(url))


def key_for(locked, tenant, role):
    root = locked.client(headers={"X-API-Key": ROOT})
    if tenant != "*":
        assert root.put(f"/api/v1/tenants/{tenant}", {}).status == 200
    r = root.post("/api/v1/keys", {"tenant": tenant, "role": role})
    assert r.status in (200, 201), r
    return {"X-API-Key": r.json["key"]}


def test_metrics_need_a_key_for_all_tenants(locked):
    assert_problem(locked.client().get("/metrics"), 401, "UNAUTHENTICATED")
    for role in ("viewer", "admin"):
        assert_problem(locked.client(headers=key_for(locked, "acme", role)).get("/metrics"), 403, "FORBIDDEN")
    text = metrics(locked.client(headers=key_for(locked, "*", "viewer")))
    assert "pawl_commit_seconds" in text


def test_the_address_for_metrics_serves_them_without_a_key_and_nothing_else(locked, aside):
    assert "pawl_commit_seconds" in metrics(aside)
    assert aside.get("/healthz").status == aside.get("/readyz").status == 200
    for path in ("/", "/openapi.json", "/api/v1/runs", "/api/v1/backup"):
        assert_problem(aside.get(path, headers={"X-API-Key": ROOT}), 404, "NOT_FOUND")
    assert_problem(aside.post("/metrics"), 405, "METHOD_NOT_ALLOWED")


def test_scrapers_at_once_all_get_what_has_happened_before(api, tenant):
    api.workflow(tenant)
    assert api.start(tenant).status == 200
    for text in harness.together(8, lambda _: metrics(api)):
        assert gauge(text, "pawl_slots_held")[tenant] == 1


@pytest.mark.one_node("every process bounds the labels of its own metrics")
def test_gauges_show_the_tenants_with_the_most_runs_and_the_sum_of_the_rest():
    with harness.server() as s:
        def settle(part):
            client = s.client()
            for i in range(part, 1100, 4):
                assert client.put(f"/api/v1/tenants/t-{i}", {"max_concurrent_runs": 7}, tenant="t-0").status == 200

        harness.together(4, settle)
        api = s.client()
        for name, runs in (("z-last", 3), ("other", 2)):  # made behind all of them
            api.put(f"/api/v1/tenants/{name}", {"max_concurrent_runs": 9}, tenant=name)
            api.workflow(name)
            for _ in range(runs):
                assert api.start(name).status == 200
        text = metrics(api)
        held, limits = gauge(text, "pawl_slots_held"), gauge(text, "pawl_slots_limit")
        assert len(held) == len(limits) == 1001 and set(held) == set(limits)
        assert (held["z-last"], held["(other)"], held["other"]) == (3, 2, 0)
        assert limits["z-last"] == 9 and limits["other"] == 7 * 102 and sum(limits.values()) == 7 * 1100 + 18


def test_queue_labels_are_bounded():
    with harness.server() as s:
        api, tenant = s.client(), "t"
        for part in range(3):
            steps = [task(f"s{i}", queue=f"q-{part}-{i}", needs=[]) for i in range(400)]
            api.workflow(tenant, f"w{part}", steps)
            assert api.start(tenant, f"w{part}").status == 200
        api.workflow(tenant, "busy", [task("a", queue="z-busy")])
        for _ in range(3):
            assert api.start(tenant, "busy").status == 200

        def shown():
            jobs = gauge(metrics(api), "pawl_jobs")
            return jobs if sum(jobs.values()) == 1203 else None
        jobs = harness.wait_until(shown, "every step has its job")
        assert len(jobs) == 1001 and jobs["z-busy"] == 3 and jobs["other"] == 1203 - 3 - 999
