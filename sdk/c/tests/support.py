"""The installed library, programs that use it, and a real server."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("PAWL_C_BUILD", ROOT / "build"))  # of the library
PAWL = os.environ.get("PAWL_BIN", str(ROOT / "build" / "pawl"))
PATIENCE_S = float(os.environ.get("PAWL_PATIENCE_S", "30"))
SANITIZED = "PAWL_SANITIZE:STRING=address" in (BUILD / "CMakeCache.txt").read_text()


def run(*command, **options):
    """What a command prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=3 * PATIENCE_S, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def install(prefix):
    """The library as `cmake --install` leaves it; the environment in which programs find it."""
    run("cmake", "--install", BUILD / "sdk" / "c", "--prefix", prefix)
    (pkgconfig,) = {path.parent for path in prefix.rglob("pawl.pc")}
    text = (pkgconfig / "pawl.pc").read_text().splitlines()
    (pkgconfig / "pawl.pc").write_text("\n".join([f"prefix={prefix}", *text[1:]]) + "\n")
    return {**os.environ, "PKG_CONFIG_PATH": str(pkgconfig), "LD_LIBRARY_PATH": str(pkgconfig.parent)}


def compile_program(source, program, env, *flags, static=False):
    """Compiles one file against the installed library."""
    packages = ["pawl", "libcurl", "libcrypto"] if static else ["pawl"]
    words = run("pkg-config", "--cflags", "--libs", *packages, env=env).split()
    if static:
        words = ["-l:libpawl.a" if w == "-lpawl" else w for w in words] + ["-pthread", "-lm"]
    sanitize = ["-fsanitize=address,undefined"] if SANITIZED else []
    run("gcc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, *sanitize, source, "-o", program, *words, env=env)
    return program


def wait_until(condition, what):
    """The first true value of condition(), or a failure that says what did not happen."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"did not happen in time: {what}"
        time.sleep(0.01)
    return value


def store_of(folder):
    """A file in the folder; where PAWL_TEST_POSTGRES names a database, a schema of its own instead."""
    postgres = os.environ.get("PAWL_TEST_POSTGRES")
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:20]
    return f"{postgres}&schema=s{name}" if postgres else "sqlite:pawl.db"


class Server:
    """`start`, `kill` (-9) and `stop` (SIGTERM); the port stays the same from one start to the next."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, 0, None

    def start(self):
        command = [PAWL, "serve", "--dev", "--listen", f"127.0.0.1:{self.port}", "--store", store_of(self.folder)]
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert "listening on" in line, f"{line!r}\n{(self.folder / 'server.log').read_text()}"
        self.url = line.split(" on ")[1].strip()
        self.port = int(self.url.rsplit(":", 1)[1])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        return self

    def get(self, path):
        """None while the server is away or does not know it."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as response:
                return json.load(response)
        except (urllib.error.URLError, ConnectionError):
            return None

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return json.load(response)

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        if self.process and self.process.poll() is None:
            self._end(signal.SIGTERM)

    def _end(self, how):
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)
