"""Public checks of q6_9: next_probabilities."""

import math

import torch

from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error

F64 = torch.float64
HALVES = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=F64).log()
RANDOM = torch.randn(3, 7, generator=torch.Generator().manual_seed(69), dtype=F64)


def _t(*values):
    return torch.tensor(values, dtype=F64)


def test_plain_softmax(next_probabilities):
    """Without any setting it is a softmax over the last axis, for any axes in front, in the dtype of the logits."""
    # keeps: axes, sum-one
    for shape in ((7,), (3, 7), (2, 3, 4, 7)):
        logits = RANDOM[0].expand(shape) * torch.linspace(0.5, 2, math.prod(shape[:-1])).reshape(*shape[:-1], 1)
        got = tensor(next_probabilities(logits), f"the result for {list(shape)}", shape, F64)
        same(got, logits.softmax(-1), f"the result for {list(shape)}")
        same(got.sum(-1), torch.ones(shape[:-1], dtype=F64), "the sums")
    check(next_probabilities(RANDOM.float()).dtype == torch.float32, "float32 logits give another dtype")


def test_temperature(next_probabilities):
    """Logits are divided by the temperature; at 0 the first of the largest gets all."""
    # keeps: temperature, zero, finite
    same(next_probabilities(RANDOM, 0.5), (2 * RANDOM).softmax(-1), "the result at temperature 0.5")
    same(next_probabilities(RANDOM, temperature=2.0), (RANDOM / 2).softmax(-1), "the result at temperature 2")
    same(next_probabilities(_t(1.0, 3.0, 0.0, 3.0), 0), _t(0.0, 1.0, 0.0, 0.0), "the result at temperature 0")
    same(next_probabilities(_t(900.0, 800.0, -900.0), 1e-3), _t(1.0, 0.0, 0.0), "the result for large logits at 0.001")


def test_top_k(next_probabilities):
    """top_k keeps the k most likely tokens, of equals those with the lower ids; more than V keeps all."""
    # keeps: top-k, large-k, ties, zeros
    same(next_probabilities(HALVES, top_k=2), _t(2 / 3, 1 / 3, 0.0, 0.0), "the result with top_k=2")
    got = next_probabilities(_t(1.0, 2.0, 1.0, 2.0, 1.0), top_k=3)
    e = math.e
    same(got, _t(1, e, 0, e, 0) / (1 + 2 * e), "the result for logits 1, 2, 1, 2, 1 with top_k=3")
    check((got[[2, 4]] == 0).all(), "what is not kept gets exactly 0")
    same(next_probabilities(RANDOM, top_k=100), RANDOM.softmax(-1), "the result with top_k=100 of 7 tokens")


def test_top_p(next_probabilities):
    """top_p keeps the smallest set that has that much, after temperature and top_k; 1 removes nothing."""
    # keeps: top-p, p-after-k
    same(next_probabilities(HALVES, top_p=0.5), _t(1.0, 0.0, 0.0, 0.0), "the result with top_p=0.5")
    same(next_probabilities(HALVES, top_p=0.7), _t(2 / 3, 1 / 3, 0.0, 0.0), "the result with top_p=0.7")
    same(next_probabilities(HALVES, top_p=0.8), _t(4, 2, 1, 0) / 7, "the result with top_p=0.8")
    same(
        next_probabilities(HALVES, top_k=3, top_p=0.8), _t(2 / 3, 1 / 3, 0.0, 0.0), "the result with top_k=3, top_p=0.8"
    )
    same(
        next_probabilities(HALVES, 0.5, top_p=0.7), _t(1.0, 0.0, 0.0, 0.0), "the result with temperature 0.5, top_p=0.7"
    )
    same(next_probabilities(HALVES, top_p=1.0), HALVES.exp(), "the result with top_p=1")


def test_rows(next_probabilities):
    """Each row has its own set: what a row gets in a batch is what it gets alone."""
    # keeps: axes
    rows = torch.stack([HALVES, HALVES.flip(0), torch.zeros_like(HALVES), 3 * HALVES])
    for options in ({"top_p": 0.7}, {"top_k": 2}, {"temperature": 0.0}, {"temperature": 2.0, "top_k": 3, "top_p": 0.8}):
        alone = torch.stack([next_probabilities(row, **options) for row in rows])
        same_as_yours(next_probabilities(rows, **options), alone, f"the result of four rows with {options}",
                      "of each alone")


def test_minus_infinity(next_probabilities):
    """A logit of -inf gets exactly 0, and the logits are as before."""
    # keeps: inf, not-changed
    logits = _t(0.0, -math.inf, 0.0, -math.inf)
    for options in ({}, {"temperature": 0.3}, {"top_k": 3}, {"top_p": 0.99}, {"temperature": 0.0}):
        got = next_probabilities(logits, **options)
        half = _t(1.0, 0.0, 0.0, 0.0) if options.get("temperature") == 0 else _t(0.5, 0.0, 0.5, 0.0)
        same(got, half, f"the result for 0, -inf, 0, -inf with {options or 'no settings'}")
    same(logits, _t(0.0, -math.inf, 0.0, -math.inf), "the logits afterwards")


def test_errors(next_probabilities):
    """Settings that make no sense are ValueErrors, at temperature 0 too."""
    # keeps: bad-temperature, bad-k, bad-p, checked-at-zero
    expect_value_error("temperature=-1", next_probabilities, HALVES, -1.0)
    for temperature in (1.0, 0.0):
        for options in ({"top_k": 0}, {"top_k": -2}, {"top_p": 0.0}, {"top_p": 1.5}, {"top_p": -0.1}):
            expect_value_error(
                f"{options} at temperature {temperature:g}", next_probabilities, HALVES, temperature, **options
            )


def probe_plain(next_probabilities):
    return next_probabilities(RANDOM)


def probe_first_axis(next_probabilities):
    return next_probabilities(RANDOM.T)


def probe_temperature(next_probabilities):
    return next_probabilities(RANDOM, 0.5)


def probe_zero(next_probabilities):
    return next_probabilities(_t(1.0, 3.0, 0.0, 3.0), 0.0)


def probe_top_k(next_probabilities):
    return next_probabilities(RANDOM, top_k=3)


def probe_top_k_ties(next_probabilities):
    return next_probabilities(_t(1.0, 2.0, 1.0, 2.0, 1.0), top_k=3)


def probe_top_p(next_probabilities):
    return next_probabilities(HALVES, top_p=0.7)


def probe_top_p_at_an_edge(next_probabilities):
    return next_probabilities(HALVES, top_p=0.5)


def probe_top_p_ties(next_probabilities):
    return next_probabilities(HALVES, top_p=0.8)


def probe_small_top_p(next_probabilities):
    return next_probabilities(HALVES, top_p=0.1)


def probe_both(next_probabilities):
    return next_probabilities(HALVES, top_k=3, top_p=0.8)


def probe_temperature_and_p(next_probabilities):
    return next_probabilities(HALVES.flip(0), 0.5, top_p=0.7)


def probe_temperature_and_p_random(next_probabilities):
    return next_probabilities(2 * RANDOM, 3.0, top_p=0.6)


def probe_large(next_probabilities):
    return [str(float(x)) for x in next_probabilities(_t(900.0, 800.0, -900.0), 1e-3)]


def probe_large_k(next_probabilities):
    try:
        return next_probabilities(RANDOM, top_k=100)
    except Exception as error:
        return type(error).__name__ if type(error).__name__ == "RuntimeError" else "other"


def probe_errors(next_probabilities):
    return [
        raises_value_error(next_probabilities, HALVES, temperature, top_k, top_p)
        for temperature, top_k, top_p in (
            (-1.0, None, None),
            (1.0, 0, None),
            (0.0, 0, None),
            (1.0, None, 0.0),
            (0.0, None, 1.5),
            (1.0, None, 1.5),
        )
    ]


def probe_dtype(next_probabilities):
    return str(next_probabilities(RANDOM.float(), 0.7, 3, 0.9).dtype)


def probe_exact_zeros(next_probabilities):
    return [[str(bool(x == 0)) for x in next_probabilities(HALVES, **way)] for way in ({"top_k": 2}, {"top_p": 0.7})]


def probe_rows(next_probabilities):
    return next_probabilities(torch.stack([HALVES, HALVES.flip(0), torch.zeros_like(HALVES)]), top_p=0.7)


def probe_top_p_1(next_probabilities):
    try:
        return next_probabilities(HALVES, top_p=1.0)
    except ValueError:
        return "refused"


def probe_dtype_of_the_work(next_probabilities):
    """Whether the numbers are those of float64: 1e-9 more than nothing is seen there."""
    return bool(next_probabilities(_t(0.0, 1e-9))[1] > next_probabilities(_t(0.0, 1e-9))[0])


def probe_removed(next_probabilities):
    return bool((next_probabilities(HALVES, top_p=0.4)[1:] == 0).all())
