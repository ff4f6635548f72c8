"""The connection to PostgreSQL is encrypted if the URL says so."""
import pathlib
import shutil
import subprocess
import sys
import uuid

import pytest

from cli import free_port
from endpoint import make_certificate
from harness import PAWL, ROOT, server, wait_until
from inspect_store import assert_healthy
from nodes import owners

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

pytestmark = pytest.mark.sqlite("brings a PostgreSQL server of its own")


class EncryptedServer(with_postgres.Cluster):
    """It also listens on a port of this machine, where it speaks TLS only."""

    def __init__(self, folder):
        super().__init__(folder)
        self.port = free_port()
        self.url = f"postgres:///postgres?host={folder}&port={self.port}&user=pawl"
        self.cert, self.key = (pathlib.Path(file) for file in make_certificate(folder, "postgres"))
        self.settings = f"listen_addresses = '127.0.0.1'\nport = {self.port}\nssl = on\nssl_cert_file = '{self.cert}'\nssl_key_file = '{self.key}'\n"

    def own_folder(self):
        super().own_folder()
        if self.folder.owner() == "nobody":
            shutil.chown(self.key, "nobody")

    def configure(self):
        super().configure()
        hba = self.folder / "data" / "pg_hba.conf"
        hba.write_text(hba.read_text().replace("host ", "hostssl "))

    def store(self, host="localhost"):
        """The URL of a store of its own."""
        return f"postgres://pawl@{host}:{self.port}/postgres?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={self.cert}&schema=e{uuid.uuid4().hex[:20]}"


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start(EncryptedServer) as cluster:
        yield cluster


def test_every_connection_is_encrypted_also_after_a_restart_of_the_database(postgres):
    with server(store=postgres.store()) as s:
        tenant = s.client().tenant()
        s.client().workflow(tenant)
        runs = {}
        for restart in (None, postgres.restart, s.kill):
            if restart:
                restart()
            if s.process is None:
                s.start()
            for n in range(20):
                while (r := s.client().start(tenant, key=f"k{n}")).status == 503:
                    assert r.json["retryable"]
                assert r.json["run_id"] == runs.setdefault(n, r.json["run_id"])
            encrypted = postgres.rows("SELECT ssl, count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL GROUP BY 1")
            assert [in_use for in_use, _ in encrypted] == ["t"], encrypted
        wait_until(lambda: None not in owners(s), "every shard is served again")
        assert_healthy(s.client())


def test_a_certificate_of_another_host_is_refused(postgres):
    done = subprocess.run([PAWL, "serve", "--listen", "127.0.0.1:0", "--store", postgres.store(host="db.internal")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and 'does not match host name "db.internal"' in done.stderr, done.stderr
