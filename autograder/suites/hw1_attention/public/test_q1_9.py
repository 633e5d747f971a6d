"""Public checks of q1_9: beta_to_focus."""

import math

import torch

from course_utils.checking.compare import check, number, same

F64 = torch.float64


def _weight(scores, beta):
    """The largest weight at this beta."""
    return torch.softmax(beta * scores, -1).max().item()


def test_scores_of_zero_and_one(beta_to_focus):
    """With scores 0 and 1 the larger weight is 1 / (1 + exp(-beta)): 0.9 is reached at beta = ln 9."""
    beta = number(beta_to_focus(torch.tensor([0.0, 1.0], dtype=F64), 0.9), "beta")
    same(beta, math.log(9.0), "beta for scores (0, 1) and p = 0.9", rtol=1e-4, atol=1e-6)


def test_weight_is_p(beta_to_focus, rng):
    """At the beta that comes out, the largest weight is p: no less, and no more."""
    scores = torch.randn(6, generator=rng, dtype=F64)
    for p in (0.3, 0.7, 0.95):
        beta = number(beta_to_focus(scores, p), "beta")
        check(0 <= beta < math.inf, f"beta is {beta} for p = {p}")
        check(abs(_weight(scores, beta) - p) < 1e-5, f"at beta = {beta:.5g} the largest weight is "
              f"{_weight(scores, beta):.5f}, expected {p}")


def test_edges(beta_to_focus):
    """p at or below 1/n needs no beta at all; p = 1 is never reached; a tie of two can never pass 1/2."""
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=F64)
    same(number(beta_to_focus(scores, 0.2), "beta"), 0.0, "beta for n = 4 and p = 0.2", atol=1e-9)
    check(number(beta_to_focus(scores, 1.0), "beta") == math.inf, "beta for p = 1 is not inf")
    tie = torch.tensor([2.0, 0.0, 2.0, 1.0], dtype=F64)
    check(number(beta_to_focus(tie, 0.6), "beta") == math.inf, "two equal scores at the top share the weight: "
          "neither can pass 1/2, so beta is inf for p = 0.6")
    check(abs(_weight(tie, number(beta_to_focus(tie, 0.4), "beta")) - 0.4) < 1e-5, "with a tie of two, 0.4 is reached")


def _scores(n=5):
    return torch.randn(n, generator=torch.Generator().manual_seed(91), dtype=F64)


def probe_moderate(beta_to_focus):
    return beta_to_focus(_scores(), 0.6)


def probe_sharp(beta_to_focus):
    return beta_to_focus(_scores(), 0.99)


def probe_two(beta_to_focus):
    return beta_to_focus(torch.tensor([-1.0, 0.5], dtype=F64), 0.8)


def probe_small_scores(beta_to_focus):
    return beta_to_focus(0.01 * _scores(), 0.8)


def probe_shifted(beta_to_focus):
    return beta_to_focus(_scores() + 500, 0.7)


def probe_below_uniform(beta_to_focus):
    return beta_to_focus(_scores(), 0.1)


def probe_uniform(beta_to_focus):
    return beta_to_focus(_scores(4), 0.25)


def probe_one(beta_to_focus):
    return beta_to_focus(_scores(), 1.0)


def probe_tie_reached(beta_to_focus):
    return beta_to_focus(torch.tensor([2.0, 0.0, 2.0, 1.0, -1.0], dtype=F64), 0.4)


def probe_tie_never(beta_to_focus):
    return beta_to_focus(torch.tensor([2.0, 0.0, 2.0, 1.0, -1.0], dtype=F64), 0.7)


def probe_all_equal(beta_to_focus):
    return beta_to_focus(torch.full((4,), 1.5, dtype=F64), 0.5)


def probe_tie_bound(beta_to_focus):
    return beta_to_focus(torch.tensor([2.0, 0.0, 2.0, 1.0, -1.0], dtype=F64), 0.5)


def probe_one_score(beta_to_focus):
    return [beta_to_focus(torch.full((n,), 2.0, dtype=F64), 1 / n) for n in (1, 2, 4)]


def probe_tiny_gap(beta_to_focus):
    return beta_to_focus(torch.tensor([1.0, 1.0 + 1e-6, 0.0], dtype=F64), 0.9)


def probe_small_gap(beta_to_focus):
    return beta_to_focus(torch.tensor([0.0, 1e-4, -1e-4, 0.0], dtype=torch.float64), 0.9)
