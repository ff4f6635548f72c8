"""Signals to entities while workers die, the server is killed and generations roll over: each distinct one is applied exactly once, in order,
by one handler call at a time.

PAWL_SIGNALS=1000000 makes it a soak, PAWL_SEED repeats the choices of one that failed."""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import cli
import entity_clients
import harness
from harness import wait_until
from inspect_store import assert_healthy, doctor_on_file, rows

pytestmark = pytest.mark.slow

SIGNALS = int(os.environ.get("PAWL_SIGNALS", "8000"))
ENTITIES = min(1000, max(1, SIGNALS // 100))  # fewer in a short run, so that each still has several generations
KILLS = 5 + SIGNALS // 20_000
CLIENTS, CLIENT_PROCESSES = 32, 4
WORKERS, WORKER_PROCESSES = 8, 2
RULES = {"queue": entity_clients.TYPE, "handler": "add", "rollover_events": 50, "keep_generations": 3, "max_batch": 20, "max_inbox": 10_000_000,
         "dedup_max_keys": 1_000_000, "retry": {"backoff_ms": 5, "max_backoff_ms": 100}}


class ClientProcesses:
    """Client and worker processes. A worker that dies is replaced."""

    def __init__(self, folder, port, seed):
        self.folder = folder
        self.common = {"port": port, "tenant": "t", "seed": seed, "signals": SIGNALS, "entities": ENTITIES, "clients": CLIENTS, "lease_ms": 500,
                       "deaths": min(0.002, 200 / SIGNALS)}
        self.deaths = 0
        self.clients = [self.begin("client", i, range(i, CLIENTS, CLIENT_PROCESSES)) for i in range(CLIENT_PROCESSES)]
        self.workers = [self.begin("worker", i, range(i, WORKERS, WORKER_PROCESSES)) for i in range(WORKER_PROCESSES)]

    def begin(self, kind, number, numbers):
        args = {**self.common, "numbers": list(numbers), "out": str(self.folder / f"{kind}-{number}")}
        return subprocess.Popen([sys.executable, entity_clients.__file__, kind, json.dumps(args)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def tend(self):
        """Replaces dead workers; whether all signals are answered."""
        for i, worker in enumerate(self.workers):
            if worker.poll() is not None:
                assert worker.returncode == -signal.SIGKILL, worker.returncode
                worker.stdin.close()
                self.deaths += 1
                self.workers[i] = self.begin("worker", i, range(i, WORKERS, WORKER_PROCESSES))
        codes = [client.poll() for client in self.clients]
        assert set(codes) <= {None, 0}, codes
        return None not in codes

    def kill_worker(self, rng):
        rng.choice(self.workers).kill()

    def end(self):
        for p in self.workers + self.clients:
            p.stdin.close()
        for p in self.workers:
            p.wait()

    def kill(self):
        for p in self.workers + self.clients:
            p.kill()
            p.wait()

    def reports(self, kind):
        for path in sorted(self.folder.glob(f"{kind}-*")):
            with open(path) as lines:
                yield from map(json.loads, lines)


@pytest.fixture
def start_processes(tmp_path):
    """start_processes(server, seed); none of them outlives the test."""
    made = []

    def begin(s, seed):
        made.append(ClientProcesses(tmp_path, s.port, seed))
        return made[-1]

    yield begin
    for c in made:
        c.kill()


def taken_in(db):
    return rows(db, "SELECT COALESCE(SUM(last_seq), 0) FROM entities")[0][0]


def at_rest(db):
    return not rows(db, "SELECT 1 FROM entities WHERE last_seq > consumed_seq OR open_job IS NOT NULL LIMIT 1")


def live_through_kills(s, processes, rng):
    """The server is killed at that many points of the way, and workers in between."""
    for n in range(KILLS):
        mark = SIGNALS * (n + rng.random()) / (KILLS + 0.5)
        wait_until(lambda: processes.tend() or taken_in(s.db) >= mark, f"signal {mark:.0f} is taken in", harness.PATIENCE_S * 30)
        if n % 2:
            processes.kill_worker(rng)
        time.sleep(rng.uniform(0, 0.05))  # the moment is random; nothing is waited for
        s.kill()
        s.start()
    wait_until(processes.tend, "every signal is answered", harness.PATIENCE_S * 30)
    wait_until(lambda: processes.tend() and at_rest(s.db), "every signal is handled", harness.PATIENCE_S * 30)


def check_clients(processes, seed):
    """Every answer to one signal names one number, at most one of them as new. {entity: {seq: payload}}"""
    known, fresh, seqs, answers, repeats, unanswered = {}, set(), collections.defaultdict(dict), 0, 0, 0
    for n, status, seq, duplicate, lost in processes.reports("client"):
        assert status == 200, (n, status)
        answers, repeats, unanswered = answers + 1, repeats + duplicate, unanswered + lost
        assert known.setdefault(n, seq) == seq, f"signal {n} has the numbers {known[n]} and {seq}"
        if not duplicate:
            assert n not in fresh, f"signal {n} was new twice"
            fresh.add(n)
    assert sorted(known) == list(range(SIGNALS))
    for n, seq in known.items():
        entity, payload = entity_clients.signal_of(seed, n, ENTITIES)
        assert seq not in seqs[entity], f"two signals of {entity} have the number {seq}"
        seqs[entity][seq] = payload
    assert repeats >= SIGNALS // 20 and unanswered > 0, "nothing was repeated, or the kills hit no request"
    print(f"{answers} answers, {repeats} duplicates, {unanswered} unanswered")
    return seqs


def check_entity(shown, payloads):
    """As if one had applied its signals in the order of their numbers, each once."""
    expected = entity_clients.new_state()
    for seq in range(1, len(payloads) + 1):
        expected = entity_clients.apply(expected, seq, payloads[seq])
    assert shown["state"] == expected, (shown, expected)
    assert (shown["last_seq"], shown["consumed_seq"], shown["inbox"], shown["status"], shown["call"]) == (len(payloads), len(payloads), 0, "idle", None), shown
    assert shown["dedup"]["keys"] == len(payloads) and [t["name"] for t in shown["timers"]] == ["idle"], shown
    assert shown["generation"] >= 1 + shown["events"] // 60, shown  # a generation is at most a few events longer than 50


def check_calls(processes):
    """One call at a time: as long as the version stands there is one job, each hand-out of it has the same signals and begins when the one before
    has ended; it is completed once, by the last one."""
    calls, jobs = collections.defaultdict(list), {}
    for c in processes.reports("worker"):
        assert "broken" not in c, c["broken"]
        assert jobs.setdefault((c["entity"], c["version"]), c["job"]) == c["job"], f"two calls at once: {c}"
        calls[c["job"]].append(c)
    ends = collections.Counter()
    for handed_out in calls.values():
        handed_out.sort(key=lambda c: c["epoch"])
        assert len({(c["version"], tuple(c["signals"])) for c in handed_out}) == 1, handed_out
        assert len({c["epoch"] for c in handed_out}) == len(handed_out), handed_out
        for earlier, later in zip(handed_out, handed_out[1:]):
            assert earlier["status"] not in ("completed", "already_completed"), handed_out
            if earlier["status"] in ("lost", "died"):
                assert later["expires"] - processes.common["lease_ms"] >= earlier["expires"], handed_out
        ends.update(c["status"] for c in handed_out)
    assert set(ends) <= {"completed", "already_completed", "lost", "died", "retrying", "already_failed", "released", "409 LEASE_LOST",
                         "409 JOB_NOT_FOUND"}, ends  # so late that its generation is not kept any more
    assert ends["lost"] and ends["409 LEASE_LOST"] and ends["retrying"], ends
    print(dict(ends))


def test_each_signal_is_applied_once_whoever_dies(start_processes):
    seed = os.environ.get("PAWL_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"PAWL_SEED={seed} PAWL_SIGNALS={SIGNALS}")
    rng = random.Random(seed)
    with harness.server("--listen", f"127.0.0.1:{cli.free_port()}") as s:
        r = s.client().put(f"/api/v1/entity-types/{entity_clients.TYPE}", RULES, tenant="t")
        assert r.status == 200, r
        running = start_processes(s, seed)
        live_through_kills(s, running, rng)
        running.end()
        payloads, api = check_clients(running, seed), s.client()
        for entity, expected in payloads.items():
            check_entity(api.get(f"/api/v1/entities/{entity_clients.TYPE}/{entity}", tenant="t").json, expected)
        check_calls(running)
        assert rows(s.db, "SELECT count(*) FROM inbox") == [(0,)]
        assert rows(s.db, "SELECT count(*) FROM entities") == [(len(payloads),)]
        assert_healthy(api)
        assert running.deaths > 0
        print(f"{len(payloads)} entities, {running.deaths} deaths of workers, {KILLS} of the server")
        s.kill()
        doctor_on_file(s.db)
