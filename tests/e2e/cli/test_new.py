"""pawl new: the project that it makes runs as its README says. The TypeScript project is run in sdk/typescript/test/package.test.ts."""
import os
import re
import subprocess

import pytest

import cli
import harness
from cli import pawl


def readme_commands(folder):
    """The lines of a README that are commands, which are indented."""
    return [line.strip() for line in (folder / "README.md").read_text().splitlines() if line.startswith("    ")]


def test_a_new_python_project_runs_as_its_readme_says(dev_server, tenant, tmp_path):
    folder = tmp_path / "shop"
    r = pawl("new", "python", folder)
    assert r.code == 0 and f"{folder}/worker.py\n" in r.out and "README.md to run it" in r.out, r
    library = harness.ROOT / "sdk" / "python"
    subprocess.run(["/usr/bin/python3", library / "tools" / "models.py"], check=True)
    where = {"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant}
    commands = readme_commands(folder)
    assert "python3 worker.py" in commands and (folder / "requirements.txt").read_text() == "pawl>=0.1\n"
    worker = subprocess.Popen(["/usr/bin/python3", "worker.py"], cwd=folder, env=cli.environment(PYTHONPATH=str(library / "src"), **where))
    try:
        harness.wait_until(lambda: pawl("workflow", "show", "order", **where).code == 0, "the worker has stored its workflow")
        start = next(c for c in commands if c.startswith("pawl run start"))
        done = subprocess.run(["sh", "-c", start], capture_output=True, text=True,
                              env=cli.environment(PATH=f"{os.path.dirname(harness.PROGRAM)}:{os.environ['PATH']}", **where))
        assert re.search(r"created  succeeded\noutput  \{\"shipped\":\"Ada\"\}", done.stdout), done
        large = pawl("run", "start", "order", "--input", '{"card":"c","amount":500,"to":"Eve"}', **where).out.split()[0]
        harness.wait_until(lambda: pawl("approval", "list", "--json", **where).json["items"], "it asks")
        job = pawl("approval", "list", "--json", **where).json["items"][0]["job_id"]
        assert pawl("approval", "approve", job, **where).code == 0
        assert pawl("run", "watch", large, **where).code == 0
    finally:
        worker.terminate()
        worker.wait(timeout=harness.PATIENCE_S)


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_new_project_replaces_nothing(language, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    r = pawl("new", language, tmp_path)
    assert r.code == 1 and "README.md: File exists" in r.err and (tmp_path / "README.md").read_text() == "mine", r


def test_a_new_typescript_project_has_what_npm_needs(tmp_path):
    assert pawl("new", "typescript", tmp_path / "ts").code == 0
    assert sorted(p.name for p in (tmp_path / "ts").iterdir()) == [".gitignore", "README.md", "package.json", "tsconfig.json", "worker.ts"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    r = pawl("new", "python", tmp_path / "no" / "way")
    assert r.code == 1 and "no/way: No such file" in r.err, r
