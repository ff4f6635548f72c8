"""The mutants: deliberate defects, each an edit of the sources that breaks one promise.

They are tables in *.toml files beside this one, one file for each promise:

    [[mutant]]
    name = "stale-lease-accepted"
    finding = "A3"                  # optional: the review's finding that this puts back
    breaks = "What goes wrong, in one sentence."
    found_by = "unit:PROGRAM"       # optional; also "postgres:PROGRAM", "e2e:FILE::TEST", "nodes": the simulator with several nodes.
                                    # Without it the simulator finds the mutant.

    [[mutant.edit]]                 # one or more
    file = "src/..."
    old = '''text that is in the file exactly once'''
    new = '''what stands there instead'''
"""
import dataclasses
import pathlib
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]


class Rotten(Exception):
    """The sources have moved on and the mutant has not."""


@dataclasses.dataclass(frozen=True)
class Edit:
    file: str
    old: str
    new: str

    def applied_to(self, text: str) -> str:
        found = text.count(self.old)
        if found != 1:
            first = self.old.strip().splitlines()[0].strip()
            raise Rotten(f"{self.file} has {found} places with `{first}` …, not one")
        return text.replace(self.old, self.new)


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    breaks: str
    edits: tuple[Edit, ...]
    finding: str = ""
    found_by: str = "sim"

    def files(self, root: pathlib.Path = ROOT) -> dict[str, str]:
        """The changed text of each file that the mutant touches."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            if edit.file not in texts:
                texts[edit.file] = (root / edit.file).read_text()
            texts[edit.file] = edit.applied_to(texts[edit.file])
        return texts


def load() -> list[Mutant]:
    mutants: list[Mutant] = []
    for table in sorted(FOLDER.glob("*.toml")):
        for row in tomllib.loads(table.read_text())["mutant"]:
            edits = tuple(Edit(**e) for e in row.pop("edit"))
            mutants.append(Mutant(edits=edits, **row))
    names = [m.name for m in mutants]
    assert len(set(names)) == len(names), "two mutants have the same name"
    return mutants
