"""One shared development server for tests that need nothing special; each test takes tenants of its own."""
import pytest

import faults
import harness


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


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory):
    """fault/preload.c, built."""
    return faults.build_library(tmp_path_factory.mktemp("fault"))
