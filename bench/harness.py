"""What the parts of the benchmark share: the servers they start, the programs that measure, and the
rows of the table."""
import http.client
import json
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

CONNECTIONS = 64
WARM_S = 1.0
READY_WAIT_S = 10.0
STOP_WAIT_S = 20.0
COUNTED_WAIT_S = 120.0  # for loads that end by their count; far more than they take

PARK_PATH = "/api/v1/workflows/park/runs"
PARK = {"id": "park", "steps": [{"name": "wait", "type": "sleep", "duration_ms": 3600000}]}
START_BODY = '{"input":{"orderId":"order_789","n":12345}}'


class BenchError(Exception):
    """The figures cannot be trusted, or there are none."""


class Server:
    """A child process that says on stdout where it listens; stopped by its own pid on exit."""

    def __init__(self, argv, ready, log, ready_wait_s=READY_WAIT_S):
        self.argv, self.ready, self.log = [str(a) for a in argv], re.compile(ready), log
        self.ready_wait_s = ready_wait_s
        self.name = pathlib.Path(self.argv[0]).name

    def __enter__(self):
        with open(self.log, "wb") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        said = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(said,), daemon=True)
        self.reader.start()
        try:
            at, self.port = said.get(timeout=self.ready_wait_s)
        except queue.Empty:
            at, self.port = 0, None
        except BaseException:
            self._stop()
            raise
        if self.port is None:
            self._stop()
            raise BenchError(f"{self.name} did not say that it listens\n{self.log_tail()}")
        self.ready_ms = (at - begun) * 1000
        return self

    def __exit__(self, *_):
        self._stop()

    def _read(self, said):
        # Reads on after the line, or a chatty server would block on a full pipe.
        for line in self.process.stdout:
            match = self.ready.search(line)
            if match:
                said.put((time.perf_counter(), int(match[1])))
        said.put((0, None))

    def _stop(self):
        alive = self.process.poll() is None
        if alive:
            self.process.terminate()
        try:
            code = self.process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code != 0:
            when = "after" if alive else "before"
            print(f"{self.name} ended with {code} {when} SIGTERM", file=sys.stderr)
        self.reader.join(1)
        self.process.stdout.close()

    def client(self, timeout=10):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def log_tail(self):
        return pathlib.Path(self.log).read_text(errors="replace")[-2000:]

    def rss_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def pawl_server(args, folder, name="pawl"):
    return Server([args.pawl, "serve", "--dev", "--listen", "127.0.0.1:0",
                   "--store", f"sqlite:{folder}/{name}.db"],
                  r"^pawl listening on http://127\.0\.0\.1:(\d+)\s*$", folder / f"{name}.log")


def bare_server(args, folder):
    return Server([args.tools / "bare_http"], r"^listening (\d+)$", folder / "bare.log")


def run_tool(argv, seconds):
    """Runs one measuring program and returns its JSON line."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds + 30)
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{argv[0]} did not stop by itself") from late
    if done.returncode != 0:
        raise BenchError(f"{argv[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def send_starts(tools, server, what, seconds, options, codes, body=START_BODY):
    """Runs the load generator; answers with other statuses than these spoil the figure."""
    argv = [tools / "load", "--port", server.port, "--method", "POST", "--body", body, *options]
    try:
        result = run_tool(argv, seconds)
    except BenchError as failure:
        raise BenchError(f"{what}: {failure}\n{server.log_tail()}") from failure
    if result["errors"] or not codes(result["codes"]):
        raise BenchError(f"{what}: {result['errors']} errors, answers by status "
                         f"{result['codes']}\n{server.log_tail()}")
    return result


def load(tools, server, what, seconds, connections=CONNECTIONS, tenant="t{c}", key="{u}"):
    """One closed-loop window of starts, all answered 200."""
    options = ["--connections", connections, "--warm", WARM_S, "--seconds", seconds,
               "--path", PARK_PATH, "--header", f"X-Tenant-ID: {tenant}",
               "--header", f"Idempotency-Key: {key}"]
    return send_starts(tools, server, what, WARM_S + seconds, options,
                       lambda codes: set(codes) == {"200"})


def load_counted(tools, server, what, requests, codes, connections=CONNECTIONS, tenant="t{c}",
                 path=PARK_PATH, options=()):
    """So many starts without keys; `codes` says how many answers of each status they must get."""
    options = ["--connections", connections, "--warm", 0, "--seconds", COUNTED_WAIT_S,
               "--requests", requests, "--path", path, "--header", f"X-Tenant-ID: {tenant}",
               *options]
    return send_starts(tools, server, what, COUNTED_WAIT_S, options, lambda got: got == codes)


def ask(client, method, path, headers, body=None):
    client.request(method, path, body, {"Content-Type": "application/json", **headers})
    reply = client.getresponse()
    text = reply.read().decode(errors="replace")
    if reply.status != 200:
        raise BenchError(f"{method} {path}: {reply.status} {text[:500]}")
    return text


def wait_ready(client, wait_s=READY_WAIT_S):
    until = time.monotonic() + wait_s
    while True:
        try:
            ask(client, "GET", "/readyz", {})
            return
        except BenchError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def row(figure, value, unit, share=None, target=None, met=None):
    return {"figure": figure, "value": round(value, 2), "unit": unit,
            "ratio": None if share is None else round(share, 3), "target": target, "met": met}
