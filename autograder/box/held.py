"""Tensors without numbers: in a watched call a box holds handles, and asks the vault for every operation on them.

`Held` is a tensor as far as code can tell: it has a shape, strides, a dtype and a device that it claims. What is made
from nothing on that device (`torch.arange`, `torch.zeros`) is asked for as well (`Making`).

Most operations are asked for without waiting: what form a result has follows from the forms of what goes in, so an
operation whose like was met before waits in a list until something must be known. Only the vault has the last word: it
makes a result of the form that it was told, or refuses.
"""

from __future__ import annotations

import builtins
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import msgpack  # type: ignore[import-untyped]
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from autograder.box import wire
from autograder.box.held_numpy import HeldArray, converting
from autograder.box.operations import ALGEBRA, PICKING, is_composite, taken_apart

Ask = Callable[[bytes], bytes]
ERRORS = ("RuntimeError", "IndexError", "ValueError", "TypeError", "NotImplementedError")
SAME_NUMBERS = {"detach", "alias", "lift_fresh", "lift"}
VIEWS = set(
    """view t transpose expand permute unsqueeze squeeze select slice as_strided diagonal unbind split
split_with_sizes unfold _unsafe_view""".split()
)  # operations whose result shares the memory of what they are given
PACKS = "_pack_padded_sequence"  # gives a second tensor that torch keeps on the CPU
CROSSING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put", "copy_"}
UNPACKS = "_pad_packed_sequence"  # writes numbers of its own into a tensor that it has just made
CROSSING |= {PACKS, UNPACKS}  # operations that take a tensor on the CPU beside one elsewhere
# Operations that can fail for some numbers: code hears of it at its own line.
MAY_FAIL = {f"{name}{end}" for name in (PICKING + ALGEBRA).split() for end in ("", "_")}
MAY_FAIL |= {"nll_loss_forward", "nll_loss2d_forward", "binary_cross_entropy", "multinomial", "_embedding_bag"}
MAY_FAIL |= {"_assert_async", "_linalg_check_errors", "_embedding_bag_forward_only", "embedding_renorm_", PACKS}
MAY_FAIL |= {"bernoulli", "bernoulli_", "binomial", "poisson", "normal", "_fused_sdp_choice"}
MANY = 256  # operations that wait together at most
KNOWN = 20_000  # forms that are remembered
PLAIN = {int, float, bool, str, type(None), complex, torch.dtype, torch.layout, torch.memory_format, torch.device}
WITH_NUMBERS = (torch.tensor, torch.as_tensor, torch.asarray)
NO_NUMPY = "this call is watched: its tensors have no numbers to give to NumPy. Use torch's functions."


_numbers = itertools.count(wire.OWN_NUMBERS)  # that a box gives to results which it does not wait for
_forms: dict[Any, list[wire.Form3] | None] = {}  # what operations make of what; None: the argument that it changes


class Token:
    """The handles of one tensor share one; with the last of them it goes, and the vault may forget the tensor."""

    __slots__ = ("_gone", "_number")

    def __init__(self, gone: list[int], number: int) -> None:
        self._gone = gone
        self._number = number

    def __del__(self) -> None:
        self._gone.append(self._number)


class Held(Tensor):
    """A handle of a tensor in the vault."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    teller: Teller
    number: int  # of a tensor in the vault
    offset: int  # of its first number in that tensor's memory
    token: Token
    is_view: bool  # worked out here: the vault has only the tensor that it is a view of

    @staticmethod
    def __new__(
        cls,
        teller: Teller,
        number: int,
        dtype: torch.dtype,
        shape: Any,
        strides: Any,
        offset: int = 0,
        is_view: bool = False,
        token: Token | None = None,
    ) -> Held:
        if torch.is_inference_mode_enabled():
            made = Tensor._make_wrapper_subclass(cls, shape, strides=strides, dtype=dtype, device=teller.device)
        else:
            with torch.inference_mode():  # so no gradient can be recorded
                made = Tensor._make_wrapper_subclass(cls, shape, strides=strides, dtype=dtype, device=teller.device)
        made.teller, made.number, made.offset, made.is_view = teller, number, offset, is_view
        made.token = token or Token(teller._gone, number)
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def like(self, shape: Any, strides: Any, offset: int, is_view: bool = True) -> Held:
        """Another handle of the same tensor."""
        return Held(self.teller, self.number, self.dtype, shape, strides, offset, is_view, self.token)

    def told(self) -> msgpack.ExtType:
        """What the vault knows it by."""
        if self.is_view:
            return wire.view(self.number, tuple(self.shape), self.stride(), self.offset)
        return wire.handle(self.number)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _teller_of(args, kwargs).run(func, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        """The same numbers."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        """From here on this is a handle of another tensor of the same form."""
        other = self.teller.bring(value)
        if (other.shape, other.dtype) != (self.shape, self.dtype) or other.stride() != self.stride():
            raise TypeError("this call is watched: `.data` can be set to a tensor of the same form alone.")
        self.number, self.offset, self.is_view, self.token = other.number, other.offset, other.is_view, other.token

    def tolist(self) -> Any:
        """Reads the numbers out, as far as the watch allows."""
        return self.teller.read(self).tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        """An array without numbers."""
        if self.device.type != "cpu":
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")
        return HeldArray(self)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(NO_NUMPY)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(self.teller.indices(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(self.teller.indices(index), value)

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"tensor(..., shape={list(self.shape)}, dtype={self.dtype})"

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if self.dim() == 0 else repr(self)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.clone()

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError("this call is watched: its tensors cannot be saved.")


class Teller:
    """The box's way to the vault."""

    def __init__(self, ask: Ask, device: str = "cpu") -> None:
        self._ask = ask
        self._lock = threading.RLock()
        self.device = torch.device(device)
        self.closed = True
        self._gone: list[int] = []  # tensors of which there are no handles any more
        self._waiting: list[bytes] = []  # what was asked for and is yet to be sent
        self._inputs: dict[int, Token] = {}
        self._brought: dict[int, tuple[Any, int, Held]] = {}  # a local tensor's id -> itself, its version, its handle
        self.wholes: set[str] = set()  # operations that were taken apart
        self._taken: list[tuple[nn.Module, str, Tensor]] = []  # what stood in modules before

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """One operation: its parts where it is made of others, else asked for."""
        if self.closed:  # code has kept what it made while it was watched
            args, kwargs = torch.utils._pytree.tree_map_only(Held, self.read, (args, kwargs))
            return func(*args, **kwargs)
        if func.overloadpacket.__name__ == UNPACKS:
            return _unpacked(*args, **kwargs)
        if is_composite(func):
            self.wholes.add(func.overloadpacket.__name__)
            with Making(self):
                return taken_apart(func, args, kwargs)
        name = func.overloadpacket.__name__
        if name in SAME_NUMBERS and isinstance(args[0], Held):
            given = args[0]
            return given.like(given.shape, given.stride(), given.offset, given.is_view)
        if name in VIEWS and func._overloadname != "dtype":
            return self._view(func, *args, **kwargs)
        if name == "detach_":
            return args[0]
        if name == "_to_copy" and (to := kwargs.get("device")) is not None:
            if torch.device(to).type != self.device.type:
                local = self.read(args[0])  # `.cpu()`
                return local.to(kwargs.get("dtype") or local.dtype)
            if not isinstance(args[0], Held):
                args = (self.bring(args[0]), *args[1:])
        self._across = name in CROSSING or self.device.type == "cpu"
        forms: list[Any] = [func, torch.get_default_dtype()]
        request = ["run", name, func._overloadname, self._lowered(args, forms), self._lowered(kwargs, forms)]
        key = tuple(forms) if _is_foreseeable(func) else None
        if key is not None and (known := _forms.get(key, _forms)) is not _forms:
            return self._foreseen(request, known, args)
        made = self._exchange([*request, self._forgotten()])
        result = self._lift(made, (args, kwargs), func)
        if key is not None:
            _remember(key, result, args)
        return (result[0], self.read(result[1])) if name == PACKS else result

    def _foreseen(self, request: list[Any], known: Any, args: Any) -> Any:
        """The result of an operation that is asked for later."""
        if known is None:
            self._later([*request, self._forgotten(), []])
            return args[0]
        made = [(next(_numbers), *form) for form in known]
        self._later([*request, self._forgotten(), [wire.expected(*one) for one in made]])
        results = tuple([Held(self, *one) for one in made])
        return results if len(results) > 1 else results[0]

    def _view(self, func: Any, held: Held, *args: Any, **kwargs: Any) -> Any:
        """A view, or several, without asking: shapes and strides say it all."""
        form = held.dtype, tuple(held.shape), held.stride(), held.offset
        made = _viewed(func, *form, _hashable(args), _hashable(tuple(kwargs.items())))
        views = [held.like(*one) for one in made]
        return views if _gives_many(func) else views[0]

    def read(self, held: Held) -> Tensor:
        """The numbers themselves, as far as the watch allows."""
        return wire.tensor_of(self._exchange(["read", held.told()]).data)

    def settled(self, held: Held) -> Held:
        """The same with a number of its own."""
        return self._new(self._exchange(["settle", held.told()]).data) if held.is_view else held

    def bring(self, tensor: Tensor) -> Held:
        """A tensor of the box's own put into the vault, as far as the watch allows."""
        if isinstance(tensor, Held):
            return tensor
        known = self._brought.get(id(tensor))
        version = tensor._version if not tensor.is_inference() else -1
        if known is not None and known[0] is tensor and known[1] == version and version >= 0:
            return known[2]
        held = self._put("bring", tensor)
        self._brought[id(tensor)] = (tensor, version, held)
        return held

    def own(self, tensor: Tensor) -> Held:
        """A parameter or buffer put into the vault."""
        return self._put("own", tensor)

    def _put(self, how: str, tensor: Tensor) -> Held:
        tensor, number = _plain(tensor).contiguous(), next(_numbers)
        self._later([how, wire.numbers(tensor), number])
        return Held(self, number, tensor.dtype, tensor.shape, tensor.stride())

    def indices(self, index: Any) -> Any:
        """An index with its lists brought in: where a device is claimed, torch would lose their numbers."""
        if isinstance(index, tuple):
            return tuple(self.indices(part) for part in index)
        if isinstance(index, list):
            return self.bring(torch.tensor(index, device="cpu")) if self.device.type != "cpu" else index
        return index

    def take(self, module: nn.Module, state: dict[str, Held]) -> None:
        """Have the judge's tensors in the place of a module's, by name; put all others into the vault.

        Parameters and buffers that are shared stay shared.
        """
        places = [
            (part, name, tensor, f"{prefix}.{name}" if prefix else name)
            for prefix, part in module.named_modules(remove_duplicate=False)
            for name, tensor in [*part._parameters.items(), *part._buffers.items()]
            if tensor is not None and not isinstance(tensor, Held)
        ]
        known: dict[int, Held] = {}
        for _, _, tensor, path in places:
            if (given := state.get(path)) is not None:
                if given.shape != tensor.shape:
                    raise ValueError(f"`{path}` has shape {list(tensor.shape)}, expected {list(given.shape)}")
                known[id(tensor)] = given
        for part, name, tensor, _ in places:
            if id(tensor) not in known:
                known[id(tensor)] = self.own(tensor)
            known[id(tensor)]._is_param = isinstance(tensor, nn.Parameter)
            self._taken.append((part, name, tensor))
            setattr(part, name, known[id(tensor)])  # not past it: recurrent layers keep a list of their own

    def give_back(self) -> None:
        """Put into modules what stood there before."""
        while self._taken:
            part, name, tensor = self._taken.pop()
            setattr(part, name, tensor)

    def held(self, number: int, dtype: torch.dtype, shape: Any, strides: Any) -> Held:
        """A tensor that the judge has put in."""
        token = self._inputs.setdefault(number, Token([], number))
        return Held(self, number, dtype, shape, strides, token=token)

    def _forgotten(self) -> list[int]:
        gone = self._gone[:]
        del self._gone[: len(gone)]
        return gone

    def _later(self, request: Any) -> None:
        """Ask for something together with what is asked next."""
        with self._lock:
            self._waiting.append(msgpack.packb(request, default=wire.plain))
            if len(self._waiting) >= MANY or len(self._waiting[-1]) > wire.MAX_BYTES // MANY:
                self.flush()

    def flush(self) -> None:
        """Send what waits."""
        with self._lock:
            if self._waiting:
                self._send(b"")

    def _exchange(self, request: Any) -> Any:
        with self._lock:
            return self._send(msgpack.packb(request, default=wire.plain))

    def _send(self, last: bytes) -> Any:
        """The reply to a request, behind all that wait."""
        waiting, self._waiting = self._waiting, []
        reply = msgpack.unpackb(self._ask(b"".join((*waiting, last))), ext_hook=msgpack.ExtType)
        if reply[0] is not True:
            kind = reply[1] if reply[1] in ERRORS else "RuntimeError"
            raise getattr(builtins, kind)(reply[2])
        return reply[1]

    def _lowered(self, value: Any, forms: list[Any]) -> Any:
        """A value for the vault; `forms` gathers all that the form of a result can follow from."""
        kind = type(value)
        if kind in PLAIN:
            forms += (kind, value)
            return msgpack.ExtType(wire.DEVICE, b"") if kind is torch.device else value
        if isinstance(value, Tensor):
            if isinstance(value, Held):
                held = value
            else:
                if value.dim() and not self._across:
                    raise RuntimeError(
                        f"Expected all tensors to be on the same device, but found at least two devices, {self.device} "
                        f"and {value.device}!"
                    )
                held = self.bring(value)
            forms += (held.dtype, held.shape, held.stride())
            return held.told()
        if isinstance(value, list | tuple):
            forms += (list, len(value))
            return [self._lowered(item, forms) for item in value]
        if isinstance(value, dict):
            forms += (dict, *value)
            return {key: self._lowered(item, forms) for key, item in value.items()}
        if isinstance(value, torch.Generator):
            forms.append(torch.Generator)
            return None  # in a watched call random numbers come from the vault's own generator
        forms.append(object())  # like no other
        return value

    def _lift(self, value: Any, given: Any, func: Any) -> Any:
        if isinstance(value, msgpack.ExtType):
            if value.code == wire.NEW:
                return self._new(value.data)
            if value.code == wire.SAME:  # an operation in place
                return wire.leaves(given)[value.data[0]]
            return wire.lifted(value.code, value.data)
        if isinstance(value, list):
            items = [self._lift(item, given, func) for item in value]
            return items if _gives_many(func) else tuple(items)
        return value

    def _new(self, data: bytes) -> Held:
        return Held(self, *wire.form_of(data))


class Making(TorchDispatchMode):
    """While this is on, what is made from nothing on the claimed device is made in the vault."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __init__(self, teller: Teller) -> None:
        super().__init__()
        self._teller = teller

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for value in args:
            if isinstance(value, Held):
                return self._teller.run(func, args, kwargs)
        leaves = wire.leaves((args, kwargs))
        if any(isinstance(leaf, Held) for leaf in leaves):
            return self._teller.run(func, args, kwargs)
        if is_composite(func):
            with self:
                return taken_apart(func, args, kwargs)
        here = self._teller.device
        name = func.overloadpacket.__name__
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            if name == "_to_copy" and kwargs.get("device") is not None and torch.device(kwargs["device"]) == here:
                return self._teller.run(func, args, kwargs) if here.type != "cpu" else func(*args, **kwargs)
            if name == "lift_fresh" and here.type == "cpu":
                return self._teller.bring(args[0])
            return func(*args, **kwargs)
        if _makes(func) and torch.device(kwargs.get("device") or "cpu") == here:
            return self._teller.run(func, args, kwargs)
        return func(*args, **kwargs)


class Bringing(TorchFunctionMode):
    """While this is on, `torch.tensor([...], device=...)` brings its numbers in: a stand-in for a device has none."""

    def __init__(self, teller: Teller) -> None:
        super().__init__()
        self._teller = teller

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in WITH_NUMBERS and args and isinstance(args[0], HeldArray):
            made = args[0].held
            return made.to(**{key: kwargs[key] for key in ("dtype", "device") if kwargs.get(key) is not None})
        if func in WITH_NUMBERS and self._teller.device.type != "cpu":
            data = args[0] if args else kwargs.get("data")
            if not isinstance(data, Tensor) and torch.device(kwargs.get("device") or "cpu") == self._teller.device:
                return self._teller.bring(func(*args, **{**kwargs, "device": "cpu"}))
        if func is Tensor.new_tensor and isinstance(args[0], Held) and kwargs.get("device") is None:
            kwargs = {"dtype": args[0].dtype, **kwargs, "device": "cpu"}
            return self._teller.bring(torch.tensor(*args[1:], **kwargs))
        return func(*args, **kwargs)


def _unpacked(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: int
) -> tuple[Tensor, Tensor]:
    """What torch's own function gives, by operations on the data."""
    sizes = batch_sizes.tolist()
    rows, missing = sizes[0], max(total_length - len(sizes), 0)
    flat = [0, 0] * (data.dim() - 1)
    steps = [functional.pad(step, (*flat, 0, rows - len(step)), value=padding_value) for step in data.split(sizes)]
    padded = functional.pad(torch.stack(steps), (*flat, 0, 0, 0, missing), value=padding_value)
    lengths = [sum(size > row for size in sizes) for row in range(rows)]
    with _disable_current_modes():  # torch keeps these on the CPU
        return padded.transpose(0, 1) if batch_first else padded, torch.tensor(lengths)


@contextmanager
def watching(teller: Teller) -> Iterator[None]:
    """Inside, a call is watched."""
    fast, from_numpy = torch.backends.mha.get_fastpath_enabled(), torch.from_numpy
    in_place = not torch.__future__.get_overwrite_module_params_on_conversion()

    def from_held(array: Any) -> Tensor:
        return array.held if isinstance(array, HeldArray) else from_numpy(array)

    teller.closed = False
    one_dnn = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)  # recurrent layers step by step
    torch.backends.mha.set_fastpath_enabled(False)  # not by one operation that would hide all others, nor is attention
    torch.from_numpy = from_held  # type: ignore[assignment]  # no mode hears of it
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # a handle cannot become one of another dtype
    try:
        try:
            with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), converting(), Making(teller), Bringing(teller):
                yield
        except BaseException:
            with suppress(RuntimeError, IndexError, ValueError, TypeError):  # what went wrong first is told
                teller.flush()
            raise
        teller.flush()
    finally:
        teller.closed = True
        torch._C._set_mkldnn_enabled(one_dnn)
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.from_numpy = from_numpy
        torch.__future__.set_overwrite_module_params_on_conversion(not in_place)


@lru_cache(maxsize=16384)
def _viewed(
    func: Any, dtype: torch.dtype, shape: Any, strides: Any, offset: int, args: Any, kwargs: Any
) -> list[tuple[Any, Any, int]]:
    """Shape, strides and offset of what an operation makes of a tensor of this form; it raises as torch does."""
    form = torch.empty(1, dtype=dtype, device="meta").as_strided(shape, strides, offset)
    made = func(form, *args, **dict(kwargs))
    made = made if isinstance(made, list | tuple) else [made]
    return [(tuple(one.shape), one.stride(), one.storage_offset()) for one in made]


@lru_cache(maxsize=4096)
def _is_foreseeable(func: Any) -> bool:
    """Whether the form of what it gives follows from the forms of what it is given, whatever the numbers are."""
    tags = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
    tensors = [str(value.type) == "Tensor" for value in func._schema.returns]
    return bool(tensors) and all(tensors) and not tags & {*func.tags} and func.overloadpacket.__name__ not in MAY_FAIL


def _remember(key: Any, result: Any, args: Any) -> None:
    """What form a result has, for the next operation like this one."""
    if len(_forms) >= KNOWN:
        _forms.clear()
    results = result if isinstance(result, tuple) else (result,)
    if len(results) == 1 and args and result is args[0]:
        _forms[key] = None
    elif all(isinstance(one, Held) and not any(one is given for given in args) for one in results):
        _forms[key] = [(one.dtype, tuple(one.shape), one.stride()) for one in results]


@lru_cache(maxsize=4096)
def _gives_many(func: Any) -> bool:
    return [str(value.type) for value in func._schema.returns] == ["List[Tensor]"]


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


@lru_cache(maxsize=4096)
def _makes(func: Any) -> bool:
    return any(argument.name == "device" for argument in func._schema.arguments)


def _teller_of(args: Any, kwargs: Any) -> Teller:
    if args and isinstance(args[0], Held):
        return args[0].teller
    return next(x.teller for x in wire.leaves((args, kwargs)) if isinstance(x, Held))


def _plain(tensor: Tensor) -> Tensor:
    if tensor.device.type == "meta":
        raise RuntimeError("a tensor on the meta device has no numbers")
    return tensor.detach().cpu()
