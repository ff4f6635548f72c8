"""The packages of the client libraries: wheel, source distribution and npm archive."""
import os
import pathlib
import shutil
import sys

from common import ROOT, epoch, run


def build(build_folder, out):
    """Needs the environments that the libraries' own checks make."""
    sys.path.insert(0, str(ROOT / "sdk/python/tools"))
    import check

    python, environment = check.environment(), {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    run(python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", out, ROOT / "sdk/python", env=environment)
    run("node", "tools/check.mjs", "--build", cwd=ROOT / "sdk/typescript")
    run("npm", "pack", "--ignore-scripts", "--pack-destination", out, cwd=ROOT / "sdk/typescript")
    shutil.rmtree(ROOT / "sdk/python/build", ignore_errors=True)
    for left in (ROOT / "sdk/python/src").glob("*.egg-info"):
        shutil.rmtree(left)
    return [*pathlib.Path(out).glob("*.whl"), *pathlib.Path(out).glob("*.tgz")]
