"""A small file system for the store, which can be filled and freed while the server uses it.

It is an ext4 image on a loop device. Where mounting is not allowed, the fault library (fault/preload.c) plays the full disk."""
import errno
import os
import pathlib
import subprocess

import faults

SIZE = 4 << 30  # sparse: it costs what is written
LEFT = 256 << 10  # of a full disk so much is left free, so that it becomes full while the server writes


class MountedDisk:
    def __init__(self, folder):
        self.image, self.path = pathlib.Path(folder) / "disk.img", pathlib.Path(folder) / "store"
        self.ballast = self.path / "ballast"
        self.environment = {}

    def mount(self):
        """False where that is not allowed."""
        self.path.mkdir()
        with open(self.image, "wb") as f:
            f.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", self.image], check=True)
        return subprocess.run(["mount", "-o", "loop", self.image, self.path], capture_output=True).returncode == 0

    def fill(self):
        """The server goes on writing: if it took what was free before the ballast did, the ballast tries again and leaves more."""
        with open(self.ballast, "wb") as f:
            for left in range(LEFT, 10 * LEFT, LEFT):
                free = os.statvfs(self.path)
                try:
                    return os.posix_fallocate(f.fileno(), 0, max(1, free.f_bavail * free.f_frsize - left))
                except OSError as e:
                    if e.errno != errno.ENOSPC:
                        raise
                    f.truncate(0)
        raise AssertionError("the ballast finds no room")

    def free(self):
        self.ballast.unlink(missing_ok=True)

    def close(self):
        subprocess.run(["umount", self.path], check=True)


class PretendedDisk:
    """The same for a machine that lets nobody mount."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "store"
        self.path.mkdir(exist_ok=True)
        self.disk = faults.Disk(folder)
        self.environment = {"PAWL_FAULT_FILE": self.disk.control}

    def fill(self):
        self.disk.says("full")

    def free(self):
        self.disk.says("well")

    def close(self):
        self.free()


def make(folder):
    disk = MountedDisk(folder)
    return disk if disk.mount() else PretendedDisk(folder)
