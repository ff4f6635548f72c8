"""The packages as users get them: in a clean Debian, as a container, from a tarball."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.request

import pytest

from common import VERSION, libraries, linked, run
from conftest import BUILD, make

pytestmark = pytest.mark.slow
PATIENCE_S = 60


class Served:
    """A server that a command starts; it must answer, and end when it is told to."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options)

    def __enter__(self):
        line = self.process.stdout.readline()
        assert "listening on" in line, self.process.stderr.read()
        self.url = line.split(" on ")[1].strip()
        with urllib.request.urlopen(f"{self.url}/readyz", timeout=PATIENCE_S) as response:
            assert response.status == 200
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_S)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()


def post(url, path, body, method="POST"):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        return json.load(response)


def use(url):
    """A run of a workflow of its own, from its start to its end. It calls the server itself, for which pawl loads a library."""
    steps = [{"name": "a", "type": "http", "request": {"method": "GET", "url": f"{url}/healthz"}}, {"name": "b", "type": "transform", "output": "hello"}]
    post(url, "/api/v1/workflows/hi", {"steps": steps}, "PUT")
    return post(url, "/api/v1/workflows/hi/runs?wait_ms=20000", {})["run"]["output"]


# --- in a clean Debian ---

@pytest.fixture
def debian(deb, tmp_path):
    """A minimal Debian with what the package depends on. It is made once for each list of dependencies."""
    depends = [re.split(r"[ (]", d.strip())[0] for d in subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout.split(",")]
    kept = BUILD / "packages-root.tar"
    wanted = BUILD / "packages-root.txt"
    if not kept.exists() or not wanted.exists() or wanted.read_text() != " ".join(depends):
        fresh = kept.with_suffix(".new")
        run("mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(depends)}", "--format=tar", "bookworm", fresh)
        fresh.replace(kept)
        wanted.write_text(" ".join(depends))
    root = tmp_path / "root"
    root.mkdir()
    run("tar", "xf", kept, "-C", root, "--exclude=./dev")
    (root / "dev").mkdir(exist_ok=True)
    run("mknod", "-m", "666", root / "dev/null", "c", "1", "3")
    return root


def inside(root, *command):
    return run("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})


def has_user(root):
    return "pawl:" in (root / "etc/passwd").read_text()


def test_the_package_is_installed_removed_and_purged_in_a_clean_debian(deb, debian):
    shutil.copy(deb, debian / "pawl.deb")
    inside(debian, "dpkg", "-i", "/pawl.deb")
    assert has_user(debian) and inside(debian, "pawl", "--version").startswith(f"pawl {VERSION}")
    serve = ("chroot", "--userspec=pawl:pawl", debian, "/usr/bin/pawl", "serve", "--dev", "--listen", "127.0.0.1:0", "--store", "sqlite:/var/lib/pawl/pawl.db")
    with Served(*serve) as server:
        assert use(server.url) == "hello"
    data = debian / "var/lib/pawl/pawl.db"
    (debian / "etc/pawl/pawl.env").write_text("PAWL_LOG=text\n")

    inside(debian, "dpkg", "-r", "pawl")
    assert not (debian / "usr/bin/pawl").exists()
    assert data.exists() and has_user(debian) and (debian / "etc/pawl/pawl.env").read_text() == "PAWL_LOG=text\n"

    inside(debian, "dpkg", "-i", "/pawl.deb")
    assert (debian / "etc/pawl/pawl.env").read_text() == "PAWL_LOG=text\n", "settings survive"
    with Served(*serve) as server:
        with urllib.request.urlopen(f"{server.url}/api/v1/runs", timeout=PATIENCE_S) as response:
            assert len(json.load(response)["items"]) == 1, "data survives"

    inside(debian, "dpkg", "-P", "pawl")
    assert not data.parent.exists() and not (debian / "etc/pawl").exists() and not has_user(debian)


# --- as a container ---

def test_the_image_is_from_scratch_and_starts(tmp_path):
    image = next(iter(make(tmp_path / "out", "image").values()))
    store = ("--storage-driver", "vfs", "--root", tmp_path / "store", "--runroot", tmp_path / "run")
    container = run("buildah", *store, "from", f"oci-archive:{image}").strip()
    mount = pathlib.Path(run("buildah", *store, "mount", container).strip())
    assert not (mount / "bin/sh").exists() and (mount / "bin/pawl").exists()
    config = json.loads(run("buildah", *store, "inspect", container))["OCIv1"]["config"]
    assert config["Entrypoint"] == ["/bin/pawl"] and config["Cmd"] == ["serve"] and config["User"] == "65532:65532"
    command = ("buildah", *store, "run", "--isolation", "chroot", container, "--", "/bin/pawl", "serve", "--dev", "--listen", "127.0.0.1:0")
    with Served(*command) as server:
        assert use(server.url) == "hello"
    again = next(iter(make(tmp_path / "again", "image").values()))
    assert again.read_bytes() == image.read_bytes()


# --- from the tarball ---

def test_the_tarball_brings_every_library_but_the_c_librarys(tmp_path):
    archive = next(iter(make(tmp_path / "out", "tarball").values()))
    run("tar", "xzf", archive, "-C", tmp_path)
    (folder,) = tmp_path.glob("pawl-*")
    program = folder / "bin/pawl"
    assert {path.parent for path in libraries(program).values()} == {folder / "bin/../lib/pawl"}
    assert {path.name for path in (folder / "lib/pawl").iterdir()} == libraries(*linked(BUILD)).keys()
    with Served(program, "serve", "--dev", "--listen", "127.0.0.1:0", "--store", "sqlite:pawl.db", cwd=tmp_path, env={}) as server:
        assert use(server.url) == "hello"
        maps = pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()
        assert {folder / "lib/pawl"} == {pathlib.Path(path).parent for path in re.findall(r"(/\S+/lib(?:curl|nghttp2|ssl)\.so\S*)", maps)}
    again = next(iter(make(tmp_path / "again", "tarball").values()))
    assert again.read_bytes() == archive.read_bytes()


# --- the client libraries ---

def test_wheel_and_npm_archive_are_built_twice_with_the_same_bytes(tmp_path):
    first, again = make(tmp_path / "first", "libraries"), make(tmp_path / "again", "libraries")
    assert sorted(path.suffix for path in first.values()) == [".tgz", ".whl"]
    assert [name for name in first if first[name].read_bytes() != again[name].read_bytes()] == []
