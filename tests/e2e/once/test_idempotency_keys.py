"""How a key may be written, what the server tells about it, and how long it lasts."""
import datetime
import urllib.parse

import pytest

import harness
import wire
from inspect_store import all_runs, key_path, record, rows

PATH = "/api/v1/workflows/hold/runs"
BODY = b'{"input":{}}'


@pytest.fixture
def ready(api, tenant):
    """A tenant with a workflow."""
    api.workflow(tenant)
    return tenant


def start_raw(api, tenant, *headers, body=BODY):
    """A start with exactly these key headers."""
    return wire.send(api.port, wire.request("POST", PATH, [("X-Tenant-ID", tenant), *headers], body))


def assert_names(api, tenant, header, key):
    """The header's value names this key: it is stored under it, and the plain form replays it."""
    r = start_raw(api, tenant, ("Idempotency-Key", header))
    assert r.status == 200 and r.json["created"] is True, (header, r)
    kept = record(api, tenant, key)
    assert kept is not None and kept["key"] == key and kept["run_id"] == r.json["run_id"]
    again = start_raw(api, tenant, ("Idempotency-Key", header))
    assert again.json["run_id"] == r.json["run_id"] and again.header("Idempotent-Replayed") == "true"
    return r


def assert_refused(api, tenant, r):
    assert r.status == 400 and r.code == "IDEMPOTENCY_KEY_INVALID" and r.json["retryable"] is False, r
    assert all_runs(api, tenant) == []


# --- well-formed ---

SPELLINGS = ["k-1", '"k-1"', '"k-1";a=1', '"k-1"; x="y"', '"k-1";a', '"k-1";a=?1;  b=tok/en;*c=-1.5;d-e.f_g=:aGk=:', '  "k-1"  ', '"k-1";x="\\"\\\\"']


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_bare_quoted_and_parametrised_name_the_same_key(api, ready, spelling):
    first = assert_names(api, ready, spelling, "k-1")
    for other in SPELLINGS:
        r = start_raw(api, ready, ("Idempotency-Key", other))
        assert r.json["run_id"] == first.json["run_id"] and r.json["created"] is False, other
    assert len(all_runs(api, ready)) == 1


@pytest.mark.parametrize("quoted,key", [('"a\\"b"', 'a"b'), ('"a\\\\b"', "a\\b"), ('"\\\\\\""', '\\"'), ('"a\'b"', "a'b")])
def test_an_escape_stands_for_its_character(api, ready, quoted, key):
    first = assert_names(api, ready, quoted, key)
    bare = start_raw(api, ready, ("Idempotency-Key", key))
    assert bare.json["run_id"] == first.json["run_id"]


@pytest.mark.parametrize("key", ["a" * 255, "".join(map(chr, range(0x21, 0x7F))), "a,b", "a;b=1", "!", "0"])
def test_up_to_255_visible_characters_make_a_key(api, ready, key):
    if not key.startswith('"'):
        first = assert_names(api, ready, key, key)
        quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
        assert start_raw(api, ready, ("Idempotency-Key", quoted)).json["run_id"] == first.json["run_id"]


def test_escapes_do_not_count_towards_the_length(api, ready):
    assert_names(api, ready, '"' + '\\"' * 255 + '"', '"' * 255)
    r = start_raw(api, ready, ("Idempotency-Key", '"' + '\\"' * 256 + '"'))
    assert r.status == 400 and r.code == "IDEMPOTENCY_KEY_INVALID"


def test_keys_differ_by_case(api, ready):
    assert api.start(ready, key="Key").json["run_id"] != api.start(ready, key="key").json["run_id"]


# --- malformed ---

MALFORMED = {
    "empty": "",
    "spaces only": "   ",
    "empty string": '""',
    "lone quote": '"',
    "unterminated": '"abc',
    "unterminated escape": '"abc\\',
    "escaped end": '"abc\\"',
    "bad escape": '"a\\bc"',
    "bad hex escape": '"a\\x41"',
    "text behind the quote": '"abc"x',
    "text behind a space": '"abc" x',
    "space before a parameter": '"abc" ;a=1',
    "two strings": '"a", "b"',
    "empty parameter": '"abc";',
    "parameter without a name": '"abc";=1',
    "upper-case parameter": '"abc";A=1',
    "parameter without its value": '"abc";a=',
    "unterminated parameter": '"abc";a="b',
    "space inside": "a b",
    "tab inside": "a\tb",
    "256 characters": "a" * 256,
    "256 quoted characters": '"' + "a" * 256 + '"',
    "non-ASCII": "schlüssel".encode(),
    "non-ASCII in quotes": '"schlüssel"'.encode(),
    "latin-1": "schlüssel".encode("latin-1"),
}


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_key_is_refused(api, ready, value):
    assert_refused(api, ready, start_raw(api, ready, ("Idempotency-Key", value)))
    assert_refused(api, ready, start_raw(api, ready, ("X-Idempotency-Key", value)))


@pytest.mark.parametrize("value", [b"a\x01b", b"a\x7fb", b'"a\x1fb"'])
def test_a_control_character_is_refused(api, ready, value):
    """No header may hold one, so it may be the whole request that is refused for it."""
    r = start_raw(api, ready, ("Idempotency-Key", value))
    assert r.status == 400 and r.code in ("IDEMPOTENCY_KEY_INVALID", "BAD_REQUEST") and r.json["retryable"] is False
    assert all_runs(api, ready) == []


@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Idempotency-Key", "idempotency-key"])
@pytest.mark.parametrize("second", ["a", "b", '"a"', ""])
def test_two_header_lines_are_refused(api, ready, name, second):
    assert_refused(api, ready, start_raw(api, ready, (name, "a"), (name.swapcase(), second)))


@pytest.mark.parametrize("method,path", [("POST", "/api/v1/jobs/claim"), ("PUT", "/api/v1/workflows/w"), ("DELETE", "/api/v1/workflows/hold")])
def test_a_malformed_key_is_refused_on_other_routes_too(api, ready, method, path):
    body = None if method == "DELETE" else {}
    r = api.call(method, path, body, key='"open', tenant=ready)
    assert r.status == 400 and r.code == "IDEMPOTENCY_KEY_INVALID"


# --- more than one place ---


def test_the_second_header_is_accepted_alone_and_in_agreement(api, ready):
    first = start_raw(api, ready, ("X-Idempotency-Key", "k"))
    assert first.json["created"] is True and record(api, ready, "k")["run_id"] == first.json["run_id"]
    for headers in [[("Idempotency-Key", "k")], [("Idempotency-Key", '"k"'), ("X-Idempotency-Key", "k")], [("X-Idempotency-Key", '"k";a')]]:
        assert start_raw(api, ready, *headers).json["run_id"] == first.json["run_id"]
    flat = api.post("/api/v1/workflow-runs", {"definitionId": "hold", "idempotencyKey": "f"}, headers={"X-Idempotency-Key": "f"}, tenant=ready)
    assert flat.status == 200 and flat.json["created"] is True


def test_two_places_that_disagree_are_refused(api, ready):
    assert_refused(api, ready, start_raw(api, ready, ("Idempotency-Key", "a"), ("X-Idempotency-Key", "b")))
    assert_refused(api, ready, start_raw(api, ready, ("Idempotency-Key", "a"), body=b'{"idempotency_key":"b"}'))
    assert_refused(api, ready, start_raw(api, ready, ("X-Idempotency-Key", "a"), body=b'{"idempotency_key":"A"}'))
    flat = {"definitionId": "hold", "idempotencyKey": "b"}
    assert_refused(api, ready, api.post("/api/v1/workflow-runs", flat, key="a", tenant=ready))
    assert record(api, ready, "a") is None and record(api, ready, "b") is None


def test_a_body_key_that_disagrees_is_refused_also_when_the_header_key_is_known(api, ready):
    api.start(ready, body={"input": 1}, key="a")
    r = api.start(ready, body={"input": 1, "idempotency_key": "b"}, key="a")
    assert r.status == 400 and r.code == "IDEMPOTENCY_KEY_INVALID"
    assert record(api, ready, "b") is None and len(all_runs(api, ready)) == 1


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["k"], "", "a\x01b", "a\nb", "a" * 256])
def test_a_malformed_key_in_the_body_is_refused(api, ready, value):
    assert_refused(api, ready, api.start(ready, body={"idempotency_key": value}))
    assert_refused(api, ready, api.post("/api/v1/workflow-runs", {"definitionId": "hold", "idempotencyKey": value}, tenant=ready))


# --- the inspector ---


def test_the_inspector_shows_the_first_request_and_what_came_after(api, ready):
    first = api.start(ready, body={"input": {"n": 1}}, key="k")
    fresh = record(api, ready, "k")
    assert fresh["route"] == PATH and fresh["method"] == "POST" and fresh["run_id"] == first.json["run_id"]
    assert fresh["replays"] == fresh["mismatches"] == 0 and fresh["last_replayed_at"] is None and fresh["expires_at"] is None
    for _ in range(3):
        api.start(ready, body={"input": {"n": 1}}, key="k")
    for n in range(2):
        assert api.start(ready, body={"input": {"n": n + 2}}, key="k").status == 422
    api.post("/api/v1/workflow-runs", {"definitionId": "hold", "idempotencyKey": "k"}, tenant=ready)
    later = record(api, ready, "k")
    assert (later["replays"], later["mismatches"]) == (3, 3) and later["last_replayed_at"] >= later["created_at"]
    for same in ("fingerprint", "run_id", "route", "created_at"):
        assert later[same] == fresh[same]


def test_equal_requests_have_equal_fingerprints(api, ready):
    api.start(ready, body='{"input":{"a":1,"b":2}}', key="one")
    api.start(ready, body='{"input":{"b":2.0,"a":1}}', key="two")
    api.start(ready, body='{"input":{"a":1,"b":3}}', key="three")
    one, two, three = (record(api, ready, k)["fingerprint"] for k in ("one", "two", "three"))
    assert one == two != three


@pytest.mark.parametrize("key", ["a/b", "50%", "a?b=c#d", "%2F", "..", "a\\b", 'say"k"', "~!@$&'()*+,;=:[]{}|^`<>"])
def test_the_inspector_finds_keys_that_a_path_must_encode(api, ready, key):
    run = api.start(ready, key=key).json["run_id"]
    assert record(api, ready, key)["run_id"] == run
    assert api.delete(key_path(key), tenant=ready).status == 200
    assert record(api, ready, key) is None


def test_a_key_at_the_end_of_a_path_is_decoded_once(api, ready):
    api.start(ready, key="a%2Fb")
    assert record(api, ready, "a%2Fb") is not None and record(api, ready, "a/b") is None
    r = api.get("/api/v1/idempotency-keys/" + urllib.parse.quote("a\x01b"), tenant=ready)
    assert r.status == 400 and r.code == "IDEMPOTENCY_KEY_INVALID"


def test_the_inspector_shows_no_other_tenants_keys(api, ready):
    api.start(ready, key="k")
    other = api.tenant()
    assert record(api, other, "k") is None
    r = api.delete(key_path("k"), tenant=other)
    assert r.status == 404 and r.code == "IDEMPOTENCY_KEY_NOT_FOUND"
    assert record(api, ready, "k") is not None


# --- release ---


def test_a_released_key_works_anew(api, ready):
    old = api.start(ready, body={"input": 1}, key="k").json["run_id"]
    r = api.delete(key_path("k"), tenant=ready)
    assert r.status == 200 and r.json["run_id"] == old
    assert record(api, ready, "k") is None and api.delete(key_path("k"), tenant=ready).status == 404
    new = api.start(ready, body={"input": 2}, key="k")
    assert new.status == 200 and new.json["created"] is True and new.json["run_id"] != old
    assert {run["id"] for run in all_runs(api, ready)} == {old, new.json["run_id"]}


def test_a_release_is_audited():
    with harness.server() as s:
        api = s.client(headers={"X-Actor": "ada"})
        t = api.tenant()
        api.workflow(t)
        run = api.start(t, key="a/b").json["run_id"]
        assert api.delete(key_path("a/b"), tenant=t).status == 200
        assert s.stop() == 0
        found = rows(s.db, "SELECT actor, target, detail FROM audit WHERE action = 'idempotency.release'")
        assert len(found) == 1
        actor, target, detail = found[0]
        assert actor == "ada" and target == "a/b" and run in detail
        assert rows(s.db, "SELECT count(*) FROM idempotency WHERE key = 'a/b'") == [(0,)]


def test_only_an_admin_releases():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        root = s.client(headers={"X-API-Key": harness.ROOT_KEY, "X-Tenant-ID": "t"})
        assert root.put("/api/v1/tenants/t").status == 200
        who = {}
        for role in ("viewer", "worker", "approver", "operator", "admin"):
            r = root.post("/api/v1/keys", {"tenant": "t", "role": role})
            who[role] = s.client(headers={"Authorization": "Bearer " + r.json["key"]})
        root.workflow("t")
        assert who["operator"].start("t", key="k").status == 200
        for role in ("viewer", "worker", "approver", "operator"):
            r = who[role].delete(key_path("k"))
            assert r.status == 403 and r.code == "FORBIDDEN", (role, r)
            # A refusal is not remembered either: the key of the refused request is free.
            assert who[role].delete(key_path("k"), key="release").status == 403
        assert who["viewer"].get(key_path("k")).status == 200 and who["viewer"].get(key_path("release")).status == 404
        assert who["admin"].delete(key_path("k"), key="release").status == 200


# --- retention ---


def test_an_expired_key_starts_a_new_run_and_the_old_one_stays(api):
    tenant = api.tenant(idempotency_retention_s=1)
    api.workflow(tenant)
    first = api.start(tenant, key="k").json["run_id"]
    kept = record(api, tenant, "k")
    if kept:  # on a very slow machine it is gone by now
        made, ends = (datetime.datetime.fromisoformat(kept[t].replace("Z", "+00:00")) for t in ("created_at", "expires_at"))
        assert ends - made == datetime.timedelta(seconds=1)

    def anew():
        r = api.start(tenant, key="k")
        assert r.status == 200, r
        return r if r.json["created"] else None

    second = harness.wait_until(anew, "the key expires").json["run_id"]
    assert second != first
    assert {r["id"] for r in all_runs(api, tenant)} == {first, second}


def test_old_records_are_evicted_and_nothing_else(dev_server, api):
    short, forever = api.tenant(idempotency_retention_s=1), api.tenant(idempotency_retention_s=None)
    for t in (short, forever):
        api.workflow(t)
    kept_run = api.start(forever, key="k").json["run_id"]
    ids = {api.start(short, key=f"k-{n}").json["run_id"] for n in range(600)}
    assert len(ids) == 600

    def left():
        return rows(dev_server.db, "SELECT count(*) FROM idempotency i JOIN tenants t ON t.num = i.tenant WHERE t.id = ?", short)[0][0]

    harness.wait_until(lambda: left() == 0, "the records are evicted")
    assert record(api, short, "k-0") is None and record(api, short, "k-599") is None
    assert {r["id"] for r in all_runs(api, short)} == ids
    assert api.get(f"/api/v1/runs/{min(ids)}", tenant=short).status == 200
    assert record(api, forever, "k")["expires_at"] is None
    again = api.start(forever, key="k")
    assert again.json["run_id"] == kept_run and again.header("Idempotent-Replayed") == "true"
