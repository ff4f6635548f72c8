"""What the parts of the benchmark share: the servers that they start, the requests that they send,
and the programs that measure."""
import contextlib
import http.client
import json
import os
import pathlib
import queue
import random
import re
import socket
import subprocess
import sys
import threading
import time

CONNECTIONS = 64
READY_WAIT_S = 60.0  # bounds, not expectations: the machine may be busy
STOP_WAIT_S = 60.0
ANSWER_WAIT_S = 60.0
COUNTED_WAIT_S = 36000.0  # for loads that end by their count; far more than they take
BODY_SHOWN_MAX = 200     # of a command in the results

PARK_PATH = "/api/v1/workflows/park/runs"
PARK = {"id": "park", "steps": [{"name": "wait", "type": "sleep", "duration_ms": 3600000}]}
START_BODY = '{"input":{"orderId":"order_789","n":12345}}'
OK = frozenset({"200"})


class BenchError(Exception):
    """The figures cannot be trusted, or there are none."""


def free_port():
    """A port that nobody listens on right now, below those that the kernel gives to connections: one of them could take it meanwhile."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10_000, lowest)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Server:
    """A child process that says on stdout where it listens; stopped by its own pid on exit."""

    def __init__(self, argv, ready, log, ready_wait_s=READY_WAIT_S):
        self.argv, self.ready, self.log = [str(a) for a in argv], re.compile(ready), log
        self.ready_wait_s = ready_wait_s
        self.name = pathlib.Path(self.argv[0]).name

    def __enter__(self):
        with open(self.log, "ab") as log:
            self.begun = time.perf_counter()
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        said = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(said,), daemon=True)
        self.reader.start()
        try:
            self.port = said.get(timeout=self.ready_wait_s)
        except queue.Empty:
            self.port = None
        except BaseException:
            self._stop()
            raise
        if self.port is None:
            self._stop()
            raise BenchError(f"{self.name} did not say that it listens\n{self.log_tail()}")
        return self

    def __exit__(self, *_):
        self._stop()

    def _read(self, said):
        # Reads on after the line, or a chatty server would block on a full pipe.
        for line in self.process.stdout:
            match = self.ready.search(line)
            if match:
                said.put(int(match[1]))
        said.put(None)

    def _stop(self):
        alive = self.process.poll() is None
        if alive:
            self.process.terminate()
        try:
            code = self.process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code not in (0, -9):
            when = "after" if alive else "before"
            print(f"{self.name} ended with {code} {when} SIGTERM", file=sys.stderr)
        self.reader.join(1)
        self.process.stdout.close()

    def kill(self):
        """As a crash would: kill -9."""
        self.process.kill()
        self.process.wait()

    def wait_ready(self):
        """Milliseconds from the start of the process to the first /readyz that says yes."""
        client = self.client()
        wait_ready(client, self.ready_wait_s, pause_s=0.001)
        client.close()
        return (time.perf_counter() - self.begun) * 1000

    def client(self, timeout=ANSWER_WAIT_S):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def log_tail(self):
        return pathlib.Path(self.log).read_text(errors="replace")[-2000:]

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}").read_text()

    def rss_mib(self):
        return int(re.search(r"VmRSS:\s+(\d+) kB", self.proc("status"))[1]) / 1024

    def cpu_us(self):
        """Time on a processor of all threads so far; of those that run on, which are nearly all."""
        total_ns = 0
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # it has just ended
                total_ns += int(thread.read_text().split()[0])
        return total_ns / 1000

    def loop_cpu_us(self):
        """The part of its first thread, which in pawl serves HTTP."""
        return int(self.proc(f"task/{self.process.pid}/schedstat").split()[0]) / 1000

    def written_bytes(self):
        """What the process has given to the disk so far."""
        return int(re.search(r"^write_bytes: (\d+)", self.proc("io"), re.M)[1])


def pawl_server(bench, folder, name="pawl", ready_wait_s=READY_WAIT_S, flags=()):
    return Server([bench.pawl, "serve", "--dev", "--listen", "127.0.0.1:0",
                   "--store", f"sqlite:{folder}/{name}.db", *flags],
                  r"^pawl listening on http://127\.0\.0\.1:(\d+)\s*$", folder / f"{name}.log",
                  ready_wait_s)


def bare_server(bench, folder, program="bare_http"):
    return Server([bench.tools / program], r"^listening (\d+)$", folder / f"{program}.log")


@contextlib.contextmanager
def worker(bench, server, *options):
    """Completes every job as fast as it can, without doing anything."""
    argv = [bench.pawl, "bench", "worker", "--url", f"http://127.0.0.1:{server.port}", *options]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(STOP_WAIT_S)


def device_counters(folder):
    """(bytes written, flushes) of the block device that holds the folder, or None. Of the whole
    machine: they mean something only while nothing else writes."""
    device = os.stat(folder).st_dev
    stat = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    try:
        fields = [int(field) for field in stat.read_text().split()]
        return fields[6] * 512, fields[15]
    except (OSError, IndexError):
        return None


# --- requests ---

def request(path, body=START_BODY, tenant="t{c}", key=None, method="POST", name="request", weight=1,
            headers=()):
    """The options that describe one kind of request to the load generator."""
    options = ["--name", name, "--weight", weight, "--method", method, "--path", path]
    lines = [f"X-Tenant-ID: {tenant}"] if tenant else []
    lines += [f"Idempotency-Key: {key}"] if key else []
    for line in (*lines, *headers):
        options += ["--header", line]
    return options + (["--body", body] if body is not None else [])


def start(key="{u}", **more):
    """A durable start that parks: one key, one run."""
    return request(PARK_PATH, key=key, **more)


def ask(client, method, path, headers, body=None):
    client.request(method, path, body, {"Content-Type": "application/json", **headers})
    reply = client.getresponse()
    text = reply.read().decode(errors="replace")
    if reply.status != 200:
        raise BenchError(f"{method} {path}: {reply.status} {text[:500]}")
    return text


def wait_ready(client, wait_s=READY_WAIT_S, pause_s=0.02):
    until = time.monotonic() + wait_s
    while True:
        try:
            ask(client, "GET", "/readyz", {})
            return
        except BenchError:
            if time.monotonic() > until:
                raise
            time.sleep(pause_s)


def prepare(client, workflows=(PARK,), tenants=CONNECTIONS):
    """Defines the workflows for each connection's tenant."""
    for tenant in range(tenants):
        for workflow in workflows:
            ask(client, "PUT", f"/api/v1/workflows/{workflow['id']}",
                {"X-Tenant-ID": f"t{tenant}"}, json.dumps(workflow))


def check_start(client):
    """Proves that a start is a start and its replay a replay."""
    probe = {"X-Tenant-ID": "t0", "Idempotency-Key": "probe"}
    first, again = (json.loads(ask(client, "POST", PARK_PATH, probe, START_BODY))
                    for _ in range(2))
    if (first.get("created"), again.get("created")) != (True, False) \
            or first.get("run_id") != again.get("run_id"):
        raise BenchError(f"a start and its replay answered {first} and {again}")


def check_ends(client, workflow):
    """Proves that a run of the workflow ends by itself, or by what the workers do."""
    started = json.loads(ask(client, "POST", f"/api/v1/workflows/{workflow['id']}/runs?wait_ms=30000",
                             {"X-Tenant-ID": "t0"}, "{}"))
    if started["run"]["status"] != "succeeded":
        raise BenchError(f"a run of {workflow['id']} is {started['run']['status']}, not succeeded")


def list_all(client, path, headers, name):
    """One member of every item of a list, page by page."""
    found, cursor = [], None
    while True:
        page = json.loads(ask(client, "GET", f"{path}{'&' if '?' in path else '?'}limit=200"
                              + (f"&cursor={cursor}" if cursor else ""), headers))
        found += [item[name] for item in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            return found


# --- programs that measure ---

def run_tool(argv, seconds):
    """Runs one measuring program and returns its JSON line."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds + 60)
    except subprocess.TimeoutExpired as late:
        raise BenchError(f"{argv[0]} did not stop by itself") from late
    if done.returncode != 0:
        raise BenchError(f"{argv[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def run_load(tools, server, what, seconds, options, codes):
    """Runs the load generator. `codes`: the statuses that may be answered, or how many of each must
    be; anything else spoils the figure."""
    try:
        result = run_tool([tools / "load", "--port", server.port, *options], seconds)
    except BenchError as failure:
        raise BenchError(f"{what}: {failure}\n{server.log_tail()}") from failure
    got = result["codes"]
    right = got == codes if isinstance(codes, dict) else set(got) <= set(codes) and got
    if result["errors"] or not right:
        raise BenchError(f"{what}: {result['errors']} errors, answers by status {got}, expected "
                         f"{codes if isinstance(codes, dict) else sorted(codes)}\n"
                         f"{server.log_tail()}")
    return result


class Bench:
    """One run of the benchmark: its programs, its sizes, and where its results go."""

    def __init__(self, pawl, tools, stores, seconds, warm_s, sizes, results):
        self.pawl, self.tools, self.seconds, self.warm_s = pawl, tools, seconds, warm_s
        self.stores, self.sizes, self.results = stores, sizes, results

    def load(self, server, what, *requests, codes=OK, connections=CONNECTIONS, seconds=None,
             rate=None, warm_s=None):
        """One window of load, in a closed loop or at a constant rate."""
        if self.sizes.window and not rate:
            return self.load_counted(server, what, self.sizes.window, *requests, codes=codes,
                                     connections=connections)
        seconds = seconds or self.seconds
        warm_s = self.warm_s if warm_s is None else warm_s
        options = ["--connections", connections, "--warm", warm_s, "--seconds", seconds]
        if rate:
            options += ["--rate", min(rate, self.sizes.rate_max)]
        return self._load(server, what, warm_s + seconds, options, requests, codes)

    def load_counted(self, server, what, count, *requests, codes, connections=CONNECTIONS,
                     options=()):
        """So many requests, as fast as they are answered."""
        options = ["--connections", min(connections, count), "--warm", 0,
                   "--seconds", COUNTED_WAIT_S, "--requests", count, *options]
        return self._load(server, what, COUNTED_WAIT_S, options, requests, codes)

    def _load(self, server, what, seconds, options, requests, codes):
        options = list(options)
        for i, one in enumerate(requests):
            options += (["--next"] if i > 0 else []) + one
        before = server.cpu_us(), server.written_bytes(), device_counters(self.stores)
        result = run_load(self.tools, server, what, seconds, options, codes)
        after = server.cpu_us(), server.written_bytes(), device_counters(self.stores)
        sent = result["sent"]
        result["server_cpu_us"] = round((after[0] - before[0]) / sent, 2)
        result["written_bytes"] = round((after[1] - before[1]) / sent)
        if before[2] and after[2]:
            result["device_bytes"] = round((after[2][0] - before[2][0]) / sent)
            result["device_flushes"] = round((after[2][1] - before[2][1]) / sent, 4)
        command = " ".join(["load", *(quoted(option) for option in options)])
        self.results.measured(what, result, command=command)
        return result

    def tool(self, what, program, *options):
        result = run_tool([self.tools / program, *options], self.seconds)
        self.results.measured(what, result, command=" ".join([program, *map(quoted, options)]))
        return result


def on(connections):
    return f"{connections} connection{'' if connections == 1 else 's'}"


def quoted(option):
    text = str(option)
    if len(text) > BODY_SHOWN_MAX:
        text = text[:BODY_SHOWN_MAX] + "…"
    return text if re.fullmatch(r"[\w./:-]+", text) else f"'{text}'"
