"""Debian packages: pawl (server, command line, unit), libpawl0 (the C library) and libpawl-dev (its header)."""
import pathlib
import re
import shutil
import tempfile

from common import ROOT, VERSION, architecture, epoch, fix_modes, install, linked, run

HERE = pathlib.Path(__file__).resolve().parent
MAINTAINER = "The pawl authors <pawl@localhost>"
HOMEPAGE = "Section: {section}\nPriority: optional\nMaintainer: " + MAINTAINER + "\n"
PACKAGES = {
    "pawl": ("admin", "durable workflow control plane in which every retry is safe",
             "pawl admits workflow runs exactly once, holds tenants' limits exactly and hands\n steps to workers under fenced leases. This package has the server, its systemd\n unit and the command line."),
    "libpawl0": ("libs", "C library for pawl, shared library", "Client, worker and durable functions for pawl."),
    "libpawl-dev": ("libdevel", "C library for pawl, development files", "Client, worker and durable functions for pawl: header, static library and\n pkg-config file."),
}


def dependencies(files):
    """What dpkg-shlibdeps says of programs and libraries."""
    with tempfile.TemporaryDirectory() as folder:
        control = pathlib.Path(folder) / "debian" / "control"
        control.parent.mkdir()
        control.write_text("Source: pawl\n\nPackage: pawl\nArchitecture: any\n")
        printed = run("dpkg-shlibdeps", "-O", "--ignore-missing-info", *[f"-e{path}" for path in files], cwd=folder)
    return re.search(r"shlibs:Depends=(.*)", printed).group(1)


def unit(root):
    """The unit of make install, for a user that the package makes."""
    path = next(root.rglob("pawl.service"))
    text = path.read_text().replace("# A user that exists only while it runs, and one folder of its own.\nDynamicUser=yes\n", "# A user and one folder of its own.\n")
    assert "DynamicUser" not in text and "ExecStart=/usr/bin/pawl" in text
    path.write_text(text)


def move(root, target, *patterns):
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            to = target / path.relative_to(root)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, to)


def document(root, package):
    folder = root / "usr/share/doc" / package
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", folder / "copyright")


def control(root, package, depends, more=""):
    section, short, long = PACKAGES[package]
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) // 1024
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(
        f"Package: {package}\nVersion: {VERSION}\nArchitecture: {architecture()}\n{HOMEPAGE.format(section=section)}"
        f"Installed-Size: {size}\nDepends: {depends}\n{more}Description: {short}\n {long}\n")


def finish(root, package, out):
    document(root, package)
    fix_modes(root)
    for script in ("postinst", "prerm", "postrm"):
        if (root / "DEBIAN" / script).exists():
            (root / "DEBIAN" / script).chmod(0o755)
    if (root / "etc/pawl").exists():
        (root / "etc/pawl").chmod(0o700)
        (root / "etc/pawl/pawl.env").chmod(0o600)
    path = out / f"{package}_{VERSION}_{architecture()}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path, env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(epoch())})
    return path


def server_package(root, depends, out):
    unit(root)
    (root / "etc/pawl").mkdir(parents=True)
    shutil.copy(HERE / "debian/pawl.env", root / "etc/pawl/pawl.env")
    control(root, "pawl", f"{depends}, adduser", "Recommends: ca-certificates, tzdata\n")
    (root / "DEBIAN/conffiles").write_text("/etc/pawl/pawl.env\n")
    for script in ("postinst", "prerm", "postrm"):
        shutil.copy(HERE / "debian" / script, root / "DEBIAN" / script)
    return finish(root, "pawl", out)


def library_package(root, depends, out):
    control(root, "libpawl0", depends)
    (root / "DEBIAN/shlibs").write_text("libpawl 0 libpawl0\n")
    (root / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
    return finish(root, "libpawl0", out)


def build(build_folder, out):
    """The three packages."""
    with tempfile.TemporaryDirectory() as folder:
        root, library, dev = (pathlib.Path(folder) / name for name in ("pawl", "libpawl0", "libpawl-dev"))
        install(build_folder, root)
        move(root, library, "usr/lib/*/libpawl.so.*")
        move(root, dev, "usr/include/*", "usr/lib/*/libpawl.*", "usr/lib/*/pkgconfig/*")
        for empty in ("usr/include", *(str(p.relative_to(root)) for p in root.glob("usr/lib/*-linux-*"))):
            shutil.rmtree(root / empty)
        own = dependencies(linked(pathlib.Path(build_folder)))
        shared = dependencies(library.glob("usr/lib/*/libpawl.so.*.*"))
        control(dev, "libpawl-dev", f"libpawl0 (= {VERSION}), libjansson-dev, libcurl4-openssl-dev, libssl-dev")
        return [server_package(root, own, out), library_package(library, shared, out), finish(dev, "libpawl-dev", out)]
