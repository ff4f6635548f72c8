#!/usr/bin/env python3
"""Builds and runs everything that CI runs, a few stages at a time, and ends with `N passed, N failed`."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import failures

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = "/usr/bin/python3"
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": f"exitcode=99:suppressions={ROOT}/tests/tsan.supp",
}
# Under TSan the tests in which many threads of the server meet; the others add time, not races.
TSAN_TESTS = ["once/test_exactly_once.py", "http/test_large_bodies.py", "admission/test_limit.py", "admission/test_exact_limits.py", "admission/test_redis_gate.py", "runs/test_jobs.py", "runs/test_runs.py", "http/test_api_keys.py", "runs/test_http_steps.py", "events/test_nats.py", "events/test_webhooks.py"]
# Over TLS the tests of what TLS changes: connections, waits that end with them, large bodies, streams, the command line, failing
# sockets. `make long` runs all of them over TLS.
TLS_TESTS = ["http/test_http_connections.py", "http/test_http_malformed.py", "http/test_large_bodies.py", "runs/test_gone_workers.py", "runs/test_jobs.py",
             "events/test_run_stream.py", "events/test_tenant_stream.py", "cli/test_cli_engine.py", "once/test_socket_faults.py"]
# On a PostgreSQL server: a quick part, of about 35 s of CPU time. `make test-postgres` runs all of them there.
POSTGRES_TESTS = ["once/test_exactly_once.py", "admission/test_limit.py", "admission/test_exact_limits.py", "runs/test_jobs.py", "runs/test_run_signals.py",
                  "runs/test_retention.py", "entities/test_entity_updates.py", "events/test_tenant_stream.py", "store/test_doctor.py", "cli/test_cli_files.py"]
POSTGRES = [PYTHON, str(ROOT / "tests/tools/with_postgres.py")]
# On three nodes behind a round-robin of connections: two of three requests are forwarded. `make test-nodes` runs all of them there.
NODES_TESTS = ["once/test_exactly_once.py", "admission/test_limit.py", "runs/test_jobs.py", "runs/test_run_signals.py", "entities/test_entity_updates.py"]
THREE_NODES = {"PAWL_BIN": str(ROOT / "tests/tools/three_nodes.py"), "THREE_NODES_PAWL": str(ROOT / "build/pawl")}
# The stages share what pytest has made of the tests' sources: that takes longer than most files take to run.
COMPILED_TESTS = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / "build/pycache")}
printing = threading.Lock()
this_thread = threading.local()


# Every end-to-end test runs once: on the ASan build, which sees all that the release build sees and more; those marked `slow`,
# which need the speed or the size of the real thing, on the release build, together with the files that show it to users.
RELEASE_TESTS = ["operating/test_docs.py", "operating/test_examples.py", "operating/test_deploy_rules.py", "store/test_store_file.py"]
# Unit tests too run once, on the ASan build; on the release build only those that do more there (tests/CMakeLists.txt).
# With every allocation failing `make test` lets the first eight of a change fail one by one there, then larger and larger steps; `make asan`
# the first fifty, in three times the time. TSan has the tests in which threads meet; `make tsan` all that have threads.
COARSE_SWEEPS = {"PAWL_TEST_EACH": "8"}
THREAD_TARGETS = ["pawl", "thread_tests"]
RELEASE_TARGETS = ["pawl", "libpawl_shared", "libpawl_static", "sim", "print_routes", "bench/all", "release_tests"]
SHARES = 6
# Groups that `make test` leaves out.
ON_DEMAND = ["postgres", "nodes"]
JOBS = str(os.cpu_count() or 2)
# Stages that compute use all cores, one after the other. End-to-end tests wait more than they compute: four stages of them run
# beside. They have the cores first, so that stages that compute fill in what is left and slow no wait down.
COMPUTING, WAITING = "computing", "waiting"
STAGES_AT_ONCE = {COMPUTING: 1, WAITING: 4}
NICE = 5
AWAITED = ["build", "build-asan", "build-tsan"]  # by the end-to-end tests
# How far clang's analyzer looks into a function. Of 1,796 blocks in 40 of our files it reaches 1,721 so; with 20,000 five more, in
# 1.8 times the time. `make tidy` has its default, 225,000.
ANALYZER_NODES = 10_000


class Stage:
    def __init__(self, name, group, run, needs=(), pool=COMPUTING):
        self.name, self.group, self.run, self.needs, self.pool = name, group, run, needs, pool
        self.nice = NICE if pool == COMPUTING and name not in AWAITED else 0
        self.cpu_s = 0.0  # user and system time of its processes


def belong_to(stage):
    """What this thread runs from now on counts as processor time of the stage."""
    this_thread.stage = stage


def shell(command, env=None):
    """(exit code, output)."""
    with subprocess.Popen(["nice", "-n", str(this_thread.stage.nice), *command], cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    with printing:
        this_thread.stage.cpu_s += used.ru_utime + used.ru_stime
    return process.returncode, out


def build(folder, *options, targets=()):
    """`targets`: without any all of them."""

    def run():
        code, out = shell(["cmake", "-G", "Ninja", "-B", folder, "-DPAWL_WERROR=ON", *options])
        if code == 0:
            code, more = shell(["ninja", "-C", folder, *targets])
            out += more
        return (0, 0, out) if code == 0 else (0, 1, out)

    return run


def unit(folder, env=None, label=None):
    """Each cmocka program says how many of its tests passed and failed. `label`: only those that have it run."""
    which = ["-L", label] if label else []

    def run():
        code, out = shell(["ctest", "--test-dir", folder, "--output-on-failure", "-V", "-j", JOBS, "--no-tests=error", *which], env)
        passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", out))
        failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] .*?(\d+) test\(s\)", out))
        telling = re.compile(r"\[  (ERROR|FAILED|  LINE)|\*\*\*|ERROR: |runtime error|WARNING: Thread|    #\d|\(Failed\)")
        return passed, max(failed, 1 if code else 0), "\n".join(line for line in out.splitlines() if telling.search(line))

    return run


def e2e(folder, tests=(), env=None, marks=None, on=()):
    """`tests` are paths in tests/e2e; without any all of them. `on`: what starts them."""

    def run():
        command = [*on, PYTHON, "-m", "pytest", "--tb=short", "--durations=8"]
        if marks:
            command += ["-m", marks]
        command += [str(ROOT / "tests/e2e" / t) for t in tests] or [str(ROOT / "tests/e2e")]
        full = {"PAWL_BIN": str(ROOT / folder / "pawl"), "PAWL_PATIENCE_S": "90", **COMPILED_TESTS, **(env or {})}
        return counted(*shell(command, full))

    return run


def counted(code, out):
    """What the last line of a run says: `N passed`, `N failed`."""
    found = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", out.splitlines()[-1] if out else "")}
    return found.get("passed", 0), max(found.get("failed", 0) + found.get("error", 0), 1 if code else 0), out


def e2e_share(share, left_out=RELEASE_TESTS):
    files = sorted(str(path.relative_to(ROOT / "tests/e2e")) for path in (ROOT / "tests/e2e").rglob("test_*.py"))
    return [f for f in files if f not in left_out][share::SHARES]


def fuzz(folder, seconds):
    """One passed test per program that found nothing."""

    def run():
        code, out = shell([PYTHON, "tests/fuzz/run.py", "--build", folder, "--seconds", str(seconds), "--jobs", JOBS])
        passed, failed = (len(re.findall(rf"^{word} ", out, re.MULTILINE)) for word in ("ok", "FAIL"))
        return passed, max(failed, 1 if code else 0), out

    return run


def check(*command, env=None):
    def run():
        code, out = shell(list(command), env)
        return (1, 0, out) if code == 0 else (0, 1, out)

    return run


def library(*command):
    """The tests of a client library, its type checker and its linter."""
    return lambda: counted(*shell(list(command), {"PAWL_BIN": str(ROOT / "build/pawl"), "PAWL_PATIENCE_S": "90"}))


def c_library(folder, env):
    """The tests of the C library with the library and the server of this build."""
    full = {"PAWL_C_BUILD": str(ROOT / folder), "PAWL_BIN": str(ROOT / folder / "pawl"), "PAWL_PATIENCE_S": "90", **COMPILED_TESTS, **env}
    return lambda: counted(*shell([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", str(ROOT / "sdk/c/tests")], full))


def stories(on, pawl="build/pawl"):
    """The story of each client library, with kills of server and worker, on another store than the embedded one."""
    env = {"PAWL_BIN": str(ROOT / pawl), "THREE_NODES_PAWL": str(ROOT / "build/pawl"), "PAWL_C_BUILD": str(ROOT / "build"), "PAWL_PATIENCE_S": "90", **COMPILED_TESTS}
    commands = [[PYTHON, "sdk/python/tools/check.py", "tests/test_story.py"], ["node", "sdk/typescript/tools/check.mjs", "story"],
                [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", str(ROOT / "sdk/c/tests/test_story.py")]]

    def run():
        results = [counted(*shell([*on, *command], env)) for command in commands]
        return tuple(map(sum, zip(*(r[:2] for r in results)))) + ("\n".join(r[2] for r in results if r[1]),)

    return run


def packages(folder):
    """What is in the packages, and that they are reproducible. `make packages-test` installs and starts them too."""
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", str(ROOT / "packaging/tests")]
    return lambda: counted(*shell(command, {"PAWL_BUILD": str(ROOT / folder), **COMPILED_TESTS}))


def sources(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def inputs_of(files):
    """{source: digest of everything that clang-tidy reads for it}: the file, what it includes of ours, and the rules."""
    includes, target = {}, None
    for line in shell(["ninja", "-C", "build", "-t", "deps"])[1].splitlines():
        if line[:1].strip():
            target = line.split(":")[0]
        elif target and line.strip():
            includes.setdefault(target, []).append(line.strip())
    digests = {}
    for target, paths in includes.items():
        ours = sorted({(ROOT / "build" / path).resolve() for path in paths if not path.startswith("/usr/")})
        source = next((f for f in files if ROOT / f in ours and target.endswith(f"{f}.o")), None)
        if source:
            digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
            for path in ours:
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
            digests[source] = digest.hexdigest()
    return digests


def tidy(deep):
    """Looks only at files whose inputs changed since they were last clean; a fresh build folder looks at all."""
    depth = [] if deep else [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={ANALYZER_NODES}")]
    files = sources("src/*.c", "sdk/c/src/*.c")
    digests = inputs_of(files)
    kept = ROOT / ("build/tidy-clean-deep.json" if deep else "build/tidy-clean.json")
    clean = json.loads(kept.read_text()) if kept.exists() else {}
    changed = [f for f in files if f not in digests or clean.get(f) != digests[f]]
    with concurrent.futures.ThreadPoolExecutor(int(JOBS), initializer=belong_to, initargs=[this_thread.stage]) as pool:
        results = list(pool.map(lambda f: (f, *shell(["clang-tidy-14", "--quiet", "-p", "build", *depth, f])), changed))
    clean.update({f: digests[f] for f, code, _ in results if code == 0 and f in digests})
    kept.write_text(json.dumps(clean, indent=1))
    out = "\n".join(line for _, code, text in results if code for line in text.splitlines() if not line.endswith("warnings generated."))
    return (1, 0, "") if all(code == 0 for _, code, _ in results) else (0, 1, out)


def formatted():
    code, out = shell(["clang-format-14", "--dry-run", "-Werror", *sources("src/*.[ch]", "tests/*.[ch]", "bench/*.[ch]", "sdk/c/*.[ch]")])
    return (1, 0, "") if code == 0 else (0, 1, out)


def cppcheck():
    return check("cppcheck", "--quiet", "--std=c11", "--language=c", "--enable=warning,performance,portability", "--inline-suppr", "--library=tools/jansson.cfg",
                 "--suppressions-list=tools/cppcheck.txt", "--error-exitcode=1", "-Isrc", "-DPAWL_VERSION=\"x\"", "-Isdk/c/include", "-Isdk/c/src", "-j", JOBS, "src", "sdk/c/src")()


def stages(only=None):
    """`only`: a group, of which all is run. In the order in which each pool begins those that are ready: what others need first, of those that wait the long ones first, so that
    short ones even out the end."""
    slow = {"PAWL_SANITIZED": "1", **SANITIZER_ENV}
    all_threads, sweeps = only == "tsan", {} if only == "asan" else COARSE_SWEEPS
    return [
        Stage("build", "release", build("build", targets=RELEASE_TARGETS)),
        Stage("build-asan", "asan", build("build-asan", "-DPAWL_SANITIZE=address")),
        Stage("build-tsan", "tsan", build("build-tsan", "-DPAWL_SANITIZE=thread", targets=[] if all_threads else THREAD_TARGETS)),
        Stage("e2e slow", "release", e2e("build", marks="slow"), ["build"], WAITING),
        *(Stage(f"e2e-asan {i + 1}", "asan", e2e("build-asan", e2e_share(i), slow, "not slow"), ["build-asan"], WAITING) for i in range(SHARES)),
        Stage("console", "release", library("node", "console/tools/check.mjs"), ["build"], WAITING),
        Stage("sdk python", "release", library(PYTHON, "sdk/python/tools/check.py"), ["build"], WAITING),
        Stage("sdk typescript", "release", library("node", "sdk/typescript/tools/check.mjs"), ["build"], WAITING),
        Stage("e2e postgres", "release", e2e("build", POSTGRES_TESTS, marks="not slow", on=POSTGRES), ["build"], WAITING),
        Stage("e2e-tsan", "tsan", e2e("build-tsan", TSAN_TESTS, slow, marks="not slow"), ["build-tsan"], WAITING),
        Stage("e2e tls", "release", e2e("build", TLS_TESTS, {"PAWL_E2E_TLS": "1"}, "not slow"), ["build"], WAITING),
        Stage("packages", "release", packages("build"), ["build"], WAITING),
        Stage("stories on three nodes", "release", stories(POSTGRES, "tests/tools/three_nodes.py"), ["sdk python", "sdk typescript"], WAITING),
        Stage("e2e release", "release", e2e("build", RELEASE_TESTS, marks="not slow"), ["build"], WAITING),
        Stage("e2e three nodes", "release", e2e("build", NODES_TESTS, THREE_NODES, "not slow", POSTGRES), ["build"], WAITING),
        Stage("sdk c", "asan", c_library("build-asan", SANITIZER_ENV), ["build-asan"], WAITING),
        *(Stage(f"e2e on postgres {i + 1}", "postgres", e2e("build", e2e_share(i, []), on=POSTGRES), ["build"], WAITING) for i in range(SHARES)),
        *(Stage(f"e2e on nodes {i + 1}", "nodes", e2e("build", e2e_share(i, []), THREE_NODES, on=POSTGRES), ["build"], WAITING) for i in range(SHARES)),
        Stage("stories on postgres", "postgres", stories(POSTGRES), ["build"], WAITING),
        Stage("build eager", "postgres", build("build", targets=["eager_tests"]), ["build"]),
        Stage("unit on eager", "postgres", unit("build", label="eager"), ["build eager"]),
        Stage("unit on postgres", "postgres", build("build", targets=["unit_on_postgres"]), ["build"]),
        Stage("unit-asan", "asan", unit("build-asan", {**SANITIZER_ENV, **sweeps}), ["build-asan"]),
        Stage("unit", "release", unit("build", label="release"), ["build"]),
        Stage("unit-tsan", "tsan", unit("build-tsan", SANITIZER_ENV, None if all_threads else "threads"), ["build-tsan"]),
        Stage("simulator", "release", check("build/sim", "--seeds", "1..10000", "--jobs", JOBS), ["build"]),
        Stage("simulator twice", "release", check("build/sim", "--seeds", "1..100", "--twice"), ["build"]),
        Stage("simulator of nodes", "release", check("build/sim", "--nodes", "--seeds", "1..500", "--jobs", JOBS), ["build"]),
        Stage("simulator-asan", "asan", check("build-asan/sim", "--seeds", "1..300", "--jobs", JOBS, env=SANITIZER_ENV), ["build-asan"]),
        Stage("instructions", "release", check(PYTHON, "bench/instructions.py", "--pawl", "build/pawl", "--tools", "build/bench", "--check", "bench/instructions.json"), ["build"]),
        Stage("build-fuzz", "fuzz", build("build-fuzz", "-DCMAKE_C_COMPILER=clang-14", "-DPAWL_FUZZ=ON")),
        Stage("fuzz", "fuzz", fuzz("build-fuzz", 1), ["build-fuzz"]),
        Stage("layers", "lint", check(PYTHON, "tools/check_layers.py")),
        Stage("mutants fit", "lint", check(PYTHON, "tests/mutants/check.py"), ["build"]),
        Stage("format", "lint", formatted),
        Stage("cppcheck", "lint", cppcheck),
        Stage("clang-tidy", "lint", lambda: tidy(deep=only == "lint"), ["build"]),
    ]


def report(stage, result, seconds):
    passed, failed, out = result
    with printing:
        print(f"{'ok  ' if failed == 0 else 'FAIL'} {stage.name:<12} {passed:>5} passed {failed:>3} failed {seconds:>6.0f} s, {stage.cpu_s:>4.0f} s CPU", flush=True)
        if failed:
            print("\n".join("    " + line for line in out.splitlines()[-200:]), flush=True)


def is_wanted(stage, only):
    """`only`: a group, or None for all but those that are run on demand."""
    if only is None:
        return stage.group not in ON_DEMAND
    return stage.group == only or (only in ("lint", *ON_DEMAND) and stage.name == "build")


class Schedule:
    """Which stage begins next. A stage that waits for others keeps none back that is ready."""

    def __init__(self, wanted):
        self.left, self.changed = list(wanted), threading.Condition()
        self.names = {s.name for s in wanted}
        self.good = {}  # whether each stage that has ended passed

    def _next(self, pool):
        return next((s for s in self.left if s.pool == pool and all(n in self.good for n in s.needs if n in self.names)), None)

    def take(self, pool):
        """(stage, the failed ones that it needs); (None, []) when the pool has none left."""
        with self.changed:
            self.changed.wait_for(lambda: self._next(pool) or not any(s.pool == pool for s in self.left))
            stage = self._next(pool)
            if stage:
                self.left.remove(stage)
                self.changed.notify_all()
            return stage, [n for n in stage.needs if self.good.get(n) is False] if stage else []

    def end(self, stage, good):
        with self.changed:
            self.good[stage.name] = good
            self.changed.notify_all()


def run_pool(schedule, pool, results):
    """Runs stages of the pool until none is left; `results`: {name: (passed, failed, output)}."""
    while True:
        stage, broken = schedule.take(pool)
        if stage is None:
            return
        begun = time.monotonic()
        belong_to(stage)
        try:
            result = (0, 1, f"{broken[0]} failed") if broken else stage.run()
        except Exception as e:  # a stage that cannot run has failed
            result = (0, 1, repr(e))
        report(stage, result, time.monotonic() - begun)
        results[stage.name] = result
        schedule.end(stage, result[1] == 0)


def chosen(only, names):
    """The stages of a group and what they need; or those that are named, alone."""
    every = stages(only)
    unknown = set(names) - {s.name for s in every}
    if unknown:
        sys.exit(f"test.py: there is no stage {min(unknown)!r}; there are: {', '.join(s.name for s in every)}")
    return [s for s in every if s.name in names] if names else [s for s in every if is_wanted(s, only)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one group: release, asan, tsan, fuzz, lint, postgres or nodes")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="run these stages alone, with what was built before")
    args = parser.parse_args()
    wanted = chosen(args.only, args.stages)
    begun = time.monotonic()
    schedule, results = Schedule(wanted), {}
    workers = [threading.Thread(target=run_pool, args=(schedule, pool, results)) for pool, n in STAGES_AT_ONCE.items() for _ in range(n)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{time.monotonic() - begun:.0f} s, {sum(s.cpu_s for s in wanted):.0f} s CPU")
    for line in failures.summary({name: r[2] for name, r in results.items() if r[1]}):
        print(line)
    passed, failed = (sum(r[i] for r in results.values()) for i in (0, 1))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
