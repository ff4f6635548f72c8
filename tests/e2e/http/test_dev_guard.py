"""A development server asks for no key, so what a web page could send it is refused: foreign hosts, foreign origins, bodies without a type."""
import json

import pytest

import harness
import openapi
from checks import assert_problem
from rawhttp import Wire

START = "/api/v1/workflows/hold/runs"
EVIL = "https://evil.example"


def send(server, method, path, *headers, host="127.0.0.1", body=b""):
    """One request with these header lines and no others."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    with Wire(server.port) as wire:
        wire.send("\r\n".join([*lines, "", ""]).encode() + body)
        return wire.answer(head_only="text/event-stream" in "".join(headers) or method == "HEAD")


def routes():
    """Every route of the table, with paths that fit."""
    return [(method, path.replace("{}", "x")) for method, path in openapi.routes_of_the_server()]


@pytest.fixture(scope="module")
def guarded():
    with harness.server() as s:
        s.client().workflow(None)
        yield s


def runs(server):
    return server.client().get("/api/v1/runs").json["items"]


# --- what a page of another site can send without asking the browser first ---

CROSS_SITE = ["Origin: " + EVIL, "Sec-Fetch-Site: cross-site"]


@pytest.mark.parametrize("headers", [
    ["Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Mode: navigate", *CROSS_SITE],  # a form
    ["Content-Type: multipart/form-data; boundary=x", "Sec-Fetch-Mode: navigate", *CROSS_SITE],
    ["Content-Type: text/plain;charset=UTF-8", "Sec-Fetch-Mode: no-cors", *CROSS_SITE],
    ["Sec-Fetch-Mode: no-cors", *CROSS_SITE],  # a Blob without a type
    ["Origin: null"], ["Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:3000"],
    ["Content-Type: application/json", *CROSS_SITE],
])
@pytest.mark.parametrize("body", [b"{}", b""])
def test_a_page_of_another_site_starts_nothing(guarded, headers, body):
    assert_problem(send(guarded, "POST", START, *headers, body=body), 403, "CROSS_SITE_REQUEST", retryable=False)
    assert_problem(send(guarded, "POST", "/api/v1/webhooks", *headers, body=b'{"url":"https://evil.example","events":["*"]}'), 403, "CROSS_SITE_REQUEST")
    assert runs(guarded) == [] and guarded.client().get("/api/v1/webhooks").json["items"] == []


def test_a_body_without_a_json_type_starts_nothing(guarded):
    for headers in ([], ["Content-Type: text/plain"], ["Content-Type: application/x-www-form-urlencoded"]):
        assert_problem(send(guarded, "POST", START, *headers, body=b"{}"), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert runs(guarded) == []


def test_a_browser_that_asks_first_gets_no_permission(guarded):
    for headers in (["Origin: " + EVIL], []):
        r = send(guarded, "OPTIONS", START, *headers, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type")
        assert_problem(r, 403 if headers else 405)
        assert not [name for name in r.headers if name.startswith("access-control")]


# --- a name that was pointed at this machine ---

def test_a_rebound_name_reads_nothing_on_any_route(guarded):
    for method, path in [*routes(), ("GET", "/nothing"), ("GET", "/api/v1/runs?limit=1"), ("PATCH", "/api/v1/runs")]:
        body = b"{}" if method in ("POST", "PUT") else b""
        r = send(guarded, method, path, "Content-Type: application/json", host=f"evil.example:{guarded.port}", body=body)
        assert_problem(r, 421, "HOST_NOT_ALLOWED", retryable=False)


def test_a_foreign_origin_is_refused_on_every_route(guarded):
    for method, path in [*routes(), ("GET", "/nothing"), ("PATCH", "/api/v1/runs")]:
        body = b"{}" if method in ("POST", "PUT") else b""
        r = send(guarded, method, path, "Origin: " + EVIL, "Content-Type: application/json", body=body)
        assert_problem(r, 403, "CROSS_SITE_REQUEST")


def test_a_foreign_page_hears_no_events(guarded):
    for headers in (["Origin: " + EVIL], ["Sec-Fetch-Site: cross-site"]):
        r = send(guarded, "GET", "/api/v1/events", "Accept: text/event-stream", *headers)
        assert r.status == 403 and r.header("Content-Type") == "application/problem+json"
    r = send(guarded, "GET", "/api/v1/events", "Accept: text/event-stream", host="evil.example")
    assert r.status == 421


def test_a_link_from_elsewhere_opens_the_page_and_nothing_else(guarded):
    link = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]
    assert send(guarded, "GET", "/", *link).header("Location") == "console/"
    assert_problem(send(guarded, "GET", "/api/v1/runs", *link), 403, "CROSS_SITE_REQUEST")
    assert_problem(send(guarded, "GET", "/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"), 403, "CROSS_SITE_REQUEST")


def test_two_origins_are_400(guarded):
    own = f"Origin: http://127.0.0.1:{guarded.port}"
    assert_problem(send(guarded, "GET", "/healthz", own, own, host=f"127.0.0.1:{guarded.port}"), 400, "BAD_REQUEST")


# --- what still works ---

@pytest.mark.parametrize("host", ["localhost", "localhost:1", "app.localhost:80", "127.0.0.1", "127.3.2.1:99", "[::1]:7295"])
def test_loopback_names_are_served(guarded, host):
    assert send(guarded, "GET", "/api/v1/runs", host=host).status == 200


def test_the_servers_own_page_may_call_it(guarded):
    host = f"localhost:{guarded.port}"
    r = send(guarded, "GET", "/api/v1/runs", f"Origin: http://{host}", "Sec-Fetch-Site: same-origin", host=host)
    assert r.status == 200
    assert send(guarded, "GET", "/api/v1/runs", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", host=host).status == 200


def test_a_server_on_all_addresses_answers_to_any_host_but_to_no_foreign_page():
    with harness.server("--dev-insecure", "--listen", "0.0.0.0:0") as s:
        assert send(s, "GET", "/api/v1/runs", host="pawl.internal:7295").status == 200
        assert_problem(send(s, "GET", "/api/v1/runs", "Origin: " + EVIL, host="pawl.internal:7295"), 403, "CROSS_SITE_REQUEST")
        assert_problem(send(s, "POST", START, host="pawl.internal:7295", body=b"{}"), 415)


def test_with_keys_neither_host_nor_origin_matters():
    root = harness.ROOT_KEY
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": root}) as s:
        key = [f"X-API-Key: {root}", "X-Tenant-ID: t"]
        assert send(s, "PUT", "/api/v1/tenants/t", *key, host="pawl.example", body=json.dumps({}).encode()).status == 200
        assert send(s, "GET", "/api/v1/runs", *key, *CROSS_SITE, host="pawl.example").status == 200
