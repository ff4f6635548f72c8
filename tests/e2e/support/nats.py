"""A real nats-server with JetStream in a folder of its own, a client that speaks its text protocol, and a link that can be cut."""
import base64
import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading

from cli import free_port
from harness import PATIENCE_S, wait_until


class NatsServer:
    """stop() is a clean end, kill() is kill -9; start() again goes on with the same port and files."""

    def __init__(self, folder, *flags, config=None):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.flags = list(flags)
        if config:
            path = self.folder / "nats.conf"
            path.write_text(config)
            self.flags += ["-c", str(path)]
        self.process = None

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        assert self.process is None
        self.log = open(self.folder / "nats.log", "ab")
        self.process = subprocess.Popen(["nats-server", "-js", "-sd", str(self.folder / "jetstream"), "-a", "127.0.0.1",
                                         "-p", str(self.port), *self.flags], stdout=self.log, stderr=self.log)
        wait_until(self.listens, "the NATS server listens")
        return self

    def listens(self):
        assert self.process.poll() is None, (self.folder / "nats.log").read_text()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def _gone(self):
        self.process.wait(timeout=PATIENCE_S + 30)
        self.process = None
        self.log.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self._gone()

    def kill(self):
        self.process.kill()
        self._gone()

    def delete_stream(self, name):
        """While nobody else is connected: NATS removes the folder of a stream after its name is free, so one that is made meanwhile
        loses its files and stores nothing."""
        self.stop()
        own, self.port = self.port, free_port()
        self.start()
        with self.client() as client:
            assert client.api(f"STREAM.DELETE.{name}")["success"]
        self.stop()
        self.port = own
        self.start()

    def client(self, **kw):
        return NatsClient(self.port, **kw)


@contextlib.contextmanager
def nats_server(*flags, **kw):
    with tempfile.TemporaryDirectory(prefix="pawl-nats-") as folder:
        s = NatsServer(folder, *flags, **kw).start()
        try:
            yield s
        finally:
            if s.process is not None:
                s.kill()


def read_headers(raw):
    headers = {}
    for line in raw.decode().split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name] = value.strip()
        elif line.startswith("NATS/1.0 "):
            headers["Status"] = line.split()[1]
    return headers


class Message:
    def __init__(self, subject, reply, headers, data):
        self.subject, self.reply, self.headers, self.data = subject, reply, headers, data

    @property
    def id(self):
        return self.headers.get("Nats-Msg-Id")

    @property
    def json(self):
        return json.loads(self.data)

    def __repr__(self):
        return f"<{self.subject} {self.id} {self.data[:200]!r}>"


class NatsClient:
    """One connection, for one thread."""

    def __init__(self, port, **connect):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.file = self.socket.makefile("rb")
        self.info = json.loads(self.file.readline().split(b" ", 1)[1])
        self.subscriptions = 0
        self.send(b"CONNECT " + json.dumps({"verbose": False, "pedantic": False, "headers": True, "no_responders": True,
                                            "lang": "test", "version": "1", "protocol": 1, **connect}).encode(), b"PING")
        line = self.file.readline()
        assert line == b"PONG\r\n", line

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *lines):
        self.socket.sendall(b"".join(line + b"\r\n" for line in lines))

    def publish(self, subject, data=b"", reply=""):
        self.send(f"PUB {subject} {reply} {len(data)}".encode(), data)

    def subscribe(self, subject):
        self.subscriptions += 1
        self.send(f"SUB {subject} {self.subscriptions}".encode())
        return self.subscriptions

    def next(self):
        """The next message of any subscription."""
        while True:
            line = self.file.readline()
            assert line, "the connection was closed"
            kind, *words = line.decode().split()
            if kind == "PING":
                self.send(b"PONG")
            elif kind in ("MSG", "HMSG"):
                return self._message(kind, words)
            else:
                assert kind in ("PONG", "INFO", "+OK"), line

    def _message(self, kind, words):
        subject, size = words[0], int(words[-1])
        head_size = int(words[-2]) if kind == "HMSG" else 0
        numbers = 2 if kind == "HMSG" else 1
        reply = words[2] if len(words) == 3 + numbers else None
        data = self.file.read(size)
        self.file.read(2)
        return Message(subject, reply, read_headers(data[:head_size]), data[head_size:])

    def request(self, subject, body=None):
        inbox = f"_INBOX.test.{self.subscriptions + 1}"
        sid = self.subscribe(inbox)
        self.publish(subject, b"" if body is None else json.dumps(body).encode(), inbox)
        answer = self.next()
        self.send(f"UNSUB {sid}".encode())
        return answer

    # --- JetStream ---

    def api(self, call, body=None):
        answer = self.request(f"$JS.API.{call}", body)
        return answer.json if answer.data else {"error": {"description": f"status {answer.headers.get('Status')}"}}

    def stream(self, name):
        """Its configuration and state; None when it does not exist."""
        answer = self.api(f"STREAM.INFO.{name}")
        return None if "error" in answer else answer

    def count(self, name):
        stream = self.stream(name)
        return stream["state"]["messages"] if stream else 0

    def make_stream(self, name, **config):
        answer = self.api(f"STREAM.CREATE.{name}", {"name": name, "storage": "file", "retention": "limits", **config})
        assert "error" not in answer, answer
        return answer

    def messages(self, name):
        """Every message that a stream holds, in its order."""
        state = self.stream(name)["state"]
        inbox = f"_INBOX.get.{self.subscriptions}"
        sid = self.subscribe(inbox)
        found = []
        for first in range(max(state["first_seq"], 1), state["last_seq"] + 1, 500):  # so many questions at a time
            asked = range(first, min(first + 500, state["last_seq"] + 1))
            for seq in asked:
                self.publish(f"$JS.API.STREAM.MSG.GET.{name}", json.dumps({"seq": seq}).encode(), inbox)
            answers = [self.next().json.get("message") for _ in asked]
            found += [m for m in answers if m]  # without those that were taken away meanwhile
        self.send(f"UNSUB {sid}".encode())
        found.sort(key=lambda m: m["seq"])
        return [Message(m["subject"], None, read_headers(base64.b64decode(m.get("hdrs", ""))), base64.b64decode(m.get("data", "")))
                for m in found]

    def make_consumer(self, stream, name, subject, ack_wait_s=30):
        """A pull consumer for workers."""
        answer = self.api(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": {
            "durable_name": name, "ack_policy": "explicit", "filter_subject": subject, "ack_wait": int(ack_wait_s * 1e9)}})
        assert "error" not in answer, answer

    def fetch(self, stream, name, wait_s=PATIENCE_S):
        """The next message for a pull consumer; a failure when none comes."""
        answer = self.request(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", {"batch": 1, "expires": int(wait_s * 1e9)})
        assert "Status" not in answer.headers, answer.headers
        return answer

    def ack(self, message):
        self.publish(message.reply, b"+ACK")


class Link:
    """A TCP proxy in front of a NATS server. What goes to the server is noted by message id; what comes back can be swallowed."""

    IDS = re.compile(rb"Nats-Msg-Id: ?(\S+)")

    def __init__(self, port):
        self.target = port
        self.swallow = False
        self.lock = threading.Lock()
        self.sent = []  # message ids in the order of sending
        self.open = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.listener.close()
        self.cut()

    def cut(self):
        """Ends every connection that is open."""
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
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            with self.lock:
                self.open += [near, far]
            threading.Thread(target=self._pump, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, False), daemon=True).start()

    def _pump(self, source, sink, outward):
        rest = b""
        try:
            while data := source.recv(65536):
                if outward:
                    lines, _, rest = (rest + data).rpartition(b"\r\n")
                    with self.lock:
                        self.sent += [m.group(1).decode() for m in self.IDS.finditer(lines)]
                elif self.swallow:
                    continue
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
