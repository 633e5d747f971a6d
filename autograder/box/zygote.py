"""The zygote: a process that has imported everything, never runs student code, and forks one box per request.

It speaks with the judge over a socket that no box inherits: JSON messages, one per packet, the box's end of its channel
as a descriptor beside the message that opens it.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from autograder.box import jail, kernel

if TYPE_CHECKING:
    from collections.abc import Callable
from autograder.box.ours import our_modules, ours, use

WARM = ("numpy", "einops", "sympy", "matplotlib.pyplot", "torch.func", "torch._dynamo", "autograder.box.server")
_TICK = 0.1  # seconds between looks at how much memory the boxes use
_MAX_FILES = 4096
_PATIENCE = 10  # times its limit that a box may live while others use the machine


@dataclass
class _Box:
    """A running box: its first process, its limits, and why we have killed it, if we have."""

    pid: int
    limits: dict[str, float]
    home: str
    born: float
    reason: str | None = None


def main(descriptor: int) -> None:
    """What the zygote's process runs: take the plan, build the outer jail where that is ours to do, warm up, serve."""
    control = socket.socket(fileno=descriptor)
    message = json.loads(control.recv(65536))
    fields = message["plan"]
    for name in ("readable", "hidden", "view", "ours"):
        fields[name] = tuple(tuple(item) if isinstance(item, list) else item for item in fields[name])
    plan = jail.Plan(**fields)
    use(plan.ours)
    if plan.backend == "namespaces":
        jail.enter_outer(plan)
        sys.path.insert(0, jail.VIEW)
        for name in ("autograder", "autograder.box"):  # from now on at their places in the jail
            sys.modules[name].__path__ = [f"{jail.VIEW}/{name.replace('.', '/')}"]
    try:
        if message["warm"]:
            warm_up()
        Zygote(control, plan).run()
    finally:
        if plan.scratch:
            shutil.rmtree(plan.scratch, ignore_errors=True)
    os._exit(0)  # there is nothing to tidy up, and torch would take its time


def warm_up() -> None:
    """Import what students use and what torch imports late; start no thread and no backward pass."""
    gc.disable()  # there is no garbage in imports
    import torch
    from torch import nn

    torch.set_num_threads(1)
    for name in WARM:
        importlib.import_module(name)
    for module in map(importlib.import_module, our_modules()):
        if (read_ahead := getattr(module, "read_ahead", None)) is not None:  # what boxes would read, each for itself
            read_ahead()
    from matplotlib import pyplot

    pyplot.figure().add_subplot().set_title("warm")
    pyplot.gcf().canvas.draw()
    pyplot.close("all")
    layer = nn.Linear(2, 2)
    for parameter in layer.parameters():
        parameter.grad = torch.zeros_like(parameter)
    torch.optim.Adam(layer.parameters()).step()
    torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2)).softmax(-1)
    nn.GRU(2, 2)(torch.ones(1, 1, 2))
    nn.LayerNorm(2)(layer(torch.ones(1, 2)))
    _watch_once()
    torch.manual_seed(0)  # formats the stack, and so reads the sources of all that is on it
    x, y = importlib.import_module("sympy").symbols("x y")
    importlib.import_module("sympy").lambdify((x, y), (x + y) ** 2 * x)(1.0, 2.0)
    load_data_in_one_process()
    leave_code_uncompiled()
    wake_loops_through_pipes()
    tasks = len(os.listdir("/proc/self/task"))
    if tasks != 1:
        raise RuntimeError(f"the zygote has {tasks} threads: a fork would lose them")
    ours()
    gc.freeze()
    gc.enable()
    kernel.use_huge_pages()


def _watch_once() -> None:
    """One watched call, for what torch imports when it first meets tensors without numbers."""
    import torch

    from autograder.box.held import Teller, watching
    from autograder.box.vault import Vault

    vault = Vault()
    vault.answer_judge({"op": "resume", "own": False})
    with watching(Teller(vault.answer_box)):
        x = torch.ones(1, 2, 2)
        torch.nn.functional.scaled_dot_product_attention(x, x, x)


def load_data_in_one_process() -> None:
    """Have every `DataLoader` do without workers: theirs need sockets and shared memory, and would wait for ever."""
    from torch.utils.data import DataLoader

    original = DataLoader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def without_workers(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            given.arguments.pop(name, None)
        original(*given.args, **given.kwargs)

    DataLoader.__init__ = without_workers  # type: ignore[method-assign]


def leave_code_uncompiled() -> None:
    """Have `torch.compile` give back what it is given: there is no compiler in a box, and no time to wait for one."""
    import torch

    def compile(model: Callable[..., Any] | None = None, **_: Any) -> Any:
        return (lambda function: function) if model is None else model

    torch.compile = functools.wraps(torch.compile)(compile)


def wake_loops_through_pipes() -> None:
    """Have asyncio's loops wake themselves through a pipe: a box refuses the pair of sockets that they would take."""
    import asyncio

    def make_pipe(loop: Any) -> None:
        ours, theirs = os.pipe()
        loop._ssock, loop._csock = _PipeEnd(ours), _PipeEnd(theirs)
        loop._internal_fds += 1
        loop._add_reader(ours, loop._read_from_self)

    asyncio.SelectorEventLoop._make_self_pipe = make_pipe  # type: ignore[attr-defined]


class _PipeEnd:
    """As much of a socket as a loop needs to wake itself."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def recv(self, size: int) -> bytes:
        return os.read(self._descriptor, size)

    def send(self, data: bytes) -> int:
        return os.write(self._descriptor, data)

    def close(self) -> None:
        os.close(self._descriptor)


class Zygote:
    """Forks boxes, watches over them, and reports how each ended."""

    def __init__(self, control: socket.socket, plan: jail.Plan) -> None:
        self._control = control
        self._plan = plan
        self._boxes: dict[int, _Box] = {}
        self._branches: set[int] = set()
        self._own_namespace: int | None = None
        if plan.backend == "process":
            kernel.adopt_orphans()
        else:
            self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._libraries = _used(os.getpid())
        self._woken, waker = socket.socketpair()
        self._waker = waker
        waker.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the judge, which then hangs up

    def run(self) -> None:
        """Serve until the judge hangs up, then leave nothing behind."""
        self._send({"ready": True})
        while True:
            timeout = _TICK if self._boxes else None
            readable, _, _ = select.select([self._control, self._woken], [], [], timeout)
            if self._woken in readable:
                self._woken.recv(4096)
            if self._control in readable:
                data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 2)
                if not data:
                    break
                self._obey(json.loads(data), descriptors)
            self._bury()
            self._watch()
        for box in self._boxes.values():
            self._kill(box, "closed")
        self._bury(wait=True)

    def _send(self, message: dict[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())

    def _obey(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if message["op"] == "open":
            self._open(message["box"], message["limits"], descriptors, message["vault"])
        elif message["op"] == "branch":
            self._branch(message["first_user"], descriptors[0])
        elif message["op"] == "waited":
            box = self._boxes.get(message["box"])
            self._send({"box": message["box"], "waited": _waited(box.pid) if box is not None else 0.0})
        elif (box := self._boxes.get(message["box"])) is not None:
            self._kill(box, "closed")

    def _branch(self, first_user: int, control: int) -> None:
        """Fork another zygote, as warm and as innocent as this one, that obeys whoever is at the end of `control`."""
        if self._own_namespace is not None:
            kernel.setns(self._own_namespace, kernel.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            try:
                for connection in (self._control, self._woken, self._waker):
                    connection.close()
                Zygote(socket.socket(fileno=control), replace(self._plan, first_user=first_user)).run()
            finally:
                os._exit(0)
        os.close(control)
        self._branches.add(pid)

    def _open(self, serial: int, limits: dict[str, float], channels: list[int], vault: bool) -> None:
        """A box at the end of two channels: the judge's, and one between a box and its vault."""
        ours, theirs = os.pipe()
        pid = jail.fork_first_process(self._own_namespace)
        if pid == 0:
            self._be_a_box(serial, limits, channels, theirs, vault)
        os.close(theirs)
        for channel in channels:
            os.close(channel)
        with os.fdopen(ours, "rb") as pipe:  # written by our own code, closed before the student's runs
            news = pipe.read()
        home = f"{self._plan.scratch}/{serial}"
        self._boxes[serial] = _Box(pid, limits, home, time.monotonic(), None if news == b"ready" else "setup")
        self._send({"box": serial, "opened": news == b"ready", "detail": news.decode("utf-8", "replace")})

    def _be_a_box(self, serial: int, limits: dict[str, float], channels: list[int], news: int, vault: bool) -> None:
        """The forked child: walls, then the server, and never back."""
        code = 1
        try:
            for connection in (self._control, self._woken, self._waker):
                connection.detach()  # their numbers are about to be used otherwise
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            null = os.open(os.devnull, os.O_RDWR)
            for number, descriptor in enumerate((null, null, null, channels[0], news, channels[1])):
                os.dup2(descriptor, 100 + number)  # out of each other's way first
            for number in range(6):
                os.dup2(100 + number, number, inheritable=number < 3)
            os.closerange(6, os.sysconf("SC_OPEN_MAX"))
            try:
                jail.enter_inner(self._plan, limits, serial)
            except OSError as error:
                os.write(4, str(error).encode())
                return
            os.write(4, b"ready")
            os.close(4)
            if not limits["autograd"] and not vault:
                from autograder.box.no_gradients import take_out_autograd

                take_out_autograd()
            judge, other = socket.socket(fileno=3), socket.socket(fileno=5)
            if vault:
                from autograder.box.vault import serve as keep_numbers

                keep_numbers(judge, other)
            else:
                from autograder.box.server import serve

                serve(judge, other, int(limits["output"]))
            code = 0
        finally:
            os._exit(code)

    def _bury(self, wait: bool = False) -> None:
        """Reap what has died and report boxes."""
        while self._boxes or not wait:
            try:
                pid, status, usage = os.wait4(-1, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for serial, box in list(self._boxes.items()):
                if box.pid == pid:
                    del self._boxes[serial]
                    self._report(serial, box, status, usage)

    def _report(self, serial: int, box: _Box, status: int, usage: resource.struct_rusage) -> None:
        if self._plan.backend == "process":
            self._kill_orphans()
            shutil.rmtree(box.home, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        reason = box.reason
        if reason is None and code == -signal.SIGKILL and usage.ru_utime + usage.ru_stime >= box.limits["cpu"] - 1:
            reason = "cpu"
        try:
            self._send({"box": serial, "ended": reason or "died", "code": code})
        except OSError:  # the judge has hung up
            pass

    def _watch(self) -> None:
        """End boxes that use more than they may, all their processes together."""
        for box in self._boxes.values():
            if box.reason is not None:
                continue
            if time.monotonic() - box.born > _PATIENCE * box.limits["wall_box"]:  # the judge counts requests alone
                self._kill(box, "wall")
            family = _family(box.pid)
            if self._plan.backend == "process":
                family |= self._orphans()
                if _disk_use(box.home) > box.limits["tmpfs"]:
                    self._kill(box, "disk")
            if len(family) > box.limits["processes"]:  # the kernel sees to it, but not where a box's user is root
                self._kill(box, "processes")
            if sum(max(_used(pid) - self._libraries, 0) for pid in family) > box.limits["memory"]:
                self._kill(box, "memory")

    def _kill(self, box: _Box, reason: str) -> None:
        box.reason = box.reason or reason
        if self._plan.backend == "process":
            for pid in _family(box.pid):
                _signal(pid, signal.SIGSTOP)
            for pid in _family(box.pid) - {box.pid}:
                _signal(pid, signal.SIGKILL)
        _signal(box.pid, signal.SIGKILL)

    def _orphans(self) -> set[int]:
        """Processes that boxes have left to us; only where a box has no process namespace of its own."""
        known = {box.pid for box in self._boxes.values()} | self._branches
        found: set[int] = set()
        for pid in _children(os.getpid()) - known:
            found |= _family(pid)
        return found

    def _kill_orphans(self) -> None:
        deadline = time.monotonic() + 5
        while (orphans := self._orphans()) and time.monotonic() < deadline:
            for pid in orphans:
                _signal(pid, signal.SIGKILL)
            for pid in _children(os.getpid()) & orphans:
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    continue


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _children(pid: int) -> set[int]:
    found: set[int] = set()
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found.update(map(int, file.read().split()))
    except OSError:  # gone meanwhile
        pass
    return found


def _family(pid: int) -> set[int]:
    """A process and all its descendants."""
    found, new = {pid}, {pid}
    while new:
        new = set().union(*map(_children, new)) - found
        found |= new
    return found


def _used(pid: int) -> int:
    """Bytes of main memory that a process has filled, files aside; what it shares with its parent counts for both."""
    total = 0
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith(("RssAnon:", "RssShmem:", "VmSwap:")):
                    total += int(line.split()[1]) * 1024
    except OSError:  # gone meanwhile
        return 0
    return total


def _waited(pid: int) -> float:
    """Seconds that a process was ready to run and had no core to run on; none where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _disk_use(folder: str) -> float:
    """Bytes of files below a folder; endless if there are too many to count."""
    total, count = 0.0, 0
    for path, folders, files in os.walk(folder):
        count += len(folders) + len(files)
        if count > _MAX_FILES:
            return float("inf")
        for name in files:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except OSError:
                continue
    return total
