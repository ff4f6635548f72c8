#!/usr/bin/env python3
"""Checks where includes point. tools/layers.txt says which folder may include which; modules (a header and its source file)
may not include each other in a circle; no folder holds more files than a reader can take in at a glance."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
FILES_MAX = 45
# A library's header, and the one folder that may know the library; another one loads it.
LIBRARIES = {"openssl/ssl.h": "http", "sqlite3.h": "store/sqlite", "libpq-fe.h": "store/postgres", "nats/nats.h": "bus", "yaml.h": "cli"}
LOADER = "library"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def read_rules():
    """{folder: the folders that it may include}."""
    allowed = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        folder, colon, may = line.split("#")[0].strip().partition(":")
        if colon:
            allowed[folder] = {*may.split(), folder}
    return allowed


def is_within(path, folder):
    return path == folder or path.startswith(f"{folder}/")


def check_directions(files, allowed):
    for file, includes in files.items():
        layer = next((name for name in sorted(allowed, key=len, reverse=True) if is_within(file, name)), None)
        if layer is None:
            yield f"src/{file}: its folder is not in tools/layers.txt"
            continue
        for kind, name in includes:
            if kind == '"' and not any(is_within(name, folder) for folder in allowed[layer]):
                yield f'src/{file}: {layer} may not include "{name}"'
            if kind == "<" and name in LIBRARIES and not is_within(file, LIBRARIES[name]) and not is_within(file, LOADER):
                yield f"src/{file}: only {LIBRARIES[name]} may include <{name}>"


def find_circles(graph):
    """Sets of modules that reach each other: Tarjan's algorithm."""
    order, low, stack, circles = {}, {}, [], []

    def visit(module):
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            circle = []
            while not circle or circle[-1] != module:
                circle.append(stack.pop())
            if len(circle) > 1:
                circles.append(sorted(circle))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return circles


def check_circles(files):
    modules = {file.rsplit(".", 1)[0] for file in files}
    graph = {module: set() for module in modules}
    for file, includes in files.items():
        module = file.rsplit(".", 1)[0]
        graph[module] |= {name[:-2] for kind, name in includes if kind == '"' and name[:-2] in modules} - {module}
    for circle in find_circles(graph):
        yield f"these modules include each other in a circle: {', '.join(circle)}"


def check_sizes():
    folders = [path for top in (SRC, ROOT / "tests/unit", ROOT / "tests/e2e") for path in top.rglob("*") if path.is_dir()]
    for folder in sorted(path for path in folders if path.name != "__pycache__"):
        count = sum(path.is_file() for path in folder.iterdir())
        if count > FILES_MAX:
            yield f"{folder.relative_to(ROOT)} holds {count} files; the most is {FILES_MAX}"


def main():
    files = {str(path.relative_to(SRC)): INCLUDE.findall(path.read_text()) for path in sorted(SRC.rglob("*.[ch]"))}
    faults = [*check_directions(files, read_rules()), *check_circles(files), *check_sizes()]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
