"""The students' command line, on a tiny homework that lies where a release has its original."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder import answers, grade, submission
from autograder.builder.release import release_files
from autograder.grading.collect import collect
from autograder.homework import read_homework
from autograder.places import COURSE_UTILS
from course_utils.explain.check_report import CheckReport
from course_utils.explain.fingerprints import fingerprint
from course_utils.explain.outcomes import CheckOutcome
from course_utils.explain.sealed_prints import Catalogue, Mistake, pack, place_of, seal
from course_utils.terminal import check, originals, trained_model
from course_utils.terminal import notebook_file as notebook
from course_utils.terminal import safe_zip as unpacking
from course_utils.terminal import submit as handin
from course_utils.terminal.check import Checked, run_checks
from course_utils.terminal.find_work import Work
from course_utils.terminal.main import main
from course_utils.terminal.progress_command import standing
from course_utils.terminal.results_table import rows, table

HW = "hw9_tiny"
STUB = 'def {0}(x):\n    """Do it."""\n    raise NotImplementedError("{1}: write your answer here")'
CHECKS = '''\
from otter.test_files import test_case
from course_utils.notebook.grader import Explainer
OK_FORMAT = False
name = "{question}"
points = {points}
explain = Explainer("{question}", globals(), rng="torch", hidden_topics=["large inputs", "gradients"])
import torch
from course_utils.checking.compare import same

@test_case(name="{name}(4) is {value}.")
@explain
def test_four({name}):
    """{name}(4) is {value}."""
    same({name}(torch.tensor(4.0)), torch.tensor({value}), "{name}(4)")

def probe_two({name}):
    return {name}(torch.tensor(2.0))
'''


def code(source: str, id: str = "", minutes: int = 0, points: int = 0, tags: list[str] | None = None) -> dict[str, Any]:
    """A code cell as the builder makes it."""
    metadata: dict[str, Any] = {"tags": tags} if tags else {}
    if id:
        metadata |= {"nbgrader": {"grade_id": id, "points": points}, "course": {"minutes": minutes}}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def shipped() -> dict[str, Any]:
    """The tiny homework's notebook."""
    words = code("YOUR ANSWER HERE", "q9_3", minutes=5, points=3) | {"cell_type": "markdown"}
    cells = [
        code("import torch"),
        code(STUB.format("double", "q9_1"), "q9_1", minutes=15),
        code('grader.check("q9_1")', "test_q9_1", points=60),
        code("raise SystemError('plots are left out')", tags=["plot"]),
        code(STUB.format("half", "q9_2"), "q9_2", minutes=20),
        code('grader.check("q9_2")', "test_q9_2", points=37),
        words,
    ]
    return {"cells": cells, "metadata": {"otter": {"assignment_name": HW}}, "nbformat": 4, "nbformat_minor": 5}


def files() -> dict[str, bytes]:
    """Everything that the course hands out."""
    prints = {"probe_two": seal(fingerprint(6.0), place_of("q9_1", "probe_two"))}
    known = pack({"q9_1": Catalogue("", [Mistake("tripled", "Look at the factor.", prints)])})
    one = CHECKS.format(question="q9_1", points=60, name="double", value=8.0)
    two = CHECKS.format(question="q9_2", points=37, name="half", value=2.0)
    made = {f"{HW}.ipynb": json.dumps(shipped()), "tests/q9_1.py": one, "tests/q9_2.py": two}
    return {name: text.encode() for name, text in made.items()} | {"tests/mistakes.dat": known}


def zipped(content: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder of a student whose `course` came with the tiny homework."""
    installed = tmp_path / "installed"
    (installed / "originals").mkdir(parents=True)
    (installed / "originals" / f"{HW}.zip").write_bytes(zipped(files()))
    monkeypatch.setattr(originals, "PACKAGE", installed)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def edit(path: Path, change: dict[str, str], extra: list[dict[str, Any]] | None = None) -> None:
    """Fill in answers by id, and add cells at the end."""
    data = json.loads(path.read_bytes())
    for cell in data["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = change.get(name, cell["source"])
    data["cells"] += extra or []
    path.write_text(json.dumps(data))


def started(**answers: str) -> Path:
    """The notebook of a homework that was started and answered."""
    main(["start", "hw9"])
    path = Path(HW, f"{HW}.ipynb")
    edit(path, answers)
    return path


# start


def test_a_start_makes_a_copy_and_a_second_one_says_that_it_is_untouched(here: Path, capsys: Any) -> None:
    assert main(["start", "hw9"]) == 0
    assert {str(path.relative_to(HW)): path.read_bytes() for path in Path(HW).rglob("*.*")} == files()
    data = shipped()
    data["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "run, not edited"}]
    Path(HW, f"{HW}.ipynb").write_text(json.dumps(data))
    Path(HW, "tests", "q9_2.py").unlink()
    capsys.readouterr()
    assert main(["start", HW]) == 0
    told = capsys.readouterr().out
    assert "already there, and untouched" in told and "What was missing is back: tests/q9_2.py" in told
    assert Path(HW, "tests", "q9_2.py").read_bytes() == files()["tests/q9_2.py"]


def test_a_start_never_goes_over_an_edited_copy(here: Path, capsys: Any) -> None:
    path = started(q9_1="def double(x): return 2 * x")
    before = path.read_bytes()
    assert main(["start", "hw9"]) == 2
    assert "edited (answers: q9_1). It stays as it is" in capsys.readouterr().out
    for number in (2, 3):
        assert main(["start", "hw9", "--again"]) == 0
        assert Path(f"{HW}-{number}", f"{HW}.ipynb").read_bytes() == files()[f"{HW}.ipynb"]
    assert path.read_bytes() == before


def test_inside_the_release_the_copy_goes_below_it_and_a_broken_notebook_is_left_alone(here: Path, capsys: Any) -> None:
    Path(f"{HW}.ipynb").write_text("{broken")
    assert main(["start", "hw9"]) == 2
    assert "edited (it cannot be read as a notebook)" in capsys.readouterr().out
    assert main(["start", "hw9", "--again"]) == 0 and Path(f"{HW}-2", f"{HW}.ipynb").is_file()
    assert Path(f"{HW}.ipynb").read_text() == "{broken"


def test_a_downloaded_zip_is_unpacked_whole_and_what_is_in_the_way_is_told(here: Path, capsys: Any) -> None:
    renamed = {name.replace(HW, "hw8_next"): data.replace(b"hw9_tiny", b"hw8_next") for name, data in files().items()}
    release = {f"hw8_next/{name}": data for name, data in renamed.items()}
    Path("hw8_next (1).zip").write_bytes(zipped(release | {"hw8_next/README.md": b"read me"}))
    assert main(["start", "hw8_next (1).zip", "--to", "sub"]) == 0 and main(["start", "hw8"]) == 0
    assert Path("sub/hw8_next/README.md").read_bytes() == Path("hw8_next/README.md").read_bytes() == b"read me"
    Path(HW).write_text("a file")
    assert main(["start", "hw9"]) == 2 and "is in the way" in capsys.readouterr().err


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(f"{HW}/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["../out.txt"], "path out of its folder"),
        (["/tmp/out.txt"], "path out of its folder"),
        (["C:\\out.txt"], "path out of its folder"),
        ([link()], "a link"),
        ([f"{HW}/A.py", f"{HW}/a.py"], "twice"),
        ([f"{HW}/a", f"{HW}/a/b"], "below a file"),
        ([f"{HW}/{i}" for i in range(30)], "entries"),
        ([f"{HW}/" + "x" * 50], "unpacks to more than"),
    ],
)
def test_a_hostile_zip_is_refused_whole(
    here: Path, names: list[Any], words: str, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(unpacking, "MAX_ENTRIES", 20)
    monkeypatch.setattr(unpacking, "MAX_TOTAL", 10_000)
    with zipfile.ZipFile("hw9_bad.zip", "w") as archive:
        archive.writestr(f"{HW}/{HW}.ipynb", files()[f"{HW}.ipynb"])
        for name in names:
            archive.writestr(name, "x" * (20_000 if "unpacks" in words else 1))
    assert main(["start", "hw9_bad.zip"]) == 2
    assert words in capsys.readouterr().err and [path.name for path in here.iterdir()] == ["hw9_bad.zip"]


@pytest.mark.parametrize("content", [b"no zip", zipped({"other/notes.ipynb": b"{}"}), zipped(files())[:-300]])
def test_a_zip_that_is_none_of_the_course_s_is_refused(here: Path, content: bytes, capsys: Any) -> None:
    Path("hw9_tiny.zip").write_bytes(content)
    assert main(["start", "hw9_tiny.zip"]) == 2 and not Path(HW).exists()
    assert "hw9_tiny.zip is n" in capsys.readouterr().err


# finding the notebook


def test_what_cannot_be_found_or_read_is_told_with_what_to_do(here: Path, capsys: Any) -> None:
    def told(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        return str(capsys.readouterr().err)

    assert "fresh copy with `course start hw9`" in told("check", "hw9")
    assert main(["check", "hw9", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["exit"] == 2
    assert "no homework 'hw7'" in told("submit", "hw7") and "Known: hw9_tiny" in told("start", "hw7")
    assert "`course start hw1` unpacks one" in told("progress")
    path = started()
    assert "has no question 'q9_9'. It has q9_1, q9_2, q9_3" in told("check", "hw9", "--question", "q9_9")
    Path(HW, "tests", "q9_1.py").unlink()
    assert "no checks of q9_1" in told("check", "hw9")
    Path(HW, f"{HW}-Copy1.ipynb").write_bytes(path.read_bytes())
    assert "may be one of 2 notebooks" in told("submit", "hw9") and "may be one of 2" in told("submit", HW)
    path.write_text('{"cells": ')
    assert "not a notebook that can be read" in told("submit", str(path)) and "no list of cells" in (
        path.write_text("[]") and told("submit", str(path))
    )
    Path("else.ipynb").write_text('{"cells": []}')
    assert "of no homework" in told("check", "else.ipynb") and "There is no notebook" in told("check", "gone.ipynb")


# check and progress

ODD = [
    code("known = undefined_name"),
    code("import os\nos._exit(7)"),
    code("%matplotlib inline\n!true\nlate = 1"),
    code("def half(x): return x / 2 if late else x  # below its check"),
]


def test_a_check_names_the_mistake_and_no_cell_stops_the_next(here: Path, capsys: Any) -> None:
    edit(path := started(), {"q9_1": "print('noise')\ndef double(x):\n    return x * 3"}, extra=ODD)
    before = path.read_bytes()
    capsys.readouterr()
    assert main(["check", "hw9"]) == 1
    told = capsys.readouterr().out
    assert "q9_1         60  0 of 1 ok        double(4) is 12, expected 8" in told
    assert "q9_1: 0 of 1 checks ok\n  [not yet] double(4) is 8.0.\n      double(4) is 12, expected 8.\n" in told
    assert "Looks like tripled: Look at the factor." in told
    assert "cell 8 ('known = undefined_name'): NameError: name 'undefined_name' is not defined (line 1)" in told
    assert "cell 9 ('import os'): Python itself stopped here (exit code 7)" in told
    assert "q9_2         37  all 1 ok" in told and "q9_3          3  not written yet" in told
    assert "1 of 2 questions pass their public checks; points are decided by hidden checks too." in told
    assert "Hidden checks also cover:\n  q9_2: large inputs, gradients" in told
    assert (
        "noise" not in told
        and path.read_bytes() == before
        and sorted(p.name for p in Path(HW).iterdir())
        == [
            f"{HW}.ipynb",
            "tests",
        ]
    )


def test_progress_counts_questions_and_the_minutes_that_are_left(here: Path, capsys: Any) -> None:
    started(q9_1="def double(x):\n    return (2 * x", q9_3="Because it is so.")
    capsys.readouterr()
    assert main(["progress", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["not_right"], found["not_answered"]) == ([], ["q9_1"], ["q9_2"])
    assert (found["written"], found["not_written"], found["minutes_left"]) == (["q9_3"], [], 35)


def test_a_check_tells_what_a_cell_defines_instead_of_the_name(here: Path) -> None:
    work = Work(started(q9_1="def my_double(x):\n    return 2 * x"), HW)
    checked = Checked({"q9_1": CheckReport("q9_1", [CheckOutcome("not answered", "double(4) is 8.", "")])})
    (row,) = rows(work, checked, work.original.questions[:1])
    assert row.message == "your cell defines `my_double`; expected `double`"


def test_the_rows_of_a_check_as_json(here: Path) -> None:
    work = Work(started(), HW)
    outcome = CheckOutcome("failed", "double(4) is 8.", "it is 12", "tripled", "Look at the factor.")
    checked = Checked({"q9_1": CheckReport("q9_1", [outcome], ["gradients"])})
    (row,) = rows(work, checked, work.original.questions[:1])
    found = row.as_json()
    assert (found["status"], found["points"], found["minutes"], found["message"]) == ("failed", 60, 15, "it is 12")
    assert found["mistakes"] == [{"label": "tripled", "hint": "Look at the factor."}]
    assert found["checks"][0]["sentence"] == "double(4) is 8." and found["hidden_checks_also_cover"] == ["gradients"]


def test_a_cell_without_an_end_is_stopped(here: Path) -> None:
    path = started(q9_1="while True:\n    pass")
    checked = run_checks(Work(path, HW), [], limit=0.5)
    assert checked.faults[2].startswith(
        "it took longer than 0.5 seconds of the processor and was stopped; `--limit 2.5`"
    )


def test_what_runs_out_of_time_is_neither_wrong_nor_unanswered(here: Path, capsys: Any) -> None:
    path = started(q9_1="def double(x):\n    while True: pass", q9_2="while True:\n    pass\ndef half(x): return x / 2")
    capsys.readouterr()
    assert main(["check", "hw9", "--limit", "0.5"]) == 1
    told = capsys.readouterr()
    table = [" ".join(line.split()) for line in told.out.splitlines()]
    assert any(line.startswith("q9_1 60 out of time it took longer than 0.5 seconds") for line in table), table
    assert any(line.startswith("q9_2 37 out of time cell 5 (q9_2): it took longer") for line in table), table
    assert (
        "It took longer than 0.5 seconds of the processor and was stopped; `--limit 2.5` gives it longer." in told.out
    )
    assert "Out of time, so neither right nor wrong: q9_1, q9_2." in told.out
    assert "not answered" not in told.out
    assert told.err.splitlines() == ["1 of 2  q9_1: out of time", "2 of 2  q9_2: out of time"]
    found = standing(Work(path, HW), 0.5)
    assert (found.ids("failed", "error", "not answered"), found.as_json()["out_of_time"]) == ([], ["q9_1", "q9_2"])
    assert "q9_1: out of time, so neither right nor wrong (it took longer than 0.5 seconds of the processor" in str(
        found
    )


def test_the_limit_is_the_processors_time_and_a_sleeper_has_more_by_the_clock(here: Path, monkeypatch: Any) -> None:
    path = started(q9_1="import time\ntime.sleep(2)\ndef double(x): return 2 * x")
    assert run_checks(Work(path, HW), ["q9_1"], limit=0.8).reports["q9_1"].passed
    monkeypatch.setattr(check, "PATIENCE", 1)
    monkeypatch.setattr(check, "FIRST", 100)
    checked = run_checks(Work(path, HW), ["q9_1"], limit=0.8)
    assert "seconds by the clock, in which it had 0 of the processor: it waits for something" in checked.faults[2]
    (row,) = rows(Work(path, HW), checked, Work(path, HW).original.questions[:1])
    assert row.status == "out of time"


@pytest.mark.parametrize(
    "earlier", [STUB.format("double", "q9_1"), "def double(x):\n    return (2 * x", "raise ValueError\ndouble = abs"]
)
def test_an_answer_that_leans_on_one_that_is_missing_waits_for_it(here: Path, capsys: Any, earlier: str) -> None:
    path = started(q9_1=earlier, q9_2="def half(x):\n    return double(x) / 4")
    capsys.readouterr()
    assert main(["check", "hw9"]) == 1
    assert "q9_2         37  waits for q9_1" in capsys.readouterr().out
    found = standing(Work(path, HW), 60)
    assert "  q9_2: waits for q9_1" in str(found) and found.as_json()["waiting"] == {"q9_2": ["q9_1"]}
    assert "q9_2" not in found.ids("not answered", "failed", "error")


def test_sections_stand_beside_ids_wherever_a_table_shows_them(here: Path, capsys: Any) -> None:
    data = shipped()
    headings = {
        1: "## Doubling\n\n### 9.1 To double, and what comes of it",
        5: "### 9.2 To halve",
        8: "### 9.3 In words",
    }
    for place, text in headings.items():
        data["cells"].insert(place, code(text) | {"cell_type": "markdown"})
    (originals.PACKAGE / "originals" / f"{HW}.zip").write_bytes(
        zipped(files() | {f"{HW}.ipynb": json.dumps(data).encode()})
    )
    path = started(q9_1="def double(x):\n    return x * 3", q9_2="def half(x): return x / 2")
    capsys.readouterr()
    assert main(["check", "hw9"]) == 1
    told = capsys.readouterr()
    assert "\nq9_1 (9.1 To doub" in told.out and "\nq9_2 (9.2 To halve)" in told.out
    assert "double(4) is 12, expected 8\n" in told.out
    work = Work(path, HW)
    late = Checked({q: CheckReport(q, [CheckOutcome("failed", "", "long " * 30)]) for q in ("q9_1", "q9_2")})
    found = table(rows(work, late, work.original.questions[:2]), 80).splitlines()
    assert found[1].startswith("q9_1 (9.1)  ") and found[1].endswith(" l...") and max(map(len, found)) == 80
    assert "\nq9_1 (9.1 To double, and what comes of it): 0 of 1 checks ok\n" in told.out
    assert "\n  q9_2 (9.2 To halve): large inputs, gradients" in told.out
    assert "1 of 2  q9_1 (9.1 To double, and what comes of it): 0 of 1 checks ok\n2 of 2  q9_2 (9.2 To" in told.err
    found = str(standing(Work(path, HW), 60))
    assert "q9_2 (9.2)\n" in found and "      q9_1 (9.1 To double, and what comes of it)\n" in found
    assert "      q9_3 (9.3 In words)\n" in found


def test_help_comes_without_torch_and_every_command_has_an_example() -> None:
    program = "import sys, course_utils.terminal.main as c\ntry: c.main(['{}', '--help'])\nexcept SystemExit: pass\n"
    loaded = "print(sorted({'torch', 'otter', 'IPython'} & set(sys.modules)))"
    commands = ["doctor", "start", "check", "progress", "submit"]
    script = "".join(program.format(command) for command in commands) + loaded
    told = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True).stdout
    assert told.count("Example: course ") == len(commands) and told.endswith("[]\n")


# submit


def test_a_submission_is_accepted_by_the_graders_code(here: Path, capsys: Any) -> None:
    path = started(q9_1="def double(x): return 2 * x", q9_2="def half(x): return x / 2", q9_3="Because.")
    capsys.readouterr()
    assert main(["submit", "hw9", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["warnings"] == [] and told["file"] == f"{HW}-submission.zip"
    Path("in").mkdir()
    Path(told["file"]).rename("in/ada.zip")
    (entry,) = collect(Path("in"), HW)
    assert (entry.student, entry.content, entry.checkpoints) == ("ada", path.read_bytes(), {})


def test_a_submission_of_a_real_homework_is_graded(here: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(originals, "PACKAGE", COURSE_UTILS)
    assert main(["start", "hw1"]) == 0
    answer = read_homework("hw1_attention").question("q1_1").answer
    edit(Path("hw1_attention/hw1_attention.ipynb"), {"q1_1": answer})
    assert main(["submit", "hw1", "--out", "ada.zip"]) == 0
    assert grade("hw1_attention", "ada.zip").total == 6  # which begins with the graders' own `collect`


def test_a_zip_of_before_is_only_replaced_on_demand(here: Path, capsys: Any) -> None:
    path = started(q9_1="def double(x): return 2 * x")
    assert main(["submit", "hw9"]) == 0
    before = Path(f"{HW}-submission.zip").read_bytes()
    assert main(["submit", "hw9"]) == 0 and "already there, the same" in capsys.readouterr().out
    edit(path, {"q9_2": "def half(x): return x / 2"})
    os.utime(path, (2_000_000_000, 2_000_000_000))
    assert main(["submit", "hw9"]) == 2
    told = capsys.readouterr()
    assert "Not answered yet: q9_3." in told.out and "Hand in" not in told.out and "Add --replace" in told.err
    assert "Your notebook is newer (saved 18 May" in told.err and "that zip hands in old work." in told.err
    os.utime(path, (10**9, 10**9))
    assert main(["submit", "hw9", "--json"]) == 2
    told = capsys.readouterr()
    assert "holds another notebook than the one" in json.loads(told.out)["kept"] and "Nothing was written" in told.err
    assert Path(f"{HW}-submission.zip").read_bytes() == before
    assert main(["submit", "hw9", "--replace"]) == 0 and Path(f"{HW}-submission.zip").read_bytes() != before
    assert main(["submit", "hw9", "--out", "mine.tar"]) == 2 and main(["submit", "hw9", "--out", "a/b.zip"]) == 0
    assert Path("a/b.zip").read_bytes() == Path(f"{HW}-submission.zip").read_bytes()


def warned(path: Path) -> list[str]:
    return handin.warnings_about(Work(path, HW).notebook, Work(path, HW).original)


@pytest.mark.parametrize(
    ("answers", "extra", "words"),
    [
        ({}, [], "Not answered yet: q9_1, q9_2, q9_3."),
        ({"q9_1": "def Double(x): pass"}, [], "q9_1: your cell defines `Double`; expected `double`."),
        ({"q9_1": "def other(a, b): pass"}, [], "q9_1: your cell defines `other`; expected `double`."),
        ({"q9_1": "x = 1"}, [], "q9_1: its cell does not define `double`. The graders look for `double`"),
        ({}, [code("Two halves.") | {"cell_type": "markdown"}], "q9_3: its cell is empty. If cell 8 ('Two halves.')"),
        ({"q9_1": ""}, [code("def double(x): return 2")], "`double` stands in cell 8, where it counts."),
        ({}, [code("def double(x): return 2")], "Not answered yet: q9_2, q9_3."),
        ({"q9_1": "def double(x:\n  pass"}, [], "q9_1: cell 2 is no Python, so nothing of it counts: SyntaxError"),
        ({}, [code("def double(x): return 2", "q9_1")], "q9_1: cells 2 and 8 carry its id"),
        ({"test_q9_1": "pass"}, [], "q9_1: its check cell was changed or deleted."),
        ({"q9_1": "%%bash\ndef double(x): return 2"}, [], "q9_1: its cell does not define `double`."),
        ({"q9_1": "%%time\n\ndef double(x:\n  pass"}, [], "SyntaxError: '(' was never closed (line 3: def double(x:)"),
        ({}, [code("1 +* 2")], "cell 8 ('1 +* 2') is no Python: SyntaxError: invalid syntax (line 1: 1 +* 2)"),
    ],
)
def test_what_is_odd_about_a_notebook_is_told(
    here: Path, answers: dict[str, str], extra: list[dict[str, Any]], words: str
) -> None:
    edit(path := started(), answers, extra)
    assert any(words in warning for warning in warned(path)), warned(path)


@pytest.mark.parametrize("magics", ["%%time\n", "%%capture out\n%%time\n", "%matplotlib inline\n", "%time "])
def test_an_answer_with_magics_that_the_graders_accept_is_not_warned_of(here: Path, magics: str) -> None:
    edit(path := started(), {"q9_1": f"{magics}print(1)\ndef double(x): return 2 * x"})
    assert warned(path) == ["Not answered yet: q9_2, q9_3."]


def test_lost_cells_and_changed_given_code_are_told_and_magics_are_no_errors(here: Path) -> None:
    path = started()
    data = json.loads(path.read_bytes())
    data["cells"] = [code("import numpy\n%time x = 1\n!ls"), *data["cells"][1:2], code("a %\\\n b")]
    path.write_text(json.dumps(data))
    told = warned(path)
    assert "q9_2: its answer cell is missing. The graders look for `half` and find nothing." in told
    assert "q9_3: the cell for your text is missing: write it below the question's heading." in told
    assert any(warning.startswith("The course's cell 1 ('import torch') was changed") for warning in told)
    assert not any("no Python" in warning for warning in told)


def test_a_notebook_of_another_homework_is_refused(here: Path, capsys: Any) -> None:
    path = started()
    path.write_text(json.dumps({"cells": [code("x = 1", "q8_1")], "metadata": {"otter": {"assignment_name": HW}}}))
    assert main(["submit", "hw9"]) == 2 and "no notebook of hw9_tiny" in capsys.readouterr().err
    assert not Path(f"{HW}-submission.zip").exists()


def test_a_trained_model_goes_along_where_it_is_asked_for(here: Path, capsys: Any, monkeypatch: Any) -> None:
    path = started()
    monkeypatch.setattr(originals.Original, "checkpoint", f"{HW}.safetensors")

    def packed() -> tuple[dict[str, int], str]:
        handed = handin.hand_in(Work(path, HW), None, replace=True)
        return handed.sizes, handed.warnings[-1]

    assert "There is no hw9_tiny.safetensors beside the notebook" in packed()[1]
    (path.parent / "model.safetensors").write_bytes(b"PK\3\4 of torch.save")
    assert packed()[0].keys() == {f"{HW}.ipynb"} and "model.safetensors is not taken: it is cut or no" in packed()[1]
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    model = len(header).to_bytes(8, "little") + header + bytes(4)
    (path.parent / "model.safetensors").write_bytes(model[:-1])
    assert f"is not taken: it is cut: {len(model) - 1} bytes of {len(model)}." in packed()[1]
    assert packed()[1] in str(standing(Work(path, HW), 60))  # in the same words
    (path.parent / "model.safetensors").write_bytes(model)
    assert "model.safetensors is taken as hw9_tiny.safetensors" in packed()[1]
    (path.parent / "other.safetensors").write_bytes(model)
    assert "Which of model.safetensors, other.safetensors" in packed()[1]
    (path.parent / f"{HW}.safetensors").write_bytes(model)
    assert packed()[0] == {f"{HW}.ipynb": path.stat().st_size, f"{HW}.safetensors": len(model)}
    (entry,) = collect(Path(f"{HW}-submission.zip"), HW)
    assert entry.checkpoints == {f"{HW}.safetensors": model}


def test_a_trained_model_of_another_form_is_told_the_same_everywhere(here: Path, capsys: Any, monkeypatch: Any) -> None:
    import torch  # the commands do without
    from safetensors.torch import save_file

    from course_utils.notebook.checkpoints import CheckpointForm

    path = started()
    form = CheckpointForm({"table.weight": (3, 2), "out.weight": (3, 2), "out.bias": (3,)}, largest=4000)
    monkeypatch.setattr(originals.Original, "checkpoint", f"{HW}.safetensors")
    monkeypatch.setitem(sys.modules, "hw9_model", SimpleNamespace(checkpoint_form=lambda: form))
    monkeypatch.setitem(trained_model.JUDGED, HW, ("q9_2", "hw9_model"))
    file, needed = path.parent / f"{HW}.safetensors", "q9_2 is judged by it; without it, by a short training run"

    def told(tensors: dict[str, torch.Tensor], **text: str) -> str:
        save_file(tensors, file, metadata=text)
        handed = handin.hand_in(Work(path, HW), None, replace=True)
        found = standing(Work(path, HW), 60).model or ""
        assert found == (handed.warnings[-1] if found else "") and (file.name in handed.sizes) == (not found)
        return found

    assert needed in str(standing(Work(path, HW), 60))  # there is none
    table, bias = torch.zeros(3, 2), torch.zeros(3)
    whole = {"table.weight": table, "out.bias": bias}
    assert told({**whole, "out.weight": table.clone()}) == ""
    assert told({**whole, "more": bias.clone()}, ties='{"out.weight": "table.weight"}') == ""
    short = told({**whole, "out.weight": table[:2].clone()})
    assert f"{file.name} is not taken: it does not fit the model that is asked for: out.weight is [2, 2] there" in short
    assert "there and [3, 2] in the model" in short and needed in short
    assert "it has no out.weight. Train" in told(whole, ties="[1]")
    assert "it has no table.weight; it has no out.weight; it has no out.bias" in told({"else": bias})
    assert "and at most 0 are read" in told({**whole, "out.weight": torch.zeros(3000)})


# what ships


def test_the_limits_and_words_are_those_of_the_graders() -> None:
    assert notebook.MAX_BYTES == submission.MAX_BYTES and notebook.TEXT_STUB == answers.TEXT_STUB
    assert originals.SKIPPED_TAGS == submission.SKIPPED_TAGS


@pytest.mark.parametrize("name", ["hw1_attention", "hw4_translation"])
def test_a_release_carries_its_original_with_points_minutes_and_names(name: str) -> None:
    original = originals.from_zip(release_files(name)[f"{name}/course_utils/originals/{name}.zip"], name)
    found = [(q.id, q.points, q.minutes, q.in_words) for q in original.questions]
    homework = read_homework(name)
    assert found == [(a.id, a.points, a.minutes, a not in homework.questions) for a in homework.graded]
    assert [q.names for q in original.questions if q.names] == [question.names for question in homework.questions]
    assert bool(original.checkpoint) == (name == "hw4_translation")
