"""Any node of a cluster answers any request: it forwards those of tenants whose shards another node has."""
import contextlib
import http.client
import json
import signal
import ssl
import sys
import threading
import uuid

import pytest

import rawhttp
from endpoint import make_certificate
from harness import ROOT, ROOT_KEY, Server, together, wait_until
from nodes import bearer, is_settled, nodes, owners, requests_waiting, tenants_of_both

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


def test_every_node_answers_for_every_tenant(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        for tenant in tenants_of_both(servers):
            first, second = (s.client() for s in servers)
            first.workflow(tenant)
            assert first.start(tenant, key="k").json["created"] is True
            again = second.start(tenant, key="k")
            assert again.json["created"] is False and again.header("Idempotent-Replayed") == "true"
            assert second.work(tenant)
            run = again.json["run_id"]
            assert [c.get(f"/api/v1/runs/{run}", tenant=tenant).json["status"] for c in (first, second)] == ["succeeded"] * 2
            assert first.get("/api/v1/runs/nothing", tenant=tenant).code == second.get("/api/v1/runs/nothing", tenant=tenant).code == "RUN_NOT_FOUND"


def test_callers_of_one_key_on_three_nodes_make_one_run(postgres, tmp_path):
    with nodes(postgres, tmp_path, count=3) as servers:
        clients = [s.client() for s in servers]
        tenant = clients[0].tenant()
        clients[0].workflow(tenant)
        replies = together(64, lambda i: clients[i % 3].start(tenant, key="one"))
        assert {r.status for r in replies} == {200}
        assert len({r.json["run_id"] for r in replies}) == 1
        assert sum(r.json["created"] for r in replies) == 1


def test_limits_are_exact_over_three_nodes(postgres, tmp_path):
    with nodes(postgres, tmp_path, count=3) as servers:
        clients = [s.client() for s in servers]
        names = [clients[0].tenant(max_concurrent_runs=7) for _ in range(20)]
        for name in names:
            clients[0].workflow(name)
        replies = together(1000, lambda i: (names[i % 20], clients[i % 3].start(names[i % 20], key=f"k{i}")))
        for name in names:
            got = [r for tenant, r in replies if tenant == name]
            assert sorted(r.status for r in got) == [200] * 7 + [429] * (len(got) - 7)


def test_a_large_body_and_a_large_answer_travel(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        text = "x" * 900_000
        for tenant in tenants_of_both(servers, 6):
            first, second = (s.client() for s in servers)
            first.workflow(tenant)
            for i in range(2):
                assert first.start(tenant, body={"input": {"text": text, "i": i}}, key=f"k{i}").status == 200
            page = second.get("/api/v1/runs", tenant=tenant)
            assert page.status == 200
            runs = [second.get(f"/api/v1/runs/{r['id']}", tenant=tenant).json for r in page.json["items"]]
            assert all(r["input"]["text"] == text for r in runs)


def read_events(server, path, tenant, seen, opened):
    conn = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    conn.request("GET", path, headers={"X-Tenant-ID": tenant, "Accept": "text/event-stream"})
    response = conn.getresponse()
    opened.set()
    while len(seen) < 3:
        line = response.readline().decode()
        if not line:
            return
        if line.startswith("event:"):
            seen.append(line.split(":", 1)[1].strip())
    conn.close()


def test_events_stream_from_the_node_that_has_the_tenant(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        for tenant in tenants_of_both(servers, 4):
            api = servers[0].client()
            api.workflow(tenant)
            streams = []
            for s in servers:
                seen, opened = [], threading.Event()
                thread = threading.Thread(target=read_events, args=(s, "/api/v1/events", tenant, seen, opened))
                thread.start()
                assert opened.wait(30)
                streams.append((thread, seen))
            assert api.start(tenant, key="k").status == 200
            assert servers[1].client().work(tenant)
            for thread, _ in streams:
                thread.join(30)
            assert len(streams[0][1]) == 3 and streams[0][1] == streams[1][1]


def test_a_waiting_claim_gets_the_job_that_comes(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        for tenant in tenants_of_both(servers, 4):
            clients = [s.client() for s in servers]
            clients[0].workflow(tenant)
            got = []
            workers = [threading.Thread(target=lambda c=c: got.append(c.work(tenant, wait_ms=20000))) for c in clients]
            for w in workers:
                w.start()
            for i in range(2):
                assert clients[i].start(tenant, key=f"k{i}").status == 200
            for w in workers:
                w.join(40)
            assert len(got) == 2 and all(got) and got[0]["job_id"] != got[1]["job_id"]


def test_a_worker_for_all_tenants_gets_the_jobs_of_all_shards(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        clients = [s.client() for s in servers]
        names = tenants_of_both(servers, 6)
        for name in names:
            clients[0].workflow(name)
            assert clients[0].start(name, key="k").status == 200
        done = set()
        for i in range(len(names)):
            r = clients[i % 2].post("/api/v1/jobs/claim", {"worker_id": "w", "wait_ms": 10000}, tenant="*")
            assert r.status == 200 and len(r.json["jobs"]) == 1, r
            job = r.json["jobs"][0]
            end = clients[(i + 1) % 2].post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant="*")
            assert end.status == 200, end
            done.add(job["tenant"])
        assert done == set(names)
        assert clients[0].post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant="*").json == {"jobs": []}
        assert clients[0].post(f"/api/v1/jobs/{uuid.uuid4()}/complete", {"lease_token": "x"}, tenant="*").code == "JOB_NOT_FOUND"


def test_a_batch_of_a_worker_for_all_tenants_reaches_every_shard(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        clients = [s.client() for s in servers]
        names = tenants_of_both(servers, 6)
        jobs = []
        for name in names:
            clients[0].workflow(name)
            assert clients[0].start(name, key="k").status == 200
            jobs += clients[0].post("/api/v1/jobs/claim", {"worker_id": "w"}, tenant=name).json["jobs"]
        items = [{"job_id": j["job_id"], "lease_token": j["lease_token"]} for j in jobs]
        items.insert(3, {"job_id": str(uuid.uuid4()), "lease_token": "x"})
        r = clients[1].post("/api/v1/jobs:complete", {"items": items, "claim": {"worker_id": "w"}}, tenant="*")
        assert [x.get("code") for x in r.json["results"]] == [None] * 3 + ["JOB_NOT_FOUND"] + [None] * (len(names) - 3), r
        assert [x["job_id"] for x in r.json["results"]] == [x["job_id"] for x in items] and r.json["jobs"] == []
        for name in names:
            assert clients[1].get("/api/v1/runs", tenant=name).json["items"][0]["status"] == "succeeded"


def test_the_list_of_tenants_walks_the_shards(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        names = tenants_of_both(servers)
        api, cursor, found = servers[1].client(), None, []
        while True:
            page = api.get("/api/v1/tenants?limit=3" + (f"&cursor={cursor}" if cursor else ""))
            assert page.status == 200 and len(page.json["items"]) <= 3, page
            found += [t["id"] for t in page.json["items"]]
            cursor = page.json["next_cursor"]
            assert (f"cursor={cursor}>" in (page.header("Link") or "")) == (cursor is not None)
            if cursor is None:
                break
        assert sorted(found) == sorted(names)


def test_a_key_is_known_everywhere_and_a_revoked_one_nowhere(postgres, tmp_path):
    with nodes(postgres, tmp_path, dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as servers:
        clients = [s.client() for s in servers]
        root = bearer(ROOT_KEY)
        for i in range(6):
            made = clients[i % 2].post("/api/v1/keys", {"tenant": f"t{i}", "role": "operator"}, headers=root)
            assert made.status in (200, 201), made
            key, key_id = bearer(made.json["key"]), made.json["id"]
            for c in clients:
                wait_until(lambda c=c: c.get("/api/v1/runs", headers=key).status == 200, "the key is known")
            assert clients[(i + 1) % 2].delete(f"/api/v1/keys/{key_id}", headers=root).status == 200
            for c in clients:
                wait_until(lambda c=c: c.get("/api/v1/runs", headers=key).status == 401, "the key is revoked")
        assert clients[0].get("/api/v1/runs", headers=bearer("pawl_nobody")).code == "UNAUTHENTICATED"


def test_a_session_that_was_signed_out_ends_on_every_node(postgres, tmp_path):
    page = {"Sec-Fetch-Site": "same-origin"}
    with nodes(postgres, tmp_path, dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as servers:
        for i in range(2):  # one of them serves shard 0
            signed_in = servers[i].client().post("/api/v1/sessions", {"key": ROOT_KEY}, headers=page)
            assert signed_in.status == 200, signed_in
            cookie = {**page, "Cookie": signed_in.header("Set-Cookie").split(";")[0]}
            people = [s.client(headers=cookie) for s in servers]
            assert [p.get("/api/v1/tenants").status for p in people] == [200, 200]
            assert people[i].delete("/api/v1/sessions").status == 200
            for p in people:
                wait_until(lambda p=p: p.get("/api/v1/tenants").status == 401, "the session has ended")


def test_a_forwarded_body_of_a_browser_must_say_that_it_is_json(postgres, tmp_path):
    """A page of another site can send a form, but no JSON without asking first; the node that answers does not see the session."""
    with nodes(postgres, tmp_path, dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as servers:
        for name in ("one", "two", "three", "four"):
            root = servers[0].client(headers=bearer(ROOT_KEY))
            key = root.post("/api/v1/keys", {"tenant": name, "role": "admin"}).json["key"]
            page = {"Sec-Fetch-Site": "same-origin"}
            cookie = wait_until(lambda k=key: servers[0].client().post("/api/v1/sessions", {"key": k}, headers=page).header("Set-Cookie"), "the key is known")
            with rawhttp.Wire(servers[0].port) as wire:
                wire.send(f"PUT /api/v1/workflows/w HTTP/1.1\r\nHost: x\r\nCookie: {cookie.split(';')[0]}\r\nSec-Fetch-Site: same-origin\r\n"
                          "Content-Length: 2\r\n\r\n{}".encode())
                assert wire.answer().status == 415


def test_a_run_whose_client_sent_no_trace_begins_one_with_its_own_id(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        for tenant in tenants_of_both(servers, 4):
            api = servers[0].client()
            api.workflow(tenant)
            run = api.start(tenant, headers={"tracestate": "foo=1"}).json["run_id"]
            job = api.work(tenant)
            assert job["traceparent"].split("-")[1] == run.replace("-", "") and job.get("tracestate") is None
            trace = "0af7651916cd43dd8448eb211c80319c"
            api.start(tenant, headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01", "tracestate": "foo=1"})
            job = api.work(tenant)
            assert job["traceparent"].split("-")[1] == trace and job["tracestate"] == "foo=1"


def test_a_problem_names_the_trace_of_its_response(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        for tenant in tenants_of_both(servers, 4):
            r = servers[0].client().get("/api/v1/runs/nothing", tenant=tenant)
            assert r.json["trace_id"] == r.header("X-Trace-Id")


def test_head_says_how_long_the_answer_of_another_node_is(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        for tenant in tenants_of_both(servers):
            with rawhttp.Wire(servers[0].port) as wire:
                lengths = []
                for method in ("GET", "HEAD"):
                    wire.send(rawhttp.request(method, "/api/v1/runs", headers=[f"X-Tenant-ID: {tenant}"]))
                    lengths.append(wire.answer(head_only=method == "HEAD").header("Content-Length"))
                assert lengths[0] == lengths[1] is not None


def test_a_tenant_that_has_only_a_key_yet_is_shown_whatever_shard_it_is_in(postgres, tmp_path):
    with nodes(postgres, tmp_path, dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as servers:
        root = servers[0].client(headers=bearer(ROOT_KEY))
        for name in (f"t{n}" for n in range(8)):
            key = root.post("/api/v1/keys", {"tenant": name, "role": "admin"}).json["key"]
            own = servers[0].client(headers=bearer(key))
            for client in (own, root):
                wait_until(lambda c=client: c.get("/api/v1/me").status == 200, "the key is known")
                assert client.get(f"/api/v1/tenants/{name}").json["id"] == name
                assert client.get(f"/api/v1/tenants/{name}/settings").status == 200
            assert own.get("/api/v1/tenants/nobody").code == root.get("/api/v1/tenants/nobody").code == "TENANT_NOT_FOUND"


class SecureServer(Server):
    """Accepts only clients that have the certificate that it has itself."""
    def client(self, **kw):
        c, (cert, key) = super().client(**kw), (self.flags[self.flags.index(name) + 1] for name in ("--tls-cert", "--tls-key"))
        context = ssl.create_default_context(cafile=cert)
        context.load_cert_chain(cert, key)
        c.local.conn = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=c.timeout, context=context)
        return c


def test_nodes_forward_over_tls_to_nodes_that_their_authority_names(postgres, tmp_path):
    cert, key = make_certificate(tmp_path, "ours")
    other, _ = make_certificate(tmp_path, "other")
    flags = ["--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert, "--node-ca"]
    with nodes(postgres, tmp_path, *flags, cert, kind=SecureServer, tls=False) as servers:
        tenants = tenants_of_both(servers)
        for tenant in tenants:
            servers[0].client().workflow(tenant)
            assert [s.client().start(tenant, key="k").json["created"] for s in servers] == [True, False]

        servers[1].stop()
        servers[1].flags[-1] = other
        servers[1].start()
        wait_until(lambda: all(is_settled(s, 2) for s in servers), "both have their share again")
        answers = [servers[1].client().start(tenant, key="k2") for tenant in tenants]
        assert {r.code for r in answers if r.status != 200} == {"SHARD_UNAVAILABLE"}
        again = [servers[0].client().start(tenant, key="k2") for tenant in tenants]
        assert [r.json["created"] for r in again] == [r.status != 200 for r in answers]  # what was not forwarded was not done


def test_a_node_answers_for_all_tenants_whatever_its_certificate_and_its_address_say(postgres, tmp_path):
    """It asks itself for its own shards: not by the address that others use, and without an authority."""
    cert, key = make_certificate(tmp_path, "ours")
    with nodes(postgres, tmp_path, "--tls-cert", cert, "--tls-key", key, "--advertise", "https://pawl.invalid", count=1, kind=SecureServer, tls=False) as (server,):
        api = server.client()
        names = {api.tenant() for _ in range(3)}
        for tenant in names:
            api.workflow(tenant)
            api.start(tenant)
        jobs = api.post("/api/v1/jobs/claim", {"worker_id": "w1", "max": 3}, tenant="*").json["jobs"]
        assert {job["tenant"] for job in jobs} == names
        assert api.get("/api/v1/stats", tenant="*").json["total"]["starts"] == 3 and api.get("/api/v1/doctor", tenant="*").json["ok"]


def test_a_request_that_claims_to_be_forwarded_is_refused(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        api = servers[0].client()
        for token in ("x", "a 1 1 0 4 15 Kg - - AAAA", ""):
            r = api.get("/api/v1/runs", tenant="t", headers={"X-Pawl-Forwarded": token})
            assert r.status == 401 and r.code == "UNAUTHENTICATED", (token, r)


def test_a_node_that_stops_waits_for_requests_in_progress_and_answers_them(postgres, tmp_path):
    """By then the other one has its shards."""
    with nodes(postgres, tmp_path) as servers, contextlib.ExitStack() as stack:
        leaving, staying = servers
        wires = []
        for tenant in tenants_of_both(servers, 4):
            leaving.client().workflow(tenant)
            head = [f"X-Tenant-ID: {tenant}", "Content-Type: application/json", "Content-Length: 2", "Expect: 100-continue"]
            wires.append(stack.enter_context(rawhttp.Wire(leaving.port)))
            wires[-1].send(rawhttp.request("POST", "/api/v1/workflows/hold/runs", headers=head))
            assert wires[-1].answer().status == 100  # the head is in, the body is awaited
        leaving.process.send_signal(signal.SIGTERM)
        wait_until(lambda: set(owners(staying)) == {"n1"}, "the other node has all shards")
        for wire in wires:
            assert leaving.process.poll() is None, "a request is in progress"
            wire.send(b"{}")
            reply = wire.answer()
            assert reply.status == 200 and reply.header("Connection") == "close" and wire.closed(), reply
        assert leaving.ended() == 0


def is_refused(port):
    try:
        rawhttp.Wire(port).sock.close()
        return False
    except ConnectionRefusedError:
        return True


def test_a_node_that_stops_answers_the_claims_that_wait_at_other_nodes(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        first, second = (s.client() for s in servers)
        tenants, replies = tenants_of_both(servers), []
        claim = {"worker_id": "w", "wait_ms": 30000}
        waiting = [threading.Thread(target=lambda t=t: replies.append(first.post("/api/v1/jobs/claim", claim, tenant=t))) for t in tenants]
        for thread in waiting:
            thread.start()
        wait_until(lambda: requests_waiting(servers) == len(tenants), "all of them wait")
        assert servers[0].stop() == 0
        for thread in waiting:
            thread.join()
        assert [r.json for r in replies] == [{"jobs": []}] * len(tenants), replies
        for tenant in tenants:  # nobody waits there any more
            wait_until(lambda t=tenant: second.put("/api/v1/workflows/hold", {"steps": [{"name": "a", "type": "task", "handler": "h"}]}, tenant=t).status == 200, "it is served")
            assert second.start(tenant).status == 200
            jobs = second.post("/api/v1/jobs/claim", claim, tenant=tenant).json["jobs"]
            assert [job["attempt"] for job in jobs] == [1]


def test_the_last_node_answers_requests_in_progress_before_it_stops(postgres, tmp_path):
    """As a server with a file does: it refuses what changes something, and leaves no key behind."""
    with nodes(postgres, tmp_path, count=1) as [last], contextlib.ExitStack() as stack:
        last.client().workflow("t")
        known = last.client().start("t", key="known").json["run_id"]
        head = ["X-Tenant-ID: t", "Content-Type: application/json", "Content-Length: 2", "Expect: 100-continue"]
        validate, start, _ = wires = [stack.enter_context(rawhttp.Wire(last.port)) for _ in range(3)]
        for wire, path in zip(wires, ("validate", "runs", "runs")):
            wire.send(rawhttp.request("POST", f"/api/v1/workflows/hold/{path}", headers=[*head, *(["Idempotency-Key: k"] if path == "runs" else [])]))
            assert wire.answer().status == 100
        last.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_refused(last.port), "it drains")
        for wire, status in ((validate, 200), (start, 503)):
            wire.send(b"{}")
            reply = wire.answer()
            assert reply.status == status and reply.header("Connection") == "close", reply
        assert reply.json["code"] == "SHUTTING_DOWN" and int(reply.header("Retry-After")) >= 1
        assert last.process.poll() is None, "a request is in progress"
        last.process.send_signal(signal.SIGTERM)
        assert last.ended() == 0
        last.start()
        wait_until(lambda: None not in owners(last), "its shards are served")
        assert [last.client().start("t", key=key).json["created"] for key in ("known", "k")] == [False, True]
        assert last.client().start("t", key="known").json["run_id"] == known


def test_a_node_that_dies_is_replaced_and_nothing_is_lost(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        first, second = (s.client() for s in servers)
        names = tenants_of_both(servers)
        for name in names:
            first.workflow(name)
            assert first.start(name, key="k").status == 200
        servers[1].kill()
        for name in names:
            again = wait_until(lambda name=name: answered(first, name), "another node serves the shard", 20)
            assert again.json["created"] is False
        assert json.loads(first.get("/readyz").raw)["status"] == "ready"


def answered(client, tenant):
    r = client.start(tenant, key="k")
    assert r.status == 200 or (r.status == 503 and r.json["retryable"]), r
    return r if r.status == 200 else None
