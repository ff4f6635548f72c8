#!/usr/bin/env python3
"""Runs a command with a PostgreSQL server of its own, in a folder in memory that goes with it. The command finds the
server's URL in PAWL_TEST_POSTGRES.
usage: with_postgres.py COMMAND [ARGUMENT...]"""
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SETTINGS = """
listen_addresses = ''
fsync = on
max_connections = 200
shared_buffers = 64MB
"""


def programs():
    """The folder of the newest server that is installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: float(p.parts[-3]))
    if not found:
        sys.exit("with_postgres.py: there is no PostgreSQL: run tools/bootstrap.sh test")
    return found[-1].parent


def as_nobody():
    """PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.getuid() == 0 else {}


def wait_until_ready(server, folder):
    for _ in range(600):
        ready = subprocess.run([programs() / "pg_isready", "-q", "-h", folder], check=False)
        if ready.returncode == 0:
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"with_postgres.py: the server does not start:\n{(folder / 'log').read_text()}")


@contextlib.contextmanager
def server(settings=""):
    """A server in a folder of its own; gives the URL. Stopped and removed at the end."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-postgres-", dir=memory))
    process = None
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "nobody")
        data = folder / "data"
        subprocess.run([programs() / "initdb", "-D", data, "-U", "pawl", "-A", "trust", "-E", "UTF8", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/", **as_nobody())
        with open(data / "postgresql.conf", "a", encoding="utf-8") as f:
            f.write(f"{SETTINGS}unix_socket_directories = '{folder}'\n{settings}")
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen([programs() / "postgres", "-D", data], stdout=log, stderr=log, cwd="/",
                                       **as_nobody())
        wait_until_ready(process, folder)
        yield f"postgres:///postgres?host={folder}&user=pawl"
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)  # fast: sessions are ended
            process.wait()
        shutil.rmtree(folder)


def main(command):
    if not command:
        sys.exit(__doc__)
    with server() as url:
        return subprocess.run(command, env={**os.environ, "PAWL_TEST_POSTGRES": url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
