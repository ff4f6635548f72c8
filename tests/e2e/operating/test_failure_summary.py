"""What `make test` prints above its last line when stages fail (tools/failures.py)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import failures  # noqa: E402

FRAMES = "\n".join(f"runs/test_runs.py:{n}: in helper_{n}\n    call_{n}()" for n in range(40))
PYTEST = f"""..F.
=================================== FAILURES ===================================
____________________________ test_a_run_is_started _____________________________
{FRAMES}
E   AssertionError: 409
E   assert 409 == 201
----------------------------- Captured stdout call -----------------------------
a long log
src/a.c:7:3: runtime error: signed integer overflow
=========================== short test summary info ============================
FAILED runs/test_runs.py::test_a_run_is_started - AssertionError: 409
1 failed, 3 passed in 2.10s
"""


def test_a_failed_test_shows_its_assertion_and_last_frames_and_not_what_it_printed():
    lines = failures.brief(PYTEST)
    assert lines[0] == "test_a_run_is_started:" and lines[-1].endswith("E   assert 409 == 201")
    assert any("runtime error: signed integer overflow" in line for line in lines)
    assert any("in helper_39" in line for line in lines) and not any("long log" in line or "helper_1:" in line for line in lines)
    assert len(lines) <= 1 + failures.LINES_PER_FAILURE


def test_many_failures_fit_in_the_end_of_a_log_and_the_rest_are_counted():
    many = {f"stage {n}": PYTEST * 30 for n in range(3)}
    lines = failures.summary(many)
    assert len(lines) <= failures.LINES_MAX + 6
    assert sum("more" in line for line in lines) == 3 and sum("AssertionError: 409" in line for line in lines) >= 3


def test_a_compiler_shows_its_errors_and_an_unknown_tool_its_last_lines():
    build = "[1/9] Building a.o\n" + "src/a.c:3:1: error: expected ';'\n" + "[2/9] Building b.o\n" * 50
    assert failures.brief(build) == ["src/a.c:3:1: error: expected ';'"]
    assert failures.brief("\n".join(f"line {n}" for n in range(100)))[-1] == "line 99"


def test_a_sanitizer_shows_its_first_frames():
    report = "==1==ERROR: AddressSanitizer: heap-use-after-free\n    #0 0x1 in run_free\n    #9 0x2 in main\n"
    assert failures.brief(report) == report.splitlines()[:2]
