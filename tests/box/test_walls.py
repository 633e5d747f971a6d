"""The walls of a box, on every backend that works here: what is inside stays inside."""

import os
import socket
import threading
from pathlib import Path

import pytest
import torch
from box_kit import WALLED

from autograder.box.backends import BACKENDS, BOX_MODULES, PACKAGE, guarantees
from autograder.box.jail import without
from autograder.box.ours import our_modules
from autograder.box.sandbox import available, pick
from autograder.judge.verdicts import Infrastructure, StudentCrash
from course_utils.hw1 import kernels

REFUSED = "PermissionError"


def test_answers_come_out(enter):
    student = enter({"data/words.txt": b"hello", "empty.txt": b""})
    assert torch.equal(student["answer"](torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(student.run(kernels.gaussian_kernel, torch.ones(2, 2), torch.ones(2, 2)), torch.ones(2))
    assert isinstance(student["train"](), float)
    assert "hello" in student["read"](["data/words.txt", "empty.txt"])["data/words.txt"]
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(student["answer"], (x,))


def test_there_is_no_network(enter, boxes, tmp_path):
    student = enter()
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert student["connect"](server.getsockname()[1]) in ("PermissionError", "OSError", "ConnectionRefusedError")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        os.chmod(tmp_path / "socket", 0o777)
        assert student["connect_local"](str(tmp_path / "socket")) != "'connected'"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0autograder-test-{os.getpid()}")
        server.listen()
        assert student["connect_local"](f"\0autograder-test-{os.getpid()}") != "'connected'"


def test_nothing_of_the_judge_or_of_others_can_be_read(enter, tmp_path):
    other = tmp_path / "other_submission.ipynb"
    other.write_text("private")
    os.chmod(other, 0o644)
    root = PACKAGE.parent
    paths = [root, root / "solutions", root / "pyproject.toml", PACKAGE / "suites", PACKAGE / "judge" / "proxies.py"]
    paths += [other, tmp_path, Path.home(), Path("/etc/passwd"), Path("/etc/shadow"), Path("/var"), Path("/home")]
    for path, result in enter()["read"]([str(path) for path in paths]).items():
        assert result.endswith("Error") or result in ("['.venv']", "['.pyenv']", "[]"), path


def test_nothing_outside_can_be_written(enter, tmp_path):
    os.chmod(tmp_path, 0o777)
    student = enter()
    places = ["/", "/usr", "/etc", "/view", "/dev", "/proc", "/var/tmp", os.path.dirname(torch.__file__), str(tmp_path)]
    assert set(student["write"](places).values()) <= {"PermissionError", "OSError", "FileNotFoundError"}
    files = ["/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj", "/dev/kmsg", torch.__file__, kernels.__file__]
    assert "1" not in student["overwrite"](files).values()
    assert student["write"](["."]) == {".": "'written'"}


def test_boxes_do_not_see_each_other(enter):
    first, second = enter(), enter()
    first["leave"]("trace")
    assert second["look_for"]("trace") == []
    assert first["look_for"]("trace") != []


def test_the_surroundings_are_clean(enter):
    seen = enter()["surroundings"]()
    assert not {"SECRET_TOKEN", "PYTHONPATH", "PYTEST_CURRENT_TEST"} & set(seen["environment"])
    assert "hunter2" not in str(seen["environment"]) and seen["argv"] == ["notebook"] and "" not in seen["path"]
    ours = {name for name in seen["modules"] if name.startswith(("autograder", "solutions"))}
    kit = {name for name in our_modules() if name.startswith("autograder.in_box")}  # staff's, and no secret
    assert ours - kit <= {"autograder", "autograder.box", *(f"autograder.box.{name}" for name in BOX_MODULES)}


def test_only_the_channels_to_judge_and_vault_are_inherited(enter):
    assert enter()["descriptors"]() == {0: True, 1: True, 2: True, 3: False, 5: False}


def test_the_judge_is_out_of_reach(enter, boxes):
    seen = enter()["reach"](os.getpid())
    assert seen["signal"] in ("ProcessLookupError", "PermissionError")
    assert seen["parent"] in ("none", "ProcessLookupError", "PermissionError")
    assert seen["environ"].endswith("Error") and seen["memory"].endswith("Error") and seen["root"].endswith("Error")
    assert seen["trace"] == seen["namespaces"] == seen["mount"] == -1
    assert seen["limit"] == "ValueError"


def test_which_pages_are_in_memory_is_not_told(enter):
    found = enter()["page_cache"]()
    assert found == {"mincore": REFUSED, "no wait": REFUSED, "evict": REFUSED, "read": "8"}


def test_a_shadowing_file_shadows_nothing(enter):
    student = enter({name: b"raise SystemExit" for name in ("numpy.py", "torch.py", "sitecustomize.py")})
    outcome = student.load([{"id": "import", "source": "import numpy, torch, json; numpy.zeros(1)"}])[0]
    assert outcome.fault is None


@pytest.mark.parametrize("times", [1, 1000])
def test_a_forged_reply_is_a_crash(enter, times):
    student = enter()
    with pytest.raises(StudentCrash):
        student["forge"](torch.arange(200, dtype=torch.uint8), times)


def test_a_reply_written_in_advance_is_a_crash(enter):
    student = enter()
    source = "import os, threading, time\nthreading.Timer(0.2, lambda: os.write(3, b'BOX1' + bytes(60))).start()"
    student.load([{"id": "later", "source": source}])
    waiting = threading.Event()
    waiting.wait(0.4)
    with pytest.raises(StudentCrash):
        student["answer"](1)


def test_the_strongest_backend_is_picked():
    strong = [name for name in available() if name in WALLED]
    if strong:
        assert pick("auto") == strong[0]
    else:
        with pytest.raises(Infrastructure, match="--sandbox process"):
            pick("auto")
    with pytest.raises(Infrastructure, match="no sandbox called"):
        pick("docker")
    assert all(guarantees(name) for name in BACKENDS)


def test_a_hidden_folder_is_cut_out_of_a_readable_one(tmp_path):
    for folder in ("site/autograder/suites", "site/torch", "usr/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "site" / "back").symlink_to(tmp_path / "site")
    site, usr, secret = str(tmp_path / "site"), str(tmp_path / "usr"), str(tmp_path / "site" / "autograder")
    assert without([site, usr], [secret]) == [f"{site}/torch", usr]
    assert without([site], [f"{secret}/suites"]) == [f"{site}/torch"]
    assert without([secret], [secret]) == []
