"""One story from end to end: orders that are paid, approved and shipped or refunded, and rewards that count each of them
once, while server and worker are killed again and again. Client and worker are written in C."""
import collections
import json
import os
import subprocess

from support import HERE, Server, compile_program, install, wait_until

ORDERS = int(os.environ.get("PAWL_STORY_ORDERS", "12"))
KILLS = int(os.environ.get("PAWL_STORY_KILLS", "5"))
CUSTOMERS = ["ada", "bob", "eve"]
SLOTS = 4


class Program:
    """One of the story's programs; the worker can be killed and comes back."""

    def __init__(self, command, env, folder):
        self.command, self.env, self.log = command, env, folder / f"{command[1]}.log"
        self.start()

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stdout=subprocess.PIPE, stderr=log, text=True)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def versions(server):
    page = server.get("/api/v1/runs?limit=200")
    return {run["id"]: (run["version"], run["status"]) for run in page["items"]} if page else None


def something_happens(server):
    """Until a few more things have happened to the runs, or all are over: kills come while there is work."""
    before = wait_until(lambda: versions(server), "the runs can be read")

    def moved():
        now = versions(server) or {}
        done = len(now) == ORDERS and all(status == "succeeded" for _, status in now.values())
        return done or sum(version - before.get(i, (0, ""))[0] for i, (version, _) in now.items()) >= 5

    wait_until(moved, "the orders move on")


def kill_one(kill, server, worker):
    if kill % 3 != 1:
        worker.kill()
    if kill % 3 != 0:
        server.kill()
        server.start()
    if kill % 3 != 1:
        worker.start()


def state_of(server, customer):
    entity = server.get(f"/api/v1/entities/account/{customer}")
    return (entity or {}).get("state") or {"points": 0, "signals": 0}


def test_orders_through_kills(tmp_path):
    env = install(tmp_path / "prefix")
    program = compile_program(HERE / "programs" / "story.c", tmp_path / "story", env, "-pthread")
    bank = tmp_path / "bank"
    bank.mkdir()
    server = Server(tmp_path).start()
    env = {**env, "PAWL_URL": server.url}
    worker = Program([program, "worker", bank], env, tmp_path)
    wait_until(lambda: "order" in str(server.get("/api/v1/workflows")), "the worker is there")
    client = Program([program, "client", str(ORDERS)], env, tmp_path)
    try:
        for kill in range(KILLS):
            something_happens(server)
            kill_one(kill, server, worker)
        printed, _ = client.process.communicate(timeout=300)
        assert client.process.returncode == 0, client.log.read_text()
        runs = [json.loads(line) for line in printed.splitlines()]
        shipped = collections.Counter(CUSTOMERS[n % 3] for n in range(ORDERS) if n % 2 == 0)
        wait_until(lambda: sum(state_of(server, c)["points"] for c in CUSTOMERS) == 10 * sum(shipped.values()), "all rewards are counted")
        check(server, bank, runs, shipped)
    finally:
        client.process.kill()
        client.process.wait()
        worker.kill()
        server.stop()


def check(server, bank, runs, shipped):
    effects = {path.name for path in bank.iterdir()} - {"calls"}
    wanted = set()
    for n, run in enumerate(runs):
        ended = "shipped" if n % 2 == 0 else "refunded"
        assert (run["status"], run["output"]) == ("succeeded", {"ended": ended, "paid": {"n": n}}), run["error"]
        job_id = run["steps"][0]["job_id"]
        wanted |= {f"{job_id}:charge", f"{job_id}:{'ship' if n % 2 == 0 else 'refund'}"}
        types = [event["type"] for event in server.get(f"/api/v1/runs/{run['id']}/events?limit=200")["items"]]
        assert types.count("approval.requested") == 1, "the question is asked once"
        assert types.count("job.checkpointed") == (6 if n % 2 == 0 else 5), "each result is stored once"
    assert len(runs) == ORDERS and effects == wanted, "each effect once, and no refund of what was shipped"
    calls = collections.Counter((bank / "calls").read_text().split("\n"))
    again = sum(count - 2 for count in calls.values() if count > 2)
    assert again <= SLOTS * KILLS, "only what a kill interrupts is called again: at most one step per slot"
    for customer in CUSTOMERS:
        assert state_of(server, customer) == {"points": 10 * shipped[customer], "signals": shipped[customer]}
    assert server.get("/api/v1/doctor")["ok"]
