"""The exam: a homework's suites, collected once by pytest, held against one student after another.

Test functions ask for the student's objects by argument name; those names are fixtures here, and resolve to whatever
student sits the exam at the moment. pytest itself does fixtures, parametrisation and markers; what is ours is the loop.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from _pytest.config import Config, _prepareconfig
from _pytest.main import Session

from autograder.errors import BadInput, BadSource, Problem
from autograder.homework import Homework
from autograder.judge import measures  # noqa: F401  the judge reads instruments in its own way
from autograder.judge.faults import printable
from autograder.judge.proxies import Student
from autograder.judge.results import CaseResult
from autograder.judge.seat import Seat
from autograder.judge.verdicts import Infrastructure, StudentFault, Verdict
from autograder.judge.watch import watch
from autograder.places import THE_COURSE, shown
from course_utils.checking.compare import NotAnswered, Wrong
from course_utils.explain.error_words import in_words

PYTEST_ARGUMENTS = ["--import-mode=importlib", "--noconftest", "--assert=plain", "--strict-markers", "--capture=no"]
PYTEST_ARGUMENTS += ["-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler", "-p", "no:logging"]
MAX_MESSAGE = 2_000
MEASURES = "measures.py"  # beside the suites: the course's own instruments, as the judge reads them
LATE = ("torch.fx.experimental.symbolic_shapes", "torch._dynamo")  # by gradients, and by counts of work
EXPECTED = re.compile(r"\d[.,]?\d")  # a number that may be what a hidden case expects
STAFF_FIXTURES = ("rng", "reference", "student", "anew", "in_box", "watch")


@dataclass(frozen=True)
class Case:
    """One test case of a suite; its sentence is what a student reads."""

    id: str  # "q1_7/test_padding_never_leaks[2]"
    question: str
    sentence: str
    public: bool
    weight: float
    integration: bool  # tries the student's own earlier parts together: never run with the reference's
    limits: dict[str, float]  # of its box, where they are not the question's
    needs: frozenset[str]  # the student's objects that it asks for
    item: pytest.Function


@dataclass(frozen=True)
class Ruling:
    """A verdict, the sentence for the student, the mistake that a test names, a word for staff, and what is ours alone.

    `taught` is as much of the message as holds no value: the same words, whoever is told them.
    """

    verdict: Verdict
    message: str = ""
    mistake: str | None = None
    detail: str = ""
    taught: str = ""


class Exam:
    """An open pytest session over one homework; `sit` runs cases against a student."""

    def __init__(self, homework: Homework, reference: Callable[[], Any], question: str | None = None) -> None:
        self.homework = homework
        _load_measures(homework.suite.parent / MEASURES)
        self._plugin = _Plugin(homework, reference)
        self._files = _suite_files(homework, question)
        self._config = _open_pytest(homework, self._plugin, self._files)
        self.cases = [self._case(item) for item in self._collect()]
        _refuse_unknown_fixtures(self.cases, homework)
        if twice := [name for name, count in Counter(case.id for case in self.cases).items() if count > 1]:
            raise BadInput(f"Two cases have one name: {', '.join(twice)}. Rename the public or the hidden one.")

    def close(self) -> None:
        """Close the pytest session."""
        self._session._setupstate.teardown_exact(None)
        self._config._ensure_unconfigure()

    def __enter__(self) -> Exam:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm_up(self) -> None:
        """Run the reference's cells, and import what torch imports late: processes forked from this one need not."""
        _ = self._plugin.reference_names
        if THE_COURSE.rng == "torch":
            for name in LATE:
                importlib.import_module(name)

    @contextmanager
    def reference_seen_by(self, view: Callable[[Any], Any]) -> Iterator[None]:
        """While this is open, tests get `view(reference)` for the reference."""
        reference = self._plugin.reference_names
        self._plugin.reference_names = view(reference)
        try:
            yield
        finally:
            self._plugin.reference_names = reference

    def of_question(self, question: str) -> list[Case]:
        """The cases of one question, public ones first."""
        return [case for case in self.cases if case.question == question]

    def sit(self, case: Case, seat: Seat, seed: int = 0) -> CaseResult:
        """Run one case against the student on the seat."""
        plugin = self._plugin
        plugin.seat, plugin.seed = seat, case_seed(case.id, seed)
        start = time.perf_counter()
        raised = _run(case.item)
        return self.record(case, seed, _judge(raised, self.homework.suite), time.perf_counter() - start)

    def record(self, case: Case, seed: int, ruling: Ruling, seconds: float = 0.0) -> CaseResult:
        """The record of a case and what was ruled on it."""
        return CaseResult(
            case=case.id,
            question=case.question,
            sentence=case.sentence,
            public=case.public,
            weight=case.weight,
            verdict=ruling.verdict,
            message=ruling.message,
            mistake=ruling.mistake,
            seed=seed,
            seconds=seconds,
            detail=ruling.detail,
            taught=ruling.taught,
        )

    def _collect(self) -> Iterator[pytest.Function]:
        self._session = Session.from_config(self._config)
        self._config.hook.pytest_sessionstart(session=self._session)
        items = self._session.perform_collect() if self._files else []  # told no file, pytest takes all it finds
        if self._plugin.broken:
            raise BadInput("A suite cannot be loaded.\n" + "\n".join(self._plugin.broken))
        order = {question.id: number for number, question in enumerate(self.homework.questions)}
        functions = [item for item in items if isinstance(item, pytest.Function)]
        return iter(sorted(functions, key=lambda item: (order[_question(item)], _alone(item), not _public(item))))

    def _case(self, item: pytest.Function) -> Case:
        question = _question(item)
        text = (item.function.__doc__ or "").strip().partition("\n")[0]
        if not text:
            raise BadInput(f"{item.location[0]}: {item.name} has no docstring. Write the sentence that students read.")
        mark = item.get_closest_marker("weight")
        return Case(
            id=f"{question}/{item.name}",
            question=question,
            sentence=text,
            public=_public(item),
            weight=mark.args[0] if mark else 1.0,
            integration=item.get_closest_marker("integration") is not None,
            limits={"autograd": 0} if _alone(item) else {},
            needs=frozenset(item.fixturenames) & frozenset(self.homework.names),
            item=item,
        )


def _load_measures(path: Path) -> None:
    """Have a course's own instruments read by the judge, where it has any."""
    if path.is_file():
        spec = importlib.util.spec_from_file_location("autograder_measures", path)
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def case_seed(case: str, seed: int) -> int:
    """The seed of one case's random inputs: a pure function of the case and the run's seed."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{case}".encode()).digest()[:6], "big")


def _question(item: pytest.Item) -> str:
    return item.path.stem.removeprefix("test_")


def _public(item: pytest.Item) -> bool:
    return item.path.parent.name == "public"


def _alone(item: pytest.Item) -> bool:
    """Whether the case wants a box of its own kind; such cases come last."""
    return item.get_closest_marker("without_autograd") is not None


def _run(item: pytest.Function) -> BaseException | None:
    """What a case raises, run as pytest does but without its reports; a file's set-up stays until another's turn."""
    state, file = item.session._setupstate, cast(pytest.Item, item.parent)
    try:
        try:
            state.teardown_exact(file)
            state.setup(item)
            item.runtest()
        finally:
            state.teardown_exact(file)
            item._initrequest()  # lets go of the student's objects
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise
    except BaseException as error:
        return error
    return None


def _judge(raised: BaseException | None, suite: Path) -> Ruling:
    """What an exception out of a test means.

    One that no test means to raise comes from what the student gave back: the same case passes with the reference.
    Its detail, for staff, ends with the line of the suite where it was raised.
    """
    match raised:
        case None:
            return Ruling(Verdict.PASSED)
        case NotAnswered():
            return Ruling(Verdict.NOT_ANSWERED, "not answered yet", detail=raised.message)
        case Wrong():
            taught = raised.relation or (raised.message if raised.message in fixed_sentences(suite) else "")
            return Ruling(Verdict.FAILED, _short(str(raised)), raised.mistake, taught=taught)
        case StudentFault():
            return Ruling(raised.verdict, str(raised), taught=getattr(raised, "words", ""))
        case Infrastructure():
            return Ruling(Verdict.INFRASTRUCTURE, str(raised))
        case MemoryError() | RuntimeError() if _out_of_memory(raised):
            return Ruling(Verdict.INFRASTRUCTURE, "the judge ran out of memory over what your code gave back")
        case _:
            detail = "".join(traceback.format_exception(raised)[-3:]) + _stumbled(raised, suite)
            words = in_words(str(raised))
            told = ". ".join(filter(None, ["the check could not work with what your code gave back", words]))
            return Ruling(Verdict.FAILED, told, detail=detail, taught=words)


@cache
def fixed_sentences(suite: Path) -> frozenset[str]:
    """The texts that stand in a suite's hidden files as they are told, and name no number that a case could expect."""
    files = sorted(suite.glob("hidden/test_*.py"))
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in parts]
    return frozenset(text for text in texts if isinstance(text, str) and not EXPECTED.search(text))


def _out_of_memory(raised: BaseException) -> bool:
    """Whether it tells that this process has no more memory; torch has no class of its own for that."""
    return isinstance(raised, MemoryError) or "DefaultCPUAllocator" in str(raised)


def _stumbled(raised: BaseException, suite: Path) -> str:
    """The innermost line of the suite's files that an exception has passed, and the exception."""
    frames = traceback.extract_tb(raised.__traceback__)
    place = next((f for f in reversed(frames) if Path(f.filename).is_relative_to(suite)), None)
    what = traceback.format_exception_only(raised)[-1].strip()
    return f"{shown(Path(place.filename))}:{place.lineno}: {what}" if place else what


def _refuse_unknown_fixtures(cases: list[Case], homework: Homework) -> None:
    """Raise `BadSource` for arguments of tests that nothing fills in: a mistyped name is no student's fault."""
    problems = {}
    for case in cases:
        asked = case.item._fixtureinfo
        params = case.item.callspec.params if hasattr(case.item, "callspec") else {}
        for name in asked.argnames:
            if name not in asked.name2fixturedefs and name not in params and name != "request":
                path, line = Path(case.item.path), _line(case.item.function)
                known = ", ".join([*homework.names, *STAFF_FIXTURES])
                what = f"`{case.item.originalname}` asks for `{name}`, which nothing gives."
                problems[path, line, name] = Problem(path, line, what, f"Correct the name. Known: {known}.")
    if problems:
        raise BadSource(problems.values())


def _line(function: Callable[..., Any]) -> int:
    """Where a function's `def` stands, below its decorators."""
    lines, first = inspect.getsourcelines(function)
    return first + next((i for i, text in enumerate(lines) if text.lstrip().startswith("def ")), 0)


def _short(message: str) -> str:
    """A message that may quote the student's code: printable, and no longer than a student reads."""
    message = printable(message)
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "..."


class _Plugin:
    """Gives the tests their fixtures."""

    def __init__(self, homework: Homework, reference: Callable[[], Any]) -> None:
        self._reference = reference
        self.seat: Seat | None = None
        self.seed = 0
        self.broken: list[str] = []
        names = [name for question in homework.questions for name in question.names]
        self.student_names = type("StudentNames", (), {name: _student_fixture(name) for name in names})()

    @pytest.fixture
    def rng(self) -> torch.Generator | np.random.Generator:
        """Random numbers of this case and run, from the library that the course works in."""
        if THE_COURSE.rng == "numpy":
            return np.random.default_rng(self.seed)
        return torch.Generator().manual_seed(self.seed)

    @pytest.fixture
    def reference(self) -> SimpleNamespace:
        """The reference's own objects, by name."""
        return self.reference_names

    @pytest.fixture
    def student(self) -> Student:
        """The student at hand, random numbers seeded and time limit set for this case."""
        return self._seated()

    @pytest.fixture
    def anew(self, student: Student) -> Callable[[], Student]:
        """`anew()` ends the box and gives the same notebook in another one, which remembers nothing."""

        def sit_again() -> Student:
            assert self.seat is not None
            self.seat.renew()
            return self._seated()

        return sit_again

    @pytest.fixture
    def in_box(self, student: Student) -> Any:
        """Run a function of course_utils or autograder.in_box where the student's code is."""
        return student.run

    @pytest.fixture
    def watch(self, student: Student) -> Any:
        """`with watch() as session`: calls in which the student's code has handles in the place of numbers."""
        return partial(watch, student, seed=case_seed("vault", self.seed) % 2**32)

    def _seated(self) -> Student:
        assert self.seat is not None
        student = self.seat.student()
        student.wall = self.seat.limits.wall
        student.seed(case_seed("box", self.seed))  # never the seed from which inputs are drawn
        return student

    @cached_property
    def reference_names(self) -> Any:
        """Made when first asked, then kept."""
        return self._reference()

    def pytest_configure(self, config: Config) -> None:
        config.addinivalue_line("markers", "weight(number): the weight of a case in its question")
        config.addinivalue_line("markers", "without_autograd: in a box that has none")
        config.addinivalue_line(
            "markers", "integration: with the student's own earlier parts, and never the reference's"
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken.append(str(report.longrepr))


def _student_fixture(name: str) -> Any:
    @pytest.fixture(name=name)
    def student_object(self: object, student: Student) -> Any:
        return student[name]

    return student_object


def _suite_files(homework: Homework, question: str | None) -> list[str]:
    """What pytest is to collect: the folders of a homework, or the files of one question, as far as there are any."""
    paths = [homework.suite / folder for folder in ("public", "hidden")]
    if question is not None:
        paths = [homework.public_file(question), homework.hidden_file(question)]
    return [str(path) for path in paths if path.exists()]


def _open_pytest(homework: Homework, plugin: _Plugin, suites: list[str]) -> Config:
    """A configured pytest that reads no one else's settings: no conftest, no environment, no third-party plugins."""
    root = homework.suite if homework.suite.is_dir() else homework.source.parent
    kept = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    off = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        config = _prepareconfig(
            [*suites, *PYTEST_ARGUMENTS, "-c", os.devnull, f"--rootdir={root}"],
            [plugin, plugin.student_names],
        )
        config._do_configure()
    finally:
        os.environ.update({name: value for name, value in kept.items() if value is not None})
        if off is None:
            del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    return config
