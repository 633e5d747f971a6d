"""Hidden checks of q3_2: layer_norm_backward."""

import pytest
import torch

from autograder.judge.faults import StudentRaised
from autograder.suites.by_formula import exact, watched
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.instruments.calls import call_with_views
from course_utils.instruments.no_autograd import without_autograd

F64 = torch.float64
NAMES = ("dx", "dgamma", "dbeta")


def _draw(rng, *lead, D=5, dtype=F64):
    """dy and x [..., D], every row of x with a mean and a scale of its own, and gamma of both signs."""
    dy, x = (torch.randn(*lead, D, generator=rng, dtype=dtype) for _ in range(2))
    x = (0.5 + torch.rand(*lead, 1, generator=rng, dtype=dtype)) * x + torch.randn(*lead, 1, generator=rng, dtype=dtype)
    return dy, x, torch.randn(D, generator=rng, dtype=dtype)


def _run(got, x, gamma):
    """(dx, dgamma, dbeta) after a look at their form."""
    check(isinstance(got, (tuple, list)) and len(got) == 3, "layer_norm_backward returns (dx, dgamma, dbeta)")
    for name, part, shape in zip(NAMES, got, (x.shape, gamma.shape, gamma.shape), strict=True):
        tensor(part, f"{name} for x of shape {list(x.shape)}", shape, x.dtype)
        check(not part.isnan().any(), f"{name} has NaN")
    return tuple(got)


def _truth(dy, x, gamma, eps=1e-5):
    """The gradients by autograd, through a layer norm written with plain sums."""
    x, gamma = x.clone().requires_grad_(), gamma.clone().requires_grad_()
    beta = torch.zeros_like(gamma).requires_grad_()
    D = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / D
    y = gamma * centred / ((centred * centred).sum(-1, keepdim=True) / D + eps) ** 0.5 + beta
    return torch.autograd.grad(y, (x, gamma, beta), dy)


def _causes(dy, x, gamma, eps):
    """For each of dx, dgamma and dbeta: wrong values, with what leads to them."""
    D = x.shape[-1]
    mean = x.mean(-1, keepdim=True)
    root = (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()
    z, dz = (x - mean) / root, dy * gamma

    def average(v):
        return v.mean(-1, keepdim=True)

    right = (dz - average(dz) - z * average(dz * z)) / root
    loose = (x.var(-1, keepdim=True) + eps).sqrt()
    z_loose = (x - mean) / loose
    dx = {
        "mean and variance are held fixed, and both depend on x": dz / root,
        "the variance is held fixed, and it depends on x": (dz - average(dz)) / root,
        "the mean is held fixed, and it depends on x": (dz - z * average(dz * z)) / root,
        "gamma is missing": (dy - average(dy) - z * average(dy * z)) / root,
        "gamma multiplies at the end; it belongs to dy before the averages are taken":
            gamma * (dy - average(dy) - z * average(dy * z)) / root,
        "the division by the root is missing": right * root,
        "you multiply by the root in place of dividing": right * root * root,
        "you divide by the variance, not by its root": right / root,
        "sums stand where averages belong (divide by D)": (dz - D * average(dz) - z * D * average(dz * z)) / root,
        "the variance is the unbiased one (D - 1)":
            (dz - average(dz) - z_loose * average(dz * z_loose)) / loose,
        "the sign of the last term is turned": (dz - average(dz) + z * average(dz * z)) / root,
        "the uncentred x stands in place of the normalised one": (dz - average(dz) - x * average(dz * x)) / root,
    }
    leading = tuple(range(x.ndim - 1))
    dgamma = {
        "dy is multiplied with x, and the normalised x belongs there": (dy * x).sum(leading),
        "dy is multiplied with the centred x; divide it by the root": (dy * (x - mean)).sum(leading),
        "you average over the leading axes, and the sum is meant": (dy * z).sum(leading) / (x.numel() // D),
        "gamma itself does not enter its own gradient": (dz * z).sum(leading),
        "dgamma and dbeta have changed places": dy.sum(leading),
        "the variance is the unbiased one (D - 1)": (dy * z_loose).sum(leading),
    }
    dbeta = {
        "you average over the leading axes, and the sum is meant": dy.sum(leading) / (x.numel() // D),
        "gamma does not enter the gradient of beta": dz.sum(leading),
        "dgamma and dbeta have changed places": (dy * z).sum(leading),
    }
    return dx, dgamma, dbeta


def _compare(got, dy, x, gamma, eps=1e-5, told="", only=NAMES, **how):
    causes = _causes(dy, x, gamma, eps)
    for name, mine, right, cause in zip(NAMES, _run(got, x, gamma), _truth(dy, x, gamma, eps), causes, strict=True):
        if name in only:
            same_or_because(mine, right, f"{name}{told}", cause, **how)


def test_shapes_and_dtypes(layer_norm_backward, rng):
    """dx has the shape of x; dgamma and dbeta are [D] for any number of leading axes; dtypes are those of x."""
    for lead in ((4,), (2, 3), (2, 3, 4), ()):
        for dtype in (torch.float32, F64):
            dy, x, gamma = _draw(rng, *lead, dtype=dtype)
            for name, part in zip(NAMES, _run(layer_norm_backward(dy, x, gamma), x, gamma), strict=True):
                check(part.isfinite().all(), f"{name} is not finite")


@pytest.mark.weight(3)
def test_dx(layer_norm_backward, rng):
    """dx counts all three ways from x to y: directly, through the mean and through the variance."""
    for lead, D in (((4,), 5), ((3, 4), 6), ((6,), 3)):
        dy, x, gamma = _draw(rng, *lead, D=D)
        _compare(layer_norm_backward(dy, x, gamma), dy, x, gamma, only=("dx",), told=f" for x of shape {list(x.shape)}")


@pytest.mark.weight(2)
def test_dgamma_and_dbeta(layer_norm_backward, rng):
    """dgamma and dbeta sum over every position of the batch."""
    for lead, D in (((4,), 5), ((3, 4), 6), ((3,), 7)):
        dy, x, gamma = _draw(rng, *lead, D=D)
        _compare(layer_norm_backward(dy, x, gamma), dy, x, gamma, only=("dgamma", "dbeta"),
                 told=f" for x of shape {list(x.shape)}")


@pytest.mark.weight(2)
def test_any_leading_axes(layer_norm_backward, rng):
    """One vector alone, a batch of sequences, a batch with heads: all three gradients are right."""
    for lead in ((), (1,), (2, 3, 4), (2, 1, 3, 2)):
        dy, x, gamma = _draw(rng, *lead)
        _compare(layer_norm_backward(dy, x, gamma), dy, x, gamma, told=f" for x of shape {list(x.shape)}")


@pytest.mark.weight(2)
def test_eps(layer_norm_backward, rng):
    """eps counts as in the forward pass: none, the default, much, and where the entries are small."""
    for eps in (0.0, 0.02, 0.8, 10.0):
        dy, x, gamma = _draw(rng, 3, 4)
        _compare(layer_norm_backward(dy, x, gamma, eps), dy, x, gamma, eps, told=f" with eps = {eps}")
    dy, x, gamma = _draw(rng, 3, 4)
    small = 3e-3 * x
    _compare(layer_norm_backward(dy, small, gamma), dy, small, gamma, told=" for small entries and the default eps")
    _compare(layer_norm_backward(dy, small, gamma, eps=1e-3), dy, small, gamma, 1e-3, told=" with eps by name")


def test_constant_row(layer_norm_backward, rng):
    """A row of equal entries has variance 0: dx is gamma * dy, centred, over the root of eps, and never NaN."""
    dy, x, gamma = _draw(rng, 3, 4)
    x[1, 2] = 4.0
    x[2, 0] = 0.0
    dx, _, _ = _run(layer_norm_backward(dy, x, gamma), x, gamma)
    along = dy[1, 2] * gamma
    same(dx[1, 2], (along - along.mean()) / 1e-5**0.5, "dx for a constant row", rtol=1e-6, atol=1e-6)
    _compare(layer_norm_backward(dy, x, gamma), dy, x, gamma, rtol=1e-6, atol=1e-6)


def test_zero_gains(layer_norm_backward, rng):
    """A gain of 0 is a gain like any other: its own gradient does not vanish, and nothing divides by it."""
    for zeros in ([1], [0, 3], [0, 1, 2, 3, 4]):
        dy, x, gamma = _draw(rng, 3, 4)
        gamma[zeros] = 0
        _compare(layer_norm_backward(dy, x, gamma), dy, x, gamma, told=f" where {len(zeros)} of the 5 gains are 0")


def test_scales(layer_norm_backward, rng):
    """Huge and tiny entries: dx goes with one over their size, dgamma and dbeta do not move."""
    for scale in (1e6, 1e3, 1e-4):
        dy, x, gamma = _draw(rng, 4, 3)
        x = scale * x
        for eps in (0.0, 1e-5):
            got = _run(layer_norm_backward(dy, x, gamma, eps), x, gamma)
            _compare((got[0] * scale, *got[1:]), *(dy, x / scale, gamma), eps / scale**2, rtol=1e-6, atol=1e-8,
                     told=f" for entries near {scale:g} with eps = {eps:g} (dx times that size)")


def test_large_offsets(layer_norm_backward, rng):
    """Rows that lie far from 0 in float32: the mean is taken away before anything is squared."""
    dy, x, gamma = _draw(rng, 5, 4, D=6, dtype=torch.float32)
    x = x + 1e3 * (1 + torch.rand(5, 4, 1, generator=rng))
    exact = _truth(*(v.to(F64) for v in (dy, x, gamma)))
    for name, got, right in zip(NAMES, _run(layer_norm_backward(dy, x, gamma), x, gamma), exact, strict=True):
        room = 0.03 * max(1.0, right.abs().max().item())
        same(got, right, f"{name} for rows near 1000 in float32 (the mean of the squares less the square of the mean "
             "loses its digits there)", rtol=0, atol=room, dtype=False)


def test_views(layer_norm_backward, in_box, rng):
    """Inputs that are views with other strides, such as transposed tensors, are worth their values like any other."""
    for lead in ((3, 4), (2, 3, 4), (4,)):
        dy, x, gamma = _draw(rng, *lead)
        got = in_box(call_with_views, layer_norm_backward, dy, x, gamma)
        _compare(got, dy, x, gamma, told=f" for transposed views of shape {list(x.shape)}")


def test_what_changes_nothing(layer_norm_backward, rng):
    """A shift of a row never counts, nor does its scale when eps = 0: dx is at right angles to both."""
    dy, x, gamma = _draw(rng, 3, 4)
    dx, _, _ = _run(layer_norm_backward(dy, x, gamma, 0.0), x, gamma)
    nothing = torch.zeros(3, 4, dtype=F64)
    check(dx.abs().max() > 1e-6, "dx is zero")
    same(dx.sum(-1), nothing, "the sum of each row of dx (a shift of x changes nothing)", atol=1e-9)
    centred = x - x.mean(-1, keepdim=True)
    same((dx * centred).sum(-1), nothing, "dx times the centred x, row by row (with eps = 0 its size changes nothing)",
         atol=1e-9)
    _compare((dx, *_truth(dy, x, gamma, 0.0)[1:]), dy, x, gamma, 0.0)


@pytest.mark.weight(2)
def test_against_differences(layer_norm_backward, rng):
    """Small steps in x, gamma and beta change the layer norm by what your gradients say."""
    dy, x, gamma = _draw(rng, 3, 4)
    dx, dgamma, dbeta = _run(layer_norm_backward(dy, x, gamma, 0.1), x, gamma)
    directions = [torch.randn(v.shape, generator=rng, dtype=F64) for v in (x, gamma, gamma)]

    def value(step, which):
        moved = [v + (step * d if i == which else 0) for i, (v, d) in enumerate(zip((x, gamma, 0 * gamma), directions,
                                                                                     strict=True))]
        return (dy * torch.nn.functional.layer_norm(moved[0], (5,), moved[1], moved[2], 0.1)).sum().item()

    for i, (name, gradient) in enumerate(zip(NAMES, (dx, dgamma, dbeta), strict=True)):
        slope = (value(1e-5, i) - value(-1e-5, i)) / 2e-5
        told = (gradient * directions[i]).sum().item()
        check(abs(slope - told) <= 1e-6 * (1 + abs(slope)), f"along a random direction the layer norm changes at the "
              f"rate {slope:.6g}, but your {name} says {told:.6g}")


@pytest.mark.without_autograd
@pytest.mark.weight(6)  # it is what the question asks for: with the next case and a public check, a third of the points
def test_worked_by_hand(layer_norm_backward, in_box, rng):
    """The gradients are worked out by hand: they come out right with autograd switched off."""
    dy, x, gamma = _draw(rng, 3, 4)
    _run(layer_norm_backward(dy, x, gamma), x, gamma)
    try:
        got = in_box(without_autograd, layer_norm_backward, dy, x, gamma)
    except StudentRaised as error:
        raise Wrong(f"with autograd switched off your function fails ({error.type_name}): write the gradients out as "
                    "formulas in dy, x and gamma") from None
    _compare(got, dy, x, gamma, told=" with autograd switched off")


@pytest.mark.weight(6)
def test_all_digits(layer_norm_backward, watch, rng):
    """dx is a formula and no difference: over 600 entries in float64 it is right to the last digit."""
    dy, x, gamma = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((100, 6), (100, 6), (6,)))
    seen = watched(watch, layer_norm_backward, dy, x, gamma, 0.3, mistake="finite-differences")
    dx, right = _run(seen.value, x, gamma)[0], _truth(dy, x, gamma, 0.3)[0]
    size = (gamma * dy).square().mean(-1, keepdim=True).sqrt() / (x.var(-1, correction=0, keepdim=True) + 0.3).sqrt()
    exact(dx, right, size, seen, "dx in float64", "finite-differences")


def test_float32(layer_norm_backward, rng):
    """float32 inputs give the same gradients, to the precision of float32."""
    dy, x, gamma = _draw(rng, 3, 4, dtype=torch.float32)
    _compare(layer_norm_backward(dy, x, gamma), dy, x, gamma, rtol=1e-3, atol=1e-4)


@pytest.mark.weight(0.5)
def test_device(layer_norm_backward, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, layer_norm_backward, call=_draw(rng, 3, 4))
