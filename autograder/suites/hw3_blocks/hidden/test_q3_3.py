"""Hidden checks of q3_3: batch_norm and depends_on."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views

F64 = torch.float64
PLACES = {"same", "same row", "same column", "elsewhere"}
KINDS = pytest.mark.parametrize("kind", ["layer", "batch"])


def _draw(rng, B=6, D=4, dtype=F64):
    """x [B, D], every feature with a mean and a scale of its own; gamma of both signs; beta."""
    x = torch.randn(B, D, generator=rng, dtype=dtype)
    x = (0.5 + torch.rand(D, generator=rng, dtype=dtype)) * x + torch.randn(D, generator=rng, dtype=dtype)
    return x, torch.randn(D, generator=rng, dtype=dtype), torch.randn(D, generator=rng, dtype=dtype)


def _by_hand(x, gamma, beta, eps=1e-5, dim=0, unbiased=False, outside=False):
    below = x.var(dim, keepdim=True, unbiased=unbiased)
    return gamma * (x - x.mean(dim, keepdim=True)) / (below.sqrt() + eps if outside else (below + eps).sqrt()) + beta


def _causes(x, gamma, beta, eps):
    return {
        "mean and variance run over the features of a row; that is layer norm": _by_hand(x, gamma, beta, eps, 1),
        "mean and variance run over all entries": _by_hand(x, gamma, beta, eps, (0, 1)),
        "you divide by B - 1, and the biased variance divides by B": _by_hand(x, gamma, beta, eps, unbiased=True),
        "eps is added to the standard deviation; it belongs inside the root": _by_hand(x, gamma, beta, eps,
                                                                                        outside=True),
        "these are fixed statistics (mean 0, variance 1), as in evaluation mode; in training mode they are those of "
        "the batch": gamma * x / (1 + eps) ** 0.5 + beta,
        "gamma and beta have no effect": _by_hand(x, 1.0, 0.0, eps),
        "beta is missing": _by_hand(x, gamma, 0.0, eps),
        "gamma is missing": _by_hand(x, 1.0, beta, eps),
        "the mean is not subtracted": gamma * x / (x.var(0, unbiased=False) + eps).sqrt() + beta,
        "you divide by the variance, and its root is meant":
            gamma * (x - x.mean(0)) / (x.var(0, unbiased=False) + eps) + beta,
    }


def _value(got, x, gamma, beta, what, eps=1e-5, **how):
    expected = F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)
    same_or_because(tensor(got, what, x.shape, x.dtype), expected, what, _causes(x, gamma, beta, eps), **how)


def _moved_places(norm, rng, B=3, D=4):
    """The places of x that move an output entry of norm(x), from a Jacobian by differences at a random point."""
    x, gamma, beta = _draw(rng, B, D)
    gamma = gamma.sign() * (gamma.abs() + 0.3)
    places = set()
    for i in range(B):
        for j in range(D):
            step = torch.zeros_like(x)
            step[i, j] = 0.01
            moved = norm(x + step, gamma, beta) - norm(x - step, gamma, beta)
            for a, b in (tensor(moved, "the norm", x.shape).abs() > 1e-6).nonzero().tolist():
                row, column = a == i, b == j
                places.add("same" if row and column else "same row" if row else "same column" if column
                           else "elsewhere")
    return places


def _told(depends_on, kind):
    got = depends_on(kind)
    check(isinstance(got, (set, frozenset)), f"depends_on({kind!r}) is a {type(got).__name__}, expected a set")
    check(set(got) <= PLACES, f"depends_on({kind!r}) holds {sorted(map(str, set(got) - PLACES))}; the words are "
          f"{sorted(PLACES)}")
    return set(got)


@pytest.mark.weight(3)
def test_values(batch_norm, rng):
    """Every feature is centred and divided by its standard deviation over the batch, then scaled and shifted."""
    for B, D in ((6, 4), (3, 7), (5, 5), (2, 3)):
        x, gamma, beta = _draw(rng, B, D)
        _value(batch_norm(x, gamma, beta), x, gamma, beta, f"the result for x of shape {[B, D]}")


def test_eps(batch_norm, rng):
    """eps stands inside the root, beside the variance: next to none, much, and the default where entries are small."""
    for eps in (1e-12, 1e-3, 0.5, 10.0):
        x, gamma, beta = _draw(rng)
        _value(batch_norm(x, gamma, beta, eps), x, gamma, beta, f"the result with eps = {eps}", eps)
    small = 3e-3 * x
    _value(batch_norm(small, gamma, beta), small, gamma, beta, "the result for small entries and the default eps")


def test_training_mode(batch_norm, rng):
    """The statistics are those of this batch alone: earlier calls leave no trace, other rows do."""
    x, gamma, beta = _draw(rng)
    before = tensor(batch_norm(x, gamma, beta), "the result", x.shape, F64)
    batch_norm(100 * x + 7, gamma, beta)
    same(batch_norm(x, gamma, beta), before, "the result of the same batch, after another one")
    other = x.clone()
    other[0] += 5
    moved = tensor(batch_norm(other, gamma, beta), "the result", x.shape, F64)
    check((moved[1:] - before[1:]).abs().amax(0).min() > 1e-3, "another row of the batch changes nothing: in training "
          "mode mean and variance come from the batch")
    _value(before, x, gamma, beta, "the result")


def test_constant_feature(batch_norm, rng):
    """A feature that is the same in the whole batch gives beta, not NaN."""
    x, gamma, beta = _draw(rng)
    x[:, 2] = 4.0
    got = tensor(batch_norm(x, gamma, beta), "the result", x.shape, F64)
    check(got.isfinite().all(), "a constant feature gives a result that is not finite: eps keeps the root above 0")
    same(got[:, 2], beta[2].expand(6), "the result for a constant feature")
    _value(got, x, gamma, beta, "the result")


def test_batch_of_one(batch_norm, rng):
    """A batch of one has nothing to compare with: mean x, variance 0, and beta comes out, never NaN or an error."""
    for D in (4, 1):
        x, gamma, beta = _draw(rng, 1, D)
        got = tensor(batch_norm(x, gamma, beta), "the result for a batch of one", (1, D), F64)
        check(got.isfinite().all(), "a batch of one gives a result that is not finite: is the variance divided by "
              "B - 1?")
        same(got, beta[None], "the result for a batch of one, against beta")


@pytest.mark.parametrize("where", ["constant feature", "batch of one"])
def test_gradients_without_spread(batch_norm, rng, where):
    """Where a feature does not vary in the batch the gradients are finite and right, for a batch of one too."""
    values = _draw(rng, 1 if where == "batch of one" else 6)
    if where == "constant feature":
        values[0][:, 2] = 4.0
    up = torch.randn(values[0].shape, generator=rng, dtype=F64)
    mine, theirs = ([v.clone().requires_grad_() for v in values] for _ in range(2))
    got = tensor(batch_norm(*mine), "the result", values[0].shape, F64)
    check(got.requires_grad, "no gradient flows from the result to the inputs: it is cut off from them")
    gradients = torch.autograd.grad(got, mine, up, allow_unused=True)
    expected = torch.autograd.grad(_by_hand(*theirs), theirs, up)
    for name, a, b in zip(("x", "gamma", "beta"), gradients, expected, strict=True):
        check(a is not None or not b.any(), f"no gradient reaches {name}")
        a = torch.zeros_like(b) if a is None else a
        check(a.isfinite().all(), f"a {where} gives {name} a gradient that is not finite: the root has slope infinity "
              "at 0, so take it once, of the variance plus eps")
        same(a, b, f"the gradient of {name} for a {where}", rtol=1e-6, atol=1e-6)


def test_large_offsets(batch_norm, rng):
    """Features that lie far from 0 in float32: the mean is taken away before anything is squared."""
    x, gamma, beta = _draw(rng, 8, 5, dtype=torch.float32)
    x = x + 1e3 * (1 + torch.rand(5, generator=rng))
    exact = _by_hand(*(v.to(F64) for v in (x, gamma, beta)))
    got = tensor(batch_norm(x, gamma, beta), "the result", x.shape, torch.float32)
    same(got, exact, "the result for features near 1000 in float32 (the mean of the squares less the square of the "
         "mean loses its digits there)", rtol=0.03, atol=0.03, dtype=False)


def test_views(batch_norm, in_box, rng):
    """An x that is a view with other strides, such as a transposed tensor, is worth its values like any other."""
    x, gamma, beta = _draw(rng)
    _value(in_box(call_with_views, batch_norm, x, gamma, beta), x, gamma, beta, "the result for a transposed view")


def test_gradients(batch_norm, rng):
    """Gradients with respect to x, gamma and beta are right: mean and variance depend on x too."""
    values, up = _draw(rng), torch.randn(6, 4, generator=rng, dtype=F64)
    mine, theirs = ([v.clone().requires_grad_() for v in values] for _ in range(2))
    got = tensor(batch_norm(*mine, 0.1), "the result", (6, 4), F64)
    check(got.requires_grad, "no gradient flows from the result to the inputs: it is cut off from them")
    gradients = torch.autograd.grad(got, mine, up, allow_unused=True)
    expected = torch.autograd.grad(F.batch_norm(theirs[0], None, None, *theirs[1:], training=True, eps=0.1), theirs, up)
    for name, a, b in zip(("x", "gamma", "beta"), gradients, expected, strict=True):
        check(a is not None, f"no gradient reaches {name}")
        same(a, b, f"the gradient of {name}")


def test_float32(batch_norm, rng):
    """float32 inputs give float32 results, to the precision of float32."""
    x, gamma, beta = _draw(rng, dtype=torch.float32)
    _value(batch_norm(x, gamma, beta), x, gamma, beta, "the result", rtol=1e-3, atol=1e-5)


@KINDS
@pytest.mark.weight(2)
def test_dependencies(depends_on, rng, kind):
    """depends_on names the places that really move an output entry, and no others."""
    def norm(x, gamma, beta):
        if kind == "layer":
            return F.layer_norm(x, x.shape[1:], gamma, beta)
        return F.batch_norm(x, None, None, gamma, beta, training=True)

    told, true = _told(depends_on, kind), _moved_places(norm, rng)
    swapped = {"layer": {"same", "same column"}, "batch": {"same", "same row"}}[kind]
    check(told != swapped, f"depends_on({kind!r}) is {sorted(told)}: rows and columns have changed places (a row is "
          "one example, a column one feature)")
    check(told != {"same"}, f"depends_on({kind!r}) is only 'same': mean and variance bring other entries in")
    missing, extra = sorted(true - told), sorted(told - true)
    check(not missing, f"depends_on({kind!r}) leaves out {missing}: moving such an entry moves the output")
    check(not extra, f"depends_on({kind!r}) has {extra}: moving such an entry leaves the output as it is")


@KINDS
def test_dependencies_of_your_own(depends_on, layer_norm, batch_norm, rng, kind):
    """depends_on agrees with the Jacobian of your own norm, at random points."""
    told, own = _told(depends_on, kind), layer_norm if kind == "layer" else batch_norm
    for B, D in ((3, 4), (5, 3)):
        found = _moved_places(own, rng, B, D)
        check(found == told, f"depends_on({kind!r}) is {sorted(told)}, but in your {kind}_norm an output entry moves "
              f"with {sorted(found)}")


@pytest.mark.weight(0.5)
def test_device(batch_norm, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, batch_norm, call=_draw(rng))
