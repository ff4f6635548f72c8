"""Every command block of README and docs, run as it is written: nothing fails, and what a page shows is what is printed."""
import functools
import itertools
import json
import pathlib
import re
import subprocess

import pytest

import cli
import docpages
import harness

GUIDE = docpages.guide()
RUNNABLE = [p for p in [*GUIDE, *(p for p in docpages.PAGES if p not in GUIDE)] if any(b.language in docpages.SHELLS for b in docpages.blocks(p))]
NOT_RUN_MAX = 7


def name(page):
    return str(page.relative_to(harness.ROOT))


@pytest.fixture
def folder(tmp_path):
    """An empty one that has what `make` leaves at the top of the repository."""
    work = tmp_path / "work"
    work.mkdir()
    for there in ("examples", "deploy", "sdk"):
        (work / there).symlink_to(harness.ROOT / there)
    (work / "build").symlink_to(pathlib.Path(harness.PROGRAM).parent)
    return work


@pytest.fixture
def path(tmp_path):
    """A folder for PATH with `pawl` in it, and stand-ins for the tools of the machine that it is installed on."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "pawl").symlink_to(harness.PAWL)
    for tool, does in docpages.HOST_TOOLS.items():
        (bin_folder / tool).write_text(f"#!/bin/sh\n{does}\n")
        (bin_folder / tool).chmod(0o755)
    return bin_folder


@pytest.fixture(scope="session")
def python_library():
    """Where programs find the Python library as if it were installed. TypeScript is tested in sdk/typescript/test/package.test.ts."""
    library = harness.ROOT / "sdk" / "python"
    subprocess.run(["/usr/bin/python3", library / "tools" / "models.py"], check=True)
    return library / "src"


@pytest.fixture(scope="module")
def reader():
    """The server of somebody who reads the guide from beginning to end. Plain, because pages write http://."""
    with harness.server(tls=False) as server:
        yield server


@pytest.fixture
def server(request, page):
    """The reader's for a page of the guide; any other page has one of its own."""
    if page in GUIDE:
        yield request.getfixturevalue("reader")
    else:
        with harness.server(tls=False) as server:
            yield server


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_every_command_of_a_page_does_what_the_page_says(page, folder, path, python_library, server):
    shell = docpages.Page(page, folder, server.url)
    # What the page itself starts listens elsewhere.
    shell.run(path, {"PAWL_URL": server.url, "PAWL_LISTEN": f"127.0.0.1:{cli.free_port()}", "PYTHONPATH": str(python_library)})
    wrong = docpages.faults(shell)
    assert not wrong, "\n\n".join(wrong) + shell.noise


def test_blocks_that_are_not_run_are_few_and_say_why(capsys):
    left_out = [(b.where, b.hints["not run"]) for p in docpages.PAGES for b in docpages.blocks(p) if "not run" in b.hints and not docpages.is_for_postgres(b)]
    with capsys.disabled():
        print("\ncommands of README and docs that are not run: " + "; ".join(f"{where} ({why})" for where, why in left_out))
    assert all(why for _, why in left_out) and len(left_out) <= NOT_RUN_MAX


def steps_of(value):
    """The steps of a definition, of a step or of a list of steps; None for other JSON."""
    if isinstance(value, dict) and isinstance(value.get("steps"), list):
        return None if "status" in value else value
    steps = value if isinstance(value, list) else [value]
    return {"steps": steps} if all(isinstance(s, dict) and {"name", "type"} <= set(s) for s in steps) else None


@pytest.mark.parametrize("page", [p for p in docpages.PAGES if any(b.language == "json" for b in docpages.blocks(p))], ids=name)
def test_every_json_block_is_json_and_every_definition_is_valid(page, api, tenant):
    for block in docpages.blocks(page):
        if block.language != "json":
            continue
        try:
            definition = steps_of(json.loads(block.text))
        except json.JSONDecodeError:
            assert "…" in block.text, block.where
            continue
        if definition is not None:
            r = api.post("/api/v1/workflows/w/validate", {k: v for k, v in definition.items() if k != "id"}, tenant=tenant)
            assert r.status == 200 and r.json["valid"], (block.where, r)
        if "gives" in block.hints:
            given, output = json.loads(block.hints["gives"])
            api.workflow(tenant, definition["id"], definition["steps"])
            run = api.post(f"/api/v1/workflows/{definition['id']}/runs?wait_ms=60000", {"input": given}, tenant=tenant).json["run"]
            assert (run["status"], run["output"]) == ("succeeded", output), block.where


@functools.lru_cache(maxsize=None)
def help_of(words):
    """The help of the command that these words begin with."""
    for n in range(len(words), 0, -1):
        done = cli.pawl(*words[:n], "--help")
        if done.code == 0:
            return done.out
    return None


@pytest.mark.parametrize("page", docpages.PAGES, ids=name)
def test_every_command_and_flag_that_a_page_names_exists(page):
    for code in re.findall(r"`(pawl [^`]+)`", docpages.prose(page)):
        words = code.split(" -- ")[0].split()[1:]
        command = tuple(itertools.takewhile(lambda w: re.fullmatch("[a-z][a-z-]*", w), words[:3]))
        if command[:1] == ("listening",) or words == ["--help"]:  # what the server prints; every command has help
            continue
        text = help_of(command)
        assert text is not None, code
        assert [w for w in words if w.startswith("--") and w not in (*text.split(), "--help")] == [], code


def test_every_flag_and_variable_of_the_server_is_documented():
    text = (harness.ROOT / "docs" / "operations.md").read_text()
    wanted = set(re.findall(r"^ +(--[a-z-]+)|(PAWL_[A-Z_]+)", cli.pawl("serve", "--help").out, re.M))
    assert len(wanted) > 20 and [w for w in map("".join, wanted) if w not in text] == []


def is_run(block, commands):
    """By the commands of its page; the retry guide by the tests below, TypeScript by sdk/typescript/test/package.test.ts."""
    if block.language == "python" and "class Budget" not in block.text:
        return pathlib.Path(block.hints.get("file", "not a file")).stem in commands
    return block.language in (*docpages.SHELLS, "python", "ts", "json", "ini", "yaml", "")


@pytest.mark.parametrize("page", docpages.PAGES, ids=name)
def test_every_program_of_a_page_is_run(page):
    blocks = docpages.blocks(page)
    commands = "".join(b.setup + (b.text if b.language in docpages.SHELLS else "") for b in blocks)
    assert [b.where for b in blocks if not is_run(b, commands)] == []


@pytest.fixture
def retry_guide(monkeypatch):
    """The guide's code, with pauses that are noted instead of slept."""
    text = next(b.text for b in docpages.blocks(harness.ROOT / "docs" / "idempotency.md") if "class Budget" in b.text)
    guide, now, pauses = {}, [0.0], []
    exec(text, guide)

    def sleep(seconds):
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(guide["time"], "sleep", sleep)
    monkeypatch.setattr(guide["time"], "monotonic", lambda: now[0])
    return guide, pauses


def answers(*given):
    """send() of one that gives these answers in turn, the last for ever."""
    left = list(given)

    def send():
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return send


BUSY = (429, {"Retry-After": "3"}, {"retryable": True})


def test_the_retry_guide_waits_as_asked_and_comes_back(retry_guide):
    guide, pauses = retry_guide
    assert guide["call"](answers(BUSY, OSError(), (200, {}, "done")), guide["Budget"]()) == "done"
    assert 3 <= pauses[0] <= 3.2 and 0 <= pauses[1] <= 0.4


@pytest.mark.parametrize("last,retries", [((422, {}, {"retryable": False}), 0), ((503, {}, {"retryable": True}), 10), (OSError("reset"), 10)])
def test_the_retry_guide_stops_when_retries_cannot_help_or_the_budget_is_spent(retry_guide, last, retries):
    guide, pauses = retry_guide
    with pytest.raises(RuntimeError):
        guide["call"](answers(last), guide["Budget"](), patience_s=1e9)
    assert len(pauses) == retries


def test_the_retry_guide_ends_at_its_deadline(retry_guide):
    guide, pauses = retry_guide
    with pytest.raises(RuntimeError):
        guide["call"](answers(BUSY), guide["Budget"](), patience_s=10)
    assert sum(pauses) <= 10


def test_every_link_leads_somewhere():
    for page in docpages.PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", docpages.prose(page)):
            file, _, anchor = target.partition("#")
            if re.match(r"\w+:", file):
                continue
            there = (page.parent / file).resolve() if file else page
            assert there.exists(), (name(page), target)
            assert not anchor or anchor in anchors(there), (name(page), target)


STARTS_WITH_A_KEY = re.compile(r"""(?:Idempotency-Key: |--idempotency-key |(?<!\w)key="|(?<!\w)key: ")([\w-]+)""")


def test_pages_use_keys_of_their_own_so_that_all_can_be_tried_on_one_server():
    pages = {}
    for page in docpages.PAGES:
        for block in docpages.blocks(page):
            for key in STARTS_WITH_A_KEY.findall(block.text):
                pages.setdefault(key, set()).add(name(page))
    assert len(pages) > 10 and {key: where for key, where in pages.items() if len(where) > 1} == {}


def test_every_page_can_be_found_from_the_start():
    contents = [harness.ROOT / "README.md", harness.ROOT / "docs" / "README.md"]
    listed = {(page.parent / target).resolve() for page in contents for target in re.findall(r"\]\(([^)\s#]+)\)", docpages.prose(page))}
    assert [name(p) for p in docpages.PAGES if p not in contents and p not in listed and p.parent not in listed] == []


def anchors(page):
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.*)$", docpages.prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", t)).strip().lower().replace(" ", "-") for t in titles}
