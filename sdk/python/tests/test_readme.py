"""README.md does what it says: every snippet runs, and what its comments promise is printed."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import pawl
from server import Server, wait_until

README = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
FENCE = re.compile(r"(?:<!-- (?P<note>[^>]*) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)```", re.S)
SNIPPETS = [match.groupdict() for match in FENCE.finditer(README)]


def file_named(name: str) -> str:
    return next(s["code"] for s in SNIPPETS if s["note"] == f"file: {name}")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("readme")).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def orders(
    own_server: Server, clean_python: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pathlib.Path]:
    """The worker of the first page, in an empty folder, with nothing but the wheel installed; what it prints."""
    folder = tmp_path_factory.mktemp("orders")
    (folder / "orders.py").write_text(file_named("orders.py"))
    with (folder / "out").open("w") as out:
        environment = {"PAWL_URL": own_server.url}
        process = subprocess.Popen([clean_python, "orders.py"], cwd=folder, env=environment, stdout=out)
    yield folder / "out"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0, "the worker stops gracefully"


def test_the_first_workflow_has_at_most_25_lines() -> None:
    assert len(file_named("orders.py").splitlines()) <= 25


def test_the_first_workflow_is_the_same_everywhere() -> None:
    here = pathlib.Path(__file__).parents[1]
    assert (here / "examples" / "orders.py").read_text() == file_named("orders.py")
    assert file_named("orders.py") in (here.parents[1] / "docs" / "first-workflow.md").read_text()


def test_nothing_is_left_out() -> None:
    left_out = [s for s in SNIPPETS if s["language"] != "python" and not (s["note"] or "").startswith("not run:")]
    assert left_out == []
    assert len(SNIPPETS) == README.count("\n```") / 2


@pytest.mark.usefixtures("orders")
def test_from_an_empty_folder(own_server: Server, clean_python: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The first page in the clean environment: start the order, approve it, see that it was shipped."""
    wait_until(lambda: stored(own_server, "order"), "the worker stores its workflow")
    program = next(s["code"] for s in SNIPPETS if s["language"] == "python" and not s["note"])
    (tmp_path / "start.py").write_text(program)
    environment = {"PAWL_URL": own_server.url, "PAWL_TENANT": "default"}
    printed = subprocess.run([clean_python, "start.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert printed.stdout == "{'shipped': 'Ada'}\n", printed.stderr


@pytest.mark.usefixtures("orders")
def test_snippets_in_order(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAWL_URL", own_server.url)
    wait_until(lambda: stored(own_server, "order"), "the worker stores its workflow")
    names: dict[str, Any] = {"__name__": "readme"}
    for snippet in SNIPPETS:
        if snippet["language"] != "python" or snippet["note"]:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(snippet["code"], "README.md", "exec"), names)
        promised = re.findall(r"^ *print\(.*\)  # (.*)$", snippet["code"], re.M)
        for promise in promised:
            assert promise in printed.getvalue().splitlines()


def stored(server: Server, workflow_id: str) -> bool:
    with pawl.Client(server.url) as client:
        return workflow_id in [w.id for w in client.workflows.list()]


def test_a_rejected_order_is_refunded(own_server: Server, orders: pathlib.Path) -> None:
    wait_until(lambda: stored(own_server, "order"), "the worker stores its workflow")
    with pawl.Client(own_server.url) as client:
        started = client.start("order", {"card": "visa-3", "amount": 70, "to": "Eve"}, key="order-791")
        for event in client.watch(started.run_id):
            if event.type == "approval.requested":
                client.reject(event.data["job_id"], reason="too much")
        run = client.wait(started.run_id)
    assert run.status == "failed"
    assert run.error["cause"]["code"] == "APPROVAL_REJECTED"
    job_id = run.steps[0].job_id
    wait_until(lambda: f"refund 70 {job_id}:refund" in orders.read_text(), "the refund is made")
    assert orders.read_text().count("refund 70") == 1
