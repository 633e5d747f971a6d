"""Hidden checks of q1_1: softargmax."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views

F64 = torch.float64


def _gradient(weights, scores, direction):
    weights = tensor(weights, "the weights", scores.shape, F64)
    check(weights.requires_grad, "no gradient flows from the weights to the scores: the result is cut off "
          "from its input (numpy, `.detach()`, `.item()` or a new tensor made from numbers)")
    return torch.autograd.grad(weights, scores, direction)[0]


def test_shape_and_dtype(softargmax, rng):
    """The weights have the shape and the dtype of the scores, in float32 and in float64."""
    for shape in ((6,), (3, 5), (2, 3, 4, 5)):
        for dtype in (torch.float32, F64):
            scores = torch.randn(*shape, generator=rng, dtype=dtype)
            weights = tensor(softargmax(scores), "the weights", shape=shape, dtype=dtype)
            same(weights, torch.softmax(scores, -1), f"the weights of {dtype} scores", atol=1e-6)


@pytest.mark.weight(2)
def test_values(softargmax, rng):
    """Along the last axis the weights are softmax(beta * scores), for any beta, zero included."""
    scores = 2 * torch.randn(4, 7, generator=rng, dtype=F64)
    same(softargmax(scores), torch.softmax(scores, -1), "the weights with the default beta")
    for beta in (0.35, 2.5, 7.0):
        expected = torch.softmax(beta * scores, -1)
        same_or_because(softargmax(scores, beta=beta), expected, f"the weights at beta = {beta}", {
            "`beta` makes no difference; it multiplies the scores before the exponential": torch.softmax(scores, -1),
            "you divide by `beta`; it multiplies, being an inverse temperature": torch.softmax(scores / beta, -1),
            "`beta` multiplies the weights, not the scores": beta * torch.softmax(scores, -1),
        })
    same(softargmax(scores, 0.0), torch.full_like(scores, 1 / 7), "the weights at beta = 0")
    same(softargmax(scores[0], 1.7), torch.softmax(1.7 * scores[0], -1), "the weights of one vector")
    order = torch.randperm(7, generator=rng)
    same(softargmax(scores[:, order], 7.0), torch.softmax(7.0 * scores[:, order], -1), "the weights in another order")


@pytest.mark.weight(2)
def test_every_axis(softargmax, rng):
    """The sum that is 1 runs along `dim`, whichever axis that is, counted from the front or from the back."""
    scores = torch.randn(3, 4, 5, generator=rng, dtype=F64)
    for dim in (0, 1, 2, -1, -2, -3):
        same_or_because(softargmax(scores, 1.3, dim), torch.softmax(1.3 * scores, dim), f"the weights with dim={dim}", {
            f"your weights sum to 1 along axis {other}, not along axis {dim % 3}": torch.softmax(1.3 * scores, other)
            for other in range(3)
        })


@pytest.mark.weight(2)
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=["float32", "float64"])
def test_any_size_of_score(softargmax, rng, dtype):
    """Scores near 10000 and -10000 give finite weights, and those of the shifted scores."""
    steps = torch.randint(-3, 4, (4, 6), generator=rng).to(dtype)  # whole: exact next to 10000
    for offset in (1e4, -1e4):
        weights = tensor(softargmax(steps + offset), "the weights", shape=steps.shape, dtype=dtype)
        check(weights.isfinite().all(), f"scores near {offset:.0f} give weights that are not finite: "
              "subtract the largest score of each slice before the exponential")
        # exp(z - logsumexp(z)) loses digits in float32 at this size, and is still right
        same(weights, torch.softmax(steps, -1), f"the weights of scores near {offset:.0f}", rtol=0, atol=2e-3)
    spread = torch.tensor([[1e4, -1e4, 0.0, 5e3], [-1e4, 0.0, -9e3, -1e4]], dtype=dtype)
    expected = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0]], dtype=dtype)
    same(softargmax(spread), expected, "the weights of scores far apart", rtol=0, atol=1e-6)
    same(softargmax(spread / 100, 300.0), expected, "the weights at beta = 300", rtol=0, atol=1e-6)
    same(softargmax(spread.T, dim=0), expected.T, "the weights with dim=0", rtol=0, atol=1e-6)
    soft = torch.softmax(2e-4 * spread.double(), -1).to(dtype)
    same(softargmax(spread, 2e-4), soft, "the weights of scores far apart at beta = 0.0002 (beta multiplies the scores "
         "before the exponential: a softmax without beta loses all but the largest)", rtol=0, atol=1e-5)


def test_low_but_not_blocked(softargmax, rng):
    """Finite scores are never blocked, however low they are: only -inf is."""
    steps = torch.randint(-3, 4, (3, 5), generator=rng).to(F64)
    for low in (-1e7, -1e12):
        same(softargmax(steps + low), torch.softmax(steps, -1), f"the weights of scores near {low:.0e}", rtol=0,
             atol=2e-3)


@pytest.mark.weight(0.5)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision(softargmax, rng, dtype):
    """Scores of 16 bits give weights of 16 bits, with -inf among them too."""
    scores = torch.randn(3, 5, generator=rng).to(dtype)
    scores[0, 2] = -math.inf
    scores[1] = -math.inf
    expected = torch.softmax(0.5 * scores.double(), -1).nan_to_num(nan=0.0).to(dtype)
    same(softargmax(scores, 0.5), expected, f"the weights of {dtype} scores", rtol=3e-2, atol=5e-3)


def test_blocked_entries(softargmax, rng):
    """An entry of -inf gets weight exactly 0, and the others share 1 as if it were not there."""
    scores = torch.randn(3, 6, generator=rng, dtype=F64)
    blocked = torch.tensor([[0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=torch.bool)
    expected = torch.zeros_like(scores)
    for row in range(3):
        expected[row, ~blocked[row]] = torch.softmax(0.8 * scores[row, ~blocked[row]], -1)
    weights = softargmax(scores.masked_fill(blocked, -math.inf), beta=0.8)
    same(weights, expected, "the weights")
    check((weights[blocked] == 0).all(), "an entry of -inf has a weight that is not exactly 0")
    for low in (-1e4, -3e4):  # real scores, far below 0
        weights = softargmax(torch.tensor([low, -math.inf, low, -math.inf], dtype=torch.float32))
        weights = tensor(weights, "the weights", (4,), torch.float32)
        check((weights[1::2] == 0).all(), f"beside scores of {low:.0f} an entry of -inf has a weight that is not "
              "exactly 0: a number in place of -inf is a score like any other")
        # exp(z - logsumexp(z)) loses digits in float32 at this size, and is still right
        same(weights, torch.tensor([0.5, 0.0, 0.5, 0.0]), f"the weights of two scores of {low:.0f} between two of -inf",
             rtol=0, atol=2e-3)


@pytest.mark.weight(2)
def test_blocked_slices(softargmax, rng):
    """A slice that is all -inf gives exact zeros, along every axis, and leaves the other slices alone."""
    for dim in (0, 1, -1):
        scores = torch.randn(3, 4, 5, generator=rng, dtype=F64)
        lines = scores.movedim(dim, -1)  # a view: the slices along dim are its rows
        lines[0, 1] = -math.inf
        lines[2, 3] = -math.inf
        expected = torch.softmax(1.2 * scores, dim).nan_to_num(nan=0.0)
        weights = tensor(softargmax(scores, 1.2, dim), f"the weights with dim={dim}", scores.shape, F64)
        check(not weights.isnan().any(), f"with dim={dim} a slice of -inf gives NaN: it has no largest score "
              "to subtract and no weight to divide by")
        check((weights.movedim(dim, -1)[0, 1] == 0).all() and (weights.movedim(dim, -1)[2, 3] == 0).all(),
              f"with dim={dim} a slice of -inf gives weights that are not exactly 0")
        same(weights, expected, f"the weights with dim={dim}")
    same(softargmax(torch.full((4,), -math.inf)), torch.zeros(4), "the weights of a vector of -inf")


@pytest.mark.weight(2)
def test_gradient_of_blocked_slices(softargmax, rng):
    """The gradient of a slice that is all -inf is zero, and finite and right everywhere else."""
    scores = torch.randn(4, 5, generator=rng, dtype=F64)
    scores[1] = -math.inf
    scores[2, 1:3] = -math.inf
    direction = torch.randn(4, 5, generator=rng, dtype=F64)
    leaf = scores.clone().requires_grad_()
    gradient = _gradient(softargmax(leaf, beta=1.4), leaf, direction)
    check(not gradient.isnan().any(), "the gradient has NaN: a NaN that is overwritten in the forward pass "
          "comes back in the backward pass: make it harmless before the exponential, not after")
    check((gradient[1] == 0).all(), "the gradient of the slice of -inf is not zero")
    a = torch.softmax(1.4 * scores, -1).nan_to_num(nan=0.0)
    expected = 1.4 * a * (direction - (a * direction).sum(-1, keepdim=True))
    same(gradient, expected, "the gradient")


def test_gradient(softargmax, rng):
    """The gradient with respect to the scores is that of softmax(beta * scores), along any axis."""
    scores = torch.randn(3, 4, 5, generator=rng, dtype=F64)
    direction = torch.randn(3, 4, 5, generator=rng, dtype=F64)
    for dim in (-1, 1):
        mine, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        expected = torch.autograd.grad(torch.softmax(0.6 * theirs, dim), theirs, direction)[0]
        same(_gradient(softargmax(mine, 0.6, dim), mine, direction), expected, f"the gradient with dim={dim}")


@pytest.mark.weight(0.5)
def test_device(softargmax, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, softargmax, call=(torch.randn(2, 3, generator=rng), 0.5))


@pytest.mark.weight(0.5)
def test_memory_layout(softargmax, in_box, rng):
    """A transposed tensor has the same weights as its copy: the layout in memory makes no difference."""
    for shape in ((4, 5), (3, 4, 5)):
        scores = torch.randn(*shape, generator=rng, dtype=F64)
        for dim in range(len(shape)):
            same(in_box(call_with_views, softargmax, scores, 1.3, dim), torch.softmax(1.3 * scores, dim),
                 f"the weights of a transposed tensor with dim={dim}")
