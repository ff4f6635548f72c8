"""What others wrote, in tests/foreign: clients, linters and generators from npm and PyPI, installed once in the versions that are pinned there."""
import functools
import json
import shutil
import subprocess
import sys

import cli
import endpoint
import harness

sys.path.insert(0, str(harness.ROOT / "tools"))
import venv_once

FOLDER = harness.ROOT / "tests" / "foreign"


def run(*command, timeout=None, **more):
    """What a command prints; it must succeed."""
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, **more)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


def npm_ci(folder):
    """What its package-lock.json pins, once. Test runs side by side wait for each other."""
    run("node", harness.ROOT / "tools" / "npm_ci.mjs", folder)


@functools.lru_cache(maxsize=None)
def install():
    npm_ci(FOLDER)


@functools.lru_cache(maxsize=None)
def python():
    """The interpreter of a virtual environment with the packages of requirements.txt."""
    return venv_once.environment(FOLDER / ".venv", FOLDER / "requirements.txt")


def judge(script, question, timeout=None):
    """The script's answer to the question, both as JSON."""
    install()
    return json.loads(run("node", script, cwd=FOLDER, input=json.dumps(question), timeout=timeout or harness.PATIENCE_S * 3))


# --- clients that are generated from docs/openapi.yaml; each says as JSON what it saw of a run ---

DOCUMENT = harness.ROOT / "docs" / "openapi.yaml"


def python_client(folder, url):
    generator = python().parent / "openapi-python-client"
    package = folder / "pawl_client"
    run(generator, "generate", "--meta", "none", "--path", DOCUMENT, "--output-path", package, "--config", FOLDER / "python-client.yaml", "--fail-on-warning")
    return json.loads(run(python(), FOLDER / "client.py", url, env={**endpoint.client_environment(), "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}))


def typescript_client(folder, url):
    """The types are checked strictly before it runs."""
    install()
    tools = FOLDER / "node_modules" / ".bin"
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    for name in ("client.ts", "tsconfig.json"):
        shutil.copy(FOLDER / name, folder)
    run(tools / "openapi-typescript", DOCUMENT, "--default-non-nullable", "false", "--output", folder / "pawl.d.ts")
    run(tools / "tsc", cwd=folder)
    return json.loads(run("node", "client.js", url, cwd=folder, env=cli.environment()))
