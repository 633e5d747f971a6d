"""Hidden checks of q1_10: key_jacobian and elongated_limit."""

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, same, tensor

F64 = torch.float64


def _draw(rng, S=6, D=4, Dv=3, dtype=F64):
    return [torch.randn(*shape, generator=rng, dtype=dtype) for shape in ((D,), (S, D), (S, Dv))]


def _output(q, K, V, beta):
    return torch.softmax(beta * (K @ q), -1) @ V


def _true_jacobian(q, K, V, j, beta):
    def output(key):
        return _output(q, torch.cat([K[:j], key[None], K[j + 1 :]]), V, beta)

    return torch.autograd.functional.jacobian(output, K[j])


def _stretched(q, K, V, j, beta):
    """The output when key j is so long that nothing changes any more."""
    return _output(q, torch.cat([K[:j], 1e9 * K[j : j + 1], K[j + 1 :]]), V, beta)


def _with_sign(rng, j, sign):
    """Inputs with q . k_j of the given sign, exactly 0 for sign 0, and all other keys at random.

    For sign 0 no entry is non-zero in both vectors: the product is 0 in whatever order and scale it is summed.
    """
    q, K, V = _draw(rng)
    q[1:3] = 0.0
    K[j, 0] = K[j, 3] = 0.0
    K[j] += sign * q / (q @ q) * (0.5 + torch.rand(1, generator=rng, dtype=F64).item())
    return q, K, V


def test_shapes_and_dtypes(key_jacobian, elongated_limit, rng):
    """The Jacobian is [Dv, D] and the limit [Dv], in the inputs' dtype."""
    for dtype in (torch.float32, F64):
        q, K, V = _draw(rng, dtype=dtype)
        J = tensor(key_jacobian(q, K, V, 2, 0.7), "the Jacobian", (3, 4), dtype)
        same(J, _true_jacobian(q, K, V, 2, 0.7), f"the Jacobian in {dtype}", atol=1e-6)
        limit = tensor(elongated_limit(q, K, V, 2, 0.7), "the limit", (3,), dtype)
        same(limit, _stretched(q, K, V, 2, 0.7), f"the limit in {dtype}", atol=1e-5)


@pytest.mark.weight(3)
def test_jacobian_values(key_jacobian, rng):
    """The derivative of the output by key j equals that of automatic differentiation, for every key."""
    for S, D, Dv, beta in ((6, 4, 3, 0.7), (4, 5, 7, 1.6)):
        q, K, V = _draw(rng, S, D, Dv)
        a, h = torch.softmax(beta * (K @ q), -1), _output(q, K, V, beta)
        for j in range(S):
            J = tensor(key_jacobian(q, K, V, j, beta), f"the Jacobian by key {j}", (Dv, D), F64)
            slope, along = beta * a[j], V[j] - h
            same_or_because(J, _true_jacobian(q, K, V, j, beta), f"the Jacobian by key {j}", {
                "v_j stands where v_j - out belongs; the other weights fall as this one rises":
                    slope * torch.outer(V[j], q),
                "there is a factor 1 - a_j too many": slope * (1 - a[j]) * torch.outer(along, q),
                "a_j (1 - a_j) v_j leaves out what the other weights do": slope * (1 - a[j]) * torch.outer(V[j], q),
                "the factor beta is missing": a[j] * torch.outer(along, q),
                "k_j stands where q belongs; the score is q . k_j": slope * torch.outer(along, K[j]),
                "the sign is turned round": -slope * torch.outer(along, q),
                "the weight a_j is missing": beta * torch.outer(along, q),
            }, rtol=1e-9, atol=1e-10)


def test_jacobian_first_order(key_jacobian, rng):
    """Small moves of key j move the output by the Jacobian times the move; the error is of second order."""
    q, K, V = _draw(rng)
    J = tensor(key_jacobian(q, K, V, 3, 1.3), "the Jacobian", (3, 4), F64)
    move = torch.randn(4, generator=rng, dtype=F64)
    errors = []
    for size in (1e-2, 1e-3):
        keys = K.clone()
        keys[3] += size * move
        errors.append((_output(q, keys, V, 1.3) - _output(q, K, V, 1.3) - size * (J @ move)).norm().item())
    moved = (J @ move).norm().item()
    check(moved > 0, "the Jacobian is zero along a random direction")
    check(errors[1] <= max(errors[0] / 30, 1e-9), f"a move of 0.01 is off by {errors[0]:.2g}, one of 0.001 by "
          f"{errors[1]:.2g}: the error must shrink a hundredfold")


def test_jacobian_where_nothing_can_move(key_jacobian, rng):
    """With one key, with equal values, or at beta = 0, no key can move the output: the Jacobian is zero."""
    q, K, V = _draw(rng)
    zero = torch.zeros(3, 4, dtype=F64)
    same(key_jacobian(q, K[:1], V[:1], 0, 0.9), zero, "the Jacobian with one key")
    same(key_jacobian(q, K, V[:1].repeat(6, 1), 2, 0.9), zero, "the Jacobian with equal values")
    same(key_jacobian(q, K, V, 2, 0.0), zero, "the Jacobian at beta = 0")
    lively = tensor(key_jacobian(q, K, V, 2, 0.9), "the Jacobian", (3, 4), F64)
    check(lively.abs().max() > 1e-9, "the Jacobian is zero where it must not be")


@pytest.mark.weight(2)
def test_limit_rises(elongated_limit, rng):
    """With q . k_j > 0 the stretched key ends up with all the weight: the limit is v_j."""
    for j in (0, 3, 5):
        q, K, V = _with_sign(rng, j, 1.0)
        same(elongated_limit(q, K, V, j, 0.6), V[j], f"the limit for key {j} with q . k = {(q @ K[j]).item():.3g}")


@pytest.mark.weight(2)
def test_limit_falls(elongated_limit, rng):
    """With q . k_j < 0 the stretched key loses all its weight: the limit is the output without it."""
    for j, beta in ((0, 0.6), (2, 1.5), (5, 0.2)):
        q, K, V = _with_sign(rng, j, -1.0)
        got, expected = elongated_limit(q, K, V, j, beta), _stretched(q, K, V, j, beta)
        a = torch.softmax(beta * (K @ q), -1)
        same_or_because(got, expected, f"the limit for key {j} with q . k = {(q @ K[j]).item():.3g}", {
            "a longer key gets a lower score here, it does not win": V[j],
            "the remaining weights no longer sum to 1; they share what key j has lost": a @ V - a[j] * V[j],
            "the output does not stay as it is": a @ V,
            "key j keeps a score of 0; its score goes to minus infinity": _output(
                q, torch.cat([K[:j], 0 * K[j : j + 1], K[j + 1 :]]), V, beta),
            "the other keys are still there": torch.zeros(3, dtype=F64),
        })


@pytest.mark.weight(2)
def test_limit_unchanged(elongated_limit, rng):
    """With q . k_j = 0 the score stays 0 however long the key is: the output does not change."""
    for j, beta in ((1, 0.6), (4, 1.4)):
        q, K, V = _with_sign(rng, j, 0.0)
        got, others = elongated_limit(q, K, V, j, beta), torch.arange(6) != j
        same_or_because(got, _output(q, K, V, beta), f"the limit for key {j} with q . k = 0", {
            "the key does not win, its score is 0 at any length": V[j],
            "the key does not lose its weight, its score is 0 at any length": _output(q, K[others], V[others], beta),
        })
    q, K, V = _draw(rng)
    K[2] = 0.0
    same(elongated_limit(q, K, V, 2, 0.8), _output(q, K, V, 0.8), "the limit for a key that is zero")


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["rises", "falls"])
def test_limit_of_a_small_product(elongated_limit, rng, sign):
    """However small q . k_j is, its sign decides: only a product of exactly 0 leaves the output as it is."""
    for j, size in ((0, 1e-9), (4, 3e-8)):
        q, K, V = _with_sign(rng, j, 0.0)
        K[j] = 0.0
        K[j, 0] = sign * size / q[0]
        others = torch.arange(6) != j
        expected = V[j] if sign > 0 else _output(q, K[others], V[others], 0.8)
        got, what = elongated_limit(q, K, V, j, 0.8), f"the limit for key {j} with q . k = {sign * size:g}"
        same_or_because(got, expected, what, {
            "a small product is taken for 0; stretched without end it grows beyond all bounds": _output(q, K, V, 0.8),
        })


@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=["float32", "float64"])
def test_large_scores(key_jacobian, elongated_limit, rng, dtype):
    """Scores in the thousands give finite results, and the right ones: the exponential of a large score is infinity."""
    q, K, V = _draw(rng, dtype=dtype)
    q[0], K[:, 0] = 40.0, K.new_tensor([30.0, -25.0, 30.0, -10.0, 28.0, -50.0])
    q[1:] = 0.0
    size = 1e-6 if dtype == F64 else 1e-2  # exp(z - logsumexp(z)) loses digits in float32 here, and is still right
    close = {"rtol": size, "atol": size}
    for j in (0, 2, 3):
        J = tensor(key_jacobian(q, K, V, j, 1.0), f"the Jacobian by key {j}", (3, 4), dtype)
        check(J.isfinite().all(), "the Jacobian is not finite where scores are near 1000: use a softmax that subtracts "
              "the largest score first")
        same(J, _true_jacobian(q, K, V, j, 1.0), f"the Jacobian by key {j} with scores near 1000", **close)
        limit = tensor(elongated_limit(q, K, V, j, 1.0), f"the limit for key {j}", (3,), dtype)
        check(limit.isfinite().all(), "the limit is not finite where scores are near 1000")
        same(limit, _stretched(q, K, V, j, 1.0), f"the limit for key {j} with scores near 1000", **close)


def test_limit_falls_from_the_top(elongated_limit, rng):
    """The key that is stretched may have had all the weight before; the others then share it by their own scores."""
    q, K, V = _draw(rng, 4)
    q[0], q[1:] = 1.0, 0.0
    K[:, 0] = torch.tensor([-60.0, -1.0, -61.0, -60.5], dtype=F64)  # the weight of key 1 is 1, up to rounding
    others = torch.tensor([0, 2, 3])
    got = tensor(elongated_limit(q, K, V, 1, 1.0), "the limit", (3,), F64)
    same(got, _output(q, K[others], V[others], 1.0), "the limit for a key with q . k = -1 among others near -60 (leave "
         "the key out before the softmax: dividing by 1 - a_j fails where a_j is 1)")


def test_limit_is_approached(elongated_limit, rng):
    """For random inputs the limit is what a very long key gives, for every key."""
    q, K, V = _draw(rng, 7, 5, 4)
    K = K + 0.02 * (K @ q).sign()[:, None] * q  # keep clear of q . k = 0
    for j in range(7):
        same(elongated_limit(q, K, V, j, 0.9), _stretched(q, K, V, j, 0.9), f"the limit for key {j}", atol=1e-8)
