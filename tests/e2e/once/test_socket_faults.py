"""Socket calls of the server that fail, once and until they are mended: clients that retry with the same key get each thing once."""
import contextlib
import errno
import http.client
import pathlib
import tempfile

import pytest

import faults
import harness
import stores
from harness import wait_until
from inspect_store import all_runs, assert_healthy

# What the kernel really says of such a call; a recv or send that fails has cut its connection.
FAULTS = [("accept", errno.EMFILE), ("accept", errno.ENOMEM), ("accept", errno.ECONNABORTED), ("recv", errno.ECONNRESET),
          ("recv", errno.ENOMEM), ("send", errno.ECONNRESET), ("send", errno.EPIPE), ("epoll_wait", errno.EINTR)]
NTH = (1, 2, 3, 5)
LOST = {"STORE_BUSY"} if stores.POSTGRES else set()
LOST |= {"SHARD_UNAVAILABLE", "STORE_FAILED"} if stores.SEVERAL_NODES else set()
SHORT_S = 2  # a connection that is not answered by then is given up, and another one is tried


class Sockets:
    """What the server's socket calls do from now on."""

    def __init__(self, folder):
        self.control = pathlib.Path(folder) / "sockets"
        self.hits_file = pathlib.Path(folder) / "sockets.hits"

    def hits(self):
        return self.hits_file.stat().st_size if self.hits_file.exists() else 0

    def say(self, text):
        new = self.control.with_suffix(".new")
        new.write_text(text)
        new.rename(self.control)


@pytest.fixture
def faulty(fault_library):
    with tempfile.TemporaryDirectory(prefix="pawl-fault-") as folder:
        sockets = Sockets(folder)
        s = harness.Server(folder, env=faults.environment(PAWL_FAULT_SOCKETS=sockets.control), preload=fault_library).start()
        try:
            yield s, sockets
            s.close()
        finally:
            if s.process is not None:
                s.kill()


def once(s, do):
    """The answer, or None: the connection was lost, or nobody answered, or the server has lost its connection to PostgreSQL or to a node."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        r = do(harness.Client(s.port, timeout=SHORT_S))
        return None if r.code in LOST else r
    return None


def until_answered(s, do):
    r = wait_until(lambda: once(s, do), "an answer", harness.PATIENCE_S * 3)
    assert r.status == 200, r
    return r.json


def one_run(s, key, ask):
    """A run from its start to its end, each request with a key of its own."""
    run = ask(s, lambda api: api.start("t", key=f"start-{key}"))["run_id"]
    job = ask(s, lambda api: api.post("/api/v1/jobs/claim", {"worker_id": "w", "lease_ms": 600000}, tenant="t", key=f"claim-{key}"))["jobs"][0]
    assert job["run_id"] == run
    ask(s, lambda api: api.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"]}, tenant="t", key=f"end-{key}"))
    assert ask(s, lambda api: api.get(f"/api/v1/runs/{run}", tenant="t"))["status"] == "succeeded"
    return run


@pytest.mark.parametrize("call,error", FAULTS, ids=lambda x: errno.errorcode.get(x, x))
def test_a_failed_socket_call_costs_no_run_and_makes_no_second(faulty, call, error):
    s, sockets = faulty
    s.client().workflow("t", steps=[{"name": "a", "type": "task", "handler": "h"}])
    runs = set()
    assert sockets.hits() == 0
    for n in NTH:
        sockets.say(f"{call} {n} {error} once")
        runs.add(one_run(s, f"once-{n}", until_answered))
        sockets.say(f"{call} {n} {error} always")
        once(s, lambda api, n=n: api.start("t", key=f"start-always-{n}"))
        sockets.say("")
        runs.add(one_run(s, f"always-{n}", until_answered))
    assert sockets.hits() >= len(NTH)
    until_answered(s, lambda api: api.get("/api/v1/doctor"))  # a node that lost its connections may not have its shards back yet
    api = s.client()
    assert {r["id"] for r in all_runs(api, "t")} == runs and len(runs) == 2 * len(NTH)
    assert_healthy(api)
