#!/usr/bin/env python3
"""Fails on an include that points the wrong way: tools/layers.txt says which folder may include which."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def rules():
    allowed = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            layer, _, may = line.partition(":")
            allowed[layer] = set(may.split()) | {layer}
    return allowed


def main():
    allowed = rules()
    bad = []
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        inside = path.relative_to(ROOT / "src")
        layer = inside.parts[0]
        if layer not in allowed:
            bad.append(f"src/{inside}: the folder is not in tools/layers.txt")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if m and m.group(1).split("/")[0] not in allowed[layer]:
                bad.append(f'src/{inside}:{number}: {layer} may not include "{m.group(1)}"')
            if re.match(r"\s*#\s*include\s+<microhttpd.h>", line) and layer != "http":
                bad.append(f"src/{inside}:{number}: only http knows libmicrohttpd")
            if re.match(r"\s*#\s*include\s+<sqlite3.h>", line) and layer != "store":
                bad.append(f"src/{inside}:{number}: only store knows the engine")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
