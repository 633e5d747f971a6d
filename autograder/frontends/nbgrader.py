"""`autograder nbgrader init`: a real nbgrader course around the judge, for nbgrader's own commands."""

from __future__ import annotations

from pathlib import Path

import nbformat

from autograder.builder.notebooks import source_notebook
from autograder.builder.release import release_files
from autograder.errors import BadInput
from autograder.frontends.gradebook import CONFIG, GradebookDesk, add_assignment
from autograder.grading.late import LatePolicy
from autograder.homework import read_homework
from autograder.places import COURSE
from autograder.write import Files, write


def init(folder: Path, names: list[str], db_url: str | None = None) -> list[Path]:
    """Lay out the course, or bring its sources up to date; returns what changed. The configuration is kept."""
    homeworks = [read_homework(name) for name in names]
    config = folder / CONFIG
    files: Files = {}
    if not config.is_file():
        files[config] = _config(folder, db_url).encode()
    elif "JudgeAutogrades" not in config.read_text(encoding="utf-8"):
        raise BadInput(f"{config} is not ours: nbgrader would run student code. Choose a new folder.")
    elif db_url:
        raise BadInput(f"{config} exists already. Change `c.CourseDirectory.db_url` in it.")
    for homework in homeworks:
        source = folder / "source" / homework.name
        for path, content in release_files(homework.name).items():
            files[source / path.removeprefix(f"{homework.name}/")] = content
        files[source / f"{homework.name}.ipynb"] = (nbformat.writes(source_notebook(homework)) + "\n").encode()
    changed = write(files, [folder / "source" / homework.name for homework in homeworks])
    desk = GradebookDesk(str(folder))
    for homework in homeworks:
        add_assignment(desk.url, homework)
    return changed


def _config(folder: Path, db_url: str | None) -> str:
    place = f'c.CourseDirectory.db_url = "{db_url}"\n' if db_url else ""
    return CONFIG_TEXT.format(course=COURSE, name=folder.resolve().name, db_url=place, late=LatePolicy())


CONFIG_TEXT = r'''"""Written once by `autograder nbgrader init`; yours to edit."""

import os

os.environ.setdefault("AUTOGRADER_COURSE", "{course}")  # where solutions/ and the suites are

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "{name}"
{db_url}
# The judge grades in boxes; student code never runs in nbgrader. Messages and scores come from it.
c.Autograde.exporter_class = "autograder.frontends.nbgrader_plugins.SubmissionExporter"
c.Autograde.autograde_preprocessors = [
    "autograder.frontends.nbgrader_plugins.JudgeAutogrades",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.JudgeAutogrades.jobs = 0  # processes that grade side by side; 0: one per core
c.JudgeAutogrades.feedback = ""  # on hidden cases: full, teaching or verdicts; empty: teaching until the due date

# What lateness costs, per day begun, once a due date is set for the assignment.
c.AssignLatePenalties.plugin_class = "autograder.frontends.nbgrader_plugins.LatePenalty"
c.LatePenalty.percent_per_day = {late.percent_per_day}
c.LatePenalty.grace_minutes = {late.grace_minutes}
c.LatePenalty.most_percent = {late.most_percent}

# `nbgrader zip_collect` of what Canvas downloads: name_(LATE_)user_submission_file.ipynb; the user's number is the id.
c.FileNameCollectorPlugin.named_regexp = (
    r"(?:.*/)?[^/_]+_(?:LATE_)?(?P<student_id>\d+)_\d+_(?P<file_id>hw\w+?)(?:-\d+)?\.ipynb"
)

# Stubs that name their question, and an export that quotes its fields.
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.LockCells",
    "autograder.builder.notebooks.QuestionStubs",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.ExportApp.plugin_class = "autograder.frontends.nbgrader_plugins.QuotedCsv"
'''
