"""Sessions of people in browsers: an API key is exchanged for a cookie, which is worth what the key is worth, and only to the server's own
pages."""
import base64
import json

import pytest

import harness
import rawhttp
import sse
from checks import assert_problem

ROOT = harness.ROOT_KEY
PAGE = {"Sec-Fetch-Site": "same-origin"}
ME = "/api/v1/me"
SESSIONS = "/api/v1/sessions"


@pytest.fixture(scope="module")
def locked():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        root = s.client(headers={"X-API-Key": ROOT})
        for tenant in ("acme", "other"):
            root.put(f"/api/v1/tenants/{tenant}", {})
            root.workflow(tenant, "w")
        yield s


@pytest.fixture
def root(locked):
    return locked.client(headers={"X-API-Key": ROOT})


def make_key(root, tenant="acme", role="operator"):
    return root.post("/api/v1/keys", {"tenant": tenant, "role": role}).json


def sign_in(server, key, **headers):
    r = server.client().post(SESSIONS, {"key": key}, headers={**PAGE, **headers})
    assert r.status == 200, r
    return r


def cookie_of(reply):
    return reply.header("Set-Cookie").split(";")[0]


def browser(server, cookie, **headers):
    return server.client(headers={"Cookie": cookie, **PAGE, **headers})


@pytest.fixture
def signed_in(locked, root):
    """A key, and the browser of a person who has signed in with it."""
    made = make_key(root)
    return made, browser(locked, cookie_of(sign_in(locked, made["key"])))


# --- what it is worth ---

def test_a_session_acts_as_its_key(locked, root):
    made = make_key(root)
    r = sign_in(locked, made["key"])
    person = browser(locked, cookie_of(r))
    assert r.json["actor"] == "key:" + made["prefix"] and r.json == person.get(ME).json
    assert r.json["session_expires_at"] is not None and root.get(ME).json["session_expires_at"] is None
    started = person.post("/api/v1/workflows/w/runs", {"input": {}}, key="once")
    assert started.status == 200 and person.get(f"/api/v1/runs/{started.json['run_id']}").status == 200
    assert_problem(person.get("/api/v1/keys"), 403, "FORBIDDEN")
    assert_problem(person.get("/api/v1/runs", tenant="other"), 403, "FORBIDDEN")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(locked, root):
    key = make_key(root)["key"]
    attributes = sign_in(locked, key).header("Set-Cookie").split("; ")[1:]
    tls = locked.url.startswith("https:")
    assert attributes == ["HttpOnly", "SameSite=Strict", "Max-Age=28800", *(["Secure"] if tls else [])]
    assert "Secure" in sign_in(locked, key, Origin="https://pawl.example").header("Set-Cookie"), "a proxy speaks TLS"


def test_a_session_of_the_root_key_names_any_tenant(locked):
    person = browser(locked, cookie_of(sign_in(locked, ROOT)))
    assert person.get(ME).json["all_tenants"] is True
    assert person.get("/api/v1/runs", tenant="other").status == 200 and person.get("/api/v1/tenants").status == 200


def test_a_key_in_a_header_counts_more_than_a_cookie(locked, root, signed_in):
    _, person = signed_in
    viewer = make_key(root, "other", "viewer")
    assert person.get(ME, headers={"X-API-Key": viewer["key"]}).json["tenant"] == "other"
    assert_problem(person.get(ME, headers={"X-API-Key": "pawl_nobodys"}), 401, "UNAUTHENTICATED")


# --- its end ---

def test_it_ends_with_its_key(root, signed_in):
    made, person = signed_in
    assert person.get(ME).status == 200
    assert root.delete(f"/api/v1/keys/{made['id']}").status == 200
    assert_problem(person.get(ME), 401, "UNAUTHENTICATED")


def test_signing_out_ends_this_session_and_no_other(locked, signed_in):
    made, person = signed_in
    elsewhere = browser(locked, cookie_of(sign_in(locked, made["key"])))
    r = person.delete(SESSIONS)
    assert r.json == {"signed_out": True} and r.header("Set-Cookie").startswith("pawl_session=; ") and "Max-Age=0" in r.header("Set-Cookie")
    assert_problem(person.get(ME), 401, "UNAUTHENTICATED")
    assert_problem(person.delete(SESSIONS), 401, "UNAUTHENTICATED")
    assert elsewhere.get(ME).status == 200


def test_a_session_that_was_signed_out_stays_so_after_a_kill():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        made = make_key(s.client(headers={"X-API-Key": ROOT}))
        ended, other = (cookie_of(sign_in(s, made["key"])) for _ in range(2))
        assert browser(s, ended).delete(SESSIONS).json == {"signed_out": True}
        s.kill()
        s.start()
        assert_problem(browser(s, ended).get(ME), 401, "UNAUTHENTICATED")
        assert browser(s, other).get(ME).status == 200


def test_with_a_key_there_is_nothing_to_sign_out_of(root):
    assert root.delete(SESSIONS).json == {"signed_out": False} and root.get(ME).status == 200


def test_an_open_stream_ends_with_the_session(locked, signed_in):
    _, person = signed_in
    headers = [f"Cookie: {person.headers['Cookie']}", "Sec-Fetch-Site: same-origin"]
    with sse.Stream(locked.port, "/api/v1/events", "acme", headers=headers) as stream:
        assert stream.reply.status == 200
        person.delete(SESSIONS)
        assert stream.reply.read() is not None  # to the end, which comes


def test_it_outlives_a_restart_but_not_another_root_key():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        made = make_key(s.client(headers={"X-API-Key": ROOT}))
        cookies = [cookie_of(sign_in(s, key)) for key in (made["key"], ROOT)]
        s.kill()
        s.env["PAWL_ROOT_KEY"] = ROOT[::-1]
        s.start()
        assert browser(s, cookies[0]).get(ME).json["actor"] == "key:" + made["prefix"]
        assert_problem(browser(s, cookies[1]).get(ME), 401, "UNAUTHENTICATED")


# --- forgeries ---

def changed(cookie, at):
    name, text = cookie.split("=", 1)
    body, mac = (bytearray(base64.urlsafe_b64decode(part + "==")) for part in text.split("."))
    (body if at >= 0 else mac)[at] ^= 1
    return name + "=" + ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (body, mac))


@pytest.mark.parametrize("at", [0, 1, 17, 24, 25, 40, -1, -32], ids=str)
def test_no_part_of_a_cookie_can_be_changed(locked, signed_in, at):
    _, person = signed_in
    assert_problem(browser(locked, changed(person.headers["Cookie"], at)).get(ME), 401, "UNAUTHENTICATED")


def test_other_texts_are_no_sessions(locked, root, signed_in):
    made, person = signed_in
    text = person.headers["Cookie"].split("=", 1)[1]
    for forged in ("", ".", text[:-1], text + "A", text + "=", text.split(".")[0], text.split(".")[0] + ".", "." + text.split(".")[1], f'"{text}"', "A" * 8000, made["key"], ROOT):
        assert_problem(browser(locked, f"pawl_session={forged}").get(ME), 401, "UNAUTHENTICATED")
    for header in ({"Authorization": f"Bearer {text}"}, {"X-API-Key": text}):
        assert_problem(locked.client(headers=header).get(ME), 401, "UNAUTHENTICATED")
    assert browser(locked, f"a=b; pawl_session={text}; c=d").get(ME).status == 200


def test_a_session_of_one_server_is_none_of_another(signed_in):
    _, person = signed_in
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        assert_problem(browser(s, person.headers["Cookie"]).get(ME), 401, "UNAUTHENTICATED")


# --- other sites ---

CROSS = [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {}]


@pytest.mark.parametrize("said", CROSS, ids=str)
def test_a_cookie_signs_no_change_that_another_site_may_have_made(locked, signed_in, said):
    _, person = signed_in
    client = locked.client(headers={"Cookie": person.headers["Cookie"], **said})
    assert_problem(client.post("/api/v1/workflows/w/runs", {}), 403, "CROSS_SITE_REQUEST")
    assert_problem(client.delete(SESSIONS), 403, "CROSS_SITE_REQUEST")
    assert person.get(ME).status == 200


@pytest.mark.parametrize("said", CROSS[:2] + CROSS[3:5], ids=str)
def test_nor_does_it_read_for_one(locked, signed_in, said):
    _, person = signed_in
    assert_problem(locked.client(headers={"Cookie": person.headers["Cookie"], **said}).get(ME), 403, "CROSS_SITE_REQUEST")


@pytest.mark.parametrize("said", CROSS[:5], ids=str)
def test_another_site_cannot_sign_a_person_in(locked, root, said):
    r = locked.client().post(SESSIONS, {"key": make_key(root)["key"]}, headers=said)
    assert_problem(r, 403, "CROSS_SITE_REQUEST")
    assert r.header("Set-Cookie") is None


def test_the_servers_own_origin_is_enough(locked, signed_in):
    _, person = signed_in
    host = f"127.0.0.1:{locked.port}"
    client = locked.client(headers={"Cookie": person.headers["Cookie"], "Origin": f"http://{host}", "Host": host})
    assert client.post("/api/v1/workflows/w/runs", {}).status == 200


def test_a_body_must_say_that_it_is_json(signed_in):
    _, person = signed_in
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert_problem(person.post("/api/v1/workflows/w/runs", {}, headers={"Content-Type": kind}), 415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_without_a_type_is_refused(locked, signed_in):
    _, person = signed_in
    with rawhttp.Wire(locked.port) as wire:
        wire.send(f"POST /api/v1/workflows/w/runs HTTP/1.1\r\nHost: x\r\nCookie: {person.headers['Cookie']}\r\nSec-Fetch-Site: same-origin\r\n"
                  "Content-Length: 2\r\n\r\n{}".encode())
        assert wire.answer().status == 415


# --- signing in ---

@pytest.mark.parametrize("body, status, code", [({"key": "pawl_nobodys"}, 401, "UNAUTHENTICATED"), ({"key": ""}, 400, "FIELD_INVALID"), ({}, 400, "FIELD_INVALID"),
                                                ({"key": 1}, 400, "FIELD_INVALID"), ({"key": "k", "x": 1}, 400, "FIELD_INVALID"), ({"key": "k" * 200}, 400, "FIELD_INVALID"),
                                                ("[]", 400, None), ("{", 400, "JSON_INVALID"), ({"key": "k" * 20000}, 413, "BODY_TOO_LARGE")], ids=lambda v: str(v)[:30])
def test_what_is_no_key_makes_no_session(locked, body, status, code):
    r = locked.client().post(SESSIONS, body if isinstance(body, str) else json.dumps(body), headers=PAGE)
    assert_problem(r, status, code)
    assert r.header("Set-Cookie") is None


def test_a_revoked_key_makes_no_session(locked, root):
    made = make_key(root)
    root.delete(f"/api/v1/keys/{made['id']}")
    assert_problem(locked.client().post(SESSIONS, {"key": made["key"]}), 401, "UNAUTHENTICATED")


def test_guessing_by_signing_in_is_throttled_as_guessing_is():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        client, n, last = s.client(), 0, None
        while last is None or last.status == 401:
            last, n = client.post(SESSIONS, {"key": f"pawl_{n:010d}_{'0' * 40}"}), n + 1
            assert n < 100_000, "it is never throttled"
        assert n > 50
        assert_problem(last, 429, "TOO_MANY_FAILED_LOGINS", retryable=True)


def test_a_page_can_ask_whether_to_sign_in(locked, dev_server):
    assert locked.client().get("/api/v1/sign-in").json["needed"] is True
    assert dev_server.client().get("/api/v1/sign-in").json["needed"] is False
    assert_problem(dev_server.client().post(SESSIONS, {"key": ROOT}), 400, "BAD_REQUEST")
