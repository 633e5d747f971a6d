"""Public checks of q1_10: key_jacobian and elongated_limit."""

import math

import torch

from course_utils.checking.compare import check, same, tensor

F64 = torch.float64
Q = torch.tensor([2.0, 0.0], dtype=F64)
K = torch.tensor([[0.5, 1.0], [0.5, -3.0]], dtype=F64)  # both scores are 1: weights 1/2 and 1/2
V = torch.tensor([[4.0, 0.0, 1.0], [0.0, 2.0, 1.0]], dtype=F64)  # output (2, 1, 1)


def test_worked_numbers(key_jacobian):
    """Two equal weights, q = (2, 0), v_0 - out = (2, -1, 0): the Jacobian is half of beta times their outer product."""
    J = tensor(key_jacobian(Q, K, V, 0, 1.0), "the Jacobian", shape=(3, 2), dtype=F64)
    same(J, torch.tensor([[2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], dtype=F64), "the Jacobian at beta = 1")
    same(key_jacobian(Q, K, V, 1, 0.5), torch.tensor([[-1.0, 0.0], [0.5, 0.0], [0.0, 0.0]], dtype=F64),
         "the Jacobian by key 1 at beta = 0.5")


def test_small_step(key_jacobian, rng):
    """Moving key j by a small step moves the output by the Jacobian times the step."""
    q, K, V = (torch.randn(*s, generator=rng, dtype=F64) for s in ((4,), (5, 4), (5, 3)))
    step = 1e-5 * torch.randn(4, generator=rng, dtype=F64)
    moved = []
    for sign in (1, -1):
        keys = K.clone()
        keys[2] += sign * step
        moved.append(torch.softmax(0.7 * (keys @ q), -1) @ V)
    J = tensor(key_jacobian(q, K, V, 2, 0.7), "the Jacobian", shape=(3, 4), dtype=F64)
    same(J @ step, (moved[0] - moved[1]) / 2, "the Jacobian times a small step", rtol=1e-5, atol=1e-10)


def test_limit(elongated_limit):
    """A stretched key takes all the weight if q . k > 0, and loses all of it if q . k < 0."""
    same(elongated_limit(Q, K, V, 1, 1.0), V[1], "the limit for q . k = 1")
    opposite = torch.stack([-K[0], K[1]])
    got = tensor(elongated_limit(Q, opposite, V, 0, 1.0), "the limit", shape=(3,))
    check(not torch.equal(got, V[0]), "q . k is negative here: stretching the key lowers its score")
    same(got, V[1], "the limit for q . k = -1")
    flat = torch.stack([torch.tensor([0.0, 5.0], dtype=F64), K[1]])  # q . k = 0: the weight stays 1 / (1 + e)
    weight = 1 / (1 + math.e)
    same(elongated_limit(Q, flat, V, 0, 1.0), weight * V[0] + (1 - weight) * V[1], "the limit for q . k = 0")


def _inputs(sign=None):
    g = torch.Generator().manual_seed(101)
    q, keys, values = (torch.randn(*s, generator=g, dtype=F64) for s in ((3,), (5, 3), (5, 4)))
    if sign is not None:
        q = torch.tensor([2.0, 0.0, 3.0], dtype=F64)
        keys[2] = sign * q / 7 + torch.tensor([0.0, 2.0, 0.0], dtype=F64)  # q . k_2 = sign * 13 / 7
    return q, keys, values


def probe_jacobian(key_jacobian):
    return key_jacobian(*_inputs(), 1, 0.8)


def probe_jacobian_beta(key_jacobian):
    return key_jacobian(*_inputs(), 1, 2.0)


def probe_jacobian_last_key(key_jacobian):
    return key_jacobian(*_inputs(), 4, 0.8)


def probe_jacobian_one_key(key_jacobian):
    q, keys, values = _inputs()
    return key_jacobian(q, keys[:1], values[:1], 0, 0.8)


def probe_limit_rises(elongated_limit):
    return elongated_limit(*_inputs(1.0), 2, 0.8)


def probe_limit_falls(elongated_limit):
    return elongated_limit(*_inputs(-1.0), 2, 0.8)


def probe_limit_unchanged(elongated_limit):
    return elongated_limit(*_inputs(0.0), 2, 0.8)


def probe_limit_falls_beta(elongated_limit):
    return elongated_limit(*_inputs(-1.0), 2, 0.2)


def probe_dtype(key_jacobian, elongated_limit):
    q, keys, values = (part.float() for part in _inputs())
    return [str(key_jacobian(q, keys, values, 1, 0.8).dtype), str(elongated_limit(q, keys, values, 1, 0.8).dtype)]


def probe_limit_of_a_small_product(elongated_limit):
    K = torch.tensor([[1e-9, 0.0], [0.3, -1.0], [-0.5, 2.0]], dtype=torch.float64)
    V, q = torch.tensor([[5.0], [1.0], [-2.0]], dtype=torch.float64), torch.tensor([1.0, 0.5], dtype=torch.float64)
    return elongated_limit(q, K, V, 0, 1.0)
