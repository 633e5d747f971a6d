"""A public file in two parts: checks that students read, and probes that run when one of them has failed."""

from __future__ import annotations

import pytest

from autograder.builder.probes import split
from autograder.homework import homework_names, read_homework

SOURCE = '''\
"""Checks."""

from __future__ import annotations

import math
import os.path

from package import (
    for_both,
    for_checks,
    for_probes as renamed,
)

SHARED = math.pi
ONLY_PROBES = [SHARED, os.path.sep]  # kept with it


# of the checks
def _helper(x):
    return for_both(for_checks(x))


def test_it(answer):
    """It is right."""
    assert _helper(answer) == SHARED


# of the probes
def _inputs():
    return renamed(ONLY_PROBES)


def probe_inputs(answer):
    return answer(_inputs())


def test_more(answer):
    """It is right again."""
    assert answer


def probe_both(answer):
    return for_both(_helper(answer))
'''
CHECKS = '''\
"""Checks."""

from __future__ import annotations

import math

from package import for_both, for_checks

SHARED = math.pi


# of the checks
def _helper(x):
    return for_both(for_checks(x))


def test_it(answer):
    """It is right."""
    assert _helper(answer) == SHARED


def test_more(answer):
    """It is right again."""
    assert answer
'''
PROBES = """\
from __future__ import annotations
import os.path
from package import for_probes as renamed
ONLY_PROBES = [SHARED, os.path.sep]  # kept with it


# of the probes
def _inputs():
    return renamed(ONLY_PROBES)


def probe_inputs(answer):
    return answer(_inputs())


def probe_both(answer):
    return for_both(_helper(answer))
"""


def test_probes_go_with_what_only_they_use_and_the_rest_reads_as_if_they_had_never_been_there() -> None:
    checks, moved = split(SOURCE)
    assert checks == CHECKS
    assert [line for line in moved.splitlines() if line] == [line for line in PROBES.splitlines() if line]


def test_a_file_without_probes_stays_as_it_is_and_one_without_checks_keeps_its_docstring() -> None:
    assert split(CHECKS) == (CHECKS, "")
    assert split('"""Nothing yet."""\n\n\ndef probe_it(x):\n    return x\n') == (
        '"""Nothing yet."""\n',
        "def probe_it(x):\n    return x\n",
    )
    assert split("") == ("", "")


@pytest.mark.parametrize("name", homework_names())
def test_both_parts_together_have_the_probes_of_the_whole(name: str) -> None:
    from autograder.judge.diagnosis import probes  # brings torch

    homework = read_homework(name)
    for question in homework.questions:
        file = homework.public_file(question.id)
        checks, moved = split(file.read_text())
        alone: dict[str, object] = {"__name__": "checks"}
        exec(checks, alone)  # nothing of the checks was taken along
        assert not [found for found in alone if found.startswith("probe_")]
        together = dict(alone)
        exec(moved, together)
        assert [found for found in together if found.startswith("probe_")] == list(probes(file))
