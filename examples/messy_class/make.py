"""Make a class as messy as real ones from the reference: `python examples/messy_class/make.py FOLDER`.

FOLDER gets a course with few cheap questions of that homework, the submissions, a roster, and what people wrote into
by_hand.csv. README.md says of every student what must become of it; tests/grading/test_messy_class.py grades it all.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from autograder.builder.notebooks import source_notebook, student_notebook
from autograder.homework import Homework, read_homework, without_markers
from autograder.numbers import numbers, spelt
from autograder.places import ASSIGNMENTS, SOLUTIONS, SUITES

HOMEWORK, OTHER = "hw1_attention", "hw2_multihead"
KEPT, IN_WORDS = ("q1_1", "q1_2", "q1_17"), "q1_14"
FILE = f"{HOMEWORK}.ipynb"
WRONG = "def softargmax(scores, beta=1.0, dim=-1):\n    return scores"
WORDS = "Otherwise the scores grow with d, and the softmax freezes."
Cells = list[dict[str, Any]]
Change = Callable[[Cells], Any]


def lay_out_course(course: Path) -> Homework:
    """The homework with the kept questions alone; another one lies beside it, so that it is known."""
    (course / "solutions").mkdir(parents=True)
    (course / "solutions" / f"{HOMEWORK}.py").write_text(_cut_source())
    shutil.copy(SOLUTIONS / f"{OTHER}.py", course / "solutions")
    for folder in ("public", "hidden", "mistakes", "variants"):
        target = course / "autograder" / "suites" / HOMEWORK / folder
        target.mkdir(parents=True)
        for question in KEPT:
            for path in (SUITES / HOMEWORK / folder).glob(f"*{question}.py"):
                shutil.copy(path, target)
    return read_homework(HOMEWORK, course / "solutions", course / "autograder" / "suites")


def _cut_source() -> str:
    head, *cells = re.split(r"^(?=# %%)", (SOLUTIONS / f"{HOMEWORK}.py").read_text(), flags=re.MULTILINE)
    first = next(i for i, cell in enumerate(cells) if _question(cell))
    kept = [cell for cell in cells[first:] if _question(cell) in (*KEPT, IN_WORDS)]
    spent = sum(float(points) for cell in kept for points in re.findall(r"^# %% question=.* points=(\d+)", cell))
    kept = [re.sub(r'(explain="\w+"[^\n]*? points=)\d+', rf"\g<1>{100 - spent:g}", cell) for cell in kept]
    return spelt("".join([head, *cells[:first], *kept]), numbers(SOLUTIONS))


def _question(cell: str) -> str:
    found = re.search(r'(question|help|explain)="(\w+)"', cell.partition("\n")[0])
    return found[2] if found else ""


class Maker:
    """Notebooks of the homework, solved or as handed out, each with what a student did to it."""

    def __init__(self, homework: Homework) -> None:
        self._solved = json.loads(nbformat.writes(source_notebook(homework)))
        for cell in self._solved["cells"]:
            cell["source"] = without_markers("".join(cell["source"]))
        own(self._solved["cells"], IN_WORDS)["source"] = WORDS
        self._stub = json.loads(nbformat.writes(student_notebook(homework)))
        self.other = (ASSIGNMENTS / OTHER / f"{OTHER}.ipynb").read_bytes()

    def solved(self, *changes: Change, **metadata: Any) -> bytes:
        """A solved notebook after these changes of its cells."""
        return self._made(self._solved, changes, metadata)

    def stub(self, *changes: Change) -> bytes:
        """The notebook as it is handed out, likewise."""
        return self._made(self._stub, changes, {})

    def _made(self, notebook: dict[str, Any], changes: tuple[Change, ...], metadata: dict[str, Any]) -> bytes:
        made = json.loads(json.dumps(notebook))
        for change in changes:
            change(made["cells"])
        made["metadata"] |= metadata
        return json.dumps(made).encode()


def own(cells: Cells, grade_id: str) -> dict[str, Any]:
    """The cell that bears an id."""
    return next(cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def answer(question: str, source: str | Callable[[str], str]) -> Change:
    """Have a question's cell hold something else."""

    def change(cells: Cells) -> None:
        cell = own(cells, question)
        before = "".join(cell["source"])
        cell["source"] = source if isinstance(source, str) else source(before)

    return change


def below(question: str, source: str, kind: str = "code", with_id: bool = False) -> Change:
    """Put a new cell below a question's own, a copy of it where it bears its id too."""

    def change(cells: Cells) -> None:
        cell = own(cells, question)
        made = {**cell, "cell_type": kind, "source": source, "id": "new"}
        made |= {"metadata": cell["metadata"] if with_id else {}}
        if kind == "markdown":
            made = {key: value for key, value in made.items() if key not in ("outputs", "execution_count")}
        cells.insert(cells.index(cell) + 1, made)

    return change


def no_ids(cells: Cells) -> None:
    """Lose every cell's metadata."""
    for cell in cells:
        cell["metadata"] = {}


def colab(cells: Cells) -> None:
    """What Colab adds to cells."""
    for number, cell in enumerate(cells):
        cell["metadata"] |= {"id": f"x{number}", "colab": {"base_uri": "https://localhost:8080/"}}


def vs_code(cells: Cells) -> None:
    """What VS Code adds to cells."""
    for cell in cells:
        cell["metadata"] |= {"vscode": {"languageId": "python"}}


def merged(cells: Cells) -> None:
    """Two answers in one cell, the other cell gone."""
    second = own(cells, "q1_2")
    own(cells, "q1_1")["source"] += "\n\n" + second["source"]
    cells.remove(second)


def split(cells: Cells) -> None:
    """One cell cut in two, which both keep its id, as Jupyter does it."""
    cell = own(cells, "q1_2")
    first, _, second = cell["source"].partition("def saturation")
    cell["source"] = first
    cells.insert(cells.index(cell) + 1, {**cell, "id": "half", "source": f"def saturation{second}"})


def outputs(megabytes: int) -> Change:
    """So many megabytes of printed text."""

    def change(cells: Cells) -> None:
        text = "0123456789" * (megabytes * 2**20 // 10)
        own(cells, "q1_1")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]

    return change


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def renamed(name: str) -> Change:
    """The answer to q1_1 under another name."""
    return answer("q1_1", lambda source: source.replace("def softargmax(", f"def {name}("))


def percent(homework: Homework) -> bytes:
    """The reference as a percent file, as students write it."""
    return without_markers(homework.source.read_text()).encode()


def submissions(homework: Homework) -> dict[str, bytes]:
    """Every file of the class, by its path in the folder of submissions."""
    maker = Maker(homework)
    solved, stub = maker.solved(), maker.stub()
    wrong = maker.solved(answer("q1_1", WRONG))
    right = own(json.loads(solved)["cells"], "q1_1")["source"]
    mended = maker.solved(answer("q1_1", WRONG), below("q1_1", right, with_id=True))
    stub_1 = "".join(own(json.loads(stub)["cells"], "q1_1")["source"])
    moodle = "Ann Byron_7001_assignsubmission_file_"
    return {
        # what always works
        "ada.ipynb": solved,
        "colab.ipynb": maker.solved(colab, colab={"provenance": []}, accelerator="GPU"),
        "vscode.ipynb": maker.solved(vs_code, language_info={"name": "python", "version": "3.12.1"}),
        "bom.ipynb": b"\xef\xbb\xbf" + solved,
        "outputs.ipynb": maker.solved(outputs(20)),
        "script.py": percent(homework),
        "capital.IPYNB": solved,
        "nested.zip": zipped({"inner/inner.zip": zipped({FILE: solved})}),
        f"roe_LATE_502_100005_{FILE}": solved,
        f"{moodle}/{FILE}": solved,
        # several notebooks
        f"ben/{FILE}": stub,
        f"ben/{HOMEWORK}_final.ipynb": solved,
        f"cleo/{FILE}": stub,
        f"cleo/{HOMEWORK} (1).ipynb": solved,
        f"doe_501_99990_{FILE}": wrong,
        f"doe_501_100004_{HOMEWORK}-1.ipynb": solved,
        f"poe_503_99991_{FILE}": solved,
        f"poe_503_100006_{HOMEWORK}-1.ipynb": stub,
        f"eli/attempt_9/{FILE}": wrong,
        f"eli/attempt_10/{FILE}": solved,
        f"fay/{FILE}": solved,
        f"fay/{OTHER}.ipynb": maker.other,
        # what stands in them
        "renamed.ipynb": maker.solved(renamed("my_softargmax")),
        "misnamed.ipynb": maker.solved(answer("q1_1", "def my_softargmax(z):\n    return z.softmax(-1)")),
        "doubled.ipynb": mended,
        "split.ipynb": maker.solved(split),
        "merged.ipynb": maker.solved(merged),
        "no-ids.ipynb": maker.solved(no_ids),
        "new-cell.ipynb": maker.solved(answer("q1_1", stub_1), below("q1_1", right)),
        "bash.ipynb": maker.solved(answer("q1_1", lambda source: f"%%bash\n{source}")),
        "words-below.ipynb": maker.solved(answer(IN_WORDS, "YOUR ANSWER HERE"), below(IN_WORDS, WORDS, "markdown")),
        "words-in-code.ipynb": maker.solved(answer(IN_WORDS, "YOUR ANSWER HERE"), below(IN_WORDS, WORDS)),
        "another.ipynb": maker.other,
        # what cannot be graded
        "essay.docx": b"PK\x03\x04 some document",
        "photo/scan.pdf": b"%PDF-1.7",
        "nothing.zip": zipped({}),
        "broken.zip": b"PK\x03\x04 cut off",
        "cut-off.ipynb": solved[:2000],
        "large.ipynb": maker.solved(outputs(33)),
        # whose they are
        "Kim.ipynb": solved,
        "kim.ipynb": wrong,
        f"{unicodedata.normalize('NFC', 'Zoë')}.ipynb": solved,
        f"{unicodedata.normalize('NFD', 'Zoë')}.ipynb": wrong,
        "ada (1).ipynb": wrong,
        # what lies beside
        "report.zip": zipped({f"{HOMEWORK}/{FILE}": solved, f"{HOMEWORK}/tests/q1_1.py": b"", "report.pdf": b"%PDF"}),
        "notes.txt": b"Marks to be discussed.",
    }


def make(folder: Path) -> None:
    """Write the course, the class, its roster and the sheet that people filled in."""
    homework = lay_out_course(folder)
    for name, content in submissions(homework).items():
        path = folder / "submissions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    handed = {name.partition("/")[0].rpartition(".")[0] or name.partition("/")[0] for name in submissions(homework)}
    known = {"doe_501", "poe_503", "roe_502", "ghost"} | {name for name in handed if "_" not in name}
    rows = [f"{name}," for name in sorted(known - {"ada (1)", "notes"})]
    (folder / "roster.csv").write_text("\n".join(["Student ID,Full name", *rows, ",Ann Byron", ""]))
    (folder / "results").mkdir()
    (folder / "results" / "by_hand.csv").write_text(
        "student_id,question,points,score,comment,answer\n"
        f"ada,{IN_WORDS},84,80,Well said.,\nadda,{IN_WORDS},84,70,,\nben,{IN_WORDS},84,,See me.,\n"
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]))
