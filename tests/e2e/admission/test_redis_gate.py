"""The gate in Redis: starts of a tenant that asks for it take a lock there. The store holds the limit, whatever becomes of Redis."""
import collections
import concurrent.futures
import contextlib
import http.client
import json
import socket
import threading

import pytest

import endpoint
import harness
import redis
from harness import together, wait_until
from inspect_store import active_runs, all_runs, assert_healthy
from nodes import each_node
from prometheus import metrics, parse

POLICIES = ["fixed", "full_jitter", "equal_jitter", "decorrelated"]
CALLERS, LIMIT = 100, 7
PATIENT = {"max_wait_ms": 120_000}
LONG = {"lock_ttl_ms": 600_000}


@pytest.fixture(scope="module")
def server():
    with redis.redis_server() as r, harness.server("--gate", r.url) as s:
        s.redis = r
        yield s


@contextlib.contextmanager
def linked():
    """A server with a Redis behind a link that can be cut."""
    with redis.redis_server() as r, redis.Link(r.port) as link, harness.server("--gate", link.url) as s:
        s.redis, s.link = r, link
        yield s


@contextlib.contextmanager
def in_background(fn):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield pool.submit(fn)


def gated(api, limit=None, **gate):
    tenant = api.tenant(max_concurrent_runs=limit, gate=gate)
    api.workflow(tenant)
    return tenant


def counted(api, name):
    return {dict(labels).popitem()[1]: int(value) for (found, labels), value in parse(metrics(api)).items() if found == name}


def lock_of(tenant):
    return f"pawl:lock:{{{tenant}}}"


def key_of(tenant, key):
    return f"pawl:key:{{{tenant}}}:{key}"


def assert_nothing_left(server, tenant):
    wait_until(lambda: not server.redis.names(f"pawl:*{tenant}*"), "every lock and reservation is given back")


def assert_exact(api, tenant, replies, limit=LIMIT):
    """As many runs as fit, each answered once; everybody else was refused, and may come back."""
    assert {r.status for r in replies} <= {200, 429, 503}, [r for r in replies if r.status not in (200, 429, 503)][:3]
    admitted = {r.json["run_id"] for r in replies if r.status == 200}
    runs = {run["id"] for run in all_runs(api, tenant)}
    assert admitted == runs and len(runs) <= limit and active_runs(api, tenant) == len(runs)
    for r in replies:
        if r.status != 200:
            assert r.json["retryable"] is True and int(r.header("Retry-After")) >= 1
    return len(runs)


def begin_start(server, tenant, key):
    """A connection whose start is not answered yet."""
    conn = endpoint.http_connection(server.port, 60)
    conn.request("POST", "/api/v1/workflows/hold/runs", json.dumps({"input": {}}),
                 {"Content-Type": "application/json", "X-Tenant-ID": tenant, "Idempotency-Key": key})
    return conn


def hang_up(conn):
    conn.sock.shutdown(socket.SHUT_RDWR)
    conn.close()


# --- let in ---

@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without keys"])
@pytest.mark.parametrize("policy", POLICIES)
def test_of_100_callers_exactly_as_many_as_fit_get_through(server, policy, keyed):
    api = server.client()
    tenant = gated(api, LIMIT, policy=policy, **PATIENT)
    replies = together(CALLERS, lambda i: api.start(tenant, key=f"k-{i}" if keyed else None))
    assert collections.Counter(r.status for r in replies) == {200: LIMIT, 429: CALLERS - LIMIT}
    assert_exact(api, tenant, replies)
    assert_nothing_left(server, tenant)
    assert_healthy(api)


def test_64_callers_of_one_key_make_one_run(server):
    api = server.client()
    tenant = gated(api, 1, **PATIENT)
    replies = together(64, lambda i: api.start(tenant, key="one"))
    assert {r.status for r in replies} == {200} and len({r.json["run_id"] for r in replies}) == 1
    assert sum(r.json["created"] for r in replies) == 1
    assert_nothing_left(server, tenant)


def test_a_rejected_start_leaves_neither_lock_nor_reservation(server):
    api = server.client()
    tenant = gated(api, 0)
    assert api.start(tenant, key="k").status == 429
    assert api.start(tenant, "no-such-workflow", key="k").status == 404
    assert api.post("/api/v1/workflows/hold/runs", {"input": {}, "idempotency_key": "k", "priority": "high"}, tenant=tenant).status == 400
    assert_nothing_left(server, tenant)
    api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 1})
    assert api.start(tenant, key="k").json["created"] is True, "the key was not remembered"


def test_a_lock_that_expires_before_the_commit_costs_nothing(server):
    api = server.client()
    tenant = gated(api, LIMIT, lock_ttl_ms=1, **PATIENT)
    replies = together(CALLERS, lambda i: api.start(tenant, key=f"k-{i}"))
    assert assert_exact(api, tenant, replies) == LIMIT
    assert_nothing_left(server, tenant)


def test_the_url_names_a_password_and_a_database():
    with redis.redis_server("--requirepass", "se/cr@t") as r, harness.server("--gate", f"redis://:se%2Fcr%40t@127.0.0.1:{r.port}/3") as s:
        api = s.client()
        assert api.start(gated(api)).status == 200
        assert api.get("/readyz").json["dependencies"]["gate"] == {"status": "ok", "kind": "redis", "detail": ""}
        assert "cr@t" not in s.log() and "cr%40t" not in s.log()


# --- made to wait ---

def test_a_start_waits_for_a_system_outside_that_has_the_lock(server):
    api = server.client()
    tenant = gated(api, **PATIENT)
    assert server.redis.do("SET", lock_of(tenant), "outside", "NX") == "OK"
    before = counted(api, "pawl_gate_requests_total")["busy"]
    with in_background(lambda: api.start(tenant, key="k")) as waiting:
        wait_until(lambda: counted(api, "pawl_gate_requests_total")["busy"] >= before + 3, "it has asked again and again")
        assert server.redis.names(f"pawl:*{tenant}*") == [key_of(tenant, "k"), lock_of(tenant)]
        assert not waiting.done()
        assert server.redis.do("DEL", lock_of(tenant)) == 1
        assert waiting.result().json["created"] is True
    assert_nothing_left(server, tenant)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_lock_that_is_not_given_up_ends_in_503_after_the_budget(server, policy):
    api = server.client()
    tenant = gated(api, max_wait_ms=50, policy=policy)
    server.redis.do("SET", lock_of(tenant), "outside")
    for key in (None, "k"):
        r = api.start(tenant, key=key)
        assert r.status == 503 and r.code == "ADMISSION_GATE_UNAVAILABLE" and int(r.header("Retry-After")) >= 1, r
    wait_until(lambda: server.redis.names(f"pawl:*{tenant}*") == [lock_of(tenant)], "the reservation is given back")
    assert server.redis.do("GET", lock_of(tenant)) == "outside"
    server.redis.do("DEL", lock_of(tenant))
    assert api.start(tenant, key="k").json["created"] is True


def test_a_key_that_another_system_has_reserved_is_in_flight(server):
    api = server.client()
    tenant = gated(api, max_wait_ms=0)
    server.redis.do("SET", key_of(tenant, "k"), "outside")
    r = api.start(tenant, key="k")
    assert r.status == 409 and r.code == "IDEMPOTENCY_IN_FLIGHT" and r.json["retryable"] is True, r
    server.redis.do("DEL", key_of(tenant, "k"))
    assert api.start(tenant, key="k").json["created"] is True


def test_a_caller_that_disconnects_leaves_no_reservation(server):
    api = server.client()
    tenant = gated(api, **PATIENT, **LONG)
    server.redis.do("SET", lock_of(tenant), "outside")
    conn = begin_start(server, tenant, "k")
    wait_until(lambda: server.redis.do("EXISTS", key_of(tenant, "k")), "the key is reserved")
    hang_up(conn)
    wait_until(lambda: not server.redis.do("EXISTS", key_of(tenant, "k")), "the reservation is given back")
    assert server.redis.do("GET", lock_of(tenant)) == "outside" and all_runs(api, tenant) == []


def test_a_server_that_drains_answers_and_leaves_nothing_behind():
    with redis.redis_server() as r, harness.server("--gate", r.url) as s:
        api = s.client()
        tenant = gated(api, **PATIENT, **LONG)
        r.do("SET", lock_of(tenant), "outside")
        with in_background(lambda: api.start(tenant, key="k")) as waiting:
            wait_until(lambda: r.do("EXISTS", key_of(tenant, "k")), "the key is reserved")
            assert s.stop() == 0
            assert waiting.result().status == 503
        assert r.names() == [lock_of(tenant)]


# --- a Redis that is lost, wiped or slow ---

def under_load(server, tenant, disturb):
    """Starts of eight callers, again and again, while Redis is disturbed; what they were answered."""
    api = server.client()
    over = threading.Event()
    replies = [[] for _ in range(8)]

    def call(i):
        while not over.is_set():
            replies[i].append(api.start(tenant, key=f"{i}-{len(replies[i])}"))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(replies))]
    for t in threads:
        t.start()
    try:
        for n in range(5):
            seen = sum(map(len, replies))
            wait_until(lambda: sum(map(len, replies)) >= seen + 20, "starts are answered")
            disturb(n)
    finally:
        over.set()
        for t in threads:
            t.join()
    return [r for some in replies for r in some]


def finish_all(api, tenant):
    while api.work(tenant):
        pass


def test_a_wiped_redis_under_load_breaks_no_limit(server):
    api = server.client()
    tenant = gated(api, LIMIT, **PATIENT)
    replies = under_load(server, tenant, lambda n: server.redis.do("FLUSHALL"))
    assert assert_exact(api, tenant, replies) == LIMIT
    assert_nothing_left(server, tenant)
    assert_healthy(api)


def test_a_killed_redis_costs_time_and_breaks_no_limit():
    with linked() as s:
        api = s.client()
        other = api.tenant()
        api.workflow(other)
        tenant = gated(api, LIMIT, max_wait_ms=100, **LONG)

        def disturb(n):
            s.redis.kill()
            wait_until(lambda: api.start(tenant).status == 503, "starts of the tenant are refused")
            assert api.start(other).status == 200, "other tenants do not need it"
            ready = [node.get("/readyz") for node in each_node(api)]
            assert {r.status for r in ready} == {200} and "failing" in {r.json["dependencies"]["gate"]["status"] for r in ready}
            s.redis.start()

        assert assert_exact(api, tenant, under_load(s, tenant, disturb)) <= LIMIT
        finish_all(api, tenant)
        wait_until(lambda: api.start(tenant).status == 200, "it goes on")
        assert_nothing_left(s, tenant)
        assert_healthy(api)


def test_cut_connections_under_load_break_no_limit():
    with linked() as s:
        api = s.client()
        tenant = gated(api, LIMIT, **PATIENT, **LONG)
        replies = under_load(s, tenant, lambda n: s.link.cut())
        assert {r.status for r in replies} == {200, 429} and assert_exact(api, tenant, replies) == LIMIT
        assert_nothing_left(s, tenant)


def test_a_lock_whose_answer_was_lost_is_given_back_long_before_it_expires():
    with linked() as s:
        api = s.client()
        tenant = gated(api, **PATIENT, **LONG)
        s.link.swallow = True
        conn = begin_start(s, tenant, "k")
        wait_until(lambda: s.redis.names(f"pawl:*{tenant}*") == [key_of(tenant, "k"), lock_of(tenant)], "Redis lets it in")
        s.link.refuse = True
        hang_up(conn)
        wait_until(lambda: counted(api, "pawl_idempotency_cleanup_failures_total")["gate_disconnect"], "it cannot be given back")
        assert s.redis.names(f"pawl:*{tenant}*") == [key_of(tenant, "k"), lock_of(tenant)]
        s.link.swallow = s.link.refuse = False
        assert_nothing_left(s, tenant)
        assert api.start(tenant, key="k").json["created"] is True


def test_a_redis_that_hangs_keeps_nobody_else_waiting():
    with linked() as s:
        api = s.client()
        other = api.tenant()
        api.workflow(other)
        tenant = gated(api, max_wait_ms=60_000)
        s.redis.pause()
        try:
            with in_background(lambda: api.start(tenant)) as waiting:
                wait_until(lambda: counted(api, "pawl_gate_requests_total")["down"], "a request was not answered")
                for _ in range(20):
                    assert api.start(other).status == 200 and not waiting.done()
                s.redis.resume()
                assert waiting.result().status == 200
        finally:
            s.redis.resume()
        assert_nothing_left(s, tenant)


# --- what others have left ---

def test_a_reservation_that_a_dead_process_left_is_swept_once_its_key_is_decided(server):
    api = server.client()
    tenant = gated(api, max_wait_ms=0)
    api.start(tenant, key="decided")
    for key in ("decided", "open"):
        server.redis.do("SET", key_of(tenant, key), "dead")
    wait_until(lambda: not server.redis.do("EXISTS", key_of(tenant, "decided")), "it is swept")
    assert server.redis.do("GET", key_of(tenant, "open")) == "dead", "its start may still be under way elsewhere"
    assert api.start(tenant, key="open").code == "IDEMPOTENCY_IN_FLIGHT"


def test_a_killed_server_blocks_its_tenant_no_longer_than_the_lock_lives():
    with redis.redis_server() as r, harness.server("--gate", r.url) as s:
        api = s.client()
        tenant = gated(api, 1, max_wait_ms=60_000, lock_ttl_ms=500)
        r.do("SET", lock_of(tenant), "outside", "PX", "600000")
        with in_background(lambda: pytest.raises((http.client.HTTPException, OSError), api.start, tenant, key="k")) as waiting:
            wait_until(lambda: r.do("EXISTS", key_of(tenant, "k")), "the key is reserved")
            s.kill()
            waiting.result()
        r.do("SET", lock_of(tenant), "the dead server's", "PX", "500")
        r.do("PEXPIRE", key_of(tenant, "k"), "500")
        s.start()
        assert s.client().start(tenant, key="k").json["created"] is True


# --- who asks for it ---

def test_only_a_tenant_with_settings_for_it_uses_the_gate(server):
    api = server.client()
    plain, store = api.tenant(), api.tenant(gate={"kind": "store"})
    for tenant in (plain, store):
        api.workflow(tenant)
        server.redis.do("SET", lock_of(tenant), "outside")
        assert api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json["gate"]["kind"] == "store"
        assert api.start(tenant).status == 200
    r = api.put(f"/api/v1/tenants/{plain}", {"gate": {"kind": "store", "max_wait_ms": 5}}, tenant=plain)
    assert r.status == 400 and r.code == "FIELD_INVALID" and "redis" in r.json["detail"], r
    assert api.put(f"/api/v1/tenants/{plain}", {"gate": {"max_wait_ms": 5}}, tenant=plain).json["gate"]["kind"] == "redis"
    assert api.start(plain).status == 503
    assert api.put(f"/api/v1/tenants/{plain}", {"gate": None}, tenant=plain).json["gate"]["kind"] == "store"
    assert api.start(plain).status == 200


def test_a_server_without_redis_refuses_what_it_cannot_do():
    with redis.redis_server() as r, harness.server("--gate", r.url) as s:
        tenant = gated(s.client())
        s.stop()
        s.flags = []
        s.start()
        api = s.client()
        refused = api.start(tenant)
        assert refused.status == 503 and refused.code == "ADMISSION_GATE_UNAVAILABLE" and "--gate" in refused.json["detail"], refused
        assert api.put(f"/api/v1/tenants/{tenant}", {"gate": {"kind": "redis", "max_wait_ms": 1}}, tenant=tenant).status == 400
        assert api.put(f"/api/v1/tenants/{tenant}", {"gate": None}, tenant=tenant).status == 200
        assert api.start(tenant).status == 200
