"""The boxes themselves, on every backend that works here: what is inside stays inside, and ends when it is told to."""

import os
import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from autograder.box.backends import BACKENDS, BOX_MODULES, PACKAGE, guarantees
from autograder.box.jail import without
from autograder.box.keeper import STARTED, start_ahead, stop
from autograder.box.limits import MB, Limits
from autograder.box.sandbox import BoxFactory, available, pick
from autograder.box.zygote import _family
from autograder.judge.faults import StudentRaised
from autograder.judge.proxies import Student
from autograder.judge.verdicts import Infrastructure, StudentCrash, StudentError, StudentMemory, StudentTimeout
from course_utils import kernels

LIMITS = Limits(wall=15, cpu=60, memory=256 * MB, processes=16, file_size=8 * MB, open_files=64, tmpfs=16 * MB)
WALLED = {"bwrap", "namespaces"}

NOTEBOOK = """
import ctypes, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time
import torch
from torch import nn

def outcome(action):
    try:
        return repr(action())
    except (OSError, ValueError) as error:
        return type(error).__name__

def answer(x):
    return x + 1

def connect(port):
    def action():
        with socket.socket() as s:
            s.settimeout(2)
            s.connect(("127.0.0.1", port))
            return "connected"
    return outcome(action)

def connect_local(address):
    def action():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(address)
            return "connected"
    return outcome(action)

def read(paths):
    def one(path):
        if os.path.isdir(path):
            return os.listdir(path)
        with open(path, "rb") as file:
            return file.read(10)
    return {path: outcome(lambda: one(path)) for path in paths}

def write(paths):
    def one(path):
        with open(os.path.join(path, "mark"), "w") as file:
            file.write("x")
        return "written"
    return {path: outcome(lambda: one(path)) for path in paths}

def overwrite(paths):
    return {path: outcome(lambda: open(path, "r+b").write(b"x")) for path in paths}

def look_for(name):
    found = []
    for folder in ("/tmp", os.getcwd(), "/dev/shm", "/var/tmp"):
        try:
            found += [folder for entry in os.listdir(folder) if entry == name]
        except OSError:
            pass
    return found

def leave(name):
    for folder in (os.getcwd(), "/dev/shm"):
        outcome(lambda: open(os.path.join(folder, name), "w").close())

def fork_bomb():
    count = 0
    try:
        while count < 500:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            count += 1
    except OSError:
        pass
    return count

def thread_bomb():
    count = 0
    try:
        while count < 500:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    except RuntimeError:
        pass
    return count

def memory_bomb():
    hold = []
    while True:
        hold.append(bytearray(16 * 2**20))

def tensor_bomb():
    return torch.empty(10**11)

def family_memory_bomb():
    for _ in range(6):
        if os.fork() == 0:
            hold = bytearray(os.urandom(1)) * (100 * 2**20)
            time.sleep(60)
    time.sleep(60)

def hidden_memory():
    return [outcome(lambda: os.memfd_create("x")), ctypes.CDLL(None).shmget(0, 2**20, 0o1600)]

def loop():
    while True:
        pass

def stubborn_loop():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

def crash(how):
    if how == "exit":
        os._exit(0)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "abort":
        os.abort()
    if how == "close":
        os.close(3)
    if how == "stop":
        for pid in (os.getpid(), 0):
            os.kill(pid, signal.SIGSTOP)
        os._exit(3)

def orphan():
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:  # refused in some boxes
            pass
        if os.fork() == 0:
            for number in range(1, 32):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except OSError:
                    pass
            while True:
                time.sleep(60)
        os._exit(0)
    return "left"

def shout(n):
    print("x" * n)
    sys.stdout.buffer.write(b"y" * n)
    os.write(1, b"z" * 10**6)
    os.write(2, b"z" * 10**6)
    subprocess.run(["/bin/echo", "from a program"])
    return "done"

def descriptors():
    found = {}
    for number in range(1024):
        try:
            os.fstat(number)
            found[number] = os.path.samestat(os.fstat(number), os.stat("/dev/null"))
        except OSError:
            pass
    return found

def surroundings():
    return {"environment": dict(os.environ), "argv": sys.argv, "path": sys.path, "modules": sorted(sys.modules)}

def reach(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    return {
        "signal": outcome(lambda: os.kill(pid, 0)),
        "parent": outcome(lambda: os.kill(os.getppid(), 0)) if os.getppid() else "none",
        "environ": outcome(lambda: open(f"/proc/{pid}/environ", "rb").read()),
        "memory": outcome(lambda: open(f"/proc/{pid}/mem", "r+b")),
        "trace": libc.ptrace(16, pid, 0, 0),
        "namespaces": libc.unshare(0x10000000),
        "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "root": outcome(lambda: os.setuid(0)),
        "limit": outcome(lambda: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))),
    }

def disk_bomb():
    total, number = 0, 0
    try:
        while number < 200:
            with open(f"file{number}", "wb") as file:
                for _ in range(64):
                    file.write(bytes(2**20))
                    total += 2**20
            number += 1
    except OSError:
        pass
    return total

def many_disk_bombs():
    total, number = 0, 0
    while number < 200:
        try:
            with open(f"file{number}", "wb", buffering=0) as file:
                for _ in range(7):
                    total += file.write(bytes(2**20))
        except OSError:
            break
        number += 1
        time.sleep(0.02)
    return total

def inode_bomb():
    count = 0
    try:
        while count < 20000:
            open(f"n{count}", "w").close()
            count += 1
    except OSError:
        pass
    time.sleep(0.5)
    return count

def forge(data, times):
    for _ in range(times):
        os.write(3, data.numpy().tobytes())
    return 1

def train():
    model = nn.Linear(2, 1)
    optimiser = torch.optim.Adam(model.parameters())
    loss = model(torch.ones(3, 2)).square().mean()
    loss.backward()
    optimiser.step()
    return loss.item()

def ask():
    return input("? ")
"""


@pytest.fixture(scope="module")
def factories():
    """One factory per backend; their zygotes warm up side by side."""
    os.environ["SECRET_TOKEN"] = "hunter2"
    made = {name: BoxFactory(name, LIMITS) for name in available()}
    for factory in made.values():
        factory.__enter__()
    yield made
    for factory in made.values():
        factory.close()
    del os.environ["SECRET_TOKEN"]


@pytest.fixture(params=list(BACKENDS))
def boxes(request, factories):
    if request.param not in factories:
        pytest.skip(f"{request.param} does not work here")
    factory = factories[request.param]
    factory.limits = LIMITS
    return factory


def at_rest(boxes):
    """The processes of a zygote without boxes; a closed box may need a moment to be buried."""
    alone = {"bwrap": 3, "namespaces": 2, "process": 1}[boxes.backend]
    end = time.monotonic() + 10
    while len(family := _family(boxes._keeper._process.pid)) > alone and time.monotonic() < end:
        time.sleep(0.01)
    return family


@pytest.fixture
def enter(boxes):
    """Open a box with the notebook in it, and check afterwards that nothing is left."""
    opened = []

    def enter(files=None, **limits):
        boxes.limits = replace(LIMITS, **limits)
        box = boxes.open()
        opened.append(box)
        student = Student(box.channel, wall=boxes.limits.wall)
        student.add_files(files or {})
        assert [outcome.fault for outcome in student.load([{"id": "attacks", "source": NOTEBOOK}])] == [None]
        return student

    boxes.open().close()  # the zygote is up
    before = at_rest(boxes)
    yield enter
    for box in opened:
        box.close()
    assert at_rest(boxes) == before, "processes were left behind"
    box = boxes.open()
    assert box.channel.request({"op": "names", "names": ["torch"]}, wall=15) == {"value": {}}
    box.close()


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
    assert ours <= {"autograder", "autograder.box", *(f"autograder.box.{name}" for name in BOX_MODULES)}


def test_only_the_channel_is_inherited(enter):
    assert enter()["descriptors"]() == {0: True, 1: True, 2: True, 3: False}


def test_the_judge_is_out_of_reach(enter, boxes):
    seen = enter()["reach"](os.getpid())
    assert seen["signal"] in ("ProcessLookupError", "PermissionError")
    assert seen["parent"] in ("none", "ProcessLookupError", "PermissionError")
    assert seen["environ"].endswith("Error") and seen["memory"].endswith("Error") and seen["root"].endswith("Error")
    assert seen["trace"] == seen["namespaces"] == seen["mount"] == -1
    assert seen["limit"] == "ValueError"


def test_a_shadowing_file_shadows_nothing(enter):
    student = enter({name: b"raise SystemExit" for name in ("numpy.py", "torch.py", "sitecustomize.py")})
    outcome = student.load([{"id": "import", "source": "import numpy, torch, json; numpy.zeros(1)"}])[0]
    assert outcome.fault is None


def test_a_fork_bomb_is_bounded(enter):
    student = enter()
    try:
        assert 1 <= student["fork_bomb"]() <= LIMITS.processes
        assert student["answer"](1) == 2
    except StudentCrash as crash:  # where the kernel does not count root's processes
        assert "processes" in str(crash) and os.getuid() == 0


def test_threads_are_bounded(enter):
    assert 1 <= enter()["thread_bomb"]() <= LIMITS.processes


@pytest.mark.parametrize("bomb", ["memory_bomb", "tensor_bomb", "family_memory_bomb"])
def test_a_memory_bomb_is_a_memory_verdict(enter, bomb):
    with pytest.raises(StudentMemory):
        enter()[bomb]()


def test_memory_that_no_limit_counts_is_refused(enter):
    assert enter()["hidden_memory"]() == ["PermissionError", -1]


@pytest.mark.parametrize("loop", ["loop", "stubborn_loop"])
def test_a_loop_is_a_timeout(enter, loop):
    student = enter()
    function = student[loop]
    student.wall = 0.3
    with pytest.raises(StudentTimeout):
        function()


def test_processor_time_runs_out(enter):
    with pytest.raises(StudentTimeout, match="processor time"):
        enter(cpu=1)["loop"]()


def test_a_box_does_not_live_for_ever(enter):
    with pytest.raises(StudentTimeout, match="at work for more than"):
        enter(wall_box=1)["loop"]()


@pytest.mark.parametrize("how", ["exit", "segfault", "abort", "close"])
def test_a_death_is_a_crash_and_the_next_box_works(enter, how):
    student = enter()
    with pytest.raises(StudentCrash):
        student["crash"](how)
    with pytest.raises(StudentCrash):
        student["answer"](1)
    assert enter()["answer"](1) == 2


def test_stopping_itself_gains_nothing(enter):
    student = enter()
    crash = student["crash"]
    student.wall = 1
    with pytest.raises((StudentTimeout, StudentCrash)):
        crash("stop")


def test_an_orphan_dies_with_its_box(enter):
    assert enter()["orphan"]() == "left"


def test_output_is_capped(enter):
    student = enter(output=1000)
    assert student["shout"](10**7) == "done"
    assert len(student.printed) < 1100


def test_a_disk_bomb_is_bounded(enter, boxes):
    assert enter()["disk_bomb"]() <= LIMITS.tmpfs
    if boxes.backend in WALLED:
        assert enter()["many_disk_bombs"]() <= LIMITS.tmpfs
    else:
        with pytest.raises(StudentCrash, match="MB of files"):
            enter()["many_disk_bombs"]()


def test_many_files_are_bounded(enter, boxes):
    if boxes.backend in WALLED:
        assert enter()["inode_bomb"]() <= 4096
    else:
        with pytest.raises(StudentCrash):
            enter()["inode_bomb"]()


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


def test_leaving_and_asking_are_errors_not_deaths(enter):
    student = enter()
    sources = ("import sys; sys.exit(0)", "raise KeyboardInterrupt")
    outcomes = student.load([{"id": "leave", "source": source} for source in sources])
    assert all(isinstance(outcome.fault, StudentRaised) for outcome in outcomes)
    with pytest.raises(StudentError, match="EOFError"):
        student["ask"]()


def test_a_lost_zygote_is_started_again(factories):
    boxes = next(iter(factories.values()))
    box = boxes.open()
    for pid in sorted(_family(boxes._keeper._process.pid), reverse=True):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    with pytest.raises(Infrastructure):
        box.channel.request({"op": "names", "names": []}, wall=15)
    box.close()
    box = boxes.open()
    assert box.channel.request({"op": "names", "names": []}, wall=15) == {"value": {}}
    box.close()


def test_two_hundred_boxes_leave_nothing_behind(factories):
    boxes = next(iter(factories.values()))
    boxes.limits = LIMITS
    boxes.open().close()
    files, family = len(os.listdir("/proc/self/fd")), at_rest(boxes)
    for _ in range(200):
        boxes.open().close()
    assert len(os.listdir("/proc/self/fd")) == files
    assert at_rest(boxes) == family


def test_without_namespaces_every_worker_has_a_zygote_of_its_own():
    try:
        start_ahead("process")
        assert "process" not in STARTED
    finally:
        stop()


def test_a_branch_of_a_zygote_keeps_its_own_boxes():
    for name in set(available()) & set(WALLED):
        try:
            start_ahead(name)
            one, other = BoxFactory(name, LIMITS), BoxFactory(name, LIMITS)
            first, second = one.open(), other.open()
            assert one._keeper._process is None and other._keeper._process is None  # no import of torch of their own
            one.close()
            with pytest.raises(Infrastructure):
                first.channel.request({"op": "names", "names": []}, wall=15)
            assert second.channel.request({"op": "names", "names": []}, wall=15) == {"value": {}}
            root = STARTED[name]._process.pid
            stop()
            assert _family(root) == {root}, "processes were left behind"
            assert other.open().channel.request({"op": "names", "names": []}, wall=15) == {"value": {}}  # anew
            other.close()
        finally:
            stop()


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
