"""The vault: a process that holds the numbers of a watched call, runs the operations it is asked for, and counts them.

It is boxed like student code, but never runs any: the box has handles and asks for operations by name. Whatever thread,
library or trick student code uses, it cannot compute on numbers that it does not have, so what is counted here is what
was done. The judge puts the inputs in, and takes results and counts out, over a channel of its own.
"""

from __future__ import annotations

import math
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgpack  # type: ignore[import-untyped]
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from autograder.box import protocol, wire
from autograder.box.operations import ELEMENTWISE, is_allowed, is_composite, slowest, taken_apart
from autograder.box.wire import WireError
from course_utils.instruments.work import numbers_read

LARGEST = 2**24  # numbers of one tensor
MOST = 20_000  # tensors at a time
ROOM = 2**30  # bytes of all of them
FEW, READS = 4, 64  # numbers may be read out of small and large inputs
BITS = 4  # what is read out is paid by the bit: a token or a comparison is cheap, and numbers packed into one are not
ERROR = 64  # bits that the text of an error may tell
OPERATIONS = 200_000  # of one call
FACTORS = 2**20  # numbers of factors that are kept for the judge
BROADCAST = frozenset(ELEMENTWISE.split()) | frozenset(f"{name}_" for name in ELEMENTWISE.split())
FORMS = 4096  # of products whose work is remembered
_counted: dict[Any, int] = {}
STEPS = ("arange", "range")  # how many numbers they give follows from a quotient
AXES = {"_fft_c2c", "_fft_c2r", "_fft_r2c"}
PARTS = {"unbind", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"}
PRODUCTS = {"mul", "mul_", "bmm", "mm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "addcmul"}
# Operations that write to an argument without saying so, and those that take more random numbers for some values.
WRITES = {"native_batch_norm", "embedding_renorm_", "rrelu_with_noise", "rrelu_with_noise_"}
DRAWS = {"multinomial"}
# Products whose work torch has no formula for: more may go on inside than shows in the size of the result.
UNCOUNTED: dict[str, Callable[..., int]] = {
    "mv": lambda _, matrix, *__: 2 * matrix.numel(),
    "addmv": lambda _, __, matrix, *___: 2 * matrix.numel(),
    **dict.fromkeys(("dot", "vdot"), lambda _, x, *__: 2 * x.numel()),
    "addr": lambda result, *_: 2 * result.numel(),
    "_trilinear": lambda _, *args: 3 * _trilinear_size(*args[:6]),
    **dict.fromkeys(
        ("conv_tbc", "slow_conv_dilated2d", "slow_conv_transpose2d", "_slow_conv2d_forward"),
        lambda result, _, weight, *__: 2 * result.numel() * weight.numel() // max(min(weight.shape[:2]), 1),
    ),
}
# Operations whose result's size follows from values: at most how many numbers it has.
BY_VALUES: dict[str, Callable[..., float]] = {
    "nonzero": lambda x: x.numel() * x.dim(),
    "masked_select": lambda x, mask: math.prod(torch.broadcast_shapes(x.shape, mask.shape)),
    "repeat_interleave": lambda repeats, **_: repeats.double().sum().item(),
    "bincount": lambda x, weights=None, minlength=0: max(x.double().max().item() if len(x) else 0, minlength) + 1,
    **dict.fromkeys(
        ("_unique", "_unique2", "unique_dim", "unique_consecutive", "equal"), lambda x, *_, **__: x.numel()
    ),
}


class Refused(Exception):
    """What a watched call may not do; the text tells the student."""


@dataclass
class Tally:
    """What was asked for since the judge last looked."""

    flops: int = 0
    largest: int = 0  # numbers of the largest tensor that was made
    made: int = 0  # numbers of all of them, or that were read where those are more, as in a sum
    read: int = 0  # numbers that were read out
    brought: int = 0  # numbers that were brought in
    complexes: int = 0  # results that are complex
    names: Counter[str] = field(default_factory=Counter)  # operations, by name
    refused: str = ""  # why the call cannot be believed, if so
    factors: list[Tensor] = field(default_factory=list)  # what went into products, where the judge wants it

    def to_data(self) -> dict[str, Any]:
        """For the judge."""
        return {**vars(self), "names": dict(self.names.most_common(2_000))}


def run(func: Any, args: list[Any], kwargs: dict[str, Any], tally: Tally) -> Any:
    """One operation, where it is on the list and its result is not too large; counted."""
    leaves = wire.leaves((args, kwargs))
    name = func.overloadpacket.__name__
    if not is_allowed(func):
        raise Refused(f"it asks for torch's `{name}`, which is not run there")
    if name in BY_VALUES:
        if not BY_VALUES[name](*args, **kwargs) <= LARGEST:
            raise Refused(f"`{name}` of this is larger than a watched call may make")
    elif name in STEPS or (_spread_over(leaves) if name in BROADCAST else _bound(leaves)) > LARGEST:
        _look_ahead(func, args, kwargs)
    _check_claims(name, args, kwargs)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    known = set(map(_memory, tensors))
    result = func(*args, **kwargs)
    tally.names[name] += 1
    if func.overloadpacket in flop_registry:
        tally.flops += _flops(func, args, kwargs, result)
    elif name in UNCOUNTED:
        tally.flops += UNCOUNTED[name](result, *args)
    made = 0
    for leaf in (result,) if isinstance(result, Tensor) else wire.leaves(result):
        if not isinstance(leaf, Tensor):
            continue
        tally.complexes += leaf.is_complex()
        if _memory(leaf) not in known:
            tally.largest = max(tally.largest, leaf.numel())
            made += leaf.numel()
            if name.startswith(("empty", "new_empty")):
                leaf.zero_()  # what happens to lie in memory is nobody's business
    tally.made += max(made, numbers_read(name, args, tensors))
    return result


class _Counting(TorchDispatchMode):
    """Counts what is done while this is on; a function that is made of others is taken apart."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self._tally = tally

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if is_composite(func):
            with self:
                return taken_apart(func, args, kwargs)
        return run(func, list(args), kwargs, self._tally)


@contextmanager
def counted() -> Iterator[Tally]:
    """Count what is done inside: for work that is done elsewhere for a watched call."""
    tally = Tally()
    one_dnn = torch.backends.mkldnn.flags(enabled=False)
    with torch.inference_mode(), one_dnn, _Counting(tally):
        yield tally


def _check_claims(name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Refuse what torch would believe, and write where nothing is: a wrong length of a result, axes that are none."""
    if name == "repeat_interleave" and kwargs.get("output_size") not in (None, int(args[0].sum())):
        raise Refused(f"`{name}` is told a wrong length of its result")
    if name in AXES:
        tensor, axes = args[:2]
        if not axes or len(set(axes)) < len(axes) or not all(0 <= axis < tensor.dim() for axis in axes):
            raise Refused(f"`{name}` is asked for along axes that are none")
    if "batch_norm" in name:
        first, *others = (leaf for leaf in wire.leaves((args, kwargs)) if isinstance(leaf, Tensor))
        if first.dim() < 2 or not first.numel() or not first.is_floating_point():
            raise Refused(f"`{name}` is asked for with nothing to norm")
        if any(tuple(x.shape) != (first.shape[1],) or not x.is_floating_point() for x in others):
            raise Refused(f"`{name}` is asked for with numbers of channels that do not agree")
    if name in PARTS and isinstance(args[0], Tensor) and max(args[0].shape, default=0) > MOST:
        raise Refused(f"`{name}` would make more than {MOST} tensors")


def _flops(func: Any, args: list[Any], kwargs: dict[str, Any], result: Any) -> int:
    """Of a product, by torch's own formula, which is asked again only for sizes that it has not been asked for."""
    formula = flop_registry[func.overloadpacket]
    tensors = [x for x in args if isinstance(x, Tensor)]
    if not kwargs.keys() - {"beta", "alpha"} and len(tensors) == len(args):
        key = func.overloadpacket, *[x.shape for x in tensors]
        if key not in _counted:
            if len(_counted) >= FORMS:
                _counted.clear()
            _counted[key] = int(formula(*args, **kwargs, out_val=result))
        return _counted[key]
    return int(formula(*args, **kwargs, out_val=result))


def _trilinear_size(a: Tensor, b: Tensor, c: Tensor, *expanded: list[int]) -> int:
    """How many products of three numbers `_trilinear` adds up."""
    shapes = []
    for tensor, places in zip((a, b, c), expanded, strict=True):
        shape = list(tensor.shape)
        for place in sorted(places):
            shape.insert(place, 1)
        shapes.append(shape)
    return math.prod(max(sizes) for sizes in zip(*shapes, strict=True))


def _spread_over(leaves: list[Any]) -> int:
    """How many numbers there are where tensors are spread over each other."""
    count, tensors = 1, [x.shape for x in leaves if isinstance(x, Tensor)]
    for axis in range(1, max(map(len, tensors), default=0) + 1):
        count *= max(shape[-axis] for shape in tensors if len(shape) >= axis)
    return count


def _most(leaves: list[Any]) -> int:
    """How many numbers the largest of the tensors has; a complex one counts as four, as long as its functions take."""
    return max((leaf.numel() << 2 * leaf.is_complex() for leaf in leaves if isinstance(leaf, Tensor)), default=0)


def _bound(leaves: list[Any]) -> int:
    """No result has more numbers than this, as a rule far fewer: sizes multiply, and lengths are at most added to."""
    bound = 1
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            bound *= leaf.numel() or math.prod(max(size, 1) for size in leaf.shape)
        elif type(leaf) is int:
            bound *= abs(leaf) + 1
        elif type(leaf) is float:
            bound *= int(min(abs(leaf), 1e18)) + 2 if leaf == leaf else 1
        if bound > LARGEST:
            return bound
    return bound


def _look_ahead(func: Any, args: Any, kwargs: Any) -> None:
    """Refuse a result that would be too large, before anything is allocated for it."""
    if any(argument.name == "device" for argument in func._schema.arguments):
        kwargs = {**kwargs, "device": torch.device("meta")}
    try:
        result = func(*tree_map(_empty, [_as_places(value) for value in args]), **tree_map(_empty, kwargs))
    except NotImplementedError:
        raise Refused(f"how large a result of `{func.overloadpacket.__name__}` would be cannot be told") from None
    for leaf in wire.leaves(result):
        if isinstance(leaf, Tensor) and leaf.untyped_storage().nbytes() > LARGEST * leaf.dtype.itemsize:
            raise Refused(f"a tensor of {list(leaf.shape)} is larger than a watched call may make")


def _empty(value: Any) -> Any:
    """A tensor's form without its numbers."""
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return value


def _as_places(value: Any) -> Any:
    """An index with the places that its masks pick, in the place of the masks."""
    if isinstance(value, list) and any(map(_is_mask, value)):
        return [x for one in value for x in (one.nonzero().unbind(1) if _is_mask(one) else [one])]
    return value


def _is_mask(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (torch.bool, torch.uint8)


class Vault:
    """The tensors of a session, and what has been done with them."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._request: list[Tensor] = []  # the tensors of the request at hand
        self._given: list[int] = []  # the numbers that its results are to have
        self._last = 0  # numbers are not used again: code may keep what it made in an earlier call
        self._tensors: dict[int, Tensor] = {}
        self._secret: dict[int, bool] = {}  # memory -> whether what the judge has put in could be read off it
        self._room = 0  # bytes that were given out since it was last counted how many are in use
        self.begin(0, 0, 0)

    # what the judge asks for

    def answer_judge(self, message: dict[str, Any]) -> Any:
        """The reply to a request of the judge's."""
        match message["op"]:
            case "resume":  # "own": the box may put in what its modules hold, before it has met the inputs
                self._going_on, self._owning = True, message["own"]
                return None
            case "begin":
                return self.begin(message["seed"], message["reads"], message["brings"], message["factors"])
            case "hold":
                return [self._hold_input(tensor) for tensor in message["tensors"]]
            case "keep":  # what was made elsewhere of these tensors
                secret = self._is_secret([self._tensors[number] for number in message["of"]])
                return [self._keep(tensor, secret) for tensor in message["tensors"]]
            case "count":
                self._going_on = self._owning = False  # what goes on in the box after its call is of no account
                self._calls += 1
                tally, self.tally = self.tally, Tally()
                fetched = self._fetched(message.get("handles", []))
                return tally.to_data() | {"changed": self._changed(), "fetched": fetched}
            case "fetch":
                return [_whole(self._tensors[number]) for number in message["handles"]]
        raise WireError(f"no operation {message['op']}")

    def _fetched(self, handles: list[int]) -> list[Tensor] | None:
        """The tensors of these numbers; none where they cannot all be had."""
        try:
            return [_whole(self._tensors[number]) for number in handles]
        except (KeyError, WireError):
            return None

    def begin(self, seed: int, reads: int | None, brings: int, factors: bool = False) -> None:
        """Forget what the judge has put in and what came of it.

        `reads` and `brings` are the numbers that a call may read out and bring in. Without `reads` it is a handful, and
        never more than a quarter of what the judge has put in. With `factors` what goes into products is kept.
        """
        self._tensors = {n: x for n, x in self._tensors.items() if not self._secret.get(_memory(x), True)}
        self._secret = {_memory(x): False for x in self._tensors.values()}
        self._inputs: list[tuple[int, Tensor, Tensor]] = []  # number, tensor, and what it was
        self._going_on = self._owning = False
        self._secrets = 0  # numbers that the judge has put in
        self._width = 0  # bits of one of them
        self._spent = self._calls = 0  # bits that were read out, in lots, and calls so far, of this session
        self._owed = 0  # nanoseconds that the answer at hand takes at least
        self._drawn = False  # whether the next random numbers follow from what the judge has put in
        self._reads, self._brings, self._factors = reads, brings, factors
        self.tally = Tally()
        torch.default_generator.manual_seed(seed)

    def _hold_input(self, tensor: Tensor) -> int:
        secret = tensor.is_floating_point() or tensor.is_complex()  # masks and ids are no secrets
        self._secrets += tensor.numel() if secret else 0
        self._width = max(self._width, 8 * tensor.itemsize if secret else 0)
        number = self._keep(tensor, secret)
        self._inputs.append((number, tensor, tensor.clone()))
        return number

    def _changed(self) -> list[int]:
        """The inputs that are no longer as the judge has put them in."""
        return [number for number, now, was in self._inputs if not _same(now, was)]

    # what the box asks for

    def answer_box(self, data: bytes) -> bytes:
        """The reply to a request of the box's; whatever goes wrong becomes a reply too.

        It comes no sooner than if all secret numbers were of those that take longest.
        """
        start, self._owed = time.perf_counter_ns(), 0
        reply = self._answered(data)
        while time.perf_counter_ns() < start + self._owed:
            pass  # at work, since a box can see a core that is idle
        return reply

    def _answered(self, data: bytes) -> bytes:
        try:
            with torch.inference_mode():
                reply: list[Any] = []
                for request in self._requests(data):  # the box waits for the answer to the last one
                    reply = [True, self._answer(request)]
                if not reply:
                    raise WireError("no request")
            return msgpack.packb(reply, default=wire.plain)
        except Refused as error:
            return self._refusal(error)
        except Exception as error:
            try:
                self._note_read(1, ERROR, self._request)  # whether an operation fails tells something, too
            except Refused as refused:
                return self._refusal(refused)
            return msgpack.packb([False, type(error).__name__, str(error)[:2_000]])

    def _refusal(self, error: Refused) -> bytes:
        self.tally.refused = self.tally.refused or str(error)
        return msgpack.packb([False, "RuntimeError", str(error)])

    def _answer(self, request: Any) -> Any:
        if sum(self.tally.names.values()) > OPERATIONS:
            raise Refused(f"it asks for more than {OPERATIONS} operations")
        if not self._going_on and not (request[0] == "read" and not self._is_secret([request[1]])):
            raise WireError("a tensor of an earlier call is used here: keep nothing from one call to the next")
        match request:
            case ["run", str(name), str(overload), list(args), dict(kwargs), list(gone), *expected]:
                for number in gone:
                    self._tensors.pop(number, None)
                return self._run(name, overload, args, kwargs, *expected)
            case ["read", Tensor() as tensor]:
                self._note_read(tensor.numel(), _told(tensor), [tensor])
                return wire.numbers(tensor.resolve_conj().resolve_neg())
            case ["settle", Tensor() as tensor]:
                return wire.new(self._keep(tensor, self._is_secret([tensor])), tensor)
            case ["bring", msgpack.ExtType(wire.NUMBERS, data), int(number)]:
                tensor = wire.tensor_of(data).clone()
                self._note_brought(tensor.numel())
                self._named(number)
                return self._keep(tensor, False)
            case ["own", msgpack.ExtType(wire.NUMBERS, data), int(number)] if self._owning:  # as the judge has asked
                self._named(number)
                return self._keep(wire.tensor_of(data).clone(), False)
        raise WireError("a request that is none")

    def _run(
        self, name: str, overload: str, args: list[Any], kwargs: dict[str, Any], expected: list[Any] | None = None
    ) -> Any:
        """The result of an operation; of the form that is `expected` where the box has not waited to learn it."""
        packet = getattr(torch.ops.aten, name, None)
        func = getattr(packet, overload, None) if isinstance(packet, torch._ops.OpOverloadPacket) else None
        if not isinstance(func, torch._ops.OpOverload):
            raise Refused(f"it asks for `{name}`, which is no operation of torch's")
        if name == "_fused_sdp_choice":
            self.tally.names[name] += 1
            return SDPBackend.MATH.value  # not by one operation that would hide all others
        if self._factors and name in PRODUCTS:
            self._note_factors(args)
        result = run(func, args, kwargs, self.tally)
        if expected:
            result = self._formed(result, expected)
        leaves = wire.leaves((args, kwargs))
        given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if torch.Tag.dynamic_output_shape in func.tags and (name != "index" or any(map(_is_mask, args[1]))):
            sizes = [leaf.numel() for leaf in wire.leaves(result) if isinstance(leaf, Tensor)]
            self._note_read(1, max(sizes, default=0).bit_length(), given)  # the result's shape tells something
        secret = self._is_secret(given) or (self._drawn and torch.Tag.nondeterministic_seeded in func.tags)
        if secret:
            self._owed += slowest(func) * _most([*given, *wire.leaves(result)])
            self._spread(func, args, kwargs)
        return self._lower(result, leaves, given, secret)

    def _spread(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """What an operation on secrets writes to is a secret, too, and so is what is drawn after it."""
        name = func.overloadpacket.__name__
        self._drawn = self._drawn or name.rstrip("_") in DRAWS
        for place, argument in enumerate(func._schema.arguments):
            if name in WRITES or (argument.alias_info is not None and argument.alias_info.is_write):
                value = args[place] if place < len(args) else kwargs.get(argument.name)
                for leaf in wire.leaves(value):
                    if isinstance(leaf, Tensor):
                        self._secret[_memory(leaf)] = True

    def _formed(self, result: Any, expected: list[Any]) -> Any:
        """A result as the box takes it to be, under the numbers that it gives."""
        results = result if isinstance(result, tuple) else (result,)
        formed = []
        for one, (number, code, shape, strides) in zip(results, expected, strict=True):
            if not isinstance(one, Tensor) or (wire.CODES[one.dtype], list(one.shape)) != (code, shape):
                raise WireError("a result of another form than was expected")
            if list(one.stride()) != strides or one.storage_offset():
                if 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) > max(one.numel(), 1):
                    raise WireError("a result of another form than was expected")
                one = torch.empty_strided(shape, strides, dtype=one.dtype).copy_(one)
            self._named(number)
            formed.append(one)
        return tuple(formed) if isinstance(result, tuple) else formed[0]

    def _named(self, number: int) -> None:
        """The next tensor that is kept gets this number."""
        if type(number) is not int or not wire.OWN_NUMBERS <= number < 2**63 or number in self._tensors:
            raise WireError("a number that a box may not give")
        self._given.append(number)

    def _is_secret(self, tensors: list[Tensor]) -> bool:
        return any(self._secret.get(_memory(tensor), True) for tensor in tensors)

    def _lower(self, value: Any, leaves: list[Any], given: list[Tensor], secret: bool) -> Any:
        if isinstance(value, Tensor):
            for place, leaf in enumerate(leaves):
                if leaf is value:  # an operation in place
                    self._secret[_memory(value)] = secret
                    return wire.same(place)
            shared = any(_memory(tensor) == _memory(value) for tensor in given)
            return wire.new(self._keep(value, secret or (shared and self._secret.get(_memory(value), True))), value)
        if isinstance(value, list | tuple):
            return [self._lower(item, leaves, given, secret) for item in value]
        if isinstance(value, bool | int | float | complex):
            self._note_read(1, _told(torch.tensor(value)), given)
        return value

    def _requests(self, data: bytes) -> Iterator[Any]:
        """One after the other, each read when those before it are answered: it may name what they have made."""
        unpacker = msgpack.Unpacker(
            ext_hook=self._lift, strict_map_key=True, max_ext_len=wire.MAX_BYTES, max_buffer_size=wire.MAX_BYTES
        )
        unpacker.feed(data)
        while True:
            self._request, self._given = [], []
            try:
                request = unpacker.unpack()
            except msgpack.OutOfData:
                if unpacker.tell() < len(data):
                    raise WireError("a request that is none") from None
                return
            yield request

    def _lift(self, code: int, data: bytes) -> Any:
        if code == wire.HANDLE:
            number = struct.unpack("<Q", data)[0]
            if number not in self._tensors:
                raise WireError("no such tensor")
            self._request.append(self._tensors[number])
            return self._tensors[number]
        if code == wire.VIEW:
            number, shape, strides, offset = wire.view_of(data)
            if number not in self._tensors:
                raise WireError("no such tensor")
            self._request.append(self._tensors[number])
            return self._tensors[number].as_strided(shape, strides, offset)
        if code == wire.NUMBERS:  # only where they are counted
            return msgpack.ExtType(code, data)
        if code == wire.DEVICE:
            return torch.device("cpu")
        return wire.lifted(code, data)

    def _keep(self, tensor: Tensor, secret: bool) -> int:
        self._secret[_memory(tensor)] = secret
        if len(self._tensors) >= MOST:
            raise Refused(f"it holds more than {MOST} tensors at a time")
        self._room += tensor.untyped_storage().nbytes()
        if self._room > ROOM:
            self._room = sum({_memory(x): x.untyped_storage().nbytes() for x in self._tensors.values()}.values())
            if self._room > ROOM:
                raise Refused(f"it holds more than {ROOM >> 20} MB at a time")
        if self._given:
            number = self._given.pop(0)
        else:
            number = self._last = self._last + 1
        self._tensors[number] = tensor
        return number

    def _note_read(self, count: int, bits: int, given: list[Tensor]) -> None:
        """So many numbers are told, and so many bits with them.

        A suite that says how many numbers may be read means small ones, such as tokens; else they are like the inputs.
        """
        if not self._is_secret(given):
            return
        self.tally.read += count
        self._spent += max(-(-bits // BITS), count)
        if self._reads is None:
            most = max(FEW, min(READS, self._secrets // 4))
            lots = most * max(self._width, BITS) // BITS + FEW * self._calls  # a few comparisons in each further call
        else:
            most = lots = self._reads
        if self.tally.read > most or self._spent > lots:
            raise Refused(
                f"it reads more than {most} numbers out of its tensors (.item(), .tolist(), .numpy() or a "
                "comparison): work on whole tensors"
            )

    def _note_factors(self, args: list[Any]) -> None:
        factors = [x for x in args if isinstance(x, Tensor) and x.is_floating_point()]
        if sum(x.numel() for x in (*self.tally.factors, *factors)) > FACTORS:
            raise Refused("its products are larger than this call may make")
        self.tally.factors += [x.to(torch.float64, copy=True) for x in factors]

    def _note_brought(self, count: int) -> None:
        self.tally.brought += count
        if self.tally.brought > self._brings:
            raise Refused(
                f"it brings more than {self._brings} numbers of its own into its tensors: make them from the inputs, "
                "or with functions such as torch.arange"
            )


def _told(tensor: Tensor) -> int:
    """The bits that reading a tensor's numbers tells, at most: of whole numbers as many as the largest has."""
    if tensor.dtype == torch.bool or not tensor.numel():
        each = 1
    elif tensor.is_floating_point() or tensor.is_complex():
        each = 8 * tensor.itemsize
    else:
        each = max(abs(int(tensor.min())), abs(int(tensor.max()))).bit_length() + 1
    return each * tensor.numel()


def _whole(tensor: Tensor) -> Tensor:
    """A tensor for the judge, in memory of its own; a view can have more numbers than its memory."""
    if tensor.numel() > LARGEST:
        raise WireError("a result that is too large")
    return tensor.resolve_conj().resolve_neg().clone()


def _memory(tensor: Tensor) -> int:
    """What tells whether two tensors share their memory."""
    return tensor.untyped_storage()._cdata


def _same(now: Tensor, was: Tensor) -> bool:
    with torch.inference_mode():
        like = now.shape == was.shape and now.dtype == was.dtype
        return like and torch.equal(protocol.byte_view(now), protocol.byte_view(was))


def serve(judge: socket.socket, box: socket.socket) -> None:
    """Answer both until the judge hangs up; for a process of its own."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # else products with the smallest numbers take far longer, and a box can see it
    vault = Vault()
    listening = {judge, box}
    while True:
        ready, _, _ = select.select(list(listening), [], [])
        if judge in ready:
            asked = _judges_frame(judge)
            if asked is None:
                return
            header, message, _ = protocol.unpack(asked, protocol.TO_BOX)
            try:
                told = {"value": vault.answer_judge(message)}
                frame = protocol.pack(told, header.nonce, header.sequence, protocol.TO_JUDGE)
            except Exception as error:  # what is too large for a message, too
                told = {"error": {"kind": "no data", "types": [type(error).__name__], "message": str(error)[:500],
                                  "cell": None, "line": None, "source": ""}}  # fmt: skip
                frame = protocol.pack(told, header.nonce, header.sequence, protocol.TO_JUDGE)
            judge.sendall(frame)
        elif box in ready:
            data = wire.receive(box)
            if data is None:
                listening.discard(box)
                continue
            with suppress(OSError):
                wire.send(box, vault.answer_box(data))


def _judges_frame(connection: socket.socket) -> bytearray | None:
    head = wire.exactly(connection, protocol.HEADER.size)
    if head is None:
        return None
    header = protocol.read_header(head, protocol.TO_BOX)
    body = wire.exactly(connection, header.body)
    return None if body is None else bytearray(head + body)
