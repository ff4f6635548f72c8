"""Three nodes on one database under test, and everything around them: a PostgreSQL server with a synchronous standby, a clock for each node, and a
proxy between clients and nodes, between each node and both servers of the database, and between the nodes."""
import collections
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import signal
import statistics
import tempfile
import time

import cluster_state
import faults
import harness
import observe
from cli import pawl
from harness import wait_until
from inspect_store import PostgresStore
from postgres_pair import PostgresPair
from surroundings import Surroundings

NODES = ("n0", "n1", "n2")
SHARDS = 6
SERVED_AGAIN_S = 120  # nothing is served again later than that; how long it takes is printed,
TOO_LONG_S = float(os.environ.get("PAWL_FAULT_TOLD_S", 10))  # and from here on what the nodes and the database say about it,
STUCK_S = float(os.environ.get("PAWL_FAULT_STACKS_S", 40))  # and at last what each thread does
PROBE_S = 1.5  # a probe that is not answered by then gets a second beside it
PROBES_MAX = 8  # beside each other
PROBE_PAUSE_S = 0.05  # after one that was refused
LINKS = [f"{what}-{node}" for node in NODES for what in ("left", "right", "peer")]  # to the servers of the database; of the others to this node


class Node(harness.Server):
    """One process, or its successor after a kill."""

    def __init__(self, world, name, library):
        folder = pathlib.Path(world.folder) / name
        folder.mkdir()
        self.name, self.paused, self.clock = name, False, faults.Clock(folder)
        ports = world.proxy.ports
        hosts = ",".join(f"127.0.0.1:{ports[f'{side}-{name}']}" for side in ("left", "right"))
        super().__init__(folder, "--node", name, "--advertise", f"http://127.0.0.1:{ports[f'peer-{name}']}", "--bus", world.bus_url, "--log-level", "info",
                         store=f"postgres://pawl@{hosts}/postgres?target_session_attrs=read-write", preload=library, tls=False,
                         env=faults.environment(PAWL_CLOCK_FILE=self.clock.file))


class ClusterWorld(Surroundings):
    def __init__(self, folder, library, ledger, seed):
        super().__init__(folder, ledger, seed, *LINKS)
        self.database = PostgresPair()
        self.nodes = [Node(self, name, library) for name in NODES]
        self.probes = {}  # shard → a tenant that lives there
        self.probed = 0
        self.times = {}  # kind of fault → seconds until every shard was served again
        self.log_ends = {}  # node → how long its log was after the last fault
        self.last_probes = collections.deque(maxlen=30)  # [tenant, begun, what came of it, ended]
        self.state_told_s = 0  # for how long it had not been served when its state was last printed

    def open(self):
        super().open()
        self.database.open()
        self.route_database()
        self.init_cluster()
        for node in self.nodes:
            node.start()
            self.route(node)
        wait_until(self.is_settled, "every node has its share of the shards", SERVED_AGAIN_S)
        self.find_probes()
        return self

    def init_cluster(self):
        done = pawl("cluster", "init", "--shards", str(SHARDS), "--store", self.store)
        assert done.code == 0, done

    @property
    def store(self):
        """The database itself, past the proxies."""
        return f"postgres://pawl@127.0.0.1:{self.database.primary.port}/postgres"

    def route_database(self, *dead):
        """Nobody listens where a server is dead."""
        for server in self.database.servers:
            for node in self.nodes:
                self.proxy.target(f"{server.folder.name}-{node.name}", *([] if server in dead else [server.port]))

    def route(self, node):
        """Clients and the other nodes find the process; a balancer leaves out one that is paused."""
        if node.process is not None:
            self.proxy.target(f"peer-{node.name}", node.port)
        self.proxy.target("api", *(n.port for n in self.nodes if n.process is not None and not n.paused))

    def close(self):
        for node in self.nodes:
            if node.process is not None:
                node.kill()
        super().close()
        self.database.close()

    def stop(self):
        for node in self.nodes:
            assert node.stop() == 0, node.log()[-4000:]

    def log(self):
        """Of all nodes since the last fault."""
        logs = {node.name: node.log() for node in self.nodes if (node.folder / "stderr.log").exists()}
        return "\n".join(f"--- {name}\n{text[self.log_ends.get(name, 0):][-8000:]}" for name, text in logs.items())

    # --- what is in it ---

    @property
    def clock_offset_s(self):
        return self.nodes[0].clock.offset_s

    def set_clock(self, offset_s):
        for node in self.nodes:
            node.clock.set(offset_s)

    def in_each_shard(self, work):
        found = []
        for shard in range(SHARDS):
            with contextlib.closing(PostgresStore(self.store, shard)) as store:
                found += work(store)
        return found

    def rows(self, sql):
        return self.in_each_shard(lambda store: store.rows(sql))

    def backlog(self):
        """(events that the bus lacks, webhook deliveries that wait)"""
        clients = [node.client() for node in self.nodes]
        return tuple(sum(observe.metric(api, name) for api in clients) for name in ("pawl_outbox_depth", "pawl_webhook_deliveries_waiting"))

    # --- service ---

    def is_settled(self):
        """No shard will move."""
        views = [[s["owner"] for s in node.client().get("/readyz").json["shards"] if s["state"] == "serving"] for node in self.nodes]
        return all(view == views[0] for view in views) and [views[0].count(name) for name in NODES] == [SHARDS // len(NODES)] * len(NODES)

    def find_probes(self):
        api, made = self.client(), 0
        while len(self.probes) < SHARDS:
            made += 1
            assert made < 100 * SHARDS, "some shard gets no tenant"
            assert api.put(f"/api/v1/tenants/probe-{made}", {}, tenant=f"probe-{made}").status == 200
            for shard in range(SHARDS):
                with contextlib.closing(PostgresStore(self.store, shard)) as store:
                    if store.rows("SELECT 1 FROM tenants WHERE id = ?", f"probe-{made}"):
                        self.probes.setdefault(shard, f"probe-{made}")

    def change(self, tenant):
        """Whether a change of this tenant is acknowledged."""
        self.probed += 1
        probe = [tenant, time.monotonic(), "under way", time.monotonic()]
        self.last_probes.append(probe)
        try:
            r = self.client(timeout=SERVED_AGAIN_S).put(f"/api/v1/tenants/{tenant}", {"name": f"probe {self.probed}"}, tenant=tenant)
            probe[2] = r if r.status != 200 else "acknowledged"
        except (OSError, http.client.HTTPException) as e:
            probe[2] = e
        probe[3] = time.monotonic()
        if probe[2] == "acknowledged":
            return True
        time.sleep(PROBE_PAUSE_S)  # how often it asks; nothing is waited for
        return False

    def told_probes(self, since):
        return "\n".join(f"{begun - since:6.2f} to {ended - since:6.2f} s: {tenant} {result}" for tenant, begun, result, ended in list(self.last_probes))

    def tell_state(self, since):
        waited = time.monotonic() - since
        for limit in (STUCK_S, TOO_LONG_S):
            if waited > limit > self.state_told_s:
                self.state_told_s = limit
                print(f"not served for {waited:.2f} s\n{self.told_probes(since)}\n{cluster_state.told(self, stacks=limit == STUCK_S)}", flush=True)

    def await_change(self, tenant, what, since):
        """A probe may hang at a node that has lost its way, so others overtake it; but on a busy machine it may also just be slow, so it counts."""
        until, asked = time.monotonic() + SERVED_AGAIN_S, set()
        pool = concurrent.futures.ThreadPoolExecutor(PROBES_MAX)
        try:
            while True:
                self.supervise()
                if len(asked) < PROBES_MAX:
                    asked.add(pool.submit(self.change, tenant))
                done, asked = concurrent.futures.wait(asked, PROBE_S, concurrent.futures.FIRST_COMPLETED)
                if any(probe.result() for probe in done):
                    return
                self.tell_state(since)
                assert time.monotonic() < until, f"{what}: not within {SERVED_AGAIN_S} s\n{cluster_state.told(self, stacks=True)}"
        finally:
            pool.shutdown(wait=False)

    def await_service(self, kind, since):
        """Until a change in every shard was acknowledged."""
        self.state_told_s = 0
        took = {}
        for shard, tenant in self.probes.items():
            self.await_change(tenant, f"shard {shard} is served again after {kind}", since)
            took[shard] = round(time.monotonic() - since, 2)
        self.times.setdefault(kind, []).append(max(took.values()))
        if max(took.values()) > TOO_LONG_S:
            print(f"served again after {kind} only after {took} s\n{self.told_probes(since)}\n{self.log()}", flush=True)
        self.log_ends = {node.name: len(node.log()) for node in self.nodes}

    def measure_calm(self):
        """The same without a fault: how long the machine itself takes."""
        since = time.monotonic()
        for shard, tenant in self.probes.items():
            self.await_change(tenant, f"shard {shard} is served", since)
        self.times.setdefault("no fault", []).append(time.monotonic() - since)

    def told_times(self):
        return "\n".join(f"  served again after {kind}: {len(times)} times, median {statistics.median(times):.2f} s, worst {max(times):.2f} s"
                         for kind, times in sorted(self.times.items()))

    def supervise(self):
        """No node ends by itself, whatever happens around it."""
        for node in self.nodes:
            if node.process is not None and not node.paused and node.process.poll() is not None:
                raise AssertionError(f"node {node.name} ended with {node.process.returncode}\n{node.log()[-4000:]}")

    # --- faults ---

    def kill(self, number, at_once):
        """Started again at once it takes its shards back; otherwise the others take them."""
        node, since = self.nodes[number], time.monotonic()
        self.counts["kill"] += 1
        node.kill()
        self.route(node)
        if not at_once:
            self.await_service("a kill", since)
        node.start()
        self.route(node)
        if at_once:
            self.await_service("a kill and a restart", since)

    def terminate(self, number):
        """The others serve its shards while it waits for its last clients."""
        node, since = self.nodes[number], time.monotonic()
        self.counts["terminate"] += 1
        node.paused = True
        node.process.send_signal(signal.SIGTERM)
        self.route(node)
        self.await_service("a hand-over", since)
        assert node.ended() == 0, node.log()[-4000:]
        node.paused = False
        node.start()
        self.route(node)

    def pause(self, number, seconds):
        """Beyond its lease, so that the others have its shards when it comes back."""
        node, since = self.nodes[number], time.monotonic()
        self.counts["pause"] += 1
        node.paused = True
        os.kill(node.process.pid, signal.SIGSTOP)
        self.route(node)
        self.await_service("a pause", since)
        time.sleep(max(0.0, since + seconds - time.monotonic()))  # the length of the fault
        os.kill(node.process.pid, signal.SIGCONT)
        node.paused = False
        self.route(node)
        self.await_service("the return of a paused node", time.monotonic())

    def restart_database(self, crash):
        self.counts["database crash" if crash else "database restart"] += 1
        self.route_database(self.database.primary)
        self.database.restart(crash)
        self.route_database()
        self.await_service("a restart of PostgreSQL", time.monotonic())

    def promote(self, silent):
        """The primary's machine refuses connections from now on, or does not answer at all."""
        self.counts["promotion"] += 1
        since, dead = time.monotonic(), self.database.primary
        if silent:
            self.hold(dead, True)
        else:
            self.route_database(dead)
        self.database.fail_over()
        self.cut_all(dead)
        self.await_service(f"a promotion, the old primary {'is silent' if silent else 'refuses'}", since)
        self.database.attach()
        self.hold(dead, False)
        self.route_database()

    def cut_all(self, server):
        for node in self.nodes:
            self.proxy.cut(f"{server.folder.name}-{node.name}")

    def hold(self, server, held):
        for node in self.nodes:
            self.proxy.weather(f"{server.folder.name}-{node.name}", held=held)

    @staticmethod
    def database_links(number):
        return [f"{side}-{NODES[number]}" for side in ("left", "right")]

    @staticmethod
    def peer_link(number):
        """The others' way to this node."""
        return f"peer-{NODES[number]}"

    def cut_links(self, *links):
        since = time.monotonic()
        for link in links:
            self.cut(link)
        self.await_service("a cut", since)

    def skew(self, number, seconds):
        """Only this node's clock: at most an hour from the machine's."""
        clock = self.nodes[number].clock
        self.counts["skewed clock"] += 1
        clock.set(max(-3600, min(3600, clock.offset_s + seconds)))
        self.furthest_s = max(self.furthest_s, clock.offset_s)

    def calm(self):
        self.supervise()
        super().calm()
        self.await_service("the last fault", time.monotonic())


@contextlib.contextmanager
def cluster_world(library, ledger, seed):
    with tempfile.TemporaryDirectory(prefix="pawl-cluster-") as folder:
        w = ClusterWorld(folder, library, ledger, seed)
        try:
            yield w.open()
        except BaseException:
            print(w.log())
            raise
        finally:
            w.close()
