"""One story from end to end: orders that are paid, approved and shipped, and rewards that count each of them once,
while server and worker are killed again and again."""

from __future__ import annotations

import os
import pathlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import pawl
from script import FLAVOURS
from server import PROGRAM_ENV, Server, wait_until

ORDERS = int(os.environ.get("PAWL_STORY_ORDERS", "12"))
KILLS = int(os.environ.get("PAWL_STORY_KILLS", "5"))
CUSTOMERS = ["ada", "bob", "eve"]


class Worker:
    """The worker as a process that can be killed."""

    def __init__(self, server: Server, folder: pathlib.Path, flavour: str) -> None:
        self.server, self.folder, self.flavour = server, folder, flavour
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        program = pathlib.Path(__file__).parent / "support" / "story_worker.py"
        environment = {**PROGRAM_ENV, "PAWL_URL": self.server.url}
        command = [sys.executable, str(program), str(self.folder / "bank.db"), self.flavour]
        with (self.folder / "worker.log").open("a") as log:
            return subprocess.Popen(command, env=environment, stderr=log)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.process = self._start()


@pytest.fixture
def bank(tmp_path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "bank.db", timeout=60, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE calls (key TEXT, what TEXT)")
    connection.execute("CREATE TABLE effects (key TEXT PRIMARY KEY, what TEXT, id TEXT)")
    yield connection
    connection.close()


def patient(server: Server) -> pawl.Client:
    """A client that outlives every kill."""
    return pawl.Client(server.url, retry=pawl.Retry(deadline=300), budget=pawl.Budget(1e6, 1e6))


def approve_all(server: Server, over: threading.Event) -> None:
    """A person who approves whatever is asked; some of it twice."""
    client = patient(server)
    for event in client.events(types=["approval.requested", "run.succeeded"], after="0-0"):
        if event.type == "approval.requested":
            client.approve(event.data["job_id"])
            client.approve(event.data["job_id"])
        if over.is_set():
            return


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_orders_through_kills(tmp_path: pathlib.Path, bank: sqlite3.Connection, flavour: str) -> None:
    server = Server(tmp_path).start()
    worker = Worker(server, tmp_path, flavour)
    client = patient(server)
    over = threading.Event()
    try:
        person = threading.Thread(target=approve_all, args=(server, over), daemon=True)
        person.start()
        wait_until(lambda: "order" in [w.id for w in client.workflows.list()], "the worker is there")
        runs = [start(client, n) for n in range(ORDERS)]
        for kill in range(KILLS):
            something_happens(client)
            kill_one(kill, server, worker)
        finished = [client.wait(run_id, timeout=300) for run_id in runs]
        wait_until(lambda: sum(points(client, c) for c in CUSTOMERS) == 10 * ORDERS, "all rewards are counted")
        check(client, bank, finished)
    finally:
        over.set()
        worker.kill()
        server.stop()


def start(client: pawl.Client, n: int) -> str:
    """An order that is started twice with one key is one order."""
    order = {"n": n, "customer": CUSTOMERS[n % len(CUSTOMERS)]}
    run_id = client.start("order", order, key=f"order-{n}").run_id
    assert client.start("order", order, key=f"order-{n}").run_id == run_id
    for _ in range(2):
        client.signal(run_id, "paid", {"n": n}, dedup_key="paid")
    return run_id


def something_happens(client: pawl.Client) -> None:
    """Until a few more things have happened to the runs, or all are over: kills come while there is work."""
    versions = {run.id: run.version for run in client.runs.list()}

    def moved() -> bool:
        now = {run.id: (run.version, run.status) for run in client.runs.list()}
        done = all(status == "succeeded" for _, status in now.values())
        return done or sum(version - versions.get(i, 0) for i, (version, _) in now.items()) >= 5

    wait_until(moved, "the orders move on")


def kill_one(kill: int, server: Server, worker: Worker) -> None:
    if kill % 3 != 1:
        worker.kill()
    if kill % 3 != 0:
        server.kill()
        server.start()
    if kill % 3 != 1:
        worker.restart()


def points(client: pawl.Client, customer: str) -> int:
    try:
        state = client.entities.get("account", customer).state
    except pawl.errors.NotFound:
        return 0
    return 0 if state is None else int(state["points"])


def check(client: pawl.Client, bank: sqlite3.Connection, finished: list[pawl.models.Run]) -> None:
    effects = {key: (what, found) for key, what, found in bank.execute("SELECT key, what, id FROM effects")}
    for n, run in enumerate(finished):
        job_id = run.steps[0].job_id
        assert run.status == "succeeded", run.error
        assert run.output == {
            "charge": effects[f"{job_id}:charge"][1],
            "paid": {"n": n},
            "by": "dev",
            "ship": effects[f"{job_id}:ship"][1],
        }
        types = [event.type for event in client.runs.timeline(run.id)]
        assert types.count("approval.requested") == 1, "the question is asked once"
        assert types.count("job.checkpointed") == 6, "each result is stored once"
    assert len(effects) == 2 * ORDERS
    (calls,) = bank.execute("SELECT count(*) FROM calls").fetchone()
    assert calls <= 2 * ORDERS + 4 * KILLS, "only what a kill interrupts is called again: at most one step per slot"
    for customer in CUSTOMERS:
        state = client.entities.get("account", customer).state
        own = len([n for n in range(ORDERS) if CUSTOMERS[n % len(CUSTOMERS)] == customer])
        assert state == {"points": 10 * own, "signals": own}
    assert client.server.doctor().ok
