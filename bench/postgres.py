"""A PostgreSQL server for the benchmark, on the disk that the stores are on, with its defaults for durability; and what it can do by
itself: pgbench with one row per transaction."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from harness import CONNECTIONS, BenchError, Server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests/tools"))
import with_postgres  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
# As a small server of its own would have it.
SETTINGS = "shared_buffers = 256MB\nmax_wal_size = 4GB\n"
TABLE = "CREATE TABLE pgbench_rows (id bigserial PRIMARY KEY, tenant text NOT NULL, input text NOT NULL)"
INSERT = """\\set t random(1, 64)
INSERT INTO pgbench_rows (tenant, input) VALUES ('t' || :t, '{"orderId":"order_789","n":12345}');
"""


class Postgres(with_postgres.Cluster):
    """Adds what a benchmark asks."""

    def create(self):
        super().create()
        with open(self.folder / "data" / "postgresql.conf", "a", encoding="utf-8") as f:
            f.write(SETTINGS)
        self.script = self.folder / "insert.sql"
        self.script.write_text(INSERT)

    def number(self, sql):
        return float(self.rows(sql)[0][0])

    def wal_bytes(self):
        return self.number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")

    def kept_bytes(self):
        return self.number("SELECT pg_database_size('postgres')")

    def cpu_us(self):
        """Of the server and all its processes, those that have ended included."""
        total = 0
        for pid in [self.process.pid, *children(self.process.pid)]:
            with contextlib.suppress(OSError):  # it has just ended
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                total += sum(int(field) for field in fields[11:15])
        return total * 1e6 / TICKS

    def pgbench(self, seconds, count):
        """Transactions per second, and their mean latency; so many seconds, or so many transactions if count is not 0."""
        how = ["-t", -(-count // CONNECTIONS)] if count else ["-T", max(1, round(seconds))]
        argv = [with_postgres.programs() / "pgbench", "-n", "-M", "prepared", "-f", self.script, "-c", CONNECTIONS, "-j", 1,
                *how, "-h", self.folder, "-U", "pawl", "postgres"]
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, cwd="/")
        rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.M)
        if done.returncode != 0 or not rate:
            raise BenchError(f"pgbench failed: {done.stderr[-1000:]}")
        return {"rate": float(rate[1]), "mean_us": float(re.search(r"latency average = ([\d.]+) ms", done.stdout)[1]) * 1000}


def children(pid):
    """Its processes; the server has no grandchildren."""
    listed = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in listed.split()]


def place_for(folder):
    """Where another user can have files, because PostgreSQL does not run as root: below the folder if possible, and on a disk in any
    case."""
    folder.chmod(0o711)
    reachable = all(parent.stat().st_mode & 0o001 for parent in folder.parents)
    return folder if reachable or os.getuid() != 0 else pathlib.Path("/var/tmp")


@contextlib.contextmanager
def server(folder):
    """A server with files of its own, which are removed at the end."""
    own = pathlib.Path(tempfile.mkdtemp(prefix="pawl-bench-pg-", dir=place_for(folder)))
    cluster = Postgres(own)
    try:
        cluster.create()
        cluster.start()
        cluster.rows(TABLE)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(own)


def make_store(bench, cluster, name, shards):
    """The URL of a new store with so many shards."""
    url = f"{cluster.url}&schema={name}"
    subprocess.run([str(bench.pawl), "cluster", "init", "--shards", str(shards), "--store", url], check=True, capture_output=True)
    return url


def node(bench, folder, store, name, *flags):
    """A pawl server on it."""
    return Server([bench.pawl, "serve", "--dev", "--listen", "127.0.0.1:0", "--store", store, "--node", name, *flags],
                  r"^pawl listening on http://127\.0\.0\.1:(\d+)\s*$", folder / f"{name}.log")
