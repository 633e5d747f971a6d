"""The student's objects as a test sees them: stand-ins that send data to the box and give plain new data back."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from autograder.box import ours
from autograder.box.channel import NO_ANSWER, Channel
from autograder.box.protocol import MAX_AXES, Function, Handle, Kept, Name, ProtocolError, plain_array
from autograder.judge.faults import as_exception, checked, one_line
from autograder.judge.relay import Relay
from autograder.judge.verdicts import StudentCrash
from autograder.places import THE_COURSE
from course_utils.checking.compare import NotAnswered, Wrong

MAX_PRINTED = 64 * 1024
MAX_PARAMETERS = 400  # of a module that a test looks into, one by one
MAX_NUMBERS = 2 * 2**20  # in all of them together: a test may make as many of its own
MAX_NAME = 200
MEASURES: dict[str, Callable[..., Any]] = {}  # an instrument of ours -> what the judge does in its place


@dataclass(frozen=True)
class CellOutcome:
    """What became of one cell: `fault` is None, or the exception whose text tells the student what happened."""

    id: str
    fault: Exception | None
    printed: str = ""
    on_cpu: bool = False  # it asked for a GPU, and there is none


class Student:
    """A notebook in a box: `student["f"]` is a stand-in for the student's object of that name."""

    def __init__(
        self, channel: Channel, *, wall: float | None = None, arrays: str = THE_COURSE.rng, autograd: bool = True
    ) -> None:
        """`arrays` is what tests get for a student's NumPy arrays and scalars: themselves, or in a course on torch
        tensors and Python numbers. `autograd` is whether there is any in the box.
        """
        self.channel = channel
        self.autograd = autograd
        self._as_tensors = arrays == "torch"
        self.wall = wall  # seconds for each request; may be changed between requests
        self.printed = ""
        self._known: dict[str, str | None] = {}  # what the names are, as far as they were asked for
        self._answers: set[str] = set()  # names that cells were loaded for: asked for together
        self._seed: int | None = None  # to be sent with the next request
        self.watched_on: str | None = None  # as well: the device of a new session of watched calls
        self.relay: Relay | None = None  # the way to parts in another box
        self._facts: dict[Any, Any] = {}  # what functions of ours have told that need be asked but once
        self._graphs: list[int] = []  # what the box may forget, told with the next request
        self._handles: list[int] = []

    def load(self, cells: Iterable[Mapping[str, Any]], *, wall: float | None = None) -> list[CellOutcome]:
        """Run cells in order, each with `id`, `source` and names to `keep`; one that fails does not stop the next."""
        sent = [dict(cell) for cell in cells]
        self._known.clear()
        self._facts.clear()
        self._answers.update(name for cell in sent for name in cell.get("keep", ()))
        replies = checked(self.ask({"op": "load", "cells": sent}, wall), list)
        if len(replies) != len(sent):
            raise StudentCrash(NO_ANSWER)
        outcomes = []
        for cell, reply in zip(sent, replies, strict=True):
            error, printed = checked(reply, dict).get("error"), checked(reply.get("printed"), str)
            fault = None if error is None else as_exception(error)
            outcomes.append(CellOutcome(cell["id"], fault, printed[:MAX_PRINTED], reply.get("gpu") is True))
        return outcomes

    def ping(self) -> None:
        """Nothing but an answer: raises where the box is gone or spoilt."""
        self.kinds([])

    def kinds(self, names: Iterable[str]) -> dict[str, str]:
        """Which of the names exist, and whether each is a callable, class, module or object."""
        kinds: dict[str, str] = checked(self.ask({"op": "names", "names": list(names)}), dict)
        return kinds

    def __contains__(self, name: str) -> bool:
        return name in self.kinds([name])

    def __getitem__(self, name: str) -> Any:
        """A proxy of the student's function or class, or the value if it is data; `NotAnswered` if there is none."""
        if name not in self._known:
            unknown = sorted({name, *self._answers} - self._known.keys())
            kinds = self.kinds(unknown)
            self._known.update({one: kinds.get(one) for one in unknown})
        kind = self._known[name]
        if kind is None:
            raise NotAnswered(f"`{name}` is not defined in your notebook.")
        if kind in ("callable", "class"):
            return FunctionProxy(self, Name(name), name)
        return self.lift(self.ask({"op": "get", "target": Name(name)}), name)

    def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function of ours on the student's side, where it may touch the student's objects.

        What can be measured where the student's code has no numbers is measured there instead.
        """
        if (measure := MEASURES.get(f"{function.__module__}:{function.__name__}")) is not None:
            return measure(self, *args, **kwargs)
        if not getattr(function, "is_fact", False):
            return self.beside(function, *args, **kwargs)
        key = function.__module__, function.__name__, _plain_key(args), _plain_key([*kwargs.items()])
        if key not in self._facts:
            self._facts[key] = self.beside(function, *args, **kwargs)
        return copy.deepcopy(self._facts[key])

    def beside(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function of ours in the box; student code is in the same process and can lie to it."""
        return self._call(lower(function), function.__name__, args, kwargs)

    def add_files(self, files: Mapping[str, bytes]) -> None:
        """Put files beside the notebook."""
        content = {name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in files.items() if data}
        empty = {name: torch.empty(0, dtype=torch.uint8) for name in files.keys() - content.keys()}
        self.ask({"op": "files", "files": content | empty})

    def seed(self, seed: int) -> None:
        """Seed torch, numpy and random on the student's side, with the next request: a new case begins."""
        self._seed = seed
        if self.relay is not None:
            self.relay.begin()

    def ask(self, message: dict[str, Any], wall: float | None = None) -> Any:
        """The value that the box replies to a message."""
        return self.exchange(message, wall)["value"]

    def exchange(self, message: dict[str, Any], wall: float | None = None) -> dict[str, Any]:
        """The box's whole reply to a message."""
        if self._seed is not None:
            message["seed"], self._seed = self._seed, None
        if self.watched_on is not None:
            message["watch"], self.watched_on = self.watched_on, None
        if self._graphs:
            message["release"], self._graphs = self._graphs, []
        if self._handles:
            message["drop"], self._handles = self._handles, []
        reply = self.channel.request(message, wall=self.wall if wall is None else wall)
        if "printed" in reply and len(self.printed) < MAX_PRINTED:
            self.printed += checked(reply["printed"], str)[: MAX_PRINTED - len(self.printed)]
        if "error" in reply:
            raise as_exception(reply["error"])
        return reply

    def _call(self, target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves: list[Tensor] = []
        enabled = torch.is_grad_enabled()
        message = {
            "op": "call",
            "target": target,
            "args": [lower(value, leaves) for value in args],
            "kwargs": {key: lower(value, leaves) for key, value in kwargs.items()},
            "grad_enabled": enabled,
        }
        message["grad"] = grad = [i for i, leaf in enumerate(leaves) if leaf.requires_grad] if enabled else []
        reply = self.exchange(message)
        if changed := reply.get("mutated"):
            first = checked(checked(changed, list)[0], str)
            if type(target) is Function:  # ours, which calls the student's
                raise Wrong(f"your code changed what it was given (`{one_line(first)}`) in place: work on a copy.")
            raise Wrong(f"`{name}` changed its input `{one_line(first)}` in place: work on a copy.")
        value = reply["value"]
        if "call" in reply:
            graph = _Graph(self, checked(reply["call"], int))
            value = _attach(graph, value, checked(reply.get("differentiable"), list), [leaves[i] for i in grad])
        return self.lift(value, name)

    def lift(self, value: Any, name: str) -> Any:
        """The value with proxies in the place of handles, and arrays as the course has them."""
        kind = type(value)
        if kind is list:
            return [self.lift(item, name) for item in value]
        if kind is tuple:
            return tuple([self.lift(item, name) for item in value])
        if kind is dict:
            return {key: self.lift(item, name) for key, item in value.items()}
        if kind is Handle:
            if value.kind == "module":
                return ModuleProxy(self, value, name)
            return (ObjectProxy if value.kind == "object" else FunctionProxy)(self, value, name)
        if kind is Kept:  # there is no watch that could tell what it is
            raise StudentCrash(NO_ANSWER)
        if self._as_tensors and isinstance(value, np.ndarray):
            return torch.from_numpy(value)
        return value.item() if self._as_tensors and isinstance(value, np.generic) else value


class Proxy:
    """Something of the student's that stays in the box."""

    def __init__(self, student: Student, target: Handle | Name, name: str) -> None:
        self._student = student
        self._target = target
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        """A public attribute of the student's object, as data or as another proxy."""
        tensors_own = isinstance(self._target, Handle) and self._target.kind != "module" and hasattr(Tensor, attribute)
        if (
            attribute.startswith("_") or tensors_own
        ):  # a test that takes this for a tensor must not ask the student's object
            raise AttributeError(attribute)
        message = {"op": "get", "target": self._target, "attribute": attribute}
        return self._student.lift(self._student.ask(message), f"{self.__name__}.{attribute}")

    def __repr__(self) -> str:
        return f"<the student's {self.__name__}>"

    def __del__(self) -> None:
        target = self.__dict__.get("_target")
        if isinstance(target, Handle):
            self._student._handles.append(target.id)


class ObjectProxy(Proxy):
    """An object that is neither data nor callable; it can be passed back in."""


class FunctionProxy(Proxy):
    """A function, a class, or anything callable."""

    @property
    def is_class(self) -> bool:
        """Whether it makes objects."""
        known = self._student._known.get(self.__name__) if isinstance(self._target, Name) else self._target.kind
        return known == "class"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._student._call(self._target, self.__name__, args, kwargs)


class ModuleProxy(FunctionProxy):
    """An `nn.Module`; weights and gradients pass as copies."""

    def state_dict(self) -> dict[str, Tensor]:
        """The module's parameters and buffers."""
        return self._named("state_dict", lambda value: isinstance(value, Tensor))

    def load_state_dict(self, state: Mapping[str, Tensor], strict: bool = True) -> None:
        """Put weights into the module."""
        self._method("load_state_dict", dict(state), strict)

    def train(self, mode: bool = True) -> ModuleProxy:
        """Training mode."""
        return self._changed("train", mode)

    def eval(self) -> ModuleProxy:
        """Evaluation mode."""
        return self._changed("eval")

    def double(self) -> ModuleProxy:
        """All parameters in float64."""
        return self._changed("double")

    def float(self) -> ModuleProxy:
        """All parameters in float32."""
        return self._changed("float")

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self._method("zero_grad")

    def grads(self) -> dict[str, Tensor | None]:
        """The gradient of each parameter, after a backward pass on this side."""
        return self._named("grads", lambda value: value is None or isinstance(value, Tensor))

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter."""
        return self._named("parameter_shapes", _is_shape)

    def _method(self, name: str, *args: Any) -> Any:
        lowered = [lower(value) for value in args]
        return self._student.ask({"op": "method", "target": self._target, "name": name, "args": lowered})

    def _named(self, method: str, fits: Callable[[Any], bool]) -> dict[str, Any]:
        result: dict[str, Any] = checked(self._method(method), dict)
        if not all(type(name) is str and len(name) <= MAX_NAME and fits(value) for name, value in result.items()):
            raise StudentCrash(NO_ANSWER)
        if len(result) > MAX_PARAMETERS:
            raise Wrong(f"`{self.__name__}` has {len(result)} parameters and buffers: it should have a handful.")
        if (numbers := sum(map(_numbers, result.values()))) > MAX_NUMBERS:
            raise Wrong(f"`{self.__name__}` has {numbers} numbers in its parameters: it should have far fewer.")
        return result

    def _changed(self, name: str, *args: Any) -> ModuleProxy:
        self._method(name, *args)
        return self


def _is_shape(value: Any) -> bool:
    return type(value) is tuple and len(value) <= MAX_AXES and all(type(size) is int and size >= 0 for size in value)


def _numbers(value: Tensor | tuple[int, ...] | None) -> int:
    """How many numbers a parameter has; an axis of length 0 hides no other."""
    shape = value.shape if isinstance(value, Tensor) else value or ()
    return math.prod(max(size, 1) for size in shape)


class _Graph:
    """A graph that the box keeps as long as something here may call backward."""

    def __init__(self, student: Student, number: int) -> None:
        self.student = student
        self.number = number

    def __del__(self) -> None:
        self.student._graphs.append(self.number)


class _Remote(torch.autograd.Function):
    """A node of the judge's graph whose backward asks the box for the vector-Jacobian product."""

    @staticmethod
    def forward(ctx: Any, graph: _Graph, outputs: list[Tensor], _: Tensor, *leaves: Tensor) -> tuple[Tensor, ...]:
        ctx.graph = graph
        ctx.likes = [(leaf.shape, leaf.dtype) for leaf in leaves]
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        nothing = (None, None, None)
        if all(grad is None for grad in grads):
            return (*nothing, *[None] * len(ctx.likes))
        message = {"op": "backward", "call": ctx.graph.number, "grads": list(grads)}
        result = checked(ctx.graph.student.ask(message), list)
        if [(grad.shape, grad.dtype) if isinstance(grad, Tensor) else None for grad in result] != ctx.likes:
            raise StudentCrash(NO_ANSWER)
        return (*nothing, *result)


def _attach(graph: _Graph, value: Any, indices: list[Any], leaves: list[Tensor]) -> Any:
    """The value with its differentiable tensors made children of `leaves` in the judge's graph."""
    tensors = list(tensors_in(value))
    chosen = [index for index in indices if type(index) is int and 0 <= index < len(tensors)]
    outputs = [tensors[index] for index in chosen]
    continuous = all(output.is_floating_point() or output.is_complex() for output in outputs)
    if not outputs or len(set(chosen)) != len(indices) or not continuous:
        raise StudentCrash(NO_ANSWER)
    anchor = torch.zeros((), requires_grad=True)  # a module's output has a gradient even when no input does
    attached = _Remote.apply(graph, outputs, anchor, *leaves)
    for index, output in zip(chosen, attached, strict=True):
        tensors[index] = output
    return _replaced(value, iter(tensors))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of a value, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)


def _replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, list):
        return [_replaced(item, tensors) for item in value]
    if isinstance(value, tuple):
        return tuple([_replaced(item, tensors) for item in value])
    if isinstance(value, dict):
        return {key: _replaced(item, tensors) for key, item in value.items()}
    return value


def lower(value: Any, leaves: list[Tensor] | None = None) -> Any:
    """An argument as data; `leaves` gathers its tensors in order."""
    if isinstance(value, Tensor):
        if leaves is not None:
            leaves.append(value)
        return value
    if value is None or type(value) in (bool, int, float, str, complex) or type(value) is torch.dtype:
        return value
    if isinstance(value, np.ndarray | np.generic):
        return _array(value)
    if isinstance(value, list):
        return [lower(item, leaves) for item in value]
    if isinstance(value, tuple):
        return tuple([lower(item, leaves) for item in value])
    if isinstance(value, Mapping):
        return {key: lower(item, leaves) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return set(value)
    if isinstance(value, Proxy):
        return value._target
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    if ours.is_ours(module) and getattr(sys.modules.get(module), name, None) is value:
        return Function(f"{module}:{name}")
    if module.partition(".")[0] == "pandas":
        raise TypeError(f"a pandas {type(value).__name__} cannot be sent to the box: send its NumPy arrays")
    raise TypeError(f"{value!r} cannot be sent to the box: only data, the student's own objects, "
                    f"and module-level functions of {', '.join(ours.PACKAGES)} can")  # fmt: skip


def _plain_key(value: Any) -> Any:
    """What tells the arguments of a fact from others: numbers, words, and names of the student's."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain_key, value))
    if isinstance(value, Proxy) and type(value._target) is Name:
        return value._target
    if value is None or type(value) in (bool, int, float, str):
        return type(value), value
    raise TypeError(f"{value!r} cannot be asked a fact about: only numbers, words and the student's names can")


def _array(value: np.ndarray | np.generic) -> Any:
    """An array or scalar of numbers; others are refused where the test sends them."""
    try:
        plain = plain_array(np.asarray(value))
    except ProtocolError as error:
        raise TypeError(f"{value!r} cannot be sent to the box: {error}") from None
    return plain if isinstance(value, np.ndarray) else plain[()]
