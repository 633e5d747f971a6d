"""Hidden checks of q2_4: counts against real modules (without memory of their own, so that they may be large)."""

import pytest
import torch
from torch import nn

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, number

EXACT = {"rtol": 0, "atol": 0}


def _pair(got, what):
    check(got is not None, f"{what} is None (is a `return` missing?)")
    check(isinstance(got, (tuple, list)) and len(got) == 2, f"{what} gives {got!r:.80}, expected the pair (weights, "
          "biases)")
    return number(got[0], f"the weights of {what}"), number(got[1], f"the biases of {what}")


def _count(module, ending=""):
    return sum(p.numel() for name, p in module.named_parameters() if name.endswith(ending))


def _sizes(rng, most, count=5):
    return torch.randint(2, most, (count,), generator=rng).tolist()


@pytest.mark.weight(2)
def test_qkv_weights(qkv_parameters, rng):
    """The weights of the three projections are those of three nn.Linear(D, D)."""
    for D in (1, 4, *_sizes(rng, 2000)):
        layers = nn.ModuleList(nn.Linear(D, D, device="meta") for _ in range(3))
        got = _pair(qkv_parameters(D), f"qkv_parameters({D})")[0]
        same_or_because(got, _count(layers, "weight"), f"the weights of qkv_parameters({D})", {
            "that is one projection, and there are three": D * D,
            "that counts the output projection too, and q, k and v are three": 4 * D * D,
            "that is weights and biases together": 3 * D * D + 3 * D,
        }, **EXACT)


@pytest.mark.weight(2)
def test_qkv_biases(qkv_parameters, rng):
    """The biases of the three projections are those of three nn.Linear(D, D)."""
    for D in (2, 4, *_sizes(rng, 2000)):
        layers = nn.ModuleList(nn.Linear(D, D, device="meta") for _ in range(3))
        got = _pair(qkv_parameters(D), f"qkv_parameters({D})")[1]
        same_or_because(got, _count(layers, "bias"), f"the biases of qkv_parameters({D})", {
            "a layer has one bias for each of its D outputs, not one in all": 3,
            "that is one projection, and there are three": D,
            "that is the number of weights": 3 * D * D,
        }, **EXACT)


@pytest.mark.weight(2)
def test_attention_entries(attention_entries, rng):
    """One head over N tokens has as many attention weights as its softmax has entries."""
    for N in (1, 2, *_sizes(rng, 3000)):
        q = torch.empty(N, 3, device="meta")
        same_or_because(number(attention_entries(N), f"attention_entries({N})"), (q @ q.T).softmax(-1).numel(),
                        f"attention_entries({N})", {
            "every query has a weight for every key, not one for each token": N,
            "that is half of the table, and without a mask all of it is computed": N * N / 2,
            "the triangle holds what a causal mask leaves; all N queries see all N keys here": N * (N + 1) / 2,
        }, **EXACT)


@pytest.mark.weight(2)
@pytest.mark.parametrize("part", ["weights", "biases"])
def test_dense(dense_parameters, rng, part):
    """A dense layer from N * D numbers to N * D numbers, counted on nn.Linear, at random N and D."""
    for N, D in ((1, 3), (4, 1), (2, 3), *zip(_sizes(rng, 60), _sizes(rng, 60), strict=True)):
        layer = nn.Linear(N * D, N * D, device="meta")
        got = _pair(dense_parameters(N, D), f"dense_parameters({N}, {D})")[part == "biases"]
        expected = layer.weight.numel() if part == "weights" else layer.bias.numel()
        causes = {
            "that is a layer for each token alone, and here every output sees every token": D * D,
            "a matrix has (number of inputs) x (number of outputs) weights": N * D,
            "the same D x D weights at every token would make no dense layer": N * D * D,
            "that is weights and biases together": (N * D) ** 2 + N * D,
        } if part == "weights" else {
            "there is one bias for each of the N * D outputs, not one for each pair of tokens": N * N,
            "there is one bias for each of the N * D outputs, not one for each column": D,
            "there is one bias for each of the N * D outputs, not one in all": 1,
            "that is the number of weights": (N * D) ** 2,
        }
        same_or_because(got, expected, f"the {part} of dense_parameters({N}, {D})", causes, **EXACT)


@pytest.mark.weight(3)
def test_mha(mha_parameters, rng):
    """All parameters of multi-head attention, with and without biases, counted on nn.MultiheadAttention."""
    for Dh in (1, 3, *_sizes(rng, 60)):
        for H in (2, 5, 8, 1):
            D = Dh * H
            for bias in (True, False):
                module = nn.MultiheadAttention(D, H, bias=bias, device="meta")
                told = f"mha_parameters({D}, {H}, bias={bias})"
                same_or_because(number(mha_parameters(D, H, bias=bias), told), _count(module), told, {
                    "o_proj is missing, and there are four projections": 3 * D * D + 3 * D * bias,
                    "a head's projection goes from D to D / H, so all heads together have D * D weights; not D * D / H":
                        4 * D * D / H + 4 * D * bias,
                    "heads share the width D among them, so more heads do not mean more weights":
                        4 * D * D * H + 4 * D * bias,
                    "the biases of the projections are missing": 4 * D * D,
                    "bias=False leaves no bias at all": 4 * D * D + 4 * D,
                    "o_proj has a bias as well": 4 * D * D + 3 * D * bias,
                    "a projection has one bias for each of its D outputs, not one in all": 4 * D * D + 4 * bias,
                }, **EXACT)


def test_mha_defaults(mha_parameters):
    """By default there are biases, and `bias` may stand in the third place."""
    for D, H in ((12, 3), (20, 4)):
        with_bias, without = (_count(nn.MultiheadAttention(D, H, bias=bias, device="meta")) for bias in (True, False))
        for told, got, expected in (
            (f"mha_parameters({D}, {H})", mha_parameters(D, H), with_bias),
            (f"mha_parameters({D}, {H}, True)", mha_parameters(D, H, True), with_bias),
            (f"mha_parameters({D}, {H}, False)", mha_parameters(D, H, False), without),
        ):
            check(number(got, told) == expected, f"{told} is {number(got, told):g}, expected {expected}")


def test_large_sizes(qkv_parameters, dense_parameters, mha_parameters):
    """The counts stay exact for wide layers and long sequences, to the last digit."""
    D, N, width = 2502, 50021, 8193
    dense = dense_parameters(N, width)
    _pair(dense, f"dense_parameters({N}, {width})")
    qkv = qkv_parameters(D)
    _pair(qkv, f"qkv_parameters({D})")
    got = (*qkv, *dense, mha_parameters(D, 6))
    expected = (3 * D * D, 3 * D, (N * width) ** 2, N * width, 4 * D * (D + 1))
    for mine, theirs, what in zip(got, expected, ("qkv weights", "qkv biases", "dense weights", "dense biases",
                                                  "parameters of multi-head attention"), strict=True):
        number(mine, f"the {what} at a large size")
        value = mine.item() if isinstance(mine, torch.Tensor) else mine
        right = float(theirs) if isinstance(value, float) else theirs  # a float has the digits that it can have
        check(value == right, f"the {what} at a large size are {value}, expected {theirs}: count in whole numbers")
