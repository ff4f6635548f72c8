"""Builds packages into build/packages.

python3 packaging/build.py [--build build] [--out build/packages] deb tarball image sbom libraries
"""
import argparse
import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from common import ROOT

KINDS = ("deb", "tarball", "image", "sbom", "libraries")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("kinds", nargs="+", choices=KINDS)
    args = parser.parse_args()
    out = (args.out or args.build / "packages").resolve()
    out.mkdir(parents=True, exist_ok=True)
    for kind in args.kinds:
        made = importlib.import_module(kind).build(args.build.resolve(), out)
        for path in made if isinstance(made, list) else [made]:
            print(path)


if __name__ == "__main__":
    main()
