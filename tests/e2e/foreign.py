"""Clients that others wrote, from npm, in tests/foreign: installed once by the lock file, run with node."""
import fcntl
import functools
import hashlib
import json
import subprocess

import harness

FOLDER = harness.ROOT / "tests" / "foreign"


@functools.lru_cache(maxsize=None)
def install():
    """`npm ci`, unless what is installed is what the lock file says. Test runs side by side wait for each other."""
    wanted = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp = FOLDER / "node_modules" / ".installed"
    with open(FOLDER / "package.json") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            r = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=FOLDER, capture_output=True, text=True)
            assert r.returncode == 0, r.stdout + r.stderr
            stamp.write_text(wanted)


def judge(script, question, timeout=None):
    """The script's answer to the question, both as JSON."""
    install()
    r = subprocess.run(["node", script], cwd=FOLDER, input=json.dumps(question), capture_output=True, text=True, timeout=timeout or harness.PATIENCE_S * 3)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)
