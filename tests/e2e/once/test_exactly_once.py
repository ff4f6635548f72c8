"""One key, one run: however many ask, in whatever order, in whatever spelling."""
import itertools
import json
import threading

import pytest

from harness import together
from inspect_store import active_runs, all_runs, record


def assert_one_run(replies):
    """All callers of one key hear of the same run, and exactly one of them that it is new."""
    assert [r.status for r in replies] == [200] * len(replies), replies
    assert len({r.json["run_id"] for r in replies}) == 1
    first = [r for r in replies if r.json["created"] is True]
    assert len(first) == 1 and first[0].header("Idempotent-Replayed") is None
    for r in replies:
        if r is not first[0]:
            assert r.json["created"] is False and r.header("Idempotent-Replayed") == "true"
            assert r.json["run"]["id"] == r.json["run_id"]


def pooled(workers, tasks, fn):
    """fn(task) for all tasks, taken in order by that many threads; each has a connection of its own."""
    source, lock, out = iter(tasks), threading.Lock(), []

    def work(_):
        while True:
            with lock:
                task = next(source, None)
            if task is None:
                return
            result = fn(task)
            with lock:
                out.append((task, result))

    together(workers, work)
    return out


def by_key(results):
    groups = {}
    for key, reply in results:
        groups.setdefault(key, []).append(reply)
    return groups


# --- many callers at once ---


def test_64_callers_of_one_new_key_make_one_run(api, tenant):
    api.workflow(tenant)
    assert_one_run(together(64, lambda i: api.start(tenant, key="one")))
    assert len(all_runs(api, tenant)) == 1 and active_runs(api, tenant) == 1


def test_64_callers_with_the_key_in_the_body_make_one_run(api, tenant):
    api.workflow(tenant)
    body = {"definitionId": "hold", "input": {"n": 1}, "idempotencyKey": "one"}
    assert_one_run(together(64, lambda i: api.post("/api/v1/workflow-runs", body, tenant=tenant)))
    assert len(all_runs(api, tenant)) == 1 and active_runs(api, tenant) == 1


def test_64_first_callers_of_a_new_tenant_make_one_tenant(api):
    tenant = api.tenant() + "-new"
    body = {"steps": [{"name": "work", "type": "task", "handler": "noop"}]}
    replies = together(64, lambda i: api.put("/api/v1/workflows/hold", body, tenant=tenant, key="first"))
    assert {r.status for r in replies} == {200} and len({r.raw for r in replies}) == 1
    assert sum(r.header("Idempotent-Replayed") is None for r in replies) == 1


@pytest.mark.slow
def test_1000_keys_with_8_callers_each_make_1000_runs(api, tenant):
    api.workflow(tenant)
    tasks = [f"k-{n}" for n in range(1000) for _ in range(8)]
    groups = by_key(pooled(64, tasks, lambda key: api.start(tenant, key=key)))
    assert len(groups) == 1000
    for replies in groups.values():
        assert_one_run(replies)
    runs = all_runs(api, tenant)
    assert {r["id"] for r in runs} == {g[0].json["run_id"] for g in groups.values()}
    assert len(runs) == 1000 and active_runs(api, tenant) == 1000


@pytest.mark.slow
def test_1000_body_keys_with_8_callers_each_make_1000_runs(api, tenant):
    api.workflow(tenant)

    def start(key):
        return api.post("/api/v1/workflow-runs", {"definitionId": "hold", "idempotencyKey": key}, tenant=tenant)

    groups = by_key(pooled(64, [f"k-{n}" for n in range(1000) for _ in range(8)], start))
    for replies in groups.values():
        assert_one_run(replies)
    assert len(groups) == 1000 and len(all_runs(api, tenant)) == 1000


def test_different_requests_racing_for_one_key_leave_one_winner(api, tenant):
    api.workflow(tenant)
    replies = together(32, lambda i: api.start(tenant, body={"input": {"n": i % 4}}, key="contested"))
    won = [r for r in replies if r.status == 200]
    assert len({r.json["run_id"] for r in won}) == 1 and sum(r.json["created"] for r in won) == 1
    assert len({json.dumps(r.json["run"]["input"]) for r in won}) == 1
    assert {r.code for r in replies if r.status != 200} == {"IDEMPOTENCY_KEY_REUSED"}
    assert len(all_runs(api, tenant)) == 1


def test_one_key_in_two_tenants_is_two_keys(api):
    one, two = api.tenant(), api.tenant()
    for t in (one, two):
        api.workflow(t)
    a, b = api.start(one, key="shared"), api.start(two, key="shared")
    assert a.json["created"] and b.json["created"] and a.json["run_id"] != b.json["run_id"]
    assert api.get(f"/api/v1/runs/{a.json['run_id']}", tenant=two).status == 404


# --- what the same request is ---


def test_header_and_body_name_the_same_key(api, tenant):
    api.workflow(tenant)
    first = api.start(tenant, body={"input": {"a": 1}}, key="both")
    in_body = api.start(tenant, body={"input": {"a": 1}, "idempotency_key": "both"})
    in_both = api.start(tenant, body={"idempotency_key": "both", "input": {"a": 1}}, key='"both"')
    assert_one_run([first, in_body, in_both])
    flat = {"definitionId": "hold", "input": {"a": 1}}
    assert_one_run([
        api.post("/api/v1/workflow-runs", {**flat, "idempotencyKey": "flat"}, tenant=tenant),
        api.post("/api/v1/workflow-runs", flat, key="flat", tenant=tenant),
    ])


SAME = ['{"input":{"a":1,"b":[10,"é/\\n",true,null],"c":{"x":0.5,"y":2}}}']
SAME += [
    '{"input":{"c":{"y":2,"x":0.5},"b":[10,"é/\\n",true,null],"a":1}}',
    ' {\n\t"input" : { "a" : 1 , "b" : [ 10 , "é/\\n" , true , null ] , "c" : { "x" : 0.5 , "y" : 2 } } }\r\n',
    '{"input":{"a":1.0,"b":[1e1,"é/\\n",true,null],"c":{"x":5e-1,"y":2.0}}}',
    '{"input":{"a":1,"b":[10.000,"\\u00e9\\/\\u000a",true,null],"c":{"x":0.50,"y":200E-2}}}',
    '{"\\u0069nput":{"a":1,"b":[10,"\\u00E9/\\n",true,null],"c":{"x":0.5,"y":2}}}',
]


@pytest.mark.parametrize("spelling", SAME[1:], ids=["order", "space", "numbers", "escapes", "escaped name"])
def test_another_spelling_of_the_same_body_replays(api, tenant, spelling):
    api.workflow(tenant)
    assert_one_run([api.start(tenant, body=SAME[0], key="k"), api.start(tenant, body=spelling, key="k")])
    # And the other way round: the first request is the unusual one.
    assert_one_run([api.start(tenant, body=spelling, key="k2"), api.start(tenant, body=SAME[0], key="k2")])


def test_no_body_and_an_empty_object_are_the_same(api, tenant):
    api.workflow(tenant)
    bare = api.call("POST", "/api/v1/workflows/hold/runs", key="k", tenant=tenant)
    assert_one_run([bare, api.start(tenant, body="{ }", key="k")])


OTHER = [
    ('{"input":1}', '{"input":2}'),
    ('{"input":1}', '{"input":"1"}'),
    ('{"input":{"a":1}}', '{"input":{"a":1,"b":null}}'),
    ('{"input":[1,2]}', '{"input":[2,1]}'),
    ('{"input":9007199254740992}', '{"input":9007199254740993}'),
    ('{"input":"é"}', '{"input":"e\\u0301"}'),
    ('{"input":1}', '{"input":1,"labels":{"a":"b"}}'),
    ('{"input":1}', '{"input":1,"priority":1}'),
]


@pytest.mark.parametrize("one,two", OTHER, ids=[f"{a[9:-1]}|{b[9:-1]}" for a, b in OTHER])
def test_another_body_is_refused_and_the_first_unharmed(api, tenant, one, two):
    api.workflow(tenant)
    first = api.start(tenant, body=one, key="k")
    other = api.start(tenant, body=two, key="k")
    assert other.status == 422 and other.code == "IDEMPOTENCY_KEY_REUSED" and other.json["retryable"] is False
    assert other.header("Idempotent-Replayed") is None
    assert_one_run([first, api.start(tenant, body=one, key="k")])
    assert len(all_runs(api, tenant)) == 1


def test_another_route_or_method_is_refused_and_the_first_unharmed(api, tenant):
    api.workflow(tenant)
    api.workflow(tenant, wid="other")
    first = api.start(tenant, body={}, key="k")
    others = [
        api.start(tenant, wid="other", body={}, key="k"),
        api.post("/api/v1/workflow-runs", {"definitionId": "hold"}, key="k", tenant=tenant),
        api.put("/api/v1/workflows/hold", {"steps": [{"name": "x", "type": "task", "handler": "h"}]}, key="k", tenant=tenant),
        api.delete("/api/v1/workflows/hold", key="k", tenant=tenant),
        api.post(f"/api/v1/runs/{first.json['run_id']}/cancel", {}, key="k", tenant=tenant),
    ]
    assert [(r.status, r.code) for r in others] == [(422, "IDEMPOTENCY_KEY_REUSED")] * len(others)
    assert_one_run([first, api.start(tenant, body={}, key="k")])
    assert api.get("/api/v1/workflows/hold", tenant=tenant).json["version"] == 1
    assert api.get(f"/api/v1/runs/{first.json['run_id']}", tenant=tenant).json["status"] != "cancelled"
    assert len(all_runs(api, tenant)) == 1


def test_a_percent_encoded_path_is_the_same_route(api, tenant):
    api.workflow(tenant, wid="a-b")
    assert_one_run([api.start(tenant, wid="a-b", key="k"), api.start(tenant, wid="a%2Db", key="k")])


# --- what a replay says ---


def test_a_replay_is_the_first_answer_except_created(api, tenant):
    api.workflow(tenant)
    body = {"input": {"a": [1, 2.5, "é"]}, "labels": {"x": "y"}, "priority": 3}
    first = api.start(tenant, body=body, key="k")
    again = api.start(tenant, body=body, key="k")
    assert {**first.json, "created": False} == again.json
    flat_body = {"definitionId": "hold", **body, "idempotencyKey": "f"}
    flat = api.post("/api/v1/workflow-runs", flat_body, tenant=tenant)
    assert {**flat.json, "created": False} == api.post("/api/v1/workflow-runs", flat_body, tenant=tenant).json


@pytest.mark.parametrize("end", ["succeeded", "cancelled"])
def test_a_replay_is_the_first_answer_also_after_the_run_has_moved_on(api, tenant, end):
    api.workflow(tenant)
    first = api.start(tenant, key="k")
    if end == "succeeded":
        assert api.work(tenant)["run_id"] == first.json["run_id"]
    else:
        assert api.post(f"/api/v1/runs/{first.json['run_id']}/cancel", {}, tenant=tenant).status == 200
    assert api.get(f"/api/v1/runs/{first.json['run_id']}", tenant=tenant).json["status"] == end
    again = api.start(tenant, key="k")
    assert again.header("Idempotent-Replayed") == "true" and again.json == {**first.json, "created": False}
    assert len(all_runs(api, tenant)) == 1


def test_a_replay_survives_a_new_version_and_the_archiving_of_the_workflow(api, tenant):
    api.workflow(tenant)
    first = api.start(tenant, key="k")
    api.workflow(tenant, steps=[{"name": "x", "type": "task", "handler": "other"}])
    assert_one_run([first, api.start(tenant, key="k")])
    assert api.delete("/api/v1/workflows/hold", tenant=tenant).status == 200
    assert_one_run([first, api.start(tenant, key="k")])


def test_a_replay_is_given_at_the_limit_too(api):
    tenant = api.tenant(max_concurrent_runs=1)
    api.workflow(tenant)
    first = api.start(tenant, key="k")
    assert api.start(tenant, key="other").status == 429
    assert_one_run([first, api.start(tenant, key="k")])


# --- waiting for the end ---


def test_wait_ms_answers_with_the_end_of_the_run(api, tenant):
    api.workflow(tenant)

    def one(i):
        if i == 0:
            return api.start(tenant, body={"input": 1}, key="k")
        return api.call("POST", "/api/v1/workflows/hold/runs?wait_ms=60000", {"input": 1}, key="k2", tenant=tenant)

    workers = itertools.count()
    waiting = threading.Thread(target=lambda: [api.work(tenant, wait_ms=30000, output={"n": next(workers)}) for _ in range(2)])
    waiting.start()
    plain, waited = together(2, one)
    waiting.join()
    assert plain.json["run"]["status"] != "succeeded"
    assert waited.json["created"] is True and waited.json["run"]["status"] == "succeeded"
    assert waited.json["run"]["steps"][0]["status"] == "succeeded" and waited.json["run"]["finished_at"]


def test_a_retry_waits_again_and_waiting_longer_is_no_other_request(api, tenant):
    api.workflow(tenant)
    path = "/api/v1/workflows/hold/runs"
    first = api.start(tenant, key="k")
    short = api.post(path + "?wait_ms=1", {"input": {}}, key="k", tenant=tenant)
    assert_one_run([first, short])
    assert short.json["run"]["status"] == "running"

    def one(i):
        if i == 0:
            return api.work(tenant)
        return api.post(f"{path}?wait_ms={50000 + i}", {"input": {}}, key="k", tenant=tenant)

    _, *waited = together(5, one)
    for r in waited:
        assert r.json["run_id"] == first.json["run_id"] and r.json["created"] is False
        assert r.header("Idempotent-Replayed") == "true" and r.json["run"]["status"] == "succeeded"
    late = api.post(path + "?wait_ms=60000", {"input": {}}, key="k", tenant=tenant)
    assert late.json["run"]["status"] == "succeeded" and late.header("Idempotent-Replayed") == "true"
    assert record(api, tenant, "k")["mismatches"] == 0


def test_waiting_callers_of_one_new_key_share_one_run(api, tenant):
    api.workflow(tenant, steps=[{"name": "nap", "type": "sleep", "duration_ms": 200}])
    path = "/api/v1/workflows/hold/runs?wait_ms=60000"
    replies = together(16, lambda i: api.post(path, {}, key="k", tenant=tenant))
    assert_one_run(replies)
    assert {r.json["run"]["status"] for r in replies} == {"succeeded"}


def shown_now(api, tenant, run_id):
    """The run as the answer of a start shows it: without where it comes from."""
    run = api.get(f"/api/v1/runs/{run_id}", tenant=tenant).json
    assert run.pop("started_by_key")["key"]
    return run


def test_a_replay_on_the_flat_route_shows_the_run_as_it_is_now(api, tenant):
    api.workflow(tenant)
    body = {"definitionId": "hold", "idempotencyKey": "k"}
    first = api.post("/api/v1/workflow-runs", body, tenant=tenant)
    nested = api.start(tenant, key="n")
    for run in (first, nested):
        assert api.post(f"/api/v1/runs/{run.json['run_id']}/cancel", tenant=tenant).status == 200
    again = api.post("/api/v1/workflow-runs", body, tenant=tenant)
    assert again.status == 200 and again.header("Idempotent-Replayed") == "true" and again.json["created"] is False
    assert again.json["run_id"] == first.json["run_id"] and again.json["run"] == shown_now(api, tenant, first.json["run_id"])
    assert again.json["run"]["status"] == "cancelled"
    assert api.start(tenant, key="n").json == {**nested.json, "created": False}, "the other route replays its first answer"


def test_a_replay_on_the_flat_route_of_a_run_that_is_not_over_answers_at_once(api, tenant):
    api.workflow(tenant)
    body = {"definitionId": "hold"}
    first = api.post("/api/v1/workflow-runs", body, key="k", tenant=tenant)
    claimed = api.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": ["default"]}, tenant=tenant)
    assert len(claimed.json["jobs"]) == 1
    again = api.post("/api/v1/workflow-runs", body, key="k", tenant=tenant)
    assert again.json["created"] is False and again.json["run"] == shown_now(api, tenant, first.json["run_id"])
