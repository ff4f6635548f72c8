"""A real pawl server on a free port in a folder of its own."""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAWL = os.environ.get("PAWL_BIN", str(ROOT / "build" / "pawl"))
# For programs that a test starts: the library of this tree, installed or not.
PROGRAM_ENV = {**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python" / "src")}
PATIENCE_S = float(os.environ.get("PAWL_PATIENCE_S", "30"))


def store_of(folder: pathlib.Path) -> str:
    """A file in the folder; where PAWL_TEST_POSTGRES names a database, a schema of its own instead."""
    postgres = os.environ.get("PAWL_TEST_POSTGRES")
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:20]
    return f"{postgres}&schema=s{name}" if postgres else "sqlite:pawl.db"


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of condition(), or a failure that says what did not happen."""
    end = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"did not happen in time: {what}")
        time.sleep(0.01)


class Server:
    """`start`, `kill` (-9) and `stop` (SIGTERM); the port stays the same from one start to the next."""

    def __init__(self, folder: pathlib.Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.folder, self.options, self.env = folder, options or ("--dev",), {**os.environ, **(env or {})}
        self.port = 0
        self.url = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Server:
        command = [PAWL, "serve", *self.options, "--listen", f"127.0.0.1:{self.port}", "--store", store_of(self.folder)]
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert "listening on" in line, f"{line!r}\n{(self.folder / 'server.log').read_text()}"
        self.url = line.split(" on ")[1].strip()
        self.port = int(self.url.rsplit(":", 1)[1])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        return self

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)
