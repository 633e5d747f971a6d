"""Hidden checks of q4_9: stack_costs and extra_cost_for_second_language, against counts of real attention."""

import functools

import pytest
import torch
from torch import nn

from course_utils.checking.compare import Wrong, check, number
from course_utils.instruments.work import count_work

LARGE = [1001, 903, 513]  # a count that float32 cannot hold
KEYS = ("encoder_self", "decoder_self", "cross")


@functools.cache
def _counted(T, S, k):
    """What is counted in one forward pass of attention with T queries and S keys; the tensors hold no numbers."""
    module = nn.MultiheadAttention(k, 1, batch_first=True, device="meta")
    x, y = torch.empty(1, T, k, device="meta"), torch.empty(1, S, k, device="meta")
    return count_work(module, x, y, y)["flops"]


def _sizes(rng, n=5):
    return [[int(torch.randint(1, most, (1,), generator=rng)) for most in (60, 70, 40)] for _ in range(n)]


def _costs(stack_costs, M, N, k):
    got = stack_costs(M, N, k)
    check(isinstance(got, dict), "stack_costs gives a dict with the keys encoder_self, decoder_self and cross")
    missing = [key for key in KEYS if key not in got]
    check(not missing, f"stack_costs has no {', '.join(missing)}; its keys are {', '.join(map(str, got))}")
    return {key: number(got[key], f"stack_costs({M}, {N}, {k})[{key!r}]") for key in KEYS}


def _exactly(got, right, what, causes):
    """`Wrong` with whole numbers, and with the one cause that leads to the answer."""
    if got == right:
        return
    fits = [cause for cause, value in causes.items() if got == value]
    told = f". Likely cause: {fits[0]}." if len(fits) == 1 else ""
    shown = f"{got:,.0f}" if got.is_integer() else f"{got:,}"
    raise Wrong(f"{what} is {shown}, expected {right:,.0f}{told}")


def _compare(got, T, S, k, what):
    right = _counted(T, S, k)
    products, projections = 4 * T * S * k, right - 4 * T * S * k
    _exactly(got, right, what, {
        "it is half of the work: a multiply-add is two operations, and a mask saves nothing": right / 2,
        "the four projections are missing": products,
        "the two products of attention are missing": projections,
        "o_proj is missing": right - 2 * T * k * k,
        "half of the products is missing: there are two of them, and masking saves nothing": projections + products / 2,
        "queries and keys have the same number of rows in your count; here they differ": _counted(T, T, k),
        "all four projections are counted over the keys": _counted(S, S, k),
        "the projections of keys and values are missing": right - 4 * S * k * k,
        "M and N have changed places": _counted(S, T, k),
    })


@pytest.mark.weight(2)
def test_self_attention(stack_costs, rng):
    """encoder_self and decoder_self are what is counted in one layer's self-attention over M and over N tokens."""
    for M, N, k in [*_sizes(rng), LARGE]:
        costs = _costs(stack_costs, M, N, k)
        _compare(costs["encoder_self"], M, M, k, f"stack_costs({M}, {N}, {k})['encoder_self']")
        _compare(costs["decoder_self"], N, N, k, f"stack_costs({M}, {N}, {k})['decoder_self']")


@pytest.mark.weight(2)
def test_cross_attention(stack_costs, rng):
    """cross is what is counted where N target tokens look at M source tokens."""
    for M, N, k in [*_sizes(rng), [1, 9, 4], [9, 1, 4], [300, 2, 8], [2, 300, 8], LARGE]:
        _compare(_costs(stack_costs, M, N, k)["cross"], N, M, k, f"stack_costs({M}, {N}, {k})['cross']")


@pytest.mark.weight(3)
def test_second_target_language(extra_cost_for_second_language, rng):
    """A second target costs the decoder's self-attention and cross-attention again, and the encoder's nothing."""
    for M, N, k in [*_sizes(rng), [1, 1, 1], [500, 3, 4], [3, 500, 4], LARGE]:
        what = f"extra_cost_for_second_language({M}, {N}, {k})"
        encoder, decoder, cross = _counted(M, M, k), _counted(N, N, k), _counted(N, M, k)
        _exactly(number(extra_cost_for_second_language(M, N, k), what), decoder + cross, what, {
            "the encoder's output is at hand: it is not computed again": encoder + decoder + cross,
            "cross-attention looks at the same memory with new queries, keys and values: it is computed again": decoder,
            "the decoder's self-attention over the new sentence is missing": cross,
            "the new decoder projects keys and values of the memory with weights of its own":
                decoder + cross - 4 * M * k * k,
            "a multiply-add is two operations": (decoder + cross) / 2,
            "the projections are missing": 4 * N * N * k + 4 * M * N * k,
            "both languages are counted; only the second is asked for": 2 * (decoder + cross),
        })
