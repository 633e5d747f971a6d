"""Watched calls: student code gets handles instead of numbers, and the judge learns what was done with the numbers.

with watch(student) as session:
    seen = session.call(student["attention"], q, k, v)
    seen.value, seen.flops, seen.names

What is counted is counted in the vault, where the numbers are. Inputs are drawn by the caller for this call, and the
result is real: compare it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.box import wire
from autograder.box.channel import NO_ANSWER
from autograder.box.protocol import Kept
from autograder.judge.faults import checked, one_line
from autograder.judge.proxies import ModuleProxy, Student, lower, tensors_in
from autograder.judge.verdicts import StudentCrash, StudentError
from course_utils.checking.compare import Wrong

BRINGS = 256  # numbers that a call may bring in: how honest code builds a mask


@dataclass(frozen=True)
class Seen:
    """What a watched call gave back, and what it did."""

    value: Any
    flops: int  # multiply-adds x 2 of all matrix products
    largest: int  # numbers of the largest tensor that was made on the way
    made: int  # numbers of all of them
    read: int
    brought: int
    complexes: int  # results that are complex: nothing in this course is
    names: Mapping[str, int]  # how often each operation of torch was run
    wholes: frozenset[str]  # operations that were taken apart before, by the box's own word
    strays: int  # tensors of the result that are not on the claimed device
    factors: tuple[Tensor, ...] = ()  # what went into products, where a session keeps it


class Session:
    """Watched calls whose handles stay valid from one to the next."""

    def __init__(
        self, student: Student, device: str, reads: int | None, brings: int, seed: int, factors: bool = False
    ) -> None:
        self._student = student
        self.device = device
        self._relay = student.relay
        self._vault = student.channel.vault()
        self._brings = brings
        self._inputs: dict[int, str] = {}  # number in the vault -> the argument that it is
        self._taken: dict[int, ModuleProxy] = {}
        self.ask_vault({"op": "begin", "seed": seed, "reads": reads, "brings": brings, "factors": factors})
        student.watched_on = device

    def call(self, target: Any, *args: Any, opaque: str = "none", **kwargs: Any) -> Seen:
        """One watched call; `Wrong` where it cannot be believed, or has changed its inputs.

        What is `opaque` stays in the box as it is, whatever it is: "all" of the result, or the "last" item of it.
        """
        for module in (target, *args, *kwargs.values()):
            self._take(module)
        self.ask_vault({"op": "resume", "own": False})
        self._hold([args, kwargs])
        message = {
            "op": "call watched",
            "target": lower(target),
            "opaque": opaque,
            "args": [self._put(value, f"argument {i + 1}") for i, value in enumerate(args)],
            "kwargs": {name: self._put(value, name) for name, value in kwargs.items()},
        }
        try:
            with self._heard_by_the_relay():
                reply = self._student.exchange(message)
        except StudentError:
            if refused := self._count()["refused"]:
                raise Wrong(f"in a watched call {one_line(checked(refused, str))}") from None
            raise
        value = reply["value"]
        handles = list(dict.fromkeys(leaf.number for leaf in wire.leaves(value) if type(leaf) is Kept))
        told = self._count(handles)
        if told["refused"]:
            raise Wrong(f"in a watched call {one_line(checked(told['refused'], str))}")
        if told["changed"]:
            first = self._inputs.get(told["changed"][0], "input")
            raise Wrong(f"your code changed its {first} in place: work on a copy.")
        numbers = {name: told[name] for name in ("flops", "largest", "made", "read", "brought", "complexes")}
        if not all(type(number) is int and number >= 0 for number in numbers.values()):
            raise StudentCrash(NO_ANSWER)
        wholes = frozenset(map(str, checked(reply.get("wholes"), list)))
        own = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
        if told["brought"] + sum(leaf.numel() for leaf in own) > self._brings:
            raise Wrong(f"in a watched call more than {self._brings} numbers of its result were made beside its inputs")
        fetched = dict(zip(handles, checked(told["fetched"], list), strict=True))
        result = self._student.lift(_filled(value, fetched), "result")
        factors = tuple(checked(told["factors"], list))
        return Seen(result, **numbers, names=dict(told["names"]), wholes=wholes, strays=len(own), factors=factors)

    def load(self, module: ModuleProxy, state: Mapping[str, Tensor]) -> None:
        """Give a module weights that no box ever has: its parameters of these names become handles of them."""
        self._hold(state)
        kept = {name: self._put(value, f"parameter {name}") for name, value in state.items()}
        self._take(module, kept)

    def _hold(self, value: Any) -> None:
        """Put all tensors of a value into the vault."""
        tensors = [tensor.detach() for tensor in tensors_in(value)]
        self._held = iter(checked(self.ask_vault({"op": "hold", "tensors": tensors}), list) if tensors else [])

    def _put(self, value: Any, name: str) -> Any:
        """An argument with its tensors, which were put into the vault, by their numbers there."""
        if isinstance(value, Tensor):
            number = next(self._held)
            self._inputs[number] = name
            kept = value.detach().contiguous()
            return Kept(number, kept.dtype, tuple(kept.shape), tuple(kept.stride()))
        if isinstance(value, list | tuple):
            return type(value)(self._put(item, name) for item in value)
        if isinstance(value, Mapping):
            return {key: self._put(item, name) for key, item in value.items()}
        return lower(value)

    def _take(self, value: Any, state: Mapping[str, Any] | None = None) -> None:
        """Have the numbers of a module's parameters and buffers kept in the vault for this session.

        This comes before a call's inputs: what a box puts in as a module's own is not counted.
        """
        if isinstance(value, list | tuple | Mapping):
            for item in value.values() if isinstance(value, Mapping) else value:
                self._take(item)
        elif isinstance(value, ModuleProxy) and (state is not None or id(value) not in self._taken):
            self.ask_vault({"op": "resume", "own": True})
            self._student.ask({"op": "take", "target": value._target, "state": dict(state or {})})
            self._taken[id(value)] = value

    def close(self) -> None:
        """Give modules their own parameters back."""
        self._student.watched_on = "cpu"

    @contextmanager
    def _heard_by_the_relay(self) -> Iterator[None]:
        """Parts in another box get their numbers from this session, and are counted in it."""
        if self._relay is None:
            yield
            return
        self._relay.session = self
        try:
            yield
        finally:
            self._relay.session = None

    def _count(self, handles: Sequence[int] = ()) -> dict[str, Any]:
        """What was done since this was last asked, and the tensors of these numbers."""
        told = checked(self.ask_vault({"op": "count", "handles": list(handles)}), dict)
        return told if self._relay is None else self._relay.counted(told)

    def ask_vault(self, message: dict[str, Any]) -> Any:
        """A request to the vault."""
        reply = self._vault.request(message, wall=self._student.wall)
        if "error" in reply:
            raise StudentCrash(NO_ANSWER)
        return reply["value"]


def _filled(value: Any, tensors: Mapping[int, Tensor]) -> Any:
    if type(value) is Kept:
        return tensors[value.number]
    if isinstance(value, list | tuple):
        return type(value)(_filled(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _filled(item, tensors) for key, item in value.items()}
    return value


@contextmanager
def watch(
    student: Student,
    device: str = "cpu",
    reads: int | None = None,
    brings: int = BRINGS,
    seed: int = 0,
    factors: bool = False,
) -> Iterator[Session]:
    """A session; `device` is what tensors claim to be on ("meta": a stand-in for a GPU).

    With `factors` it keeps what goes into products.
    """
    session = Session(student, device, reads, brings, seed, factors)
    try:
        yield session
    finally:
        session.close()
