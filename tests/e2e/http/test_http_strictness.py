"""Bodies, media types, paths and methods that are not as the contract says: refused with a code, never a 5xx, never a crash."""
import json
import re
import uuid

import pytest

import endpoint
import harness
import rawhttp
from checks import TRACE_ID, assert_alive, assert_private, assert_problem

MIB = 1 << 20
START = "/api/v1/workflows/hold/runs"


@pytest.fixture
def held(api, tenant):
    """A tenant with a workflow, so that only the request itself can be at fault."""
    api.workflow(tenant)
    return tenant


# --- bad JSON ---

BAD_JSON = {
    "truncated": b'{"input":',
    "truncated_text": b'{"input":"abc',
    "truncated_escape": b'{"input":"\\u12',
    "too_deep": b'{"input":' + b"[" * 64 + b"]" * 64 + b"}",
    "very_much_too_deep": b"[" * 500_000,
    "integer_too_large": b'{"input":9223372036854775808}',
    "integer_too_small": b'{"input":-9223372036854775809}',
    "integer_of_1000_digits": b'{"input":' + b"9" * 1000 + b"}",
    "real_too_large": b'{"input":1e999}',
    "real_too_small": b'{"input":-1e999}',
    "duplicate_name": b'{"input":1,"input":2}',
    "duplicate_name_nested": b'{"input":{"a":{"b":1,"b":2}}}',
    "duplicate_name_in_array": b'{"input":[{"a":1,"a":1}]}',
    "duplicate_name_escaped": b'{"input":{"a":1,"\\u0061":2}}',
    "invalid_utf8": b'{"input":"\xff"}',
    "overlong_utf8": b'{"input":"\xc0\x80"}',
    "surrogate_as_utf8": b'{"input":"\xed\xa0\x80"}',
    "beyond_unicode": b'{"input":"\xf4\x90\x80\x80"}',
    "raw_nul_in_text": b'{"input":"a\0b"}',
    "raw_nul_at_end": b'{"input":1}\0',
    "raw_nul_after_number": b'{"input":1\0}',
    "escaped_nul": b'{"input":"\\u0000"}',
    "escaped_nul_in_name": b'{"input":{"\\u0000":1}}',
    "lone_high_surrogate": b'{"input":"\\ud800"}',
    "lone_low_surrogate": b'{"input":"\\udc00"}',
    "surrogates_reversed": b'{"input":"\\udc00\\ud800"}',
    "byte_order_mark": b"\xef\xbb\xbf{}",
    "utf16": '{"input":1}'.encode("utf-16"),
    "trailing_text": b"{} x",
    "trailing_value": b"{}{}",
    "trailing_comma": b'{"input":[1,]}',
    "raw_newline_in_text": b'{"input":"\n"}',
    "single_quotes": b"{'input':1}",
    "not_a_number": b'{"input":NaN}',
    "infinity": b'{"input":Infinity}',
    "leading_zero": b'{"input":01}',
    "leading_plus": b'{"input":+1}',
    "hexadecimal": b'{"input":0x10}',
    "comment": b'{"input":1/**/}',
    "bad_escape": b'{"input":"\\x"}',
    "blank": b"  ",
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_is_400_with_a_code(api, held, name):
    assert_problem(api.start(held, body=BAD_JSON[name]), 400, "JSON_INVALID", retryable=False)
    assert_alive(api)


@pytest.mark.parametrize("path", ["/api/v1/jobs/claim", "/api/v1/keys", "/api/v1/workflow-runs", "/api/v1/workflows/w/validate"])
@pytest.mark.parametrize("name", ["truncated", "duplicate_name", "invalid_utf8", "escaped_nul", "byte_order_mark"])
def test_every_route_reads_json_alike(api, tenant, path, name):
    assert_problem(api.post(path, BAD_JSON[name], tenant=tenant), 400, "JSON_INVALID")


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b"true"])
@pytest.mark.parametrize("path", [START, "/api/v1/jobs/claim", "/api/v1/keys"])
def test_a_body_that_is_no_object_is_400(api, held, path, body):
    assert_problem(api.post(path, body, tenant=held), 400, "FIELD_INVALID")


@pytest.mark.parametrize("path,code", [
    ("/api/v1/jobs/claim", "FIELD_INVALID"),
    ("/api/v1/keys", "FIELD_INVALID"),
    ("/api/v1/workflow-runs", "FIELD_INVALID"),
    ("/api/v1/workflows/w/validate", "JSON_INVALID"),
])
def test_an_empty_body_is_400_where_one_is_needed(api, held, path, code):
    assert_problem(api.call("POST", path, b"", tenant=held), 400, code)


def test_an_empty_put_of_a_workflow_is_400(api, held):
    assert_problem(api.call("PUT", "/api/v1/workflows/hold", b"", tenant=held), 400, "JSON_INVALID")


def test_an_empty_start_is_a_start_without_input(api, held):
    r = api.call("POST", START, None, tenant=held)
    assert r.status == 200 and r.json["run"]["input"] is None, r


@pytest.mark.parametrize("text", [
    "9223372036854775807", "-9223372036854775808", "0.1", "1.0", "-0.0", "1e308", "5e-324", "1e-400", '"\\u00e4\\ud83d\\ude00"', '""',
    "[" * 63 + "]" * 63, "[[],{},null,true,false]",
])
def test_good_json_comes_back_as_it_was_sent(api, held, text):
    r = api.start(held, body=b'{"input":' + text.encode() + b"}")
    assert r.status == 200, r
    again = api.get(f"/api/v1/runs/{r.json['run_id']}", tenant=held)
    assert again.json["input"] == json.loads(text), again


# --- size and type ---

def test_a_body_of_exactly_one_mib_is_read(api, held):
    head, tail = b'{"input":"', b'"}'
    body = head + b"x" * (MIB - len(head) - len(tail)) + tail
    assert api.start(held, body=body).status == 200
    assert_problem(api.start(held, body=body + b" "), 413, "BODY_TOO_LARGE", retryable=False)


@pytest.mark.parametrize("size", [MIB + 1, 4 * MIB])
def test_an_oversize_body_is_413_for_a_client_that_sends_it_all(api, held, size):
    assert_problem(api.start(held, body=b"x" * size), 413, "BODY_TOO_LARGE")
    assert_alive(api)


def test_an_oversize_chunked_body_is_413(dev_server, api, held):
    conn = endpoint.http_connection(dev_server.port, harness.PATIENCE_S)
    conn.request("POST", START, iter([b"x" * 65536] * 17), {"Content-Type": "application/json", "X-Tenant-ID": held}, encode_chunked=True)
    r = conn.getresponse()
    reply = harness.Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
    conn.close()
    assert_problem(reply, 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("length", ["17000000", "9223372036854775808", "18446744073709551615"])
def test_a_hopeless_length_is_413_before_any_of_it_is_sent(dev_server, length):
    r = rawhttp.exchange(dev_server.port, rawhttp.request("POST", START, headers=[f"Content-Length: {length}"]))
    assert_problem(r, 413, "BODY_TOO_LARGE")
    assert r.header("Connection") == "close"


@pytest.mark.parametrize("length", ["18446744073709551616", "99999999999999999999999999"])
def test_a_length_past_64_bits_is_malformed(dev_server, length):
    """One reader's number wraps around, another's stops at its largest: they would not agree on where the body ends."""
    r = rawhttp.exchange(dev_server.port, rawhttp.request("POST", START, headers=[f"Content-Length: {length}"]))
    assert_problem(r, 400, "BAD_REQUEST")
    assert r.header("Connection") == "close"


def test_a_small_chunked_body_is_read(dev_server, held):
    head = rawhttp.request("POST", START, headers=["Transfer-Encoding: chunked", "Content-Type: application/json", f"X-Tenant-ID: {held}"])
    r = rawhttp.exchange(dev_server.port, head + rawhttp.chunked(b'{"inp', b'ut":', b"[1,2]}"))
    assert r.status == 200 and r.json["run"]["input"] == [1, 2], r


@pytest.mark.parametrize("media_type", [
    "application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8",
    'application/json; charset="utf-8"', "application/merge-patch+json",
])
def test_json_by_any_of_its_names_is_taken(api, held, media_type):
    assert api.start(held, body=b"{}", headers={"Content-Type": media_type}).status == 200


@pytest.mark.parametrize("media_type", [
    "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp",
    "application/json; charset=iso-8859-1", "application/json; charset=utf-16", "application/json, text/plain", "json", "",
])
@pytest.mark.parametrize("path", [START, "/api/v1/workflows/hold/validate"])
def test_any_other_type_is_415(api, held, path, media_type):
    assert_problem(api.post(path, b"{}", tenant=held, headers={"Content-Type": media_type}), 415, "UNSUPPORTED_MEDIA_TYPE")


# --- paths, methods, parameters, fields ---

@pytest.mark.parametrize("path", [
    "/nothing", "/api", "/api/v1", "/api/v1/", "/api/v2/runs", "/api/v1/runs/", "/api/v1/runs//events", "//healthz", "/healthz/",
    "/HEALTHZ", "/api/v1/runs/x/y/z", "/api/v1/../healthz", "/%68ealthz",
])
def test_an_unknown_path_is_404(dev_server, path):
    assert_problem(rawhttp.exchange(dev_server.port, rawhttp.request("GET", path)), 404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/api/v1/runs/%", "/api/v1/runs/%4", "/api/v1/runs/%zz", "/api/v1/runs/%00", "/api/v1/workflows/%ff",
                                  "/api/v1/idempotency-keys/%c0%80", "/api/v1/runs?status=%", "/api/v1/runs?workflow_id=%ff"])
def test_a_badly_encoded_path_or_query_is_400(dev_server, path):
    assert_problem(rawhttp.exchange(dev_server.port, rawhttp.request("GET", path)), 400, "BAD_REQUEST")


def test_an_encoded_slash_stays_inside_its_part(api, tenant):
    assert_problem(api.get("/api/v1/runs/a%2Fevents", tenant=tenant), 404, "RUN_NOT_FOUND")
    assert_problem(api.get("/api/v1/workflows/a%2Fb", tenant=tenant), 400, "BAD_REQUEST")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get"])
@pytest.mark.parametrize("path,allow", [
    ("/healthz", {"GET", "HEAD"}),
    ("/api/v1/runs", {"GET", "HEAD"}),
    ("/api/v1/runs/x/cancel", {"POST"}),
    ("/api/v1/workflows/x", {"GET", "HEAD", "PUT", "DELETE"}),
    ("/api/v1/keys", {"GET", "HEAD", "POST"}),
])
def test_an_unknown_method_is_405_with_allow(dev_server, method, path, allow):
    if method in allow:
        return
    r = rawhttp.exchange(dev_server.port, rawhttp.request(method, path))
    assert_problem(r, 405, "METHOD_NOT_ALLOWED")
    assert {m.strip() for m in r.header("Allow").split(",")} == allow


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/api/v1/runs", "/api/v1/runs/none", "/api/v1/idempotency-keys/none", "/nothing"])
def test_head_is_get_without_the_body(dev_server, path):
    with rawhttp.Wire(dev_server.port) as wire:
        wire.send(rawhttp.request("GET", path))
        full = wire.answer()
        wire.send(rawhttp.request("HEAD", path))
        head = wire.answer(head_only=True)
        assert (head.status, head.header("Content-Type"), head.header("Content-Length")) == (
            full.status, full.header("Content-Type"), full.header("Content-Length"))
        wire.send(rawhttp.request("GET", "/healthz"))
        assert wire.answer().status == 200  # nothing of a body was in between


QUERYLESS = [("GET", "/api/v1/runs/x"), ("POST", "/api/v1/runs/x/cancel"), ("POST", "/api/v1/jobs/claim"), ("POST", START),
             ("PUT", "/api/v1/workflows/hold"), ("DELETE", "/api/v1/workflows/hold"), ("GET", "/api/v1/doctor"), ("GET", "/api/v1/backup")]


@pytest.mark.parametrize("method,path", [*QUERYLESS, ("GET", "/api/v1/runs"), ("GET", "/api/v1/workflows"), ("GET", "/api/v1/tenants"),
                                         ("GET", "/api/v1/keys"), ("GET", "/api/v1/workflows/hold/versions")])
def test_an_unknown_query_parameter_is_400_and_named(api, held, method, path):
    r = api.call(method, path + "?colour=blue", {} if method in ("POST", "PUT") else None, tenant=held)
    assert "colour" in assert_problem(r, 400, "BAD_REQUEST")["detail"]


def test_a_query_parameter_given_twice_is_400(api, held):
    assert "limit" in assert_problem(api.get("/api/v1/runs?limit=1&limit=2", tenant=held), 400)["detail"]


@pytest.mark.parametrize("path,body", [
    (START, {"input": 1, "colour": "blue"}),
    ("/api/v1/workflow-runs", {"definitionId": "hold", "colour": "blue"}),
    ("/api/v1/jobs/claim", {"worker_id": "w", "colour": "blue"}),
    ("/api/v1/keys", {"role": "viewer", "colour": "blue"}),
])
def test_an_unknown_field_is_400_and_named(api, held, path, body):
    assert "colour" in assert_problem(api.post(path, body, tenant=held), 400, "FIELD_INVALID")["detail"]


def test_an_unknown_tenant_setting_is_400_and_named(api, held):
    assert "colour" in assert_problem(api.put(f"/api/v1/tenants/{held}", {"colour": 1}, tenant=held), 400, "FIELD_INVALID")["detail"]


# --- traces ---

def test_every_answer_has_a_trace_id_of_its_own(api):
    seen = [api.get(path).header("X-Trace-Id") for path in ("/healthz", "/nothing", "/", "/metrics", "/openapi.json", "/api/v1/runs", "/readyz")]
    assert all(TRACE_ID.fullmatch(t) for t in seen) and len(set(seen)) == len(seen), seen


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/runs", "/nothing"])
def test_a_traceparent_is_continued(api, path):
    trace = uuid.uuid4().hex
    r = api.get(path, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert r.header("X-Trace-Id") == trace
    if r.status >= 400:
        assert r.json["trace_id"] == trace


@pytest.mark.parametrize("given", [
    "garbage", "", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "00-" + "a" * 32 + "-" + "0" * 16 + "-01", "ff-" + "a" * 32 + "-" + "b" * 16 + "-01",
    "00-" + "A" * 32 + "-" + "b" * 16 + "-01", "00-" + "a" * 31 + "-" + "b" * 16 + "-01", "00-" + "a" * 32 + "-" + "b" * 16, "00_" + "a" * 32 + "-" + "b" * 16 + "-01",
])
def test_an_invalid_traceparent_is_replaced(api, given):
    trace = api.get("/healthz", headers={"traceparent": given}).header("X-Trace-Id")
    assert TRACE_ID.fullmatch(trace) and trace not in given.lower() and not re.fullmatch("0+|a+", trace)


def test_a_runs_traceparent_reaches_its_worker(api, held):
    parent = f"00-{uuid.uuid4().hex}-00f067aa0ba902b7-01"
    api.start(held, headers={"traceparent": parent})
    assert api.work(held)["traceparent"].split("-")[1] == parent.split("-")[1]


# --- what every answer says about itself ---

@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/api/v1/runs", "/api/v1/nothing", "/api/v1/backup", "/api/v1/audit/export"])
def test_no_answer_is_kept_by_a_cache_or_taken_for_another_type(dev_server, path):
    assert_private(dev_server.client().get(path, headers={"X-Tenant-ID": "*"} if "audit" in path else {}))


def test_a_stream_and_a_parser_error_say_so_too(dev_server):
    with rawhttp.Wire(dev_server.port) as wire:
        wire.send(rawhttp.request("GET", "/api/v1/events"))
        assert_private(wire.answer(head_only=True))
    assert_private(rawhttp.exchange(dev_server.port, b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n"))
