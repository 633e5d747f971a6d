"""What the time of an operation in the vault tells of the numbers it is done with.

    python benchmarks/vault_times.py [--numbers 32768] [--rounds 30] [name ...]

Each operation is asked of a vault with two sets of numbers of one form, in turns, and timed as a box would time it.
Told are both medians and the bits of one call: what the threshold that parts them best says of which set it was.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator

import msgpack
import torch
from torch import Tensor

from autograder.box import wire
from autograder.box.vault import Vault

F64 = torch.float64
Pair = tuple[list[Tensor], list[Tensor]]  # the operation's tensors, fast and slow


def full(n: int, value: float) -> Tensor:
    """n times the same number."""
    return torch.full((n,), value, dtype=F64)


def random(n: int) -> Tensor:
    """Numbers in no order."""
    return torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=F64)


def operations(n: int) -> Iterator[tuple[str, str, Pair, list[object]]]:
    """Name, overload, tensors of both kinds, and what stands behind them."""
    side = math.isqrt(n // 16)
    for name in ("digamma", "lgamma", "i0", "special_i1", "special_ndtri", "special_log_ndtr", "erfinv"):
        yield name, "default", ([full(n, 0.5)], [full(n, 0.999)]), []
        yield name, "default", ([full(n, math.nan)], [full(n, -20.3)]), []
    for name in ("igamma", "igammac"):
        yield name, "default", ([full(n, 1.0), full(n, 0.0)], [full(n, 150.0), full(n, 151.0)]), []
    yield "special_zeta", "default", ([full(n, 0.5), full(n, 1.0)], [full(n, 1.001), full(n, 0.3)]), []
    for name in ("fmod", "remainder", "floor_divide"):
        yield name, "default" if name == "floor_divide" else "Tensor", (
            [full(n, 1.0), full(n, 2.0)], [full(n, 1e300), full(n, 3e-300)]), []  # fmt: skip
    far = [torch.full((n,), 7540113804746346429), torch.full((n,), 4660046610375530309)]  # neighbours of Fibonacci's
    yield "gcd", "default", ([torch.zeros(n).long()] * 2, far), []
    for name in ("exp", "log", "sin", "cos", "tan", "tanh", "erf", "sigmoid", "atan", "sqrt", "gelu", "expm1", "log1p"):
        yield name, "default", ([full(n, 0.0)], [full(n, 1e5)]), []
        yield name, "default", ([full(n, 0.7)], [full(n, 1e300)]), []
    yield "pow", "Tensor_Tensor", ([full(n, 1.0), full(n, 1.0)], [full(n, 1.7), full(n, 300.3)]), []
    yield "mul", "Tensor", ([full(n, 1.0), full(n, 1.0)], [full(n, 1e-300), full(n, 1e-10)]), []
    yield "sort", "default", ([random(n).sort()[0]], [random(n)]), []
    yield "topk", "default", ([random(n).sort()[0]], [random(n)]), [n // 2]
    yield "kthvalue", "default", ([full(n, 0.0)], [random(n)]), [n // 2]
    yield "median", "default", ([full(n, 0.0)], [random(n)]), []
    yield "mode", "default", ([full(n, 0.0)], [random(n)]), []
    yield "_unique2", "default", ([full(n, 0.0)], [random(n)]), []
    yield "unique_consecutive", "default", ([full(n, 0.0)], [random(n)]), []
    yield "equal", "default", ([full(n, 0.0), full(n, 1.0)], [full(n, 0.0), full(n, 0.0)]), []
    yield "isin", "Tensor_Tensor", ([full(n, 0.0), full(n, 1.0)], [random(n), random(n)]), []
    yield "searchsorted", "Tensor", ([random(n).sort()[0], full(n, 0.0)], [random(n).sort()[0], random(n)]), []
    yield "histc", "default", ([full(n, 0.0)], [random(n)]), [100]
    mask = random(n) > 0
    yield "nonzero", "default", ([torch.zeros(n).bool()], [mask]), []
    yield "masked_select", "default", ([full(n, 1.0), torch.zeros(n).bool()], [full(n, 1.0), mask]), []
    order = torch.arange(n)
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    yield "take", "default", ([random(n), order], [random(n), shuffled]), []
    yield "where", "self", ([mask.new_ones(n), random(n), random(n)], [mask, random(n), random(n)]), []
    yield "argmax", "default", ([full(n, 0.0)], [random(n)]), []
    yield "max", "dim", ([full(n, 0.0)], [random(n).sort()[0]]), [0]
    yield "any", "default", ([torch.ones(n).bool()], [torch.zeros(n).bool()]), []
    yield "_softmax", "default", ([full(n, 0.0)], [random(n) * 1e4]), [0, False]
    yield "logcumsumexp", "default", ([full(n, 0.0)], [random(n)]), [0]
    yield "poisson", "default", ([full(n, 0.0)], [full(n, 9.0)]), []
    yield "mm", "default", ([full(n, 0.0).view(-1, 32)] * 1 + [full(1024, 0.0).view(32, 32)],
                            [random(n).view(-1, 32), random(1024).view(32, 32)]), []  # fmt: skip
    eye, any_ = torch.eye(side, dtype=F64), random(side * side).view(side, side)
    yield "_linalg_svd", "default", ([eye], [any_]), []
    yield "_linalg_eigh", "default", ([eye], [any_ + any_.T]), []
    yield "linalg_eig", "default", ([eye], [any_]), []
    yield "_linalg_eigvals", "default", ([eye], [any_]), []
    yield "linalg_matrix_exp", "default", ([0 * eye], [any_]), []
    yield "linalg_inv_ex", "default", ([eye], [any_]), []
    yield "linalg_lu_factor_ex", "default", ([eye], [any_]), []
    yield "linalg_qr", "default", ([eye], [any_]), []
    yield "linalg_cholesky_ex", "default", ([-eye], [eye]), []
    yield "_linalg_det", "default", ([eye], [any_]), []


def asked(name: str, overload: str, tensors: list[Tensor], behind: list[object]) -> Callable[[], bytes]:
    """What asks a vault of its own for the operation on these tensors, all of them secrets."""
    vault = Vault()
    vault.begin(0, 2**40, 2**40)
    vault.answer_judge({"op": "resume", "own": False})
    held = [vault._keep(tensor, True) for tensor in tensors]
    data = msgpack.packb(["run", name, overload, [*map(wire.handle, held), *behind], {}, []])
    return lambda: vault.answer_box(data)


def answered(name: str, overload: str, pair: Pair, behind: list[object], rounds: int) -> list[list[float]]:
    """Seconds until the answer to either kind; none where the vault does not run the operation."""
    asks = [asked(name, overload, tensors, behind) for tensors in pair]
    if msgpack.unpackb(asks[0](), ext_hook=lambda *_: None)[0] is not True:
        return []
    times: list[list[float]] = [[], []]
    for turn in range(2 * rounds):
        start = time.perf_counter()
        asks[turn % 2]()
        times[turn % 2].append(time.perf_counter() - start)
    return times


def bits(fast: list[float], slow: list[float]) -> float:
    """What one call tells of which of the two it was, by the threshold that parts them best."""
    count = len(fast) + len(slow)
    above = [sum(x > line for x in fast) + sum(x <= line for x in slow) for line in fast + slow]
    wrong = min(min(one, count - one) for one in above) / count
    return 1 + sum(p * math.log2(p) for p in (wrong, 1 - wrong) if p > 0)


def main() -> None:
    """Print a line per operation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--numbers", type=int, default=2**15)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("names", nargs="*", help="operations (default: all)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    for name, overload, pair, behind in operations(given.numbers):
        if given.names and name not in given.names:
            continue
        times = answered(name, overload, pair, behind, given.rounds)
        if not times:
            print(f"{name:22}{'is not run':>24}", flush=True)
            continue
        fast, slow = times
        a, b = statistics.median(fast) * 1e3, statistics.median(slow) * 1e3
        print(f"{name:22}{a:9.3f} ms{b:9.3f} ms{bits(fast, slow):8.2f} bits", flush=True)


if __name__ == "__main__":
    main()
