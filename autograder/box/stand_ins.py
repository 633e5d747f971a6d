"""Stand-ins for functions, classes, modules and optimizers that are in another box (`peers.py`).

A stand-in module has the parameters, buffers, plain attributes and parts of the real one, under the same names; layers
of torch's own are layers of torch's own here too. What the real one's class does is asked for, with whatever has
changed of its state since the other side last heard.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from autograder.box.held import Held

if TYPE_CHECKING:
    from autograder.box.peers import Peer

Shape = dict[str, Any]
Put = Callable[[Tensor], Any]
BASE = frozenset(vars(nn.Module()))
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = tuple(f"_global{kind}" for kind in HOOKS)
_PLAIN = (type(None), bool, int, float, str, complex, torch.dtype)


def is_plain(value: Any) -> bool:
    """Whether an attribute is data that can be told as it is."""
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(map(is_plain, value))
    if type(value) is dict:
        return all(type(key) in _PLAIN and is_plain(item) for key, item in value.items())
    return type(value) in _PLAIN


def attributes(module: nn.Module) -> dict[str, Any]:
    """The plain attributes of a module's own."""
    return {name: value for name, value in vars(module).items() if name not in BASE and is_plain(value)}


def signature_of(function: Any) -> list[list[Any]] | None:
    """What a function takes: name, kind, whether there is a default, and that default if it is plain."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    told = [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]
    return [[*one, p.default if is_plain(p.default) else None] for one, p in zip(told, parameters, strict=True)]


def signed(function: Any, told: list[list[Any]] | None, *before: str) -> None:
    """Give a stand-in the signature of what it stands for."""
    if told is None:
        return
    kinds = list(inspect._ParameterKind)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in before]
    for name, kind, optional, default in told:
        parameters.append(
            inspect.Parameter(name, kinds[kind], default=default if optional else inspect.Parameter.empty)
        )
    function.__signature__ = inspect.Signature(parameters)


def methods_of(cls: type) -> dict[str, Any]:
    """The public methods that a module's own classes define, with what they take after `self`."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base is nn.Module:
            break
        for name, value in vars(base).items():
            if (name == "forward" or not name.startswith("_")) and inspect.isfunction(value) and name not in found:
                told = signature_of(value)
                found[name] = None if told is None else told[1:]
    return found


def is_torchs_own(module: nn.Module) -> bool:
    """Whether a module is a layer of torch's that can be made again from its attributes."""
    cls = type(module)
    own = all(is_plain(value) for name, value in vars(module).items() if name not in BASE)
    return cls.__module__.startswith("torch.nn.modules.") and getattr(nn, cls.__name__, None) is cls and own


def shape_of(module: nn.Module, called_here: bool = False) -> Shape:
    """What a module is made of, without its numbers; `called_here` even where it is a layer of torch's own."""
    torchs = is_torchs_own(module) and not called_here
    lasting = module._non_persistent_buffers_set
    return {
        "class": type(module).__name__,
        "methods": None if torchs else methods_of(type(module)),
        "id": id(module),
        "attributes": attributes(module),
        "parameters": [[name, _key(p), p is None or p.requires_grad] for name, p in module._parameters.items()],
        "buffers": [[name, _key(buffer), name not in lasting] for name, buffer in module._buffers.items()],
        "parts": [[name, None if part is None else shape_of(part)] for name, part in module._modules.items()],
    }


def _key(tensor: Tensor | None) -> int | None:
    """By which a tensor is known that stands in several places."""
    return None if tensor is None else id(tensor)


def tensors_of(module: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Path, name and tensor of every parameter and buffer."""
    for path, part in module.named_modules(remove_duplicate=False):
        for name, tensor in (*part._parameters.items(), *part._buffers.items()):
            if tensor is not None:
                yield path, name, tensor


def parameters_of(module: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Path, name and tensor of every parameter."""
    for path, part in module.named_modules(remove_duplicate=False):
        yield from ((path, name, tensor) for name, tensor in part._parameters.items() if tensor is not None)


def join(*paths: str) -> str:
    """A path through parts of parts."""
    return ".".join(path for path in paths if path)


def origin(module: nn.Module) -> tuple[Shared, str] | None:
    """What a stand-in stands for: a module over there, and a path inside it."""
    found: tuple[Shared, str] | None = vars(module).get("_origin")
    return found


def loud(module: nn.Module) -> bool:
    """Whether somebody here listens to a module or one of its parts, or has given it another `forward`."""
    everywhere = any(getattr(global_hooks, kind) for kind in GLOBAL_HOOKS)
    return everywhere or any(_heard(part) for part in module.modules())


def _heard(module: nn.Module) -> bool:
    return "forward" in vars(module) or any(getattr(module, kind) for kind in HOOKS)


class Shared:
    """A module that both sides know: what the other side last heard of its state."""

    def __init__(self, peer: Peer, number: int, module: nn.Module | None, mine: bool) -> None:
        self.peer, self.number, self.mine = peer, number, mine
        self.described = False
        self.kinds: dict[str, str] = {}  # path -> class, where it is theirs
        self._known: dict[str, Any] = {}
        self._module: Any = module if mine else None
        self._parts = dict(module.named_modules(remove_duplicate=False)) if module is not None and peer.closed else {}

    def __deepcopy__(self, _: Any) -> Shared:
        return self  # a copy of a stand-in has its own numbers and stands for the same code

    @property
    def module(self) -> Any:
        """The module on this side."""
        return self._module if self.mine or self._module is None else self._module()

    def part(self, path: str) -> nn.Module:
        """A part of the module; on the closed side as it was made, whatever is in its place during a call."""
        found: nn.Module = self._parts[path] if self._parts else self.module.get_submodule(path)
        return found

    def stand_in(self, module: nn.Module) -> None:
        """This is what stands for it here; the closed side keeps it, and students' code as long as it needs it."""
        self._module = (lambda: module) if self.peer.closed else weakref.ref(module)

    def told(self, put: Put, module: nn.Module, path: str = "") -> dict[str, Any]:
        """What the other side has not heard about the module at this path."""
        state: dict[str, Any] = {"tensors": {}, "training": {}, "attributes": {}}
        for inner, name, tensor in tensors_of(module):
            full = join(path, inner, name)
            if isinstance(tensor, Held):  # for this call alone: the other side keeps nothing of a watched call
                state["tensors"][full] = put(tensor)
            elif not _same(self._known.get(full), tensor):
                state["tensors"][full] = put(tensor.detach())
                self._known[full] = tensor.detach().clone()
        for inner, part in module.named_modules(remove_duplicate=False):
            full = join(path, inner)
            for kind, value in (("training", part.training), ("attributes", attributes(part))):
                if self._known.get(f"{kind} {full}") != value:
                    state[kind][full] = self._known[f"{kind} {full}"] = value
        return state

    @contextmanager
    def forgetting(self, module: nn.Module) -> Iterator[None]:
        """Have the module as it is now again afterwards."""
        known, kept = dict(self._known), [(part, name, x, x.data) for part, name, x in _places(module)]
        try:
            yield
        finally:
            self._known = known
            for part, name, tensor, data in kept:
                tensor.data = data
                (part._parameters if name in part._parameters else part._buffers)[name] = tensor

    def take(self, state: dict[str, Any], tensors: list[Any], module: nn.Module, path: str = "") -> None:
        """Make the module at this path what the other side says it is."""
        parts = {join(path, inner): part for inner, part in module.named_modules(remove_duplicate=False)}
        for full, place in state["tensors"].items():
            where, _, name = full.rpartition(".")
            value = tensors[place.id]
            if not isinstance(value, Held):
                self._known[full] = value.detach().clone()
            self._put(parts[where], name, value)
        for full, training in state["training"].items():
            parts[full].training = self._known[f"training {full}"] = training is True
        for full, told in state["attributes"].items():
            own = attributes(parts[full])
            vars(parts[full]).update({name: value for name, value in told.items() if name in own and is_plain(value)})
            self._known[f"attributes {full}"] = attributes(parts[full])

    def _put(self, part: nn.Module, name: str, value: Tensor) -> None:
        kept = part._parameters.get(name)
        if kept is None:
            if part._buffers.get(name) is not None:
                part._buffers[name] = value.detach().clone()
        elif self.mine or kept.shape != value.shape or kept.dtype != value.dtype:
            kept.data = value.detach().clone()
        else:
            with torch.no_grad():
                kept.copy_(value)


def _places(module: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    for part in module.modules():
        yield from ((part, name, x) for name, x in (*part._parameters.items(), *part._buffers.items()) if x is not None)


def _same(known: Any, tensor: Tensor) -> bool:
    if known is None or known.dtype != tensor.dtype or known.shape != tensor.shape:
        return False
    return torch.equal(known, tensor.detach())


def built(peer: Peer, shape: Shape, share: Shared, state: dict[str, Any], tensors: list[Any]) -> nn.Module:
    """A module of this shape, with these numbers."""
    values = {full: tensors[place.id] for full, place in state["tensors"].items()}
    return _build(peer, shape, share, "", values, {})


def _build(
    peer: Peer, shape: Shape, share: Shared, path: str, values: dict[str, Any], made: dict[int, Any]
) -> nn.Module:
    if shape["id"] in made:
        found: nn.Module = made[shape["id"]]
        return found
    cls: Any = (
        getattr(nn, shape["class"]) if shape["methods"] is None else peer.class_of(shape["class"], shape["methods"])
    )
    module = made[shape["id"]] = cls.__new__(cls)
    nn.Module.__init__(module)
    vars(module).update(shape["attributes"])
    share.kinds[path] = cls.__name__
    if shape["methods"] is not None:
        vars(module)["_origin"] = (share, path)
    for name, key, wanted in shape["parameters"]:
        if key is not None and key not in made:
            made[key] = nn.Parameter(values[join(path, name)].detach().clone(), requires_grad=wanted)
        module._parameters[name] = None if key is None else made[key]
    for name, key, lasting in shape["buffers"]:
        module.register_buffer(name, None if key is None else values[join(path, name)].detach().clone(), lasting)
    for name, part in shape["parts"]:
        module._modules[name] = None if part is None else _build(peer, part, share, join(path, name), values, made)
    return module


def heard_parts(module: nn.Module, path: str, share: Shared) -> dict[str, nn.Module]:
    """The parts of a stand-in that are called here: exchanged, listened to, or with another `forward`; by path."""
    found: dict[str, nn.Module] = {}
    for name, part in module._modules.items():
        inner = join(path, name)
        if part is None or inner not in share.kinds:
            continue
        where = origin(part)
        if isinstance(part, nn.ModuleList | nn.ModuleDict) and type(part).__name__ == share.kinds[inner]:
            found |= heard_parts(part, inner, share)  # never called itself
            continue
        same = type(part).__name__ == share.kinds[inner] and (where is None or where == (share, inner))
        if _heard(part) or not same:
            found[inner] = part
        else:
            found |= heard_parts(part, inner, share)
    return found


def class_for(peer: Peer, name: str, methods: dict[str, Any]) -> type:
    """A class whose instances stand for those of a class over there."""
    body = {method: _method(method, told) for method, told in methods.items()}
    return type(name, (nn.Module,), {"__init__": _no_init, "__module__": "__main__", "part_peer": peer, **body})


def constructible(cls: Any, number: int, told: list[list[Any]] | None) -> type:
    """Have a class make its instances over there."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        nn.Module.__init__(self)
        made = cls.part_peer.call(number, "", args, kwargs)
        vars(self).update(vars(made))
        vars(self)["_origin"][0].stand_in(self)

    signed(__init__, told, "self")
    cls.__init__, cls.part_number = __init__, number
    return cls


def _no_init(self: Any, *_: Any, **__: Any) -> None:
    raise TypeError(f"a {type(self).__name__} cannot be made here")


def _method(name: str, told: list[list[Any]] | None) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return vars(self)["_origin"][0].peer.call(self, name, args, kwargs)

    method.__name__ = method.__qualname__ = name
    signed(method, told, "self")
    return method


def function_for(peer: Peer, number: int, name: str, told: list[list[Any]] | None) -> Any:
    """A function that is called over there."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return peer.call(number, "", args, kwargs)

    stand_in.__name__ = stand_in.__qualname__ = name
    signed(stand_in, told)
    vars(stand_in).update(part_peer=peer, part_number=number)
    return stand_in


class Thing:
    """An object over there that is neither data, nor a module, nor a function."""

    def __init__(self, peer: Peer, number: int) -> None:
        self.part_peer, self.part_number = peer, number

    def __len__(self) -> int:
        return int(self.part_peer.get(self.part_number, "__len__"))

    def __iter__(self) -> Any:
        items = self.part_peer.get(self.part_number, "__iter__")
        while one := items.part_peer.get(items.part_number, "__next__"):
            yield one[0]

    def __getitem__(self, index: Any) -> Any:
        return self.part_peer.get(self.part_number, "__getitem__", index)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.part_peer.get(self.part_number, name)


class StandInOptimizer:
    """An optimizer over there: gradients and settings go with each step, and the parameters come back."""

    def __init__(self, peer: Peer, number: int, groups: list[dict[str, Any]]) -> None:
        self.part_peer, self.part_number = peer, number
        self.param_groups = groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None if set_to_none or parameter.grad is None else torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self) -> None:
        """One step over there."""
        settings = [{key: value for key, value in group.items() if key != "params"} for group in self.param_groups]
        grads = [[parameter.grad for parameter in group["params"]] for group in self.param_groups]
        for group, values in zip(
            self.param_groups, self.part_peer.step(self.part_number, settings, grads), strict=True
        ):
            for parameter, value in zip(group["params"], values, strict=True):
                parameter.copy_(value)


class Exchange:
    """One call over there, and the graph that is kept of it."""

    def __init__(
        self, peer: Peer, message: dict[str, Any], tensors: list[Any], leaves: list[tuple[int, str, str, Tensor]]
    ) -> None:
        self._peer = peer
        self._message = message
        self._tensors, self._leaves = tensors, [leaf for *_, leaf in leaves]
        self.wanted = [i for i, x in enumerate(tensors) if message["enabled"] and _wants_gradient(x)]
        message["grad"] = self.wanted
        message["leaves"] = [list(place) for *place, _ in leaves]
        self.given = len(tensors)
        self.likes = [(x.shape, x.dtype) for x in (*[tensors[i] for i in self.wanted], *self._leaves)]
        self.answer: dict[str, Any] = {}

    def outputs(self) -> list[Any]:
        """The tensors of the answer, children of those that were sent."""
        if self.wanted or self._leaves:
            return list(_Call.apply(self, *self._tensors, *self._leaves))
        return self.run(self._tensors)

    def run(self, tensors: list[Any]) -> list[Any]:
        """Send it, and take the answer's tensors."""
        self._message["tensors"] = self._peer.outgoing(tensors)
        self.answer = self._peer.ask(self._message)
        if self.answer["graph"] is not None:
            weakref.finalize(self, self._peer.forget, self.answer["graph"])
        return [self._peer.incoming(tensor) for tensor in self.answer["tensors"]]

    def pulled_back(self, grads: list[Tensor | None]) -> list[Tensor]:
        """The vector-Jacobian products for what wanted a gradient."""
        answer = self._peer.ask({"do": "vjp", "graph": self.answer["graph"], "tensors": grads})
        zeros = (torch.zeros(shape, dtype=dtype) for shape, dtype in self.likes)
        return [zero if grad is None else grad for grad, zero in zip(answer["tensors"], zeros, strict=True)]


def _wants_gradient(tensor: Any) -> bool:
    if isinstance(tensor, Held) or not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    return bool(tensor.requires_grad or torch._C._functorch.is_functorch_wrapped_tensor(tensor))


class _Call(torch.autograd.Function):
    """A node of the graph here whose forward and backward are over there."""

    @staticmethod
    def forward(exchange: Exchange, *tensors: Tensor) -> tuple[Tensor, ...]:
        return (*exchange.run(list(tensors[: exchange.given])), torch.zeros(()))  # never nothing

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.exchange = inputs[0]
        differentiable = ctx.exchange.answer["differentiable"]
        ctx.mark_non_differentiable(*[x for i, x in enumerate(output) if i not in differentiable])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        exchange: Exchange = ctx.exchange
        chosen = [grads[i] for i in exchange.answer["differentiable"]]
        result: list[Tensor | None] = [None] * (1 + exchange.given)
        if all(grad is None for grad in chosen):
            return (*result, *[None] * (len(exchange.likes) - len(exchange.wanted)))
        found = _PulledBack.apply(exchange, *chosen)
        for index, grad in zip(exchange.wanted, found, strict=False):
            result[1 + index] = grad
        return (*result, *found[len(exchange.wanted) :])

    @staticmethod
    def vmap(info: Any, in_dims: Any, exchange: Exchange, *tensors: Tensor) -> Any:
        raise NotImplementedError("the course's own part cannot be mapped over: call it with the whole batch")


class _PulledBack(torch.autograd.Function):
    """The backward pass as a node of its own, so that Jacobians can be taken row by row."""

    @staticmethod
    def forward(exchange: Exchange, *grads: Tensor | None) -> tuple[Tensor, ...]:
        return tuple(exchange.pulled_back(list(grads)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError("second derivatives of the course's own parts are not available here")

    @staticmethod
    def vmap(info: Any, in_dims: Any, exchange: Exchange, *grads: Tensor | None) -> Any:
        def row(i: int) -> list[Tensor | None]:
            mapped = zip(grads, in_dims[1:], strict=True)
            return [grad if grad is None or dim is None else grad.select(dim, i) for grad, dim in mapped]

        rows = [exchange.pulled_back(row(i)) for i in range(info.batch_size)]
        return tuple(map(torch.stack, zip(*rows, strict=True))), (0,) * len(exchange.likes)
