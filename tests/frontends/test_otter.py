"""otter's own `otter run` on our autograder.zip: it gets the judge's scores and runs nothing of the student's."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

HOMEWORK = "hw9_tiny"


def zip_in(course: Path) -> Path:
    return course / "out" / HOMEWORK / "autograder.zip"


class Gadget:
    """Writes a file wherever it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_hostile_submission_gets_its_score_and_nothing_of_it_runs(built: Path, course) -> None:
    marker, submission, archive = course.path / "marker", course.path / "ben.zip", zip_in(built)
    poison = f"open({str(marker)!r}, 'w').write('ran')\n"
    with zipfile.ZipFile(submission, "w") as file:
        file.write(course.path / "class" / "ben.ipynb", "ben.ipynb")
        file.writestr(".OTTER_LOG", pickle.dumps(Gadget(marker)))
        for name in ("torch.py", "otter/__init__.py", "tests/q9_1.py", "pickle.py", "sitecustomize.py"):
            file.writestr(name, poison)
    course.run("otter", "run", str(submission), "-a", str(archive), "-o", str(course.path), "--no-logo")
    results = json.loads((course.path / "results.json").read_text())
    scores = {test["name"]: test["score"] for test in results["tests"] if "score" in test}
    assert scores == {"q9_1": 60, "q9_2": 0} and not marker.exists()
    by_name = {test["name"]: test for test in results["tests"]}
    assert by_name["q9_2"]["visibility"] == "hidden" and "half works for any number" in by_name["q9_2"]["output"]
    public = by_name["Public Tests"]
    assert public["visibility"] == "visible" and "half(4) is 2.0" in public["output"]
    assert "works for any number" not in public["output"]


def test_the_zip_holds_no_test_of_ours(built: Path) -> None:
    with zipfile.ZipFile(zip_in(built)) as file:
        names = set(file.namelist())
        text = "\n".join(file.read(name).decode() for name in names)
    assert {"tests/q9_1.py", "tests/q9_2.py", "otter_config.json", "run_autograder", "setup.sh"} <= names
    for path in (built / "autograder" / "suites" / HOMEWORK).rglob("*.py"):
        lines = [line.strip() for line in path.read_text().splitlines() if len(line.strip()) > 30]
        assert not [line for line in lines if line in text]
