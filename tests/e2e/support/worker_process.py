"""A `pawl worker` of a test: its process, the lines it tells, and gates for the commands it runs."""
import json
import os
import queue
import signal
import subprocess
import threading

import cli
import harness
from harness import wait_until


class Worker:
    """Runs `command` for each job of queue q. Every line of its standard output is kept; `next_report` takes them in order."""

    def __init__(self, url, tenant, *command, flags=(), queues=("q",), **variables):
        args = [harness.PAWL, "worker", "--url", url, "--tenant", tenant, "--json", *(w for q in queues for w in ("--queue", q)), *map(str, flags), "--", *map(str, command)]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=cli.environment(**variables))
        self.lines, self.err = queue.Queue(), ""
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self._read_out, self._read_err)]
        for reader in self.readers:
            reader.start()

    def _read_out(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def _read_err(self):
        for line in self.process.stderr:
            self.err += line

    def _signals(self, which):
        with open(f"/proc/{self.pid}/status") as f:
            return int(next(line for line in f if line.startswith(which)).split()[1], 16)

    def ready(self):
        """Waits until it takes signals."""
        wait_until(lambda: self._signals("SigBlk"), "the worker takes signals")
        return self

    def signal_taken(self):
        """Waits until it has seen the last one."""
        wait_until(lambda: not self._signals("ShdPnd"), "the worker sees the signal")

    @property
    def pid(self):
        return self.process.pid

    def next_report(self):
        """The report of the next job that it finished."""
        try:
            return self.lines.get(timeout=harness.PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"the worker reported no job: {self.err}") from None

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self):
        """Its exit code, once it has ended and everything it said was read."""
        code = self.process.wait(timeout=harness.PATIENCE_S + 30)
        for reader in self.readers:
            reader.join()
        return code

    def stop(self):
        self.ready().signal(signal.SIGTERM)
        return self.ended()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            if state_of(self.process.pid) == "T":  # not always: it would undo the stop by which LeakSanitizer attaches at the end
                self.signal(signal.SIGCONT)
            if kind is None:
                code = self.stop()
                assert code == 0, (code, self.err)
            else:
                self.process.kill()
                self.ended()
        self.process.stdout.close()
        self.process.stderr.close()
        if kind is not None:
            print(f"worker: {self.err}")


class Gates:
    """Files in a folder, by which a test and the shell commands it runs wait for each other."""

    def __init__(self, folder):
        self.folder = folder

    def script(self, text):
        """`reach NAME` makes a file, `await NAME` waits for one; the working folder is the gates'."""
        return ("sh", "-c", f"cd '{self.folder}'; reach() {{ echo $$ > \"$1.new\"; mv \"$1.new\" \"$1\"; }}; "
                            f"await() {{ while [ ! -e \"$1\" ]; do sleep 0.01; done; }}; {text}")

    def open(self, name):
        (self.folder / name).touch()

    def reached(self, name):
        return (self.folder / name).exists()

    def wait(self, name):
        wait_until(lambda: self.reached(name), f"a command reaches {name}")
        return (self.folder / name).read_text().strip()

    def lines(self, name):
        return (self.folder / name).read_text().splitlines()


def state_of(pid):
    """The letter that the kernel has for it; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before the open, or before the read
        return None


def is_alive(pid):
    """Whether a process is there and no zombie."""
    return state_of(pid) not in (None, "Z")


def wait_gone(pid):
    wait_until(lambda: not is_alive(pid), f"process {pid} is gone")


def children(pid):
    """Its children, zombies too."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()


def open_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
