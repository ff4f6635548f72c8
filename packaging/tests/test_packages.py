"""What is in the packages, and that the same sources give the same bytes."""
import json
import re
import subprocess

from conftest import make


def listing(path):
    """{file: mode and owner}."""
    lines = subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[5].lstrip("."): " ".join(line.split()[:2]) for line in lines}


def field(path, name):
    return subprocess.run(["dpkg-deb", "-f", path, name], capture_output=True, text=True, check=True).stdout.strip()


def test_the_server_package_has_program_unit_and_settings(deb):
    files = listing(deb)
    assert files["/usr/bin/pawl"] == "-rwxr-xr-x root/root"
    assert files["/etc/pawl/pawl.env"] == "-rw------- root/root"
    assert "/usr/lib/systemd/system/pawl.service" in files
    assert not [name for name in files if "libpawl" in name or "include" in name]
    depends = re.findall(r"[a-z0-9.+-]+(?= \(|,|$)", field(deb, "Depends"))
    assert {"libc6", "libssl3", "libcurl4", "libnats3.4", "libpq5"} <= set(depends), "also what it loads when it is first needed"


def test_the_server_package_has_manual_pages_and_completion(deb):
    files = listing(deb)
    assert "/usr/share/bash-completion/completions/pawl" in files
    assert any(name.startswith("/usr/share/man/man1/pawl") for name in files)


def test_the_library_packages_share_no_file_and_belong_together(packages):
    library, dev = (next(p for n, p in packages.items() if n.startswith(prefix)) for prefix in ("libpawl0_", "libpawl-dev_"))
    shared, development = ({n for n in listing(p) if not n.endswith("/")} for p in (library, dev))
    assert any(re.search(r"/libpawl\.so\.0$", name) for name in shared) and "/usr/include/pawl.h" in development
    assert not shared & development
    assert f"libpawl0 (= {field(library, 'Version')})" in field(dev, "Depends")


def test_the_unit_runs_the_installed_program_as_the_packages_user(deb, tmp_path):
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    unit = (tmp_path / "usr/lib/systemd/system/pawl.service").read_text()
    assert "ExecStart=/usr/bin/pawl serve\n" in unit and "User=pawl\n" in unit and "DynamicUser" not in unit
    for hardening in ("NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryDenyWriteExecute=yes", "CapabilityBoundingSet=\n"):
        assert hardening in unit


def test_the_bill_of_materials_lists_what_is_linked_and_what_is_locked(packages):
    path = next(p for n, p in packages.items() if n.endswith(".spdx.json"))
    document = json.loads(path.read_text())
    ids = [package["SPDXID"] for package in document["packages"]]
    assert len(ids) == len(set(ids)) and document["spdxVersion"] == "SPDX-2.3"
    linked = {(r["relatedSpdxElement"], r["relationshipType"]) for r in document["relationships"]}
    for name, how in (("libcurl4", "DYNAMIC_LINK"), ("libpq5", "DYNAMIC_LINK"), ("libnats3.4", "DYNAMIC_LINK"), ("libssl3", "DYNAMIC_LINK"), ("libc6", "DYNAMIC_LINK"), ("libsqlite3-dev", "STATIC_LINK"), ("liblua5.4-dev", "STATIC_LINK")):
        assert (f"SPDXRef-deb-{name}", how) in linked
    assert {"typescript", "mypy"} <= {package["name"] for package in document["packages"]}
    known = {*ids, "SPDXRef-DOCUMENT"}
    assert all({r["spdxElementId"], r["relatedSpdxElement"]} <= known for r in document["relationships"])


def test_built_twice_the_packages_have_the_same_bytes(packages, tmp_path):
    again = make(tmp_path, "deb", "sbom")
    assert [name for name, path in again.items() if path.read_bytes() != packages[name].read_bytes()] == []
    assert again.keys() == packages.keys()
