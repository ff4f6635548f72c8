"""What makes two requests the same, which keys may name them, and what a whole number is."""
import json
import urllib.parse

import pytest

from inspect_store import key_path

TASK = {"steps": [{"name": "work", "type": "task", "handler": "h"}]}
RUNS = "/api/v1/workflows/w/runs"


def replayed(r):
    assert r.status == 200, r
    return r.header("Idempotent-Replayed") == "true"


SAME = [
    (RUNS, {"input": {"a": None}}, [{"input": {"a": None}, "labels": None}, {"input": {"a": None}, "labels": {}, "priority": 0, "at_limit": None, "start_at": None},
                                    {"input": {"a": None}, "priority": 0.0}]),
    (RUNS, {}, [{"input": None}, {"labels": None, "priority": None}]),
    ("/api/v1/workflow-runs", {"definitionId": "w"}, [{"definitionId": "w", "input": None, "labels": None}]),
    ("/api/v1/jobs/claim", {"worker_id": "w"}, [{"worker_id": "w", "queues": ["default"], "max": 1, "wait_ms": 0, "lease_ms": 30000}]),
    ("PUT /api/v1/schedules/s", {"workflow_id": "w", "cron": "0 0 1 1 *"}, [{"workflow_id": "w", "cron": "0 0 1 1 *", "timezone": "UTC", "overlap": "skip", "catch_up_s": 0, "input": None, "paused": False}]),
    ("PUT /api/v1/entity-types/e", {"queue": "q", "handler": "h"}, [{"queue": "q", "handler": "h", "version": None, "retry": None, "rollover_events": 200}]),
]


@pytest.mark.parametrize("path, plain, spelled", SAME)
def test_members_that_are_null_or_spell_out_their_default_make_no_other_request(api, tenant, path, plain, spelled):
    api.put("/api/v1/workflows/w", TASK, tenant=tenant)
    for _ in range(2):  # a claim that finds nothing is not remembered
        assert api.start(tenant, wid="w").status == 200
    method, path = ("PUT", path[4:]) if path.startswith("PUT ") else ("POST", path)

    def call(body, key):
        return api.call(method, path, body, key=key, tenant=tenant)

    first = call(plain, "plain")
    assert first.status == 200, first
    for body in spelled:
        assert replayed(call(body, "plain")), body
    assert not replayed(call(spelled[0], "spelled")) and replayed(call(plain, "spelled"))


def test_null_in_a_callers_own_value_is_a_value(api, tenant):
    api.put("/api/v1/workflows/w", TASK, tenant=tenant)
    assert api.post(RUNS, {"input": {}}, key="k", tenant=tenant).status == 200
    r = api.post(RUNS, {"input": {"labels": None}}, key="k", tenant=tenant)
    assert r.status == 422 and r.code == "IDEMPOTENCY_KEY_REUSED"
    assert api.post(RUNS, {"input": {}, "priority": 1}, key="k", tenant=tenant).status == 422


KEYS = ["order 789", "Bestellung \u00fc\u20ac", "a/b?c#d%", "\U0001f511" * 255, "say \"hi\""]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_a_body_is_any_text(api, tenant, key):
    api.put("/api/v1/workflows/w", TASK, tenant=tenant)
    first = api.post(RUNS, {"idempotency_key": key}, tenant=tenant)
    again = api.post(RUNS, {"idempotency_key": key}, tenant=tenant)
    assert first.status == 200 and again.json["run_id"] == first.json["run_id"] and again.json["created"] is False
    shown = api.get(key_path(key), tenant=tenant)
    assert shown.status == 200 and shown.json["key"] == key and shown.json["run_id"] == first.json["run_id"]
    assert api.delete(key_path(key), key="release", tenant=tenant).status == 200
    assert api.get("/api/v1/idempotency-keys/" + urllib.parse.quote(key, safe=""), tenant=tenant).status == 404


@pytest.mark.parametrize("key", ["", "a\nb", "\x7f", "\x85", "k" * 256, "\u00fc" * 256])
def test_a_key_in_a_body_has_no_control_characters_and_at_most_255_characters(api, tenant, key):
    api.put("/api/v1/workflows/w", TASK, tenant=tenant)
    r = api.post(RUNS, {"idempotency_key": key}, tenant=tenant)
    assert r.status == 400 and r.code == "IDEMPOTENCY_KEY_INVALID", r


def test_a_quoted_key_may_have_spaces_and_names_the_same_as_in_a_body(api, tenant):
    api.put("/api/v1/workflows/w", TASK, tenant=tenant)
    first = api.post(RUNS, {}, key='"order 789 \\"x\\""', tenant=tenant)
    again = api.post(RUNS, {"idempotency_key": 'order 789 "x"'}, tenant=tenant)
    assert first.status == 200 and again.json["run_id"] == first.json["run_id"]
    assert api.post(RUNS, {}, key="order 789", tenant=tenant).code == "IDEMPOTENCY_KEY_INVALID"


def test_a_whole_number_may_be_written_in_any_way(api, tenant):
    for spelling in ("2", "2.0", "2e0", "20E-1"):
        r = api.put("/api/v1/workflows/w", '{"timeout_s": 60.0, "steps":[{"name":"a","type":"task","handler":"h","retry":{"max_attempts":%s}}]}' % spelling, tenant=tenant)
        assert r.status == 200, r
        assert api.put("/api/v1/tenants/" + tenant, '{"max_concurrent_runs": %s}' % spelling, tenant=tenant).json["max_concurrent_runs"] == 2
        assert api.post("/api/v1/jobs/claim", '{"worker_id":"w","max":%s}' % spelling, tenant=tenant).status == 200
    assert api.post("/api/v1/jobs/claim", '{"worker_id":"w","max":2.5}', tenant=tenant).status == 400


def test_spellings_of_one_number_make_one_request_beyond_what_a_double_holds(api, tenant):
    api.put("/api/v1/workflows/w", TASK, tenant=tenant)
    first = api.post(RUNS, '{"input": 9007199254740993}', key="k", tenant=tenant)
    for spelling in ("9007199254740993.0", "9.007199254740993e15", "90071992547409930e-1"):
        assert replayed(api.post(RUNS, '{"input": %s}' % spelling, key="k", tenant=tenant)), spelling
    assert api.post(RUNS, '{"input": 9007199254740992}', key="k", tenant=tenant).status == 422
    shown = api.get(f"/api/v1/runs/{first.json['run_id']}", tenant=tenant)
    assert json.loads(shown.raw)["input"] == 9007199254740993
