"""A terminal of a given size for a command: a pty, and the screen that its output makes."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import cli
import harness

SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b])", re.S)


class Screen:
    """What is on it: lines of text, and whether a colour was ever used. Knows the sequences that pawl writes, and no others."""

    def __init__(self, columns):
        self.columns, self.lines, self.row, self.column, self.styled, self.widest = columns, [""], 0, 0, False, 0

    def write(self, text):
        end = 0
        for m in SEQUENCE.finditer(text):
            assert m.start() == end, repr(text[end:m.start() + 20])
            end = m.end()
            if m[2]:
                self.control(m[1], m[2])
            elif m[3]:
                self.column = 0
            elif m[4]:
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            else:
                self.put(m[5])

    def control(self, number, kind):
        if kind == "m":
            self.styled = True
        elif kind == "A":
            self.row -= int(number or 1)
            assert self.row >= 0
        elif kind == "J":
            del self.lines[self.row + 1:]
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif kind == "K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        else:
            assert kind in "hl", (number, kind)  # the cursor is hidden or shown

    def put(self, char):
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[:self.column] + char + line[self.column + 1:]
        self.column += 1
        self.widest = max(self.widest, self.column)

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


class Session:
    """A command at its terminal."""

    def __init__(self, args, columns=80, rows=24, cwd=None, **variables):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = cli.environment(**{"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **variables})
        env.pop("COLUMNS", None)
        self.process = subprocess.Popen(args, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=env, start_new_session=True)
        os.close(slave)
        self.screen, self.raw, self.ended = Screen(columns), "", False
        self.bytes = b""

    def read(self, timeout_s):
        """What comes within this time; False at the end."""
        if not select.select([self.master], [], [], timeout_s)[0]:
            return True
        try:
            got = os.read(self.master, 65536)
        except OSError:  # EIO: nobody has the other side open any more
            got = b""
        self.bytes += got
        text = self.bytes.decode(errors="ignore")
        cut = text.rfind("\x1b")
        whole = text if cut < 0 or re.match(r"\x1b\[[?0-9;]*[A-Za-z]", text[cut:]) else text[:cut]
        self.screen.write(whole)
        self.raw += whole
        self.bytes = self.bytes[len(whole.encode()):]
        self.ended = not got
        return not self.ended

    def wait_for(self, regex):
        """Reads until the screen shows it."""
        deadline = time.monotonic() + harness.PATIENCE_S
        while not re.search(regex, self.screen.text, re.M):
            assert time.monotonic() < deadline and self.read(0.1), f"never showed {regex}:\n{self.screen.text}"

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """Reads to the end and returns the exit code."""
        deadline = time.monotonic() + harness.PATIENCE_S
        while self.read(0.1):
            assert time.monotonic() < deadline, self.screen.text
        code = self.process.wait(timeout=harness.PATIENCE_S)
        os.close(self.master)
        return code


def pawl(*args, **kw):
    """The command to its end at a terminal: (exit code, screen)."""
    session = Session([harness.PAWL, *map(str, args)], **kw)
    return session.end(), session.screen
