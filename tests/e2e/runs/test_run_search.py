"""Finding runs: GET /api/v1/runs?q=, several statuses, children and reruns; and where a run comes from."""
import harness
from checks import assert_problem
from limit_scenarios import cancel, started


def found(api, tenant, query):
    """The ids, page by page."""
    ids, cursor = [], ""
    while True:
        r = api.get(f"/api/v1/runs?{query}{cursor}", tenant=tenant)
        assert r.status == 200, r
        ids += [run["id"] for run in r.json["items"]]
        if r.json["next_cursor"] is None:
            assert r.json["stopped_early"] is False
            return ids
        cursor = f"&cursor={r.json['next_cursor']}"


def failed(api, tenant, message, **body):
    """A run whose only step fails with this message."""
    run = started(api, tenant, **body)
    job = api.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["default"]}, tenant=tenant).json["jobs"][0]
    r = api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "BROKEN", "message": message, "retryable": False}}, tenant=tenant)
    assert r.status == 200 and job["run_id"] == run, r
    return run


def test_a_key_an_id_a_label_and_an_error_are_found(api, tenant):
    api.workflow(tenant)
    broken = failed(api, tenant, 'The card of "Ann" was Declined', labels={"customer": "ann"})
    other = failed(api, tenant, "timeout")
    keyed = started(api, tenant, key="order-17/x", labels={"customer": "bob"})
    assert found(api, tenant, "q=order-17/x") == [keyed]
    assert found(api, tenant, "q=order-17") == []  # a key is found whole
    assert found(api, tenant, f"q={keyed}") == found(api, tenant, f"q={keyed[:34].upper()}") == [keyed]
    assert found(api, tenant, "q=customer=ann") == [broken] and found(api, tenant, "q=customer=bob") == [keyed]
    assert found(api, tenant, "q=customer=an") == [] and found(api, tenant, "q=customer") == []
    assert found(api, tenant, "q=declined") == found(api, tenant, "q=of%20%22ANN%22") == [broken]
    assert found(api, tenant, "q=broken") == [other, broken] and found(api, tenant, "q=broken&limit=1") == [other, broken]
    assert found(api, tenant, "q=broken&status=cancelled") == [] == found(api, tenant, "q=broken&workflow_id=x")
    assert found(api, tenant, "q=customer=bob&status=running") == [keyed] and found(api, tenant, "q=order-17/x&status=failed") == []
    assert found(api, api.tenant(), "q=broken") == []


def test_what_fits_in_two_ways_is_shown_once_and_first(api, tenant):
    api.workflow(tenant)
    named = failed(api, tenant, "an error", key="k")
    twice = failed(api, tenant, f"after k and {named}", key=named, labels={"k": "v"})
    assert found(api, tenant, f"q={named}") == [twice, named]  # its key, the id, then errors
    for limit in (1, 2, 50):
        assert found(api, tenant, f"q={named}&limit={limit}") == [twice, named]
    assert found(api, tenant, "q=k") == [named, twice] and found(api, tenant, "q=k&limit=1") == [named, twice]


def test_several_statuses_are_listed_together(api, tenant):
    api.workflow(tenant)
    broken, gone, open_ = failed(api, tenant, "x"), started(api, tenant), started(api, tenant)
    cancel(api, tenant, gone)
    assert found(api, tenant, "status=failed,cancelled") == [gone, broken] == found(api, tenant, "status=cancelled,failed,denied&limit=1")
    assert found(api, tenant, "status=running,failed") == [open_, broken] and found(api, tenant, "status=failed,failed") == [broken]
    r = api.post("/api/v1/runs:bulk", {"action": "cancel", "filter": {"status": "running,pending"}}, tenant=tenant)
    assert (r.json["matched"], r.json["changed"]) == (1, 1)
    for bad in ("failed,", ",failed", "failed,runing", ""):
        assert_problem(api.get(f"/api/v1/runs?status={bad}", tenant=tenant), 400, "BAD_REQUEST")
    assert "running" in api.get("/api/v1/runs?status=failed,runing", tenant=tenant).json["detail"]


def test_children_and_reruns_are_listed_and_say_where_they_come_from(api, tenant):
    api.workflow(tenant, "child", [{"name": "a", "type": "transform", "output": 1}])
    api.workflow(tenant, "parent", [{"name": "both", "type": "workflow", "workflow_id": "child", "for_each": "input.list"}])
    parent = api.start(tenant, "parent", {"input": {"list": [1, 2]}}, key="p").json["run_id"]
    harness.wait_until(lambda: api.get(f"/api/v1/runs/{parent}", tenant=tenant).json["status"] == "succeeded", "all have ended")
    children = found(api, tenant, f"parent={parent}")
    assert len(children) == 2 and found(api, tenant, f"parent={parent}&limit=1") == children and found(api, tenant, f"parent={children[0]}") == []
    for child in children:
        shown = api.get(f"/api/v1/runs/{child}", tenant=tenant).json
        assert shown["parent"] == {"run_id": parent, "step": "both"} and "started_by_key" not in shown
    assert "parent" not in api.get(f"/api/v1/runs/{parent}", tenant=tenant).json
    again = [api.post(f"/api/v1/runs/{children[0]}/rerun", {}, tenant=tenant).json["run_id"] for _ in range(2)]
    assert found(api, tenant, f"rerun_of={children[0]}") == again[::-1] and found(api, tenant, f"rerun_of={parent}") == []
    assert api.get(f"/api/v1/runs/{again[0]}", tenant=tenant).json["rerun_of"] == children[0]
    assert found(api, api.tenant(), f"parent={parent}") == []


def test_a_run_shows_its_key_with_replays_and_mismatches(api, tenant):
    api.workflow(tenant)
    run = started(api, tenant, key="k")
    key = api.get(f"/api/v1/runs/{run}", tenant=tenant).json["started_by_key"]
    assert (key["key"], key["replays"], key["mismatches"], key["last_replayed_at"]) == ("k", 0, 0, None)
    for body in ({}, {}, {"input": 1}):
        api.start(tenant, body=body, key="k")

    def counts():
        shown = api.get(f"/api/v1/runs/{run}", tenant=tenant).json["started_by_key"]
        return shown["replays"], shown["mismatches"]
    harness.wait_until(lambda: counts() == (2, 1), "the counts are stored")
    assert "started_by_key" not in api.get(f"/api/v1/runs/{started(api, tenant)}", tenant=tenant).json


def test_a_search_for_nothing_or_with_a_strange_cursor_is_refused(api, tenant):
    api.workflow(tenant)
    for query in ("q=", f"q={'x' * 201}", "parent=1", "rerun_of=x"):
        assert_problem(api.get(f"/api/v1/runs?{query}", tenant=tenant), 400, "BAD_REQUEST")
    for cursor in ("1", "2.1.0", "0.-1.0", "0.1", "a.b.c"):
        assert_problem(api.get(f"/api/v1/runs?q=x&cursor={cursor}", tenant=tenant), 400, "CURSOR_INVALID")


def test_keys_are_found_after_a_restart():
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        run = started(api, "t", key="from-before")
        s.stop()
        s.start()
        assert found(s.client(), "t", "q=from-before") == [run]
