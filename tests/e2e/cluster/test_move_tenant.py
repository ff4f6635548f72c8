"""`pawl cluster move-tenant`: a tenant moves to another shard while everything goes on."""
import collections
import contextlib
import http.client
import json
import os
import random
import sys
import threading
import time
import uuid

import psycopg2
import pytest

import cli
import harness
import placement
import sse
from harness import ROOT, Server, wait_until
from inspect_store import assert_healthy
from whole_store import HEADERS, WholeStore

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

KEYS = {"PAWL_ROOT_KEY": harness.ROOT_KEY}
LIMIT = 7
MOVES = int(os.environ.get("PAWL_MOVES", "1"))  # of the test under load, of each kind
GONE = (OSError, http.client.HTTPException)


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


class Cluster:
    """Nodes on a database with one shard for all tenants, or two, and some that are spare."""

    def __init__(self, postgres, folder, shards, spare):
        self.postgres, self.folder, self.shards, self.spare = postgres, folder, shards, spare
        self.schema = "m" + uuid.uuid4().hex[:16]
        self.store = f"{postgres.url}&schema={self.schema}"
        r = cli.pawl("cluster", "init", "--shards", shards, "--spare", spare, "--store", self.store)
        assert r.code == 0 and f"Shards {shards} to {shards + spare - 1} are spare" in r.out, r
        self.nodes = {}

    def start(self, *names):
        for name in names:
            (self.folder / name).mkdir(exist_ok=True)
            node = self.nodes.get(name) or Server(self.folder / name, "--node", name, "--allow-private-addresses", dev=False, env=KEYS, store=self.store)
            self.nodes[name] = node.start()

    def client(self, name):
        return self.nodes[name].client(headers=HEADERS)

    def served(self):
        """Waits until every node knows that every shard is served."""
        def all_served():
            shards = [self.client(n).get("/api/v1/cluster").json["shards"] for n in self.nodes]
            owned = [sum(s["owner"] == n for s in shards[0]) for n in self.nodes]  # as many each, or another hand-over comes
            return max(owned) - min(owned) <= 1 and all(s["state"] == "serving" for view in shards for s in view) and all(
                [s["owner"] for s in view] == [s["owner"] for s in shards[0]] for view in shards)
        wait_until(all_served, "all shards are served")

    def move(self, tenant, shard):
        return cli.pawl("cluster", "move-tenant", tenant, "--to", shard, "--store", self.store)

    def place_of(self, tenant):
        return [int(shard) for shard, in self.postgres.rows(f"SELECT shard FROM {self.schema}.moved_tenants WHERE tenant = '{tenant}'")]

    def assert_each_shard_is_healthy(self):
        """The doctor looks at one store: each shard becomes one of its own. The cluster is gone then."""
        for node in self.nodes.values():
            node.close()
        for shard in range(self.shards + self.spare):
            alone = f"{self.schema}a{shard}"
            store = f"{self.postgres.url}&schema={alone}"
            assert cli.pawl("cluster", "init", "--shards", 1, "--store", store).code == 0
            self.postgres.rows(f"ALTER SCHEMA {self.schema}_{shard} RENAME TO {alone}_0;"
                               f"UPDATE {alone}.shards SET version = (SELECT version FROM {self.schema}.shards WHERE shard = {shard})")
            server = Server(self.folder, "--allow-private-addresses", dev=False, env=KEYS, store=store).start()
            assert_healthy(server.client(headers=HEADERS))
            server.close()


@pytest.fixture
def cluster_of(postgres, tmp_path):
    made = []

    def make(shards, spare):
        made.append(Cluster(postgres, tmp_path, shards, spare))
        return made[-1]
    yield make
    for cluster in made:
        for node in cluster.nodes.values():
            node.close()


def started(api, tenant):
    """A run of the tenant, by the key k."""
    api.workflow(tenant)
    return api.start(tenant, key="k").json["run_id"]


def without_shards(answer):
    """An audit trail that is in two shards, the tenant's and the first, tells the shard of each entry."""
    if isinstance(answer, list):
        return [without_shards(part) for part in answer]
    if isinstance(answer, dict):
        return {name: without_shards(part) for name, part in answer.items() if name not in ("shard", "heads")}
    return answer


def of_tenants(answers):
    """Without what is asked about all tenants."""
    return {place: without_shards(answer) for place, answer in answers.items() if place[0] is not None}


def test_rows_of_the_feed_that_share_a_pack_with_another_tenants_move_alone(cluster_of):
    cluster = cluster_of(1, 1)
    cluster.start("n1")
    cluster.served()
    api = cluster.client("n1")
    for tenant in ("mover", "stayer"):
        assert api.put(f"/api/v1/tenants/{tenant}", {}).status in (200, 201)
        r = api.put("/api/v1/workflows/w", {"id": "w", "steps": [{"name": "s", "type": "sleep", "duration_ms": 3600000}]}, tenant=tenant)
        assert r.status in (200, 201), r

    def start_some(tenant):
        client = cluster.client("n1")
        for _ in range(20):
            assert client.post("/api/v1/workflows/w/runs", {"input": {}}, tenant=tenant).status == 200

    def packs(shard):
        """The rows of the feed, pack by pack, as (number, tenant, run, first_seq, last_seq)."""
        ids = dict(cluster.postgres.rows(f"SELECT num, id FROM {cluster.schema}_{shard}.tenants"))
        for num, tenant, run, first, last, earlier in cluster.postgres.rows(
                "SELECT num, tenant, run, first_seq, last_seq, COALESCE(earlier, '[]')"
                f" FROM {cluster.schema}_{shard}.feed_packs WHERE run <> 0 ORDER BY num"):
            rows = [*((t, int(run) + distance, a, b) for t, distance, a, b in json.loads(earlier)), (int(tenant), int(run), int(first), int(last))]
            yield [(int(num) - len(rows) + 1 + i, ids[str(row[0])], *row[1:]) for i, row in enumerate(rows)]

    def feed(shard):
        return [row for pack in packs(shard) for row in pack]

    def is_shared():
        threads = [threading.Thread(target=start_some, args=(tenant,)) for tenant in ("mover", "stayer") * 4]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return any(len({row[1] for row in pack}) > 1 for pack in packs(0))

    wait_until(is_shared, "a pack has rows of both tenants")
    before = feed(0)
    assert cluster.move("mover", 1).code == 0
    cluster.served()
    assert [row for row in before if row[1] == "mover"] == feed(1)
    assert [row for row in before if row[1] == "stayer"] == feed(0)
    start_some("mover")
    start_some("stayer")
    assert all(feed(shard)[-1][0] > before[-1][0] for shard in (0, 1)), "no number is used again"
    cluster.assert_each_shard_is_healthy()


# Where each of six tenants goes, and then where it goes on to.
JOURNEYS = {
    "a shard of its own": [[1, 2, 3, 4, 5, 6]],
    "one shard for all": [[1, 1, 1, 1, 1, 1], [2, 1, 2, 3, 2, 1], [1, 2, 1, 2, 1, 2]],
}


@pytest.mark.parametrize("journey", JOURNEYS.values(), ids=[name.replace(" ", "-") for name in JOURNEYS])
def test_tenants_with_everything_move_and_nothing_that_is_answered_or_done_is_another(cluster_of, receiver, journey):
    cluster = cluster_of(1, 6)
    cluster.start("n1", "n2")
    cluster.served()
    store = WholeStore(cluster.client("n1")).fill(receiver.answers("/hook", (200, b"")))
    tenants = sorted(store.tenants())
    assert len(tenants) == 6
    store.tenants = lambda: tenants  # the list of a cluster has a page for each shard
    for node in cluster.nodes.values():
        assert node.stop() == 0
    cluster.start("n1", "n2")  # as it is after a restart: workers, for example, are not stored
    cluster.served()
    store.api = cluster.client("n1")
    before = of_tenants(store.answers())
    cursor = store.stream("limited")[-1][0]
    for stage in journey:
        for tenant, shard in zip(tenants, stage):
            r = cluster.move(tenant, shard)
            assert r.code == 0 and (f"Moved {tenant} from shard" in r.out or r.out == f"{tenant} is in shard {shard} already.\n"), r
            cluster.served()
        after = of_tenants(store.answers())
        assert {p: (before.get(p), after.get(p)) for p in {*before, *after} if before.get(p) != after.get(p)} == {}
    store.api = cluster.client("n2")
    after = of_tenants(store.answers())
    assert {p: (before.get(p), after.get(p)) for p in {*before, *after} if before.get(p) != after.get(p)} == {}
    store.assert_replays()
    store.assert_goes_on()
    for tenant in tenants:
        store.end_with(tenant)
    seen, whole = store.stream("limited", cursor), store.stream("limited")
    assert whole[-len(seen):] == seen and len(whole) > len(seen) > 5, "a reader of events continues where it was"
    assert len({data["id"] for _, _, data in whole}) == len(whole)
    store.settle()
    for tenant in tenants:
        assert store.api.get("/api/v1/audit/verify", tenant=tenant).json["ok"] is True
    table = cli.pawl("cluster", "status", "--url", cluster.nodes["n1"].url, PAWL_API_KEY=harness.ROOT_KEY).out
    assert all(tenant in table for tenant in tenants)
    cluster.assert_each_shard_is_healthy()


def test_a_tenant_is_not_moved_to_a_shard_that_cannot_take_it(cluster_of):
    cluster = cluster_of(2, 2)
    cluster.start("n1")
    api = cluster.client("n1")
    first, second = api.tenant(), api.tenant()
    assert "has no shard 9" in cluster.move(first, 9).err
    assert "There is no tenant nobody" in cluster.move("nobody", 2).err
    assert "There is no tenant no body" in cluster.move("no body", 2).err
    assert "needs a PostgreSQL database" in cli.pawl("cluster", "move-tenant", first, "--to", 2, "--store", "sqlite:pawl.db").err
    assert cluster.move(first, 2).code == 0 and cluster.place_of(first) == [2]
    r = cluster.move(first, 0)
    assert r.code == 2 and "Shard 0 has the API keys" in r.err, r
    assert cluster.move(second, 2).code == 0 and cluster.place_of(second) == [2]
    cluster.served()
    assert {api.get(f"/api/v1/tenants/{t}", tenant=t).status for t in (first, second)} == {200}
    r = cli.pawl("cluster", "init", "--spare", 3, "--store", cluster.store)
    assert r.code != 0 and "while no node runs" in r.err, r


def test_a_tenant_moves_back_to_the_shard_that_its_name_leads_to(cluster_of):
    cluster = cluster_of(2, 1)
    cluster.start("n1")
    api = cluster.client("n1")
    name = next(name for name in (f"t-{i}" for i in range(64)) if placement.siphash(name) % 2 == 1)
    tenant = api.put(f"/api/v1/tenants/{name}", {}, tenant=name).json["id"]
    assert cluster.move(tenant, 1).out == f"{tenant} is in shard 1 already.\n"
    run = started(api, tenant)
    assert cluster.move(tenant, 2).code == 0 and cluster.place_of(tenant) == [2]
    cluster.served()
    assert api.start(tenant, key="k").json["run_id"] == run
    assert cluster.move(tenant, 1).code == 0 and cluster.place_of(tenant) == []
    cluster.served()
    assert api.start(tenant, key="k").json["run_id"] == run
    assert cluster.postgres.rows(f"SELECT 1 FROM {cluster.schema}_2.tenants") == []


def test_a_tenant_whose_numbers_are_taken_stays_where_it_is(cluster_of):
    cluster = cluster_of(1, 1)
    cluster.start("n1")
    api = cluster.client("n1")
    tenant = api.tenant()
    run = started(api, tenant)
    columns = "num, id, at_limit, weight, gate, active_runs, queued_runs, created_at, updated_at"
    cluster.postgres.rows(  # as a version without numbers for each shard would have given it
        f"INSERT INTO {cluster.schema}_1.tenants ({columns}) SELECT num, 'other', at_limit, weight, gate, 0, 0, created_at, updated_at"
        f" FROM {cluster.schema}_0.tenants WHERE id = '{tenant}'")
    r = cluster.move(tenant, 1)
    assert r.code == 2 and "has other rows with the numbers of the tenant's (table tenants)" in r.err, r
    cluster.served()
    assert cluster.place_of(tenant) == [] and api.start(tenant, key="k").json["run_id"] == run
    cluster.postgres.rows(f"DELETE FROM {cluster.schema}_1.tenants WHERE id = 'other'")
    assert cluster.move(tenant, 1).code == 0 and cluster.place_of(tenant) == [1]
    cluster.served()
    assert api.start(tenant, key="k").json["run_id"] == run


def test_a_copy_that_differs_is_not_kept(cluster_of):
    cluster = cluster_of(1, 1)
    cluster.start("n1")
    api = cluster.client("n1")
    tenant = api.tenant()
    run = started(api, tenant)
    cluster.postgres.rows(f"CREATE FUNCTION {cluster.schema}_1.spoil() RETURNS trigger LANGUAGE plpgsql AS"
                          " $$ BEGIN NEW.input = '{\"spoilt\":1}'; RETURN NEW; END $$;"
                          f"CREATE TRIGGER spoil BEFORE INSERT ON {cluster.schema}_1.runs FOR EACH ROW EXECUTE FUNCTION {cluster.schema}_1.spoil()")
    r = cluster.move(tenant, 1)
    assert r.code == 1 and "The copy of the table runs differs. Nothing was moved." in r.err, r
    cluster.served()
    assert cluster.place_of(tenant) == [] and api.start(tenant, key="k").json["run_id"] == run
    assert cluster.postgres.rows(f"SELECT 1 FROM {cluster.schema}_1.tenants") == []
    cluster.postgres.rows(f"DROP TRIGGER spoil ON {cluster.schema}_1.runs")
    assert cluster.move(tenant, 1).code == 0
    cluster.served()
    assert api.start(tenant, key="k").json["run_id"] == run


def test_a_mover_waits_for_an_owner_that_is_in_the_middle_of_a_commit(cluster_of):
    cluster = cluster_of(1, 1)
    cluster.start("n1")
    api = cluster.client("n1")
    tenant = api.tenant()
    started(api, tenant)
    with contextlib.closing(psycopg2.connect(cluster.postgres.url)) as owner:
        with owner.cursor() as c:  # what a fence holds until the commit is done
            c.execute(f"SELECT 1 FROM {cluster.schema}.shards WHERE shard = 0 FOR SHARE")
        moving = cli.popen("cluster", "move-tenant", tenant, "--to", 1, "--store", cluster.store)
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND now() - query_start > interval '1 s'"
        wait_until(lambda: cluster.postgres.rows(waiting), "the mover has waited for a while")
        owner.rollback()
        out, err = moving.communicate()
    assert moving.returncode == 0, (out, err)
    cluster.served()
    assert cluster.place_of(tenant) == [1]


@pytest.mark.parametrize("table", ["to.approvals", "from.workflows", "moved_tenants"], ids=["copying", "deleting", "committing"])
def test_a_tenant_whose_mover_is_killed_is_wholly_here_or_wholly_there(cluster_of, table):
    cluster = cluster_of(1, 1)
    cluster.start("n1")
    api = cluster.client("n1")
    tenant = api.tenant()
    api.workflow(tenant)
    run = api.start(tenant, key="k").json["run_id"]
    named = table.replace("from.", f"{cluster.schema}_0.").replace("to.", f"{cluster.schema}_1.")
    with contextlib.closing(psycopg2.connect(cluster.postgres.url)) as lock:
        with lock.cursor() as c:  # readers pass, the mover waits
            c.execute(f"LOCK TABLE {named if '.' in named else f'{cluster.schema}.{named}'} IN SHARE MODE")
        moving = cli.popen("cluster", "move-tenant", tenant, "--to", 1, "--store", cluster.store)
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || '{}' || '%'".format(table.split(".")[-1])
        wait_until(lambda: cluster.postgres.rows(waiting), "the mover is in the middle of it")
        moving.kill()
        moving.communicate()
    cluster.served()
    if table != "moved_tenants":  # otherwise the commit was on its way
        assert cluster.place_of(tenant) == []
    assert api.start(tenant, key="k").json["run_id"] == run
    assert cluster.move(tenant, 1).code == 0 and cluster.place_of(tenant) == [1]
    cluster.served()
    assert api.start(tenant, key="k").json["run_id"] == run


class Ledger:
    """Clients of a tenant that write down what they were told, while nodes and moves come and go."""

    def __init__(self, cluster, tenant):
        self.cluster, self.tenant = cluster, tenant
        self.stopped = threading.Event()
        self.started, self.signalled, self.completed = {}, {}, {}
        self.most_active = 0
        self.seen = []  # events of the stream, over all its connections
        self.errors = []
        self.threads = [threading.Thread(target=self.guard, args=(f, i)) for f, n in
                        ((self.starts, 3), (self.works, 3), (self.watches, 1), (self.streams, 1)) for i in range(n)]

    def guard(self, f, i):
        try:
            f(i)
        except BaseException as e:  # noqa: BLE001: the test's thread must know
            self.errors.append(e)
            raise

    def api(self):
        return self.cluster.client(random.choice(list(self.cluster.nodes)))

    def insist(self, send):
        """Sends with the same key until there is an answer."""
        while True:
            try:
                r = send(self.api())
                if r.status != 503:
                    return r
                assert r.json["retryable"], r
            except GONE:
                pass
            time.sleep(0.01)

    def starts(self, i):
        n = 0
        while not self.stopped.is_set():
            n += 1
            key = f"{i}-{n}"
            r = self.insist(lambda api: api.start(self.tenant, "w", key=key))
            assert r.status == 200, r
            self.started[key] = run = r.json["run_id"]
            if n % 4 == 0:
                body = {"name": "note", "payload": key}
                r = self.insist(lambda api: api.post(f"/api/v1/runs/{run}/signals", {**body, "dedup_key": key}, key=f"s-{key}", tenant=self.tenant))
                assert r.status in (200, 202, 409), r
                if r.status != 409:
                    self.signalled[key] = run

    def works(self, i):
        while not self.stopped.is_set():
            claimed = self.insist(lambda api: api.post("/api/v1/jobs/claim", {"worker_id": f"w{i}", "max": 2, "wait_ms": 200}, tenant=self.tenant))
            assert claimed.status == 200, claimed
            for job in claimed.json["jobs"]:
                time.sleep(random.random() * 0.05)
                body = {"lease_token": job["lease_token"], "output": {"by": i}}
                r = self.insist(lambda api: api.post(f"/api/v1/jobs/{job['job_id']}/complete", body, key=f"c-{job['job_id']}", tenant=self.tenant))
                assert r.status == 200, r
                assert self.completed.setdefault(job["job_id"], i) == i, "a job is done once"

    def watches(self, _):
        while not self.stopped.is_set():
            r = self.insist(lambda api: api.get(f"/api/v1/tenants/{self.tenant}", tenant=self.tenant))
            self.most_active = max(self.most_active, r.json["active_runs"])

    def streams(self, _):
        """One reader that connects again, with the last id that it has, whenever its stream ends."""
        while not self.stopped.is_set():
            port = random.choice([n.port for n in self.cluster.nodes.values()])
            try:
                stream = sse.Stream(port, "/api/v1/events", self.tenant, self.seen[-1][0] if self.seen else "0-0", headers=[f"X-API-Key: {harness.ROOT_KEY}"])
                stream.sock.settimeout(1)
                with stream as s:
                    while not self.stopped.is_set() and s.read_one():
                        self.seen.append(s.events[-1])
            except (AssertionError, *GONE):  # refused, or cut
                time.sleep(0.01)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for t in self.threads:
            t.join()

    def check(self):
        """Everything that was acknowledged is there, once."""
        assert not self.errors
        api = self.cluster.client(next(iter(self.cluster.nodes)))
        assert len(set(self.started.values())) == len(self.started) > 10, "one key, one run"
        for key, run in self.started.items():
            assert api.start(self.tenant, "w", key=key).json["run_id"] == run
            shown = api.get(f"/api/v1/runs/{run}", tenant=self.tenant)
            assert shown.status == 200, shown
        for job in self.completed:
            shown = api.get(f"/api/v1/jobs/{job}", tenant=self.tenant).json
            assert shown["state"] == "succeeded", shown
        for key, run in self.signalled.items():
            names = [e for e in api.get(f"/api/v1/runs/{run}/events?limit=200", tenant=self.tenant).json["items"] if e["type"] == "signal.received"]
            assert len(names) == 1, (key, names)
        assert self.most_active <= LIMIT
        last = self.seen[-1][0] if self.seen else "0-0"
        whole = self.whole_stream(api)
        ids = [i for i, _, _ in whole]
        assert self.seen == whole[:ids.index(last) + 1], "no event is lost, doubled or in another place"
        assert len({data["id"] for _, _, data in whole}) == len(whole)

    def whole_stream(self, api):
        """All events up to the last of a run that is cancelled now."""
        run = api.start(self.tenant, "w").json["run_id"]
        assert api.post(f"/api/v1/runs/{run}/cancel", {}, tenant=self.tenant).status == 200
        with sse.Stream(api.port, "/api/v1/events", self.tenant, "0-0", headers=[f"X-API-Key: {harness.ROOT_KEY}"]) as s:
            while not s.events or s.events[-1][1] != "run.cancelled" or s.events[-1][2]["subject"] != run:
                assert s.read_one()
            return s.events


def killed_move(cluster, tenant, shard, seconds):
    """A move that is killed after this time, unless it ends before."""
    moving = cli.popen("cluster", "move-tenant", tenant, "--to", shard, "--store", cluster.store)
    killer = threading.Timer(seconds, moving.kill)
    killer.start()
    moving.communicate()
    killer.cancel()
    return moving.returncode


def test_a_tenant_moves_under_load_while_movers_and_nodes_are_killed(cluster_of, receiver):
    """Between shards that have another tenant, which is at work too."""
    cluster = cluster_of(2, 2)
    cluster.start("n1", "n2")
    cluster.served()
    api = cluster.client("n1")
    tenant, neighbour = (api.tenant(max_concurrent_runs=LIMIT, at_limit="queue") for _ in range(2))
    hook = receiver.answers("/hook", (200, b""))
    for t in (tenant, neighbour):
        api.workflow(t, "w", [{"name": "a", "type": "task", "handler": "h"}, {"name": "b", "type": "task", "handler": "h", "needs": ["a"]}])
        assert api.post("/api/v1/webhooks", {"url": hook, "events": ["*"]}, tenant=t).status in (200, 201)
    assert cluster.move(neighbour, 2).code == 0
    cluster.served()
    ends = collections.Counter()

    def move_on():
        """To the spare shard that it is not in; killed movers are sent again."""
        where = cluster.place_of(tenant)
        return 2 if where != [2] else 3

    with Ledger(cluster, neighbour) as other, Ledger(cluster, tenant) as ledger:
        for _ in range(MOVES):
            wait_until(lambda: len(ledger.completed) > 5, "work is done")
            target = move_on()
            r = wait_until(lambda: (r := cluster.move(tenant, target)).code == 0 and r, "the move is done")
            ends[r.code] += 1
        for _ in range(MOVES):  # the mover is killed at any moment
            target = move_on()
            ends[killed_move(cluster, tenant, target, random.random() * 2)] += 1
            wait_until(lambda: cluster.move(tenant, target).code == 0, "the next one finishes")
            assert cluster.place_of(tenant) == [target]
        for _ in range(MOVES):  # a node is, while it gives its shard up or takes it back
            target = move_on()
            moving = cli.popen("cluster", "move-tenant", tenant, "--to", target, "--store", cluster.store)
            time.sleep(random.random() * 0.4)  # any moment will do
            name = random.choice(["n1", "n2"])
            cluster.nodes[name].kill()
            cluster.start(name)
            moving.communicate()
            wait_until(lambda: cluster.move(tenant, target).code == 0, "the move is done")
        done = len(ledger.completed), len(other.completed)
        wait_until(lambda: (len(ledger.completed) > done[0] + 5 and len(other.completed) > done[1] + 5) or ledger.errors or other.errors, "work goes on")
    cluster.served()
    for book in (ledger, other):
        book.check()
        events = {data["id"] for _, _, data in book.whole_stream(cluster.client("n1"))}

        def delivered(t=book.tenant):
            return [event for event, in cluster.postgres.rows(
                " UNION ALL ".join(f"SELECT d.event_id FROM {cluster.schema}_{n}.deliveries d JOIN {cluster.schema}_{n}.tenants t"
                                   f" ON t.num = d.tenant WHERE t.id = '{t}'" for n in range(4)))]
        wait_until(lambda: set(delivered()) == events, "every event was given to the webhook")
        assert len(delivered()) == len(events), "and none twice"
    assert ends[0] >= MOVES and sum(ends.values()) == 2 * MOVES
    cluster.assert_each_shard_is_healthy()
