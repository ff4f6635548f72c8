"""How fast a tenant may start runs: a burst, then one per token, and a start that is no new run costs none.

A token may come back while a test runs, so no test says that a certain request is refused: it says how many can get through at once
(a burst that is far larger than what comes back meanwhile), or asks until one is refused."""
import itertools
import time

import pytest

import harness
from harness import together, wait_until
from inspect_store import all_runs, assert_healthy, record, rows

BURST = 200
NUMBERS = itertools.count()


def limited_tenant(api, per_second=1, burst=BURST, **settings):
    tenant = api.tenant(rate_limit={"per_second": per_second, "burst": burst}, **settings)
    api.workflow(tenant)
    return tenant


def assert_rate_limited(r, per_second, burst):
    """A refusal that differs from all others, and says when to come back."""
    assert r.status == 429 and r.code == "RATE_LIMITED" and r.json["retryable"] is True, r
    assert (r.json["limited_by"], r.json["per_second"], r.json["limit"]) == ("rate", per_second, burst), r
    assert int(r.header("Retry-After")) >= 1
    assert r.header("RateLimit-Policy") == f'"starts";q={per_second};w=1' and r.header("RateLimit").startswith('"starts";r=0;t=')


def use_up(api, tenant, **body):
    """Starts runs until one is refused: ({key: run}, the key that was refused, the refusal)."""
    runs = {}
    while len(runs) < 10 * BURST:
        key = f"k-{next(NUMBERS)}"
        r = api.start(tenant, body=body, key=key)
        if r.status != 200:
            return runs, key, r
        runs[key] = r.json["run_id"]
    raise AssertionError("nothing is ever refused")


def tokens_since(begin, per_second=1):
    """At most so many can have come back since."""
    return int((time.monotonic() - begin) * per_second) + 1


def test_a_burst_gets_through_and_the_next_start_is_refused(api):
    tenant = limited_tenant(api)
    begin = time.monotonic()
    runs, key, refused = use_up(api, tenant)
    assert BURST <= len(runs) <= BURST + tokens_since(begin)
    assert_rate_limited(refused, 1, BURST)
    assert record(api, tenant, key) is None and len(all_runs(api, tenant)) == len(runs)


def test_starts_that_race_for_tokens_get_no_more_than_there_are(api):
    tenant = limited_tenant(api, burst=20)
    begin = time.monotonic()
    replies = together(8, lambda i: [api.start(tenant, key=f"k-{i}-{n}") for n in range(10)])
    admitted = [r for mine in replies for r in mine if r.status == 200]
    refused = [r for mine in replies for r in mine if r.status != 200]
    assert 20 <= len(admitted) <= 20 + tokens_since(begin)
    for r in refused:
        assert_rate_limited(r, 1, 20)
    assert len(all_runs(api, tenant)) == len(admitted)


def test_whoever_comes_back_when_told_to_gets_through(api):
    tenant = limited_tenant(api, burst=1)
    _, key, refused = use_up(api, tenant)

    def come_back():
        r = api.start(tenant, key=key)
        if r.status == 429:
            assert_rate_limited(r, 1, 1)
            time.sleep(int(r.header("Retry-After")))  # as the answer says
        return r.status == 200 and r

    assert 1 <= int(refused.header("Retry-After")) <= 2
    r = wait_until(come_back, "a retry gets through")
    assert r.json["created"] is True


def test_a_replay_is_never_refused_and_costs_nothing(api):
    tenant = limited_tenant(api, burst=3)
    first = api.start(tenant, key="first")
    use_up(api, tenant)
    for _ in range(50):
        again = api.start(tenant, key="first")
        assert again.status == 200 and again.json["run_id"] == first.json["run_id"] and again.json["created"] is False, again
        other = api.start(tenant, key="first", body={"input": "other"})
        assert other.status == 422 and other.code == "IDEMPOTENCY_KEY_REUSED", other


def test_replays_and_refusals_take_no_tokens(api):
    """Of a burst of 200, 200 runs start, however many replays, coalesced starts, refusals and mistakes come between."""
    tenant = limited_tenant(api, max_concurrent_runs=BURST + 100)
    api.workflow(tenant, "single", concurrency={"limit": 1})
    begin = time.monotonic()
    first = api.start(tenant, "single", key="first").json["run_id"]
    for n in range(BURST):
        assert api.start(tenant, "single", key="first").json["run_id"] == first
        assert api.start(tenant, "single", {"at_limit": "reject"}).code == "MAX_CONCURRENT_RUNS"
        assert api.start(tenant, "single", {"at_limit": "coalesce"}, key=f"c-{n}").json["coalesced"] is True
        assert api.start(tenant, "none").status == 404 and api.start(tenant, "single", {"colour": 1}).status == 400
    runs, _, refused = use_up(api, tenant)
    assert_rate_limited(refused, 1, BURST)
    assert BURST - 1 <= len(runs) <= BURST - 1 + tokens_since(begin)


@pytest.mark.parametrize("at_limit", ["queue", "cancel_oldest"])
def test_every_start_that_makes_a_run_costs_a_token(api, at_limit):
    """Also one that is queued, or takes the place of another."""
    tenant = limited_tenant(api, burst=10, max_concurrent_runs=1)
    begin = time.monotonic()
    held = api.start(tenant)
    made, _, refused = use_up(api, tenant, at_limit=at_limit)
    assert_rate_limited(refused, 1, 10)
    assert 9 <= len(made) <= 9 + tokens_since(begin)
    # A start that is refused for its rate has cancelled nothing.
    active = list(made.values())[-1] if at_limit == "cancel_oldest" else held.json["run_id"]
    assert [run["id"] for run in api.get("/api/v1/runs?status=running", tenant=tenant).json["items"]] == [active]


def test_the_concurrency_limit_is_told_before_the_rate(api):
    """A client that waits for a token would still have no slot."""
    tenant = limited_tenant(api, burst=2, max_concurrent_runs=2)
    for _ in range(2):
        assert api.start(tenant).status == 200
    for _ in range(3):
        assert api.start(tenant).code == "MAX_CONCURRENT_RUNS"


def test_tenants_do_not_take_each_others_tokens(api):
    one, other = limited_tenant(api, burst=5), limited_tenant(api, burst=5)
    use_up(api, one)
    for _ in range(5):
        assert api.start(other).status == 200


def test_a_limit_is_changed_and_taken_away_at_once(api):
    tenant = limited_tenant(api, burst=1)
    use_up(api, tenant)
    assert api.put(f"/api/v1/tenants/{tenant}", {"rate_limit": None}, tenant=tenant).json["rate_limit"] is None
    assert {api.start(tenant).status for _ in range(50)} == {200}
    r = api.put(f"/api/v1/tenants/{tenant}", {"rate_limit": {"per_second": 1, "burst": 3}}, tenant=tenant)
    assert r.json["rate_limit"] == {"per_second": 1, "burst": 3}
    begin = time.monotonic()
    runs, _, refused = use_up(api, tenant)
    assert len(runs) <= 3 + tokens_since(begin)
    assert_rate_limited(refused, 1, 3)


@pytest.mark.parametrize("bad,field", [
    (5, "rate_limit"), ({}, "per_second"), ({"per_second": 0, "burst": 1}, "per_second"), ({"per_second": -1, "burst": 1}, "per_second"),
    ({"per_second": 1.5, "burst": 1}, "per_second"), ({"per_second": 1000001, "burst": 1}, "per_second"), ({"per_second": 1}, "burst"),
    ({"per_second": 1, "burst": 0}, "burst"), ({"per_second": 1, "burst": 1000001}, "burst"), ({"per_second": 1, "burst": 1, "colour": 1}, "colour"),
])
def test_a_rate_that_is_none_is_400(api, tenant, bad, field):
    r = api.put(f"/api/v1/tenants/{tenant}", {"rate_limit": bad}, tenant=tenant)
    assert r.status == 400 and r.code == "FIELD_INVALID" and field in r.json["detail"], r
    assert api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json["rate_limit"] is None


def test_tokens_that_are_gone_stay_gone_after_a_kill():
    """A restart is no way around the limit: of a burst of 200 that was used up, hardly anything is there again."""
    with harness.server() as s:
        api = s.client()
        tenant = limited_tenant(api)
        begin = time.monotonic()
        runs = use_up(api, tenant)[0]
        s.kill()
        s.start()
        api = s.client()
        again, _, refused = use_up(api, tenant)
        assert_rate_limited(refused, 1, BURST)
        assert len(runs) + len(again) <= BURST + tokens_since(begin)
        assert len(again) < BURST // 2
        for key, run in runs.items():
            assert api.start(tenant, key=key, body={}).json["run_id"] == run
        assert rows(s.db, "SELECT count(*) FROM runs") == [(len(runs) + len(again),)]
        assert_healthy(api)
