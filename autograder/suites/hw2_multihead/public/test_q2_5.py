"""Public checks of q2_5: mha_flops and bottleneck."""

import torch
from torch import nn

from course_utils.checking.beside import ask_all
from course_utils.checking.compare import check, number
from course_utils.instruments.work import count_work


def _counted(T, S, D, H):
    """What torch's counter finds in one forward pass of nn.MultiheadAttention, one sequence."""
    x, y = torch.randn(1, T, D), torch.randn(1, S, D)
    return count_work(nn.MultiheadAttention(D, H, batch_first=True), x, y, y)["flops"]


def test_worked_number(mha_flops):
    """T = 2, S = 3, two heads of width 4: 1280 for the projections and 192 for attention, 1472 in all."""
    # keeps: flops
    got = number(mha_flops(2, 3, 4, 2), "mha_flops(2, 3, 4, 2)")
    check(got != 736, "these are multiply-adds; each counts as two operations")
    check(got == 1472, f"mha_flops(2, 3, 4, 2) is {got:.15g}, expected 1472")


def test_against_the_counter(mha_flops):
    """The formula gives what torch's FLOP counter finds in nn.MultiheadAttention."""
    # keeps: flops, any-heads
    for T, S, d_head, H in ((4, 4, 3, 2), (3, 7, 2, 4), (6, 2, 5, 1)):
        told = f"mha_flops({T}, {S}, {d_head}, {H})"
        got, expected = number(mha_flops(T, S, d_head, H), told), _counted(T, S, d_head * H, H)
        check(got == expected, f"{told} is {got:.15g}, and the counter finds {expected}")


def test_short_and_long(bottleneck):
    """Few tokens: the projections cost more. Many tokens: attention does."""
    # keeps: bottleneck
    for N, D, expected in ((8, 256, "projections"), (512, 16, "attention")):
        got = bottleneck(N, N, D)
        check(got == expected, f'bottleneck({N}, {N}, {D}) gives {got!r}, expected "{expected}": with {N} tokens of '
              f"width {D} that is what costs more")


def test_bottleneck_by_counting(bottleneck):
    """The four projections against the two products, counted, for many T, S and widths; equal costs are left out."""
    # keeps: bottleneck
    sizes = [(T, S, D) for D in (6, 9) for T, S in SIZES]
    for (T, S, D), got in zip(sizes, ask_all(bottleneck, sizes), strict=True):
        projections, products = 2 * (2 * T + 2 * S) * D * D, 2 * 2 * T * S * D
        if projections != products:
            expected = "attention" if products > projections else "projections"
            check(got == expected, f"bottleneck({T}, {S}, {D}) gives {got!r}, but the four projections take "
                  f"{projections:,} FLOPs and the two products {products:,}")


SIZES = [(T, S) for T in (1, 5, 12, 17, 23, 40) for S in (1, 7, 12, 17, 24, 60)]


def probe_flops(mha_flops):
    return [mha_flops(2, 3, 4, 2), mha_flops(7, 7, 5, 3), mha_flops(1, 9, 2, 6)]


def probe_flops_one_head(mha_flops):
    return [mha_flops(5, 7, 3, 1), mha_flops(6, 6, 4, 1)]


def probe_flops_many_queries(mha_flops):
    return mha_flops(50, 2, 3, 2)


def probe_flops_many_keys(mha_flops):
    return mha_flops(2, 50, 3, 2)


def probe_flops_wide(mha_flops):
    return [mha_flops(1, 1, 8, 4), mha_flops(1, 1, 4, 8)]


def probe_bottleneck(bottleneck):
    return [bottleneck(T, S, 8) for T, S in SIZES if T * S != (T + S) * 8]


def probe_bottleneck_square(bottleneck):
    return [bottleneck(N, N, 10) for N in range(1, 41) if N != 20]
