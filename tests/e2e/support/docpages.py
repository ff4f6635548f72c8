"""The pages of README and docs as programs: their fenced blocks, the hints for tests beside them, and a shell that runs them.

A hint is an HTML comment, which readers do not see, right above a block:

    <!-- docs-test: not run: REASON -->              the block cannot be run in a test
    <!-- docs-test: refusals: CODE, CODE -->         the block shows these refusals; any other fails
    <!-- docs-test: refusals on postgres: CODE -->   the same, of a block for a store in a file
    <!-- docs-test: until: REGEX -->                 each command of the block runs until it has printed this
    <!-- docs-test: own port -->                     what the block starts listens on a port of its own instead of the page's
    <!-- docs-test: file: NAME -->                   the block is the content of a file
    <!-- docs-test: gives: [INPUT, OUTPUT] -->       the block is a definition; a run with this input has this output
    <!-- docs-test: output -->                       the block is what the block before it prints; `…` stands for anything
    <!-- docs-test: output, vary: REGEX -->          the same, and texts that match differ from run to run
    <!-- docs-test-setup                             shell commands that run before the block, in the same shell
    …
    -->
"""
import os
import re
import subprocess

import cli
import harness
import stores

SHELLS = ("sh", "bash", "console")
PORTS = re.compile(r"\b(7295|7296|4222)\b")
# Of the machine that pawl is installed on: here they only have to be called.
HOST_TOOLS = {"systemctl": "", "iostat": "", "journalctl": "echo 'warn error could not be checked'"}
PAGES = [harness.ROOT / "README.md", *sorted((harness.ROOT / "docs").glob("*.md")), *sorted((harness.ROOT / "docs/recipes").glob("*.md")),
         *sorted((harness.ROOT / "examples").glob("*/README.md"))]


class Block:
    def __init__(self, page, line, language, text, hints, setup):
        self.page, self.line, self.language, self.text, self.hints, self.setup = page, line, language, text, hints, setup

    @property
    def where(self):
        return f"{self.page.relative_to(harness.ROOT)}:{self.line}"


def is_for_postgres(block):
    """Its commands run in tests/e2e/operating/test_docs_postgres.py."""
    return block.hints.get("not run", "").startswith("here, but in test_docs_postgres.py")


def parse_hints(comment):
    """{name: value}. Values reach to the end, but for `output`, which `vary` may follow."""
    name, _, value = comment.strip().partition(":")
    if name.startswith("output"):
        return {"output": "", "vary": value.strip() if "vary" in name else ""}
    return {name.strip(): value.strip()}


def prose(page):
    """A page without its blocks."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def guide():
    """The pages that docs/README.md tells a reader to read one after the other, and the recipes."""
    contents = harness.ROOT / "docs" / "README.md"
    chapters = contents.read_text().split("## Reference")[0]
    links = re.findall(r"^\| \[[^\]]*\]\(([^)#]+)", chapters, re.M)
    return [(contents.parent / link).resolve() for link in links]


def blocks(page):
    found, hints, setup, inside = [], {}, "", None
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    for number, line in lines:
        fence = re.match(r"```(\S*)", line)
        if inside is None and fence:
            inside = Block(page, number, fence.group(1), "", hints, setup)
        elif inside is not None and fence:
            found.append(inside)
            inside, hints, setup = None, {}, ""
        elif inside is not None:
            inside.text += line + "\n"
        elif hint := re.match(r"<!-- docs-test: (.*) -->$", line):
            hints = {**hints, **parse_hints(hint.group(1))}
        elif line == "<!-- docs-test-setup":
            for _, more in lines:
                if more == "-->":
                    break
                setup += more + "\n"
    assert inside is None, f"{page}: a block does not end"
    return found


# --- running ---

# Runs in one bash for the whole page, so that a block may use what an earlier one has set.
PRELUDE = r"""
set -mE
trap 'echo "$?:$BASH_COMMAND" >>"$here/failures.$block"' ERR
trap 'for job in $(jobs -p); do kill -- -$job; done 2>/dev/null; wait' EXIT
until_printed() { # REGEX COMMAND: ends the command as soon as it has printed that
    local printed="$here/printed.$block"
    (eval "$2") >"$printed" 2>&1 &
    local command=$! ended=
    until grep -qE "$1" "$printed"; do
        [ -z "$ended" ] || { echo "never printed $1: $2" >>"$here/failures.$block"; break; }
        kill -0 $command 2>/dev/null || ended=1
        sleep 0.05
    done
    kill -- -$command 2>/dev/null || true
    wait $command 2>/dev/null || true
    cat "$printed" >>"$here/out.$block"
}
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def commands(text):
    """Lines, with those joined that end in a backslash, without comments."""
    return [c for c in re.sub(r"\\\n\s*", "", text).splitlines() if c.strip() and not c.startswith("#")]


class Page:
    """A page's shell: its folder, a server of its own, and what each block printed."""

    def __init__(self, page, folder, url):
        self.page, self.folder, self.url = page, folder, url
        self.blocks = blocks(page)
        self.here = folder / ".shell"
        self.here.mkdir()
        self.ports = {"7295": url.rsplit(":", 1)[1], "7296": str(cli.free_port()), "4222": str(cli.free_port())}

    def on_our_ports(self, block, text):
        own = {"7295": str(cli.free_port())} if "own port" in block.hints else {}
        return PORTS.sub(lambda m: {**self.ports, **own}[m.group()], text)

    def script(self):
        parts = [PRELUDE]
        for n, block in enumerate(self.blocks):
            text = self.on_our_ports(block, block.text)
            parts.append(f"block={n}\n")
            if block.setup:
                parts.append("{\n" + self.on_our_ports(block, block.setup) + f"}} >\"$here/setup.{n}\" 2>&1\n")
            if "file" in block.hints:
                (self.folder / block.hints["file"]).write_text(block.text)
                (self.folder / block.hints["file"]).chmod(0o755)
            elif block.language in SHELLS and "not run" not in block.hints:
                if "until" in block.hints:
                    parts += [f"until_printed {quoted(block.hints['until'])} {quoted(c)}\n" for c in commands(text)]
                else:
                    parts.append("{\n" + text + f"}} >\"$here/out.{n}\" 2>&1\n")
        parts.append("block=end\n")
        return "".join(parts)

    def run(self, path, env):
        (self.here / "script").write_text(self.script())
        shell = subprocess.Popen(["bash", self.here / "script"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 env=cli.environment(**{**env, "here": str(self.here), "PATH": f"{path}:{os.environ['PATH']}"}))
        try:
            self.noise, _ = shell.communicate(timeout=harness.PATIENCE_S * 9)
        except subprocess.TimeoutExpired:
            shell.terminate()
            raise AssertionError(f"{self.page}: did not end; the last block was {max(self.here.glob('out.*'), key=lambda p: p.stat().st_mtime)}") from None

    def read(self, kind, n):
        path = self.here / f"{kind}.{n}"
        return path.read_text(errors="replace") if path.exists() else ""


# --- judging ---

VOLATILE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b\d+\.\d+\b"), "SECONDS"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "ADDRESS"),
    (re.compile(r"[ \t]+"), " "),
]


def plain(text, vary=""):
    for pattern, word in [*VOLATILE, *([(re.compile(vary), "VARIES")] if vary else [])]:
        text = pattern.sub(word, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def as_pattern(shown):
    """A regular expression of a text that is shown: `…` stands for anything, and so does an id that is shortened."""
    return ".*?".join(re.escape(part) for part in re.sub(r"\w*…[\w:-]*", "…", shown).split("…"))


def output_fault(shown, printed, vary):
    pattern = as_pattern(plain(shown, vary)) + "$"
    return None if re.match(pattern, plain(printed, vary), re.S) else f"shown:\n{plain(shown, vary)}\nprinted:\n{plain(printed, vary)}"


def comment_faults(block, printed):
    """Comment lines that show JSON must be true of what was printed."""
    shown = [line[1:].strip() for line in block.text.splitlines() if re.match(r"# ?\{", line)]
    return [f"shows {line}, prints {printed}" for line in shown if not re.search(as_pattern(plain(line)), plain(printed))]


def refusals(printed):
    """Codes of problems, as HTTP and as the command line show them."""
    return set(re.findall(r'"type":"[^"]*","title":"[^"]*".*?"code":"([A-Z_]+)"', printed)) | set(re.findall(r"^pawl: ([A-Z_]{4,}): ", printed, re.M))


def faults(page):
    """Everything that is not as the page says."""
    wrong = []
    for n, block in enumerate(page.blocks):
        printed = page.read("out", n)
        failed = page.read("failures", n).splitlines()
        hints = [block.hints.get("refusals", ""), block.hints.get("refusals on postgres", "") if stores.POSTGRES else ""]
        expected = {c.strip() for hint in hints for c in hint.split(",") if c.strip()}
        found = refusals(printed)
        if found != expected:
            wrong.append(f"{block.where}: refusals {sorted(found)}, expected {sorted(expected)}\n{printed}")
        if failed and not expected:
            wrong.append(f"{block.where}: failed: {failed}\n{page.read('setup', n)}{printed}")
        wrong += [f"{block.where}: {fault}" for fault in comment_faults(block, printed)] if block.language in SHELLS and "not run" not in block.hints else []
        if "output" in block.hints and (fault := output_fault(block.text, page.read("out", n - 1), block.hints["vary"])):
            wrong.append(f"{block.where}: {fault}")
    return wrong
