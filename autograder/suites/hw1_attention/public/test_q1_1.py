"""Public checks of q1_1: softargmax."""

import math

import torch

from course_utils.checking.compare import check, same, tensor
from course_utils.explain.fingerprints import precision

FAR = 1e-3  # what float32 can tell at 10000: numbers there lie 0.001 apart

def test_worked_numbers(softargmax):
    """Scores 14 and 12 give the weights 0.8808 and 0.1192; `beta` multiplies the scores first."""
    # keeps: formula
    scores = torch.tensor([14.0, 12.0], dtype=torch.float64)
    same(softargmax(scores), torch.tensor([0.8808, 0.1192], dtype=torch.float64), "the weights", atol=1e-4)
    scores = torch.tensor([0.0, math.log(3.0)], dtype=torch.float64)
    expected = torch.tensor([0.1, 0.9], dtype=torch.float64)  # odds of 3 to 1, squared by beta = 2
    same(softargmax(scores, beta=2.0), expected, "the weights at beta = 2")


def test_weights_sum_to_one_along_dim(softargmax, rng):
    """The weights are positive and sum to 1 along `dim`, and they keep the shape of the scores."""
    # keeps: shape, axis
    scores = torch.randn(2, 3, 4, generator=rng, dtype=torch.float64)
    for dim in (-1, 1, 0):
        weights = tensor(softargmax(scores, dim=dim), f"the weights with dim={dim}", shape=(2, 3, 4))
        check((weights >= 0).all(), f"some weights with dim={dim} are negative")
        total = weights.sum(dim)
        same(total, torch.ones_like(total), f"the sum of the weights along dim={dim}")


def test_large_scores(softargmax):
    """Scores of 10000 and -10000 in float32 give finite weights."""
    # keeps: stable
    scores = torch.tensor([1e4, -1e4, 0.0], dtype=torch.float32)
    weights = tensor(softargmax(scores), "the weights", shape=(3,), dtype=torch.float32)
    check(weights.isfinite().all(), "exp(10000) overflows: softmax does not change when you subtract the "
          "largest score from all of them, and then no exponent is above 0")
    same(weights, torch.tensor([1.0, 0.0, 0.0]), "the weights of (10000, -10000, 0)")


def test_everything_blocked(softargmax):
    """A row of scores that are all -inf gives weights 0, not NaN; the other rows are as usual."""
    # keeps: blocked, empty-slice, neighbours
    scores = torch.tensor([[0.0, 0.0], [-math.inf, -math.inf], [5.0, -math.inf]], dtype=torch.float64)
    weights = tensor(softargmax(scores), "the weights", shape=(3, 2))
    check(not weights.isnan().any(), "a row of -inf gives NaN (0 / 0, or -inf minus -inf): treat it apart")
    same(weights, torch.tensor([[0.5, 0.5], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64), "the weights")


def test_dtype_and_inputs(softargmax, rng):
    """The weights have the dtype of the scores, and the scores are not changed."""
    # keeps: shape, in-place
    for dtype in (torch.float32, torch.float64):
        scores = torch.randn(3, 4, generator=rng, dtype=dtype)
        kept = scores.clone()
        tensor(softargmax(scores, beta=0.5), "the weights", shape=(3, 4), dtype=dtype)
        check(torch.equal(scores, kept), "the scores were changed in place: make a new tensor")


def test_precision(softargmax, rng):
    """In float64 the weights are right to twelve digits, at any beta."""
    # keeps: formula
    scores = torch.randn(4, 5, generator=rng, dtype=torch.float64)
    for beta in (0.0, 0.3, 1.0, 2.5):
        odds = torch.exp(beta * scores)
        same(softargmax(scores, beta), odds / odds.sum(-1, keepdim=True), f"the weights at beta = {beta}", rtol=1e-10,
             atol=1e-12)


def test_every_slice_for_itself(softargmax):
    """A slice of scores around 0 is not spoiled by a neighbour at 10000, nor by beta = 0.001 at wide scores."""
    # keeps: stable, neighbours
    odds = 1 / (1 + math.e)
    scores = torch.tensor([[1e4, 1e4 - 1], [1.0, 0.0], [-1e4, -1e4 - 1]])
    same(softargmax(scores), torch.tensor([[1 - odds, odds]]).expand(3, 2), "the weights", atol=FAR)
    wide = torch.tensor([3000.0, 0.0, -2000.0], dtype=torch.float64)
    expected = torch.exp(wide / 1000) / torch.exp(wide / 1000).sum()
    same(softargmax(wide, beta=1e-3), expected, "the weights of (3000, 0, -2000) at beta = 0.001")


def test_blocked_places(softargmax):
    """A score of -inf has weight exactly 0 beside scores of any size, and the others share as if it were not there."""
    # keeps: blocked
    scores = torch.tensor([[-1e4, -math.inf, -1e4], [2.0, -math.inf, 2.0]])
    weights = tensor(softargmax(scores), "the weights", shape=(2, 3))
    check((weights[:, 1] == 0).all(), "a blocked place has weight: -inf is below every score, -10000 too")
    same(weights, torch.tensor([[0.5, 0.0, 0.5]]).expand(2, 3), "the weights", atol=FAR)


def test_gradient_beside_an_empty_slice(softargmax):
    """An empty slice sends back a gradient of 0, not NaN; beside it the gradient is that of a softmax."""
    # keeps: empty-gradient, gradients
    scores = torch.tensor([[0.0, math.log(3.0)], [-math.inf, -math.inf]], dtype=torch.float64, requires_grad=True)
    weights = softargmax(scores)
    check(weights.requires_grad, "no gradient flows from the weights to the scores")
    weights[:, 0].sum().backward()
    check(not scores.grad.isnan().any(), "the gradient has NaN: a NaN that is painted over afterwards comes back in it")
    expected = torch.tensor([[3.0, -3.0], [0.0, 0.0]], dtype=torch.float64) / 16
    same(scores.grad, expected, "the gradient of the first weight of each row")


def _scores(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(11), dtype=torch.float64)


def probe_plain(softargmax):
    return softargmax(_scores(3, 5))


def probe_beta(softargmax):
    return softargmax(_scores(3, 5), beta=2.5)


def probe_small_beta(softargmax):
    return softargmax(_scores(3, 5), 0.3)


def probe_beta_zero(softargmax):
    return softargmax(_scores(3, 5), beta=0.0)


def probe_first_axis(softargmax):
    return softargmax(_scores(2, 3, 4), dim=0)


def probe_middle_axis(softargmax):
    return softargmax(_scores(2, 3, 4), beta=0.7, dim=1)


def probe_large(softargmax):
    return softargmax(torch.tensor([[1e4, 1e4 - 1, -1e4], [2e3, -5.0, 2e3]], dtype=torch.float64))


def probe_very_negative(softargmax):
    return softargmax(torch.tensor([-1e4, -1e4 - 1, -1e4 - 2], dtype=torch.float64))


def probe_large_float32(softargmax):
    return softargmax(torch.tensor([[1e4, 0.0, -1e4], [-1e4, -1e4, 100.0]]))


def probe_dtype(softargmax):
    return [str(softargmax(_scores(3, 5).to(dtype)).dtype) for dtype in (torch.float32, torch.float64)]


def probe_precision(softargmax):
    return precision(softargmax(_scores(3, 5)).sum(-1) - 1)


def probe_partly_blocked(softargmax):
    return softargmax(_scores(3, 4).masked_fill(torch.eye(3, 4, dtype=torch.bool), -math.inf), beta=1.5)


def probe_all_blocked(softargmax):
    scores = _scores(3, 4)
    scores[1] = -math.inf
    return softargmax(scores)


def probe_all_blocked_first_axis(softargmax):
    scores = _scores(3, 4)
    scores[:, 2] = -math.inf
    return softargmax(scores, dim=0)


def probe_gradient_all_blocked(softargmax):
    scores = _scores(3, 4)
    scores[1] = -math.inf
    scores.requires_grad_()
    (softargmax(scores) * _scores(3, 4).cos()).sum().backward()
    return scores.grad


def probe_blocked_beside_low(softargmax):
    return softargmax(torch.tensor([-1e4, -math.inf, -1e4, -math.inf]))


def probe_wide_scores_small_beta(softargmax):
    return softargmax(torch.tensor([[3000.0, 0.0, -2000.0], [0.0, 1e4, 8e3]], dtype=torch.float64), beta=1e-3)


def probe_gradient_flows(softargmax):
    return bool(softargmax(_scores(3, 4).requires_grad_()).requires_grad)


def probe_sum_is_exact(softargmax):
    return bool((softargmax(_scores(3, 5)).sum(-1) - 1).abs().max() < 1e-12)


def probe_sums_fall_short(softargmax):
    return bool((softargmax(_scores(40, 5)).sum(-1) < 1 - 1e-13).all())
