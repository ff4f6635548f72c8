"""The C library as users get it: the shared wire cases, every example of its header, and what is installed."""
import re
import subprocess

import pytest

from support import BUILD, HERE, ROOT, Server, compile_program, install, run, wait_until

HEADER = HERE.parent / "include" / "pawl.h"
DECLARED = re.findall(r"PAWL_API [^;{]*?\b(pawl_\w+)\(", HEADER.read_text())


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    return install(tmp_path_factory.mktemp("prefix"))


def test_all_wire_fixtures_pass():
    done = subprocess.run([BUILD / "sdk/c/libpawl_fixtures", ROOT / "sdk/fixtures"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and re.search(r"^[1-9]\d* passed, 0 failed$", done.stdout, re.M), done.stdout + done.stderr


# --- the examples ---

def examples():
    """[(function, code)]: the block behind `Example:` in the comment above a function."""
    found = []
    for comment, rest in re.findall(r"/\*((?:(?!\*/).)*?)\*/\n(PAWL_API[^;]*;)", HEADER.read_text(), re.S):
        code = comment.partition("Example:\n")[2]
        lines = [re.sub(r"^ \*     ?", "", line) for line in code.splitlines() if line.startswith(" *     ")]
        found.append((re.search(r"\b(pawl_\w+)\(", rest).group(1), "\n".join(lines)))
    return found


def as_function(name, code):
    """The kind of an example, and the function that it becomes."""
    if re.search(r"\bctx\b", code):
        head = "static enum pawl_err {}(struct pawl_ctx *ctx, json_t *input, void *user, json_t **ret_output)"
        return "handler", f"{head.format(name)}\n{{\n(void)ctx; (void)input; (void)user; (void)ret_output;\n{code}\nreturn PAWL_OK;\n}}\n"
    if re.search(r"\bentity\b", code):
        head = "static enum pawl_err {}(struct pawl_entity *entity, json_t *payload, void *user, json_t **ret_result)"
        return "entity", f"{head.format(name)}\n{{\n(void)payload; (void)user; (void)ret_result;\n{code}\nreturn PAWL_OK;\n}}\n"
    return "plain", f"static void {name}(void)\n{{\n{code}\n}}\n"


def test_every_function_has_an_example():
    assert [name for name, code in examples() if not code] == []
    assert sorted(name for name, _ in examples()) == sorted(DECLARED) and len(DECLARED) > 60


def test_every_example_compiles_and_does_what_it_says(installed, tmp_path):
    programs = HERE / "programs"
    rows, functions = [], []
    for name, code in examples():
        kind, text = as_function(f"example_{name}", code)
        functions.append(text)
        rows.append(f'{{.name = "{name}", .{kind} = example_{name}}},')
    table = "static const struct {\nconst char *name;\nvoid (*plain)(void);\npawl_task_fn *handler;\npawl_entity_fn *entity;\n} all[] = {\n"
    source = tmp_path / "examples.c"
    parts = [(programs / "examples_head.c").read_text(), *functions, table + "\n".join(rows) + "\n};\n", (programs / "examples_main.c").read_text()]
    source.write_text("\n".join(parts))
    program = compile_program(source, tmp_path / "examples", installed, "-Wno-missing-field-initializers")
    server = Server(tmp_path).start()
    try:
        printed = run(program, env={**installed, "PAWL_URL": server.url})
    finally:
        server.stop()
    assert printed == f"{len(rows)} examples\n"


def test_the_order_of_the_readme_is_refunded_when_it_is_rejected(installed, tmp_path):
    source = tmp_path / "order.c"
    source.write_text(re.search(r"```c\n(.*?)```", (HERE.parent / "README.md").read_text(), re.S).group(1))
    program = compile_program(source, tmp_path / "order", installed)
    server = Server(tmp_path).start()
    worker = subprocess.Popen([program], env={**installed, "PAWL_URL": server.url})
    try:
        wait_until(lambda: "order" in str(server.get("/api/v1/workflows")), "the worker is there")
        run_id = server.post("/api/v1/workflows/order/runs", {"input": {"amount": 30, "to": "Ada"}})["run_id"]
        question = wait_until(lambda: server.get("/api/v1/approvals?status=pending")["items"], "the question is asked")[0]
        server.post(f"/api/v1/approvals/{question['job_id']}/reject", {"reason": "no"})
        ended = wait_until(lambda: (r := server.get(f"/api/v1/runs/{run_id}"))["status"] == "succeeded" and r, "the order is over")
        assert ended["output"]["key"] == ended["steps"][0]["job_id"] + ":refund"
        worker.terminate()
        assert worker.wait(30) == 0, "SIGTERM ends the worker"
    finally:
        worker.kill()
        worker.wait()
        server.stop()


# --- what is installed ---

def test_the_libraries_export_the_functions_of_the_header_and_nothing_else(installed):
    shared = run("nm", "-D", "--defined-only", f"{installed['LD_LIBRARY_PATH']}/libpawl.so")
    static = run("nm", "-g", "--defined-only", f"{installed['LD_LIBRARY_PATH']}/libpawl.a")
    for symbols in (shared, static):
        names = {line.split()[-1] for line in symbols.splitlines() if len(line.split()) == 3}
        assert {n for n in names if not n.startswith(("__asan", "__odr_asan"))} == set(DECLARED)


def test_the_shared_library_has_a_soname(installed):
    assert "[libpawl.so.0]" in run("readelf", "-d", f"{installed['LD_LIBRARY_PATH']}/libpawl.so")


def test_a_program_links_the_static_library(installed, tmp_path):
    source = tmp_path / "version.c"
    source.write_text('#include <pawl.h>\n#include <stdio.h>\nint main(void)\n{\n    puts(pawl_version());\n    return 0;\n}\n')
    program = compile_program(source, tmp_path / "version", installed, static=True)
    assert "libpawl" not in run("readelf", "-d", program)
    assert run(program) == run("pkg-config", "--modversion", "pawl", env=installed)
