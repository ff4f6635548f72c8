"""Running the pawl command as a person or a script would."""
import contextlib
import functools
import json
import os
import pathlib
import random
import re
import socket
import subprocess

import endpoint
import harness


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        """The one line that --json prints."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def rows(self):
        """A table's lines, each split into words; the first has the titles."""
        return [line.split() for line in self.out.splitlines()]

    def __repr__(self):
        return f"<exit {self.code} out={self.out[:600]!r} err={self.err[:600]!r}>"


def environment(**variables):
    """Ours without any PAWL_ variable of the machine, with what a client needs to trust the servers of the tests, and with the given ones."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    return {**env, **endpoint.client_environment(), **variables}


def pawl(*args, stdin=None, cwd=None, **variables):
    """Runs the command to its end."""
    source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done = subprocess.run([harness.PAWL, *map(str, args)], capture_output=True, text=True, cwd=cwd, env=environment(**variables),
                          timeout=harness.PATIENCE_S * 3, **source)
    return Done(done.returncode, done.stdout, done.stderr)


def popen(*args, cwd=None, **variables):
    return subprocess.Popen([harness.PAWL, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=cwd, env=environment(**variables))


def free_port():
    """A port that nobody listens on right now, below those that the kernel gives to connections: one of them could take it meanwhile."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10_000, lowest)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


@functools.cache
def help_of(words):
    """`pawl WORDS --help`, run once: many tests read it."""
    return pawl(*words.split(), "--help")


# They read their command line themselves, or are too plain for a help of their own.
OWN_PARSERS = ("serve", "dev", "help")


def sections():
    """(commands that call no server, those that do), as `pawl --help` lists them."""
    before, _, after = help_of("").out.partition("Commands that call a server:\n")
    return tuple([c for c in re.findall(r"^  ([a-z]+) ", text, re.M) if c not in OWN_PARSERS] for text in (before, after))


def commands():
    """["workflow", "run", …]: all that have verbs or options in the table."""
    local, calling = sections()
    return local + calling


def local_verbs():
    """The verbs that call no server."""
    on_databases = {"cluster init", "cluster move-tenant", "cluster place", "cluster drain"}
    return [verb for verb in verbs() if verb.split()[0] in sections()[0] or verb in on_databases]


def verbs():
    """{"run start": "pawl run start WORKFLOW", …}: every verb that the help of its command lists, or the command that has none."""
    found = {}
    for command in commands():
        text = help_of(command).out
        lines = re.findall(rf"^  (pawl {command} [^ ].*?)(?:  |$)", text, re.M)
        for line in lines or [re.match(r"usage: (.*?) (?:--\S+ .*)?\[OPTIONS\]", text).group(1)]:
            found[" ".join(re.match(r"pawl ([a-z]+(?: [a-z-]+)*)", line).group(1).split())] = line
    return found


def summary(verb):
    """What the help of a verb says in one line."""
    return help_of(verb).out.split("\n\n")[1]


def options(verb):
    """{"limit": ("N", "Items per page"), …}: the options of a verb's own, as its help lists them."""
    text = re.sub(r"\n {34}", " ", help_of(verb).out.partition("\n\n")[2].partition("Common options")[0])
    return {name: (value.strip(), description) for name, value, description in re.findall(r"^  --([a-z-]+)((?: \S+)?) +(\S.*)$", text, re.M)}


def choices(value, description):
    """The words of an option that takes one of a few: joined by bars in its value, or first in brackets. None of any other option."""
    bracket = re.search(r"\((\w+(?:, \w+){2,})[);]", description)
    words = value.split("|") if "|" in value else bracket.group(1).split(", ") if bracket else []
    return set(words) if words and all(re.fullmatch("[a-z_]+", word) for word in words) else None
