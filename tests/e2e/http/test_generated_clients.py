"""docs/openapi.yaml in the hands of others: linters find nothing, and generated clients do a run from start to end."""
import pytest

import foreign
import harness

pytestmark = pytest.mark.slow

WHAT_A_CLIENT_SEES = {
    "created": [True, False],
    "same_run": True,
    "input": {"name": "Ada"},
    "completed": "completed",
    "run": ["succeeded", {"greeting": "Hello, Ada!"}],
    "problem": "WORKFLOW_NOT_FOUND",
}


def test_redocly_and_spectral_find_nothing():
    assert foreign.judge("lint.mjs", {"path": str(foreign.DOCUMENT)}) == {"redocly": [], "spectral": []}


@pytest.mark.parametrize("client", [foreign.python_client, foreign.typescript_client])
def test_a_generated_client_does_a_run_from_start_to_end(client, tmp_path):
    with harness.server() as server:
        assert client(tmp_path, server.url) == WHAT_A_CLIENT_SEES
