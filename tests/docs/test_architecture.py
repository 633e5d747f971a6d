"""ARCHITECTURE.md tells the way through the code: what it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
STEPS = re.findall(r"`((?:autograder|course_utils)/[\w/]+\.py)`\s+`([\w.]+)`", TEXT)


def defined(path: str) -> set[str]:
    """The functions, classes and methods of a file."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def test_the_walks_have_steps():
    assert len(STEPS) > 20


@pytest.mark.parametrize("path, name", STEPS, ids=[f"{path}:{name}" for path, name in STEPS])
def test_each_step_of_a_walk_is_there(path, name):
    assert name in defined(path)


def test_every_room_is_told():
    rooms = {path.parent.name for path in (ROOT / "course_utils").glob("*/__init__.py")}
    told = set(re.findall(r"`(\w+)/`", TEXT))
    *between, last = sorted(room for room in rooms if room.startswith("hw"))
    assert last in told and rooms - told <= set(between)  # from the first homework to the last
