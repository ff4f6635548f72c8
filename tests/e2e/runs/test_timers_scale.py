"""100,000 timers of one second: each fires once, the earliest first, and nobody who starts a run waits for them."""
import collections
import datetime
import json
import threading
import time

import pytest

import harness
from actions import begin, show
from harness import wait_until
from inspect_store import assert_healthy, change, rows

pytestmark = pytest.mark.slow

RUNS, ITEMS = 10, 10_000
FAR = datetime.datetime.fromtimestamp(int(time.time()) + 86400, datetime.timezone.utc)


def millisecond(item):
    """Each of the second's milliseconds ten times, in no order."""
    return item * 7919 % 1000


NAPS = {"name": "nap", "type": "sleep", "for_each": [f"{millisecond(n):03}" for n in range(ITEMS)], "max_parallel": ITEMS, "until": FAR.strftime("%Y-%m-%dT%H:%M:%S.${item}Z")}


def bring_near(db, seconds):
    """All timers are due within the second that begins that soon."""
    nearer = int(FAR.timestamp() * 1000) - int((time.time() + seconds) * 1000)
    # The last timers have no row yet: those are made from the jobs. The first job of a run may be in the run's row still.
    timers, jobs, firsts = (change(db, f"UPDATE {table} SET {at} = {at} - ? WHERE {at} IS NOT NULL", nearer)
                            for table, at in (("timers", "due_at"), ("jobs", "due_at"), ("runs", "first_due")))
    assert 1 <= timers <= RUNS * ITEMS
    assert jobs <= RUNS * ITEMS <= jobs + firsts <= RUNS * (ITEMS + 1)


class Starts:
    """Threads that start runs one after the other until they are stopped; every start must succeed."""

    def __init__(self, server, tenant, wid, threads=2):
        self.server, self.tenant, self.wid = server, tenant, wid
        self.over = threading.Event()
        self.took_s, self.failures = [], []
        self.threads = [threading.Thread(target=self.start_runs) for _ in range(threads)]

    def start_runs(self):
        client = self.server.client()
        while not self.over.is_set():
            began = time.monotonic()
            r = client.start(self.tenant, self.wid)
            self.took_s.append(time.monotonic() - began)
            if r.status != 200:
                self.failures.append(r)
                return

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join()


def test_100000_timers_of_one_second_fire_once_each_in_order_while_starts_go_on():
    with harness.server() as s:
        api = s.client()
        api.workflow("t", "other")
        began = time.monotonic()
        runs = [begin(api, "t", NAPS, wid="naps") for _ in range(RUNS)]
        nums = [num for (num,) in rows(s.db, "SELECT num FROM runs")]
        last_items = f"SELECT count(*) FROM jobs WHERE run IN ({','.join(map(str, nums))}) AND ordinal = {ITEMS}"
        wait_until(lambda: rows(s.db, last_items) == [(RUNS,)], "all timers are armed", harness.PATIENCE_S * 3)
        armed_s = time.monotonic() - began
        s.kill()
        bring_near(s.db, 1)
        api = s.start().client()
        over = f"SELECT count(*) FROM runs WHERE num IN ({','.join(map(str, nums))}) AND finished_at IS NOT NULL"
        with Starts(s, "t", "other") as starts:
            wait_until(lambda: rows(s.db, over) == [(RUNS,)], "all have fired", harness.PATIENCE_S * 3)
        assert not starts.failures and starts.took_s, starts.failures
        assert [show(api, "t", run)["status"] for run in runs] == ["succeeded"] * RUNS
        recorded = rows(s.db, "SELECT e.at, e.run, e.data FROM events e WHERE e.type = 'job.succeeded' ORDER BY e.at, e.run, e.seq")
        fired = [(at, run, json.loads(data)["item"]) for at, run, data in recorded]
        assert len(fired) == len({(run, item) for _, run, item in fired}) == RUNS * ITEMS, "each of them once"
        turns = collections.defaultdict(list)
        for at, _, item in fired:
            turns[at].append(millisecond(item))
        assert rows(s.db, "SELECT count(*) FROM timers") == [(0,)]
        last = 0
        for at in sorted(turns):
            assert last <= min(turns[at]), "a timer has fired before one that was due earlier"
            last = max(turns[at])
        assert_healthy(api)
    took = sorted(starts.took_s)
    print(f"armed in {armed_s:.1f} s, fired in {(max(turns) - min(turns)) / 1000:.1f} s over {len(turns)} turns, {len(took)} starts meanwhile, p50 {took[len(took) // 2] * 1000:.1f} ms, longest {took[-1] * 1000:.0f} ms")
