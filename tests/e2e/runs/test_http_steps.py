"""Steps of type http: what goes out, what comes back, what is tried again, what is refused, and what a crash does."""
import base64
import datetime
import json
import pathlib
import threading

import pytest

import harness
from actions import ended, events, show, step
from cli import free_port
from pages import walk

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
QUICK = {"max_attempts": 3, "backoff_ms": 1, "jitter": "none"}


@pytest.fixture
def api(calling_server):
    return calling_server.client()


def http(name, url, method="GET", **more):
    request = {"method": method, "url": url, **{k: more.pop(k) for k in ("headers", "body") if k in more}}
    return {"name": name, "type": "http", "request": request, **more}


def begin(api, tenant, *steps, input=None, **kw):
    api.workflow(tenant, "w", list(steps))
    r = api.start(tenant, "w", {"input": input}, **kw)
    assert r.status == 200, r
    return r.json["run_id"]


def run(api, tenant, *steps, **kw):
    return ended(api, tenant, begin(api, tenant, *steps, **kw))


def failure(shown):
    """The code of what made the run fail."""
    assert shown["status"] == "failed", shown
    return shown["error"]["cause"]["code"]


# --- what goes out ---

def test_a_call_carries_the_request_the_jobs_key_and_the_runs_trace(api, tenant, receiver):
    url = receiver.answers("/pay", (201, {"id": "p1"}, {"X-Request-Id": "r9"}))
    shown = run(api, tenant, http("pay", url + "?n=${input.n}", "POST", headers={"X-Amount": "${input.n}", "X-Text": "n is ${input.n}"},
                                  body={"amount": "${input.n}", "nested": [{"n": "${input.n}"}]}),
                input={"n": 5}, headers={"traceparent": TRACE})
    assert shown["status"] == "succeeded", shown
    [sent] = receiver.at("/pay")
    assert (sent.method, sent.path, sent.json) == ("POST", "/pay?n=5", {"amount": 5, "nested": [{"n": 5}]})
    assert sent.key == step(shown, "pay")["job_id"]
    expected = {"Content-Type": "application/json", "X-Amount": "5", "X-Text": "n is 5", "Accept": "*/*"}
    assert {k: sent.headers[k] for k in expected} == expected
    assert sent.headers["User-Agent"].startswith("pawl/")
    assert sent.headers["traceparent"].split("-")[1] == TRACE.split("-")[1], "the same trace"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_goes_out(api, tenant, receiver, method):
    shown = run(api, tenant, http("a", receiver.answers("/m", (200, {"ok": True})), method))
    assert shown["status"] == "succeeded", shown
    assert [s.method for s in receiver.at("/m")] == [method]
    assert shown["output"]["body"] == (None if method == "HEAD" else {"ok": True})


def test_text_with_a_type_of_its_own_goes_out_as_it_is(api, tenant, receiver):
    url = receiver.answers("/form", (200, b""))
    run(api, tenant, http("a", url, "POST", headers={"Content-Type": "application/x-www-form-urlencoded"}, body="a=1&b=${input.b}"), input={"b": 2})
    [sent] = receiver.at("/form")
    assert (sent.body, sent.headers["Content-Type"]) == (b"a=1&b=2", "application/x-www-form-urlencoded")


# --- what comes back ---

def test_a_json_answer_is_seen_by_the_steps_behind_it(api, tenant, receiver):
    url = receiver.answers("/get", (200, {"items": [{"n": 1}, {"n": 2}]}, {"X-Total": "2", "Set-Cookie": "secret=1"}))
    shown = run(api, tenant, http("get", url),
                {"name": "sum", "type": "transform", "output": {"second": "${steps.get.output.body.items[2].n}", "status": "${steps.get.output.status}",
                                                                "total": "${steps.get.output.headers['x-total']}"}})
    assert shown["output"] == {"second": 2, "status": 200, "total": "2"}
    output = step(shown, "get")["output"]
    assert output["body_encoding"] == "json" and output["headers"]["content-type"] == "application/json"
    assert "secret" not in str(shown)


@pytest.mark.parametrize("body,headers,shown_body,encoding", [
    (b"plain \xc3\xa4", {"Content-Type": "text/plain"}, "plain \u00e4", "text"),
    (b'{"a":1}', {"Content-Type": "text/plain"}, '{"a":1}', "text"),
    (b'{"a":', {"Content-Type": "application/json"}, '{"a":', "text"),
    (b'{"a":1.50}', {"Content-Type": "application/hal+json; charset=utf-8"}, {"a": 1.5}, "json"),
    (b"\x89PNG\x00\xff", {"Content-Type": "image/png"}, base64.b64encode(b"\x89PNG\x00\xff").decode(), "base64"),
    (b"a\x00b", {"Content-Type": "text/plain"}, base64.b64encode(b"a\x00b").decode(), "base64"),
    (b"", {}, None, None),
])
def test_a_body_is_json_text_or_base64(api, tenant, receiver, body, headers, shown_body, encoding):
    shown = run(api, tenant, http("a", receiver.answers("/b", (200, body, headers))))
    assert shown["status"] == "succeeded", shown
    assert (shown["output"]["body"], shown["output"].get("body_encoding")) == (shown_body, encoding)


def test_each_item_of_a_list_is_a_call_with_a_key_of_its_own(api, tenant, receiver):
    url = receiver.on("/item", lambda h, s: h.answer(200, {"double": s.json["n"] * 2}))
    shown = run(api, tenant, http("each", url, "POST", body={"n": "${item}"}, for_each="input", max_parallel=20), input=list(range(100)))
    assert shown["status"] == "succeeded", shown
    assert [o["body"]["double"] for o in shown["output"]] == [2 * n for n in range(100)]
    assert len({s.key for s in receiver.at("/item")}) == len(receiver.at("/item")) == 100


# --- what is tried again ---

def test_a_failed_attempt_is_made_again_with_the_same_key(api, tenant, receiver):
    url = receiver.answers("/flaky", (500, b"oops"), (503, b"still"), (200, {"ok": True}))
    shown = run(api, tenant, http("a", url, "POST", body={"x": 1}, retry=QUICK))
    assert shown["status"] == "succeeded" and step(shown, "a")["attempt"] == 3, shown
    sent = receiver.at("/flaky")
    assert len(sent) == 3 and {s.key for s in sent} == {step(shown, "a")["job_id"]} and {s.body for s in sent} == {b'{"x":1}'}
    types = [e["type"] for e in events(api, tenant, shown["id"])]
    assert types.count("job.dispatched") == 3 and types.count("job.retry_scheduled") == 2 and types.count("job.succeeded") == 1


def test_when_all_attempts_have_failed_the_last_error_is_kept(api, tenant, receiver):
    shown = run(api, tenant, http("a", receiver.answers("/down", (502, b"no upstream")), retry=QUICK))
    assert failure(shown) == "HTTP_502" and len(receiver.at("/down")) == 3
    assert shown["error"]["cause"]["details"] == {"status": 502, "body": "no upstream"}
    [dead] = walk(api, "/api/v1/dead-letters", tenant)
    assert dead["job_id"] == step(shown, "a")["job_id"]


def test_without_a_policy_one_attempt_is_made(api, tenant, receiver):
    shown = run(api, tenant, http("a", receiver.answers("/down", (500, b""))))
    assert failure(shown) == "HTTP_500" and len(receiver.at("/down")) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 300, 304])
def test_an_answer_that_will_not_change_is_not_asked_for_again(api, tenant, receiver, status):
    shown = run(api, tenant, http("a", receiver.answers("/no", (status, b"")), retry=QUICK))
    assert failure(shown) == f"HTTP_{status}" and len(receiver.at("/no")) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_an_answer_that_may_change_is(api, tenant, receiver, status):
    shown = run(api, tenant, http("a", receiver.answers("/later", (status, b""), (200, b"")), retry=QUICK))
    assert shown["status"] == "succeeded" and len(receiver.at("/later")) == 2, shown


def retry_delay_s(api, tenant, shown):
    """Seconds between a lost attempt and the time it was put off to, as the timeline has them."""
    e = next(e for e in events(api, tenant, shown["id"]) if e["type"] == "job.retry_scheduled")
    at, due = (datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (e["at"], e["data"]["due_at"]))
    return (due - at).total_seconds()


def test_a_receiver_may_ask_for_more_time_than_the_policy_gives(api, tenant, receiver):
    shown = run(api, tenant, http("a", receiver.answers("/busy", (429, b"", {"Retry-After": "1"}), (200, b"")), retry=QUICK))
    assert shown["status"] == "succeeded" and retry_delay_s(api, tenant, shown) == 1


@pytest.mark.parametrize("value", ["soon", "-1", "1.5", ""])
def test_a_retry_after_that_makes_no_sense_is_passed_over(api, tenant, receiver, value):
    shown = run(api, tenant, http("a", receiver.answers("/busy", (503, b"", {"Retry-After": value}), (200, b"")), retry=QUICK))
    assert shown["status"] == "succeeded" and retry_delay_s(api, tenant, shown) == 0.001


def test_a_retried_run_calls_with_the_same_key(api, tenant, receiver):
    url = receiver.answers("/mended", (404, b""), (200, {"ok": True}))
    shown = run(api, tenant, http("a", url, "POST"))
    assert failure(shown) == "HTTP_404"
    assert api.post(f"/api/v1/runs/{shown['id']}/retry", tenant=tenant).status == 200
    assert ended(api, tenant, shown["id"])["status"] == "succeeded"
    assert len({s.key for s in receiver.at("/mended")}) == 1 and len(receiver.at("/mended")) == 2


def test_an_error_that_is_handled_is_seen_behind_it(api, tenant, receiver):
    url = receiver.answers("/none", (404, b"no such order"))
    shown = run(api, tenant, http("a", url, on_error="continue"),
                {"name": "b", "type": "transform", "output": {"code": "${steps.a.error.code}", "said": "${steps.a.error.details.body}"}})
    assert shown["status"] == "succeeded" and shown["output"] == {"code": "HTTP_404", "said": "no such order"}


# --- what never arrives ---

def test_a_refused_connection_is_tried_again_and_then_told(api, tenant):
    shown = run(api, tenant, http("a", f"http://127.0.0.1:{free_port()}/", retry=QUICK))
    assert failure(shown) == "CONNECT_FAILED" and step(shown, "a")["attempt"] == 3


def test_a_connection_that_breaks_is_tried_again(api, tenant, receiver):
    def fn(handler, sent):
        if len(receiver.at("/breaks")) == 1:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            handler.close_connection = True
        else:
            handler.answer(200, {"whole": True})

    shown = run(api, tenant, http("a", receiver.on("/breaks", fn), retry=QUICK))
    assert shown["status"] == "succeeded" and shown["output"]["body"] == {"whole": True}


def test_a_slow_answer_is_given_up_after_timeout_ms(api, tenant, receiver):
    url = receiver.on("/slow", lambda h, s: receiver.gate.wait(harness.PATIENCE_S))
    shown = run(api, tenant, http("a", url, timeout_ms=100, retry={**QUICK, "max_attempts": 2}))
    assert failure(shown) == "TIMED_OUT" and step(shown, "a")["status"] == "timed_out" and len(receiver.at("/slow")) == 2


def test_a_body_that_trickles_is_given_up_too(api, tenant, receiver):
    def fn(handler, sent):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not receiver.gate.wait(0.01):
            handler.wfile.write(b"x")

    assert failure(run(api, tenant, http("a", receiver.on("/drip", fn), timeout_ms=200))) == "TIMED_OUT"


# --- redirects ---

def test_a_redirect_is_followed(api, tenant, receiver):
    receiver.answers("/new", (200, {"here": True}))
    shown = run(api, tenant, http("a", receiver.answers("/old", (307, b"", {"Location": "/new"})), "POST", body={"x": 1}))
    assert shown["output"]["body"] == {"here": True}
    [old], [new] = receiver.at("/old"), receiver.at("/new")
    assert (new.method, new.body, new.key) == ("POST", b'{"x":1}', old.key)


def test_a_redirect_loop_ends(api, tenant, receiver):
    shown = run(api, tenant, http("a", receiver.answers("/loop", (302, b"", {"Location": "/loop"})), retry=QUICK))
    assert failure(shown) == "TOO_MANY_REDIRECTS" and len(receiver.at("/loop")) == 6


def test_credentials_do_not_follow_a_redirect_to_another_host(api, tenant, receiver):
    receiver.answers("/there", (200, b""))
    url = receiver.answers("/here", (302, b"", {"Location": receiver.url("/there", host="localhost")}))
    shown = run(api, tenant, http("a", url, headers={"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Accept": "text/x"}))
    assert shown["status"] == "succeeded", shown
    [here], [there] = receiver.at("/here"), receiver.at("/there")
    assert here.headers["Authorization"] == "Bearer s3cret" and "s3cret" not in str(there.headers)
    assert there.headers["Accept"] == "text/x" and there.key == here.key


@pytest.mark.parametrize("to", ["ftp://127.0.0.1/", "file:///etc/passwd", "http://user:pass@127.0.0.1/"])
def test_a_redirect_to_what_is_no_plain_http_is_refused(api, tenant, receiver, to):
    assert failure(run(api, tenant, http("a", receiver.answers("/away", (302, b"", {"Location": to})), retry=QUICK))) == "REDIRECT_REFUSED"


# --- requests that cannot be made ---

@pytest.mark.parametrize("input", [
    {"at": ""}, {"at": "a b/"}, {"at": "user@x/"}, {"at": "x:99999/"}, {"at": "[::1/"}, {"header": "a\r\nX-Smuggled: 1"}, {"header": {"an": "object"}}])
def test_a_request_that_its_input_spoils_fails_its_step(api, tenant, receiver, input):
    receiver.answers("/ok", (200, b""))
    given = {"at": receiver.url("/ok").removeprefix("http://"), "header": "h", **input}
    shown = run(api, tenant, http("a", "http://${input.at}", headers={"X-H": "${input.header}"}, retry=QUICK), input=given)
    assert failure(shown) == "REQUEST_INVALID" and step(shown, "a")["attempt"] == 1 and not receiver.sent


@pytest.mark.parametrize("name", ["Host", "Content-Length", "Transfer-Encoding", "Connection"])
def test_headers_that_frame_the_message_cannot_be_chosen(api, tenant, receiver, name):
    shown = run(api, tenant, http("a", receiver.answers("/ok", (200, b"")), headers={name: "1"}))
    assert failure(shown) == "REQUEST_INVALID" and not receiver.sent


# --- addresses ---

@pytest.fixture(scope="module")
def strict():
    """A client of a server as it comes, which asks for keys."""
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        yield s.client(headers={"X-API-Key": harness.ROOT_KEY})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254",
                                  "192.168.1.1", "[fd00::1]", "100.64.0.1"])
def test_only_public_addresses_are_called_unless_allowed(strict, receiver, host):
    tenant = strict.tenant()
    receiver.answers("/inside", (200, b"the server's own network"))
    shown = run(strict, tenant, http("a", receiver.url("/inside", host=host)))
    assert failure(shown) == "ADDRESS_REFUSED" and not receiver.sent
    assert "--allow-private-addresses" in step(shown, "a")["error"]["message"]


def test_a_refused_address_and_an_unknown_name_cannot_be_told_apart(strict):
    tenant = strict.tenant()
    errors = [step(run(strict, tenant, http("a", f"http://{host}/", retry=QUICK)), "a")
              for host in ("localhost", "no-such-name.invalid", "169.254.169.254")]
    assert [e["attempt"] for e in errors] == [3, 3, 3]
    assert len({json.dumps(e["error"], sort_keys=True) for e in errors}) == 1, errors


def test_a_development_server_calls_loopback_and_no_other_private_address(receiver):
    with harness.server() as s:
        api = s.client()
        tenant = api.tenant()
        url = receiver.answers("/inside", (200, b""))
        assert run(api, tenant, http("a", url))["status"] == "succeeded"
        refused = step(run(api, tenant, http("a", "http://169.254.169.254/")), "a")["error"]
        assert refused["code"] == "ADDRESS_REFUSED" and "--allow-private-addresses" in refused["message"], refused


def test_a_development_server_that_others_reach_calls_public_addresses_only(receiver):
    with harness.server("--dev-insecure", "--listen", "0.0.0.0:0") as s:
        api = s.client()
        tenant = api.tenant()
        assert failure(run(api, tenant, http("a", receiver.answers("/inside", (200, b""))))) == "ADDRESS_REFUSED"


def test_a_variable_allows_them_too(receiver):
    with harness.server(env={"PAWL_ALLOW_PRIVATE_ADDRESSES": "1"}) as s:
        api = s.client()
        tenant = api.tenant()
        assert run(api, tenant, http("a", receiver.answers("/inside", (200, b""))))["status"] == "succeeded"


def test_proxies_of_the_environment_are_not_used(receiver):
    proxy = f"http://127.0.0.1:{free_port()}"
    with harness.server("--allow-private-addresses", env={"http_proxy": proxy, "https_proxy": proxy, "ALL_PROXY": proxy}) as s:
        api = s.client()
        tenant = api.tenant()
        assert run(api, tenant, http("a", receiver.answers("/direct", (200, b""))))["status"] == "succeeded"


# --- large answers ---

def peak_kib(server):
    for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_an_answer_of_a_gigabyte_is_refused_and_the_memory_stays_bounded(api, calling_server, tenant, receiver, framing):
    piece, pieces, gone = b"x" * 65536, 16384, []

    def fn(handler, sent):
        head = {"length": f"Content-Length: {len(piece) * pieces}", "chunked": "Transfer-Encoding: chunked", "close": "Connection: close"}[framing]
        handler.wfile.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        try:
            for n in range(pieces):
                handler.wfile.write(b"10000\r\n" + piece + b"\r\n" if framing == "chunked" else piece)
        finally:
            with receiver.lock:
                gone.append(n)

    url = receiver.on("/huge", fn)
    run(api, tenant, http("a", receiver.answers("/small", (200, b""))))
    before = peak_kib(calling_server)
    shown = run(api, tenant, http("a", url, for_each="input", max_parallel=8, retry=QUICK, on_error="continue"), input=list(range(8)))
    harness.wait_until(lambda: len(gone) == len(receiver.at("/huge")), "the receiver's end")
    assert max(gone) < pieces // 4, "aborted on the way"
    assert peak_kib(calling_server) - before < 64 * 1024
    dead = [api.get(f"/api/v1/jobs/{d['job_id']}", tenant=tenant).json for d in walk(api, "/api/v1/dead-letters", tenant)]
    assert [(j["error"]["code"], j["attempt"]) for j in dead] == [("RESPONSE_TOO_LARGE", 1)] * 8, shown


def test_headers_without_end_are_refused(api, tenant, receiver):
    def fn(handler, sent):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            handler.wfile.write(b"X-More: and more\r\n" * 1000)

    assert failure(run(api, tenant, http("a", receiver.on("/head", fn)))) == "RESPONSE_TOO_LARGE"


def test_an_answer_as_large_as_the_limit_is_kept(api, tenant, receiver):
    shown = run(api, tenant, http("a", receiver.answers("/limit", (200, b"y" * (1 << 20), {"Content-Type": "text/plain"}))))
    assert shown["status"] == "succeeded" and len(shown["output"]["body"]) == 1 << 20
    assert failure(run(api, tenant, http("a", receiver.answers("/past", (200, b"y" * ((1 << 20) + 1)))))) == "RESPONSE_TOO_LARGE"


# --- runs that end, and servers that do ---

def test_a_cancelled_run_takes_no_result(api, tenant, receiver):
    def fn(handler, sent):
        receiver.gate.wait(harness.PATIENCE_S)
        handler.answer(200, {"late": True})

    rid = begin(api, tenant, http("a", receiver.on("/held", fn)))
    harness.wait_until(lambda: receiver.at("/held"), "the call")
    assert api.post(f"/api/v1/runs/{rid}/cancel", tenant=tenant).status == 200
    recorded = [e["type"] for e in events(api, tenant, rid)]
    receiver.gate.set()
    # A later call is answered after the held one was: what its result could change has changed.
    assert run(api, tenant, http("b", receiver.answers("/after", (200, b""))))["status"] == "succeeded"
    shown = show(api, tenant, rid)
    assert shown["status"] == "cancelled" and step(shown, "a")["output"] is None
    assert [e["type"] for e in events(api, tenant, rid)] == recorded


def test_a_paused_run_makes_no_new_call(api, tenant, receiver):
    def fn(handler, sent):
        receiver.gate.wait(harness.PATIENCE_S)
        handler.answer(200, b"")

    receiver.answers("/second", (200, b""))
    rid = begin(api, tenant, http("a", receiver.on("/first", fn)), http("b", receiver.url("/second")))
    harness.wait_until(lambda: receiver.at("/first"), "the call")
    assert api.post(f"/api/v1/runs/{rid}/pause", tenant=tenant).status == 200
    receiver.gate.set()
    harness.wait_until(lambda: step(show(api, tenant, rid), "a")["status"] == "succeeded", "the result of a call under way")
    assert show(api, tenant, rid)["status"] == "paused" and not receiver.at("/second")
    assert api.post(f"/api/v1/runs/{rid}/resume", tenant=tenant).status == 200
    assert ended(api, tenant, rid)["status"] == "succeeded" and len(receiver.at("/second")) == 1


def held_once(receiver, count):
    """A receiver whose effect is made once for each key; the first `count` requests hear nothing back."""
    def fn(handler, sent):
        receiver.once(sent)
        if len(receiver.at("/pay")) <= count:
            receiver.gate.wait(harness.PATIENCE_S)
            handler.close_connection = True
            return
        handler.answer(200, {"paid": True})

    return receiver.on("/pay", fn)


def test_a_call_cut_off_by_kill_9_is_made_again_with_the_same_key(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        api.workflow(tenant, "w", [http("pay", held_once(receiver, 10), "POST", body={"n": "${input}"}, timeout_ms=5000)])
        runs = [api.start(tenant, "w", {"input": n}).json["run_id"] for n in range(10)]
        harness.wait_until(lambda: len(receiver.at("/pay")) == 10, "all calls under way")
        s.kill()
        s.start()
        api = s.client()
        shown = [ended(api, tenant, r) for r in runs]
    assert [r["status"] for r in shown] == ["succeeded"] * 10
    assert [step(r, "pay")["attempt"] for r in shown] == [2] * 10
    assert len(receiver.at("/pay")) == 20
    assert sorted(receiver.effects) == sorted(step(r, "pay")["job_id"] for r in shown)


def test_a_server_that_stops_keeps_what_comes_in_time_and_gives_the_rest_back(receiver):
    hold = threading.Event()

    def fn(handler, sent):
        receiver.once(sent)
        if sent.json == "slow" and len([s for s in receiver.at("/mix") if s.json == "slow"]) == 1:
            hold.wait(harness.PATIENCE_S * 2)
            handler.close_connection = True
            return
        receiver.gate.wait(harness.PATIENCE_S)
        handler.answer(200, b"")

    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        api.workflow(tenant, "w", [http("a", receiver.on("/mix", fn), "POST", body="${input}", timeout_ms=600_000)])
        quick, slow = (api.start(tenant, "w", {"input": i}).json["run_id"] for i in ("quick", "slow"))
        harness.wait_until(lambda: len(receiver.at("/mix")) == 2, "both calls")
        threading.Timer(0.2, receiver.gate.set).start()
        assert s.stop() == 0
        hold.set()
        s.start()
        api = s.client()
        assert [(r["status"], step(r, "a")["attempt"]) for r in (ended(api, tenant, quick), ended(api, tenant, slow))] == [("succeeded", 1), ("succeeded", 2)]
    assert len(receiver.effects) == 2 and len(receiver.at("/mix")) == 3
