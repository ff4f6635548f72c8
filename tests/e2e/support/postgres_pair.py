"""A PostgreSQL server and its synchronous standby: what is committed is on both. The standby can be promoted when the primary has died;
then the primary's place is taken by a new standby, built from the new primary."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from cli import free_port
from harness import PATIENCE_S, ROOT, wait_until

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

SETTINGS = """
listen_addresses = '127.0.0.1'
wal_retrieve_retry_interval = 100ms
wal_keep_size = 256MB
include_if_exists = '../standbys.conf'
"""


class PairServer(with_postgres.Cluster):
    """One of the two, on a port of its own."""

    def __init__(self, folder):
        folder.mkdir()
        self.port = free_port()
        super().__init__(folder, f"{SETTINGS}port = {self.port}\ncluster_name = '{folder.name}'\n")

    @property
    def data(self):
        return self.folder / "data"

    def wait_for(self, standby):
        """Commits wait for this standby from now on; for none if it is None."""
        names = f"'{standby.folder.name}'" if standby else "''"
        (self.folder / "standbys.conf").write_text(f"synchronous_standby_names = {names}\n")
        (self.folder / "standbys.conf").chmod(0o644)
        if self.process is not None:
            self.process.send_signal(signal.SIGHUP)

    def copy(self, primary):
        """Becomes a standby of the other one."""
        self.own_folder()
        shutil.rmtree(self.data, ignore_errors=True)
        self.wait_for(None)
        subprocess.run([with_postgres.programs() / "pg_basebackup", "-D", self.data, "-h", primary.folder, "-p", str(primary.port), "-U", "pawl",
                        "-X", "stream", "-c", "fast", "--no-sync", "--write-recovery-conf"], check=True, capture_output=True, cwd="/", **with_postgres.as_nobody())
        self.configure()

    def children(self):
        """Of the server's process."""
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                after_name = stat.read_text().rpartition(") ")[2].split()
            except OSError:  # it is gone
                continue
            if int(after_name[1]) == self.process.pid:
                found.append(int(stat.parent.name))
        return found

    def die(self):
        """kill -9 of all its processes."""
        for pid in [self.process.pid, *self.children()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # it has ended with its session
                pass
        self.process.wait()
        self.process = None

    def promote(self):
        subprocess.run([with_postgres.programs() / "pg_ctl", "promote", "-D", self.data, "-t", str(int(PATIENCE_S) + 30)], check=True, capture_output=True,
                       cwd="/", **with_postgres.as_nobody())

    def has_standby(self):
        """In step with it, so that commits wait for it."""
        return self.rows("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'")


class PostgresPair:
    def __init__(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-pair-", dir=memory))
        self.folder.chmod(0o755)
        self.servers = [PairServer(self.folder / name) for name in ("left", "right")]
        self.primary, self.standby = self.servers

    def open(self):
        self.primary.create()
        self.primary.wait_for(None)
        self.primary.start()
        self.attach()
        return self

    def attach(self):
        """Builds the standby from the primary, which then waits for it."""
        self.standby.copy(self.primary)
        self.standby.start()
        self.primary.wait_for(self.standby)
        self.await_standby()

    def await_standby(self):
        wait_until(self.primary.has_standby, "the standby has all that the primary has", PATIENCE_S + 60)

    def fail_over(self):
        """The primary dies and the standby is promoted. It has no standby until attach()."""
        self.primary.die()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def restart(self, crash):
        self.primary.process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
        self.primary.process.wait()
        self.primary.start()
        self.await_standby()

    def close(self):
        for server in self.servers:
            if server.process is not None:
                server.die()
        shutil.rmtree(self.folder)
