"""What all packages share: version, date, the installed files, and archives whose bytes depend on nothing else."""
import gzip
import io
import os
import pathlib
import re
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
VERSION = re.search(r"project\(pawl VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
# Those of the C library itself, which a program cannot bring along.
OF_GLIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libresolv.so", "libdl.so", "libpthread.so", "librt.so")


def run(*command, **options):
    """What a command prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def epoch():
    """The date of everything in a package: SOURCE_DATE_EPOCH, or that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "-C", ROOT, "log", "-1", "--format=%ct"))


def architecture():
    return run("dpkg", "--print-architecture").strip()


def install(build, root, prefix="/usr"):
    """`make install` into a folder, with stripped programs and libraries."""
    run("cmake", "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("ninja", "-C", build, "pawl", "pawl_loads", "libpawl_shared", "libpawl_static", "pages_for_people")
    run("cmake", "--install", build, env={**os.environ, "DESTDIR": str(root)})
    for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    for path in files:
        if path.read_bytes()[:4] == b"\x7fELF":
            strip(path)
        elif path.suffix == ".a":
            run("strip", "--strip-debug", "--enable-deterministic-archives", path)


def strip(path):
    """Without the build id, which depends on where it was built."""
    run("strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note.gnu.build-id", path)


def linked(build):
    """pawl, and a library that is linked with what pawl loads when it is first needed: together they name all libraries."""
    return build / "pawl", build / "libpawl_loads.so"


def libraries(*programs):
    """The shared libraries of programs that are not the C library's own, by name."""
    found = {(name, path) for program in programs for name, path in re.findall(r"(\S+) => (/\S+)", run("ldd", program))}
    return {name: pathlib.Path(path) for name, path in sorted(found) if not name.startswith(OF_GLIBC)}


def fix_modes(root):
    """Modes do not depend on the umask."""
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def tar_bytes(root, name="", owner=lambda path: (0, 0)):
    """A folder as a tar file: sorted, owned by root, with one date. `name` is the folder in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted([root, *root.rglob("*")]):
            inside = str(pathlib.PurePosixPath(name) / path.relative_to(root))
            if inside == ".":
                continue
            info = archive.gettarinfo(path, inside)
            info.mtime, (info.uid, info.gid), info.uname, info.gname = epoch(), owner(path), "", ""
            with (path.open("rb") if info.isreg() else io.BytesIO()) as data:
                archive.addfile(info, data)
    return buffer.getvalue()


def write_tgz(path, root, name):
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, epoch()) as packed:
        packed.write(tar_bytes(root, name))
    return path
