"""What a reader needs of a failed stage's output, in few lines: CI keeps only the end of a long log."""
import re

# pytest: a heading per failed test, then its frames, the assertion behind `E`, and what the test printed.
HEADING = re.compile(r"_{3,} (?P<test>\S.*?) _{3,}")
PRINTED = re.compile(r"-{3,} Captured ")
END_OF_FAILURES = re.compile(r"={3,} ")
# The other tools: compilers, linters, cmocka, sanitizers, vitest and Playwright.
TELLING = re.compile(r"\b(error|warning|ERROR|Error|AssertionError|FAIL|FAILED|Failed|Expected|Received)\b|runtime error|\[   LINE   \]|^\s*#[0-5] |^\s*[✗✘×●] |^\s*\d+\) ")
# Worth showing even among what a test printed.
SANITIZER = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error: ")
LINES_PER_FAILURE = 15
LINES_MAX = 45


def pytest_failures(out):
    """[(test, lines up to what it printed)]"""
    failures, kept, printed = [], [], False
    for line in out.splitlines():
        heading = HEADING.fullmatch(line.strip())
        if heading:
            kept, printed = [], False
            failures.append((heading["test"], kept))
        elif PRINTED.match(line) or END_OF_FAILURES.match(line):
            printed = True
        elif not printed or SANITIZER.search(line):
            kept.append(line)
    return failures


def told_first(lines, count):
    """The last lines; what pytest says of the assertion begins with `E` and goes before the frames when there is not room for both."""
    if len(lines) <= count:
        return lines
    assertion = [line for line in lines if line.startswith("E ")][:count]
    room = count - len(assertion)
    frames = [line for line in lines if not line.startswith("E ")]
    return (frames[-room:] if room else []) + assertion


def brief(out, lines_max=LINES_MAX):
    """The assertion and the last frames of each failed test; of other tools the lines that name an error, or else the last ones."""
    failures = pytest_failures(out)
    if not failures:
        lines = [line for line in out.splitlines() if line.strip()]
        telling = [line for line in lines if TELLING.search(line)]
        return [line[:240] for line in (telling[:lines_max] if telling else lines[-LINES_PER_FAILURE:])]
    each = min(LINES_PER_FAILURE, max(2, lines_max // len(failures) - 1))
    found = []
    for test, lines in failures:
        if len(found) + each >= lines_max and found:
            left = len(failures) - failures.index((test, lines))
            return found + [f"... and {left} more"]
        found += [f"{test}:"] + ["  " + line[:240] for line in told_first([line for line in lines if line.strip()], each)]
    return found


def summary(failed, lines_max=LINES_MAX):
    """`failed`: {stage: output}. Together they fit in the end of a log."""
    each = max(6, lines_max // max(len(failed), 1) - 1)
    return [line for stage, out in failed.items() for line in (f"FAIL {stage}", *("    " + found for found in brief(out, each)))]
