"""Public checks of q1_9: beta_to_focus."""

import math

import torch

from course_utils.checking.compare import check, number, same
from course_utils.explain.fingerprints import precision

F64 = torch.float64


def _weight(scores, beta):
    """The largest weight at this beta."""
    return torch.softmax(beta * scores, -1).max().item()


def test_scores_of_zero_and_one(beta_to_focus):
    """With scores 0 and 1 the larger weight is 1 / (1 + exp(-beta)): 0.9 is reached at beta = ln 9."""
    # keeps: finite
    beta = number(beta_to_focus(torch.tensor([0.0, 1.0], dtype=F64), 0.9), "beta")
    same(beta, math.log(9.0), "beta for scores (0, 1) and p = 0.9", rtol=1e-4, atol=1e-6)


def test_weight_is_p(beta_to_focus, rng):
    """At the beta that comes out, the largest weight is p: no less, and no more."""
    # keeps: finite
    drawn = torch.randn(6, generator=rng, dtype=F64).sort().values  # the largest comes last, and then in the middle
    for p, scores in ((0.3, drawn), (0.7, drawn), (0.95, drawn), (0.7, drawn.roll(-3))):
        beta = number(beta_to_focus(scores, p), "beta")
        check(0 <= beta < math.inf, f"beta is {beta} for p = {p}")
        check(abs(_weight(scores, beta) - p) < 1e-5, f"at beta = {beta:.5g} the largest weight is "
              f"{_weight(scores, beta):.5f}, expected {p}")


def test_edges(beta_to_focus):
    """p at or below 1/n needs no beta at all; p = 1 is never reached; a tie of two can never pass 1/2."""
    # keeps: even, never, ties
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=F64)
    same(number(beta_to_focus(scores, 0.2), "beta"), 0.0, "beta for n = 4 and p = 0.2", atol=1e-9)
    check(number(beta_to_focus(scores, 1.0), "beta") == math.inf, "beta for p = 1 is not inf")
    tie = torch.tensor([2.0, 0.0, 2.0, 1.0], dtype=F64)
    check(number(beta_to_focus(tie, 0.6), "beta") == math.inf, "two equal scores at the top share the weight: "
          "neither can pass 1/2, so beta is inf for p = 0.6")
    check(abs(_weight(tie, number(beta_to_focus(tie, 0.4), "beta")) - 0.4) < 1e-5, "with a tie of two, 0.4 is reached")


def test_more_edges(beta_to_focus):
    """p = 1/n needs no beta, for one score and for equal ones too; a tie of two does not reach 1/2 itself."""
    # keeps: even, never, ties
    for n in (1, 2, 4):
        same(number(beta_to_focus(torch.full((n,), 2.0, dtype=F64), 1 / n), "beta"), 0.0, f"beta for {n} equal scores "
             f"and p = 1/{n}", atol=1e-9)
    check(number(beta_to_focus(torch.full((4,), 2.0, dtype=F64), 0.3), "beta") == math.inf, "four equal scores never "
          "exceed 1/4, so beta is inf for p = 0.3")
    tie = torch.tensor([2.0, 0.0, 2.0, 1.0], dtype=F64)
    check(number(beta_to_focus(tie, 0.5), "beta") == math.inf, "a tie of two reaches 1/2 in the limit only")
    same(number(beta_to_focus(tie[1:], 1.0), "beta"), math.inf, "beta for p = 1")


def test_tied_means_equal(beta_to_focus):
    """Scores that lie close together are not tied: a gap of 1e-6 needs a beta of millions."""
    # keeps: tied-is-equal, finite
    for gap in (1e-3, 1e-6):
        scores = torch.tensor([1.0, 1.0 + gap, -5.0], dtype=F64)
        beta = number(beta_to_focus(scores, 0.9), "beta")
        check(beta < math.inf, f"a gap of {gap:g} is no tie: some beta reaches 0.9")
        same(beta * gap, math.log(9.0), f"beta times the gap of {gap:g}, for p = 0.9", rtol=1e-4)


def test_shifted_and_doubled(beta_to_focus, rng):
    """Adding a constant to all scores changes nothing; doubling them halves beta."""
    # keeps: shift, doubling
    scores = torch.randn(5, generator=rng, dtype=F64)
    beta = number(beta_to_focus(scores, 0.7), "beta")
    same(number(beta_to_focus(scores + 300, 0.7), "beta"), beta, "beta for scores shifted by 300", rtol=1e-5)
    same(number(beta_to_focus(2 * scores, 0.7), "beta"), beta / 2, "beta for doubled scores", rtol=1e-5)


def test_form(beta_to_focus):
    """A Python float comes back, for scores of any dtype, to six digits."""
    # keeps: float, dtypes, digits
    for dtype in (torch.float32, F64, torch.int64):
        beta = beta_to_focus(torch.tensor([1, 0, 0], dtype=dtype), 0.9)
        check(isinstance(beta, float), f"beta is a {type(beta).__name__}, expected a Python float")
        same(beta, math.log(18.0), f"beta for scores (1, 0, 0) in {dtype}", rtol=1e-6)
    beta = number(beta_to_focus(torch.tensor([1.0, 0.0], dtype=F64), 1 - 1e-6), "beta")
    same(beta, math.log(1e6 - 1), "beta for p = 1 - 1e-6", rtol=1e-6)


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


def probe_type(beta_to_focus):
    return type(beta_to_focus(_scores(), 0.6)).__name__


def probe_digits(beta_to_focus):
    scores = torch.tensor([1.0, 0.0], dtype=F64)
    return precision(torch.tensor(float(beta_to_focus(scores, 0.9)) - math.log(9.0), dtype=F64))


def probe_digits_of_beta(beta_to_focus):
    far = number(beta_to_focus(torch.tensor([1.0, 0.0], dtype=F64), 0.9), "beta") / math.log(9.0) - 1
    return "six" if abs(far) < 1e-6 else "some" if abs(far) < 0.02 else "none"
