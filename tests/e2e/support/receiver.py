"""A receiver of outbound calls: what it answers is chosen by the path, and everything it was sent is kept."""
import http.server
import json
import threading


class Sent:
    """One request as it came."""

    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body

    @property
    def key(self):
        return self.headers.get("Idempotency-Key")

    @property
    def json(self):
        return json.loads(self.body)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, body=b"", headers=None):
        if not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = Sent(self.command, self.path, self.headers, body)
        receiver = self.server.receiver
        with receiver.lock:
            receiver.sent.append(sent)
        try:
            receiver.paths[self.path.split("?")[0]](self, sent)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a server that is killed leaves half a connection


class Receiver:
    """paths[path] = fn(handler, sent). `with receiver:` serves."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent, self.effects = [], []  # requests; the keys of what was done
        self.paths = {}
        self.gate = threading.Event()
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.receiver = self
        self.port = self.http.server_port
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.gate.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def url(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def on(self, path, fn):
        """Has the path answered by fn(handler, sent), and the URL of it."""
        self.paths[path] = fn
        return self.url(path)

    def answers(self, path, *answers):
        """The answers (status, body[, headers]) in turn, the last one for ever."""
        left = list(answers)

        def fn(handler, sent):
            with self.lock:
                now = left.pop(0) if len(left) > 1 else left[0]
            handler.answer(*now)

        return self.on(path, fn)

    def at(self, path):
        """What came for this path."""
        with self.lock:
            return [s for s in self.sent if s.path.split("?")[0] == path]

    def once(self, sent):
        """An effect, unless one was made for this key before: what a receiver that knows the header does."""
        with self.lock:
            if sent.key not in self.effects:
                self.effects.append(sent.key)
