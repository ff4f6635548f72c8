"""The routes of entities: what they take, what they refuse without changing anything, whose they are, and who may."""
import urllib.parse

import pytest

import harness
import rawhttp
from actions import claim, complete, fail
from checks import assert_problem
from pages import walk

TYPES = "/api/v1/entity-types"
RULES = {"queue": "q", "handler": "h"}
DEFAULTS = {"version": 1, "dedup_window_s": 259200, "dedup_max_keys": 10000, "rollover_events": 200, "keep_generations": 10, "max_inbox": 100000,
            "max_batch": 100, "retry": {"max_attempts": 0, "backoff_ms": 1000, "max_backoff_ms": 300000}}
ROOT = harness.ROOT_KEY


def path(eid="e", suffix="", etype="rewards"):
    return f"/api/v1/entities/{etype}/{urllib.parse.quote(eid, safe='')}{suffix}"


def see(api, tenant, eid="e"):
    r = api.get(path(eid), tenant=tenant)
    assert r.status == 200, r
    return r.json


def events(api, tenant, eid="e"):
    return [e["type"] for e in walk(api, path(eid, "/events"), tenant)]


def send(api, tenant, name="add", payload=1, eid="e", **more):
    r = api.post(path(eid, "/signals"), {"name": name, "payload": payload, **more}, tenant=tenant)
    assert r.status == 200, r
    return r.json


def call(api, tenant):
    """The one call that waits."""
    jobs = claim(api, tenant, queues=["q"])
    assert len(jobs) == 1, jobs
    return jobs[0]


def answer(api, tenant, job=None, **output):
    r = complete(api, tenant, job or call(api, tenant), output=output)
    assert r.status == 200, r
    return r.json


@pytest.fixture
def rewards(api, tenant):
    """The tenant has the type: put(**members) puts it again."""
    def put(**members):
        r = api.put(f"{TYPES}/rewards", {**RULES, **members}, tenant=tenant)
        assert r.status == 200, r
        return r.json
    put()
    return put


# --- types ---

def test_a_type_is_shown_as_it_was_put(api, tenant):
    made = api.put(f"{TYPES}/rewards", RULES, tenant=tenant).json
    assert {k: made[k] for k in DEFAULTS} == DEFAULTS and (made["type"], made["queue"], made["handler"], made["created"]) == ("rewards", "q", "h", True)
    shown = api.get(f"{TYPES}/rewards", tenant=tenant).json
    versions = shown.pop("versions")
    del made["created"]
    assert shown == made and [v["version"] for v in versions] == [1]
    full = {"queue": "q2", "handler": "h2", "version": 1, "dedup_window_s": 1, "dedup_max_keys": 2, "rollover_events": 3, "keep_generations": None,
            "max_inbox": 4, "max_batch": 5, "retry": {"max_attempts": 6, "backoff_ms": 7, "max_backoff_ms": 8}}
    again = api.put(f"{TYPES}/rewards", full, tenant=tenant).json
    assert {k: again[k] for k in full} == full and again["created"] is False and again["created_at"] == made["created_at"]


def test_a_higher_version_is_added_and_without_one_the_newest_is_meant(api, tenant, rewards):
    assert rewards(version=3, handler="h3")["created"] is True
    newest = rewards(max_batch=7)
    assert (newest["version"], newest["created"], newest["handler"], newest["max_batch"]) == (3, False, "h", 7)
    shown = api.get(f"{TYPES}/rewards", tenant=tenant).json
    assert (shown["version"], shown["max_batch"]) == (3, 7) and [(v["version"], v["max_batch"]) for v in shown["versions"]] == [(3, 7), (1, 100)]


def test_types_are_listed_in_pages_by_name(api, tenant):
    names = [f"t{i}" for i in range(5)]
    for name in reversed(names):
        assert api.put(f"{TYPES}/{name}", RULES, tenant=tenant).status == 200
    assert [t["type"] for t in walk(api, f"{TYPES}?limit=2", tenant)] == names
    assert [t["version"] for t in walk(api, TYPES, tenant)] == [1] * 5


BAD_TYPES = [
    ({}, "queue: is required"), ({"queue": "q"}, "handler: is required"), ({"queue": 5, "handler": "h"}, "queue: "), ({"queue": "a b", "handler": "h"}, "queue: "),
    ({"queue": "pawl:http", "handler": "h"}, "pawl's own"), ({"queue": "q", "handler": ""}, "handler: "), ({**RULES, "version": 0}, "version: "),
    ({**RULES, "dedup_window_s": 0}, "dedup_window_s: "), ({**RULES, "dedup_window_s": 31536001}, "dedup_window_s: "), ({**RULES, "dedup_window_s": 1.5}, "dedup_window_s: "),
    ({**RULES, "dedup_max_keys": 0}, "dedup_max_keys: "), ({**RULES, "dedup_max_keys": 1000001}, "dedup_max_keys: "), ({**RULES, "rollover_events": 1}, "rollover_events: "),
    ({**RULES, "rollover_events": 1000001}, "rollover_events: "), ({**RULES, "keep_generations": -1}, "keep_generations: "), ({**RULES, "keep_generations": "all"}, "keep_generations: "),
    ({**RULES, "max_inbox": 0}, "max_inbox: "), ({**RULES, "max_inbox": 10000001}, "max_inbox: "), ({**RULES, "max_batch": 0}, "max_batch: "), ({**RULES, "max_batch": 1001}, "max_batch: "),
    ({**RULES, "retry": []}, "retry: "), ({**RULES, "retry": {"max_attempts": -1}}, "max_attempts: "), ({**RULES, "retry": {"backoff_ms": 86400001}}, "backoff_ms: "),
    ({**RULES, "retry": {"jitter": "none"}}, '"jitter"'), ({**RULES, "colour": 1}, '"colour"'), ([], "object"), ("text", "object"),
]


@pytest.mark.parametrize("body,said", BAD_TYPES)
def test_a_type_that_cannot_be_is_400_and_changes_nothing(api, tenant, rewards, body, said):
    before = api.get(f"{TYPES}/rewards", tenant=tenant).json
    for name in ("rewards", "other"):
        assert said in assert_problem(api.call("PUT", f"{TYPES}/{name}", body if isinstance(body, dict) else b"[]", tenant=tenant), 400, "FIELD_INVALID")["detail"]
    assert api.get(f"{TYPES}/rewards", tenant=tenant).json == before
    assert_problem(api.get(f"{TYPES}/other", tenant=tenant), 404, "ENTITY_TYPE_NOT_FOUND")


@pytest.mark.parametrize("name", ["a%20b", "%2F", "x" * 129, "%C3%A9"])
def test_a_type_has_a_name_as_workflows_have(api, tenant, name):
    for method, suffix in (("PUT", ""), ("GET", ""), ("GET", "/stats")):
        assert_problem(api.call(method, f"{TYPES}/{name}{suffix}", RULES if method == "PUT" else None, tenant=tenant), 400, "BAD_REQUEST")
    assert_problem(api.post(f"/api/v1/entities/{name}/e/signals", {"name": "n"}, tenant=tenant), 400, "BAD_REQUEST")


# --- ids ---

@pytest.mark.parametrize("eid", ["cust-1", "ada@example.com", "a/b", "//", "..", "two words", "50%", "?x=1&y#z", "\"quoted\"", "ünï-日本", "{}", "signals", "*", "x" * 200, "é" * 100, "+"])
def test_an_id_is_any_text(api, tenant, rewards, eid):
    assert send(api, tenant, eid=eid, dedup_key="k") == {"seq": 1, "duplicate": False, "generation": 1}
    assert send(api, tenant, eid=eid, dedup_key="k")["duplicate"] is True
    assert see(api, tenant, eid)["id"] == eid and [e["id"] for e in walk(api, "/api/v1/entities/rewards", tenant)] == [eid]
    assert events(api, tenant, eid) == ["entity.created", "entity.signaled"]
    job = call(api, tenant)
    assert job["input"]["entity"] == {"type": "rewards", "id": eid}
    answer(api, tenant, job, state={"id": eid})
    r = api.post(path(eid, "/updates?wait_ms=0"), {"name": "ask", "dedup_key": "u"}, tenant=tenant)
    assert r.status == 202 and r.header("Location") == path(eid, "/updates/2") and api.get(r.header("Location"), tenant=tenant).json["status"] == "waiting"
    assert see(api, tenant, eid)["state"] == {"id": eid}
    assert api.delete(path(eid), tenant=tenant).json == {"type": "rewards", "id": eid, "deleted": True}
    assert_problem(api.get(path(eid), tenant=tenant), 404, "ENTITY_NOT_FOUND")


@pytest.mark.parametrize("eid", ["x" * 201, "é" * 101, "%00", "a%0Ab", "%7F", "%1B[2J", "%FF", "%C2%80", "%ED%A0%80", "%zz"])
def test_an_id_that_cannot_be_is_400_on_every_route(api, tenant, rewards, eid):
    base = f"/api/v1/entities/rewards/{urllib.parse.quote(eid, safe='%[')}"
    for method, suffix, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/signals", {"name": "n"}), ("POST", "/updates", {"name": "n", "dedup_key": "k"}),
                                 ("GET", "/updates/1", None), ("GET", "/events", None), ("GET", "/generations", None), ("POST", "/migrate", {})):
        assert_problem(api.call(method, base + suffix, body, tenant=tenant), 400, "BAD_REQUEST")
    assert walk(api, "/api/v1/entities/rewards", tenant) == []


def test_ids_of_two_spellings_in_a_url_are_one(api, tenant, rewards):
    send(api, tenant, eid="a-b", dedup_key="k")
    assert api.post("/api/v1/entities/rewards/a%2Db/signals", {"name": "add", "payload": 1, "dedup_key": "k"}, tenant=tenant).json["duplicate"] is True


# --- signals and updates that cannot be ---

BAD_SIGNALS = [
    (b"{", "JSON_INVALID"), (b"[]", "FIELD_INVALID"), ({}, "FIELD_INVALID"), ({"name": ""}, "FIELD_INVALID"), ({"name": "two words"}, "FIELD_INVALID"),
    ({"name": "x" * 129}, "FIELD_INVALID"), ({"name": 5}, "FIELD_INVALID"), ({"name": "n", "dedup_key": ""}, "FIELD_INVALID"), ({"name": "n", "dedup_key": "x" * 256}, "FIELD_INVALID"),
    ({"name": "n", "dedup_key": 7}, "FIELD_INVALID"), ({"name": "n", "colour": 1}, "FIELD_INVALID"), (b'{"name":"n","name":"m"}', "JSON_INVALID"),
]


@pytest.mark.parametrize("body,code", BAD_SIGNALS)
def test_a_bad_signal_or_update_is_400_and_makes_nothing(api, tenant, rewards, body, code):
    for suffix in ("/signals", "/updates"):
        assert_problem(api.post(path(suffix=suffix), body, tenant=tenant, key=f"k{suffix}"), 400, code)
        assert api.get(f"/api/v1/idempotency-keys/{urllib.parse.quote(f'k{suffix}', safe='')}", tenant=tenant).status == 404
    assert_problem(api.get(path(), tenant=tenant), 404, "ENTITY_NOT_FOUND")


def test_an_update_needs_a_key(api, tenant, rewards):
    for body in ({"name": "n"}, {"name": "n", "dedup_key": None}):
        assert "dedup_key: is required" in assert_problem(api.post(path(suffix="/updates"), body, tenant=tenant), 400, "FIELD_INVALID")["detail"]


@pytest.mark.parametrize("query", ["wait_ms=60001", "wait_ms=-1", "wait_ms=x", "wait_ms=1&wait_ms=2", "colour=1", "wait_ms="])
def test_a_bad_query_of_an_update_is_400(api, tenant, rewards, query):
    assert_problem(api.post(path(suffix=f"/updates?{query}"), {"name": "n", "dedup_key": "k"}, tenant=tenant), 400, "BAD_REQUEST")
    assert_problem(api.post(path(suffix="/signals?wait_ms=1"), {"name": "n"}, tenant=tenant), 400, "BAD_REQUEST")
    assert_problem(api.get(path(), tenant=tenant), 404, "ENTITY_NOT_FOUND")


def test_a_payload_may_have_512_kib(api, tenant, rewards):
    assert send(api, tenant, payload="x" * (512 * 1024 - 2))["seq"] == 1
    before = see(api, tenant)
    for suffix in ("/signals", "/updates"):
        assert_problem(api.post(path(suffix=suffix), {"name": "n", "payload": "x" * (512 * 1024 - 1), "dedup_key": "k"}, tenant=tenant), 413, "BODY_TOO_LARGE")
    assert see(api, tenant) == before


@pytest.mark.parametrize("payload", [None, False, 0, -1, 1.5, 10 ** 18, "", "text", [], {}, [[{}]], {"a": None}, "\u0007 ü 😀"])
def test_a_payload_is_any_json(api, tenant, rewards, payload):
    send(api, tenant, payload=payload, dedup_key="k")
    assert send(api, tenant, payload=payload, dedup_key="k")["duplicate"] is True
    assert call(api, tenant)["input"]["signals"][0]["payload"] == payload


def test_no_payload_is_null(api, tenant, rewards):
    assert api.post(path(suffix="/signals"), {"name": "add", "dedup_key": "k"}, tenant=tenant).status == 200
    assert send(api, tenant, payload=None, dedup_key="k")["duplicate"] is True
    assert [s["payload"] for s in call(api, tenant)["input"]["signals"]] == [None]


# --- duplicates ---

def test_a_duplicate_changes_nothing_at_all(api, tenant, rewards):
    send(api, tenant, payload={"a": 1, "b": [2]}, dedup_key="k")
    answer(api, tenant, state=1, set_timers=[{"name": "idle", "in_ms": 3600000}])
    before, events_before = see(api, tenant), events(api, tenant)
    for body in ('{"name":"add","payload":{"b":[2],"a":1},"dedup_key":"k"}', '{"dedup_key":"k","payload" : {"a":1.0,"b":[2e0]},"name":"add"}'):
        r = api.post(path(suffix="/signals"), body, tenant=tenant)
        assert r.json == {"seq": 1, "duplicate": True, "generation": 1}, r
    for other in ({"payload": {"a": 2, "b": [2]}}, {"name": "sub", "payload": {"a": 1, "b": [2]}}, {}):
        assert_problem(api.post(path(suffix="/signals"), {"name": "add", "dedup_key": "k", **other}, tenant=tenant), 422, "IDEMPOTENCY_KEY_REUSED")
    assert see(api, tenant) == before and events(api, tenant) == events_before and claim(api, tenant, queues=["q"]) == []


def test_a_full_inbox_is_429_and_says_how_full(api, tenant, rewards):
    rewards(max_inbox=2)
    for key in ("a", "b"):
        send(api, tenant, dedup_key=key)
    before = see(api, tenant)
    for suffix in ("/signals", "/updates"):
        p = assert_problem(api.post(path(suffix=suffix), {"name": "n", "dedup_key": "c"}, tenant=tenant, key="k" + suffix[1:]), 429, "INBOX_FULL", retryable=True)
        assert (p["current"], p["limit"]) == (2, 2) and api.get(f"/api/v1/idempotency-keys/k{suffix[1:]}", tenant=tenant).status == 404
    assert send(api, tenant, dedup_key="a")["duplicate"] is True and see(api, tenant) == before
    answer(api, tenant, state=1)
    assert api.post(path(suffix="/signals"), {"name": "n", "dedup_key": "c"}, tenant=tenant, key="ksignals").json["seq"] == 3


# --- what is not there ---

READS = ["", "/events", "/inbox", "/generations", "/updates/1"]


def test_an_unknown_type_is_404_on_every_route(api, tenant):
    base = "/api/v1/entities/none"
    for suffix in READS:
        assert_problem(api.get(f"{base}/e{suffix}", tenant=tenant), 404, "ENTITY_TYPE_NOT_FOUND")
    for target in (f"{TYPES}/none", f"{TYPES}/none/stats", base):
        assert_problem(api.get(target, tenant=tenant), 404, "ENTITY_TYPE_NOT_FOUND")
    for suffix, body in (("/signals", {"name": "n"}), ("/updates", {"name": "n", "dedup_key": "k"}), ("/migrate", {})):
        assert_problem(api.post(f"{base}/e{suffix}", body, tenant=tenant), 404, "ENTITY_TYPE_NOT_FOUND")
    assert_problem(api.delete(f"{base}/e", tenant=tenant), 404, "ENTITY_TYPE_NOT_FOUND")


def test_an_unknown_entity_is_404_on_every_route_but_those_that_make_it(api, tenant, rewards):
    for suffix in READS:
        assert api.get(path("none", suffix), tenant=tenant).code in ("ENTITY_NOT_FOUND", "UPDATE_NOT_FOUND"), suffix
    assert_problem(api.post(path("none", "/migrate"), tenant=tenant), 404, "ENTITY_NOT_FOUND")
    assert_problem(api.delete(path("none"), tenant=tenant), 404, "ENTITY_NOT_FOUND")


@pytest.mark.parametrize("seq", ["0", "-1", "x", "1.5", "2", "1", "99999999999999999999"])
def test_an_update_that_is_none_is_404(api, tenant, rewards, seq):
    send(api, tenant)
    assert_problem(api.get(path(suffix=f"/updates/{seq}"), tenant=tenant), 404, "UPDATE_NOT_FOUND")


@pytest.mark.parametrize("body,status,code", [
    ({"version": 0}, 400, "FIELD_INVALID"), ({"version": "2"}, 400, "FIELD_INVALID"), ({"colour": 1}, 400, "FIELD_INVALID"), (b"[]", 400, "FIELD_INVALID"), (b"{", 400, "JSON_INVALID"),
    ({"version": 9}, 409, "ENTITY_VERSION_UNKNOWN"),
])
def test_a_bad_migration_changes_nothing(api, tenant, rewards, body, status, code):
    rewards(version=2)
    send(api, tenant)
    before = see(api, tenant)
    assert_problem(api.post(path(suffix="/migrate"), body, tenant=tenant), status, code)
    assert see(api, tenant) == before


LISTS = ["/api/v1/entities/rewards", path(suffix="/events"), path(suffix="/inbox"), path(suffix="/generations")]


@pytest.mark.parametrize("query,code,lists", [
    ("limit=0", "BAD_REQUEST", [TYPES, *LISTS]), ("limit=201", "BAD_REQUEST", [TYPES, *LISTS]), ("cursor=%00", "BAD_REQUEST", [TYPES, *LISTS]), ("colour=1", "BAD_REQUEST", [TYPES, *LISTS]),
    ("cursor=", "CURSOR_INVALID", [TYPES, *LISTS]), ("cursor=!", "CURSOR_INVALID", LISTS), ("cursor=7", "CURSOR_INVALID", LISTS[:1]), ("cursor=zz", "CURSOR_INVALID", LISTS),
    ("cursor=FF", "CURSOR_INVALID", LISTS), ("cursor=00", "CURSOR_INVALID", LISTS[:1]), ("cursor=" + "61" * 201, "CURSOR_INVALID", LISTS), ("cursor=-1", "CURSOR_INVALID", LISTS),
    ("version=0", "BAD_REQUEST", LISTS[:1]), ("version=x", "BAD_REQUEST", LISTS[:1]), ("version=1", "BAD_REQUEST", LISTS[1:]),
])
def test_a_bad_query_of_a_list_is_400(api, tenant, rewards, query, code, lists):
    send(api, tenant)
    for target in lists:
        assert_problem(api.get(f"{target}?{query}", tenant=tenant), 400, code)


def test_answers_that_cannot_be_applied_change_nothing_and_leave_the_lease(api, tenant, rewards):
    send(api, tenant)
    job = call(api, tenant)
    before = see(api, tenant)
    for output in (None, 5, [], {"colour": 1}, {"state": 1, "set_timers": [{"name": "t"}]}, {"state": 1, "set_timers": [{"name": "t", "in_ms": 1, "at": "2030-01-01T00:00:00Z"}]},
                   {"state": 1, "set_timers": [{"name": "t", "in_ms": -1}]}, {"state": 1, "cancel_timers": [5]}, {"state": 1, "emit": [{}]}, {"state": 1, "emit": [{"event": "entity.created"}]},
                   {"state": 1, "start": [{}]}, {"state": 1, "results": [{"seq": 1, "result": 1}]}, {"state": 1, "finished": "yes"}, {"state": "x" * (256 * 1024)}):
        assert_problem(complete(api, tenant, job, output=output), 422, "ENTITY_ANSWER_INVALID")
    assert_problem(complete(api, tenant, job, output={"state": 1}, state={"of": "a run"}), 422, "ENTITY_ANSWER_INVALID")
    assert see(api, tenant) == before
    assert answer(api, tenant, job, state={"ok": True})["status"] == "completed" and see(api, tenant)["state"] == {"ok": True}


# --- looking ---

def test_an_entity_is_shown_without_a_worker(api, tenant, rewards):
    send(api, tenant)
    e = see(api, tenant)
    assert (e["type"], e["id"], e["status"], e["state"], e["version"], e["generation"], e["type_version"], e["inbox"], e["last_seq"], e["consumed_seq"]) == \
        ("rewards", "e", "waiting", None, 0, 1, 1, 1, 1, 0)
    assert e["timers"] == [] and e["dedup"] == {"keys": 0, "oldest": None, "window_s": 259200, "max_keys": 10000} and e["migrating_to"] is None and e["finished_at"] is None
    assert (e["call"]["kind"], e["call"]["attempt"], e["call"]["worker_id"], e["call"]["error"]) == ("signals", 0, None, None)
    job = call(api, tenant)
    e = see(api, tenant)
    assert e["status"] == "running" and (e["call"]["job_id"], e["call"]["attempt"], e["call"]["worker_id"]) == (job["job_id"], 1, "w1")
    assert fail(api, tenant, job, code="X", message="m").json["status"] == "retrying"
    e = see(api, tenant)
    assert e["status"] == "retrying" and e["call"]["error"]["code"] == "X" and e["call"]["retry_at"] is not None


def test_the_inbox_lists_what_waits_until_a_call_has_applied_it(api, tenant, rewards):
    send(api, tenant, payload={"points": 1})
    job = call(api, tenant)
    send(api, tenant, name="take", payload=None)
    assert api.post(path(suffix="/updates"), {"name": "ask", "payload": [1], "dedup_key": "k"}, tenant=tenant).status == 202
    shown = walk(api, path(suffix="/inbox?limit=1"), tenant)
    assert [(s["seq"], s["name"], s["payload"], s["update"]) for s in shown] == [(1, "add", {"points": 1}, False), (2, "take", None, False), (3, "ask", [1], True)]
    assert all(s["at"] for s in shown) and see(api, tenant)["inbox"] == 3
    answer(api, tenant, job, state=1)
    assert [s["seq"] for s in api.get(path(suffix="/inbox"), tenant=tenant).json["items"]] == [2, 3]
    answer(api, tenant, state=2)
    assert api.get(path(suffix="/inbox"), tenant=tenant).json == {"items": [], "next_cursor": None}


def test_a_job_of_an_entity_says_so(api, tenant, rewards):
    api.workflow(tenant, steps=[{"name": "work", "type": "task", "handler": "noop", "queue": "q"}])
    api.start(tenant)
    step = call(api, tenant)
    assert step["kind"] == "step" and step["step"] == "work"
    send(api, tenant, name="add", payload={"n": 1})
    job = call(api, tenant)
    assert (job["kind"], job["run_id"], job["workflow_id"], job["step"], job["traceparent"], job["handler"], job["attempt"]) == ("entity", None, None, None, None, "h", 1)
    given = job["input"]
    signal = given["signals"][0]
    assert (given["kind"], given["state"], given["version"], given["generation"], given["type_version"], given["state_version"], given["timers"], given["more"]) == \
        ("signals", None, 0, 1, 1, None, [], False)
    assert (signal["seq"], signal["name"], signal["payload"]) == (1, "add", {"n": 1}) and "update" not in signal
    shown = api.get(f"/api/v1/jobs/{job['job_id']}", tenant=tenant).json
    assert (shown["kind"], shown["type"], shown["run_id"], shown["entity"]) == ("entity", "signals", None, {"type": "rewards", "id": "e"})


def test_entities_are_listed_in_pages_by_id_and_version(api, tenant, rewards):
    ids = [f"e{i}" for i in range(5)]
    for eid in reversed(ids):
        send(api, tenant, eid=eid)
    rewards(version=2)
    send(api, tenant, eid="z")
    base = "/api/v1/entities/rewards"
    assert [e["id"] for e in walk(api, f"{base}?limit=2", tenant)] == ids + ["z"]
    assert [e["id"] for e in walk(api, f"{base}?limit=2&version=1", tenant)] == ids and [e["id"] for e in walk(api, f"{base}?version=2", tenant)] == ["z"]
    odd = ["a b", "a&b=c", "a>b", "ü", "%41"]
    for eid in odd:
        send(api, tenant, eid=eid)
    for by in ("cursor", "link"):
        assert sorted(e["id"] for e in walk(api, f"{base}?limit=1", tenant, by=by)) == sorted([*ids, "z", *odd])
    assert walk(api, f"{base}?version=3", tenant) == [] and all("state" not in e for e in walk(api, base, tenant))


# --- updates ---

def ask(api, tenant, wait_ms=0, key="u", name="ask", **kw):
    return api.post(path(suffix=f"/updates?wait_ms={wait_ms}"), {"name": name, "dedup_key": key, **kw}, tenant=tenant)


def test_an_update_waits_for_the_handlers_answer(api, tenant, rewards, dev_server):
    def one(i):
        if i == 0:
            return ask(dev_server.client(), tenant, 30000, payload={"n": 1})
        job = claim(dev_server.client(), tenant, queues=["q"], wait_ms=30000)[0]
        assert job["input"]["signals"][0]["update"] is True
        return complete(dev_server.client(), tenant, job, output={"state": 1, "results": [{"seq": 1, "result": {"n": 2}}]})

    asked, done = harness.together(2, one)
    assert done.status == 200 and asked.status == 200 and asked.header("Location") is None, (asked, done)
    assert {k: asked.json[k] for k in ("seq", "duplicate", "status", "result")} == {"seq": 1, "duplicate": False, "status": "completed", "result": {"n": 2}}


def test_an_update_without_an_answer_is_202_with_a_place_to_ask(api, tenant, rewards):
    r = ask(api, tenant)
    assert r.status == 202 and r.header("Location") == path(suffix="/updates/1") and (r.json["seq"], r.json["duplicate"], r.json["status"]) == (1, False, "waiting"), r
    shown = api.get(r.header("Location"), tenant=tenant).json
    assert (shown["seq"], shown["name"], shown["status"], shown["decided_at"]) == (1, "ask", "waiting", None)
    again = ask(api, tenant, 1)
    assert again.status == 202 and again.json["duplicate"] is True and again.json["seq"] == 1
    answer(api, tenant, state=1, results=[{"seq": 1, "result": "yes"}])
    shown = api.get(r.header("Location"), tenant=tenant).json
    assert (shown["status"], shown["result"]) == ("completed", "yes") and shown["decided_at"]
    later = ask(api, tenant)
    assert later.status == 200 and (later.json["duplicate"], later.json["status"], later.json["result"]) == (True, "completed", "yes")


def test_a_rejection_is_an_outcome_that_stays(api, tenant, rewards):
    ask(api, tenant)
    answer(api, tenant, state=1, results=[{"seq": 1, "error": {"code": "TOO_FEW", "message": "there are 5"}}])
    for _ in range(2):
        r = ask(api, tenant)
        assert r.status == 200 and r.json["status"] == "rejected" and r.json["error"] == {"code": "TOO_FEW", "message": "there are 5"} and "result" not in r.json, r
    assert api.get(path(suffix="/updates/1"), tenant=tenant).json["error"]["code"] == "TOO_FEW"


def test_an_update_that_the_handler_says_nothing_about_is_completed_with_null(api, tenant, rewards):
    ask(api, tenant)
    answer(api, tenant, state=1)
    assert (ask(api, tenant).json["status"], ask(api, tenant).json["result"]) == ("completed", None)


def test_the_key_of_an_update_is_not_that_of_another(api, tenant, rewards):
    ask(api, tenant, payload=1)
    assert_problem(ask(api, tenant, payload=2), 422, "IDEMPOTENCY_KEY_REUSED")
    assert_problem(ask(api, tenant, name="other", payload=1), 422, "IDEMPOTENCY_KEY_REUSED")
    assert see(api, tenant)["last_seq"] == 1


# --- whose ---

def test_tenants_do_not_see_each_others(api, tenant, rewards):
    send(api, tenant, dedup_key="k"), ask(api, tenant)
    other = api.tenant()
    assert walk(api, TYPES, other) == []
    for suffix in READS:
        assert_problem(api.get(path(suffix=suffix), tenant=other), 404, "ENTITY_TYPE_NOT_FOUND")
    assert api.put(f"{TYPES}/rewards", RULES, tenant=other).status == 200
    assert walk(api, "/api/v1/entities/rewards", other) == []
    for suffix in ("", "/events", "/generations"):
        assert_problem(api.get(path(suffix=suffix), tenant=other), 404, "ENTITY_NOT_FOUND")
    assert_problem(api.delete(path(), tenant=other), 404, "ENTITY_NOT_FOUND")
    assert send(api, other, payload="other", dedup_key="k") == {"seq": 1, "duplicate": False, "generation": 1}
    assert (see(api, tenant)["last_seq"], see(api, other)["last_seq"]) == (2, 1)
    assert [j["input"]["signals"][0]["payload"] for j in claim(api, other, queues=["q"], max=10)] == ["other"]
    assert api.delete(path(), tenant=other).status == 200 and see(api, tenant)["last_seq"] == 2


CHANGES = [("PUT", f"{TYPES}/rewards", RULES), ("POST", path(suffix="/signals"), {"name": "n"}), ("POST", path(suffix="/updates?wait_ms=0"), {"name": "n", "dedup_key": "k"}),
           ("POST", path(suffix="/migrate"), {}), ("DELETE", path(), None)]
LOOKS = [TYPES, f"{TYPES}/rewards", f"{TYPES}/rewards/stats", "/api/v1/entities/rewards", path(), path(suffix="/events"), path(suffix="/generations"), path(suffix="/updates/2")]


@pytest.fixture(scope="module")
def locked():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        root = s.client(headers={"X-API-Key": ROOT})
        assert root.put("/api/v1/tenants/t", {}).status == 200
        yield s


@pytest.mark.parametrize("role,may", [("viewer", False), ("worker", False), ("approver", False), ("operator", True), ("admin", True)])
def test_all_roles_look_and_some_change(locked, role, may):
    root = locked.client(headers={"X-API-Key": ROOT, "X-Tenant-ID": "t"})
    key = root.post("/api/v1/keys", {"tenant": "t", "role": role}).json["key"]
    root.put(f"{TYPES}/rewards", RULES), root.post(path(suffix="/signals"), {"name": "n"}), root.post(path(suffix="/updates?wait_ms=0"), {"name": "n", "dedup_key": "u"})
    client = locked.client(headers={"X-API-Key": key})
    for target in LOOKS:
        assert client.get(target).status == 200, target
        assert locked.client().get(target).status == 401
    for method, target, body in CHANGES:
        r = client.call(method, target, body)
        assert (r.status in (200, 202)) if may else (r.status == 403 and r.code == "FORBIDDEN"), (method, target, r)
        assert locked.client().call(method, target, body).status == 401


# --- the paths themselves ---

@pytest.mark.parametrize("target,allow", [
    (f"{TYPES}", {"GET", "HEAD"}), (f"{TYPES}/t", {"GET", "HEAD", "PUT"}), ("/api/v1/entities/t", {"GET", "HEAD"}), ("/api/v1/entities/t/e", {"GET", "HEAD", "DELETE"}),
    ("/api/v1/entities/t/e/signals", {"POST"}), ("/api/v1/entities/t/e/updates", {"POST"}), ("/api/v1/entities/t/e/updates/1", {"GET", "HEAD"}),
])
def test_a_path_says_which_methods_it_has(dev_server, target, allow):
    r = rawhttp.exchange(dev_server.port, rawhttp.request("PATCH", target))
    assert r.status == 405 and {m.strip() for m in r.header("Allow").split(",")} == allow


@pytest.mark.parametrize("target", ["/api/v1/entities", "/api/v1/entities/t/e/none", "/api/v1/entities/t/e/updates/1/2", "/api/v1/entities//e", "/api/v1/entities/t/", f"{TYPES}/"])
def test_there_is_nothing_at_other_paths(api, target):
    assert_problem(api.get(target), 404, "NOT_FOUND")
