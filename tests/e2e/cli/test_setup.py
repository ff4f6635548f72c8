"""Contexts, completion in real shells, and manual pages."""
import fcntl
import json
import os
import pty
import re
import select
import stat
import struct
import subprocess
import termios
import time

import pytest

import cli
import harness
from cli import pawl


# --- contexts ---

@pytest.fixture
def config(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}


def test_a_context_names_the_server_that_commands_call(dev_server, tenant, config, tmp_path):
    assert pawl("context", "add", "here", "--url", dev_server.url, "--tenant", tenant, **config).out == "here added; it is the current context\n"
    assert pawl("context", "add", "nowhere", "--url", "http://127.0.0.1:1", **config).out == "nowhere added\n"
    file = tmp_path / "config" / "pawl" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert pawl("tenant", "show", tenant, **config).code == 0
    assert pawl("run", "list", "--context", "nowhere", **config).code == 3
    assert pawl("run", "list", PAWL_CONTEXT="nowhere", **config).code == 3
    rows = pawl("context", "list", **config).out.splitlines()
    assert rows[0].split() == ["CURRENT", "NAME", "URL", "TENANT", "KEY"] and rows[1].split()[:2] == ["*", "here"] and "nowhere" in rows[2]
    assert pawl("context", "use", "nowhere", **config).out == "nowhere is the current context\n"
    assert pawl("run", "list", **config).code == 3
    assert pawl("run", "list", "--url", dev_server.url, **config).code == 0
    assert pawl("context", "remove", "nowhere", **config).out == "nowhere removed\n"
    assert json.loads(file.read_text()) == {"current": None, "contexts": {"here": {"url": dev_server.url, "tenant": tenant}}}


def test_the_key_of_a_context_is_read_at_each_use_and_goes_to_its_server_only(config, tmp_path):
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as server:
        key = tmp_path / "key"
        key.write_text("wrong-key\n")
        assert pawl("context", "add", "prod", "--url", server.url, "--key-file", "key", cwd=tmp_path, **config).code == 0
        r = pawl("tenant", "list", **config)
        assert r.code == 1 and "UNAUTHENTICATED" in r.err, r
        key.write_text(harness.ROOT_KEY + "\nsecond line\n")
        assert pawl("tenant", "list", **config).code == 0
        r = pawl("tenant", "list", "--url", server.url, **config)  # named by hand: the context's key is for its own server
        assert r.code == 1 and "UNAUTHENTICATED" in r.err, r
        assert pawl("tenant", "list", PAWL_API_KEY="other", **config).code == 1


@pytest.mark.parametrize("args,code,said", [
    (("context", "use", "prdo"), 2, 'Unknown context "prdo". Did you mean "prod"?'), (("run", "list", "--context", "x"), 2, 'Unknown context "x".'),
    (("context", "add", "a b", "--url", "http://x"), 2, "A name has letters"), (("context", "add", "p", "--url", "http://x", "--key-file", "/nowhere"), 2, "/nowhere"),
    (("run", "list", "--context", "prod", "--url", "http://x"), 2, "either --url or --context"), (("context", "remove", "x"), 2, "Unknown context"),
])
def test_a_mistake_with_contexts_is_named(config, args, code, said):
    assert pawl("context", "add", "prod", "--url", "http://127.0.0.1:1", **config).code == 0
    r = pawl(*args, **config)
    assert r.code == code and said in r.err and r.out == "", r


def test_a_damaged_file_of_contexts_is_named(config, tmp_path):
    file = tmp_path / "config" / "pawl" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text("[]")
    r = pawl("context", "list", **config)
    assert r.code == 1 and f"{file} is not a file of contexts" in r.err, r


# --- completion ---

def complete_bash(line, folder):
    """What bash offers for the last word of a line."""
    (folder / "pawl.bash").write_text(pawl("completion", "bash").out)
    words = line.split(" ")
    array = " ".join(f"'{w}'" for w in words)
    script = f"source {folder}/pawl.bash; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _pawl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return shell("bash", "--norc", "-c", script)


def complete_zsh(line, folder):
    """What zsh lists, at a terminal of its own."""
    (folder / "_pawl").write_text(pawl("completion", "zsh").out)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 200, 0, 0))
    zsh = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=cli.environment(TERM="dumb", HOME=str(folder)))
    os.close(slave)
    try:
        setup = f"PS1=; unsetopt zle_bracketed_paste; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' list-choices; LISTMAX=0; print rea''dy\n"
        talk(master, setup, r"^ready\r")
        listed = talk(master, line + "\t", "\n|\a").replace(line, "")  # zsh lists nothing while it has more to read
        return set(re.findall(r"[\w-]+", listed + talk(master, "\x15print en''d\n", r"^end\r")))
    finally:
        zsh.kill()
        zsh.wait()
        os.close(master)


def talk(master, text, until):
    """Types a text and reads until the shell has printed this."""
    os.write(master, text.encode())
    got, deadline = "", time.monotonic() + harness.PATIENCE_S
    while not re.search(until, got, re.M):
        assert time.monotonic() < deadline, got
        if select.select([master], [], [], 0.1)[0]:
            got += os.read(master, 65536).decode(errors="replace")
    return got


def complete_fish(line, folder):
    (folder / "pawl.fish").write_text(pawl("completion", "fish").out)
    return shell("fish", "--no-config", "-c", f"source {folder}/pawl.fish; complete -C '{line}'", HOME=str(folder))


def shell(*args, **variables):
    done = subprocess.run(args, capture_output=True, text=True, timeout=harness.PATIENCE_S, env=cli.environment(TERM="xterm", **variables))
    assert done.returncode == 0 and done.stderr == "", done
    return set(re.findall(r"[\w-]+", done.stdout))


LINES = [
    ("pawl r", {"run"}, {"workflow"}), ("pawl run st", {"start"}, {"watch"}), ("pawl entity type s", {"set", "show"}, {"signal"}),
    ("pawl run list --st", {"--status"}, {"--limit"}), ("pawl run list --status runn", {"running"}, {"failed"}), ("pawl serve --lis", {"--listen"}, {"--store"}),
    ("pawl run start order --pri", {"--priority"}, {"--label"}),
]


@pytest.mark.parametrize("line,offered,not_offered", LINES, ids=[line for line, *_ in LINES])
@pytest.mark.parametrize("complete", [complete_bash, complete_zsh, complete_fish], ids=["bash", "zsh", "fish"])
def test_a_shell_completes(complete, line, offered, not_offered, tmp_path):
    words = complete(line, tmp_path)
    assert offered <= words and not (not_offered & words), words


def test_every_command_and_option_of_the_help_is_completed(tmp_path):
    bash, zsh, fish = (pawl("completion", name).out for name in ("bash", "zsh", "fish"))
    for verb in cli.verbs():
        for option in cli.options(verb):
            assert f"--{option}" in bash and f"--{option}[" in zsh and f"__pawl_is {verb}' -l {option} " in fish, (verb, option)


# --- manual pages ---

def test_every_command_has_a_clean_manual_page(tmp_path):
    assert pawl("man", "--to", tmp_path / "man1").code == 0
    pages = sorted((tmp_path / "man1").iterdir())
    assert {p.name for p in pages} >= {"pawl.1", "pawl-run.1", "pawl-serve.1", *(f"pawl-{c}.1" for c in cli.commands())}
    lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout
    shown = subprocess.run(["mandoc", "-Tutf8", "-Owidth=80", tmp_path / "man1" / "pawl-run.1"], capture_output=True, text=True, check=True).stdout
    text = re.sub(r".\x08", "", shown)
    assert "pawl run watch" in text and "--label" in text and "EXIT STATUS" in text and max(map(len, text.splitlines())) <= 80


def test_the_manual_page_of_a_command_is_printed():
    assert ".Dt pawl-run 1" in pawl("man", "run").out.replace("PAWL-RUN", "pawl-run") and pawl("man").out.startswith(".Dd")
    r = pawl("man", "rnu")
    assert r.code == 2 and "Unknown command: rnu" in r.err and r.out == "", r
