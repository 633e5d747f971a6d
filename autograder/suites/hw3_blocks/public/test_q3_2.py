"""Public checks of q3_2: layer_norm_backward."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.instruments.no_autograd import without_autograd

F64 = torch.float64


def _run(layer_norm_backward, dy, x, gamma, *eps):
    got = layer_norm_backward(dy, x, gamma, *eps)
    check(isinstance(got, (tuple, list)) and len(got) == 3, "layer_norm_backward returns (dx, dgamma, dbeta)")
    dx, dgamma, dbeta = got
    tensor(dx, "dx", x.shape, x.dtype)
    tensor(dgamma, "dgamma (one entry per feature, summed over all leading axes)", gamma.shape, x.dtype)
    tensor(dbeta, "dbeta (one entry per feature, summed over all leading axes)", gamma.shape, x.dtype)
    return dx, dgamma, dbeta


def test_worked_numbers(layer_norm_backward):
    """x = (1, 2, 3) and dy = (1, 0, 0) at eps = 1/3: the root is 1, and dx = (1/3, -1/3, 0)."""
    # keeps: formula
    x, dy = torch.tensor([[1.0, 2.0, 3.0]], dtype=F64), torch.tensor([[1.0, 0.0, 0.0]], dtype=F64)
    dx, dgamma, dbeta = _run(layer_norm_backward, dy, x, torch.ones(3, dtype=F64), 1 / 3)
    through_mean = torch.tensor([[2 / 3, -1 / 3, -1 / 3]], dtype=F64)
    check(not torch.allclose(dx, dy), "dx leaves out that the mean and the variance depend on x")
    check(not torch.allclose(dx, through_mean), "dx leaves out that the variance depends on x")
    same(dx, torch.tensor([[1 / 3, -1 / 3, 0.0]], dtype=F64), "dx")
    same(dgamma, torch.tensor([-1.0, 0.0, 0.0], dtype=F64), "dgamma")
    same(dbeta, torch.tensor([1.0, 0.0, 0.0], dtype=F64), "dbeta")


def test_sums_over_leading_axes(layer_norm_backward, rng):
    """For x [2, 3, 4], dgamma and dbeta are [4]: every position adds to them."""
    # keeps: sums, shapes
    x, dy = (torch.randn(2, 3, 4, generator=rng, dtype=F64) for _ in range(2))
    gamma = torch.randn(4, generator=rng, dtype=F64)
    _, dgamma, dbeta = _run(layer_norm_backward, dy, x, gamma)
    same(dbeta, dy.sum((0, 1)), "dbeta")
    parts = [_run(layer_norm_backward, dy[b, n], x[b, n], gamma)[1] for b in range(2) for n in range(3)]
    same(dgamma, torch.stack(parts).sum(0), "dgamma, against the sum over the positions one by one")


def test_no_gradient_along_a_shift(layer_norm_backward, rng):
    """A constant added to a row changes nothing, so every row of dx sums to 0."""
    # keeps: formula
    x, dy = (torch.randn(5, 4, generator=rng, dtype=F64) for _ in range(2))
    dx, _, _ = _run(layer_norm_backward, dy, x, torch.randn(4, generator=rng, dtype=F64))
    check(dx.abs().max() > 1e-6, "dx is zero")
    same(dx.sum(-1), torch.zeros(5, dtype=F64), "the sum of each row of dx", rtol=0, atol=1e-9)


def test_by_hand(layer_norm_backward, rng):
    """The gradients are formulas in dy, x and gamma: they come out with autograd switched off, to the last digit."""
    # keeps: by-hand
    x, dy = (torch.randn(3, 4, generator=rng, dtype=F64) for _ in range(2))
    gamma = torch.randn(4, generator=rng, dtype=F64)
    before = _run(layer_norm_backward, dy, x, gamma)
    try:
        after = run_beside(without_autograd, layer_norm_backward, dy, x, gamma)
    except Exception as error:
        raise Wrong("with autograd switched off your function fails: write the gradients out as formulas") from error
    for name, a, b in zip(("dx", "dgamma", "dbeta"), after, before, strict=True):
        same(a, b, f"{name} with autograd switched off")
    check(not _loses_digits(layer_norm_backward, rng), "dx has lost digits: a formula in float64 has fifteen, and "
          "differences have fewer, however they are taken", "finite-differences")


def test_against_autograd(layer_norm_backward, rng):
    """The three gradients are those of torch's layer norm, with gains of either sign and one of 0."""
    # keeps: formula, shapes
    for lead in ((), (3,), (2, 3)):
        x, dy = (torch.randn(*lead, 5, generator=rng, dtype=F64) for _ in range(2))
        gamma = torch.tensor([1.5, -0.4, 0.0, 2.0, -1.0], dtype=F64)
        leaves = [value.clone().requires_grad_() for value in (x, gamma, torch.zeros(5, dtype=F64))]
        torch.nn.functional.layer_norm(leaves[0], (5,), *leaves[1:]).backward(dy)
        got = _run(layer_norm_backward, dy, x, gamma)
        for name, a, leaf in zip(("dx", "dgamma", "dbeta"), got, leaves, strict=True):
            same(a, leaf.grad, f"{name} for x of shape {[*lead, 5]}")


def _loses_digits(layer_norm_backward, rng):
    """Whether dx, in units of its largest entry, is nearly right, but not to 1e-14; a wrong formula is neither."""
    x, dy = (torch.randn(40, 6, generator=rng, dtype=F64) for _ in range(2))
    gamma, leaf = torch.randn(6, generator=rng, dtype=F64), x.clone().requires_grad_()
    torch.nn.functional.layer_norm(leaf, (6,), gamma, eps=0.3).backward(dy)
    error = (layer_norm_backward(dy, x, gamma, 0.3)[0] - leaf.grad).abs().max() / leaf.grad.abs().max()
    return bool(1e-14 <= error < 1e-3)


def test_far_from_zero(layer_norm_backward, rng):
    """Tokens near 1000 in float32, and large and small ones in float64, keep their digits: formulas, no differences."""
    # keeps: by-hand
    x, dy, gamma = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((3, 6), (3, 6), (6,)))
    for told, tokens, dtype, rtol in (("near 1000, in float32,", x + 1000, torch.float32, 1e-2),
                                      ("of size 100,000", 1e5 * x, F64, 1e-6), ("of size 0.001", 1e-3 * x, F64, 1e-6)):
        tokens = tokens.to(dtype)  # the rounded tokens are the ones to differentiate at
        leaf = tokens.double().requires_grad_()
        torch.nn.functional.layer_norm(leaf, (6,), gamma).backward(dy)
        dx, _, _ = _run(layer_norm_backward, dy.to(dtype), tokens, gamma.to(dtype))
        size = leaf.grad.abs().max().item()
        same(dx.double() / size, leaf.grad / size, f"dx for tokens {told} over its largest entry", rtol=0, atol=rtol)


def _inputs(*lead, D=5):
    g = torch.Generator().manual_seed(32)
    return [torch.randn(*shape, generator=g, dtype=F64) for shape in ((*lead, D), (*lead, D), (D,))]


def _error(layer_norm_backward, size):
    """How far dx is from autograd's for tokens of this size, over its largest entry."""
    dy, x, gamma = _inputs(4)
    leaf = (size * x).requires_grad_()
    torch.nn.functional.layer_norm(leaf, (5,), gamma).backward(dy)
    dx = layer_norm_backward(dy, size * x, gamma)[0].double()
    return float((dx - leaf.grad).abs().max() / leaf.grad.abs().max()) if dx.shape == leaf.shape else torch.inf


def probe_digits(layer_norm_backward):
    plain, others = _error(layer_norm_backward, 1.0), [_error(layer_norm_backward, size) for size in (1e5, 1e-3)]
    if plain < 1e-11 and max(others) < 1e-9:
        return "all"
    return "fewer for long and short tokens" if plain < 1e-4 and max(others) > 30 * plain else "few"


def probe_plain(layer_norm_backward):
    return layer_norm_backward(*_inputs(4))


def probe_dx(layer_norm_backward):
    return layer_norm_backward(*_inputs(4))[0]


def probe_dgamma(layer_norm_backward):
    return layer_norm_backward(*_inputs(4))[1]


def probe_dbeta(layer_norm_backward):
    return layer_norm_backward(*_inputs(4))[2]


def probe_sequence_dx(layer_norm_backward):
    return layer_norm_backward(*_inputs(2, 3))[0]


def probe_sequence_dgamma(layer_norm_backward):
    return layer_norm_backward(*_inputs(2, 3))[1]


def probe_sequence_dbeta(layer_norm_backward):
    return layer_norm_backward(*_inputs(2, 3))[2]


def probe_vector(layer_norm_backward):
    return layer_norm_backward(*_inputs())


def probe_no_eps(layer_norm_backward):
    return layer_norm_backward(*_inputs(4), eps=0.0)


def probe_large_eps(layer_norm_backward):
    return layer_norm_backward(*_inputs(4), 0.7)


def probe_small_entries(layer_norm_backward):
    dy, x, gamma = _inputs(4)
    return layer_norm_backward(dy, x / 1000, gamma)


def probe_constant_row(layer_norm_backward):
    dy, x, gamma = _inputs(4)
    x[1] = 3.0
    return layer_norm_backward(dy, x, gamma)


def probe_gamma_of_ones(layer_norm_backward):
    dy, x, gamma = _inputs(4)
    return layer_norm_backward(dy, x, torch.ones_like(gamma))


def probe_dtype(layer_norm_backward):
    return [str(part.dtype) for part in layer_norm_backward(*(v.float() for v in _inputs(4)))]


def probe_without_autograd(layer_norm_backward):
    layer_norm_backward(*_inputs(4))
    try:
        run_beside(without_autograd, layer_norm_backward, *_inputs(4))
    except Exception:
        return False
    return True


def probe_zero_gain(layer_norm_backward):
    dy, x, gamma = _inputs(4)
    gamma[2] = 0.0
    return layer_norm_backward(dy, x, gamma)


def probe_lost_digits(layer_norm_backward):
    return _loses_digits(layer_norm_backward, torch.Generator().manual_seed(33))
