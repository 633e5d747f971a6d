"""Seeds, devices, waiting cells, the convention card, and a package that is cheap to import."""

import ast
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import course_utils
from course_utils import after, card_markdown, conventions, pick_device, seed_everything

PACKAGE = Path(course_utils.__file__).parent


def test_one_seed_fixes_every_source_of_random_numbers():
    def draw():
        generator = seed_everything(7)
        return random.random(), np.random.rand(), torch.rand(1).item(), torch.rand(1, generator=generator).item()

    assert draw() == draw()


def test_the_device_is_cpu_where_there_is_nothing_better(monkeypatch):
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device() == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device() == torch.device("mps")
    assert pick_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device() == torch.device("cuda")


def test_the_environment_variable_overrides_the_choice(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert pick_device("mps") == torch.device("cpu")


@pytest.mark.parametrize("name, words", [("cuda:3", "does not have: here are"), ("abacus", "use cuda, cuda:1")])
def test_a_device_that_is_not_there_is_named_with_who_asked_for_it(monkeypatch, name, words):
    monkeypatch.setenv("COURSE_DEVICE", name)
    with pytest.raises(ValueError, match=f"COURSE_DEVICE asks for the device '{name}'.*{words}"):
        pick_device()


def stub():
    raise NotImplementedError("q1_7: write attention")


def test_a_cell_waits_for_the_question_that_stopped_it(capsys):
    with after("q1_1", "q1_7"):
        stub()
    assert capsys.readouterr().out == "This picture appears once q1_7 is answered.\n"


def test_a_cell_waits_for_all_its_questions_when_a_name_is_missing(capsys):
    with after("q1_1", "q1_3", "q1_7", what="experiment"):
        softargmax(1)  # noqa: F821
    assert capsys.readouterr().out == "This experiment appears once q1_1, q1_3 and q1_7 are answered.\n"


def test_a_cell_with_its_answers_runs_and_says_nothing(capsys):
    with after("q1_1"):
        done = True
    assert done and capsys.readouterr().out == ""


@pytest.mark.parametrize("error", [ValueError("shape"), NotImplementedError("\"mul\" not implemented for 'Half'")])
def test_other_errors_are_not_hidden(error):
    with pytest.raises(type(error)), after("q1_1"):
        raise error


def test_the_card_is_a_table_with_the_homeworks_own_rows_last():
    lines = card_markdown([("kernel", "query first")]).splitlines()
    assert lines[:2] == ["| what | convention |", "| --- | --- |"] and lines[-1] == "| kernel | query first |"
    assert len(lines) == len(conventions.CARD) + 3
    assert all(line.count("|") == 3 for line in lines)


def test_the_card_says_what_the_constants_say():
    card = dict(conventions.CARD)
    assert "**True = padding**" in card["padding"] and conventions.PADDING_IS_TRUE
    assert "**True = blocked**" in card["boolean masks that you make"] and conventions.BLOCKED_IS_TRUE
    assert float(card["layer norm"].split("`")[-2]) == conventions.LAYER_NORM_EPS
    assert "pre-norm by default" in card["blocks"] and conventions.NORM_FIRST


def test_importing_the_package_loads_nothing_heavy():
    program = (
        "import sys, course_utils; heavy = {'torch', 'matplotlib', 'otter', 'IPython'} & set(sys.modules); "
        "print(sorted(heavy))"
    )
    assert subprocess.run([sys.executable, "-c", program], text=True, capture_output=True).stdout == "[]\n"


def test_every_name_that_the_package_offers_is_there():
    for name in course_utils.__all__:
        assert getattr(course_utils, name) is not None
    assert set(dir(course_utils)) == set(course_utils.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        course_utils.nothing  # noqa: B018


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_the_package_imports_neither_autograder_nor_solutions_and_stays_small(path):
    source = path.read_text()
    names = [alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    assert not {name.split(".")[0] for name in names} & {"autograder", "solutions"}
    assert len(source.splitlines()) <= 250
