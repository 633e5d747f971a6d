"""The homeworks as the course hands them out: what is asked, and a fresh copy of every file.

A release carries the original inside `course_utils/originals/`; in the course's own repository it is `assignments/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from course_utils.explain.check_report import titled
from course_utils.explain.sealed_prints import FILE
from course_utils.terminal.notebook_file import CHECK, HOMEWORK, QUESTION, Notebook, parse_notebook
from course_utils.terminal.refusals import Refusal
from course_utils.terminal.renamed import Parameters, Renamed, renamed, signatures
from course_utils.terminal.safe_zip import read_zip

PACKAGE = Path(__file__).parent.parent  # course_utils
SECTION = re.compile(r"^#+ (\d+\.\d+ .+?)\s*$", re.MULTILINE)  # a question's heading, numbered by the build
DOWNLOADED = re.compile(rf"({HOMEWORK.pattern})( ?\(\d+\))?\.zip")  # browsers number what they download twice
SKIPPED_TAGS = {"plot", "training"}  # cells that the graders leave out


@dataclass(frozen=True)
class Asked:
    """What one question is worth, how long it takes, and the names that its answer must define."""

    id: str
    points: float
    minutes: float
    names: tuple[str, ...]
    in_words: bool  # free text, graded by a person
    wanted: Mapping[str, Parameters] = field(default_factory=dict)  # the parameters of its functions and classes
    section: str = ""  # its number and title on the page: what ids do not tell

    @property
    def title(self) -> str:
        """The question as tables call it: "q3_7 (3.8 The encoder layer)"."""
        return titled(self.id, self.section)

    @property
    def numbered(self) -> str:
        """The same in short: "q3_7 (3.8)"."""
        return titled(self.id, self.section.partition(" ")[0])


@dataclass(frozen=True, eq=False)
class Original:
    """One homework as it was handed out."""

    name: str
    files: Mapping[str, bytes]  # path below the homework's folder -> content

    @cached_property
    def notebook(self) -> Notebook:
        """The notebook with nothing answered."""
        return parse_notebook(self.files[f"{self.name}.ipynb"], f"the course's {self.name}.ipynb")

    @cached_property
    def questions(self) -> tuple[Asked, ...]:
        """Everything that earns points, in the order of the notebook."""
        points = {cell.id.removeprefix(CHECK): cell.points for cell in self.notebook.cells if cell.points}
        sections = self._sections()
        return tuple(
            Asked(
                cell.id,
                points.get(cell.id, 0),
                cell.minutes,
                cell.defines,
                cell.kind == "markdown",
                signatures(cell.statements),
                sections[cell.id],
            )  # fmt: skip
            for cell in self.notebook.cells
            if QUESTION.fullmatch(cell.id)
        )

    @cached_property
    def owners(self) -> dict[str, str]:
        """The question that is to define each name."""
        return {name: question.id for question in reversed(self.questions) for name in question.names}

    def _sections(self) -> dict[str, str]:
        """The heading of each question: the last one above it that is no other question's."""
        found: dict[str, str] = {}
        section = ""
        for cell in self.notebook.cells:
            if QUESTION.fullmatch(cell.id):
                found.setdefault(cell.id, section)
                section = ""
            elif cell.kind == "markdown":
                section = (SECTION.findall(cell.source) or [section])[-1]
        return found

    def renamed(self, question: Asked, notebook: Notebook) -> list[Renamed]:
        """What a question's cells define instead of names that nothing in the notebook answers, as graders see it."""
        answered = {name for cell in notebook.cells for name in cell.defines if name not in cell.stubs}
        known = {name for cell in self.notebook.cells for name in cell.defines}
        found: dict[str, Renamed] = {}
        for cell in notebook.with_id(question.id):
            missing = [name for name in question.names if name not in answered]
            defined = {name: told for name, told in signatures(cell.statements).items() if name not in cell.stubs}
            found |= {one.expected: one for one in renamed(missing, question.wanted, defined, known)}
        return list(found.values())

    @cached_property
    def checkpoint(self) -> str:
        """The trained model that its text asks to hand in, or an empty string."""
        file = f"{self.name}.safetensors"
        asked = re.compile(rf"hand in\b[^.]*`{file}`", re.IGNORECASE)
        return file if any(asked.search(cell.source) for cell in self.notebook.cells) else ""


def original_of(name: str, folder: Path) -> Original:
    """The original of the notebook in that folder; raises `Refusal` where the course's copy is nowhere."""
    for known, where in _places(folder):
        if known == name:
            return _read(known, where)
    raise Refusal(
        f"There is no copy of {name} as the course hands it out, neither in {folder} nor with this `course`. "
        f"Download {name}.zip from the course and run `course start {name}.zip`."
    )


def originals(folder: Path) -> dict[str, Path]:
    """Every homework that can be started from here: name -> where its original is."""
    places = list(_places(folder))
    places += [(file.stem, file) for file in sorted(folder.glob("*/course_utils/originals/hw*.zip"))]
    places += [(found[1], file) for file in sorted(folder.glob("*.zip")) if (found := DOWNLOADED.fullmatch(file.name))]
    return {name: where for name, where in sorted(reversed(places), key=lambda place: place[0])}


def named(wanted: str, folder: Path) -> Original:
    """The original that `hw1`, `hw1_attention` or the path of a zip means; raises `Refusal`."""
    path = Path(wanted)
    if path.suffix.lower() == ".zip":
        if not path.is_file():
            raise Refusal(f"There is no file {wanted}. Give the zip as you downloaded it, or a name such as hw1.")
        return from_zip(path, str(path))
    known = originals(folder)
    matching = [name for name in known if is_called(name, wanted)]
    if len(matching) == 1:
        return _read(matching[0], known[matching[0]])
    if matching:
        raise Refusal(f"{wanted} may be {' or '.join(matching)}: write the whole name.")
    raise Refusal(
        f"There is no homework {wanted!r} here. Known: {', '.join(known) or 'none'}. For another one, download its zip "
        f"from the course and run `course start path/to/it.zip`."
    )


def is_called(name: str, wanted: str) -> bool:
    """Whether a homework's name is what was asked for: `hw1_attention`, or `hw1` for short."""
    return name == wanted or name.partition("_")[0] == wanted


def from_zip(source: Path | bytes, shown: str) -> Original:
    """The homework in a release, whose folder is its only one, or in a zip of the folder's content."""
    files = read_zip(source, shown)
    for path in files:
        *above, file = path.split("/")
        name = file.removesuffix(".ipynb")
        if file.endswith(".ipynb") and HOMEWORK.fullmatch(name) and above in ([], [name]):
            start = f"{name}/" if above else ""
            inside = {other.removeprefix(start): content for other, content in files.items() if other.startswith(start)}
            return Original(name, inside)
    raise Refusal(f"{shown} is no homework of the course: there is no hw<number>_<name>.ipynb in it.")


def _places(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, zip or folder) of every original, the nearest first."""
    for home in (folder / "course_utils", PACKAGE):
        for file in sorted(home.glob("originals/hw*.zip")):
            yield file.stem, file
    for notebook in sorted((PACKAGE.parent / "assignments").glob("hw*/hw*.ipynb")):
        if notebook.stem == notebook.parent.name:
            yield notebook.stem, notebook.parent


def _read(name: str, where: Path) -> Original:
    if where.is_file():
        found = from_zip(where, str(where))
        if found.name != name:
            raise Refusal(f"{where} holds {found.name}, not {name}. Download it again.")
        return found
    paths = [where / f"{name}.ipynb", *sorted(where.glob("tests/*.py")), *where.glob(f"tests/{FILE}")]
    return Original(name, {path.relative_to(where).as_posix(): path.read_bytes() for path in paths})
