"""The student's side of the channel: runs the notebook's cells and answers the judge's requests with data.

It runs in the box, beside the student's code, so nothing it says is trusted; it is only meant to be quick and polite.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import io
import itertools
import linecache
import os
import random
import socket
import sys
import traceback
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autograder.box import protocol, wire
from autograder.box.export import export, kind_of
from autograder.box.held import Ask, Teller, watching
from autograder.box.ours import ours
from autograder.box.peers import Peer
from autograder.box.printed import Capture
from autograder.box.protocol import Function, Handle, Kept, Name, ProtocolError
from autograder.box.settings import Defaults, NoGpu, without_gpu
from course_utils.explain.error_words import shapes_on

MAX_OUTPUT = 64 * 1024  # bytes printed by one cell or call that are kept
MAX_GRAPHS = 2048
MAX_HANDLES = 4096
MAX_MESSAGE = 2000
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_serial = itertools.count()
AskJudge = Callable[[dict[str, Any], protocol.Header], dict[str, Any]]


class Server:
    """One notebook's namespace, the objects and graphs that the judge may refer to, and the requests it may make."""

    def __init__(self, *, ask_vault: Ask, ask_judge: AskJudge, main: bool = False, output: int = MAX_OUTPUT) -> None:
        """`main` is for a process of its own: the namespace is `__main__` and even Ctrl-C is the student's.

        `ask_judge` sends a message for the other box while a request is answered, and gives what comes back.
        """
        self._ask_vault = ask_vault
        self._ask_judge = ask_judge
        self._peer = Peer(self._turn, teller=lambda: self._teller)
        self._teller = Teller(ask_vault)
        os.environ["MPLBACKEND"] = "Agg"
        self._main = main
        self._ours = ours() if main else None
        self._settings = Defaults() if main else None
        self._output = output
        self._caught: type[BaseException] = BaseException if main else Exception
        self._label = "" if main else f" #{next(_serial)}"
        self._module = types.ModuleType("__main__" if main else f"notebook{self._label.replace(' #', '_')}")
        self._module.__dict__.update(display=lambda *_, **__: None, get_ipython=_NoShell)
        sys.modules[self._module.__name__] = self._module
        self._cells: dict[str, str] = {}  # file name in tracebacks -> cell id
        self._kept: dict[str, Any] = {}  # names that a later cell may not take away
        self._handles: dict[int, Any] = {}
        self._graphs: OrderedDict[int, tuple[list[Tensor], list[Tensor]]] = OrderedDict()
        self._count = itertools.count(1)
        self._operations: dict[str, Callable[[dict[str, Any], list[Tensor]], Any]] = {
            "load": self._load,
            "names": self._names,
            "get": self._get,
            "call": self._call,
            "method": self._method,
            "backward": self._backward,
            "call watched": self._call_watched,
            "take": self._take,
            "files": self._files,
            "offer": self._offer,
            "part": self._part,
        }

    def close(self) -> None:
        """Forget the notebook."""
        sys.modules.pop(self._module.__name__, None)
        for filename in self._cells:
            linecache.cache.pop(filename, None)

    def handle(self, frame: bytes | bytearray) -> bytes:
        """The reply to one request; whatever goes wrong becomes a reply too."""
        header, message, tensors = protocol.unpack(frame, protocol.TO_BOX)
        self._header = header
        printed = Capture(self._output)
        try:
            with printed:
                self._prepare(message)
                reply = self._operations[message["op"]](message, tensors)
        except self._caught as error:
            reply = {"error": self._describe(error)}
        if printed.size:
            reply["printed"] = printed.text()
        try:
            return protocol.pack(reply, header.nonce, header.sequence, protocol.TO_JUDGE)
        except self._caught as error:
            return protocol.pack({"error": self._describe(error)}, header.nonce, header.sequence, protocol.TO_JUDGE)

    def _prepare(self, message: dict[str, Any]) -> None:
        """What a request asks for besides: to forget objects, and to seed the random numbers."""
        if message["op"] != "load":  # a notebook's own choices are its own
            if self._settings is None:
                torch.set_default_dtype(torch.float32)
            else:
                self._settings.restore()
        if "seed" in message:
            torch.default_generator.manual_seed(message["seed"])  # torch.manual_seed is slow: it walks the stack
            np.random.seed(message["seed"] % 2**32)
            random.seed(message["seed"])
        if "watch" in message:
            self._watch(message["watch"])
        for number in message.get("release", ()):
            self._graphs.pop(number, None)
        for number in message.get("drop", ()):
            self._handles.pop(number, None)

    # requests

    def _load(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        with warnings.catch_warnings(), without_gpu() as gpu:
            warnings.simplefilter("ignore")
            return {"value": [self._run_cell(cell, gpu) for cell in message["cells"]]}

    def _run_cell(self, cell: dict[str, Any], gpu: NoGpu) -> dict[str, Any]:
        name, source = cell["id"], cell["source"]
        filename = f"<cell {name}{self._label}>"
        self._cells[filename] = name
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        printed, failure = Capture(self._output), None
        gpu.asked = False
        try:
            with printed:
                self._execute(source, filename)
                self._module.__dict__.update(self._peer.names() if cell.get("stand_ins") else {})
        except self._caught as error:
            failure = self._describe(error)
        namespace = self._module.__dict__
        self._kept.update({key: namespace[key] for key in cell.get("keep", ()) if key in namespace})
        namespace.update(self._kept)  # scratch work below an answer does not change what the answer's name means
        if self._main and (pyplot := sys.modules.get("matplotlib.pyplot")):
            pyplot.close("all")
        return {"id": name, "error": failure, "printed": printed.text(), "gpu": gpu.asked}

    def _execute(self, source: str, filename: str) -> None:
        """Run a cell's code; like in Jupyter it may `await` outside of a function."""
        try:
            code = compile(source, filename, "exec")
        except SyntaxError:  # raised again unless that was the trouble
            code = compile(source, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            asyncio.run(eval(code, self._module.__dict__))
        else:
            exec(code, self._module.__dict__)

    def _names(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        return {"value": {name: kind_of(self._find(name)) for name in message["names"] if self._has(name)}}

    def _get(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """A name's value, or an attribute of an object."""
        value = self._resolve(message["target"])
        if "attribute" in message:
            value = getattr(value, message["attribute"])
        return {"value": export(value, self._keep)[0]}

    def _call(self, message: dict[str, Any], leaves: list[Tensor]) -> dict[str, Any]:
        function = self._resolve(message["target"])
        args, kwargs = self._resolve(message["args"]), self._resolve(message["kwargs"])
        arrays = list(_arrays([message["args"], message["kwargs"]]))
        before = [leaf.clone() for leaf in leaves]
        arrays_before = [array.copy() for array in arrays]
        inputs = [leaves[index].requires_grad_() for index in message["grad"]]
        with torch.set_grad_enabled(message["grad_enabled"]):
            value, outputs = export(function(*args, **kwargs), self._keep)
        reply: dict[str, Any] = {"value": value}
        changed = {id(leaf) for leaf, was in zip(leaves, before, strict=True) if not _same_bytes(leaf, was)}
        changed |= {id(one) for one, was in zip(arrays, arrays_before, strict=True) if not _same_array(one, was)}
        if mutated := list(_changes(function, message, args, kwargs, changed)):
            reply["mutated"] = mutated
        differentiable = [index for index, output in enumerate(outputs) if output.requires_grad]
        if differentiable and message["grad_enabled"]:
            number = next(self._count)
            self._graphs[number] = (inputs, [outputs[index] for index in differentiable])
            if len(self._graphs) > MAX_GRAPHS:
                self._graphs.popitem(last=False)
            reply |= {"call": number, "differentiable": differentiable}
        return reply

    def _backward(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """Gradients of the inputs of an earlier call; those of parameters add up in the module."""
        inputs, outputs = self._graphs[message["call"]]
        pairs = [(output, grad) for output, grad in zip(outputs, message["grads"], strict=True) if grad is not None]
        for leaf in inputs:
            leaf.grad = None
        torch.autograd.backward([pair[0] for pair in pairs], [pair[1] for pair in pairs], retain_graph=True)
        return {"value": [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in inputs]}

    def _watch(self, device: str) -> None:
        """From here on handles are of a new session, or of none."""
        self._teller.give_back()
        self._teller = Teller(self._ask_vault, device)

    def _call_watched(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """A call with handles in the place of tensors."""
        function = self._resolve(message["target"])
        args, kwargs = self._resolve(message["args"]), self._resolve(message["kwargs"])
        with watching(self._teller):
            result = function(*args, **kwargs)
            if message["opaque"] == "all":
                value: Any = self._keep(result)
            elif message["opaque"] == "last" and isinstance(result, tuple | list) and result:
                value = [*export(list(result[:-1]), self._keep)[0], self._keep(result[-1])]
            else:
                value = export(result, self._keep)[0]
        return {"value": value, "wholes": sorted(self._teller.wholes)}

    def _take(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """Have the numbers of a module's parameters and buffers kept in the vault."""
        self._teller.take(self._resolve(message["target"]), self._resolve(message["state"]))
        self._teller.flush()
        return {"value": None}

    def _method(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """What a module proxy can ask of its module."""
        module, name = self._resolve(message["target"]), message["name"]
        args = message["args"]
        if name in ("train", "eval", "double", "float", "zero_grad"):
            getattr(module, name)(*args)
            return {"value": None}
        if name == "load_state_dict":
            module.load_state_dict(args[0], strict=args[1])
            return {"value": None}
        if name == "state_dict":
            values = dict(module.state_dict())
        elif name == "grads":
            values = {key: parameter.grad for key, parameter in module.named_parameters()}
        elif name == "parameter_shapes":
            values = {key: tuple(parameter.shape) for key, parameter in module.named_parameters()}
        else:
            raise ProtocolError(f"no operation {name}")
        return {"value": export(values, self._keep)[0]}

    def _files(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """Put files of the submission (name -> bytes as a tensor) beside the notebook."""
        for name, content in message["files"].items():
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "wb") as file:
                file.write(protocol.raw_bytes(content))
        return {"value": None}

    def _offer(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """From here on these names of ours stand for themselves in another box."""
        offered = {name: self._find(name) for name in message["names"]}
        self._peer = Peer(self._turn, offered)
        return {"value": None}

    def _part(self, message: dict[str, Any], _: list[Tensor]) -> dict[str, Any]:
        """A call from the other box."""
        return {"value": self._peer.answer(message["message"])}

    def answer_peer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The same while a request is being answered, in one process."""
        return self._peer.answer(message)

    def _turn(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message to the other box, and what comes back."""
        self._teller.flush()
        return self._ask_judge(message, self._header)

    # objects

    def _has(self, name: str) -> bool:
        return name in self._module.__dict__

    def _find(self, name: str) -> Any:
        if name not in self._module.__dict__:
            raise _Missing(name)
        return self._module.__dict__[name]

    def _keep(self, value: Any) -> Handle:
        if len(self._handles) >= MAX_HANDLES:
            raise ProtocolError(f"more than {MAX_HANDLES} objects are held for the judge")
        number = next(self._count)
        self._handles[number] = value
        return Handle(number, kind_of(value))

    def _resolve(self, value: Any) -> Any:
        """The message's value with handles, names and course functions replaced by the objects they stand for."""
        kind = type(value)
        if kind is list:
            return [self._resolve(item) for item in value]
        if kind is tuple:
            return tuple([self._resolve(item) for item in value])
        if kind is dict:
            return {key: self._resolve(item) for key, item in value.items()}
        if kind is set:
            return set(value)
        if kind is Handle:
            return self._handles[value.id]
        if kind is Kept:
            return self._teller.held(value.number, value.dtype, value.shape, value.strides)
        if kind is Name:
            return self._find(value.name)
        if kind is Function:
            if self._ours is not None:
                self._ours.restore()
            module, name = value.path.split(":")
            return getattr(importlib.import_module(module), name)
        return value

    def _describe(self, error: BaseException) -> dict[str, Any]:
        """What the judge is told of an exception: its kind, its text, and the student's innermost line."""
        names = [cls.__name__ for cls in type(error).__mro__ if cls is not object]
        try:
            text = str(error)[:MAX_MESSAGE]
        except BaseException:  # the student's own __str__
            text = ""
        cell, line = None, None
        around: Mapping[str, Any] = {}
        for frame, number in traceback.walk_tb(error.__traceback__):
            filename = frame.f_code.co_filename
            if filename in self._cells:
                cell, line, around = filename, number, frame.f_locals
        if isinstance(error, SyntaxError) and error.filename in self._cells:
            cell, line, text = error.filename, error.lineno, str(error.msg)
        source = linecache.getline(cell, line or 0).strip()[:200] if cell is not None else ""
        kind = "error"
        if isinstance(error, MemoryError) or any(words in text for words in _OUT_OF_MEMORY):
            kind = "memory"
        elif isinstance(error, _Missing):
            kind = "missing"
        elif isinstance(error, NotImplementedError) and ("raise" in source or "missing the required" in text):
            kind = "stub"
        elif isinstance(error, ProtocolError):
            kind = "no data"
        return {
            "kind": kind,
            "types": names[:20],
            "message": text,
            "cell": None if cell is None else self._cells[cell],
            "line": line,
            "source": source,
            "shapes": shapes_on(source, around),
        }


class _NoShell:
    """What `get_ipython()` gives: magics and shell lines do nothing."""

    def getoutput(self, *_: object, **__: object) -> list[str]:
        """What `files = !ls` prints: nothing."""
        return []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class _Missing(NameError):
    """The notebook has no such name."""


def _same_bytes(left: Tensor, right: Tensor) -> bool:
    left = left.detach()
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.numel() == 0:
        return True
    return torch.equal(protocol.byte_view(left), protocol.byte_view(right))


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """The NumPy arrays in what a call is given."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()))


def _same_array(left: np.ndarray, right: np.ndarray) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def _changes(
    function: Any, message: dict[str, Any], args: list[Any], kwargs: dict[str, Any], changed: set[int]
) -> Iterator[str]:
    """The student's word for everything in a call that is not as it was sent: `q`, `xs[0]`, `weights['Wq']`.

    `changed` holds the ids of the tensors and arrays with other bytes; containers are held against the message's own.
    """
    if next(_differences("", [message["args"], message["kwargs"]], [args, kwargs], changed), None) is None:
        return
    try:
        called = function.forward if isinstance(function, torch.nn.Module) else function  # not `args`, but its names
        parameters = inspect.signature(called).parameters.values()
        names = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    for index, (sent, given) in enumerate(zip(message["args"], args, strict=True)):
        yield from _differences(names[index] if index < len(names) else f"argument {index + 1}", sent, given, changed)
    for name, sent in message["kwargs"].items():
        yield from _differences(name, sent, kwargs[name], changed)


def _differences(path: str, sent: Any, given: Any, changed: set[int]) -> Iterator[str]:
    if isinstance(sent, Handle | Name | Function):  # the student's own objects, or ours: no input
        return
    if type(given) is not type(sent):
        yield path
    elif isinstance(sent, list | tuple):
        if len(given) != len(sent):
            yield path
            return
        for index, (one, other) in enumerate(zip(sent, given, strict=True)):
            yield from _differences(f"{path}[{index}]", one, other, changed)
    elif isinstance(sent, dict):
        if list(given) != list(sent):
            yield path
            return
        for key, one in sent.items():
            yield from _differences(f"{path}[{key!r}]", one, given[key], changed)
    elif isinstance(sent, set):
        if given != sent:
            yield path
    elif given is not sent or id(sent) in changed:
        yield path


def serve(connection: socket.socket, vault: socket.socket, output: int = MAX_OUTPUT) -> None:
    """Answer requests until the judge hangs up; for a process of its own."""

    def ask_vault(data: bytes) -> bytes:
        wire.send(vault, data)
        reply = wire.receive(vault)
        if reply is None:
            raise MemoryError("the process that keeps the numbers of a watched call is gone: too large a tensor?")
        return reply

    def ask_judge(message: dict[str, Any], header: protocol.Header) -> dict[str, Any]:
        connection.sendall(protocol.pack({"ask": message}, header.nonce, header.sequence, protocol.TO_JUDGE))
        frame = _read_frame(connection)
        if frame is None:
            os._exit(0)  # the judge has hung up
        told: dict[str, Any] = protocol.unpack(frame, protocol.TO_BOX)[1]["told"]
        return told

    warnings.simplefilter("ignore")
    sys.stdin = io.StringIO()
    sys.argv = ["notebook"]
    server = Server(ask_vault=ask_vault, ask_judge=ask_judge, main=True, output=output)
    while True:
        frame = _read_frame(connection)
        if frame is None:
            return
        connection.sendall(server.handle(frame))


def _read_frame(connection: socket.socket) -> bytearray | None:
    head = bytearray(protocol.HEADER.size)
    if not _fill(connection, memoryview(head)):
        return None
    header = protocol.read_header(head, protocol.TO_BOX)
    frame = bytearray(len(head) + header.body)
    frame[: len(head)] = head
    return frame if _fill(connection, memoryview(frame)[len(head) :]) else None


def _fill(connection: socket.socket, view: memoryview) -> bool:
    while view:
        count = connection.recv_into(view)
        if count == 0:
            return False
        view = view[count:]
    return True
