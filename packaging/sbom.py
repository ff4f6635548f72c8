"""The software bill of materials, SPDX 2.3 as JSON: what is linked into pawl and libpawl, from dpkg, and what builds and tests
the client libraries, from their lock files."""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import uuid

from common import ROOT, VERSION, epoch, libraries, linked, run

STATIC = re.findall(r"\b(lib[\w.]+)\.a\b", (ROOT / "CMakeLists.txt").read_text())  # archives that travel inside the binary


def spdx_id(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def package(kind, name, version, purl=None, **more):
    made = {"SPDXID": spdx_id(kind, name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}
    if purl:
        made["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return made


def owner_of(path):
    """The Debian package of a file."""
    for candidate in (path.resolve(), path, pathlib.Path(str(path.resolve()).removeprefix("/usr"))):
        found = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise SystemExit(f"no Debian package owns {path}")


def debian(name):
    version, arch, source = run("dpkg-query", "-W", "-f", "${Version} ${Architecture} ${source:Package}", name).split()
    return package("deb", name, version, f"pkg:deb/debian/{name}@{version}?arch={arch}", supplier="Organization: Debian", sourceInfo=f"source package {source}")


def parts_of(build_folder):
    """[(package, relationship)] of what pawl is linked with, or loads."""
    shared = sorted({owner_of(path) for path in libraries(*linked(build_folder)).values()} | {"libc6"})
    static = sorted({f"{name}-dev" for name in STATIC})
    return [(debian(name), "DYNAMIC_LINK") for name in shared] + [(debian(name), "STATIC_LINK") for name in static]


def locked():
    """What builds and tests the libraries; none of it is part of a package."""
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", (ROOT / "sdk/python/requirements-dev.txt").read_text(), re.M)
    found = [package("pypi", name, version, f"pkg:pypi/{name.lower()}@{version}") for name, version in pins]
    known = set()
    for lock in sorted([*ROOT.glob("sdk/*/package-lock.json"), *ROOT.glob("console/package-lock.json")]):
        for path, entry in sorted(json.loads(lock.read_text())["packages"].items()):
            name = path.rpartition("node_modules/")[2]
            if not path or (name, entry["version"]) in known:
                continue
            known.add((name, entry["version"]))
            made = package("npm", f"{name}-{entry['version']}", entry["version"], f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}", licenseDeclared=entry.get("license", "NOASSERTION"))
            found.append({**made, "name": name})
    return found


def document(build_folder):
    own = package("pawl", "pawl", VERSION, f"pkg:generic/pawl@{VERSION}", licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0", primaryPackagePurpose="APPLICATION")
    parts, tools = parts_of(build_folder), locked()
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": own["SPDXID"], "relationshipType": "DESCRIBES"}]
    relations += [{"spdxElementId": own["SPDXID"], "relatedSpdxElement": p["SPDXID"], "relationshipType": how} for p, how in parts]
    relations += [{"spdxElementId": p["SPDXID"], "relatedSpdxElement": own["SPDXID"], "relationshipType": "DEV_DEPENDENCY_OF"} for p in tools]
    packages = [own, *(p for p, _ in parts), *tools]
    name = f"pawl-{VERSION}"
    content = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(epoch(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
            "creationInfo": {"created": created, "creators": ["Tool: pawl-packaging"]},
            "packages": packages, "relationships": relations}


def build(build_folder, out):
    path = out / f"pawl-{VERSION}.spdx.json"
    path.write_text(json.dumps(document(build_folder), indent=1, sort_keys=True) + "\n")
    return path
