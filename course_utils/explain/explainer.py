"""Turns what a public check raises into a sentence that a student can act on, and names known mistakes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np

from course_utils.checking.wrong import NotAnswered, Wrong
from course_utils.explain.error_words import in_words, shapes_on
from course_utils.explain.fingerprints import Fingerprint, run_probe
from course_utils.explain.naming import diagnose
from course_utils.explain.outcomes import CheckOutcome, Status, waiting
from course_utils.explain.sealed_prints import FILE, Catalogue, Mistake, Unreadable, read_catalogue
from course_utils.explain.stubs import is_stub, question_of, stubbed

SEED = 2024  # public checks draw the same inputs every time
LONGEST = 600  # characters of a student's own error message


class _Undefined(NotAnswered):
    """A check asks for something that the notebook does not define."""

    def __init__(self, question: str, name: str) -> None:
        super().__init__(f"{question}: `{name}` is not defined yet")
        self.missing = name


class Explainer:
    """A decorator for the public checks of one question, as the generated test files use it.

    `namespace` is the test file's globals. The known mistakes, and the probes that tell them apart, lie in a file
    beside it, which is opened when a check has failed. `rng` is whose generator a check gets that asks for one. One
    instance serves one run of the file: it runs the probes at most once.
    """

    def __init__(
        self,
        question: str,
        namespace: Mapping[str, Any],
        rng: Literal["torch", "numpy"] = "torch",
        hidden_topics: Sequence[str] = (),
    ) -> None:
        self.question = question
        self.namespace = namespace
        self.rng = rng
        self.hidden_topics = list(hidden_topics)
        self.remark = ""
        self._file = Path(FILE)
        self._taken: dict[str, Fingerprint] | None = None

    def case(self, test: Callable[..., None]) -> Any:
        """The check as a test case of otter's, under the first line of its docstring."""
        from otter.test_files import test_case

        return test_case(name=_sentence(test))(self(test))

    def __call__(self, test: Callable[..., None]) -> Callable[..., None]:
        """Wrap a check; afterwards the wrapper's `outcome` tells what it found."""
        self._file = Path(test.__code__.co_filename).resolve().with_name(FILE)  # otter gives its files no `__file__`

        @functools.wraps(test)
        def explained(env: Mapping[str, Any], **_: Any) -> None:
            error: Exception | None = None
            try:
                for arguments in self._cases(test, env):
                    with _fixed_randomness(self.rng):
                        test(**arguments)
            except Exception as raised:
                error = raised
            explained.outcome = self._outcome(test, error, env)  # type: ignore[attr-defined]
            _raise(explained.outcome, self.question)  # type: ignore[attr-defined]

        # otter passes arguments by name, and the whole notebook to one named `env`
        names = ["env", *(name for name in inspect.signature(test).parameters if name != "env")]
        explained.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
        )
        explained.explainer = self  # type: ignore[attr-defined]
        return explained

    def _cases(self, test: Callable[..., None], env: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The arguments of each case of a check: a generator for `rng`, parameters, the student's objects."""
        for parameters in _parametrised(test):
            arguments = dict(parameters)
            for name in inspect.signature(test).parameters:
                if name == "rng":
                    arguments[name] = _generator(self.rng)
                elif name not in arguments:
                    if env.get(name) is None:
                        raise _Undefined(self.question, name)
                    arguments[name] = env[name]
            yield arguments

    def _outcome(self, test: Callable[..., None], error: Exception | None, env: Mapping[str, Any]) -> CheckOutcome:
        sentence = _sentence(test)
        if error is None:
            return CheckOutcome("passed", sentence)
        if isinstance(error, NotAnswered) or is_stub(error):
            return self._unanswered(sentence, error, env)
        known = {mistake.label: mistake for mistake in self.mistakes}
        label = getattr(error, "mistake", None)
        mistake = known.get(label or "") or self._diagnose(test.__name__, env)
        status, message = _explain(error, env)
        if mistake is None:
            needs = _undefined(error, env)
            return CheckOutcome(status, sentence, message, label, remark=self.remark, needs=needs)
        return CheckOutcome(status, sentence, message, mistake.label, mistake.hint)

    @property
    def mistakes(self) -> Sequence[Mistake]:
        """The known mistakes of the question."""
        return self._catalogue.mistakes

    @cached_property
    def _catalogue(self) -> Catalogue:
        """What is known of the question's mistakes; nothing, and a remark, where the file cannot be read."""
        try:
            return read_catalogue(self._file, self.question)
        except Unreadable as error:
            where = f"{self._file.parent.name}/{self._file.name}"
            self.remark = (
                f"Known mistakes cannot be named, because the file {where} {error}. Remove what is left of it; "
                "`course start` with the name of the homework brings it back."
            )
            return Catalogue("", [])

    def _unanswered(self, sentence: str, error: Exception, env: Mapping[str, Any]) -> CheckOutcome:
        needed = question_of(error)
        if needed and needed != self.question:
            own = self.question in stubbed(env.values())  # then it is that which is missing first
            return CheckOutcome("not answered", sentence, "not answered yet") if own else waiting(sentence, needed)
        detail = str(error).removeprefix(f"{self.question}:").strip()
        message = f"not answered yet: {detail}" if detail else "not answered yet"
        missing = error.missing if isinstance(error, _Undefined) else ""
        return CheckOutcome("not answered", sentence, message, needs=missing)

    def _diagnose(self, check: str, env: Mapping[str, Any]) -> Mistake | None:
        """The mistake that explains why this check fails: one that fails it too."""
        found = diagnose(self._prints(env), self.mistakes, failed=[check]) if self.mistakes else []
        return found[0].mistake if found else None

    def _prints(self, env: Mapping[str, Any]) -> dict[str, Fingerprint]:
        """The student's prints on all probes, taken once; their printing and warnings were seen already."""
        if self._taken is not None:
            return self._taken
        prints = self._taken = {}
        names = dict(self.namespace)
        exec(compile(self._catalogue.probes, f"<probes of {self.question}>", "exec", dont_inherit=True), names)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            for name, probe in names.items():
                if name.startswith("probe_") and callable(probe):
                    with contextlib.suppress(NotAnswered):
                        prints[name] = run_probe(probe, env.get)
        return prints


def _generator(rng: str) -> Any:
    """The source of random inputs that a check asks for, the same every time."""
    if rng == "numpy":
        return np.random.default_rng(SEED)
    import torch

    return torch.Generator().manual_seed(SEED)


@contextlib.contextmanager
def _fixed_randomness(rng: str) -> Iterator[None]:
    """Run one case from a fixed random state, and leave the notebook's as it was."""
    if rng == "numpy":
        state = np.random.get_state()
        np.random.seed(SEED)
        try:
            yield
        finally:
            np.random.set_state(state)
        return
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        yield


def _raise(outcome: CheckOutcome, question: str) -> None:
    """Raise what otter shows to those who use it without our display: the message, then the hint."""
    if outcome.status == "not answered":
        raise NotAnswered(f"{question}: {outcome.message}")
    if not outcome.passed:
        raise Wrong("\n".join(filter(None, [outcome.message, outcome.hint, outcome.remark])), outcome.mistake)


def _explain(error: Exception, env: Mapping[str, Any]) -> tuple[Status, str]:
    """Status and message of a failed check: its own words, or the student's error and where it happened."""
    place = _student_frame(error, env)
    if isinstance(error, AssertionError) and place is None:
        return "failed", str(error) or "the check does not hold"
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    if place is None:
        told = [f"the check could not work with what your code returned: {text}", in_words(str(error))]
        return "error", ". ".join(filter(None, told))
    frame, line = place
    code = linecache.getline(frame.f_code.co_filename, line).strip()
    words, shapes = in_words(str(error), code), shapes_on(code, frame.f_locals)
    told = [f"your code raised {text} (line {line} of your cell{f': {code}' if code else ''})"]
    told += [words] if words else []
    told += [f"On that line {shapes}"] if words and shapes else []
    return "error", ". ".join(told)


def _undefined(error: Exception, env: Mapping[str, Any]) -> str:
    """The global name that the student's code did not find, if that is the error."""
    missing = isinstance(error, NameError) and not isinstance(error, UnboundLocalError) and error.name
    return missing if missing and missing not in env else ""


def _student_frame(error: Exception, env: Mapping[str, Any]) -> tuple[FrameType, int] | None:
    """The innermost frame of the traceback that runs the notebook's own code, and its line."""
    found = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_globals is env]
    return found[-1] if found else None


def _parametrised(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """The cases of `pytest.mark.parametrize`, or one empty case."""
    axes = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            axes.append([dict(zip(names, _row(value, len(names)), strict=True)) for value in values])
    for case in itertools.product(*axes):
        yield {name: value for part in case for name, value in part.items()}


def _row(value: Any, width: int) -> Sequence[Any]:
    if type(value).__name__ == "ParameterSet":  # pytest.param(...)
        return list(value.values)
    return list(value) if width > 1 else [value]


def _sentence(test: Callable[..., None]) -> str:
    """What a check says of itself."""
    return (inspect.getdoc(test) or test.__name__.replace("_", " ")).splitlines()[0]
