"""The command line and the data file: online copies, the doctor, working without a server, and retries across a restart."""
import socket
import sqlite3
import threading

import pytest

import cli
import endpoint
import harness
from cli import pawl
from inspect_store import FOLD_COUNTERS, write


def sqlite(path, sql):
    """One statement on the file, as somebody with a shell would."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(sql).fetchall()
    finally:
        connection.close()


# --- backup ---

COPIES = pytest.mark.sqlite("pawl copies files; a database is copied by its own tools")


@pytest.fixture
def busy():
    """A server on which runs are started all the time; acknowledged holds their ids."""
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        acknowledged, stop = [], threading.Event()

        def keep_starting():
            client = s.client()
            while not stop.is_set():
                acknowledged.append(client.start("t", body={"input": "x" * 500}).json["run_id"])

        threads = [threading.Thread(target=keep_starting) for _ in range(4)]
        for t in threads:
            t.start()
        try:
            yield s, acknowledged
        finally:
            stop.set()
            for t in threads:
                t.join()


@COPIES
def test_an_online_copy_has_everything_acknowledged_before_it(busy, tmp_path):
    s, acknowledged = busy
    harness.wait_until(lambda: len(acknowledged) >= 300, "runs are being started")
    for n in range(3):
        target = tmp_path / f"copy-{n}.db"
        before = list(acknowledged)
        r = pawl("backup", "--to", target, PAWL_URL=s.url)
        assert r.code == 0 and str(target) in r.out and str(target.stat().st_size) in r.out, r
        assert sqlite(target, "PRAGMA integrity_check") == [("ok",)]
        have = {row[0].hex() for row in sqlite(target, "SELECT id FROM runs")}
        assert {i.replace("-", "") for i in before} <= have
    harness.wait_until(lambda: len(acknowledged) > len(have), "starts go on after the copy")


@COPIES
def test_a_server_runs_on_a_copy_as_on_the_first(busy, tmp_path):
    s, acknowledged = busy
    harness.wait_until(lambda: len(acknowledged) >= 50, "runs are being started")
    before = list(acknowledged)
    assert pawl("backup", "--to", tmp_path / "pawl.db", "--json", PAWL_URL=s.url).json["bytes"] == (tmp_path / "pawl.db").stat().st_size
    copy = harness.Server(tmp_path).start()
    try:
        api = copy.client()
        for rid in before:
            assert api.get(f"/api/v1/runs/{rid}", tenant="t").status == 200
        assert api.get("/api/v1/doctor").json["ok"] is True
        assert api.start("t").status == 200 and api.work("t")
    finally:
        copy.close()


@COPIES
def test_a_copy_does_not_replace_a_file_unless_told_to(dev_server, tmp_path):
    target = tmp_path / "copy.db"
    target.write_text("precious")
    r = pawl("backup", "--to", target, PAWL_URL=dev_server.url)
    assert r.code == 1 and "--force" in r.err and target.read_text() == "precious", r
    assert pawl("backup", "--to", target, "--force", PAWL_URL=dev_server.url).code == 0
    assert sqlite(target, "PRAGMA integrity_check") == [("ok",)]
    assert [p.name for p in tmp_path.iterdir()] == ["copy.db"], "nothing else is left behind"


@pytest.mark.parametrize("target", ["nowhere/copy.db", "."])
def test_a_copy_that_cannot_be_written_is_refused(dev_server, tmp_path, target):
    r = pawl("backup", "--to", target, "--force", cwd=tmp_path, PAWL_URL=dev_server.url)
    assert r.code == 1 and r.err and list(tmp_path.iterdir()) == [], r


def test_a_refused_copy_leaves_no_file(tmp_path):
    with harness.server(dev=False) as s:
        r = pawl("backup", "--to", tmp_path / "copy.db", PAWL_URL=s.url)
    assert r.code == 1 and "UNAUTHENTICATED" in r.err and list(tmp_path.iterdir()) == [], r


@COPIES
def test_copies_at_once_all_come_out_whole(dev_server, tmp_path):
    """One at a time inside the server; the others ask again until it is their turn."""
    done = harness.together(3, lambda i: pawl("backup", "--to", tmp_path / f"c{i}.db", PAWL_URL=dev_server.url))
    assert [d.code for d in done] == [0] * 3, done
    for i in range(3):
        assert sqlite(tmp_path / f"c{i}.db", "PRAGMA integrity_check") == [("ok",)]


@COPIES
def test_a_copy_of_a_file_without_a_server(tmp_path):
    server = harness.Server(tmp_path).start()
    server.client().workflow("t")
    run = server.client().start("t").json["run_id"]
    assert server.stop() == 0
    target = tmp_path / "copy.db"
    assert pawl("backup", "--to", target, PAWL_STORE=server.store).code == 0
    assert run.replace("-", "") in {row[0].hex() for row in sqlite(target, "SELECT id FROM runs")}


@COPIES
def test_no_copy_is_left_beside_the_data(tmp_path):
    """Also when the client goes away in the middle of it."""
    server = harness.Server(tmp_path).start()
    try:
        api = server.client()
        api.workflow("t")
        for _ in range(20):
            api.start("t", body={"input": "x" * 500_000})
        with endpoint.connect(server.port) as s:
            s.sendall(b"GET /api/v1/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert s.recv(100)
        assert api.get("/api/v1/backup").status == 200
        names = {"pawl.db", "pawl.db-wal", "pawl.db-shm", "pawl.db.lock", "stderr.log"}
        harness.wait_until(lambda: {p.name for p in tmp_path.iterdir()} <= names, "the copies are gone")
    finally:
        server.close()


# --- doctor ---

CHECKS = ["file", "objects", "slots", "queue", "runs", "jobs", "approvals", "entities", "webhooks", "idempotency", "indexes", "audit"]


@pytest.fixture
def stopped(tmp_path):
    """A file with runs of every ending in it, its server stopped."""
    server = harness.Server(tmp_path).start()
    api = server.client()
    api.workflow("acme")
    for i in range(6):
        api.start("acme", key=f"k{i}")
    api.work("acme")
    api.post(f"/api/v1/runs/{api.start('acme').json['run_id']}/cancel", tenant="acme")
    for name in ("Acme", "Acme Ltd"):
        api.put("/api/v1/tenants/acme", {"name": name})
    assert api.get("/api/v1/tenants/acme").json["active_runs"] == 5
    assert server.stop() == 0
    return server


def test_the_doctor_finds_nothing_wrong_with_a_sound_file(stopped):
    r = pawl("doctor", "--store", stopped.store)
    assert r.code == 0 and r.rows[0] == ["CHECK", "OK", "CHECKED", "DETAIL"], r
    assert [row[:2] for row in r.rows[1:]] == [[name, "yes"] for name in CHECKS]
    stopped.start()
    try:
        said = pawl("doctor", "--json", PAWL_URL=stopped.url)
        assert said.code == 0 and said.json["ok"] is True
    finally:
        stopped.close()


@pytest.mark.parametrize("sql,check", [
    ("UPDATE tenants SET active_runs = active_runs + 1 WHERE id = 'acme'", "slots"),
    ("UPDATE tenants SET active_runs = 0 WHERE id = 'acme'", "slots"),
    ("UPDATE tenants SET queued_runs = 1 WHERE id = 'acme'", "queue"),
    ("UPDATE runs SET version = 0 WHERE status = 'succeeded'", "runs"),
    ("UPDATE jobs SET finished_at = NULL WHERE state = 'succeeded'", "jobs"),
    ("INSERT INTO entity_states (entity, type_version, state) VALUES (1, 1, '1')", "entities"),
    ("INSERT INTO key_records (num, tenant, key, key_hash, route, fingerprint, raw_hash, status, says_created, body, replays, mismatches, created_at)"
     " SELECT 9, tenant, key, 0, route, x'" + "5a" * 32 + "', x'" + "5a" * 8 + "', 200, 1, '{}', 0, 0, 1 FROM idempotency WHERE key = 'k0'", "idempotency"),
    ("INSERT INTO run_blocks (tenant, num) VALUES (1, 1)", "indexes"),
    ("UPDATE audit SET actor = 'somebody else'", "audit"),
    ("DELETE FROM audit WHERE seq = 1", "audit"),
])
def test_the_doctor_finds_what_was_tampered_with(stopped, sql, check):
    write(stopped.db, FOLD_COUNTERS + sql, "acme")
    r = pawl("doctor", "--store", stopped.store)
    assert r.code == 1, r
    assert [row[:2] for row in r.rows[1:len(CHECKS) + 1]] == [[name, "no" if name == check else "yes"] for name in CHECKS], r
    said = pawl("doctor", "--store", stopped.store, "--json")
    assert said.code == 1 and said.json["ok"] is False
    assert [c["name"] for c in said.json["checks"] if not c["ok"]] == [check]
    assert all(c["found"] for c in said.json["checks"] if not c["ok"])


# --- without a server ---

def test_tenants_and_keys_are_set_up_on_the_file(tmp_path):
    store = harness.stores.url(tmp_path / "pawl.db")
    assert pawl("tenant", "set", "acme", "--max-concurrent-runs", "1", "--store", store).code == 0
    assert pawl("tenant", "show", "acme", "--store", store, "--json").json["max_concurrent_runs"] == 1
    assert [row[0] for row in pawl("tenant", "list", PAWL_STORE=store).rows] == ["ID", "acme"]
    key = pawl("key", "create", "--tenant", "acme", "--role", "operator", "--store", store).out.strip()
    server = harness.Server(tmp_path, dev=False).start()
    try:
        client = server.client(headers={"X-API-Key": key})
        client.workflow(None)
        assert [client.start(None).status for _ in range(2)] == [200, 429]
    finally:
        server.close()


def test_a_store_that_cannot_be_is_refused_with_the_servers_words(tmp_path):
    r = pawl("tenant", "list", "--store", f"sqlite:{tmp_path}/nowhere/pawl.db")
    assert r.code == 1 and "nowhere" in r.err and r.out == "", r
    r = pawl("tenant", "list", "--store", "mysql:x")
    assert r.code == 1 and r.err and r.out == "", r


def test_a_command_on_the_file_leaves_no_process(tmp_path):
    """The private server ends with the command; a real one can take the file at once."""
    store = harness.stores.url(tmp_path / "pawl.db")
    assert pawl("tenant", "set", "a", "--store", store).code == 0
    server = harness.Server(tmp_path).start()
    try:
        assert server.client().get("/api/v1/tenants/a").status == 200
    finally:
        server.close()


# --- retries ---

class Lossy:
    """A port that hands requests on to a server, and loses the first answers: the client cannot know what became of them."""

    def __init__(self, server, lose, after_loss):
        self.server, self.lose, self.after_loss = server, lose, after_loss
        self.requests, self.errors = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    self.serve(connection)
        except OSError:
            return  # closed
        except BaseException as e:
            self.errors.append(e)

    def serve(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            data = connection.recv(65536)
            if not data:
                return
            head += data
        length = int(next((line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), b"0"))
        while len(head.split(b"\r\n\r\n", 1)[1]) < length:
            head += connection.recv(65536)
        self.requests.append(head.decode())
        with endpoint.connect(self.server.port) as onward:
            onward.sendall(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            answer = b""
            while data := onward.recv(65536):
                answer += data
        if len(self.requests) <= self.lose:
            self.after_loss()
        else:
            connection.sendall(answer)

    def keys(self):
        return [line.split(":", 1)[1].strip() for r in self.requests for line in r.split("\r\n") if line.lower().startswith("idempotency-key:")]

    def close(self):
        self.listener.close()


@pytest.mark.parametrize("given", [None, "my-own-key"])
def test_a_start_is_retried_with_its_key_across_a_killed_server(tmp_path, given):
    """The server commits, its answer is lost, it is killed and comes back on the same port: the command repeats and gets the one run."""
    port = cli.free_port()
    server = harness.Server(tmp_path, "--listen", f"127.0.0.1:{port}").start()
    assert server.port == port
    server.client().workflow("t")

    def restart():
        server.kill()
        server.start()
        assert server.port == port

    lossy = Lossy(server, 1, restart)
    try:
        r = pawl("run", "start", "hold", "--tenant", "t", "--json", *(["--idempotency-key", given] if given else []), PAWL_URL=lossy.url)
        assert r.code == 0 and r.json["created"] is False, (r, lossy.errors)
        runs = server.client().get("/api/v1/runs", tenant="t").json["items"]
        assert [run["id"] for run in runs] == [r.json["run_id"]]
        keys = lossy.keys()
        assert len(keys) == 2 and len(set(keys)) == 1 and (given is None or keys[0] == given)
    finally:
        lossy.close()
        server.close()


def test_a_claim_whose_answer_was_lost_is_claimed_again_by_its_key(tmp_path):
    server = harness.Server(tmp_path).start()
    lossy = Lossy(server, 2, lambda: None)
    try:
        api = server.client()
        api.workflow("t")
        api.start("t")
        r = pawl("job", "claim", "--tenant", "t", "--json", PAWL_URL=lossy.url)
        assert r.code == 0 and len(r.json["jobs"]) == 1 and r.json["jobs"][0]["attempt"] == 1, (r, lossy.errors)
        assert len(lossy.requests) == 3
    finally:
        lossy.close()
        server.close()


def test_it_gives_up_after_four_attempts(tmp_path):
    server = harness.Server(tmp_path).start()
    lossy = Lossy(server, 100, lambda: None)
    try:
        server.client().workflow("t")
        r = pawl("run", "start", "hold", "--tenant", "t", PAWL_URL=lossy.url)
        assert r.code == 3 and len(lossy.requests) == 4 and len(set(lossy.keys())) == 1, r
        assert len(server.client().get("/api/v1/runs", tenant="t").json["items"]) == 1
    finally:
        lossy.close()
        server.close()


def test_a_refusal_is_not_retried(tmp_path):
    server = harness.Server(tmp_path).start()
    lossy = Lossy(server, 0, lambda: None)
    try:
        r = pawl("run", "start", "none", "--tenant", "t", PAWL_URL=lossy.url)
        assert r.code == 1 and sum(request.startswith("POST ") for request in lossy.requests) == 1  # then it looks for a similar name
    finally:
        lossy.close()
        server.close()
