"""The OCI image, from scratch: pawl, its libraries, certificates, time zones, and nothing else. Made with buildah."""
import os
import pathlib
import shutil
import tempfile

from common import VERSION, epoch, fix_modes, run, tar_bytes
from tarball import bundle

USER = 65532  # as distroless images have it
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\npawl:x:{USER}:{USER}:pawl:/data:/sbin/nologin\n"


def buildah(store, *command):
    return run("buildah", "--storage-driver", "vfs", "--root", store / "root", "--runroot", store / "run", *command,
               env={**os.environ, "BUILDAH_ISOLATION": "chroot"})


def copy_of_glibc(root):
    """The loader and the C library's own libraries, with the modules that resolve names."""
    loader = pathlib.Path("/lib64/ld-linux-x86-64.so.2") if pathlib.Path("/lib64").exists() else next(pathlib.Path("/lib").glob("ld-linux-*"))
    libc = pathlib.Path(run("sh", "-c", f"ldd /bin/sh | awk '/libc.so/ {{print $3}}'").strip()).resolve().parent
    for name in ("libc.so.6", "libm.so.6", "libresolv.so.2", "libnss_dns.so.2", "libnss_files.so.2", "libdl.so.2", "libpthread.so.0", "librt.so.1"):
        if (libc / name).exists():
            shutil.copy(libc / name, root / "lib/pawl" / name)
    target = root / str(loader).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(loader.resolve(), target)


def root_folder(build_folder, root):
    bundle(build_folder, root)
    shutil.rmtree(root / "share", ignore_errors=True)
    copy_of_glibc(root)
    (root / "etc/ssl/certs").mkdir(parents=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs")
    (root / "etc/passwd").write_text(PASSWD)
    (root / "etc/group").write_text(f"root:x:0:\npawl:x:{USER}:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    shutil.copytree("/usr/share/zoneinfo", root / "usr/share/zoneinfo", symlinks=True)
    (root / "data").mkdir()
    (root / "tmp").mkdir()
    fix_modes(root)
    (root / "data").chmod(0o700)
    (root / "tmp").chmod(0o1777)


def owner(path):
    return (USER, USER) if path.name == "data" and path.parent.name == "root" else (0, 0)


def build(build_folder, out):
    """An OCI archive; `skopeo copy`, `podman load` and `docker load` take it."""
    path = out / f"pawl-{VERSION}.oci.tar"
    with tempfile.TemporaryDirectory() as folder:
        store, root = pathlib.Path(folder) / "store", pathlib.Path(folder) / "root"
        root_folder(build_folder, root)
        layer = pathlib.Path(folder) / "root.tar"
        layer.write_bytes(tar_bytes(root, owner=owner))
        container = buildah(store, "from", "scratch").strip()
        buildah(store, "add", container, layer, "/")
        buildah(store, "config", "--user", f"{USER}:{USER}", "--port", "7295", "--volume", "/data", "--workingdir", "/data",
                "--env", "PAWL_STORE=sqlite:/data/pawl.db", "--env", "PAWL_LISTEN=0.0.0.0:7295", "--env", "PAWL_LOG=json",
                "--env", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "--env", "PATH=/bin",
                "--entrypoint", '["/bin/pawl"]', "--cmd", "serve", "--stop-signal", "SIGTERM",
                "--label", "org.opencontainers.image.title=pawl", "--label", f"org.opencontainers.image.version={VERSION}",
                "--label", "org.opencontainers.image.licenses=Apache-2.0", container)
        buildah(store, "commit", "--quiet", "--format", "oci", "--timestamp", epoch(), "--identity-label=false", container, f"oci:{folder}/image:{VERSION}")
        image = pathlib.Path(folder) / "image"
        path.write_bytes(tar_bytes(image))
    return path
