"""Hidden checks of q3_1: layer_norm."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views

F64 = torch.float64
NO_GRADIENT = ("no gradient flows from the result to the inputs: it is cut off from them (numpy, `.detach()`, "
               "`.item()` or a new tensor made from numbers)")


def _draw(rng, *lead, D=5, dtype=F64):
    """x with a mean and a scale of its own in every row, gamma of both signs, beta: all unequal."""
    x = torch.randn(*lead, D, generator=rng, dtype=dtype)
    x = (0.5 + torch.rand(*lead, 1, generator=rng, dtype=dtype)) * x + torch.randn(*lead, 1, generator=rng, dtype=dtype)
    return x, torch.randn(D, generator=rng, dtype=dtype), torch.randn(D, generator=rng, dtype=dtype)


def _by_hand(x, gamma, beta, eps=1e-5, dim=-1, centre=True, unbiased=False, root=True, outside=False):
    """The formula, with the turns that one can take wrongly."""
    mean = x.mean(dim, keepdim=True)
    variance = x.var(dim, keepdim=True, unbiased=unbiased) if centre else x.square().mean(dim, keepdim=True)
    below = variance.sqrt() + eps if outside else variance + eps
    return gamma * (x - mean if centre else x) / (below.sqrt() if root and not outside else below) + beta


def _causes(x, gamma, beta, eps=1e-5):
    wrong = {
        "you divide by D - 1, and the biased variance divides by D": _by_hand(x, gamma, beta, eps, unbiased=True),
        "the mean is not subtracted (that is RMS norm)": _by_hand(x, gamma, beta, eps, centre=False),
        "you divide by the variance, and its root is meant": _by_hand(x, gamma, beta, eps, root=False),
        "eps is added to the standard deviation; it belongs inside the root, beside the variance":
            _by_hand(x, gamma, beta, eps, outside=True),
        "gamma and beta have no effect": _by_hand(x, 1.0, 0.0, eps),
        "beta is missing": _by_hand(x, gamma, 0.0, eps),
        "gamma is missing": _by_hand(x, 1.0, beta, eps),
        "beta is subtracted": _by_hand(x, gamma, -beta, eps),
        "beta is added before gamma multiplies": gamma * (_by_hand(x, 1.0, 0.0, eps) + beta),
        "the unbiased variance (division by D - 1), and eps outside the root":
            _by_hand(x, gamma, beta, eps, unbiased=True, outside=True),
    }
    if eps > 1e-4:  # else too small to tell from another small eps
        wrong["eps has no effect"] = _by_hand(x, gamma, beta, 0.0)
    if x.ndim > 1:
        wrong["mean and variance run over the first axis; that is batch norm"] = _by_hand(x, gamma, beta, eps, 0)
        wrong["mean and variance run over all axes together"] = _by_hand(x, gamma, beta, eps, tuple(range(x.ndim)))
    if x.ndim > 2:
        wrong["mean and variance run over the last two axes together"] = _by_hand(x, gamma, beta, eps, (-2, -1))
        wrong["mean and variance run over the positions, not over the features"] = _by_hand(x, gamma, beta, eps, -2)
        wrong["mean and variance run over all axes but the last"] = _by_hand(x, gamma, beta, eps,
                                                                              tuple(range(x.ndim - 1)))
    return wrong


def _value(got, x, gamma, beta, what, eps=1e-5, **how):
    expected = F.layer_norm(x, x.shape[-1:], gamma, beta, eps)
    same_or_because(tensor(got, what, x.shape, x.dtype), expected, what, _causes(x, gamma, beta, eps), **how)


def test_shape_and_dtype(layer_norm, rng):
    """The result has the shape and the dtype of x, in float32 and in float64."""
    for lead in ((4,), (3, 4), (2, 3, 4), ()):
        for dtype in (torch.float32, F64):
            x, gamma, beta = _draw(rng, *lead, dtype=dtype)
            got = tensor(layer_norm(x, gamma, beta), f"the result for x of shape {list(x.shape)}", x.shape, dtype)
            check(got.isfinite().all(), "the result is not finite")


@pytest.mark.weight(3)
def test_values(layer_norm, rng):
    """Each vector along the last axis is centred, divided by its standard deviation, scaled and shifted."""
    for lead, D in (((4,), 5), ((3, 4), 6), ((3,), 3)):
        x, gamma, beta = _draw(rng, *lead, D=D)
        _value(layer_norm(x, gamma, beta), x, gamma, beta, f"the result for x of shape {list(x.shape)}")


@pytest.mark.weight(2)
def test_any_leading_axes(layer_norm, rng):
    """One vector alone, a batch of sequences and a batch with heads: always over the last axis only."""
    for lead in ((), (1,), (2, 3), (2, 3, 4), (2, 1, 3, 2)):
        x, gamma, beta = _draw(rng, *lead, D=7)
        _value(layer_norm(x, gamma, beta), x, gamma, beta, f"the result for x of shape {list(x.shape)}")


@pytest.mark.weight(2)
def test_eps(layer_norm, rng):
    """eps is added to the variance inside the root: none, a little, much."""
    for eps in (0.0, 1e-3, 0.5, 10.0):
        x, gamma, beta = _draw(rng, 3, 4)
        _value(layer_norm(x, gamma, beta, eps), x, gamma, beta, f"the result with eps = {eps}", eps)
        _value(layer_norm(x, gamma, beta, eps=eps), x, gamma, beta, f"the result with eps = {eps} by name", eps)


def test_default_eps(layer_norm, rng):
    """Where the entries are small, the default eps counts, and it is 1e-5."""
    x, gamma, beta = _draw(rng, 4)
    x = x * 3e-3
    others = {f"your default eps is {eps:g}": _by_hand(x, gamma, beta, eps) for eps in (1e-6, 1e-8, 1e-12, 1e-3)}
    expected = F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-5)
    same_or_because(layer_norm(x, gamma, beta), expected, "the result for small entries", {
        **_causes(x, gamma, beta), **others})


def test_constant_vector(layer_norm, rng):
    """A vector with equal entries gives beta, not NaN, and leaves its neighbours alone."""
    x, gamma, beta = _draw(rng, 3, 4)
    x[1, 2] = 4.0
    x[2, 0] = 0.0
    got = tensor(layer_norm(x, gamma, beta), "the result", x.shape, F64)
    check(got.isfinite().all(), "a constant vector gives a result that is not finite: eps keeps the root above 0")
    same(got[1, 2], beta, "the result for a constant vector")
    same(got[2, 0], beta, "the result for a vector of zeros")
    _value(got, x, gamma, beta, "the result")


def test_gradients_at_a_constant_vector(layer_norm, rng):
    """At a vector with equal entries the gradients are finite and right: nothing divides by a deviation of 0."""
    values, up = _draw(rng, 3, 4), torch.randn(3, 4, 5, generator=rng, dtype=F64)
    values[0][1, 2] = 4.0
    values[0][2, 0] = 0.0
    mine, theirs = ([v.clone().requires_grad_() for v in values] for _ in range(2))
    got = tensor(layer_norm(*mine), "the result", (3, 4, 5), F64)
    check(got.requires_grad, NO_GRADIENT)
    gradients = torch.autograd.grad(got, mine, up, allow_unused=True)
    expected = torch.autograd.grad(F.layer_norm(theirs[0], (5,), *theirs[1:]), theirs, up)
    for name, a, b in zip(("x", "gamma", "beta"), gradients, expected, strict=True):
        check(a is not None, f"no gradient reaches {name}")
        check(a.isfinite().all(), f"a constant vector gives {name} a gradient that is not finite: the root has slope "
              "infinity at 0, so take it once, of the variance plus eps")
        same(a, b, f"the gradient of {name} where a vector is constant", rtol=1e-6, atol=1e-6)


def test_scale_and_shift(layer_norm, rng):
    """Huge entries, tiny ones and a common offset: with eps = 0 the result stays what it was."""
    x, gamma, beta = _draw(rng, 4, 3)
    before = F.layer_norm(x, (5,), gamma, beta, 0.0)
    for told, moved in (("times a million", 1e6 * x), ("times a millionth", 1e-6 * x), ("plus 100", x + 100)):
        same(layer_norm(moved, gamma, beta, 0.0), before, f"the result for x {told}", rtol=1e-6, atol=1e-8)
    _value(layer_norm(1e6 * x, gamma, beta), 1e6 * x, gamma, beta, "the result for x times a million")
    same(layer_norm(-x, gamma, beta, 0.0), 2 * beta - before, "the result for -x", rtol=1e-6, atol=1e-8)


def test_large_offsets(layer_norm, rng):
    """Rows that lie far from 0, in float32 and in float64: the mean is taken away before anything is squared."""
    for dtype, offset, room in ((torch.float32, 1e3, 0.03), (F64, 1e6, 1e-6)):
        x, gamma, beta = _draw(rng, 5, 6, D=6, dtype=dtype)
        x = x + offset * (1 + torch.rand(5, 6, 1, generator=rng, dtype=dtype))
        exact = F.layer_norm(*(v.to(F64) if isinstance(v, torch.Tensor) else v for v in (x, (6,), gamma, beta)))
        told = f"the result for rows near {offset:g} in {str(dtype).removeprefix('torch.')} (the mean of the squares " \
               "less the square of the mean loses its digits there)"
        same(tensor(layer_norm(x, gamma, beta), told, x.shape, dtype), exact, told, rtol=room, atol=room, dtype=False)


def test_half_precision(layer_norm, rng):
    """bfloat16 and float16 in, the same out: results keep the input's dtype."""
    for dtype in (torch.bfloat16, torch.float16):
        x, gamma, beta = (v.to(dtype) for v in _draw(rng, 3, 4))
        got = tensor(layer_norm(x, gamma, beta), "the result", x.shape, dtype)
        check(got.isfinite().all(), f"the result in {str(dtype).removeprefix('torch.')} is not finite")


def test_views(layer_norm, in_box, rng):
    """An x that is a view with other strides, such as a transposed tensor, is worth its values like any other."""
    for lead in ((3, 4), (2, 3, 4), (4,)):
        x, gamma, beta = _draw(rng, *lead)
        got = in_box(call_with_views, layer_norm, x, gamma, beta)
        _value(got, x, gamma, beta, f"the result for a transposed view of shape {list(x.shape)}")


def test_rows_keep_apart(layer_norm, rng):
    """The result of a vector does not depend on the other vectors of the batch."""
    x, gamma, beta = _draw(rng, 3, 4)
    whole = tensor(layer_norm(x, gamma, beta), "the result", x.shape, F64)
    other = x.clone()
    other[0] += torch.randn(4, 5, generator=rng, dtype=F64)
    other[1, 2] *= 3
    moved = tensor(layer_norm(other, gamma, beta), "the result", x.shape, F64)
    same(moved[2], whole[2], "the result of a row of the batch, after a change in other rows")
    same(moved[1, :2], whole[1, :2], "the result of a position, after a change at another position")
    same(layer_norm(x[1:2, 2:3], gamma, beta), whole[1:2, 2:3], "the result of one vector as a batch of its own")
    _value(whole, x, gamma, beta, "the result")


@pytest.mark.weight(2)
def test_gradients(layer_norm, rng):
    """Gradients with respect to x, gamma and beta are right."""
    for lead, eps in (((3, 4), 1e-5), ((4,), 0.3)):
        values = _draw(rng, *lead)
        up = torch.randn(*lead, 5, generator=rng, dtype=F64)
        mine, theirs = ([v.clone().requires_grad_() for v in values] for _ in range(2))
        got = tensor(layer_norm(*mine, eps), "the result", (*lead, 5), F64)
        check(got.requires_grad, NO_GRADIENT)
        gradients = torch.autograd.grad(got, mine, up, allow_unused=True)
        expected = torch.autograd.grad(F.layer_norm(theirs[0], (5,), *theirs[1:], eps), theirs, up)
        for name, a, b in zip(("x", "gamma", "beta"), gradients, expected, strict=True):
            check(a is not None, f"no gradient reaches {name}")
            same(a, b, f"the gradient of {name} (mean and variance depend on x too)" if name == "x"
                 else f"the gradient of {name}")


def test_float32(layer_norm, rng):
    """float32 inputs give the same values, to the precision of float32."""
    x, gamma, beta = _draw(rng, 3, 4, D=6, dtype=torch.float32)
    _value(layer_norm(x, gamma, beta), x, gamma, beta, "the result", rtol=1e-3, atol=1e-5)


@pytest.mark.weight(0.5)
def test_device(layer_norm, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, layer_norm, call=_draw(rng, 3, 4))
