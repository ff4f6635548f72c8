"""The release tarball: pawl with all of its libraries but the C library, so that it runs on any Linux with glibc 2.36."""
import pathlib
import shutil
import tempfile

from common import ROOT, VERSION, architecture, fix_modes, install, libraries, linked, run, strip, write_tgz


def bundle(build_folder, root):
    """bin/pawl, lib/pawl with its libraries, manual pages and completion if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        installed = pathlib.Path(folder)
        install(build_folder, installed)
        (root / "bin").mkdir(parents=True)
        (root / "lib/pawl").mkdir(parents=True)
        shutil.copy(build_folder / "pawl", root / "bin/pawl")
        if (installed / "usr/share").exists():
            shutil.copytree(installed / "usr/share", root / "share")
    for name, path in libraries(*linked(build_folder)).items():
        shutil.copy(path, root / "lib/pawl" / name)
    # DT_RPATH, which counts for the libraries of libraries too.
    run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib/pawl", root / "bin/pawl")
    strip(root / "bin/pawl")


def build(build_folder, out):
    name = f"pawl-{VERSION}-linux-{architecture()}"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / name
        bundle(build_folder, root)
        for file in ("LICENSE", "README.md", "CHANGELOG.md", "deploy/pawl.service"):
            shutil.copy(ROOT / file, root)
        fix_modes(root)
        return write_tgz(out / f"{name}.tar.gz", root, name)
