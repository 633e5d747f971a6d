"""What runs in Gradescope's container: the judge on one submission, and results.json as Gradescope wants it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.box.keeper import pick
from autograder.frontends.judged import judged
from autograder.frontends.messages import case_line
from autograder.grading.collect import best_in
from autograder.grading.late import LatePolicy
from autograder.grading.levels import TEACHING, level_by
from autograder.judge.results import DROP
from autograder.judge.verdicts import Infrastructure
from autograder.places import THE_COURSE

SECRET = ("autograder", THE_COURSE.solutions, THE_COURSE.suites, THE_COURSE.assignments, *THE_COURSE.kits)


@dataclass(frozen=True)
class Settings:
    """How one assignment is graded on Gradescope."""

    homework: str
    hidden: str = "after_published"  # when students see hidden cases: visible, after_due_date, after_published, hidden
    attempts: int = 0  # that are graded; 0: any number
    late: LatePolicy | None = field(default_factory=LatePolicy)
    feedback: str | None = None  # on hidden cases: full, teaching or verdicts; None: by Gradescope's dates
    decided: dict[str, str] = field(default_factory=dict)  # waived cases, in the file that holds them


def read_settings(path: Path) -> Settings:
    """The settings that the bundle was made with."""
    told = json.loads(path.read_text())
    late = told.pop("late")
    return Settings(**told, late=LatePolicy(**late) if late else None)


def main(folder: Path) -> int:
    """Grade `submission/` and write `results/results.json`; where that is missing, Gradescope tells staff."""
    settings = read_settings(folder / "source" / "settings.json")
    metadata = _json(folder / "submission_metadata.json")
    if settings.attempts and (used := _attempts(metadata)) >= settings.attempts:
        results = _not_graded(metadata, used, settings)
    else:
        hide(folder)
        path, assumed = best_in(folder / "submission", settings.homework)
        results = graded(path, metadata, settings) if path else _nothing(settings)
        results["output"] = "\n".join(filter(None, [*map(str, assumed), results["output"]]))
    target = folder / "results" / "results.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=1, allow_nan=False))
    return 0


def hide(folder: Path) -> None:
    """As root, close what a box's user must not read, should the kernel offer no better walls."""
    if os.geteuid() == 0:
        secret = [f"source/course/{name.replace('.', '/')}" for name in SECRET]
        for name in (*secret, "submission", "results"):
            if (folder / name).is_dir():
                os.chmod(folder / name, 0o700)
        for name in ("submission_metadata.json", "source/settings.json"):
            if (folder / name).is_file():
                os.chmod(folder / name, 0o600)


def box() -> str:
    """The strongest walls that this container allows; as root, a user without rights at the least."""
    if wanted := os.environ.get("AUTOGRADER_SANDBOX"):
        return pick(wanted)
    try:
        return pick("auto")
    except Infrastructure:
        if os.geteuid() != 0:
            raise
        return pick("process")


def graded(path: Path, metadata: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The judge's results, with lateness taken off."""
    walls = box()
    feedback = judged(settings.homework, path, walls, settings.feedback or level(metadata), settings.decided)
    total, late = feedback["total"], seconds_late(metadata)
    penalty = settings.late.penalty(total, late) if settings.late else 0.0
    notes = list(feedback["notes"])
    if penalty:
        notes.insert(0, f"Late by {late / 3600:.1f} hours: {penalty:g} of {total:g} points are taken off.")
    return {
        "score": round(total - penalty, 2),
        "output": "\n".join(notes),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [test for question in feedback["questions"] for test in _tests(question, settings)],
        "extra_data": {
            "status": feedback["status"],
            "box": walls,
            "penalty": penalty,
            "questions": {q["question"]: q["judged"] for q in feedback["questions"] if q["text"] is None},
        },
    }


def _tests(question: dict[str, Any], settings: Settings) -> list[dict[str, Any]]:
    """One entry per case, with its share of the points; a free-text question is only mentioned."""
    name = question["question"]
    if question["text"] is not None:
        answer = question["text"] or "(not answered)"
        return [{"name": f"{name}: graded by a person", "output": answer, "visibility": "visible"}]
    if not question["cases"]:
        return [
            {"name": name, "score": 0, "max_score": question["points"], "status": "failed", "visibility": "visible"}
        ]
    asked = [case for case in question["cases"] if not _dropped(case)]
    weight = question["points"] / sum(case["weight"] for case in asked)
    tests = []
    for case in asked:
        passed = case["verdict"] == "passed" or case["waived"] is not None
        most = round(weight * case["weight"], 4)
        tests.append(
            {
                "name": f"{name}: {case['sentence']}",
                "score": most if passed else round(most * case.get("credit", 0.0), 4),  # a part: with others
                "max_score": most,
                "status": "passed" if passed else "failed",
                "output": "" if passed else case_line(case),
                "visibility": "visible" if case["public"] else settings.hidden,
                "tags": [name, *([question["mistake"]] if question["mistake"] and not passed else [])],
            }
        )
    return [*tests, *_once(question)]


def _once(question: dict[str, Any]) -> list[dict[str, Any]]:
    """What is given back where one mistake explains all failed cases, so that the entries add up to the score."""
    back = round(question["judged"] - question["by_cases"], 4)
    if back <= 0:
        return []
    name = f"{question['question']}: one mistake costs once"
    told = {"output": question["once"], "status": "passed", "visibility": "visible"}
    return [{"name": name, "score": back, "max_score": 0, **told}]


def _dropped(case: dict[str, Any]) -> bool:
    """Whether people have left a case out that this submission failed."""
    return case["waived"] is not None and case["waived"]["how"] == DROP and case["verdict"] != "passed"


def _nothing(settings: Settings) -> dict[str, Any]:
    return {"score": 0, "output": f"There is no notebook in this submission. Hand in {settings.homework}.ipynb."}


def _not_graded(metadata: dict[str, Any], used: int, settings: Settings) -> dict[str, Any]:
    """Beyond the limit the score of the last graded attempt stays."""
    last = max(_counted(metadata), key=lambda attempt: str(attempt.get("submission_time")), default={})
    score = float(last.get("score") or 0)
    return {"score": score, "output": f"You have used {used} of {settings.attempts} attempts. Your last score stays."}


def _counted(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    return [attempt for attempt in metadata.get("previous_submissions", []) if not attempt.get("autograder_error")]


def _attempts(metadata: dict[str, Any]) -> int:
    return len(_counted(metadata))


def level(metadata: dict[str, Any]) -> str:
    """What feedback tells of hidden cases: no value of theirs as long as anybody may hand in by Gradescope's dates."""
    dates = [*(user.get("assignment") or {} for user in metadata.get("users") or []), metadata.get("assignment") or {}]
    ends = [date[key] for date in dates for key in ("due_date", "late_due_date") if date.get(key)]
    created = metadata.get("created_at")
    if not ends or not created:
        return TEACHING
    return level_by(None, max(ends, key=datetime.fromisoformat), datetime.fromisoformat(created))


def seconds_late(metadata: dict[str, Any]) -> float:
    """By how much the submission missed its due date, by Gradescope's clock; the student's own date counts first."""
    users = metadata.get("users") or [{}]
    due = (users[0].get("assignment") or {}).get("due_date") or (metadata.get("assignment") or {}).get("due_date")
    created = metadata.get("created_at")
    if not due or not created:
        return 0.0
    return (datetime.fromisoformat(created) - datetime.fromisoformat(due)).total_seconds()


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.is_file() else {}


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except Infrastructure as error:
        sys.exit(str(error))
