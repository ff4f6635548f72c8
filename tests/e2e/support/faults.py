"""A server whose disk fails on command (fault/preload.c) and whose wall clock can be moved (fault/clock.c)."""
import contextlib
import os
import pathlib
import struct
import subprocess
import tempfile

import harness

SOURCES = sorted((pathlib.Path(__file__).parent / "fault").glob("*.c"))


def build_library(folder):
    library = pathlib.Path(folder) / "preload.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, *SOURCES], check=True)
    return library


class Disk:
    """What the server's disk does from now on."""

    def __init__(self, folder):
        self.control = pathlib.Path(folder) / "disk"
        self.hits_file = pathlib.Path(folder) / "disk.hits"
        self.calls_file = pathlib.Path(folder) / "disk.calls"

    def says(self, mode):
        # Renamed into place: the library never reads a half-written word.
        new = self.control.with_suffix(".new")
        new.write_text(mode)
        new.rename(self.control)

    def hits(self):
        return self.hits_file.stat().st_size if self.hits_file.exists() else 0

    def calls(self):
        """(call, file) for every change and sync of the store's files, in order, that was made while it said "fsync" or "watch"."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [(call, pathlib.Path(path).name) for call, path in (line.split(" ", 1) for line in lines)]

    @contextlib.contextmanager
    def failing(self, mode):
        self.says(mode)
        try:
            yield self
        finally:
            self.says("well")


class Clock:
    """The wall clock of a server, `offset_s` away from the machine's."""

    def __init__(self, folder):
        self.file = pathlib.Path(folder) / "clock"
        self.file.write_bytes(struct.pack("q", 0))
        self.offset_s = 0

    def set(self, offset_s):
        self.offset_s = offset_s
        with open(self.file, "r+b") as f:  # in place: the server has it mapped
            f.write(struct.pack("q", round(offset_s * 1e9)))


def environment(**variables):
    """For a server that has the library loaded."""
    # A sanitizer's own library is then not the first one, which it would refuse.
    return {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0", **{k: str(v) for k, v in variables.items()}}


@contextlib.contextmanager
def server(library, *flags):
    """A development server and its disk. The test may leave the server ended with 1: that is what an fsync error does."""
    with tempfile.TemporaryDirectory(prefix="pawl-fault-") as folder:
        disk = Disk(folder)
        s = harness.Server(folder, *flags, env=environment(PAWL_FAULT_FILE=disk.control), preload=library).start()
        try:
            yield s, disk
            if s.process is not None:
                s.close()
        except BaseException:
            print(s.log()[-4000:])
            raise
        finally:
            disk.says("well")
            if s.process is not None:
                s.kill()
