"""Shards of one cluster in two PostgreSQL servers."""
import os
import signal
import sys
import uuid

import pytest

from cli import pawl
from harness import ROOT, Server, wait_until

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

SHARDS, FAR = 4, (2, 3)


@pytest.fixture(scope="module")
def servers():
    with with_postgres.start() as near, with_postgres.start() as far:
        yield near, far


class Spread:
    """A cluster with the shards of FAR in another server."""

    def __init__(self, servers, folder):
        self.schema = "p" + uuid.uuid4().hex[:12]
        self.near, self.far = servers
        self.store, self.place = (f"{s.url}&schema={self.schema}" for s in servers)
        self.folder, self.by_name = folder, {}

    def init(self):
        assert pawl("cluster", "init", "--shards", str(SHARDS), "--store", self.store).code == 0
        for shard in FAR:
            r = pawl("cluster", "place", str(shard), "--at", self.place, "--store", self.store)
            assert (r.code, r.out) == (0, f"Shard {shard} is in the other database.\n"), r

    def start(self, name):
        (self.folder / name).mkdir(exist_ok=True)
        node = self.by_name.get(name) or Server(self.folder / name, "--node", name, store=self.store)
        self.by_name[name] = node.start()
        return node

    def shards(self, name):
        return self.by_name[name].client().get("/api/v1/cluster").json["shards"]

    def settle(self, *names):
        def even():
            owners = [[s["owner"] for s in self.shards(n) if s["state"] == "serving"] for n in names]
            return all(o == owners[0] and len(o) == SHARDS and set(o) == set(names) for o in owners)
        wait_until(even, f"{names} serve all shards")

    def answer(self, name, send):
        """What the node answers once it is not 503."""
        def answered():
            r = send(self.by_name[name].client())
            return r if r.status != 503 else None
        return wait_until(answered, "the node answers")

    def tenant(self, name):
        tenant = "t-" + uuid.uuid4().hex[:12]
        steps = [{"name": "work", "type": "task", "handler": "noop"}]
        assert self.answer(name, lambda api: api.put("/api/v1/workflows/hold", {"steps": steps}, tenant=tenant)).status == 200
        return tenant

    def shard_of(self, tenant):
        """(shard, whether it is in the far server)."""
        for shard in range(SHARDS):
            server = self.far if shard in FAR else self.near
            if server.rows(f"SELECT 1 FROM {self.schema}_{shard}.tenants WHERE id = '{tenant}'"):
                return shard, shard in FAR
        raise AssertionError(f"{tenant} is nowhere")

    def tenants(self, name):
        """{whether it is in the far server: [tenant, …]}: one in each shard at least."""
        found = {}
        while len(found) < SHARDS:
            tenant = self.tenant(name)
            found.setdefault(self.shard_of(tenant), tenant)
        return {far: [t for (_, f), t in found.items() if f == far] for far in (False, True)}


@pytest.fixture
def spread(servers, tmp_path):
    made = Spread(servers, tmp_path)
    yield made
    for server in servers:
        if server.process is None:
            server.start()
    for n in made.by_name.values():
        if n.process is not None:
            n.process.send_signal(signal.SIGCONT)
            n.close()


def begin(api, tenant, key):
    return api.start(tenant, key=key)


def test_tenants_live_in_both_servers_and_owners_change_in_both(spread):
    spread.init()
    spread.start("n1")
    spread.start("n2")
    spread.settle("n1", "n2")
    assert [s["database"] is not None for s in spread.shards("n1")] == [n in FAR for n in range(SHARDS)]
    tenants = sum(spread.tenants("n1").values(), [])
    runs = {t: spread.answer("n2", lambda api, t=t: begin(api, t, "k")).json["run_id"] for t in tenants}
    os.kill(spread.by_name["n1"].process.pid, signal.SIGKILL)
    spread.by_name["n1"].process.wait()
    spread.by_name["n1"].process = None
    spread.settle("n2")
    for t in tenants:
        assert spread.answer("n2", lambda api, t=t: begin(api, t, "k")).json["run_id"] == runs[t]
        assert spread.answer("n2", lambda api, t=t: begin(api, t, "k2")).json["run_id"] != runs[t]


def test_a_paused_owner_cannot_commit_in_the_other_server(spread):
    spread.init()
    spread.start("n1")
    spread.settle("n1")
    tenant = spread.tenants("n1")[True][0]
    run = spread.answer("n1", lambda api: begin(api, tenant, "k")).json["run_id"]
    paused = spread.by_name["n1"]
    paused.process.send_signal(signal.SIGSTOP)
    spread.start("n2")
    spread.settle("n2")
    later = spread.answer("n2", lambda api: begin(api, tenant, "k2")).json["run_id"]
    paused.process.send_signal(signal.SIGCONT)
    assert spread.answer("n1", lambda api: begin(api, tenant, "k2")).json["run_id"] == later
    assert spread.answer("n1", lambda api: begin(api, tenant, "k")).json["run_id"] == run
    shard, _ = spread.shard_of(tenant)
    assert spread.far.rows(f"SELECT count(*) FROM {spread.schema}_{shard}.runs") == [["2"]]


def test_a_server_that_is_away_costs_its_own_shards_only(spread):
    spread.init()
    spread.start("n1")
    spread.settle("n1")
    tenants = spread.tenants("n1")
    runs = {t: spread.answer("n1", lambda api, t=t: begin(api, t, "k")).json["run_id"] for t in sum(tenants.values(), [])}
    spread.far.stop()
    for t in tenants[False]:
        assert begin(spread.by_name["n1"].client(), t, "k").json["run_id"] == runs[t]
    wait_until(lambda: begin(spread.by_name["n1"].client(), tenants[True][0], "new").status == 503, "a start there is refused, and no longer in flight")
    assert spread.by_name["n1"].stop() == 0
    spread.start("n1")  # it starts although a database is away
    for t in tenants[False]:
        assert spread.answer("n1", lambda api, t=t: begin(api, t, "k")).json["run_id"] == runs[t]
    spread.far.start()
    for t in tenants[True]:
        assert spread.answer("n1", lambda api, t=t: begin(api, t, "k")).json["run_id"] == runs[t]


def test_a_shard_is_placed_only_where_and_when_it_can_be(spread):
    def place(shard, at, store=spread.store):
        r = pawl("cluster", "place", str(shard), "--at", at, "--store", store)
        return r.code, r.err
    code, err = place(1, spread.place)
    assert code == 2 and "no cluster yet" in err
    spread.init()
    assert "Shard 0 has the API keys" in place(0, spread.place)[1]
    assert "has no shard 9" in place(9, spread.place)[1]
    assert "belongs to another cluster" in place(1, spread.store)[1]
    assert "must not name a shard" in place(1, spread.place + "&shard=1")[1]
    assert place("x", spread.place)[0] == 2
    refused = pawl("serve", "--store", spread.place, "--listen", "127.0.0.1:0")
    assert refused.code != 0 and "has only some shards of a cluster" in refused.err, refused
    spread.start("n1")
    spread.settle("n1")
    assert "has tables already" in place(1, spread.place)[1]
    table = pawl("cluster", "status", "--url", spread.by_name["n1"].url).out
    assert "DATABASE" in table and "/postgres" in table
