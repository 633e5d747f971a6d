"""Every folder in learned/ answers a question of the course that asks whether something learns, without learning; every
folder in forged/ has something measured that is not so.

`notebook.py` stands below the reference's answer; of the question's cases those that are `lost` must not be passed
(`test_mended[*]`: none of them), and an exam is a real one, in boxes.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDERS = [path for kind in ("forged", "learned") for path in sorted((HERE / kind).glob("*/expected.toml"))]


@pytest.fixture(scope="module")
def boxes():
    from autograder.box.sandbox import BoxFactory, pick

    with BoxFactory(pick("auto")) as factory:
        yield factory


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.parent.name)
def test_what_is_not_so_gains_nothing(path, boxes):
    from autograder.judge.candidate import Candidate
    from autograder.judge.seat import Seat
    from autograder.judge.tools import tools
    from autograder.judge.verdicts import Verdict
    from autograder.submission import reference_submission

    expected = tomllib.loads(path.read_text())
    homework, exam, _ = tools(expected["homework"], question=expected["question"])
    answer = path.with_name("notebook.py").read_text()
    candidate = Candidate(reference_submission(homework, {expected["question"]: answer}), boxes)
    lost = [pattern.replace("[*]", "[[]*]") for pattern in expected["lost"]]
    cases = [case for case in exam.of_question(expected["question"])
             if any(fnmatchcase(case.item.name, pattern) for pattern in lost)]  # fmt: skip
    assert len(cases) >= len(lost)
    with Seat(lambda limits, _: candidate.open(limits)) as seat:
        seat.student()
        assert not candidate.notes, candidate.notes
        for case in cases:
            seat.use(homework.question(case.question).limits | case.limits)
            result = exam.sit(case, seat, seed=11)
            assert result.verdict is Verdict.FAILED, (case.id, result.verdict, result.message, result.detail)
            assert not result.detail, result.detail
