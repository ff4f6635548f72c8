"""Signing in at an OpenID provider: a real one (tests/oidc) end to end, and one that lies."""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse

import pytest

import harness
import oidc
from checks import assert_problem
from cli import free_port

ROOT = harness.ROOT_KEY
PAGE = {"Sec-Fetch-Site": "same-origin"}
MAP = "viewers=viewer,approvers=approver,operators=operator,admins=admin"
SECRET = "a secret: of 100% + & chars"


@contextlib.contextmanager
def pawl_at(issuer, port, *flags):
    url = f"http://127.0.0.1:{port}"
    with harness.server("--listen", f"127.0.0.1:{port}", "--public-url", url + "/", "--oidc-issuer", issuer, "--oidc-client-id", "pawl", "--allow-private-addresses",
                        "--oidc-role-map", MAP, "--oidc-tenant-claim", "tenant", *flags, dev=False, tls=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        root = s.client(headers={"X-API-Key": ROOT})
        root.put("/api/v1/tenants/acme", {})
        root.workflow("acme", "w")
        yield s


def callback_of(port):
    return f"http://127.0.0.1:{port}/api/v1/oidc-callback"


@pytest.fixture(scope="module")
def world():
    """A provider with a client that has a secret, and a server that knows it."""
    port = free_port()
    with oidc.provider(callback_of(port), client_secret=SECRET) as issuer, tempfile.NamedTemporaryFile("w") as secret:
        secret.write(SECRET + "\n")
        secret.flush()
        with pawl_at(issuer, port, "--oidc-client-secret-file", secret.name) as s:
            yield s


def login(server, return_to=""):
    return f"{server.url}/api/v1/oidc-login?return_to={urllib.parse.quote(return_to, safe='')}"


def come_back(server, name, return_to=""):
    """A browser that the provider has sent back, and the address that it is about to open."""
    browser = oidc.Browser()
    return browser, browser.sign_in_as(name, login(server, return_to), callback_of(server.port))


def person(server, name, return_to=""):
    browser, back = come_back(server, name, return_to)
    r, to = browser.ask("GET", back)
    assert r.status == 303, r
    return browser, to


def me(server, browser):
    return browser.ask("GET", f"{server.url}/api/v1/me", headers=PAGE)[0]


def refused(reply, text):
    assert reply.status in (400, 401, 403, 503) and reply.header("Content-Type").startswith("text/html"), reply
    assert text in reply.raw.decode(), reply
    assert "pawl_session" not in (reply.header("Set-Cookie") or "")


# --- the real provider ---

def test_a_person_signs_in_and_is_who_the_provider_says(world):
    browser, to = person(world, "ann.operator.acme", "runs/1?tab=a b".replace(" ", "%20"))
    assert to == f"{world.url}/console/runs/1?tab=a%20b"
    who = me(world, browser).json
    assert (who["actor"], who["role"], who["tenant"], who["all_tenants"]) == ("user:ann.operator.acme@example.com", "operator", "acme", False)
    host = urllib.parse.urlsplit(world.url).netloc
    assert {(path, name) for (h, path, name), value in browser.cookies.items() if h == host and value} == {("/api/v1", "pawl_session")}
    r = world.client(headers={**PAGE, "Cookie": browser.sent_to(urllib.parse.urlsplit(f"{world.url}/api/v1/me"))}).post("/api/v1/workflows/w/runs", {})
    assert r.status == 200


def test_the_session_is_strict_and_the_way_there_is_not(world):
    r, to = oidc.Browser().ask("GET", login(world))
    assert r.status == 303 and "SameSite=Lax" in r.header("Set-Cookie") and "HttpOnly" in r.header("Set-Cookie")
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(to).query))
    assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256" and asked["scope"] == "openid email"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3 and all(len(asked[k]) == 43 for k in ("state", "nonce", "code_challenge"))
    again = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(oidc.Browser().ask("GET", login(world))[1]).query))
    assert not {asked[k] for k in ("state", "nonce", "code_challenge")} & {again[k] for k in ("state", "nonce", "code_challenge")}
    browser, back = come_back(world, "ann.viewer.acme")
    browser.ask("GET", back)
    session, forgotten = browser.lines
    assert session.startswith("pawl_session=") and session.split("; ")[1:] == ["HttpOnly", "SameSite=Strict", "Max-Age=3600"]
    assert forgotten.startswith("pawl_sign_in=; ") and "Max-Age=0" in forgotten


@pytest.mark.parametrize("name, text", [("eve.nobody.acme", "gives you no role"), ("eve.unverified.acme", "has not verified your e-mail"), ("eve.viewer", "gives you no tenant"),
                                        ("eve.operator.*", "gives you no tenant")])
def test_who_has_nothing_to_do_here_is_told_why(world, name, text):
    browser, back = come_back(world, name)
    refused(browser.ask("GET", back)[0], text)
    assert_problem(me(world, browser), 401, "UNAUTHENTICATED")


def test_a_viewer_of_all_tenants_is_one(world):
    browser, _ = person(world, "vic.viewer.*")
    assert me(world, browser).json["all_tenants"] is True


def test_a_code_is_worth_something_once(world):
    browser, back = come_back(world, "ann.viewer.acme")
    kept = dict(browser.cookies)
    assert browser.ask("GET", back)[0].status == 303
    refused(browser.ask("GET", back)[0], "not begun in this browser")
    browser.cookies = kept
    refused(browser.ask("GET", back)[0], "invalid_grant")


def test_an_answer_belongs_to_the_browser_that_asked(world):
    _, back = come_back(world, "ann.viewer.acme")
    refused(oidc.Browser().ask("GET", back)[0], "not begun in this browser")
    other, _ = come_back(world, "bob.viewer.acme")
    refused(other.ask("GET", back)[0], "belongs to another sign-in")


@pytest.mark.parametrize("change, text", [({"state": "x"}, "belongs to another sign-in"), ({"state": None}, "belongs to another sign-in"), ({"iss": "https://evil.example"}, "another provider"),
                                          ({"code": "forged"}, "invalid_grant"), ({"code": None}, "code is missing"), ({"error": "access_denied<b>"}, "access_denied&#60;b&#62;")])
def test_a_changed_answer_is_refused(world, change, text):
    browser, back = come_back(world, "ann.viewer.acme")
    url = urllib.parse.urlsplit(back)
    query = {**dict(urllib.parse.parse_qsl(url.query)), **change}
    refused(browser.ask("GET", url._replace(query=urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})).geturl())[0], text)


def test_a_flow_of_another_shape_is_refused(world):
    _, back = come_back(world, "ann.viewer.acme")
    for cookie in ("", ".", "a.b", "A" * 900, "AAAA." + "A" * 43):
        refused(oidc.Browser().ask("GET", back, headers={"Cookie": f"pawl_sign_in={cookie}"})[0], "not begun in this browser")


@pytest.mark.parametrize("place", ["//evil.example", "/x", "a/../../x", "a\\b", "a\r\nb", "ä", "x" * 600, 'a"b'])
def test_nobody_is_sent_elsewhere_afterwards(world, place):
    r, to = oidc.Browser().ask("GET", login(world, place))
    assert r.status == 400 and to is None


def test_programs_get_problems_instead_of_pages(world):
    assert_problem(world.client().get("/api/v1/oidc-callback?code=x"), 401, "UNAUTHENTICATED")
    assert world.client().get("/api/v1/sign-in").json == {"needed": True, "oidc_issuer": json.loads(json.dumps(world.flags[world.flags.index("--oidc-issuer") + 1]))}


def test_it_works_with_es256_and_a_public_client():
    port = free_port()
    with oidc.provider(callback_of(port), "ES256", token_endpoint_auth_method="none") as issuer, pawl_at(issuer, port) as s:
        browser, _ = person(s, "ann.admin.acme")
        assert me(s, browser).json["role"] == "admin"


# --- a provider that lies ---

def b64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Liar:
    """A provider whose token endpoint answers whatever `token` makes of the right claims."""

    def __init__(self):
        self.key = tempfile.NamedTemporaryFile(suffix=".pem")
        subprocess.run(["openssl", "genrsa", "-out", self.key.name, "2048"], check=True, capture_output=True)
        shown = subprocess.run(["openssl", "rsa", "-in", self.key.name, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
        self.n = b64(bytes.fromhex(shown.split("=")[1].strip()))
        self.keys = {"keys": [{"kty": "RSA", "n": self.n, "e": "AQAB", "kid": "k"}]}
        self.reads, self.nonce, self.document, self.answer = 0, "", {}, None
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.issuer = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def sign(self, claims, header=None):
        text = b64(json.dumps(header or {"alg": "RS256", "kid": "k"}).encode()) + "." + b64(json.dumps(claims).encode())
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key.name], input=text.encode(), check=True, capture_output=True).stdout
        return text + "." + b64(signature)

    def claims(self, **change):
        now = int(time.time())
        right = {"iss": self.issuer, "aud": "pawl", "sub": "1", "exp": now + 60, "iat": now, "nonce": self.nonce, "email": "a@b.c", "roles": ["viewers"], "tenant": "acme"}
        return {k: v for k, v in {**right, **change}.items() if v is not None}

    def handler(self):
        liar = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def send(self, body, status=200):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                if self.path == "/keys":
                    liar.reads += 1
                    self.send(liar.keys)
                else:
                    self.send({"issuer": liar.issuer, "authorization_endpoint": liar.issuer + "/auth", "token_endpoint": liar.issuer + "/token", "jwks_uri": liar.issuer + "/keys",
                               **liar.document})

            def do_POST(self):
                self.send(*liar.answer())

            def log_message(self, *args):
                pass

        return Handler

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.key.close()


@pytest.fixture(scope="module")
def liar():
    one = Liar()
    yield one
    one.close()


@pytest.fixture(scope="module")
def deceived(liar):
    port = free_port()
    with pawl_at(liar.issuer, port) as s:
        yield s


def deceive(server, liar, answer):
    """What a person sees whose code is answered with this."""
    browser = oidc.Browser()
    _, to = browser.ask("GET", login(server))
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(to).query))
    liar.nonce, liar.answer = asked["nonce"], answer
    return browser.ask("GET", f"{callback_of(server.port)}?code=c&state={asked['state']}")[0]


def test_the_truth_is_believed(deceived, liar):
    for change in ({}, {"aud": ["pawl"]}, {"aud": ["pawl", "other"], "azp": "pawl"}, {"exp": time.time() - 30.5}):
        r = deceive(deceived, liar, lambda: ({"id_token": liar.sign(liar.claims(**change))},))
        assert r.status == 303, r


@pytest.mark.parametrize("change, text", [({"nonce": "x"}, "another sign-in"), ({"nonce": None}, "another sign-in"), ({"nonce": ""}, "another sign-in"), ({"iss": "https://evil.example"}, "another issuer"),
                                          ({"aud": "other"}, "another client"), ({"aud": None}, "another client"), ({"aud": ["pawl", "other"]}, "another client"),
                                          ({"azp": "other"}, "another client"), ({"exp": 1}, "has expired"), ({"exp": None}, "has expired"), ({"exp": "soon"}, "has expired"),
                                          ({"iat": 9999999999}, "not valid yet"), ({"nbf": 9999999999}, "not valid yet"), ({"email": None}, "does not say who you are"),
                                          ({"email": "a\nb"}, "does not say who you are"), ({"email": "x" * 200}, "does not say who you are"), ({"roles": {"viewers": True}}, "no role"),
                                          ({"roles": "viewer"}, "no role"), ({"tenant": ["acme", "other"]}, "no tenant"), ({"tenant": "../x"}, "no tenant")], ids=str)
def test_wrong_claims_are_refused(deceived, liar, change, text):
    refused(deceive(deceived, liar, lambda: ({"id_token": liar.sign(liar.claims(**change))},)), text)


def none_token(liar):
    return b64(b'{"alg":"none"}') + "." + b64(json.dumps(liar.claims()).encode()) + "."


def hs256_token(liar):
    """Signed with the public key as if it were a secret."""
    text = b64(b'{"alg":"HS256","kid":"k"}') + "." + b64(json.dumps(liar.claims()).encode())
    return text + "." + b64(hmac.new(liar.n.encode(), text.encode(), hashlib.sha256).digest())


def altered_token(liar):
    head, body, signature = liar.sign(liar.claims(roles=["viewers"])).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    return ".".join((head, b64(json.dumps({**claims, "roles": ["admins"]}).encode()), signature))


FORGED = {"alg none": (none_token, "not RS256 or ES256"), "public key as secret": (hs256_token, "not RS256 or ES256"), "altered": (altered_token, "signature is wrong"),
          "critical": (lambda p: p.sign(p.claims(), {"alg": "RS256", "kid": "k", "crit": ["x"]}), "not RS256 or ES256"),
          "rs256 said to be es256": (lambda p: p.sign(p.claims(), {"alg": "ES256", "kid": "k"}), "no key that signed it"),
          "unknown key": (lambda p: p.sign(p.claims(), {"alg": "RS256", "kid": "other"}), "no key that signed it"),
          "no token": (lambda p: "x", "not a signed JSON Web Token"), "two parts": (lambda p: "e30.e30", "not a signed JSON Web Token"), "long": (lambda p: "A" * 70000, "not a signed JSON Web Token")}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tokens_are_refused(deceived, liar, name):
    forge, text = FORGED[name]
    refused(deceive(deceived, liar, lambda: ({"id_token": forge(liar)},)), text)


def test_unknown_keys_make_it_read_the_keys_again_but_not_each_time(deceived, liar):
    deceive(deceived, liar, lambda: ({"id_token": liar.sign(liar.claims())},))
    before = liar.reads
    for _ in range(5):
        refused(deceive(deceived, liar, lambda: ({"id_token": liar.sign(liar.claims(), {"alg": "RS256", "kid": "another"})},)), "no key that signed it")
    assert liar.reads <= before + 1


@pytest.mark.parametrize("answer, text", [(({"access_token": "x"},), "there is none"), (({"id_token": 1},), "there is none"), ((b"<html>",), "not a JSON object"), (({}, 500), "it answered 500"),
                                          (({"error": "invalid_client"}, 401), "invalid_client"), ((b"[" * 100000,), "not a JSON object"), ((b"x" * 2000000,), "more than")], ids=lambda v: str(v)[:40])
def test_other_answers_are_refused_clearly(deceived, liar, answer, text):
    refused(deceive(deceived, liar, lambda: answer), text)


@pytest.mark.parametrize("document, text", [({"issuer": "https://evil.example"}, "names another issuer"), ({"token_endpoint": None}, "has no authorization_endpoint")])
def test_a_document_that_is_not_the_issuers_is_refused(document, text):
    one = Liar()
    one.document = document
    with pawl_at(one.issuer, free_port()) as s:
        refused(oidc.Browser().ask("GET", login(s))[0], text)
        assert_problem(s.client().get("/api/v1/oidc-login"), 503, "OPENID_PROVIDER_UNAVAILABLE", retryable=True)
    one.close()


def test_a_provider_that_is_away_is_named_and_nothing_else_waits_for_it():
    port = free_port()
    with pawl_at(f"http://127.0.0.1:{free_port()}", port) as s:
        refused(oidc.Browser().ask("GET", login(s))[0], "Cannot read the OpenID provider")
        assert s.client(headers={"X-API-Key": ROOT}).get("/api/v1/me").status == 200


# --- options ---

BASE = ["--oidc-issuer", "https://id.example", "--oidc-client-id", "pawl", "--public-url", "https://pawl.example"]


@pytest.mark.parametrize("flags, text", [(["--oidc-issuer", "https://id.example"], "needs --oidc-client-id and --public-url"), (["--oidc-client-id", "x"], "needs --oidc-issuer"),
                                         ([*BASE, "--dev"], "nobody signs in"), (["--oidc-issuer", "http://127.0.0.1:1", *BASE[2:]], "must begin with https://"),
                                         ([*BASE, "--oidc-role-map", "x=king"], "must be GROUP=ROLE"), ([*BASE, "--oidc-tenant", "a b"], "--oidc-tenant must be"),
                                         ([*BASE[:5], "not a url"], "--public-url"), (["--oidc-issuer", "https://id.example?x", *BASE[2:], "--allow-private-addresses"], "must not have a query"),
                                         ([*BASE, "--oidc-client-secret-file", "/nowhere"], "cannot read /nowhere")], ids=lambda v: str(v)[-40:])
def test_options_that_do_not_fit_are_refused(flags, text, tmp_path):
    r = subprocess.run([harness.PAWL, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{tmp_path}/x.db", *flags], capture_output=True, text=True, timeout=30)
    assert r.returncode in (1, 2) and text in r.stderr, r.stderr


def test_loopback_providers_are_out_of_reach_unless_allowed():
    """As those of http steps: an issuer whose name leads there is refused when it is called."""
    with harness.server(*BASE[2:], "--oidc-issuer", "https://127.0.0.1:1", dev=False, tls=False, env={"PAWL_ROOT_KEY": ROOT}) as s:
        r = s.client().get("/api/v1/oidc-login")
        assert_problem(r, 503, "OPENID_PROVIDER_UNAVAILABLE")
        assert "not to a public address" in r.json["detail"]


def test_without_a_provider_there_is_nowhere_to_go(dev_server):
    assert_problem(dev_server.client().get("/api/v1/oidc-login"), 404, "NOT_FOUND")
    assert_problem(dev_server.client().get("/api/v1/oidc-callback"), 404, "NOT_FOUND")
    assert re.search("oidc-issuer", dev_server.client().get("/api/v1/oidc-login").json["detail"])
