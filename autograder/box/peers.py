"""Two boxes that work together by data alone: what one has, the other has stand-ins for.

Where earlier answers are not right, student code is tried with the course's own. Those are in another box, and never in
this one: a function is asked for its result and its vector-Jacobian products, a module's parameters are here and its
code is there (`stand_ins.py`). Both sides are a `Peer`. A message is a call or the answer to one; while a side waits
for an answer it may get a call, since a part may call the model that it was given. The judge carries the messages.

The side with the reference is `closed`: it tells what it was asked to offer and what came of it, nothing about code.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autograder.box.held import Held
from autograder.box.protocol import Handle, Kept
from autograder.box.stand_ins import (
    Exchange,
    Shape,
    Shared,
    StandInOptimizer,
    Thing,
    built,
    class_for,
    constructible,
    function_for,
    heard_parts,
    is_plain,
    loud,
    methods_of,
    origin,
    parameters_of,
    shape_of,
    signature_of,
)

Message = dict[str, Any]
TENSOR, OBJECT = "callable", "object"  # what a handle in a message counts: its tensors, or its objects
MAX_GRAPHS = 2048
MAX_OBJECTS = 2048
MAX_TEXT = 400
MAX_DEPTH = 32
_SEQUENCES: tuple[Any, ...] = (list, deque, range, type({}.keys()), type({}.values()), type({}.items()))
# What the closed side may be handed in the place of data, by the annotation of the parameter: whoever could hand a
# pretended tensor to a function would see what it does with it.
HANDED = {nn.Module: ("Module", "Any"), StandInOptimizer: ("Optimizer",), Thing: ("Any",), object: ("Callable",)}


class NotServed(TypeError):
    """Something that cannot be a part of a call to the other side."""


class Peer:
    """One of the two sides."""

    def __init__(
        self,
        turn: Callable[[Message], Message],
        offered: Mapping[str, Any] | None = None,
        teller: Callable[[], Any] = lambda: None,
    ) -> None:
        """`turn` sends a message and gives the next one that comes back. What is `offered` makes this side closed.

        `teller` gives the box's way to the vault, for watched calls.
        """
        self._turn = turn
        self._offered = dict(offered or {})
        self.closed = offered is not None
        self._teller = teller
        self._lock = threading.RLock()
        self._count = itertools.count(1)
        self._mine: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}  # id of an object of mine -> its number
        self._shared: dict[int, Shared] = {}  # modules of mine that the other side knows
        self._theirs: dict[int, Shared] = {}  # and of theirs
        self._classes: dict[str, type] = {}
        self._graphs: OrderedDict[int, tuple[list[Tensor], list[Tensor]]] = OrderedDict()
        self._gone: list[int] = []  # graphs over there that nobody needs any more

    # asking

    def names(self) -> dict[str, Any]:
        """Stand-ins for everything that the other side offers."""
        answer = self.ask({"do": "describe"})
        return dict(_Reader(self, answer).lift(answer["value"]))

    def call(self, target: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call over there; `target` is a stand-in module, or a number."""
        writer = _Writer(self, *args, *kwargs.values())
        message: Message = {
            "do": "call",
            "target": writer.module(target, called=True) if isinstance(target, nn.Module) else target,
            "method": method,
            "args": writer.lower(list(args)),
            "kwargs": writer.lower(kwargs),
            "objects": writer.objects,
            "enabled": torch.is_grad_enabled(),
            "dtype": torch.get_default_dtype(),
        }
        _check_devices([*writer.tensors, *(p for _, module, _ in writer.modules for *_, p in parameters_of(module))])
        exchange = Exchange(self, message, writer.tensors, writer.leaves())
        outputs = exchange.outputs()
        reader = _Reader(self, {**exchange.answer, "tensors": outputs})
        for (share, module, path), state in zip(writer.modules, exchange.answer["states"], strict=True):
            share.take(state, reader.tensors, module, path)
        return reader.lift(exchange.answer["value"])

    def get(self, number: int, what: str, *args: Any) -> Any:
        """An attribute of an object over there, or what one of its special methods gives."""
        answer = self.ask({"do": "get", "target": number, "what": what, "args": list(args)})
        return _Reader(self, answer).lift(answer["value"])

    def step(self, number: int, settings: list[Any], grads: list[list[Tensor | None]]) -> list[list[Tensor]]:
        """A step of an optimizer over there with these settings and gradients; the parameters after it."""
        values: list[list[Tensor]] = self.ask({"do": "step", "target": number, "groups": settings, "grads": grads})[
            "value"
        ]
        return values

    def ask(self, message: Message) -> Message:
        """One call and its answer, with the calls that come in between; raises what was raised there."""
        with self._lock:
            message["drop"], self._gone = self._gone, []
            message["rng"] = torch.get_rng_state()
            reply = self._turn(message)
            while "do" in reply:
                reply = self._turn(self.answer(reply))
            if reply["rng"] is not None:
                torch.set_rng_state(reply["rng"])
        if "raised" in reply:
            raise _raised(*reply["raised"])
        return reply

    def forget(self, graph: int) -> None:
        """A graph over there is not needed any more; told with the next message."""
        self._gone.append(graph)

    def outgoing(self, tensors: list[Any]) -> list[Any]:
        """Tensors as they pass: in a watched call by their handles."""
        settled = [tensor.teller.settled(tensor) if _is_watched(tensor) else tensor for tensor in tensors]
        return [_by_handle(tensor) if isinstance(tensor, Held) else tensor for tensor in settled]

    def incoming(self, tensor: Any) -> Any:
        """A tensor as it is here; in a watched call a handle."""
        if type(tensor) is not Kept:
            return tensor
        return self._teller().held(tensor.number, tensor.dtype, tensor.shape, tensor.strides)

    # answering

    def answer(self, message: Message) -> Message:
        """The answer to a call; whatever goes wrong becomes one too."""
        answers = {
            "describe": self._describe,
            "call": self._call,
            "vjp": self._vjp,
            "step": self._step,
            "get": self._get,
        }
        try:
            for number in message["drop"]:
                self._graphs.pop(number, None)
            torch.set_rng_state(message["rng"])
            answer = answers[message["do"]](message)
        except Exception as error:
            answer = {"raised": _told(error)}
        now, before = torch.get_rng_state(), message.get("rng")
        return answer | {"rng": None if isinstance(before, Tensor) and torch.equal(now, before) else now}

    def _describe(self, _: Message) -> Message:
        writer = _Writer(self)
        return {"value": writer.lower(self._offered), "objects": writer.objects, "tensors": writer.tensors}

    def _call(self, message: Message) -> Message:
        if "count" not in message:
            return self._called(message, _Reader(self, message))
        with ExitStack() as afterwards:  # of a watched call nothing is kept
            for about in message["objects"]:
                if "yours" in about and about["is"] == "module":
                    share = self.shared(about["yours"])
                    afterwards.enter_context(share.forgetting(share.part("")))
            answer = self._called(message, _Reader(self, message))
            if message["count"] and any(about["is"] == "module" for about in answer["objects"]):
                raise NotServed("in a watched call a part cannot make a module of tensors")
            return answer

    def _called(self, message: Message, reader: _Reader) -> Message:
        for index in message["grad"]:
            reader.tensors[index].requires_grad_()
        function = self._function(message["target"], message["method"], reader)
        args, kwargs = reader.lift(message["args"]), reader.lift(message["kwargs"])
        if self.closed:
            _check_handed(function, args, kwargs)
        with _settings(message), reader.installed(message["leaves"]) as leaves, _counted(message) as tally:
            value = function(*args, **kwargs)
        writer = _Writer(self)
        answer: Message = {"value": writer.lower(value)}
        outputs = [index for index, tensor in enumerate(writer.tensors) if tensor.requires_grad]
        answer |= {"graph": None, "differentiable": outputs, "objects": writer.objects}
        if outputs and message["enabled"]:
            answer["graph"] = next(self._count)
            inputs = [*(reader.tensors[index] for index in message["grad"]), *leaves]
            self._graphs[answer["graph"]] = (inputs, [writer.tensors[index] for index in outputs])
            if len(self._graphs) > MAX_GRAPHS:
                self._graphs.popitem(last=False)
        answer["states"] = [share.told(writer.put, module, path) for share, module, path in reader.modules]
        return answer | {"tensors": self.outgoing(writer.tensors), "count": tally and tally.to_data()}

    def _function(self, target: Any, method: str, reader: _Reader) -> Callable[..., Any]:
        if isinstance(target, Handle):
            module: nn.Module = reader.lift(target)
            if method not in ("forward", *methods_of(type(module))):
                raise NotServed(f"`{method}` cannot be called from here")
            called: Callable[..., Any] = module if method == "forward" else getattr(module, method)
            return called
        found = self._mine[target]
        if isinstance(found, nn.Module) or not callable(found):
            raise NotServed("this cannot be called from here")
        return found

    def _vjp(self, message: Message) -> Message:
        inputs, outputs = self._graphs[message["graph"]]
        pairs = [(output, grad) for output, grad in zip(outputs, message["tensors"], strict=True) if grad is not None]
        found = torch.autograd.grad([p[0] for p in pairs], inputs, [p[1] for p in pairs], True, allow_unused=True)
        return {"tensors": list(found)}

    def _step(self, message: Message) -> Message:
        optimizer = self._mine[message["target"]]
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise NotServed("this is no optimizer")
        for group, settings, grads in zip(optimizer.param_groups, message["groups"], message["grads"], strict=True):
            group.update(settings)
            for parameter, grad in zip(group["params"], grads, strict=True):
                parameter.grad = grad
        optimizer.step()
        return {"value": [[p.detach() for p in group["params"]] for group in optimizer.param_groups]}

    def _get(self, message: Message) -> Message:
        if self.closed:
            raise NotServed("objects cannot be looked into from here")
        found, what = self._mine[message["target"]], message["what"]
        if what == "__len__":
            value: Any = len(found)
        elif what == "__iter__":
            value = iter(found)
        elif what == "__next__":
            value = list(itertools.islice(found, 1))
        else:
            value = found[message["args"][0]] if what == "__getitem__" else getattr(found, what)
        writer = _Writer(self)
        return {"value": writer.lower(value), "objects": writer.objects, "tensors": self.outgoing(writer.tensors)}

    # objects

    def offers(self, value: Any) -> bool:
        """Whether the other side may have this, which is no data."""
        return not self.closed or any(value is offered for offered in self._offered.values())

    def offer(self, value: Any) -> int:
        """The number by which the other side may name an object of mine."""
        if id(value) not in self._numbers:
            if len(self._mine) >= MAX_OBJECTS:
                raise NotServed(f"more than {MAX_OBJECTS} objects are shared")
            number = next(self._count)
            self._mine[number], self._numbers[id(value)] = value, number
        return self._numbers[id(value)]

    def share(self, module: nn.Module) -> Shared:
        """What the other side knows of a module of mine."""
        number = self.offer(module)
        if number not in self._shared:
            self._shared[number] = Shared(self, number, module, mine=True)
        return self._shared[number]

    def shared(self, number: int) -> Shared:
        """The same by its number."""
        return self._shared[number]

    def named(self, number: int) -> Any:
        """An object of mine by its number."""
        return self._mine[number]

    def theirs(self, number: int) -> Shared:
        """What both sides know of a module of theirs."""
        return self._theirs.setdefault(number, Shared(self, number, None, mine=False))

    def class_of(self, name: str, methods: Shape) -> type:
        """The class of stand-ins for instances of a class over there."""
        key = f"{name} {sorted(methods)}"
        if key not in self._classes:
            self._classes[key] = class_for(self, name, methods)
        return self._classes[key]


class _Writer:
    """A value on its way out: plain data, with its tensors and objects beside it."""

    def __init__(self, peer: Peer, *values: Any) -> None:
        """Where an optimizer is among the values of a call, modules are handed over as they are here."""
        self._peer = peer
        self._as_mine = any(isinstance(value, torch.optim.Optimizer) for value in values)
        self.tensors: list[Any] = []
        self.objects: list[Any] = []
        self.modules: list[tuple[Shared, nn.Module, str]] = []
        self._trained: list[tuple[int, nn.Module]] = []  # modules whose parameters may want gradients

    def lower(self, value: Any, depth: int = 0) -> Any:
        """The value as data."""
        if depth > MAX_DEPTH:
            raise NotServed(f"a value is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, Tensor):
            return self.put(value)
        if value is None or type(value) in (bool, int, float, str, complex, torch.dtype):
            return value
        if isinstance(value, np.ndarray | np.generic):
            return value
        if isinstance(value, tuple):
            return tuple([self.lower(item, depth + 1) for item in value])
        if isinstance(value, _SEQUENCES):
            return [self.lower(item, depth + 1) for item in value]
        if isinstance(value, Mapping):
            return {key: self.lower(item, depth + 1) for key, item in value.items()}
        if isinstance(value, set | frozenset):
            return set(value)
        if isinstance(value, bool | int | float | str):  # of a kind of their own
            return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))
        return self.module(value) if isinstance(value, nn.Module) else self._object(value)

    def put(self, tensor: Tensor) -> Handle:
        """A tensor's place among those of the message."""
        self.tensors.append(tensor)
        return Handle(len(self.tensors) - 1, TENSOR)

    def module(self, module: nn.Module, called: bool = False) -> Handle:
        """A module with what is new of it: theirs, or mine where it is no stand-in, or one that is listened to here."""
        found = origin(module)
        if found is None or found[0].peer is not self._peer or (not called and (self._as_mine or loud(module))):
            return self._own(module, trained=True)
        share, path = found
        about = {"is": "module", "yours": share.number, "path": path, "state": share.told(self.put, module, path)}
        place = self._add(about)
        self.modules.append((share, module, path))
        self._trained.append((place.id, module))
        about["heard"] = {inner: self._own(part) for inner, part in heard_parts(module, path, share).items()}
        return place

    def _own(self, module: nn.Module, trained: bool = False) -> Handle:
        share = self._peer.share(module)
        shape, share.described = None if share.described else shape_of(module, not self._peer.closed), True
        about = {"is": "module", "mine": share.number, "shape": shape, "state": share.told(self.put, module)}
        self.modules.append((share, module, ""))
        place = self._add(about)
        if trained:
            self._trained.append((place.id, module))
        return place

    def leaves(self) -> list[tuple[int, str, str, Tensor]]:
        """The parameters of the message's modules that want a gradient: place of the module, path, name, tensor."""
        if not torch.is_grad_enabled():
            return []
        found = ((place, each) for place, module in self._trained for each in parameters_of(module))
        return [(place, path, name, p) for place, (path, name, p) in found if p.requires_grad]

    def _object(self, value: Any) -> Handle:
        peer = self._peer
        if getattr(value, "part_peer", None) is peer:
            return self._add({"is": "part", "yours": value.part_number})
        if isinstance(value, torch.optim.Optimizer):
            return self._add({"is": "optimizer", "mine": peer.offer(value), "groups": self._groups(value)})
        if not peer.offers(value):
            raise NotServed(f"a {type(value).__name__} cannot be handed over")
        if not callable(value):
            return self._add({"is": "object", "mine": peer.offer(value)})
        about = {"mine": peer.offer(value), "name": getattr(value, "__name__", ""), "takes": signature_of(value)}
        if isinstance(value, type) and issubclass(value, nn.Module):
            return self._add({"is": "class", "methods": methods_of(value), **about})
        return self._add({"is": "function", **about})

    def _groups(self, optimizer: torch.optim.Optimizer) -> list[Any]:
        """An optimizer's settings, and whose parameters it has."""
        places = {id(p): (i, path, name) for i, module in self._trained for path, name, p in parameters_of(module)}
        groups = []
        for group in optimizer.param_groups:
            if any(id(parameter) not in places for parameter in group["params"]):
                raise NotServed("an optimizer has parameters of a module that is not handed over before it")
            settings = {key: value for key, value in group.items() if key != "params" and is_plain(value)}
            groups.append([settings, [places[id(parameter)] for parameter in group["params"]]])
        return groups

    def _add(self, about: dict[str, Any]) -> Handle:
        self.objects.append(about)
        return Handle(len(self.objects) - 1, OBJECT)


class _Reader:
    """A message that has come: its tensors and objects, and values with them in their places."""

    def __init__(self, peer: Peer, message: Message) -> None:
        self._peer = peer
        self.tensors = [peer.incoming(tensor) for tensor in message["tensors"]]
        self.modules: list[tuple[Shared, nn.Module, str]] = []
        self._heard: list[tuple[Shared, nn.Module, str, dict[str, Handle]]] = []
        self._objects: list[Any] = []
        for about in message["objects"]:
            self._objects.append(self._object(about))

    def lift(self, value: Any) -> Any:
        """A value of the message."""
        kind = type(value)
        if kind is Handle:
            return self.tensors[value.id] if value.kind == TENSOR else self._objects[value.id]
        if kind is list or kind is tuple:
            return kind(map(self.lift, value))
        if kind is dict:
            return {key: self.lift(item) for key, item in value.items()}
        return value

    def _object(self, about: dict[str, Any]) -> Any:
        peer = self._peer
        match about["is"]:
            case "module":
                return self._module(about)
            case "part":
                return peer.named(about["yours"])
            case "class":
                cls = peer.class_of(about["name"], about["methods"])
                return constructible(cls, about["mine"], about["takes"])
            case "function":
                return function_for(peer, about["mine"], about["name"], about["takes"])
            case "optimizer":
                groups = []
                for settings, places in about["groups"]:
                    parts = [(self._objects[place].get_submodule(path), name) for place, path, name in places]
                    groups.append({**settings, "params": [part._parameters[name] for part, name in parts]})
                return StandInOptimizer(peer, about["mine"], groups)
        return Thing(peer, about["mine"])

    def _module(self, about: dict[str, Any]) -> nn.Module:
        state = about["state"]
        if "yours" in about:
            share, path = self._peer.shared(about["yours"]), about["path"]
            module: nn.Module = share.part(path)
            self._heard.append((share, module, path, about["heard"]))
        else:
            share, path = self._peer.theirs(about["mine"]), ""
            module = share.module
            if module is None:
                module = built(self._peer, about["shape"], share, state, self.tensors)
                share.stand_in(module)
        share.take(state, self.tensors, module, path)
        self.modules.append((share, module, path))
        return module

    @contextmanager
    def installed(self, leaves: list[Any]) -> Iterator[list[Tensor]]:
        """The message's modules with leaves of this call's own graph as parameters, and with the parts that are called
        over there in their places."""
        undo: list[tuple[dict[str, Any], str, Any]] = []
        found = []
        shares = {id(module): share for share, module, _ in self.modules}
        for place, path, name in leaves:
            module = self._objects[place]
            parameters = module.get_submodule(path)._parameters
            if shares[id(module)].mine:
                undo.append((parameters, name, parameters[name]))
                parameters[name] = nn.Parameter(parameters[name].detach())
            found.append(parameters[name])
        for _, module, path, heard in self._heard:
            for inner, handle in heard.items():
                where = inner.removeprefix(path).removeprefix(".")
                part, stand_in = module.get_submodule(where), self.lift(handle)
                for deep, name, own in list(parameters_of(stand_in)):
                    theirs = _parameter(part, deep, name)
                    if theirs is not None and theirs.shape == own.shape:
                        parameters = stand_in.get_submodule(deep)._parameters
                        undo.append((parameters, name, own))
                        parameters[name] = theirs
                parent, _, name = where.rpartition(".")
                parts: dict[str, Any] = module.get_submodule(parent)._modules
                undo.append((parts, name, part))
                parts[name] = stand_in
        try:
            yield found
        finally:
            for names, name, value in reversed(undo):
                names[name] = value


def _parameter(module: nn.Module, path: str, name: str) -> Tensor | None:
    try:
        return module.get_submodule(path)._parameters.get(name)
    except AttributeError:
        return None


@contextmanager
def _settings(message: Message) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(message["dtype"])
    try:
        with torch.set_grad_enabled(message["enabled"]):
            yield
    finally:
        torch.set_default_dtype(before)


def _counted(message: Message) -> Any:
    """In a watched call the judge asks for a count of what is done on this side, too."""
    if "count" not in message:
        return nullcontext()
    from autograder.box.vault import counted

    return counted()


def _check_handed(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Refuse what is no data where a function does not expect it."""
    signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
    bound = signature.bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        annotation = signature.parameters[name].annotation
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") + str(annotation)
        a_module = isinstance(annotation, type) and issubclass(annotation, nn.Module)
        for item in _foreign(value):
            words = next(words for kind, words in HANDED.items() if isinstance(item, kind))
            if not any(word in text for word in words) and not (a_module and isinstance(item, nn.Module)):
                raise NotServed(f"`{name}` cannot be a {type(item).__name__} here")


def _foreign(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _foreign(item)
    elif isinstance(value, dict):
        yield from _foreign(list(value.values()))
    elif isinstance(value, nn.Module):
        if origin(value) is not None:
            yield value
    elif hasattr(value, "part_peer"):
        yield value


def _check_devices(tensors: list[Any]) -> None:
    """In a watched call that claims another device, say what torch would say of tensors that are not there."""
    devices = {tensor.device.type for tensor in tensors if isinstance(tensor, Held) or tensor.dim()}
    if len(devices) > 1:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found {' and '.join(sorted(devices))}!")


def _is_watched(tensor: Any) -> bool:
    return isinstance(tensor, Held) and not tensor.teller.closed


def _by_handle(tensor: Held) -> Any:
    if tensor.teller.closed:
        return tensor.teller.read(tensor)
    return Kept(tensor.number, tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))


def _told(error: Exception) -> tuple[list[str], str]:
    return [cls.__name__ for cls in type(error).__mro__][:10], str(error)[:MAX_TEXT]


def _raised(names: list[str], text: str) -> Exception:
    """The nearest exception of Python's own."""
    for name in names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(text)
            except TypeError:  # some want more than a text
                continue
    return RuntimeError(text)
