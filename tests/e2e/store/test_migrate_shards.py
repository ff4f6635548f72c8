"""`pawl migrate` into a cluster: each tenant goes to its shard, and nothing that the store answers or does is another. And back: all shards
become one store."""
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid

import psycopg2
import pytest

import cli
import harness
import placement
from harness import ROOT, Server, wait_until
from inspect_store import assert_healthy
from whole_store import HEADERS, WholeStore

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

KEYS = {"PAWL_ROOT_KEY": harness.ROOT_KEY}
SHARDS = 4


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


class Place:
    """A store, and a server on it from time to time."""

    def __init__(self, folder, url):
        folder.mkdir()
        self.folder, self.url = folder, url
        self.server = Server(folder, "--allow-private-addresses", dev=False, env=KEYS, store=url)

    def __enter__(self):
        self.server.start()
        api = self.server.client(headers=HEADERS)
        wait_until(lambda: all(s["state"] == "serving" for s in api.get("/api/v1/cluster").json["shards"]), "all shards are served")
        return api

    def __exit__(self, *error):
        if error[0] is not None:
            print(self.server.log()[-4000:])
        self.server.close()


class Cluster(Place):
    def __init__(self, folder, postgres, shards=SHARDS):
        self.postgres, self.schema = postgres, "s" + uuid.uuid4().hex[:16]
        super().__init__(folder, f"{postgres.url}&schema={self.schema}")
        assert cli.pawl("cluster", "init", "--shards", shards, "--store", self.url).code == 0

    def tenants(self, shard):
        return {tenant for tenant, in self.postgres.rows(f"SELECT id FROM {self.schema}_{shard}.tenants")}

    def assert_each_shard_is_healthy(self):
        """The doctor looks at one store: each shard becomes one of its own. The cluster is gone then."""
        for shard in range(SHARDS):
            alone = f"{self.schema}a{shard}"
            store = f"{self.postgres.url}&schema={alone}"
            assert cli.pawl("cluster", "init", "--shards", 1, "--store", store).code == 0
            self.postgres.rows(f"ALTER SCHEMA {self.schema}_{shard} RENAME TO {alone}_0;"
                               f"UPDATE {alone}.shards SET version = (SELECT version FROM {self.schema}.shards WHERE shard = {shard})")
            server = Server(self.folder, "--allow-private-addresses", dev=False, env=KEYS, store=store).start()
            assert_healthy(server.client(headers=HEADERS))
            server.close()


@pytest.fixture
def file(tmp_path):
    place = Place(tmp_path / "file", f"sqlite:{tmp_path / 'file' / 'pawl.db'}")
    yield place
    place.server.close()


@pytest.fixture
def cluster(tmp_path, postgres):
    place = Cluster(tmp_path / "cluster", postgres)
    yield place
    place.server.close()


@pytest.fixture
def back(tmp_path):
    place = Place(tmp_path / "back", f"sqlite:{tmp_path / 'back' / 'pawl.db'}")
    yield place
    place.server.close()


def migrate(source, target, *flags):
    return cli.pawl("migrate", "--from", source.url, "--to", target.url, *flags)


def home(tenant):
    return placement.siphash(tenant) % SHARDS


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


def test_a_store_with_everything_is_spread_over_the_shards(file, cluster, receiver):
    with file as api:
        store = WholeStore(api).fill(receiver.answers("/hook", (200, b"")))
        tenants = sorted(store.tenants())
    store.tenants = lambda: tenants
    with file as api:  # as it is after a restart
        store.api = api
        before = of_tenants(store.answers())
        cursor = store.stream("limited")[-1][0]
    done = migrate(file, cluster, "--json")
    assert done.code == 0 and done.json["shards"] == SHARDS and done.json["copied"] == done.json["rows"] > 200, done
    assert len({home(t) for t in tenants}) > 2
    for tenant in tenants:
        assert [s for s in range(1, SHARDS) if tenant in cluster.tenants(s)] == ([home(tenant)] if home(tenant) else [])
    with cluster as api:
        store.api = api
        after = of_tenants(store.answers())
        assert {p: (before.get(p), after.get(p)) for p in {*before, *after} if before.get(p) != after.get(p)} == {}
        store.assert_replays()
        store.assert_goes_on()
        for tenant in tenants:
            store.end_with(tenant)
        seen, whole = store.stream("limited", cursor), store.stream("limited")
        assert whole[-len(seen):] == seen and len(whole) > len(seen) > 5, "a reader of events continues where it was"
        store.settle()
        for tenant in tenants:
            assert api.get("/api/v1/audit/verify", tenant=tenant).json["ok"] is True
    cluster.assert_each_shard_is_healthy()


def start_runs(api):
    """By tenant and key, of enough tenants that each shard has several."""
    started = {}
    for tenant in (f"t{i}" for i in range(24)):
        assert api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 2, "at_limit": "queue"}, tenant=tenant).status == 200
        api.workflow(tenant)
        for key in "abcd":
            started[tenant, key] = api.start(tenant, key=key).json["run_id"]
    return started


def killed_copy(source, target, when):
    """Exit code and progress of a copy that is killed after so many seconds, or when it says that it has done so, unless it ends before."""
    copying = cli.popen("migrate", "--from", source.url, "--to", target.url)
    by_time = not isinstance(when, str)
    killer = threading.Timer(when if by_time else 0, copying.kill)
    said = ""
    if by_time:
        killer.start()
    else:
        for line in copying.stderr:
            said += line
            if f"pawl: {when}" in line:
                copying.kill()
                break
    said += copying.communicate()[1]
    killer.cancel()
    # PostgreSQL may not have noticed yet that the one before is dead.
    assert copying.returncode in (0, -signal.SIGKILL) or "in use by another pawl" in said or "uses" in said, said
    return copying.returncode, said


def test_a_copy_that_is_killed_again_and_again_is_whole_in_the_end(file, cluster):
    with file as api:
        started = start_runs(api)
    rng, kills, between, longest, code = random.Random(4), 0, 0, 0.1, None
    while code != 0:
        code, said = killed_copy(file, cluster, "moved" if kills >= 5 and not between else rng.uniform(0, longest))
        longest *= 1.15
        kills += code == -signal.SIGKILL
        there = [len(cluster.tenants(s)) for s in range(1, SHARDS) if cluster.postgres.rows(f"SELECT 1 FROM pg_namespace WHERE nspname = '{cluster.schema}_{s}'")]
        between += 0 < sum(there) < sum(home(t) > 0 for t in {tenant for tenant, _ in started})
    assert kills >= 5 and between > 0, (kills, between)
    assert "The copy was finished before." in migrate(file, cluster).out
    with cluster as api:
        for (tenant, key), run in started.items():
            again = api.start(tenant, key=key)
            assert (again.json["run_id"], again.json["created"]) == (run, False), again
        for tenant in {tenant for tenant, _ in started}:
            shown = api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json
            assert (shown["active_runs"], shown["queued_runs"]) == (2, 2)
            assert api.start(tenant).status == 200
    cluster.assert_each_shard_is_healthy()


def test_no_shard_of_an_unfinished_copy_is_opened(file, cluster):
    with file as api:
        started = start_runs(api)
    last = max((t for t, _ in started if home(t) > 0))  # they are moved by name
    with_mark = f"SELECT count(*) FROM pg_tables WHERE schemaname LIKE '{cluster.schema}_%' AND tablename = 'unfinished_copy'"
    copying = cli.popen("migrate", "--from", file.url, "--to", cluster.url)
    for line in copying.stderr:
        if "pawl: moved" in line and last not in line:
            copying.kill()
            break
    copying.communicate()
    assert cluster.postgres.rows(with_mark) == [[str(SHARDS)]]
    r = wait_until(lambda: (r := cli.pawl("doctor", "--store", cluster.url)).code and "in use" not in r.err and r, "a refusal")
    assert "The store is an unfinished copy. Run the same `pawl migrate` again to finish it." in r.err, r
    wait_until(lambda: migrate(file, cluster).code == 0, "the copy is finished")
    assert cluster.postgres.rows(with_mark) == [["0"]]


def test_a_target_that_cannot_take_the_copy_is_refused_and_left_alone(file, cluster, tmp_path, postgres):
    with file as api:
        start_runs(api)
    with cluster as api:
        r = migrate(file, cluster)
        assert r.code == 1 and "uses the target. Stop all nodes first." in r.err, r
        tenant = next(t for t in (f"x{i}" for i in range(64)) if home(t) == 2)
        assert api.put(f"/api/v1/tenants/{tenant}", {}, tenant=tenant).status == 200
    wait_until(lambda: "uses the target" not in (r := migrate(file, cluster)).err and r, "the node is gone")
    r = migrate(file, cluster)
    assert r.code == 1 and "The target already has data (shard 2)" in r.err, r
    with cluster as api:
        assert api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).status == 200
        assert cluster.tenants(0) == set()
    placed = Cluster(tmp_path / "placed", postgres)
    other = f"{postgres.url}&schema=o{uuid.uuid4().hex[:16]}"
    assert cli.pawl("cluster", "place", 3, "--at", other, "--store", placed.url).code == 0
    r = migrate(file, placed)
    assert r.code == 1 and "Shard 3 is in another database" in r.err, r
    assert postgres.rows(f"SELECT 1 FROM pg_namespace WHERE nspname = '{placed.schema}_0'") == []


# --- and back ---


def goes_home_elsewhere(tenants):
    """One of them that does not live in shard 0, and another shard than its own for it."""
    tenant = next(t for t in tenants if home(t))
    return tenant, next(shard for shard in range(1, SHARDS) if shard != home(tenant))


def audit_of(api, tenant):
    """The trail of a tenant, by action and target: its order is another one in a cluster."""
    items, cursor = [], ""
    while cursor is not None:
        page = api.get(f"/api/v1/audit?limit=7{cursor and '&cursor=' + cursor}", tenant=tenant)
        assert page.status == 200, page
        items += page.json["items"]
        cursor = page.json["next_cursor"]
    return sorted((e["at"], e["action"], e["target"], e["seq"], e["hash"]) for e in items)


def heads_of(api, tenant):
    """The end of each chain of a tenant, which somebody may have kept elsewhere."""
    verdict = api.get("/api/v1/audit/verify", tenant=tenant).json
    assert verdict["ok"] is True, verdict
    heads = verdict.get("heads") or ([verdict["head"]] if verdict["head"] else [])
    return sorted((h["seq"], h["hash"]) for h in heads), verdict["checked"]


NOT_COMPARED = ("/api/v1/audit?limit=200", "/api/v1/audit/export", "/api/v1/audit/verify")


def comparable(answers):
    return {place: answer for place, answer in of_tenants(answers).items() if place[1] not in NOT_COMPARED}


def differences(before, after):
    return {p: (before.get(p), after.get(p)) for p in {*before, *after} if before.get(p) != after.get(p)}


def test_all_shards_of_a_cluster_become_a_file_again(file, cluster, back, receiver):
    with file as api:
        store = WholeStore(api).fill(receiver.answers("/hook", (200, b"")))
        tenants = sorted(store.tenants())
    store.tenants = lambda: tenants
    done = migrate(file, cluster, "--json")
    assert done.code == 0, done
    with cluster as api:
        store.api = api
        asked = [api.post("/api/v1/keys", {"tenant": t, "role": "viewer", "label": "later"}, key=f"later-{t}", tenant=t).json for t in tenants]
        born = [t for t in (f"b{i}" for i in range(40)) if home(t)][:3]
        for t in born:  # in the cluster: another number in shard 0 than in its own
            assert api.put(f"/api/v1/tenants/{t}", {}, tenant=t).status == 200
            api.workflow(t)
            run = api.start(t, key="first").json["run_id"]
            assert api.post(f"/api/v1/runs/{run}/cancel", {}, tenant=t).status == 200
            asked.append(api.post("/api/v1/keys", {"tenant": t, "role": "operator"}).json)
            asked.append(api.post("/api/v1/keys", {"tenant": t, "role": "operator"}, key="its-key", tenant=t).json)
        for t in tenants:
            store.end_with(t)
    mover, elsewhere = goes_home_elsewhere(tenants)
    assert cli.pawl("cluster", "move-tenant", mover, "--to", elsewhere, "--store", cluster.url).code == 0
    with cluster as api:
        store.api = api
        store.settle()
        before = comparable(store.answers())
        trails = {t: (audit_of(api, t), heads_of(api, t)) for t in tenants + born}
        assert any(len(heads) > 1 for _, (heads, _) in trails.values()), "some tenants have two chains"
        cursor = store.stream("limited")[-1][0]
        keys = api.get("/api/v1/keys?limit=200").json
    done = migrate(cluster, back, "--json")
    assert done.code == 0 and done.json["from_shards"] == SHARDS and done.json["copied"] == done.json["rows"] > 200, done
    again = migrate(cluster, back, "--json")
    assert again.code == 0 and again.json["copied"] == 0, again
    with back as api:
        store.api = api
        assert differences(before, comparable(store.answers())) == {}
        for t in tenants + born:
            assert (audit_of(api, t), heads_of(api, t)) == trails[t], t
        assert api.get("/api/v1/audit/verify").json["ok"] is True
        assert_healthy(api)
        assert api.get("/api/v1/keys?limit=200").json == keys
        for key in asked:
            assert back.server.client(headers={"X-API-Key": key["key"]}).get("/api/v1/me").json["tenant"] == key["tenant"]
        for t in born:
            assert api.start(t, key="first").json["created"] is False
            assert api.post("/api/v1/keys", {"tenant": t, "role": "operator"}, key="its-key", tenant=t).json["id"] in {key["id"] for key in asked}
        store.assert_replays()
        store.assert_goes_on()
        for t in tenants:
            store.end_with(t)
        seen, whole = store.stream("limited", cursor), store.stream("limited")
        assert whole[-len(seen):] == seen and len(whole) > len(seen) > 5, "a reader of events continues where it was"
        assert len({data["id"] for _, _, data in whole}) == len(whole)
        store.settle()
        assert_healthy(api)


def with_keys(api, tenants, count):
    """So many keys of each, which are in the tenant's chain of shard 0."""
    for tenant in tenants:
        for _ in range(count):
            assert api.post("/api/v1/keys", {"tenant": tenant, "role": "viewer"}).status == 200


def moved(source, target):
    done = migrate(source, target)
    assert done.code == 0, done


def test_chains_of_the_audit_trail_stay_whole_from_store_to_store(file, cluster, back, tmp_path, postgres):
    """Each cluster in between adds a chain to that of the tenant's keys, and none is lost."""
    tenants, wide = [f"t{i}" for i in range(12)], Cluster(tmp_path / "wide", postgres, 16)
    alone = Place(tmp_path / "alone", f"{postgres.url}&schema=s{uuid.uuid4().hex[:16]}")  # the copy makes a store of one shard
    with file as api:
        started = {t: api.start(t, key="k").json["run_id"] for t in tenants if api.put(f"/api/v1/tenants/{t}", {}, tenant=t).status == 200 and not api.workflow(t)}
        with_keys(api, tenants, 1)
    trails, chains, away = {}, [], next(t for t in tenants if home(t))
    try:
        for source, target in ((file, cluster), (cluster, wide), (wide, alone), (alone, back)):
            moved(source, target)
            with target as api:
                for t, trail in trails.items():
                    assert (audit_of(api, t), heads_of(api, t)) == trail, t
                for t, run in started.items():
                    assert api.start(t, key="k").json == {**api.start(t, key="k").json, "run_id": run, "created": False}
                with_keys(api, tenants, 2)
                assert api.post("/api/v1/doctor/repair", {}).status == 200  # an entry in the server's chain of each shard
                trails = {t: (audit_of(api, t), heads_of(api, t)) for t in ["*", *tenants]}
                chains.append(len(trails[away][1][0]))
        with back as api:
            assert chains == sorted(chains) and chains[-1] > 2, chains
            assert len({e["chain"] for e in api.get("/api/v1/audit?limit=200", tenant=away).json["items"] if "chain" in e}) == chains[-1] - 1
            newest = api.get("/api/v1/audit?limit=200&order=newest", tenant=away).json["items"]
            assert newest == api.get("/api/v1/audit?limit=200", tenant=away).json["items"][::-1]
            exported = api.get("/api/v1/audit/export", tenant=away).raw.decode().splitlines()
            assert [json.loads(line) for line in exported] == newest[::-1]
            other = api.get(f"/api/v1/audit?cursor={newest[-1]['chain']}.0", tenant=next(t for t in tenants if t != away))
            assert other.code == "CURSOR_INVALID", "the chain is another tenant's"
            last = newest[0]["seq"]
            assert [e["seq"] for e in api.get(f"/api/v1/audit?after={last - 1}", tenant=away).json["items"]] == [last]
            assert api.get("/api/v1/audit/verify").json["ok"] is True
            assert_healthy(api)
    finally:
        wide.server.close()
        alone.server.close()


@pytest.mark.parametrize("to", ["a file", "a cluster"])
def test_a_copy_of_a_cluster_that_is_killed_again_and_again_is_whole_in_the_end(cluster, back, tmp_path, postgres, to):
    target = back if to == "a file" else Cluster(tmp_path / "wide", postgres, 8)
    with cluster as api:
        started = start_runs(api)
    rng, kills, kept, longest, code = random.Random(5), 0, 0, 0.05, None
    while code != 0:
        code, said = killed_copy(cluster, target, "copied" if kills >= 5 and not kept else rng.uniform(0, longest))
        longest *= 1.1
        kills += code == -signal.SIGKILL
        if code == -signal.SIGKILL and "copied" in said:
            kept += 1
            r = wait_until(lambda: (r := cli.pawl("doctor", "--store", target.url)).code and "in use" not in r.err and r, "a refusal")
            assert "The store is an unfinished copy." in r.err, r
    assert kills >= 5 and kept > 0, (kills, kept)
    assert "The copy was finished before." in migrate(cluster, target).out
    with target as api:
        for (tenant, key), run in started.items():
            again = api.start(tenant, key=key)
            assert (again.json["run_id"], again.json["created"]) == (run, False), again
        for tenant in {tenant for tenant, _ in started}:
            shown = api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json
            assert (shown["active_runs"], shown["queued_runs"]) == (2, 2)
            assert api.start(tenant).status == 200
        report = api.get("/api/v1/doctor").json
        assert report["ok"], report


def test_a_cluster_that_cannot_become_one_store_is_refused_and_left_alone(cluster, back, tmp_path, postgres):
    def refused(source, why):
        r = migrate(source, back)
        assert r.code == 1 and why in r.err, r
        assert not (tmp_path / "back" / "pawl.db").exists()

    with cluster as api:
        start_runs(api)
        refused(cluster, "uses the source. Stop all nodes first.")
    wait_until(lambda: "uses the source" not in (r := migrate(cluster, cluster)).err and r, "the node is gone")
    r = migrate(cluster, cluster)
    assert r.code == 2 and "The source and the target are the same store" in r.err, r
    line = "(num, tenant, scopes, waits_for, urgency, run) VALUES (7, 0, '7', 7, 0, 7)"
    postgres.rows(f"INSERT INTO {cluster.schema}_1.lines {line}; INSERT INTO {cluster.schema}_3.lines {line}")
    refused(cluster, "The shards 1 and 3 have different rows with the number 7 (tables lines and lines)")
    with cluster as api:
        assert api.get("/api/v1/audit/verify").json["ok"] is True


def test_shards_in_other_databases_are_copied_too_while_no_node_can_take_them(cluster, back, tmp_path, postgres):
    other = f"{postgres.url}&schema=o{uuid.uuid4().hex[:16]}"
    for shard in (2, 3):
        assert cli.pawl("cluster", "place", shard, "--at", other, "--store", cluster.url).code == 0
    with cluster as api:
        started = start_runs(api)
        tenants = sorted({t for t, _ in started})[:6]
        with_keys(api, tenants, 1)
        trails = {t: (audit_of(api, t), heads_of(api, t)) for t in tenants}
    node = Server(tmp_path / "cluster", "--node", "late", dev=False, env=KEYS, store=cluster.url)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%\"workflows\"%'"
    with psycopg2.connect(postgres.url) as other_session:
        other_session.cursor().execute(f"LOCK TABLE {cluster.schema}_0.workflows IN ACCESS EXCLUSIVE MODE")
        copying = cli.popen("migrate", "--from", cluster.url, "--to", back.url)
        wait_until(lambda: postgres.rows(waits) == [["1"]], "the copy has opened all shards and cannot go on")
        node = subprocess.Popen(node.command(), env={**os.environ, **KEYS}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: postgres.rows(f"SELECT 1 FROM {cluster.schema}.nodes WHERE name = 'late'"), "a node wants the shards")
        time.sleep(1)
        node.kill()
        node.wait()
        assert postgres.rows(f"SELECT shard FROM {cluster.schema}.shards WHERE owner = 'late'") == []
    said = copying.communicate()
    assert copying.returncode == 0, said
    with back as api:
        for (tenant, key), run in started.items():
            assert api.start(tenant, key=key).json["run_id"] == run
        for t, trail in trails.items():
            assert (audit_of(api, t), heads_of(api, t)) == trail, t
        assert_healthy(api)
