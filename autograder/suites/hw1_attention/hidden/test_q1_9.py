"""Hidden checks of q1_9: beta_to_focus."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from autograder.suites.once import once
from course_utils.checking.compare import check, number, same

F64 = torch.float64


def _weight(scores, beta):
    """The largest weight at this beta, in double precision."""
    scores = scores.to(F64)
    return torch.softmax(beta * (scores - scores.max()), -1).max().item()


def _reaches(beta_to_focus, scores, p, slack=1e-6):
    """Check that the weight at the returned beta is p: reached, and not overshot."""
    beta = number(beta_to_focus(scores, p), "beta")
    about = f"for n = {len(scores)} scores and p = {p:.4g}"
    check(beta >= 0, f"beta is {beta:.5g} {about}: beta is not negative")
    check(beta != math.inf, f"beta is inf {about}, but p is within reach")
    got = _weight(scores, beta)
    check(got >= p - slack, f"at your beta = {beta:.6g} the largest weight is {got:.6f} {about}: p is not reached")
    check(got <= p + slack, f"at your beta = {beta:.6g} the largest weight is {got:.6f} {about}: a smaller beta does")
    return beta


def _draw(rng, n):
    """Scores whose top is apart from the rest by 0.2 or more, at a random place."""
    scores = torch.randn(n, generator=rng, dtype=F64)
    place = int(torch.randint(n, (1,), generator=rng))
    scores[place] = scores.max() + 0.2 + torch.rand(1, generator=rng, dtype=F64).item()
    return scores


def _never(beta_to_focus, scores, p, why):
    beta = number(beta_to_focus(scores, p), "beta")
    check(beta == math.inf, f"beta is {beta:.5g} for p = {p:.4g}, expected inf: {why}")


@pytest.mark.weight(3)
def test_reaches_p(beta_to_focus, rng):
    """The largest weight at beta is p, for several scores and several p."""
    for n in (2, 5, 12):
        scores = _draw(rng, n)
        for p in (0.55, 0.8, 0.95):
            _reaches(beta_to_focus, scores, p)


@pytest.mark.weight(2)
def test_near_the_ends(beta_to_focus, rng):
    """p just above 1/n and p close to 1 are reached as well."""
    for n in (3, 8):
        scores = _draw(rng, n)
        for p in (1 / n + 0.01, 0.999, 0.9999):
            _reaches(beta_to_focus, scores, p)


def test_two_scores(beta_to_focus, rng):
    """For two scores the answer is ln(p / (1 - p)) over their gap."""
    for gap, p in ((1.0, 0.9), (0.25, 0.7), (3.0, 0.6)):
        low = torch.randn(1, generator=rng, dtype=F64).item()
        scores = torch.tensor([low + gap, low], dtype=F64)
        beta = number(beta_to_focus(scores, p), "beta")
        same_or_because(beta, math.log(p / (1 - p)) / gap, f"beta for a gap of {gap} and p = {p}", {
            "that is ln(1 / (1 - p)) / gap, as if p in the numerator were 1": math.log(1 / (1 - p)) / gap,
            "the gap between the scores does not enter": math.log(p / (1 - p)),
            "you multiply by the gap, and divide is right": math.log(p / (1 - p)) * gap,
        }, rtol=1e-4, atol=1e-6)


@once
def _exact(scores, p):
    """beta to all digits of float64, for p between 1/n and 1/m: the rivals' exponentials against the room they have."""
    gaps = scores.max().double() - scores.double()
    rivals, m = gaps[gaps > 0], int((gaps == 0).sum())
    low, high = 0.0, 1 / rivals.min().item()
    while torch.exp(-high * rivals).sum() > (1 - m * p) / p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):  # there is no number between them
            break
        low, high = (middle, high) if torch.exp(-middle * rivals).sum() > (1 - m * p) / p else (low, middle)
    return high


def test_six_digits(beta_to_focus, rng):
    """beta is right to six digits, for scores in float64."""
    for n in (2, 3, 6, 10):
        scores = _draw(rng, n)
        for p in (0.6, 0.85, 0.999):
            got = number(beta_to_focus(scores, p), "beta")
            same(got, _exact(scores, p), f"beta for n = {n} scores and p = {p} (six digits are asked for: halve the "
                 "interval more often, and compute in float64)", rtol=2e-6, atol=1e-8)


@pytest.mark.weight(0.5)
def test_very_close_to_one(beta_to_focus, rng):
    """beta is right to six digits up to p = 1 - 1e-6, and finite and nearly right for p still closer to 1."""
    for distance, digits in ((1e-5, 6), (1e-6, 6), (1e-9, 4), (1e-12, 4)):
        for n in (2, 6):
            scores = _draw(rng, n)
            got = number(beta_to_focus(scores, 1 - distance), "beta")
            check(got != math.inf, f"beta is inf for n = {n} scores and p = 1 - {distance:g}, but p is within reach")
            same(got, _exact(scores, 1 - distance), f"beta for n = {n} scores and p = 1 - {distance:g}",
                 rtol=2 * 10.0**-digits, atol=0)


def test_any_dtype(beta_to_focus, rng):
    """The same scores in 16, 32 and 64 bits, and as integers, give the same beta to six digits."""
    whole = torch.randperm(9, generator=rng)[:6] - 4
    for p in (0.6, 0.97):
        for scores, dtypes in ((whole, (torch.float16, torch.float32, F64, torch.int64, torch.int32)),
                               (whole / 4, (torch.float16, torch.float32))):
            for dtype in dtypes:
                got = number(beta_to_focus(scores.to(dtype), p), "beta")
                same(got, _exact(scores, p), f"beta for p = {p} and scores in {dtype} (go over to float64 first)",
                     rtol=2e-6, atol=0)


@pytest.mark.weight(2)
def test_small_gaps(beta_to_focus, rng):
    """Scores that are close together need a large beta, and are no tie: beta has no upper limit."""
    for gap in (0.02, 1e-4, 1e-8):
        scores = 1 + torch.rand(1, generator=rng, dtype=F64) + torch.tensor([0, gap, 0, -gap, -2 * gap], dtype=F64)
        for p in (0.4, 0.9, 0.99):
            _reaches(beta_to_focus, scores, p)


@pytest.mark.weight(2)
def test_no_focus_needed(beta_to_focus, rng):
    """p at or below 1/n is reached by equal weights: beta is 0."""
    for n in (4, 5, 8):
        scores = _draw(rng, n)
        for p in (1 / n, 0.6 / n, 0.01):
            beta = number(beta_to_focus(scores, p), "beta")
            same(beta, 0.0, f"beta for n = {n} scores and p = {p:.4g}", rtol=0, atol=1e-6)
    same(number(beta_to_focus(torch.full((4,), 0.7, dtype=F64), 0.2), "beta"), 0.0,
         "beta for four equal scores and p = 0.2", rtol=0, atol=1e-6)
    check(number(beta_to_focus(_draw(rng, 4), 0.6), "beta") > 1e-3, "beta is 0 where it must not be")


def test_even_is_all_there_is(beta_to_focus, rng):
    """One score has weight 1, n equal scores have 1/n each: up to that p, beta is 0 and not inf."""
    for n in (1, 2, 4):
        scores = torch.randn(1, generator=rng, dtype=F64).repeat(n)
        for p in (1 / n, 0.7 / n):
            beta = number(beta_to_focus(scores, p), "beta")
            check(beta != math.inf, f"beta is inf for n = {n} equal scores and p = {p:.4g}: an even spread reaches "
                  "1/n, so this case comes before the one of ties")
            same(beta, 0.0, f"beta for n = {n} equal scores and p = {p:.4g}", rtol=0, atol=1e-6)


def test_certainty(beta_to_focus, rng):
    """p = 1 is never reached at a finite beta."""
    for n in (2, 6):
        _never(beta_to_focus, _draw(rng, n), 1.0, "the other weights are positive at every finite beta")
    _reaches(beta_to_focus, _draw(rng, 6), 0.9)


@pytest.mark.weight(2)
def test_tie_within_reach(beta_to_focus, rng):
    """With m equal scores at the top, p below 1/m is reached at a finite beta."""
    for m, p in ((2, 0.3), (2, 0.45), (2, 0.49), (3, 0.25), (3, 0.32)):
        scores = torch.cat([torch.full((m,), 1.25, dtype=F64), torch.randn(5, generator=rng, dtype=F64).clamp(max=1)])
        scores = scores[torch.randperm(m + 5, generator=rng)]
        _reaches(beta_to_focus, scores, p)


@pytest.mark.weight(2)
def test_tie_out_of_reach(beta_to_focus, rng):
    """With m equal scores at the top, none of them can pass 1/m: beta is inf."""
    for m, p in ((2, 0.51), (2, 0.9), (3, 0.4), (4, 0.3), (2, 1.0)):
        scores = torch.cat([torch.full((m,), 1.25, dtype=F64), torch.randn(4, generator=rng, dtype=F64).clamp(max=1)])
        scores = scores[torch.randperm(m + 4, generator=rng)]
        _never(beta_to_focus, scores, p, f"{m} equal scores at the top share the weight")
    for m in (2, 4):
        scores = torch.cat([torch.full((m,), 1.25, dtype=F64), torch.randn(4, generator=rng, dtype=F64).clamp(max=1)])
        _never(beta_to_focus, scores, 1 / m, f"with {m} equal scores at the top 1/{m} is only a limit")
    _never(beta_to_focus, torch.full((4,), 0.7, dtype=F64), 0.5, "four equal scores have weight 1/4 at every beta")
    _reaches(beta_to_focus, torch.tensor([1.25, 0.0, 1.25, 0.5], dtype=F64), 0.4)


@pytest.mark.weight(2)
def test_scale_and_shift(beta_to_focus, rng):
    """Adding a constant to the scores changes nothing; scores 100 times smaller need 100 times the beta."""
    scores = _draw(rng, 6)
    plain = _reaches(beta_to_focus, scores, 0.8)
    for shift in (100.0, -1000.0):
        moved = _reaches(beta_to_focus, scores + shift, 0.8)
        same(moved, plain, f"beta for the scores plus {shift}", rtol=1e-3)
    for factor in (0.01, 0.3, 100.0):
        scaled = _reaches(beta_to_focus, factor * scores, 0.8, slack=1e-6 * max(1.0, factor))
        same(factor * scaled, plain, f"{factor} times the beta for {factor} times the scores", rtol=1e-3)
    far = number(beta_to_focus(1e7 * scores, 0.8), "beta")
    same(1e7 * far, plain, "1e7 times the beta for 1e7 times the scores (a small beta needs its digits too: stop by "
         "the width of the interval against beta, not by a fixed width)", rtol=1e-4)


def test_float32(beta_to_focus, rng):
    """Scores in float32 are fine."""
    scores = _draw(rng, 7).float()
    for p in (0.4, 0.9):
        _reaches(beta_to_focus, scores, p, slack=1e-4)
    same(number(beta_to_focus(scores, 0.1), "beta"), 0.0, "beta for p = 0.1", rtol=0, atol=1e-4)
    _never(beta_to_focus, scores, 1.0, "the other weights are positive at every finite beta")
