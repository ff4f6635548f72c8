"""A real redis-server in a folder of its own, a client that speaks its protocol, and a link to it that can be cut or slowed down."""
import contextlib
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading

from cli import free_port
from harness import PATIENCE_S, wait_until


class RedisServer:
    """It keeps everything in memory. kill() is kill -9; start() again has the same port and nothing in it."""

    def __init__(self, folder, *flags):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.flags = list(flags)
        self.process = None

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        assert self.process is None
        self.log = open(self.folder / "redis.log", "ab")
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                         "--dir", str(self.folder), *self.flags], stdout=self.log, stderr=self.log)
        wait_until(self.listens, "the Redis server listens")
        return self

    def listens(self):
        assert self.process.poll() is None, (self.folder / "redis.log").read_text()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S + 30)
        self.process = None
        self.log.close()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def do(self, *words):
        """One command on a connection of its own; what it answers."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as s, s.makefile("rb") as file:
            words = [w.encode() if isinstance(w, str) else str(w).encode() for w in words]
            s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return read_reply(file)

    def names(self, pattern="*"):
        return sorted(self.do("KEYS", pattern))


def read_reply(file):
    line = file.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b"$":
        return None if rest == b"-1" else file.read(int(rest) + 2)[:-2].decode()
    if kind == b"*":
        return [read_reply(file) for _ in range(int(rest))]
    if kind == b":":
        return int(rest)
    assert kind == b"+", line
    return rest.decode()


@contextlib.contextmanager
def redis_server(*flags):
    with tempfile.TemporaryDirectory(prefix="pawl-redis-") as folder:
        s = RedisServer(folder, *flags).start()
        try:
            yield s
        finally:
            if s.process is not None:
                s.kill()


class Link:
    """A TCP proxy in front of Redis. It can swallow what Redis answers, and end every connection."""

    def __init__(self, port):
        self.target = port
        self.swallow = False  # what Redis answers is lost
        self.refuse = False  # nobody gets a new connection
        self.lock = threading.Lock()
        self.open = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.listener.close()
        self.cut()

    def cut(self):
        with self.lock:
            sockets, self.open = self.open, []
        for s in sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = None if self.refuse else socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            with self.lock:
                self.open += [near, far]
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source, sink, answers):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not (answers and self.swallow):
                    sink.sendall(data)
        for s in (source, sink):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
