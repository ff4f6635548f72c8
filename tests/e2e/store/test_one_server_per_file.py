"""Two servers never open one file."""
import os
import pathlib
import subprocess

import pytest

import harness
from inspect_store import all_runs

pytestmark = pytest.mark.sqlite("the lock of the file")


def start_second(store, cwd):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    return subprocess.run([harness.PAWL, "serve", "--dev", "--listen", "127.0.0.1:0", "--store", f"sqlite:{store}"],
                          capture_output=True, text=True, env=env, cwd=cwd, timeout=60)


def link_to_file(s):
    link = s.folder / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(s.db)
    return link


def link_to_folder(s):
    link = s.folder / "folder-link"
    link.symlink_to(s.folder)
    return link / s.db.name


SECOND_PATHS = {
    "the same path": lambda s: s.db,
    "a relative path": lambda s: pathlib.Path(s.db.name),
    "a link to the file": link_to_file,
    "a link to its folder": link_to_folder,
    "a longer way": lambda s: s.folder / ".." / s.folder.name / "." / s.db.name,
}


@pytest.mark.parametrize("path_of", SECOND_PATHS.values(), ids=SECOND_PATHS.keys())
def test_a_second_server_says_that_the_file_is_in_use_and_exits_1(path_of):
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        run = api.start("t", key="k").json["run_id"]
        second = start_second(path_of(s), s.folder)
        assert second.returncode == 1 and second.stdout == ""
        assert "in use by another pawl" in second.stderr and str(s.process.pid) in second.stderr
        # The first is unharmed.
        assert api.start("t", key="k").json["run_id"] == run and api.start("t").json["created"] is True
        assert len(all_runs(api, "t")) == 2


def test_a_file_that_was_first_opened_through_a_link_is_locked_too(tmp_path):
    real = tmp_path / "real.db"
    (tmp_path / "link.db").symlink_to(real)
    first = harness.Server(tmp_path, file="link.db").start()
    try:
        second = start_second(real, tmp_path)
        assert second.returncode == 1 and "in use by another pawl" in second.stderr
    finally:
        first.close()


def test_the_command_line_does_not_open_a_file_in_use_either():
    with harness.server() as s:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
        done = subprocess.run([harness.PAWL, "key", "create", "--tenant", "t", "--role", "viewer", "--store", f"sqlite:{s.db}"],
                              capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 1 and "in use by another pawl" in done.stderr
        assert s.client().get("/healthz").status == 200


def test_a_killed_server_does_not_keep_the_file():
    with harness.server() as s:
        api = s.client()
        api.workflow("t")
        run = api.start("t", key="k").json["run_id"]
        assert start_second(s.db, s.folder).returncode == 1
        s.kill()
        second = harness.Server(s.folder).start()
        try:
            r = second.client().start("t", key="k")
            assert r.json["run_id"] == run and r.header("Idempotent-Replayed") == "true"
        finally:
            second.close()
