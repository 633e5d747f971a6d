"""The list of operations that a vault runs, held against everything that torch has registered; and hostile requests."""

from __future__ import annotations

import re
import resource
import time

import msgpack
import pytest
import torch

from autograder.box import operations, vault, wire

# What the operations on the list take and give. A generator can be named, and never sent.
TENSORS = {"Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"}
NUMBERS = {"number", "Optional[number]", "int", "Optional[int]", "float", "Optional[float]", "bool", "Optional[bool]"}
LISTS = {"List[int]", "Optional[List[int]]", "Optional[List[float]]"}
PLAIN = TENSORS | NUMBERS | LISTS | {"Optional[Device]", "Optional[Generator]"}
# Those that take a string: how to round, to reduce, to look for, to decompose; none names a file.
WITH_WORDS = set(
    """_assert_async _linalg_check_errors div div_ gelu gelu_ index_reduce index_reduce_
linalg_lstsq linalg_qr scatter scatter_ scatter_reduce scatter_reduce_ searchsorted""".split()
)
NEVER = re.compile(
    r"file|storage|shar|set_$|resize|record|stream|register|load|save|pin_|pinned|print|debug|backward|dual|_reshape_alias"
    r"|foreach|fused_(?!sdp_choice)|quant|sparse|mkldnn|cuda|cudnn|miopen|mps|xpu|vulkan|nested|symint|requires_grad"
)


def overloads():
    """Every operation of aten, and of any other namespace, that torch has registered."""
    for full in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name, None)
        func = getattr(packet, overload or "default", None) if packet is not None else None
        if isinstance(func, torch._ops.OpOverload):
            yield func


def test_what_is_allowed_computes_on_tensors_and_plain_values():
    allowed = [func for func in overloads() if operations.is_allowed(func)]
    assert len(allowed) > 500
    for func in allowed:
        name = func.overloadpacket.__name__
        kinds = {str(value.type) for value in (*func._schema.arguments, *func._schema.returns)}
        words = kinds - PLAIN
        assert not words or (words <= {"str", "Optional[str]"} and name in WITH_WORDS), (str(func), words)
        assert func.namespace == "aten" and not NEVER.search(name), str(func)
        assert not operations.is_composite(func), str(func)


def test_the_list_names_only_what_there_is():
    names = {func.overloadpacket.__name__ for func in overloads()}
    listed = set(" ".join(operations.GROUPS).split())
    assert not listed - names
    assert len(listed) == len(" ".join(operations.GROUPS).split()), "a name stands there twice"


@pytest.mark.parametrize("name", ["from_file", "set_", "resize_", "_reshape_alias", "record_stream", "as_strided_",
                                  "_scaled_dot_product_flash_attention_for_cpu", "native_layer_norm_backward",
                                  "_share_memory", "_fw_primal", "save", "nowhere", "__class__"])  # fmt: skip
def test_what_is_not_on_the_list_is_refused(name):
    held, ask = opened(torch.ones(4))
    reply = ask(["run", name, "default", [wire.handle(held)], {}, []])
    assert reply[0] is False
    told = asked(held, "count")
    assert told["refused"]


_vault = None


def opened(*tensors):
    """A vault with these tensors: the number of the first, and a way to ask."""
    global _vault
    _vault = vault.Vault()
    _vault.begin(0, 10**9, 10**9)
    numbers = _vault.answer_judge({"op": "hold", "tensors": list(tensors)})
    _vault.answer_judge({"op": "resume", "own": False})
    return numbers[0], lambda request: msgpack.unpackb(
        _vault.answer_box(msgpack.packb(request, default=wire.plain)), ext_hook=msgpack.ExtType
    )


def asked(_, op):
    return _vault.answer_judge({"op": op})


HUGE = [
    ["run", "arange", "start_step", [0, 1, 1e-12], {}, []],
    ["run", "full", "default", [[2**40], 1.0], {}, []],
    ["run", "empty_strided", "default", [[2], [2**40]], {}, []],
    ["run", "eye", "default", [2**30], {}, []],
    ["run", "bincount", "default", ["big"], {}, []],
    ["run", "repeat_interleave", "Tensor", ["big"], {}, []],
    ["run", "constant_pad_nd", "default", ["ones", [1] * 60], {}, []],
    ["run", "clone", "default", ["wide"], {}, []],
    ["run", "mul", "Tensor", ["tall", "flat"], {}, []],
    ["run", "masked_select", "default", ["tall", "mask"], {}, []],
    ["run", "linspace", "default", [0, 1, 2**34], {}, []],
    ["run", "randperm", "default", [2**34], {}, []],
]


@pytest.mark.parametrize("request_", HUGE, ids=lambda request: request[1])
def test_nothing_is_allocated_beyond_the_caps(request_):
    tensors = {
        "big": torch.tensor([2**40]),
        "ones": torch.ones([1] * 30),
        "tall": torch.ones(2**14, 1),
        "flat": torch.ones(1, 2**14),
        "mask": torch.ones(1, 2**14, dtype=torch.bool),
    }
    first, ask = opened(*tensors.values())
    handles = {name: wire.handle(first + i) for i, name in enumerate(tensors)}
    handles["wide"] = wire.view(first, (2**40,), (0,), 0)
    filled = [[handles.get(x, x) if isinstance(x, str) else x for x in part] if i == 3 else part
              for i, part in enumerate(request_)]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reply = ask(filled)
    assert reply[0] is False
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def test_views_beyond_a_tensors_memory_are_errors():
    held, ask = opened(torch.ones(4))
    for shape, strides, offset in (
        ((8,), (1,), 0),
        ((2,), (100,), 0),
        ((2,), (-1,), 2),
        ((4,), (1,), -3),
        ((1,), (1,), 2**60),
    ):
        assert ask(["read", wire.view(held, shape, strides, offset)])[0] is False
    assert ask(["read", wire.view(held, (2,), (2,), 1)])[0] is True


def test_what_empty_gives_is_zero():
    held, ask = opened(torch.ones(4))
    for _ in range(5):
        made = ask(["run", "empty", "memory_format", [[1000]], {}, []])[1]
        number, *_ = wire.form_of(made.data)
        assert not wire.tensor_of(ask(["read", wire.handle(number)])[1].data).any()


def test_the_answer_about_secrets_comes_no_sooner_than_about_the_slowest():
    n, aten = 2**16, torch.ops.aten
    held, ask = opened(torch.zeros(n), torch.ones(n))

    def waited(func, *numbers):
        start = time.perf_counter_ns()
        args = [*map(wire.handle, numbers)]
        assert ask(["run", func.overloadpacket.__name__, func._overloadname, args, {}, []])[0] is True
        return time.perf_counter_ns() - start

    for func, *numbers in ((aten.exp.default, held), (aten.fmod.Tensor, held, held + 1), (aten.sort.default, held)):
        assert waited(func, *numbers) >= operations.slowest(func) * n
    made = ask(["run", "ones", "default", [[n]], {}, []])[1]
    own, *_ = wire.form_of(made.data)
    assert waited(aten.fmod.Tensor, own, own) < operations.slowest(aten.fmod.Tensor) * n, "these are nobody's secrets"


@pytest.mark.parametrize("name", ["igamma", "special_zeta", "gcd", "poisson", "_linalg_svd", "linalg_eig"])
def test_what_takes_as_many_steps_as_its_numbers_ask_for_is_not_run(name):
    assert name not in operations.NAMES
