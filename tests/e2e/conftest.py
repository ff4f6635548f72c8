"""One shared development server for tests that need nothing special; each test takes tenants of its own."""
import functools

import pytest

import endpoint
import faults
import harness
import stores
from receiver import Receiver


def pytest_collection_modifyitems(config, items):
    """Tests that are about the SQLite file itself are not part of a run on PostgreSQL, nor those about one process of one on several
    nodes."""
    left_out = {"sqlite": stores.POSTGRES, "one_node": stores.SEVERAL_NODES}
    others = [item for item in items if any(applies and item.get_closest_marker(name) for name, applies in left_out.items())]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left():
    """After a test that failed before it ended its server."""
    yield
    for server in [s for s in harness.Server.running if s.process]:
        server.kill()


@pytest.fixture(scope="session")
def dev_server():
    with harness.server() as s:
        yield s


@pytest.fixture
def api(dev_server):
    return dev_server.client()


@pytest.fixture
def tenant(api):
    return api.tenant()


@pytest.fixture(scope="module")
def calling_server():
    """One of the file alone, which may call loopback, where the receivers are."""
    with harness.server("--allow-private-addresses") as s:
        yield s


@pytest.fixture
def receiver():
    with Receiver() as r:
        yield r


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory):
    """fault/*.c, built."""
    return faults.build_library(tmp_path_factory.mktemp("fault"))


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """pem(name): certificate and key files, made once."""
    folder = tmp_path_factory.mktemp("tls")
    return functools.lru_cache(maxsize=None)(lambda name: endpoint.make_certificate(folder, name))
