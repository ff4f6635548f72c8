"""What the end-to-end tests share: a real server on a loopback port in a temporary folder, and a bare HTTP client."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import uuid

import endpoint
import placement
from stores import SEVERAL_NODES, Stores

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAWL = os.environ.get("PAWL_BIN", str(ROOT / "build" / "pawl"))
PROGRAM = os.environ.get("THREE_NODES_PAWL", str(ROOT / "build" / "pawl")) if SEVERAL_NODES else PAWL  # the file itself; PAWL may be a script that starts it
ROOT_KEY = "7f3Kq9ZtW2mXc8RbLd5HvNs4YpGj6AeU"  # for PAWL_ROOT_KEY: an administrator of the server
# Sanitizer builds are several times slower: waits for a condition are longer there, never the checks weaker.
PATIENCE_S = float(os.environ.get("PAWL_PATIENCE_S", "20"))
stores = Stores(PAWL)


def wait_until(condition, what, seconds=None):
    """The first true value of condition(), or a failure that says what did not happen. It asks less often the longer it has waited: on a busy
    machine each question takes time from what it waits for."""
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begun
        if waited > (seconds or PATIENCE_S):
            raise AssertionError(f"did not happen in time: {what}")
        time.sleep(min(0.005 + waited / 10, 0.1))


class Reply:
    def __init__(self, status, headers, raw):
        self.status, self.headers, self.raw = status, headers, raw

    @property
    def json(self):
        return json.loads(self.raw)

    @property
    def code(self):
        """The stable code of a problem, or None."""
        return self.json.get("code") if self.status >= 400 else None

    def header(self, name):
        return self.headers.get(name.lower())

    def __repr__(self):
        return f"<{self.status} {self.raw[:300]!r}>"


class Client:
    """One keep-alive connection per thread. Never retries: a test sees what happened."""

    def __init__(self, port, headers=None, timeout=60):
        self.port, self.headers, self.timeout = port, headers or {}, timeout
        self.local = threading.local()

    def call(self, method, path, body=None, key=None, tenant=None, headers=None):
        head = dict(self.headers)
        if body is not None:
            head["Content-Type"] = "application/json"
        if key is not None:
            head["Idempotency-Key"] = key
        if tenant is not None:
            head["X-Tenant-ID"] = tenant
        head.update(headers or {})
        data = body if body is None or isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        conn = getattr(self.local, "conn", None)
        if conn is None:
            conn = self.local.conn = endpoint.http_connection(self.port, self.timeout)
        try:
            conn.request(method, path, data, head)
            r = conn.getresponse()
            raw = r.read()
        except (http.client.HTTPException, OSError):
            conn.close()
            self.local.conn = None
            raise
        return Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, raw)

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.call("POST", path, {} if body is None else body, **kw)

    def put(self, path, body=None, **kw):
        return self.call("PUT", path, {} if body is None else body, **kw)

    def delete(self, path, **kw):
        return self.call("DELETE", path, **kw)

    # --- what most tests need ---

    def workflow(self, tenant, wid="hold", steps=None, **more):
        steps = steps or [{"name": "work", "type": "task", "handler": "noop"}]
        r = self.put(f"/api/v1/workflows/{wid}", {"steps": steps, **more}, tenant=tenant)
        assert r.status == 200, r
        return r.json

    def tenant(self, beside=None, **settings):
        """`beside`: in the shard of that tenant. Tenants of one shard take turns by their weights."""
        name = "t-" + uuid.uuid4().hex[:12]
        while beside and placement.shard_of(name) != placement.shard_of(beside):
            name = "t-" + uuid.uuid4().hex[:12]
        r = self.put(f"/api/v1/tenants/{name}", settings, tenant=name)
        assert r.status == 200, r
        return name

    def start(self, tenant, wid="hold", body=None, key=None, **kw):
        return self.post(f"/api/v1/workflows/{wid}/runs", {"input": {}} if body is None else body, key=key, tenant=tenant, **kw)

    def work(self, tenant, queue="default", output=None, wait_ms=0, worker="w1"):
        """Claims one job and completes it; None when there is none."""
        r = self.post("/api/v1/jobs/claim", {"worker_id": worker, "queues": [queue], "wait_ms": wait_ms}, tenant=tenant)
        assert r.status == 200, r
        if not r.json["jobs"]:
            return None
        job = r.json["jobs"][0]
        r = self.post(f"/api/v1/jobs/{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": output or {}}, tenant=tenant)
        assert r.status == 200, r
        return job


class Server:
    """A pawl process. stop() asks it to drain; kill() is kill -9; start() again goes on with the same store and flags. `db` is the file that
    names its store (stores.py); `store`, if given, is the URL of another one. With `tls=False` it serves plain text in any case: for tests
    that are about plain text, or bring certificates of their own."""
    running = set()

    def __init__(self, folder, *flags, dev=True, env=None, preload=None, file="pawl.db", store=None, tls=True):
        self.folder = pathlib.Path(folder)
        self.db = self.folder / file
        self.given_store = store
        self.flags = list(flags)
        self.dev, self.env, self.preload, self.tls = dev, env or {}, preload, tls
        self.process = None
        self.port = 0

    @property
    def store(self):
        """What --store says."""
        return self.given_store or stores.url(self.db)

    def command(self):
        return [PAWL, "serve", "--listen", "127.0.0.1:0", "--store", self.store, *(["--dev"] if self.dev else []),
                *(endpoint.server_flags() if self.tls else []), *self.flags]

    def start(self):
        assert self.process is None
        env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
        env.update(self.env)
        if self.preload:
            env["LD_PRELOAD"] = str(self.preload)
        self.stderr_path = self.folder / "stderr.log"
        self.stderr = open(self.stderr_path, "ab")
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=self.stderr, env=env, cwd=self.folder)
        self.running.add(self)
        line = self.process.stdout.readline().decode()
        if not line.startswith("pawl listening on "):
            self.process.wait()
            raise AssertionError(f"did not start: {line!r} {self.log()}")
        self.url = line.split()[-1]
        self.port = endpoint.started(self.url)
        return self

    def client(self, **kw):
        return Client(self.port, **kw)

    def pids(self):
        """Of its process, or of its nodes."""
        own = self.process.pid
        nodes = pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split() if SEVERAL_NODES else []
        return [int(pid) for pid in nodes] or [own]

    def log(self):
        return self.stderr_path.read_text(errors="replace")

    def _gone(self):
        code = self.process.wait(timeout=PATIENCE_S + 30)
        self.process.stdout.close()
        self.stderr.close()
        self.process = None
        self.running.discard(self)
        return code

    def stop(self):
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def kill(self):
        self.process.kill()
        return self._gone()

    def ended(self):
        """Waits until it ends by itself, and the exit code."""
        return self._gone()

    def close(self):
        """Ends it whatever its state. A sanitizer's complaint makes the exit code nonzero and fails the test."""
        if self.process is None:
            return
        code = self.stop() if self.process.poll() is None else self._gone()
        assert code in (0, -signal.SIGKILL), f"exit code {code}\n{self.log()[-4000:]}"


@contextlib.contextmanager
def server(*flags, **kw):
    with tempfile.TemporaryDirectory(prefix="pawl-test-") as folder:
        s = Server(folder, *flags, **kw).start()
        try:
            yield s
        except BaseException:
            if s.process is not None and s.process.poll() is None:
                s.kill()
            print(s.log()[-4000:])
            raise
        s.close()


def together(n, fn):
    """fn(i) in n threads released at one moment; results in order. An exception in one fails the whole."""
    out, errors, gate = [None] * n, [], threading.Barrier(n)

    def one(i):
        try:
            gate.wait()
            out[i] = fn(i)
        except BaseException as e:  # handed to the caller's thread
            errors.append(e)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return out
