"""Several nodes on one database: who owns which shard, when nodes come, stop, die and are paused."""
import collections
import contextlib
import datetime
import http.client
import json
import os
import re
import signal
import sys
import threading
import time
import uuid

import psycopg2
import pytest

import endpoint
from cli import pawl
from harness import PATIENCE_S, ROOT, Server, server, together, wait_until
from nats import nats_server

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

SHARDS = 4
SERVED_AGAIN_S = 10  # after the death of an owner: its lease of 5 s, and some for a busy machine


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


class Nodes:
    """Nodes of one cluster, by name."""

    def __init__(self, store, folder, shards=SHARDS):
        self.store, self.folder, self.shards, self.flags, self.by_name = store, folder, shards, [], {}

    def start(self, *names):
        for name in names:
            (self.folder / name).mkdir(exist_ok=True)
            node = self.by_name.get(name) or Server(self.folder / name, "--node", name, *self.flags, store=self.store)
            self.by_name[name] = node.start()

    def running(self):
        return [n for n in self.by_name.values() if n.process is not None]

    def cluster(self, name):
        return self.by_name[name].client().get("/api/v1/cluster").json

    def owners(self, name):
        """{shard: owner}, as this node knows it; only those that are served."""
        return {s["shard"]: s["owner"] for s in self.cluster(name)["shards"] if s["state"] == "serving"}

    def metric(self, name, series):
        text = self.by_name[name].client().get("/metrics").raw.decode()
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{series} "))

    def settle(self, *names):
        """Waits until these nodes, and no others, serve all shards, evenly, and all of them know it."""
        def even():
            views = [self.owners(name) for name in names]
            count = collections.Counter(views[0].values())
            return (all(v == views[0] for v in views) and len(views[0]) == self.shards and set(count) == set(names)
                    and max(count.values()) - min(count.values()) <= 1)
        wait_until(even, f"{names} share the shards", max(SERVED_AGAIN_S * 2, PATIENCE_S))

    def call(self, send):
        """What one of the nodes answers that can."""
        def answered():
            for node in self.running():
                try:
                    r = send(node.client())
                except (OSError, http.client.HTTPException):  # it was killed meanwhile
                    continue
                if r.status != 503:
                    return r
                assert r.json["retryable"], r
            return None
        return wait_until(answered, "some node answers", SERVED_AGAIN_S * 2)

    def tenant(self, **settings):
        name = "t-" + uuid.uuid4().hex[:12]
        assert self.call(lambda api: api.put(f"/api/v1/tenants/{name}", settings, tenant=name)).status == 200
        steps = [{"name": "work", "type": "task", "handler": "noop"}]
        assert self.call(lambda api: api.put("/api/v1/workflows/hold", {"steps": steps}, tenant=name)).status == 200
        return name

    def begin(self, tenant, key):
        return self.call(lambda api: api.start(tenant, key=key))


@pytest.fixture
def nodes(postgres, tmp_path):
    store = f"{postgres.url}&schema=c{uuid.uuid4().hex[:20]}"
    r = pawl("cluster", "init", "--shards", str(SHARDS), "--store", store)
    assert r.code == 0 and f"has {SHARDS} shards" in r.out, r
    made = Nodes(store, tmp_path)
    yield made
    for n in made.running():
        n.process.send_signal(signal.SIGCONT)
        n.close()


def test_a_cluster_keeps_its_number_of_shards(nodes):
    r = pawl("cluster", "init", "--shards", "9", "--store", nodes.store)
    assert r.code == 0 and r.out == f"The database is a cluster already, with {SHARDS} shards.\n", r
    nodes.start("n1")
    assert len(nodes.cluster("n1")["shards"]) == SHARDS


def test_nodes_that_start_at_once_on_an_empty_database_make_one_cluster(postgres, tmp_path):
    made = Nodes(f"{postgres.url}&schema=c{uuid.uuid4().hex[:20]}", tmp_path, shards=16)
    names = ["n1", "n2", "n3"]
    try:
        together(3, lambda i: made.start(names[i]))
        logs = [made.by_name[name].log() for name in names]
        assert sum("initialized the cluster shards=16" in log for log in logs) == 1, logs
        made.settle(*names)
    finally:
        for n in made.running():
            n.close()


def test_shards_are_shared_when_nodes_come_and_handed_over_when_they_stop(nodes):
    nodes.start("n1")
    tenants = [nodes.tenant() for _ in range(8)]
    runs = {t: nodes.begin(t, "k").json["run_id"] for t in tenants}
    nodes.settle("n1")
    nodes.start("n2")
    nodes.settle("n1", "n2")
    nodes.start("n3")
    nodes.settle("n1", "n2", "n3")
    assert nodes.by_name["n1"].stop() == 0
    nodes.settle("n2", "n3")
    assert {t: nodes.begin(t, "k").json["run_id"] for t in tenants} == runs
    ready = nodes.by_name["n2"].client().get("/readyz").json
    assert ready["node"] == "n2" and {s["owner"] for s in ready["shards"]} == {"n2", "n3"}


def test_shards_move_between_nodes_that_publish_to_a_bus(nodes):
    with nats_server() as nats:
        nodes.flags = ["--bus", nats.url]
        nodes.start("n1", "n2")
        nodes.settle("n1", "n2")
        assert nodes.by_name["n2"].stop() == 0
        nodes.settle("n1")
        assert nodes.by_name["n1"].stop() == 0


def test_the_shards_of_a_node_that_was_killed_are_served_again_and_nothing_is_lost(nodes):
    nodes.start("n1", "n2")
    nodes.settle("n1", "n2")
    tenants = [nodes.tenant() for _ in range(6)]
    acknowledged, stopping = {}, threading.Event()

    def load(tenant):
        for n in range(10**6):
            if stopping.is_set():
                return
            acknowledged[tenant, f"{n}"] = nodes.begin(tenant, f"{n}").json["run_id"]

    threads = [threading.Thread(target=load, args=(t,)) for t in tenants]
    for t in threads:
        t.start()
    wait_until(lambda: len(acknowledged) > 60, "starts before the kill")
    nodes.by_name["n1"].kill()
    nodes.settle("n2")
    before = len(acknowledged)
    wait_until(lambda: len(acknowledged) > before + 60, "starts after the kill")
    stopping.set()
    for t in threads:
        t.join()
    for (tenant, key), run in acknowledged.items():
        again = nodes.begin(tenant, key).json
        assert (again["run_id"], again["created"]) == (run, False)
    assert len(set(acknowledged.values())) == len(acknowledged)
    assert nodes.metric("n2", 'pawl_shards_taken_total{from="expired"}') == SHARDS // 2


def test_others_do_not_wait_for_the_lease_of_a_node_that_was_killed(nodes, postgres):
    nodes.start("n1", "n2")
    nodes.settle("n1", "n2")
    nodes.by_name["n1"].kill()
    postgres.rows(f"UPDATE {nodes.store.split('schema=')[1]}.nodes SET lease_until = now() + interval '1 hour' WHERE name = 'n1'")
    nodes.settle("n2")


def tenants_of(nodes, postgres, node):
    """Those that live in shards of this node."""
    schema = nodes.store.split("schema=")[1]
    shards = [shard for shard, owner in nodes.owners(node).items() if owner == node]
    return {t for shard in shards for t, in postgres.rows(f"SELECT id FROM {schema}_{shard}.tenants")}


def test_an_owner_that_was_paused_beyond_its_lease_cannot_commit(nodes, postgres):
    """It still believes that the only slot of the tenant is free, and that it owns the shard."""
    nodes.start("n1", "n2")
    nodes.settle("n1", "n2")
    paused = nodes.by_name["n1"]
    tenants = [nodes.tenant(max_concurrent_runs=1) for _ in range(12)]
    theirs = tenants_of(nodes, postgres, "n1") & set(tenants)
    assert theirs
    os.kill(paused.process.pid, signal.SIGSTOP)
    late = {}

    def send_late(tenant):
        late[tenant] = paused.client(timeout=60).start(tenant, key="late")

    threads = [threading.Thread(target=send_late, args=(t,)) for t in theirs]
    for t in threads:
        t.start()
    nodes.settle("n2")
    first = {t: nodes.by_name["n2"].client().start(t, key="first") for t in theirs}
    assert {r.status for r in first.values()} == {200}
    os.kill(paused.process.pid, signal.SIGCONT)
    for t in threads:
        t.join()
    assert {r.status for r in late.values()} <= {429, 503}, late  # in doubt, or answered by the new owner
    for t in theirs:
        runs = nodes.call(lambda api, t=t: api.get("/api/v1/runs", tenant=t)).json["items"]
        assert [r["id"] for r in runs] == [first[t].json["run_id"]]
    nodes.settle("n1", "n2")


def test_a_node_that_was_killed_and_started_again_serves_at_once(nodes):
    nodes.start("n1")
    tenant = nodes.tenant()
    run = nodes.begin(tenant, "k").json["run_id"]
    nodes.by_name["n1"].kill()
    nodes.start("n1")
    r = nodes.by_name["n1"].client().start(tenant, key="k")  # the first request after it is ready
    assert r.status == 200 and r.json["run_id"] == run, r


def test_a_shard_whose_engine_failed_is_opened_again_by_the_same_process(nodes, postgres):
    nodes.start("n1")
    tenant = nodes.tenant()
    run = nodes.begin(tenant, "k").json["run_id"]
    process = nodes.by_name["n1"].process.pid
    postgres.rows(f"UPDATE {nodes.store.split('schema=')[1]}.shards SET epoch = epoch + 1")  # as a new owner would
    assert nodes.by_name["n1"].client().start(tenant, key="late").status == 503
    r = nodes.begin(tenant, "k")
    assert r.status == 200 and r.json["run_id"] == run, r
    assert nodes.begin(tenant, "late").json["created"] is True
    nodes.settle("n1")
    assert nodes.by_name["n1"].process.pid == process


def test_a_shard_takes_changes_until_the_calls_of_the_node_that_hands_it_over_end(nodes, postgres, receiver):
    nodes.flags = ["--allow-private-addresses", "--log-level", "info"]
    nodes.start("n1")
    hanging = {"name": "call", "type": "http", "request": {"method": "GET", "url": receiver.on("/hangs", lambda handler, sent: receiver.gate.wait(60))}}
    tenants = [nodes.tenant() for _ in range(12)]
    for t in tenants:  # one call in every shard
        assert nodes.call(lambda api, t=t: api.put("/api/v1/workflows/call", {"steps": [hanging]}, tenant=t)).status == 200
        assert nodes.call(lambda api, t=t: api.post("/api/v1/workflows/call/runs", {}, tenant=t)).status in (200, 201)
    wait_until(lambda: len(receiver.at("/hangs")) >= len(tenants), "calls are under way")
    nodes.start("n2")
    wait_until(lambda: "handing a shard over" in nodes.by_name["n1"].log(), "a shard is handed over")
    answers = {t: nodes.by_name["n1"].client().start(t, key="k").status for t in tenants}
    receiver.gate.set()
    assert set(answers.values()) == {200}
    nodes.settle("n1", "n2")


def read_nothing(port, tenant):
    """A stream of all events of the tenant whose client takes hardly any of them."""
    s = endpoint.connect(port, receive_buffer=4096)
    s.sendall(f"GET /api/v1/events?after=0-0 HTTP/1.1\r\nHost: localhost\r\nX-Tenant-ID: {tenant}\r\nAccept: text/event-stream\r\n\r\n".encode())
    assert s.recv(12) == b"HTTP/1.1 200"
    return s


def test_a_client_that_does_not_read_does_not_hold_up_a_hand_over(nodes, postgres):
    """It is cut off; otherwise changes in the shard would be refused until its time is over, after 15 s."""
    nodes.flags = ["--log-level", "info"]
    nodes.start("n1")
    log = nodes.by_name["n1"].log
    steps = [{"name": f"t{i}", "type": "transform", "output": "x" * 2000} for i in range(100)]
    tenants = [nodes.tenant() for _ in range(12)]
    for t in tenants:  # some in every shard
        assert nodes.call(lambda api, t=t: api.put("/api/v1/workflows/loud", {"steps": steps}, tenant=t)).status == 200
        for _ in range(10):
            assert nodes.call(lambda api, t=t: api.post("/api/v1/workflows/loud/runs", {}, tenant=t)).status == 200
    with contextlib.ExitStack() as stack:
        for t in tenants:
            stack.enter_context(read_nothing(nodes.by_name["n1"].port, t))
        nodes.start("n2")
        nodes.settle("n1", "n2")
    busy = collections.defaultdict(list)  # by shard: a line for each second, of which the first one comes when clients are cut off
    for at, shard in re.findall(r"^(\S+)Z info +a shard is still busy shard=(\d+)", log(), re.MULTILINE):
        busy[shard].append(datetime.datetime.fromisoformat(at))
    assert busy and max(times[-1] - times[0] for times in busy.values()).total_seconds() < 10, log()[-2000:]


def test_rows_that_are_locked_do_not_cost_a_node_its_lease(postgres, tmp_path):
    """It waits for each of the shards that it wants to take, for longer than its lease in all."""
    schema, shards = f"c{uuid.uuid4().hex[:20]}", 24
    nodes = Nodes(f"{postgres.url}&schema={schema}", tmp_path)
    assert pawl("cluster", "init", "--shards", str(shards), "--store", nodes.store).code == 0
    lives = f"SELECT count(*) FROM {schema}.nodes WHERE lease_until > now()"
    lock = psycopg2.connect(f"{postgres.url}")
    with contextlib.closing(lock), lock.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {schema}.shards FOR UPDATE")
        starting = threading.Thread(target=nodes.start, args=("n1",))
        starting.start()
        log = tmp_path / "n1" / "stderr.log"
        wait_until(lambda: log.exists() and "the directory did not change" in log.read_text(), "it waits for the first")
        seen = []
        wait_until(lambda: seen.append(postgres.rows(lives)) or log.read_text().count("the directory did not change") >= shards, "it waits for all")
        lock.rollback()
        starting.join()
    nodes.by_name["n1"].close()
    assert set(map(str, seen)) == {str([["1"]])}


def test_a_node_whose_connection_hangs_keeps_its_lease(nodes, postgres):
    nodes.start("n1")
    directory = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%moved_tenants%' AND pid <> pg_backend_pid()"
    (held,), = postgres.rows(directory)
    os.kill(int(held), signal.SIGSTOP)
    try:
        wait_until(lambda: any(pid != held for pid, in postgres.rows(directory)), "it connects again")
        assert set(nodes.owners("n1").values()) == {"n1"}
        assert nodes.begin(nodes.tenant(), "k").status == 200
    finally:
        os.kill(int(held), signal.SIGCONT)


def test_a_drained_node_has_no_shards_until_that_is_undone(nodes):
    nodes.start("n1", "n2")
    nodes.settle("n1", "n2")
    r = pawl("cluster", "drain", "n1", "--store", nodes.store)
    assert r.code == 0, r
    nodes.settle("n2")
    nodes.by_name["n1"].stop()
    nodes.start("n1")
    nodes.settle("n2")
    state = {n["name"]: n["state"] for n in nodes.cluster("n1")["nodes"]}
    assert state == {"n1": "draining", "n2": "live"}
    assert pawl("cluster", "drain", "n1", "--undo", "--store", nodes.store).code == 0
    nodes.settle("n1", "n2")
    r = pawl("cluster", "drain", "n9", "--store", nodes.store)
    assert r.code == 1 and "no node n9" in r.err, r


def test_the_status_of_a_cluster_for_people_and_programs(nodes):
    nodes.start("n1")
    url = nodes.by_name["n1"].url
    shown = pawl("cluster", "status", "--url", url)
    assert shown.code == 0 and "n1" in shown.out and "serving" in shown.out, shown
    told = json.loads(pawl("cluster", "status", "--json", "--url", url).out)
    assert told == nodes.cluster("n1") | {"nodes": told["nodes"]}
    assert told["nodes"][0]["shards"] == SHARDS and 0 < told["nodes"][0]["lease_ms"] <= 5000


def test_a_node_says_that_another_one_advertises_its_address(nodes):
    nodes.flags = ["--advertise", "http://127.0.0.1:1"]
    nodes.start("n1", "n2")
    warning = "another node has the same address"
    assert warning in nodes.by_name["n2"].log() and "node=n1" in nodes.by_name["n2"].log() and warning not in nodes.by_name["n1"].log()


def test_a_command_on_the_store_itself_is_refused_while_a_node_lives(nodes):
    nodes.start("n1")
    tenant = nodes.tenant()
    r = pawl("tenant", "list", "--store", nodes.store)
    assert r.code == 1 and "in use by another pawl (node n1)" in r.err, r
    assert nodes.begin(tenant, "k").status == 200
    nodes.by_name["n1"].kill()
    assert pawl("tenant", "list", "--store", nodes.store).code == 0  # once the lease of the dead node is over


def test_a_file_is_a_cluster_of_one_node_and_one_shard(tmp_path):
    with server("--node", "alone", store=f"sqlite:{tmp_path}/x.db") as s:
        assert s.client().get("/api/v1/cluster").json == {
            "node": "alone", "nodes": [{"name": "alone", "url": None, "state": "live", "lease_ms": None, "shards": 1}],
            "shards": [{"shard": 0, "owner": "alone", "state": "serving", "epoch": None, "database": None, "tenants": []}]}
    r = pawl("cluster", "init", "--store", f"sqlite:{tmp_path}/y.db")
    assert r.code == 2 and "needs a PostgreSQL database" in r.err, r
