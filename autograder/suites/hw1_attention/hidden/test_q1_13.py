"""Hidden checks of q1_13: repairs."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, same
from course_utils.hw1.spot_the_error import DERIVATIONS, departs, draw

F64 = torch.float64
CLOSE = {"rtol": 1e-6, "atol": 1e-8, "dtype": False}
FALSE = {"variance": "closed", "copy": "pooled", "longer_key": "wins", "shuffled_tokens": "cancelled",
         "sensitive": "saturated"}


def _answer(repairs):
    got = repairs()
    check(isinstance(got, dict), "repairs returns a dict: the name of a derivation -> (line, repaired)")
    for name, entry in got.items():
        check(name in DERIVATIONS, f"{name!r} is none of the derivations: {', '.join(DERIVATIONS)}")
        check(isinstance(entry, (tuple, list)) and len(entry) == 2, f"{name} has a pair: (line, repaired)")
    return got


def _repaired(repairs, name):
    """The function for one derivation, where the right one is blamed."""
    got = _answer(repairs)
    check(name in got, f"you let {name} stand, and it has a false line")
    check(callable(got[name][1]), f"the second part of {name} is a function of the derivation's arguments")
    return got[name][1]


@pytest.mark.weight(3)
def test_first_false_lines(repairs, rng):
    """For each false derivation the first line that departs is named."""
    got = _answer(repairs)
    for name, right in FALSE.items():
        check(name in got, f"you let {name} stand, and it has a false line")
        line, lines = got[name][0], list(DERIVATIONS[name])
        if line in lines and lines.index(line) < lines.index(right):
            gap = max(departs(name, line, draw(name, rng)) for _ in range(5))
            check(False, f"{name}: line {line} is true; it lies {gap:.0e} from the first line")
        check(line == right, f"{name}: you name {line!r}, and that is not the first false line")


@pytest.mark.weight(2)
def test_what_is_right_is_left_alone(repairs):
    """No derivation is blamed whose lines are all true."""
    for name in _answer(repairs):
        check(name in FALSE, f"every line of {name} is true: put numbers into its lines")


@pytest.mark.parametrize("name", FALSE)
def test_repair(repairs, rng, name):
    """The repaired line is what the first line says, at random arguments."""
    repaired, lines = _repaired(repairs, name), DERIVATIONS[name]
    first, false = next(iter(lines.values())), lines[FALSE[name]]
    for _ in range(8):
        point = draw(name, rng)
        same_or_because(repaired(*point), first(*point), f"{name}: the repaired line",
                        {"this is the false line as it stands": false(*point)}, **CLOSE)


def test_variance_against_dice(repairs, rng):
    """The repaired variance agrees with 100,000 simulated dot products, and at zero and equal means."""
    repaired = _repaired(repairs, "variance")
    mu, sigma = 1.5 * torch.randn(3, generator=rng, dtype=F64) + 0.4, 0.7
    q, k = (mu + sigma * torch.randn(100_000, 3, generator=rng, dtype=F64) for _ in range(2))
    dots = (q * k).sum(-1)
    squares = (dots - dots.mean()).square()
    seen, error = squares.mean().item(), squares.std().item() / 100_000**0.5
    got = float(repaired(mu, sigma))
    check(abs(got - seen) < 6 * error, f"variance: the repaired line is {got:.5g}, but simulation gives {seen:.5g} "
          f"with a standard error of {error:.2g}")
    for means, s in ((torch.zeros(5, dtype=F64), 1.3), (torch.full((4,), 0.8, dtype=F64), 0.6), (mu[:1], 0.9)):
        expected = sum((m**2 + s**2) ** 2 - m**4 for m in means.tolist())
        same(repaired(means, s), torch.tensor(expected, dtype=F64), "variance: the repaired line", **CLOSE)


def test_longer_key_in_all_three_cases(repairs, rng):
    """The repaired limit is right where the query and the key point apart, together, and at right angles."""
    repaired = _repaired(repairs, "longer_key")
    K = torch.tensor([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.25]], dtype=F64)
    V = torch.randn(3, 4, generator=rng, dtype=F64)
    for name, q, weights in (
        ("q . k_j > 0", [1.0, 0.5], [1.0, 0.0, 0.0]),
        ("q . k_j < 0", [-1.0, -0.5], [0.0, None, None]),
        ("q . k_j = 0", [2.0, -1.0], None),
    ):
        query = torch.tensor(q, dtype=F64)
        scores = K @ query
        if weights is None:
            expected = scores.softmax(0) @ V
        elif weights[0] == 1:
            expected = V[0]
        else:
            expected = scores[1:].softmax(0) @ V[1:]
        same(repaired(query, K, V, 0), expected, f"longer_key: the repaired line where {name}", **CLOSE)


def test_other_repairs_at_special_points(repairs, rng):
    """The other repairs hold at points that are special: one-sided values, every permutation, a tie and a tower."""
    copied, shuffled, reaction = (_repaired(repairs, name) for name in ("copy", "shuffled_tokens", "sensitive"))
    V = -torch.rand(4, 3, generator=rng, dtype=F64)
    same(copied(torch.tensor([-3.0, -1.0, -2.0, -9.0], dtype=F64), V), V[1], "copy: the repaired line", **CLOSE)
    X, Wq, Wk, Wv = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((4, 3), (3, 3), (3, 3), (3, 3)))
    attended = ((X @ Wq) @ (X @ Wk).T / math.sqrt(3)).softmax(-1) @ (X @ Wv)
    for order in ([0, 1, 2, 3], [1, 0, 2, 3], [3, 0, 1, 2]):
        P = torch.eye(4, dtype=F64)[order]
        same(shuffled(X, P, Wq, Wk, Wv), attended[order], f"shuffled_tokens: the repaired line for {order}", **CLOSE)
    same(reaction(torch.tensor([0.0, 1e-9], dtype=F64)), torch.tensor(0.25, dtype=F64), "sensitive: the repaired line "
         "at a tie of two", **CLOSE)
    same(reaction(torch.tensor([30.0, 0.0, 1.0], dtype=F64)), torch.tensor(0.0, dtype=F64), "sensitive: the repaired "
         "line where one score towers", **CLOSE)
