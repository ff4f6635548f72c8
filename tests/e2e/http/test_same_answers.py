"""A client cannot tell by the answers where it is: at a server with a file, at one on PostgreSQL, or at three nodes behind a round-robin."""
import contextlib
import re
import subprocess
import sys

import pytest

import harness
import test_openapi
from nats import nats_server

sys.path.append(str(harness.ROOT / "tests/tools"))
import with_postgres  # noqa: E402

THREE_NODES = str(harness.ROOT / "tests/tools/three_nodes.py")
SHARDS = {"a file": None, "one server": 1, "three nodes": 6}

# --- what is another one each time ---

TEXTS = [(re.compile(pattern), name) for pattern, name in (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"), (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"), (r"pawl_[0-9A-Z]{10}", "KEY"),
    (r"Try again in \d+ ms", "Try again in MS"), (r"cursor=[^>]*", "CURSOR"), (r"pawl_session=[^;]*", "SESSION"))]
MEMBERS = {"lease_token", "trace_id", "traceparent", "next_cursor", "key", "secret", "hash", "content_hash"}
HEADERS = {"date", "x-trace-id", "content-length"}
# Answers about the process or its store, and about how fast it was.
NOT_COMPARED = ("/metrics", "/readyz", "/api/v1/cluster", "/api/v1/backup", "/api/v1/stats", "/api/v1/approvals/analytics", "/api/v1/entity-types/rewards/stats",
                "/api/v1/webhooks/ID/deliveries")
# Members of some answers are. Entries of the audit trail are numbered, and linked by hashes, in each shard; a message has its place in the feed of its shard.
MEMBERS_NOT_COMPARED = {"/api/v1/me": {"server"}, "/api/v1/sessions": {"server"}, "/api/v1/doctor": {"checks"}, "/api/v1/doctor/repair": {"checks"},
                        "/api/v1/jobs/ID/complete": {"run_status", "generation"}, "/api/v1/audit": {"seq", "shard", "prev_hash"}, "/api/v1/outbox": {"position", "shard"}}
BY_NUMBER = ("/api/v1/audit?after=3", "/api/v1/audit/export", "/api/v1/audit/verify")
# Sent until one is refused, which depends on how fast they follow each other.
UNTIL_REFUSED = ("POST", "/api/v1/workflows/free/runs")


def plain(text):
    for pattern, name in TEXTS:
        text = pattern.sub(name, text)
    return text


def comparable(value, left_out):
    if isinstance(value, dict):
        return {plain(k): k if k in MEMBERS else comparable(v, left_out) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):
        return [comparable(v, left_out) for v in value]
    return plain(value) if isinstance(value, str) else value


class Recorder(harness.Client):
    """Keeps what was answered to each request. Of one that is asked until something has happened, the last answer."""

    def __init__(self, port, **kw):
        super().__init__(port, **kw)
        self.seen, self.answers = set(), []

    def call(self, method, path, body=None, **kw):
        reply = super().call(method, path, body, **kw)
        request, route = (method, plain(path)), plain(path).split("?")[0]
        if (method == "GET" or request == UNTIL_REFUSED) and self.answers and self.answers[-1][0] == request:
            self.answers.pop()
        if route.startswith(NOT_COMPARED) or plain(path).startswith(BY_NUMBER):
            self.answers.append((request,))
        else:
            headers = {k: plain(v) for k, v in reply.headers.items() if k not in HEADERS}
            body = comparable(reply.json, MEMBERS_NOT_COMPARED.get(route, set())) if reply.raw else None
            self.answers.append((request, reply.status, headers, body))
        return reply


def differences(was, now, place=""):
    """Where two values differ, and how."""
    if isinstance(was, (list, tuple)) and isinstance(now, (list, tuple)) and len(was) == len(now):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        return [found for k in was for found in differences(was[k], now[k], f"{place}/{k}")]
    return [] if was == now else [f"{place}: {was!r} became {now!r}"]


# --- where it is ---

class Deployment(harness.Server):
    def __init__(self, program, *args, **kw):
        super().__init__(*args, **kw)
        self.program = program

    def command(self):
        return [self.program, *super().command()[1:]]


@contextlib.contextmanager
def deployed(name, folder, postgres):
    folder = folder / name.replace(" ", "-")
    folder.mkdir()
    store = f"{postgres.url}&schema={folder.name.replace('-', '_')}" if SHARDS[name] else None
    if store:
        subprocess.run([harness.PAWL, "cluster", "init", "--shards", str(SHARDS[name]), "--store", store], check=True, capture_output=True)
    env = {"PAWL_ROOT_KEY": harness.ROOT_KEY, "THREE_NODES_PAWL": harness.PAWL}
    with nats_server(config="max_payload: 20000\n") as bus:
        server = Deployment(THREE_NODES if name == "three nodes" else harness.PAWL, folder, "--bus", bus.url, dev=False, env=env, store=store)
        try:
            yield server.start()
        finally:
            server.close()


def answers_of(server):
    client = Recorder(server.port, headers={"X-API-Key": harness.ROOT_KEY})
    test_openapi.success_of_every_route(client)
    test_openapi.test_every_problem_is_as_described(client)
    return client.answers


@pytest.mark.slow
@pytest.mark.sqlite("brings every store with it")
def test_every_route_answers_the_same_wherever_the_data_is(tmp_path):
    recorded = {}
    with with_postgres.start() as postgres:
        for name in SHARDS:
            with deployed(name, tmp_path, postgres) as server:
                recorded[name] = answers_of(server)
    expected = recorded.pop("a file")
    assert len(expected) > 700
    for name, answers in recorded.items():
        assert [request for request, *_ in answers] == [request for request, *_ in expected]
        different = [(was[0], found) for was, now in zip(expected, answers) for found in differences(was[1:], now[1:])]
        assert not different, (name, different)
