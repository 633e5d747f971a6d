"""Every operation that a vault runs, asked for with odd arguments: it lives, and writes only to what it says."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import msgpack
import torch

from autograder.box import operations, vault, wire

TRIES = 6  # of each operation; many more were tried when the list was made
SECONDS = 60
INTS = [0, 1, -1, 2, 3, 4, -2, 7, 64, 2**31, -(2**31), 2**63 - 1, -(2**63)]
FLOATS = [0.0, 1.0, -1.0, 0.5, 1e30, float("inf"), float("nan")]
WORDS = ["none", "sum", "mean", "trunc", "floor", "prod", "amax", "tanh", "reduced", "complete", "r", "gelsd", "U", "?"]


def tensors() -> list[torch.Tensor]:
    shapes = [(2, 3, 4), (3,), (4, 4), (0,), (), (2, 0, 3), (1, 2, 5, 5), (8, 8), (2, 2, 4, 4, 4)]
    made = [torch.randn(shape, generator=torch.Generator().manual_seed(1)) for shape in shapes]
    made += [
        made[0].double(),
        torch.ones(4, 4, dtype=torch.complex64),
        torch.full((4, 4), float("nan")),
        made[2].half(),
    ]
    made += [torch.arange(6), torch.tensor([3, -1, 2**40]), torch.tensor(5), torch.arange(4, dtype=torch.int32)]
    return [
        *made,
        torch.ones(3, dtype=torch.bool),
        torch.ones(2, 3, 4, dtype=torch.bool),
        torch.ones(4).to(torch.uint8),
    ]


def drawn(r: random.Random, kind: str, handles: list[Any]) -> Any:
    if kind.startswith("Optional["):
        return None if r.random() < 0.4 else drawn(r, kind[9:-1], handles)
    if kind.startswith("List["):
        return [drawn(r, kind[5:-1], handles) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4]))]
    ints = INTS[:7] if r.random() < 0.7 else INTS
    numbers = [r.choice(ints), r.choice(FLOATS)]
    given = {"Tensor": handles, "number": numbers, "int": ints, "float": FLOATS, "bool": [True, False], "str": WORDS}
    return r.choice(given.get(kind, [None]))


def request(r: random.Random, func: Any, handles: list[Any]) -> list[Any]:
    args, kwargs = [], {}
    for argument in func._schema.arguments:
        if argument.name in ("dtype", "layout", "memory_format", "generator", "pin_memory", "device"):
            if not argument.kwarg_only:
                args.append(None)
        elif argument.kwarg_only:
            kwargs[argument.name] = drawn(r, str(argument.type), handles)
        else:
            args.append(drawn(r, str(argument.type), handles))
    return ["run", func.overloadpacket.__name__, func._overloadname, args, kwargs, []]


def allowed() -> list[Any]:
    found = []
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        name, _, overload = full.removeprefix("aten::").partition(".")
        func = (
            getattr(getattr(torch.ops.aten, name, None), overload or "default", None) if full[:6] == "aten::" else None
        )
        if isinstance(func, torch._ops.OpOverload) and operations.is_allowed(func):
            found.append(func)
    return found


def ask_everything(tell: int) -> None:
    """In a process of its own: every operation a few times; what is written to unsaid is told."""
    torch.set_num_threads(1)
    r, inputs = random.Random(5), tensors()
    for func in allowed():
        os.pwrite(tell, f"{func}".ljust(200).encode(), 0)
        held = vault.Vault()
        held.begin(0, 10**9, 10**9)
        numbers = held.answer_judge({"op": "hold", "tensors": [x.clone() for x in inputs]})
        held.answer_judge({"op": "resume", "own": False})
        handles = [*map(wire.handle, numbers), wire.view(numbers[1], (2**20,), (0,), 0)]
        says = any(
            argument.alias_info is not None and argument.alias_info.is_write for argument in func._schema.arguments
        )
        for _ in range(TRIES):
            held.answer_box(msgpack.packb(request(r, func, handles), default=wire.plain))
        if not says and func.overloadpacket.__name__ not in vault.WRITES and held._changed():
            os.pwrite(tell, f"{func} writes to its arguments, and says nothing of it".ljust(200).encode(), 0)
            os._exit(1)
    os._exit(0)


def test_a_vault_outlives_odd_requests_and_knows_what_they_write_to(tmp_path):
    tell = os.open(tmp_path / "told", os.O_RDWR | os.O_CREAT)
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        ask_everything(tell)
    _, status = os.waitpid(child, 0)
    told = os.pread(tell, 200, 0).decode().strip()
    os.close(tell)
    assert os.waitstatus_to_exitcode(status) == 0, told
