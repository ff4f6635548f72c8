"""The packages of the client libraries: wheel, source distribution and npm archive."""
import os
import pathlib
import sys
import tempfile

from common import ROOT, epoch, run

sys.path[:0] = [str(ROOT / "sdk/python" / folder) for folder in ("tools", "tests/support")]


def build(build_folder, out):
    """Needs the environments that the libraries' own checks make. The wheel is built in a copy: others work in the checkout."""
    import check
    import package

    python, environment = check.environment(), {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    with tempfile.TemporaryDirectory() as folder:
        source = package.checkout(pathlib.Path(folder))
        run(python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", out, source, env=environment)
    run("node", "tools/check.mjs", "--pack", out, cwd=ROOT / "sdk/typescript")
    return [*pathlib.Path(out).glob("*.whl"), *pathlib.Path(out).glob("*.tgz")]
