"""A course folder to run the guides' commands in: hw1_attention with few of its questions, and a class of four."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

from autograder.failing import PROVED
from autograder.numbers import numbers, spelt
from autograder.places import ASSIGNMENTS, COURSE, SOLUTIONS, SUITES

HOMEWORK = "hw1_attention"
KEPT, IN_WORDS = ("q1_1", "q1_7"), "q1_14"
STUDENTS = ("all-right", "wrong-axis", "loses-rows", "truncated-file")


def lay_out(course: Path) -> None:
    """Real texts, suites, mistakes and checks of the kept questions; what is left of the points goes to the words."""
    (course / "solutions").mkdir(parents=True)
    (course / "solutions" / f"{HOMEWORK}.py").write_text(_cut_source())
    for folder in ("public", "hidden", "mistakes", "variants"):
        target = course / "autograder" / "suites" / HOMEWORK / folder
        target.mkdir(parents=True)
        for path in (SUITES / HOMEWORK / folder).glob("*.py"):
            if path.stem.removeprefix("test_") in KEPT:
                shutil.copy(path, target)
    proved = json.loads((SUITES / HOMEWORK / PROVED).read_text())  # what mistakes fail is the same with fewer questions
    proved["questions"] = {id: told for id, told in proved["questions"].items() if id in KEPT}
    (course / "autograder" / "suites" / HOMEWORK / PROVED).write_text(json.dumps(proved))
    checks = course / "assignments" / HOMEWORK / "tests"
    checks.mkdir(parents=True)
    for question in KEPT:
        shutil.copy(ASSIGNMENTS / HOMEWORK / "tests" / f"{question}.py", checks)
    classes = course / "examples" / "class"
    classes.mkdir(parents=True)
    (classes / f"{HOMEWORK}.toml").write_text(_cut_class())


def _cut_source() -> str:
    head, *cells = re.split(r"^(?=# %%)", (SOLUTIONS / f"{HOMEWORK}.py").read_text(), flags=re.MULTILINE)
    first = next(i for i, cell in enumerate(cells) if _question(cell))
    kept = [cell for cell in cells[first:] if _question(cell) in (*KEPT, IN_WORDS)]
    spent = sum(float(points) for cell in kept for points in re.findall(r"^# %% question=.* points=(\d+)", cell))
    kept = [re.sub(r'(explain="\w+" points=)\d+', rf"\g<1>{100 - spent:g}", cell) for cell in kept]
    whole = "".join([head, *cells[:first], *kept])
    return spelt(whole, numbers(SOLUTIONS))  # most of the questions that it speaks of are left out


def _question(cell: str) -> str:
    found = re.search(r'(question|help|explain)="(\w+)"', cell.partition("\n")[0])
    return found[2] if found else ""


def _cut_class() -> str:
    text = (COURSE / "examples" / "class" / f"{HOMEWORK}.toml").read_text()
    assert set(STUDENTS) <= set(tomllib.loads(text))
    parts = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    return "".join(part for part in parts if part.startswith(tuple(f"[{student}]" for student in STUDENTS)))
