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
    # keeps: jacobian
    J = tensor(key_jacobian(Q, K, V, 0, 1.0), "the Jacobian", shape=(3, 2), dtype=F64)
    same(J, torch.tensor([[2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], dtype=F64), "the Jacobian at beta = 1")
    same(key_jacobian(Q, K, V, 1, 0.5), torch.tensor([[-1.0, 0.0], [0.5, 0.0], [0.0, 0.0]], dtype=F64),
         "the Jacobian by key 1 at beta = 0.5")


def test_small_step(key_jacobian, rng):
    """Moving key j by a small step moves the output by the Jacobian times the step."""
    # keeps: jacobian
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
    # keeps: limit
    same(elongated_limit(Q, K, V, 1, 1.0), V[1], "the limit for q . k = 1")
    opposite = torch.stack([-K[0], K[1]])
    got = tensor(elongated_limit(Q, opposite, V, 0, 1.0), "the limit", shape=(3,))
    check(not torch.equal(got, V[0]), "q . k is negative here: stretching the key lowers its score")
    same(got, V[1], "the limit for q . k = -1")
    flat = torch.stack([torch.tensor([0.0, 5.0], dtype=F64), K[1]])  # q . k = 0: the weight stays 1 / (1 + e)
    weight = 1 / (1 + math.e)
    same(elongated_limit(Q, flat, V, 0, 1.0), weight * V[0] + (1 - weight) * V[1], "the limit for q . k = 0")


def test_every_key(key_jacobian, rng):
    """The derivative by each key in turn, at two values of beta and at 0, in the inputs' dtype."""
    # keeps: jacobian, beta, dtype
    q, keys, values = (torch.randn(*s, generator=rng, dtype=F64) for s in ((3,), (4, 3), (4, 2)))
    for beta in (0.0, 0.6, 2.0):
        a = torch.softmax(beta * (keys @ q), -1)
        for j in range(4):
            expected = torch.stack([beta * a[j] * (v - o) * q for v, o in zip(values[j], a @ values, strict=True)])
            same(key_jacobian(q, keys, values, j, beta), expected, f"the Jacobian by key {j} at beta = {beta}")
    got = key_jacobian(q.float(), keys.float(), values.float(), 1, 0.6)
    tensor(got, "the Jacobian in float32", (2, 3), torch.float32)


def test_limit_of_many_keys(elongated_limit, rng):
    """Where the stretched key loses, the others keep their scores; a product barely off 0 decides too."""
    # keeps: limit, beta, dtype
    q, keys, values = (torch.randn(*s, generator=rng, dtype=F64) for s in ((3,), (5, 3), (5, 2)))
    for product in (-1.5, -1e-9):
        keys[2] += (product - keys[2] @ q) * q / (q @ q)
        left = [0, 1, 3, 4]
        expected = torch.softmax(0.7 * (keys[left] @ q), -1) @ values[left]
        same(elongated_limit(q, keys, values, 2, 0.7), expected, f"the limit for q . k = {product}", rtol=1e-6)
        same(elongated_limit(-q, keys, values, 2, 0.7), values[2], f"the limit for q . k = {-product}")
    got = elongated_limit(q.float(), keys.float(), values.float(), 2, 0.7)
    tensor(got, "the limit in float32", shape=(2,), dtype=torch.float32)


def test_inputs_stay(key_jacobian, elongated_limit):
    """The inputs are not changed."""
    # keeps: in-place
    q, keys, values = Q.clone(), torch.stack([-K[0], K[1]]), V.clone()
    kept = [x.clone() for x in (q, keys, values)]
    key_jacobian(q, keys, values, 0, 1.0)
    elongated_limit(q, keys, values, 0, 1.0)
    for name, now, before in zip(("q", "K", "V"), (q, keys, values), kept, strict=True):
        check(torch.equal(now, before), f"{name} was changed in place: work on a copy")


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


def probe_inputs_stay(elongated_limit):
    q, keys, values = _inputs(-1.0)
    kept = keys.clone()
    elongated_limit(q, keys, values, 2, 0.8)
    return bool(torch.equal(keys, kept))


def probe_limit_of_a_thousandth(elongated_limit):
    q, keys, values = _inputs(1.0)
    return elongated_limit(q, torch.cat([keys[:2], keys[2:3] / 1000, keys[3:]]), values, 2, 0.8)


def probe_limit_of_each_key(elongated_limit):
    q, keys, values = _inputs(-1.0)
    return [elongated_limit(sign * q, keys, values, j, 0.8) for sign in (1, -1) for j in range(len(keys))]
