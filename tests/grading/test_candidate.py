"""Cells that cannot be run as a whole: what is tried instead, what is told, and when there is no time left."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from autograder.box.channel import LoopbackChannel
from autograder.box.limits import Limits
from autograder.judge.candidate import Candidate
from autograder.judge.seat import Seat, Sitting
from autograder.judge.verdicts import StudentTimeout
from autograder.submission import RunCell, Submission

LIMITS = Limits()


class Sleepy(LoopbackChannel):
    """A box that is lost at a cell with `demo()` in it; cells with `rest()` take a tenth of a second."""

    def request(self, message: dict[str, Any], *, wall: float | None = None) -> dict[str, Any]:
        sources = "".join(cell["source"] for cell in message.get("cells", ()))
        needed = 0.1 * sources.count("rest()")
        time.sleep(needed if wall is None else max(min(needed, wall), 0))
        if "demo()" in sources or (wall is not None and needed > wall):
            raise StudentTimeout("Your code did not answer.")
        return super().request(message, wall=wall)


class Boxes:
    """As much of a BoxFactory as a candidate needs."""

    def __init__(self) -> None:
        self.opened = 0

    def open(self, limits: Limits) -> Any:
        self.opened += 1
        channel = Sleepy()
        return SimpleNamespace(channel=channel, close=channel.close, waited=lambda: 0.0)


def loaded(*cells: RunCell, limits: Limits = LIMITS) -> tuple[Candidate, Any, int]:
    """The candidate, the student in a box with the cells, and how many boxes it took."""
    boxes = Boxes()
    candidate = Candidate(Submission(cells, digest=""), boxes)  # type: ignore[arg-type]
    return candidate, candidate.open(limits).student, boxes.opened


def notes_of(candidate: Candidate) -> list[str]:
    return [*map(str, candidate.assumptions), *candidate.notes]


def test_of_an_answer_cell_that_is_lost_the_definitions_count() -> None:
    source = "SCALE = 2\ndef twice(x):\n    return SCALE * x\nprint(twice(1)); demo()\n"
    candidate, student, _ = loaded(RunCell("q9_1", source, ("twice",)), RunCell("cell 2", "after = twice(4)"))
    assert student["twice"](3) == 6
    assert student["after"] == 8
    (note,) = notes_of(candidate)
    assert note.startswith("q9_1: this cell was left out but for its imports, functions")
    assert candidate.open(LIMITS).student["twice"](3) == 6, "also in the next box"
    assert len(notes_of(candidate)) == 1


def test_a_cell_that_is_lost_again_or_is_no_answer_is_left_out() -> None:
    again = RunCell("q9_1", "import math\nmath.sqrt(4)\ntwice = demo()", ("twice",))
    candidate, student, _ = loaded(again, RunCell("cell 2", "def helper(): pass\ndemo()"), RunCell("cell 3", "x = 1"))
    assert student["x"] == 1
    assert student.kinds(["twice", "helper"]) == {}
    assert [note.partition(":")[0] for note in notes_of(candidate)] == ["q9_1", "q9_1", "cell 2"]
    assert "was left out: " in notes_of(candidate)[-1]


def test_definitions_below_an_error_count_and_what_was_before_it_stays() -> None:
    source = "start = float(2)\ndef twice(x):\n    return start * x\ntwice(None)\ndef half(x):\n    return x / start"
    candidate, student, boxes = loaded(RunCell("q9_1", source, ("twice", "half")), RunCell("cell 2", "after = half(4)"))
    assert student["twice"](3) == student["half"](12) == 6
    assert student["after"] == 2
    assert boxes == 2
    assert "before it had defined `half`" in notes_of(candidate)[0]
    assert "TypeError" in notes_of(candidate)[1]
    assert len(notes_of(candidate)) == 2


def test_an_error_below_all_answers_takes_no_second_box() -> None:
    candidate, student, boxes = loaded(RunCell("q9_1", "def twice(x):\n    return 2 * x\ntwice(None)", ("twice",)))
    assert student["twice"](3) == 6
    assert boxes == 1
    assert len(notes_of(candidate)) == 1


def test_cells_are_run_until_the_time_for_one_submission_is_used_up() -> None:
    cells = [RunCell(f"cell {number}", f"x{number} = 1  # rest()") for number in range(1, 40)]
    limits = replace(LIMITS, wall_cell=0.2, wall_submission=0.6)
    start = time.monotonic()
    candidate, student, _ = loaded(*cells, limits=limits)
    assert time.monotonic() - start < 1.5
    (note,) = notes_of(candidate)
    assert note.endswith("used up the time for one submission.")
    assert not note.startswith("cell 1:")
    student.ping()


def test_a_seat_tells_what_is_left_of_the_time() -> None:
    told: list[float] = []

    def open_sitting(limits: Limits, _: object) -> Any:
        told.append(limits.wall_submission)
        return Sitting(cast(Any, None), lambda: None)

    seat = Seat(open_sitting, replace(LIMITS, wall_submission=5.0))
    seat.student()
    time.sleep(0.01)
    seat.renew()
    seat.student()
    assert 5 > told[0] > told[1] > 4


def test_a_package_that_is_not_there_costs_neither_the_answer_below_its_import_nor_a_helper() -> None:
    helper = RunCell("cell 1", "import no_such_package\ndef helper(x):\n    return 2 * x")
    asked = RunCell("q9_1", "import no_such_package as nsp\ndef twice(x):\n    return helper(x)", ("twice",))
    candidate, student, _ = loaded(helper, asked)
    assert student["twice"](3) == 6
    told = [note for note in notes_of(candidate) if "stopped at an error before it had defined" in note]
    assert [note.partition(":")[0] for note in told] == ["cell 1", "q9_1"]
