"""Running the pawl command as a person or a script would."""
import json
import os
import socket
import subprocess

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
    """Ours without any PAWL_ variable of the machine, and with the given ones."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    env.update(variables)
    return env


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
    """A port that nobody listens on right now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
