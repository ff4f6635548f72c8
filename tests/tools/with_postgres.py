#!/usr/bin/env python3
"""Runs a command with a PostgreSQL server of its own, in a folder in memory that goes with it. The command finds the
server's URL in PAWL_TEST_POSTGRES. With --each every argument is a program of unit tests, which run one after the other.
usage: with_postgres.py COMMAND [ARGUMENT...]
       with_postgres.py --each PROGRAM..."""
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


class Cluster:
    """A server with its files in `folder`, and settings besides the usual ones."""
    port = 5432

    def __init__(self, folder, settings=""):
        self.folder, self.settings = folder, settings
        self.url = f"postgres:///postgres?host={folder}&user=pawl"
        self.process = None

    def create(self):
        self.own_folder()
        data = self.folder / "data"
        subprocess.run([programs() / "initdb", "-D", data, "-U", "pawl", "-A", "trust", "-E", "UTF8", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/", **as_nobody())
        self.configure()

    def own_folder(self):
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody")

    def configure(self):
        """The last of equal settings counts."""
        with open(self.folder / "data" / "postgresql.conf", "a", encoding="utf-8") as f:
            f.write(f"{SETTINGS}unix_socket_directories = '{self.folder}'\n{self.settings}")

    def start(self):
        """Also a standby takes connections then, for reads."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([programs() / "postgres", "-D", self.folder / "data"], stdout=log, stderr=log,
                                            cwd="/", **as_nobody())
        while subprocess.run([programs() / "pg_isready", "-q", "-h", self.folder, "-p", str(self.port)], check=False).returncode != 0:
            if self.process.poll() is not None:
                sys.exit(f"with_postgres.py: the server does not start:\n{(self.folder / 'log').read_text()}")
            time.sleep(0.05)

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # ends the sessions
            self.process.wait()
            self.process = None

    def rows(self, sql):
        """What a query finds, as texts."""
        found = subprocess.run([programs() / "psql", "-h", self.folder, "-p", str(self.port), "-U", "pawl", "-d", "postgres", "-AtF", "\t", "-c", sql],
                               check=True, capture_output=True, text=True).stdout
        return [line.split("\t") for line in found.splitlines()]

    def restart(self):
        self.stop()
        self.start()

    def crash(self):
        """What it had in memory is lost. It recovers when it starts again."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.start()


@contextlib.contextmanager
def start(kind=Cluster):
    """A cluster that runs; stopped and removed at the end."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-postgres-", dir=memory))
    cluster = kind(folder)
    try:
        cluster.create()
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


def main(command):
    if not command:
        sys.exit(__doc__)
    each = command[0] == "--each"
    with start() as cluster:
        env = {**os.environ, "PAWL_TEST_POSTGRES": cluster.url, **({"PAWL_TEST_STORE": "postgres"} if each else {})}
        commands = [[program] for program in command[1:]] if each else [command]
        return max(subprocess.run(c, env=env, check=False).returncode != 0 for c in commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
