"""Hidden checks of q2_5: mha_flops and bottleneck, against counts of real modules."""

import pytest
import torch
from torch import nn

from autograder.suites.causes import same_or_because
from autograder.suites.once import once
from course_utils.checking.compare import check, number
from course_utils.instruments.work import count_work

EXACT = {"rtol": 0, "atol": 0}


@once
def _counted(T, S, d_head, H):
    """What torch's counter finds in one forward pass over one sequence; tensors without memory, so any size goes."""
    D = d_head * H
    module = nn.MultiheadAttention(D, H, batch_first=True, device="meta")
    x, y = torch.empty(1, T, D, device="meta"), torch.empty(1, S, D, device="meta")
    return count_work(module, x, y, y)["flops"]


@once
def _parts(T, S, D):
    """FLOPs of the four projections, and of the two products of attention, each counted on its own."""
    def flops(rows, inner, columns):
        a, b = torch.empty(rows, inner, device="meta"), torch.empty(inner, columns, device="meta")
        return count_work(torch.matmul, a, b)["flops"]

    projections = 2 * flops(T, D, D) + 2 * flops(S, D, D)
    return projections, flops(T, D, S) + flops(T, S, D)


def _random(rng, *most):
    return [int(torch.randint(1, limit, (1,), generator=rng)) for limit in most]


def _explained(mha_flops, T, S, d_head, H):
    D = d_head * H
    told = f"mha_flops({T}, {S}, {d_head}, {H})"
    projections, attention = _parts(T, S, D)
    got = number(mha_flops(T, S, d_head, H), told)
    same_or_because(got, _counted(T, S, d_head, H), told, {
        "a multiply-add is two operations": (projections + attention) / 2,
        "the four projections are missing": attention,
        "the products of attention are missing": projections,
        "o_proj is missing, or one of the other projections over the queries": projections + attention - 2 * T * D * D,
        "one projection over the keys is missing": projections + attention - 2 * S * D * D,
        "one of the two products of attention is missing (scores, then weights times values)":
            projections + attention / 2,
        "all projections are counted with T rows; keys and values have S": 8 * T * D * D + attention,
        "all projections are counted with S rows; queries and outputs have T": 8 * S * D * D + attention,
        "the heads' widths add up to D = d_head * H; one head is counted": sum(_parts(T, S, d_head)),
        "a head's projection goes from D to d_head, not from d_head to d_head":
            H * _parts(T, S, d_head)[0] + attention,
        "the products of attention run over d_head in each head; you count D in each": projections + H * attention,
        "one head's products are counted, and there are H": projections + attention / H,
        "q_proj has T rows, k_proj and v_proj have S, o_proj has T; you have it the other way round somewhere":
            2 * T * D * D * 3 + 2 * S * D * D + attention,
        "keys attend to keys in your count, and queries attend to keys": projections + 4 * S * S * D,
        "queries attend to queries in your count, and queries attend to keys": projections + 4 * T * T * D,
    }, **EXACT)


@pytest.mark.weight(4)
def test_flops(mha_flops, rng):
    """The formula gives what torch's counter finds in a forward pass, at random sizes with T != S."""
    for _ in range(6):
        _explained(mha_flops, *_random(rng, 60, 80, 20, 9))


@pytest.mark.weight(2)
def test_flops_square(mha_flops, rng):
    """Self-attention, T = S, is right too, from one token to thousands."""
    for N, d_head, H in ((1, 4, 2), (17, 8, 3), (2048, 64, 8), *([_random(rng, 300, 20, 9)] * 2)):
        _explained(mha_flops, N, N, d_head, H)


def test_flops_extremes(mha_flops):
    """One query, one key, one head or heads of width 1 are no exceptions."""
    for sizes in ((1, 9, 3, 4), (9, 1, 3, 4), (5, 7, 6, 1), (5, 7, 1, 6), (1, 1, 1, 1), (1, 50000, 64, 12),
                  (301, 1029, 65, 11)):
        _explained(mha_flops, *sizes)


def test_heads_cost_nothing(mha_flops, rng):
    """At the same width D = d_head * H the number of heads makes no difference."""
    T, S = _random(rng, 40, 50)
    got = {H: number(mha_flops(T, S, 24 // H, H), f"mha_flops({T}, {S}, {24 // H}, {H})") for H in (1, 2, 3, 6, 24)}
    check(len(set(got.values())) == 1, f"at D = 24 the count changes with the number of heads: {got}")


def _bottleneck(bottleneck, T, S, D):
    projections, attention = _parts(T, S, D)
    got = bottleneck(T, S, D)
    check(got in ("projections", "attention"), f'bottleneck gives {got!r}, expected "projections" or "attention"')
    expected = "attention" if attention > projections else "projections"
    check(got == expected, f"bottleneck({T}, {S}, {D}) is {got!r}, but the projections cost {projections} and the "
          f"products of attention {attention}")


@pytest.mark.weight(2)
def test_bottleneck(bottleneck, rng):
    """Whichever costs more by count, at random lengths T != S."""
    for _ in range(20):
        T, S, D = _random(rng, 200, 200, 90)
        if T * S != (T + S) * D:  # at a tie either answer would do
            _bottleneck(bottleneck, T, S, D)


@pytest.mark.weight(2)
def test_crossover(bottleneck):
    """Close to the crossover, on both sides, for T = S and for T != S."""
    for D in (4, 16, 100):
        for N in (D - 1, D + 1, int(1.5 * D) + 1, 2 * D - 1, 2 * D + 1, 3 * D + 1, 4 * D + 1):
            _bottleneck(bottleneck, N, N, D)
        for T in (D + 1, D + 2, 3 * D, 5 * D):
            for S in (T * D // (T - D) - 1, T * D // (T - D) + 1):
                if T * S != (T + S) * D:
                    _bottleneck(bottleneck, T, S, D)


@pytest.mark.weight(0.5)
def test_tie(bottleneck):
    """Where both cost exactly the same, the answer is still one of the two."""
    for T, S, D in ((3, 6, 2), (12, 12, 6), (24, 24, 12), (12, 24, 8)):
        got = bottleneck(T, S, D)
        check(got in ("projections", "attention"), f"bottleneck({T}, {S}, {D}), where both cost the same, gives {got!r}"
              ', expected "projections" or "attention" (either will do)')


def test_few_queries(bottleneck):
    """With no more queries than the width is wide, the projections win however many keys there are."""
    for T, S, D in ((1, 10_000, 2), (16, 100_000, 16), (15, 1_000_000, 16), (100_000, 8, 8)):
        _bottleneck(bottleneck, T, S, D)
    _bottleneck(bottleneck, 17, 100_000, 16)
