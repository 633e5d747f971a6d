"""The way between two boxes: student code in one, the reference's earlier answers in the other, and data between them.

The judge carries each message, believes neither side, and keeps count. In a watched call the student's box has handles
and the vault has the numbers: these go from the vault to the other box, and what comes back goes into the vault.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.box.channel import NO_ANSWER, Channel
from autograder.box.protocol import Kept
from autograder.judge.verdicts import Infrastructure, StudentCrash

if TYPE_CHECKING:
    from autograder.judge.watch import Session

MAX_MESSAGES = 40_000  # of one case, in both directions
MAX_BYTES = 4 * 2**30  # of tensors in them
READS = 64  # numbers that parts may give back in a watched call, besides tensors
COUNTS = ("flops", "made")


class Relay:
    """Carries messages from a student's box to the box with the parts, and back."""

    def __init__(self, far: Channel, names: tuple[str, ...]) -> None:
        self._far = far
        self._names = names
        self._messages = self._bytes = self._read = 0
        self.session: Session | None = None  # the watched call that is going on
        self._tally: dict[str, Any] = {}
        self._of: list[int] = []  # the handles that the last call came with

    def serve(self, channel: Channel) -> None:
        """From here on it is this box whose messages are carried; the other side forgets what it was told before."""
        reply = self._far.request({"op": "offer", "names": list(self._names)}, wall=60.0)
        if "error" in reply:
            raise Infrastructure(f"The reference's parts cannot be offered: {reply['error'].get('message')}")
        channel.relay = self
        self._far.relay = lambda message, wall: self._in(channel.talk(self._out(message), wall=wall))  # in one process

    def begin(self) -> None:
        """A new case, a new count."""
        self._messages = self._bytes = self._read = 0

    def __call__(self, message: dict[str, Any], wall: float | None) -> dict[str, Any]:
        """What the other box says to a message of the student's."""
        return self._out(self._far.talk(self._in(message), wall=wall))

    def counted(self, told: dict[str, Any]) -> dict[str, Any]:
        """What the vault has counted in a watched call, with what was done for it in the other box."""
        tally, self._tally = self._tally, {}
        if not tally:
            return told
        sums = {name: told[name] + tally[name] for name in COUNTS}
        names = Counter(told["names"]) + Counter(tally["names"])
        return told | sums | {"largest": max(told["largest"], tally["largest"]), "names": dict(names)}

    def _in(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message from the student's box: counted, and with numbers in the place of handles."""
        tensors = message.get("tensors", [])
        self._count(tensors)
        message.pop("count", None)
        self._of = [tensor.number for tensor in tensors if type(tensor) is Kept]
        if self._of:
            numbers = iter(self._vault({"op": "fetch", "handles": self._of}))
            message["tensors"] = [next(numbers) if type(tensor) is Kept else tensor for tensor in tensors]
        if self.session is not None and message.get("do") == "call":
            message["count"] = bool(self._of)
        return message

    def _out(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message to the student's box: in a watched call with handles in the place of numbers."""
        tensors = message.get("tensors", [])
        self._count(tensors)
        if (count := message.pop("count", None)) is not None:
            self._add(count)
        if self.session is not None and self._of and "value" in message:
            self._read += sum(type(leaf) in (bool, int, float, complex, str) for leaf in tree_leaves(message["value"]))
            if self._read > READS:
                told = f"in a watched call the course's own parts tell {READS} numbers at most"
                message = {"raised": (["RuntimeError"], told), "rng": None}
                tensors = []
        if self.session is not None and tensors and (self._of or self.session.device == "cpu"):
            kept = [tensor.detach().contiguous() for tensor in tensors]
            numbers = self._vault({"op": "keep", "tensors": kept, "of": self._of})
            forms = zip(numbers, kept, strict=True)
            message["tensors"] = [Kept(n, x.dtype, tuple(x.shape), tuple(x.stride())) for n, x in forms]
        return message

    def _count(self, tensors: list[Any]) -> None:
        self._messages += 1
        self._bytes += sum(x.numel() * x.element_size() for x in tensors if isinstance(x, Tensor))
        if self._messages > MAX_MESSAGES or self._bytes > MAX_BYTES:
            raise StudentCrash("Your code asked too much of the course's own parts.")

    def _add(self, count: dict[str, Any]) -> None:
        tally = self._tally or {"flops": 0, "made": 0, "largest": 0, "names": Counter()}
        for name in COUNTS:
            tally[name] += count[name]
        tally["largest"] = max(tally["largest"], count["largest"])
        tally["names"] += Counter(count["names"])
        self._tally = tally

    def _vault(self, message: dict[str, Any]) -> list[Any]:
        if self.session is None:
            raise StudentCrash(NO_ANSWER)
        found: list[Any] = self.session.ask_vault(message)
        return found
