"""Seeds, devices, waiting cells, the convention card, and a package that is cheap to import."""

import ast
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import course_utils
from course_utils import after, card_markdown, pick_device, seed_everything
from course_utils.notebook import conventions

PACKAGE = Path(course_utils.__file__).parent
ROOT = PACKAGE.parent


def test_one_seed_fixes_every_source_of_random_numbers():
    def draw():
        generator = seed_everything(7)
        return random.random(), np.random.rand(), torch.rand(1).item(), torch.rand(1, generator=generator).item()

    assert draw() == draw()


def test_torch_computes_on_one_thread_or_on_as_many_as_are_asked_for(monkeypatch):
    before = torch.get_num_threads()
    try:
        for asked, threads in (("", 1), ("2", 2)):
            monkeypatch.setenv("COURSE_THREADS", asked)
            seed_everything(0)
            assert torch.get_num_threads() == threads
        monkeypatch.setenv("COURSE_THREADS", "many")
        with pytest.raises(ValueError, match="COURSE_THREADS=many: give the number of threads"):
            seed_everything(0)
    finally:
        torch.set_num_threads(before)


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


def test_a_cell_names_every_answer_that_is_missing_and_none_that_is_there(capsys):
    env = {"after": after}
    exec("def first(x): return x\n", env)
    for question in ("q3_2", "q3_3", "q3_9"):
        exec(f"def f_{question}(): raise NotImplementedError('{question}: write your answer here')", env)
    method = "    def forward(self): raise NotImplementedError('q3_4: write your answer here')"
    exec(f"class Layer:\n{method}", env)
    exec("with after('q3_1', 'q3_2', 'q3_3', 'q3_4'):\n    first(f_q3_3())", env)
    assert capsys.readouterr().out == "This picture appears once q3_2, q3_3 and q3_4 are answered.\n"
    exec("with after('q3_1'):\n    f_q3_9()", env)
    assert capsys.readouterr().out == "This picture appears once q3_9 is answered.\n"


class Known:
    """A grader that knows what questions define, and which of them pass."""

    names = {"q1_1": ("softargmax",), "q1_7": ("attention",)}
    passing = {"q1_1"}

    def check(self, question, env):
        return SimpleNamespace(passed=question in self.passing)


CELL = compile("with after('q1_1', 'q1_7'):\n    result = attention(1)", "<cell>", "exec")


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("softargmax = abs", "This picture appears once q1_7 is answered.\n"),
        ("", "This picture appears once q1_1 and q1_7 are answered.\n"),
        ("def attention(x): return softargmax(x)", "This picture appears once q1_1 is answered.\n"),
    ],
)
def test_a_cell_waits_for_the_questions_whose_names_are_not_there(capsys, answers, told):
    env = {"after": after, "grader": Known()}
    exec(answers, env)
    exec(CELL, env)
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("wrong", ["return x[5]", "return [1][x]", "return sofmax(x)"])
def test_above_an_error_that_a_wrong_answer_may_bring_its_question_is_named(capsys, wrong):
    env = {"after": after, "grader": Known()}
    exec(f"softargmax = abs\ndef attention(x): {wrong}", env)
    with pytest.raises((IndexError, TypeError, NameError)):
        exec(CELL, env)
    told = capsys.readouterr().out
    assert told.startswith(
        'This picture needs q1_7, which does not pass its checks yet: grader.check("q1_7") tells more.'
    )
    env["grader"].passing = {"q1_1", "q1_7"}
    with pytest.raises((IndexError, TypeError, NameError)):
        exec(CELL, env)
    assert capsys.readouterr().out == ""


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


def test_the_card_says_what_torch_does():
    card = dict(conventions.CARD)
    assert "**True = padding**" in card["padding"] and "**True = blocked**" in card["boolean masks that you make"]
    assert float(card["layer norm"].split("`")[-2]) == torch.nn.LayerNorm(1).eps == 1e-5
    assert "pre-norm by default" in card["blocks"]


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


MOVED = """
import os, sys
import matplotlib.pyplot, torch  # once for all: what others wrote takes its time
for old, new in (pair.split("=") for pair in sys.argv[1:]):
    if os.fork() == 0:
        exec(f"import course_utils.{old} as old_module, course_utils.{new} as new_module")
        print(old, old_module is new_module, old_module.__spec__.name, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def moved():
    """What a fresh process says about each old name: whether it is the module of the new one, and that one's name."""
    pairs = [f"{old}={new}" for old, new in course_utils._Moved.places.items()]
    said = subprocess.run([sys.executable, "-c", MOVED, *pairs], text=True, capture_output=True)
    return {line.split()[0]: line.split()[1:] for line in said.stdout.splitlines()}, said.stderr


@pytest.mark.parametrize("old, new", course_utils._Moved.places.items())
def test_notebooks_that_were_handed_out_before_the_rooms_still_find_their_modules(old, new, moved):
    assert moved[0].get(old) == ["True", f"course_utils.{new}"], moved[1]


def modules(package):
    """Name of the file without its ending -> where it is, of a package's own code."""
    there = (path for path in (ROOT / package).rglob("*.py") if path.name != "__init__.py")
    return {path.stem: path for path in there if "suites" not in path.parts}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_package_imports_neither_autograder_nor_solutions(path):
    source = path.read_text()
    names = [alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    assert not {name.split(".")[0] for name in names} & {"autograder", "solutions"}


def test_one_name_is_one_thing():
    """A module's or class's name has one meaning in all of the code; rooms named like the homework they serve aside."""
    shared = set(modules("autograder")) & set(modules("course_utils"))
    assert shared <= {f"hw{number}" for number in range(1, 10)}
    places = {}
    for package in ("autograder", "course_utils"):
        for path in modules(package).values():
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
