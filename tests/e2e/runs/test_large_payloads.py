"""Inputs near the size limit: lists and claims hand them out in portions that fit into an answer."""
from inspect_store import all_runs, rows

LARGE = {"input": "x" * 1000000}


def test_a_list_of_large_runs_has_shorter_pages(api, tenant):
    api.workflow(tenant)
    ids = [api.start(tenant, body=LARGE).json["run_id"] for _ in range(12)]
    page = api.get("/api/v1/runs", tenant=tenant)
    assert page.status == 200 and 0 < len(page.json["items"]) < 12 and page.json["next_cursor"]
    assert [r["id"] for r in all_runs(api, tenant)] == ids[::-1]


def test_a_claim_of_large_jobs_hands_out_fewer_and_loses_none(api, tenant):
    api.workflow(tenant)
    ids = [api.start(tenant, body=LARGE).json["run_id"] for _ in range(12)]
    claimed = []
    while True:
        r = api.post("/api/v1/jobs/claim", {"worker_id": "w", "max": 100}, tenant=tenant)
        assert r.status == 200, r
        if not r.json["jobs"]:
            break
        assert all(len(job["input"]) == 1000000 for job in r.json["jobs"])
        claimed += [job["run_id"] for job in r.json["jobs"]]
    assert claimed == ids


def test_a_large_start_replays_whole(dev_server, api, tenant):
    api.workflow(tenant)
    first = api.start(tenant, body=LARGE, key="k")
    again = api.start(tenant, body=LARGE, key="k")
    assert again.json == {**first.json, "created": False}
    assert rows(dev_server.db, "SELECT count(*) FROM idempotency i JOIN tenants t ON t.num = i.tenant WHERE t.id = ?", tenant) == [(1,)]


def test_a_run_whose_outputs_do_not_fit_one_answer_is_shown_without_some(api, tenant):
    names = [f"s{i}" for i in range(12)]
    api.workflow(tenant, "wide", [{"name": n, "type": "task", "handler": "h"} for n in names])
    run = api.start(tenant, "wide").json["run_id"]
    for _ in names:
        api.work(tenant, output={"x": "y" * 500000})
    r = api.get(f"/api/v1/runs/{run}", tenant=tenant)
    assert r.status == 200 and r.json["status"] == "succeeded"
    shown = [s for s in r.json["steps"] if "left_out" not in s]
    hidden = [s for s in r.json["steps"] if "left_out" in s]
    assert shown and hidden and all(s["output"] is None for s in hidden) and all(s["output"] for s in shown)
    job = api.get(f"/api/v1/jobs/{hidden[0]['job_id']}", tenant=tenant)
    assert len(job.json["output"]["x"]) == 500000


def test_numbers_that_grow_when_written_out_are_refused_for_good_or_kept(api, tenant):
    """`1e20` takes 4 bytes as sent and 23 as kept."""
    api.workflow(tenant)
    r = api.start(tenant, body='{"input":[' + ",".join(["1e20"] * 80000) + "]}", key="fits")
    assert r.status == 200 and len(r.json["run"]["input"]) == 80000, r
    r = api.start(tenant, body='{"input":[' + ",".join(["1e20"] * 200000) + "]}", key="too-large")
    assert (r.status, r.code, r.json["retryable"]) == (413, "BODY_TOO_LARGE", False)
    assert api.get("/api/v1/idempotency-keys/too-large", tenant=tenant).status == 404


# --- answers that are larger than what a request may take ---

ECHOES = [{"name": f"e{i}", "type": "transform", "output": "${input}"} for i in range(3)]
ECHOED = {"input": "x" * 900000}


def test_an_answer_that_repeats_a_large_input_four_times_is_given_and_replayed(api, tenant):
    api.workflow(tenant, "echo", ECHOES)
    first = api.start(tenant, "echo", body=ECHOED, key="k")
    assert first.status == 200 and first.json["created"] is True, first
    run = first.json["run"]
    assert run["status"] == "succeeded" and len(first.raw) > 3600000
    assert all(s["output"] == ECHOED["input"] or s["left_out"] for s in run["steps"])
    again = api.start(tenant, "echo", body=ECHOED, key="k")
    assert again.status == 200 and again.header("Idempotent-Replayed") == "true", again
    assert again.json == {**first.json, "created": False}


def test_large_answers_of_the_other_ways_to_start_are_given_and_replayed(api, tenant):
    api.workflow(tenant, "echo", ECHOES)
    body = {"definitionId": "echo", **ECHOED}
    flat = [api.post("/api/v1/workflow-runs", body, key="flat", tenant=tenant) for _ in range(2)]
    waited = [api.post("/api/v1/workflows/echo/runs?wait_ms=20000", ECHOED, key="waited", tenant=tenant) for _ in range(2)]
    run = flat[0].json["run"]["id"]
    rerun = [api.post(f"/api/v1/runs/{run}/rerun", {}, key="rerun", tenant=tenant) for _ in range(2)]
    for first, again in (flat, waited, rerun):
        assert (first.status, again.status) == (200, 200), (first, again)
        assert (first.json["created"], again.json["created"]) == (True, False)
        assert first.json["run"]["id"] == again.json["run"]["id"]
        assert min(len(first.raw), len(again.raw)) > 3600000
