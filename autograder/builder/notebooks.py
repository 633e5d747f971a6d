"""Notebooks from a homework's source: for students (stubs, locked), for staff (solved), and nbgrader's `source/`."""

from __future__ import annotations

import importlib
import re
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells
from nbgrader.utils import is_solution

from autograder.builder.contents import contents_markdown
from autograder.errors import BadSource, Problem
from autograder.homework import BEGIN, END, LADDER, Explanation, Homework, Question, without_markers
from autograder.percent import PercentCell
from autograder.places import THE_COURSE

SCHEMA_VERSION = 3
FOLD = {"symptom": "Something looks wrong?", "hint": "A hint", "pseudo-code": "The steps, in words"}


class QuestionStubs(ClearSolutions):  # type: ignore[misc]
    """nbgrader's ClearSolutions with a stub that names its question."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> Any:
        """Clear one cell; the stub carries the cell's own grade id."""
        if is_solution(cell):
            question = cell.metadata.nbgrader.grade_id
            self.code_stub = {"python": f'raise NotImplementedError("{question}: write your answer here")'}
        return super().preprocess_cell(cell, resources, cell_index)


def source_notebook(homework: Homework) -> NotebookNode:
    """nbgrader's `source/` notebook: solutions in place, grade ids, points, test cells."""
    return _notebook(homework, student_cells(homework, solved=True))


def solution_notebook(homework: Homework) -> NotebookNode:
    """What a TA reads and runs: the same notebook, its solution markers taken out."""
    notebook = source_notebook(homework)
    for cell in notebook.cells:
        cell.source = without_markers(cell.source)
    return notebook


def student_notebook(homework: Homework) -> NotebookNode:
    """The notebook students get: solutions cleared and cells locked by nbgrader's own preprocessors."""
    return _notebook(homework, student_cells(homework, solved=False))


def student_cells(homework: Homework, solved: bool) -> list[NotebookNode]:
    """The cells of the notebook, with the reference's answers or with stubs."""
    notebook = _notebook(homework, [cell for source in homework.cells for cell in _cells(homework, source)])
    MetadataValidator().validate_nb(notebook)
    steps = [LockCells()] if solved else [LockCells(), QuestionStubs(), ClearOutput()]
    for step in [*steps, ComputeChecksums(), CheckCellMetadata()]:
        notebook, _ = step.preprocess(notebook, {})
    for position, cell in enumerate(notebook.cells):
        cell.id = cell.metadata.get("nbgrader", {}).get("grade_id", f"cell-{position:03d}")
    return list(notebook.cells)


def _notebook(homework: Homework, cells: list[NotebookNode]) -> NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "otter": {"assignment_name": homework.name},
        "course": {"generated_from": f"solutions/{homework.name}.py"},
    }
    return nbformat.from_dict(notebook)


def _cells(homework: Homework, cell: PercentCell) -> list[NotebookNode]:
    """The notebook cells that one source cell becomes."""
    if "explain" in cell.metadata:
        return _free_text(next(e for e in homework.explanations if e.id == cell.metadata["explain"]))
    if cell.kind == "markdown":
        return [nbformat.v4.new_markdown_cell(_markdown(homework, cell))]
    made = nbformat.v4.new_code_cell(cell.source)
    if tags := cell.metadata.get("tags"):
        made.metadata["tags"] = list(tags)
    if "given" in cell.metadata:
        made.metadata["jupyter"] = {"source_hidden": True}  # folded away, a click opens it
    if "question" not in cell.metadata:
        return [made]
    question = homework.question(cell.metadata["question"])
    made.metadata["nbgrader"] = _nbgrader(question.id, grade=False, solution=True)
    made.metadata["course"] = {"minutes": question.minutes}  # for `course progress`
    check = nbformat.v4.new_code_cell(f'grader.check("{question.id}")')
    check.metadata["nbgrader"] = _nbgrader(f"test_{question.id}", grade=True, solution=False, points=question.points)
    return [made, check]


def _free_text(asked: Explanation) -> list[NotebookNode]:
    """The prompt, and below it a cell that nbgrader calls manually graded."""
    prompt = nbformat.v4.new_markdown_cell(with_badge(asked.prompt, asked))
    answer = nbformat.v4.new_markdown_cell(f"{BEGIN}\n{asked.answer}\n{END}")
    answer.metadata["nbgrader"] = _nbgrader(asked.id, grade=True, solution=True, points=asked.points)
    answer.metadata["course"] = {"minutes": asked.minutes}
    return [prompt, answer]


def _nbgrader(grade_id: str, grade: bool, solution: bool, points: float | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "grade_id": grade_id,
        "grade": grade,
        "solution": solution,
        "locked": grade and not solution,
        "task": False,
    }
    return metadata | ({"points": points} if grade else {})


def _markdown(homework: Homework, cell: PercentCell) -> str:
    if cell.metadata.get("card"):
        return _card(homework, cell)
    if cell.metadata.get("contents"):
        return contents_markdown(homework)
    if "help" in cell.metadata:
        return _ladder(cell.source)
    if "question" in cell.metadata:
        return with_badge(cell.source, homework.question(cell.metadata["question"]))
    return cell.source


def _card(homework: Homework, cell: PercentCell) -> str:
    """The course's convention card, from the function that course.toml names."""
    module, _, function = THE_COURSE.card.partition(":")
    if not module:
        what = "asks for a convention card, and the course has none."
        raise BadSource([Problem(homework.source, cell.line, what, "Take the cell out, or set `card` in course.toml.")])
    return str(getattr(importlib.import_module(module), function)())


def with_badge(source: str, question: Question | Explanation) -> str:
    """The question's text with points, minutes and difficulty below its heading."""
    heading, _, rest = source.partition("\n")
    level = "●" * question.difficulty + "○" * (5 - question.difficulty)
    bonus = " on top (bonus)" if question.bonus else ""
    badge = (
        f"`{question.id}` · {question.points:g} points{bonus} · about {question.minutes} minutes · difficulty {level}"
    )
    if isinstance(question, Explanation):
        badge += " · graded by a person"
    return f"{heading}\n\n*{badge}*\n{rest}"


def _ladder(source: str) -> str:
    """The help ladder with each step folded away."""
    parts = re.split(rf"^({'|'.join(LADDER)}):", source, flags=re.MULTILINE)
    steps = dict(zip(parts[1::2], parts[2::2], strict=True))
    return "\n\n".join(
        f"<details><summary>{FOLD[step]}</summary>\n\n{steps[step].strip()}\n\n</details>" for step in LADDER
    )
