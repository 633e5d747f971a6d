"""`waivers.json`: cases that turned out bad, and what people decided about them. Nothing is forgotten, only undone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from autograder.errors import BadInput
from autograder.judge.results import DROP, CaseResult, Waiver

WAIVERS = "waivers.json"


@dataclass(frozen=True)
class Waived:
    """One decision: about a case, a test with all its variations, or a question."""

    case: str  # q1_7/test_heads[small], q1_7/test_heads or q1_7
    how: str
    why: str
    at: str
    undone: str = ""  # when, where it is


def read_waivers(out: Path) -> tuple[Waived, ...]:
    """All decisions so far, in their order."""
    path = out / WAIVERS
    if not path.is_file():
        return ()
    try:
        return tuple(Waived(**told) for told in json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise BadInput(f"{path} cannot be read: it is written by `autograder waive` alone.") from None


def waivers_text(waived: Iterable[Waived]) -> bytes:
    """The file's content."""
    return (json.dumps([asdict(one) for one in waived], indent=1) + "\n").encode()


def added(waived: tuple[Waived, ...], new: Waived) -> tuple[Waived, ...]:
    """The decisions with a new one in the place of an earlier one about the same."""
    return (*undone(waived, new.case, new.at), new)


def undone(waived: tuple[Waived, ...], case: str, at: str) -> tuple[Waived, ...]:
    """The decisions without force about this case from now on."""
    return tuple(replace(one, undone=at) if one.case == case and not one.undone else one for one in waived)


def in_force(waived: Iterable[Waived]) -> dict[str, Waiver]:
    """What counts now, by case, test or question."""
    return {one.case: Waiver(one.how, one.why) for one in waived if not one.undone}


def of_cases(waivers: Mapping[str, Waiver], cases: Iterable[CaseResult]) -> dict[str, Waiver]:
    """The waivers of these cases; what is said of one variation goes before its test, and that before the question."""
    found = {}
    for case in cases if waivers else ():
        for name in (case.case, test_of(case.case), case.question):
            if name in waivers:
                found[case.case] = waivers[name]
                break
    return found


def check(name: str, how: str, waivers: Mapping[str, Waiver], cases: Iterable[CaseResult]) -> None:
    """Raises `BadInput` where nothing is called so, or where nothing would be left of a question."""
    known = {case.case: case for case in cases}
    meant = [case for case in known.values() if name in (case.case, test_of(case.case), case.question)]
    if not meant:
        tests = sorted({test_of(case) for case in known})
        near = [test for test in tests if test.partition("/")[0] == name.partition("/")[0]] or tests
        raise BadInput(f"There is no case {name}. Known: {', '.join(near[:20])}{' ...' * (len(near) > 20)}")
    if how == DROP:
        question = meant[0].question
        asked = [case for case in known.values() if case.question == question]
        dropped = of_cases({**waivers, name: Waiver(DROP, "")}, asked)
        if all(case.case in dropped and dropped[case.case].how == DROP for case in asked):
            raise BadInput(
                f"Nothing of {question} would be left to be graded by. Give --how full, or change its points."
            )


def test_of(case: str) -> str:
    """The test that a case is a variation of."""
    return case.partition("[")[0]
