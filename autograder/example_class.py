"""The made-up class of `examples/class/`: notebooks for the demo and the tests, from a roster of what each did."""

from __future__ import annotations

import csv
import io
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from autograder.builder.notebooks import student_cells
from autograder.builder.release import zip_bytes
from autograder.errors import BadInput
from autograder.homework import Homework, without_markers
from autograder.places import COURSE, THE_COURSE
from autograder.write import write

ANY_CLASS = {  # of a homework for which nobody has made up another one
    "all-right": {"about": "The reference itself.", "start": "solved"},
    "untouched": {"about": "Handed in as it was handed out.", "start": "stub"},
}
ROSTER = "canvas.csv"
ABSENT = "never-came"  # on the roster, without a submission


def roster(homework: str) -> dict[str, dict[str, Any]]:
    """Who is in the class, and what they did."""
    path = COURSE / "examples" / "class" / f"{homework}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else ANY_CLASS


@dataclass(frozen=True)
class Example:
    """A class on disk, to try commands on."""

    submissions: Path
    roster: Path
    students: list[str]


def write_example(homework: Homework, folder: Path, nbgrader: bool = False) -> Example:
    """The class as staff gets it: a roster from Canvas and a zip per student, or the tree that nbgrader collects."""
    files = {}
    submissions = folder / ("submitted" if nbgrader else "submissions")
    for student, content in notebooks(homework).items():
        inside = f"{homework.name}.ipynb"
        if nbgrader:
            files[submissions / student / homework.name / inside] = content.encode()
        else:
            files[submissions / f"{student}.zip"] = zip_bytes({inside: content.encode()})
    students = list(roster(homework.name))
    write({**files, folder / ROSTER: _canvas_roster([*students, ABSENT]).encode()}, [])
    return Example(submissions, folder / ROSTER, students)


def _canvas_roster(students: list[str]) -> str:
    """The grade book of a class as Canvas exports it."""
    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    table.writerow(["Student", "ID", "SIS User ID", "SIS Login ID", "Section"])
    table.writerow(["    Points Possible", "", "", "", ""])
    for number, student in enumerate(students, 1001):
        table.writerow([student.replace("-", " ").title(), number, f"S{number}", student, THE_COURSE.title])
    return buffer.getvalue()


def write_class(homework: Homework, folder: Path) -> list[Path]:
    """Write every submission of the class as `<folder>/<student>.ipynb`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for student, content in notebooks(homework).items():
        paths.append(folder / f"{student}.ipynb")
        paths[-1].write_text(content, encoding="utf-8")
    return paths


def notebooks(homework: Homework) -> dict[str, str]:
    """Every submission of the class, by student."""
    cells = {start: student_cells(homework, solved=start == "solved") for start in ("solved", "stub")}
    return {
        student: told["file"] if "file" in told else _notebook(homework, cells, told)
        for student, told in roster(homework.name).items()
    }


def _notebook(homework: Homework, cells: dict[str, list[nbformat.NotebookNode]], told: dict[str, Any]) -> str:
    made = [nbformat.from_dict(cell) for cell in nbformat.from_dict({"cells": cells[told["start"]]}).cells]
    for cell in made:
        if cell.cell_type == "markdown":
            cell.source = without_markers(cell.source)
        question = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if question in told.get("answers", {}):
            cell.source = _answer(homework, cells, question, told["answers"][question])
        if question in told.get("append", {}):
            cell.source += "\n\n" + told["append"][question]
        if told.get("damage") == "no-ids":
            cell.metadata = {}
    if "setup" in told:
        made.insert(0, nbformat.v4.new_code_cell(told["setup"], id="setup"))
    return nbformat.writes(nbformat.v4.new_notebook(cells=made))


def _answer(homework: Homework, cells: dict[str, list[nbformat.NotebookNode]], question: str, told: str) -> str:
    """The source of an answer cell: the reference's, the stub, or a catalogue entry below the reference's."""
    kind, _, label = told.partition(":")
    start = "stub" if kind == "stub" else "solved"
    source = next(c.source for c in cells[start] if c.metadata.get("nbgrader", {}).get("grade_id") == question)
    if not label:
        return str(source)
    catalogue = homework.mistakes if kind == "mistake" else homework.variants
    entry = next((entry for entry in catalogue[question] if entry.label == label), None)
    if entry is None:
        raise BadInput(f"The roster of {homework.name} names `{told}` for {question}, which is not in the catalogue.")
    return f"{source}\n\n{entry.source}"
