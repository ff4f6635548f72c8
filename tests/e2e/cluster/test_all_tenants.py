"""Requests about all tenants, on several nodes with several shards: every shard has its part in the answer."""
import json
import sys
import threading
import urllib.parse

import pytest

import endpoint
import rawhttp
from checks import assert_problem
from cli import pawl
from harness import ROOT, ROOT_KEY, wait_until
from nodes import bearer, nodes, owners, requests_waiting, tenants_of_both

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


def schema_of(server):
    return server.store.rsplit("schema=", 1)[1]


def shard_schemas(postgres, server):
    """The shards' schemas, in the order of their numbers."""
    found = postgres.rows(f"SELECT '{schema_of(server)}_' || shard FROM {schema_of(server)}.shards ORDER BY shard")
    return [name for name, in found]


def all_pages(api, path, tenant, headers=None):
    """(items, how many pages), over the pages of a list; every cursor is in the header Link too."""
    items, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        r = api.get(path + (f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""), tenant=tenant, headers=headers or {})
        assert r.status == 200, r
        items += r.json["items"]
        cursor, pages = r.json["next_cursor"], pages + 1
        link = r.header("Link") or ""
        assert (f"cursor={urllib.parse.quote(cursor, safe='~')}" in link) if cursor else link == ""
    return items, pages


# --- figures ---

def test_the_figures_of_all_tenants_are_the_sum_of_each_tenants(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        clients = [s.client() for s in servers]
        names = tenants_of_both(servers, max_concurrent_runs=1, at_limit="queue")
        for i, name in enumerate(names):
            clients[0].workflow(name)
            assert clients[0].start(name, key="k").status == 200
            assert clients[0].start(name, key="k").header("Idempotent-Replayed") == "true"
            assert clients[0].start(name).status == 200  # queued until the first one ends
            if i % 2 == 0:
                assert clients[1].work(name) and clients[1].work(name)
        each = [clients[0].get("/api/v1/stats?waits=buckets", tenant=name).json["total"] for name in names]
        for c in clients:
            r = c.get("/api/v1/stats", tenant="*")
            total = r.json["total"]
            assert total["starts"] == sum(t["starts"] for t in each) == 2 * len(names)
            assert total["replays"] == len(names) and total["outcomes"]["succeeded"] == sum(t["outcomes"]["succeeded"] for t in each)
            assert sum(m["starts"] for m in r.json["minutes"]) == total["starts"]
            assert len({m["at"] for m in r.json["minutes"]}) == len(r.json["minutes"])
            assert total["waits"]["count"] == sum(t["waits"]["count"] for t in each) > 0
            assert min(t["waits"]["p50_ms"] for t in each if t["waits"]["count"]) <= total["waits"]["p50_ms"] <= total["waits"]["p99_ms"]
            assert "buckets" not in total["waits"]
            assert sum(c.get("/api/v1/stats?waits=buckets", tenant="*").json["total"]["waits"]["buckets"]) == total["waits"]["count"]
            assert c.get("/api/v1/stats?waits=percentiles", tenant="*").json["total"] == total
            assert c.get("/api/v1/stats?waits=something", tenant="*").status == 400
            assert c.get("/api/v1/stats?minutes=0", tenant="*").status == 400
            head = c.call("HEAD", "/api/v1/stats", tenant="*")
            assert head.status == 200 and head.raw == b""


def test_figures_are_never_partial(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        first = servers[0].client()
        names = tenants_of_both(servers)
        for name in names:
            first.workflow(name)
            assert first.start(name, key="k").status == 200

        def complete():
            r = first.get("/api/v1/doctor")
            assert r.status == 200 or (r.code == "SHARD_UNAVAILABLE" and r.json["retryable"]), r
            return {c["name"]: c["checked"] for c in r.json["checks"]}["runs"] if r.status == 200 else None

        assert complete() == len(names)
        servers[1].kill()
        assert wait_until(complete, "every shard is served again", 30) == len(names)


# --- the audit trail ---

def put_workflow(api, tenant, body, headers):
    """The tenant has keys, so it is known everywhere, though no request of its own has come."""
    wait_until(lambda: api.put("/api/v1/workflows/w", body, tenant=tenant, headers=headers).status in (200, 201), "the tenant is known")


def test_the_trail_of_a_tenant_has_its_keys_and_its_workflows(postgres, tmp_path):
    with nodes(postgres, tmp_path, dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as servers:
        clients, root = [s.client() for s in servers], bearer(ROOT_KEY)
        for i in range(4):
            name, c = f"t{i}", clients[i % 2]
            for n in range(3):
                assert c.post("/api/v1/keys", {"tenant": name, "role": "viewer"}, headers=root).status in (200, 201)
                body = {"steps": [{"name": "a", "type": "task", "queue": "q", "handler": f"h{n}"}]}
                put_workflow(c, name, body, root)
            assert c.get("/api/v1/workflows", tenant="nobody", headers=root).code == "TENANT_NOT_FOUND"
            for order, limit in (("oldest", 1), ("oldest", 4), ("oldest", 200), ("newest", 2)):
                items, pages = all_pages(clients[(i + 1) % 2], f"/api/v1/audit?order={order}&limit={limit}", name, root)
                assert [e["action"] for e in items].count("key.create") == [e["action"] for e in items].count("workflow.put") == 3, items
                assert len({(e.get("shard"), e["seq"]) for e in items}) == len(items) and pages <= len(items) + 1
                times = [e["at"] for e in items]
                assert times == sorted(times, reverse=order == "newest")
            r = c.get("/api/v1/audit/verify", tenant=name, headers=root)
            assert r.json["ok"] and r.json["checked"] == len(items) and r.json["head"]["seq"] >= 3, r
            lines = [json.loads(line) for line in c.get("/api/v1/audit/export", tenant=name, headers=root).raw.splitlines()]
            assert sorted(e["hash"] for e in lines) == sorted(e["hash"] for e in items)
            assert [e["seq"] for e in lines] == [*range(1, len(lines) + 1)] or [e["seq"] for e in lines].count(1) == 2  # chain after chain
            only, _ = all_pages(c, "/api/v1/audit?action=key.*&limit=2", name, root)
            assert len(only) == 3


def test_every_chain_of_every_shard_is_verified(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        api = servers[1].client()
        names = tenants_of_both(servers)
        for name in names:
            api.workflow(name)
        checked = sum(int(n) for schema in shard_schemas(postgres, servers[0]) for (n,) in postgres.rows(f"SELECT count(*) FROM {schema}.audit"))
        r = api.get("/api/v1/audit/verify", tenant="*")
        assert r.json["ok"] and r.json["checked"] == checked >= 2 * len(names), r
        [victim] = [schema for schema in shard_schemas(postgres, servers[0])
                    if postgres.rows(f"SELECT 1 FROM {schema}.tenants WHERE id = '{names[-1]}'")]
        postgres.rows(f"UPDATE {victim}.audit SET actor = 'mallory' WHERE tenant = (SELECT num FROM {victim}.tenants WHERE id = '{names[-1]}') AND seq = 1")
        r = api.get("/api/v1/audit/verify", tenant="*")
        assert not r.json["ok"] and r.json["broken"]["tenant"] == names[-1] and r.json["checked"] == checked, r


# --- the doctor and the outbox ---

def test_the_doctor_checks_and_repairs_every_shard(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        api = servers[0].client()
        names = tenants_of_both(servers)
        for name in names:
            api.workflow(name)
            assert api.start(name, key="k").status == 200
        report = api.get("/api/v1/doctor").json
        assert report["ok"] and {c["name"]: c["checked"] for c in report["checks"]}["runs"] == len(names), report
        broken = []
        for shard, schema in enumerate(shard_schemas(postgres, servers[0])):  # an index of active runs has one that is none
            if ["1"] in postgres.rows(f"INSERT INTO {schema}.holding (tenant, run) SELECT tenant, 999999 FROM {schema}.runs LIMIT 1 RETURNING 1"):
                broken.append(shard)
        assert len(broken) > 1
        report = api.get("/api/v1/doctor").json
        found = [f for c in report["checks"] for f in c["found"]]
        assert not report["ok"] and sorted({f["shard"] for f in found}) == broken, report
        repair = servers[1].client().post("/api/v1/doctor/repair", {})
        assert repair.status == 200 and repair.json["ok"] and repair.json["repaired"] >= len(broken), repair
        assert api.get("/api/v1/doctor").json["ok"]
        repairs, _ = all_pages(api, "/api/v1/audit?action=doctor.repair&limit=3", "*")
        assert sorted(e["shard"] for e in repairs) == broken
        lines = api.get("/api/v1/audit/export?action=doctor.repair", tenant="*").raw.splitlines()
        assert [json.loads(line)["hash"] for line in lines] == [e["hash"] for e in sorted(repairs, key=lambda e: e["shard"])]


def test_shards_take_turns_to_give_jobs_to_a_worker_for_all_tenants(postgres, tmp_path):
    """Whatever node it talks to, and however much work that node has itself."""
    with nodes(postgres, tmp_path) as servers:
        api = servers[0].client()
        tenants = tenants_of_both(servers)
        for tenant in tenants:
            api.workflow(tenant)
            for _ in range(20):
                assert api.start(tenant).status == 200
        claim = {"worker_id": "w", "queues": ["default"], "lease_ms": 600_000}
        claimed = [api.post("/api/v1/jobs/claim", claim, tenant="*").json["jobs"][0]["tenant"] for _ in range(5 * len(tenants))]
        assert set(claimed) == set(tenants)


def test_a_claim_for_all_tenants_gets_jobs_of_every_shard_that_has_some(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        api = servers[0].client()
        tenants = tenants_of_both(servers)
        for tenant in tenants:
            api.workflow(tenant)
            for _ in range(len(tenants)):
                assert api.start(tenant).status == 200
        count = min(8 * len(tenants), 100)  # as many as a claim may ask for
        jobs = api.post("/api/v1/jobs/claim", {"worker_id": "w", "max": count}, tenant="*").json["jobs"]
        assert len(jobs) == count and {job["tenant"] for job in jobs} == set(tenants)


def no_shard_is_served(server):
    assert pawl("cluster", "drain", "n0", "--store", server.store).code == 0
    wait_until(lambda: set(owners(server)) == {None}, "no shard is served")


def test_a_claim_for_all_tenants_is_refused_while_no_shard_is_served(postgres, tmp_path):
    with nodes(postgres, tmp_path, count=1) as (server,):
        api = server.client()
        no_shard_is_served(server)
        for body in ({"worker_id": "w"}, {"worker_id": "w", "max": 8, "wait_ms": 20000}, {"no": "claim"}):
            assert_problem(api.post("/api/v1/jobs/claim", body, tenant="*"), 503, "SHARD_UNAVAILABLE", retryable=True)


def test_a_claim_for_all_tenants_that_waits_gets_a_job_after_all_shards_were_away(postgres, tmp_path):
    with nodes(postgres, tmp_path, count=1) as (server,):
        api, replies = server.client(), []
        tenant = api.tenant()
        api.workflow(tenant)
        claiming = threading.Thread(target=lambda: replies.append(api.post("/api/v1/jobs/claim", {"worker_id": "w", "wait_ms": 30000}, tenant="*")))
        claiming.start()
        wait_until(lambda: requests_waiting([server]), "it waits")
        no_shard_is_served(server)
        for _ in range(20):
            assert api.get("/healthz").status == 200
        assert not replies
        assert pawl("cluster", "drain", "n0", "--undo", "--store", server.store).code == 0
        run = wait_until(lambda: api.start(tenant, key="k").json.get("run_id"), "its shard is served again")
        claiming.join()
        assert [job["run_id"] for job in replies[0].json["jobs"]] == [run], replies


def test_a_node_that_stops_answers_claims_for_all_tenants_that_wait(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        api, replies = servers[0].client(), []
        claiming = threading.Thread(target=lambda: replies.append(api.post("/api/v1/jobs/claim", {"worker_id": "w", "wait_ms": 30000}, tenant="*")))
        claiming.start()
        wait_until(lambda: requests_waiting(servers), "it waits")
        assert servers[0].stop() == 0
        claiming.join()
        assert replies[0].json == {"jobs": []}, replies


def test_jobs_of_a_claim_for_all_tenants_that_the_client_did_not_get_are_given_back(postgres, tmp_path):
    """It leaves within an answer that is larger than what the kernel takes."""
    with nodes(postgres, tmp_path) as servers:
        api = servers[0].client()
        for tenant in tenants_of_both(servers):
            api.workflow(tenant)
            runs = {api.start(tenant, body={"input": "x" * 1_000_000}).json["run_id"] for _ in range(5)}
            claim = {"worker_id": "gone", "max": 100, "lease_ms": 3_600_000}
            with endpoint.connect(servers[0].port, receive_buffer=4096) as s:
                s.sendall(rawhttp.json_request("POST", "/api/v1/jobs/claim", claim, headers=["X-Tenant-ID: *"]))
                assert s.recv(1000).startswith(b"HTTP/1.1 200 ")
            jobs = []
            wait_until(lambda t=tenant: jobs.extend(api.post("/api/v1/jobs/claim", {"worker_id": "w", "max": 5}, tenant=t).json["jobs"]) or len(jobs) == 5,
                       "another worker gets them all")
            assert {job["run_id"] for job in jobs} == runs and {job["attempt"] for job in jobs} == {1}


def test_the_record_of_an_idempotency_key_is_found_whatever_shard_answered_its_request(postgres, tmp_path):
    """API keys are made and revoked in shard 0, everything else of a tenant in its own."""
    with nodes(postgres, tmp_path) as servers:
        api = servers[0].client()
        for tenant in tenants_of_both(servers):
            made = api.post("/api/v1/keys", {"tenant": tenant, "role": "viewer"}, key="first", tenant=tenant)
            assert api.put("/api/v1/workflows/w", {"steps": [{"name": "a", "type": "task", "handler": "h"}]}, key="own", tenant=tenant).status == 200
            for key, path in (("first", "/api/v1/keys"), ("own", "/api/v1/workflows/w")):
                record = f"/api/v1/idempotency-keys/{key}"
                assert made.status == 200 and api.get(record, tenant=tenant).json["route"] == path
                assert api.delete(record, tenant=tenant).status == 200
                assert api.get(record, tenant=tenant).code == api.delete(record, tenant=tenant).code == "IDEMPOTENCY_KEY_NOT_FOUND"


def test_a_node_says_how_many_events_of_all_its_shards_wait_for_the_bus(postgres, tmp_path):
    with nodes(postgres, tmp_path, env={"PAWL_BUS": "nats://127.0.0.1:1"}) as servers:
        api = servers[0].client()
        tenants = tenants_of_both(servers)
        for tenant in tenants:
            api.workflow(tenant)
            assert api.start(tenant).status == 200
        timelines = [api.get(f"/api/v1/runs/{run['id']}/events", tenant=tenant).json["items"] for tenant in tenants for run in api.get("/api/v1/runs", tenant=tenant).json["items"]]
        said = lambda: sum(s.client().get("/readyz").json["dependencies"]["bus"]["waiting"] for s in servers)
        wait_until(lambda: said() == sum(map(len, timelines)), "all of them wait")


def test_the_outbox_of_all_tenants_is_one_list(postgres, tmp_path):
    with nodes(postgres, tmp_path) as servers:
        clients = [s.client() for s in servers]
        tenants_of_both(servers)
        expected = []
        for shard, schema in enumerate(shard_schemas(postgres, servers[0])):
            for n in range(3):
                at = 1_700_000_000_000 + 10 * n + shard
                tenant = f"COALESCE((SELECT min(num) FROM {schema}.tenants), 0)"
                postgres.rows(f"INSERT INTO {schema}.parked (feed, seq, offer, message_id, tenant, run, type, reason, attempts, at)"
                              f" VALUES ({n}, 0, 0, 'm{shard}-{n}', {tenant}, 0, 'run.created', 'too large', 1, {at})")
                expected.append((at, f"m{shard}-{n}"))
        found, _ = all_pages(clients[0], "/api/v1/outbox?limit=200", "*")
        shown = [m["message_id"] for m in found]
        assert shown == [m for _, m in sorted(expected) if m in shown] and len(shown) > 3
        assert all_pages(clients[1], "/api/v1/outbox?limit=4", "*")[0] == found
        for message in shown[:2] + shown[-1:]:
            assert clients[1].post(f"/api/v1/outbox/{message}/retry", {}, tenant="*").json == {"message_id": message, "retrying": True}
        again, _ = all_pages(clients[0], "/api/v1/outbox?limit=5", "*")
        assert [m["message_id"] for m in again if m["retrying"]] == [m for m in shown if m in shown[:2] + shown[-1:]]
        assert clients[0].post("/api/v1/outbox/nothing/retry", {}, tenant="*").status == 404
        assert clients[0].get("/api/v1/outbox", tenant="*").json["depth"] >= 0
