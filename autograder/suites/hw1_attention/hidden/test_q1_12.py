"""Hidden checks of q1_12: weights that turn the position layer into other layers."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check
from course_utils.hw1.position_layer import position_layer

F64 = torch.float64


def _contents(rng, n, d):
    """Many contents: ordinary, large, very large, all rows equal, one entry alone; float64 and float32."""
    X = torch.randn(n, d, generator=rng, dtype=F64)
    one = torch.zeros(n, d, dtype=F64)
    one[n // 2, d - 1] = 1.0
    return {
        "random X": X,
        "X of size 10": 10 * torch.randn(n, d, generator=rng, dtype=F64),
        "X of size 100": 100 * torch.randn(n, d, generator=rng, dtype=F64),
        "X with equal rows": X[:1].repeat(n, 1),
        "X with a single 1": one,
        "float32 X": torch.randn(n, d, generator=rng),
        "float32 X of size 10": 10 * torch.randn(n, d, generator=rng),
    }


def _agree(weights, X, expected, what, causes=None):
    """The layer's output is as expected, up to what finite scores leave to the other positions."""
    slack = (1e-5 if X.dtype == F64 else 1e-4) * max(1.0, expected.abs().max().item())
    same_or_because(position_layer(X, weights), expected, what, causes or {}, rtol=0, atol=slack)


def _permutation(permutation_layer, perm, d):
    """The layer's weights; `perm` is a list, or a tensor for an answer that wants one."""
    try:
        return permutation_layer(perm, d)
    except Exception:
        return permutation_layer(torch.tensor(perm), d)


def _convolve(X, kernel):
    """The circular convolution, tap by tap: X [n, d_in], kernel [d_out, d_in, K] -> [n, d_out]."""
    n, K = len(X), kernel.shape[-1]
    kernel = kernel.to(X.dtype)
    rows = [sum(kernel[:, :, t] @ X[(i + t - K // 2) % n] for t in range(K)) for i in range(n)]
    return torch.stack(rows)


def _orders(rng, n):
    """A permutation of n places that is not its own inverse."""
    order = torch.randperm(n, generator=rng).tolist()
    while all(order[order[i]] == i for i in range(n)):
        order = torch.randperm(n, generator=rng).tolist()
    return order


@pytest.mark.weight(2)
def test_identity(identity_layer, rng):
    """With your weights the layer gives X back, for several sizes and many contents."""
    for n, d in ((5, 3), (3, 7), (8, 1)):
        weights = identity_layer(n, d)
        for name, X in _contents(rng, n, d).items():
            _agree(weights, X, X, f"the output for n = {n}, d = {d} and {name}")


@pytest.mark.weight(2)
def test_permutation(permutation_layer, rng):
    """Output i is input perm[i], for permutations that are not their own inverse."""
    for n, d in ((5, 3), (4, 6), (7, 2)):
        perm = _orders(rng, n)
        weights = _permutation(permutation_layer, perm, d)
        for name, X in _contents(rng, n, d).items():
            inverse = torch.empty_like(X)
            inverse[perm] = X
            cause = "this is the inverse permutation, you have sent input i to output perm[i]"
            _agree(weights, X, X[perm], f"the output for perm = {perm} and {name}", {cause: inverse})


def test_permutation_special(permutation_layer, rng):
    """The identity, a swap and a reversal are permutations too."""
    X = 5 * torch.randn(4, 3, generator=rng, dtype=F64)
    for perm in ([0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]):
        _agree(_permutation(permutation_layer, perm, 3), X, X[perm], f"the output for perm = {perm}")


@pytest.mark.weight(2)
def test_pointwise(pointwise_layer, rng):
    """Every position is multiplied by W, wider or narrower than X, and sees no other position."""
    for n, d_in, d_out in ((5, 3, 4), (4, 6, 2), (7, 1, 3), (4, 3, 3), (4, 4, 4)):
        W = torch.randn(d_out, d_in, generator=rng, dtype=F64)
        weights = pointwise_layer(W, n)
        for name, X in _contents(rng, n, d_in).items():
            expected = X @ W.T.to(X.dtype)
            _agree(weights, X, expected, f"the output for W of shape {list(W.shape)}, n = {n} and {name}", {
                "every position gets the same mean; uniform attention is pooling, each must attend to itself":
                    expected.mean(0, keepdim=True).expand_as(expected),
                "W is transposed; W is [d_out, d_in], and output i is W x_i":
                    X @ W.to(X.dtype) if d_in == d_out else expected,
                "W is not used": X,
            })


@pytest.mark.weight(3)
@pytest.mark.parametrize("K", [3, 5])
def test_convolution(convolution_layer, rng, K):
    """A circular convolution of width K, for signed kernels of several channels."""
    for n, d_in, d_out in ((7, 2, 3), (6, 4, 2), (6, 3, 3)):
        kernel = torch.randn(d_out, d_in, K, generator=rng, dtype=F64)
        weights = convolution_layer(kernel, n)
        for name, X in _contents(rng, n, d_in).items():
            taps = kernel.to(X.dtype)
            circular = F.conv1d(F.pad(X.T[None], (K // 2, K // 2), mode="circular"), taps)[0].T
            causes = {
                "the kernel is mirrored; tap t reads position i + t - K // 2": _convolve(X, kernel.flip(-1)),
                "right inside, wrong at the borders; positions go round, (i + t - K // 2) mod n":
                    F.conv1d(X.T[None], taps, padding=K // 2)[0].T,
                "the result is K times too small": circular / K,
            }
            if d_in == d_out:
                causes["each tap is transposed; kernel is [d_out, d_in, K]"] = _convolve(X, kernel.transpose(0, 1))
            for shift in (-2, -1, 1, 2):
                cause = f"the output is shifted by {shift}; the middle tap, t = K // 2, reads position i itself"
                causes[cause] = circular.roll(shift, 0)
            what = f"the output for a kernel of shape {list(kernel.shape)}, n = {n} and {name}"
            _agree(weights, X, circular, what, causes)


@pytest.mark.weight(2)
@pytest.mark.parametrize("K, n", [(1, 5), (5, 5), (7, 3), (5, 2), (9, 2), (5, 1)],
                         ids=["one-tap", "full", "wider", "much-wider", "many-times-round", "one-place"])
def test_convolution_of_any_width(convolution_layer, rng, K, n):
    """One tap, as many taps as positions, and more taps than positions all work: positions go round."""
    kernel = torch.randn(4, 3, K, generator=rng, dtype=F64)
    weights = convolution_layer(kernel, n)
    for name, X in _contents(rng, n, 3).items():
        _agree(weights, X, _convolve(X, kernel), f"the output for K = {K}, n = {n} and {name}")


def _lead(weights, n, d):
    """By how much the largest score of a query leads the next one, at least, where the content is 0."""
    Z = torch.cat([torch.zeros(n, d, dtype=F64), torch.eye(n, dtype=F64)], -1)
    Wq, Wk = weights["Wq"].to(F64), weights["Wk"].to(F64)
    top = ((Z @ Wq) @ (Z @ Wk).mT / Wq.shape[-1] ** 0.5).topk(2).values
    return (top[..., 0] - top[..., 1]).min().item()


@pytest.mark.parametrize("n", [30, 100])
def test_many_places(identity_layer, permutation_layer, pointwise_layer, convolution_layer, rng, n):
    """The softmax is as sharp with many places as with few: the layer divides the scores by sqrt(A)."""
    perm, few, W = _orders(rng, n), _orders(rng, 5), torch.randn(3, 2, generator=rng, dtype=F64)
    kernel = torch.randn(3, 2, 3, generator=rng, dtype=F64)
    X = torch.randn(n, 2, generator=rng, dtype=F64)
    for name, make, expected in (
        ("identity_layer", lambda n: identity_layer(n, 2), X),
        ("permutation_layer", lambda n: _permutation(permutation_layer, perm if n > 5 else few, 2), X[perm]),
        ("pointwise_layer", lambda n: pointwise_layer(W, n), X @ W.T),
        ("convolution_layer", lambda n: convolution_layer(kernel, n), _convolve(X, kernel)),
    ):
        weights = make(n)
        got = position_layer(X, weights)
        gap = (got - expected).abs().max().item() if got.shape == expected.shape else 0.0
        if 3e-5 <= gap <= 0.5 and (lead := _lead(weights, n, 2)) < 25:
            told = f"the output of {name} for n = {n} places is off by {gap:.2g}: the softmax is not sharp enough"
            check(lead > 0.8 * _lead(make(5), 5, 2), f"{told} for so many. The layer divides the scores by sqrt(A), so "
                  "the lead of the chosen place must grow with that root", mistake="lead-without-the-root")
            check(False, f"{told}: after the division by sqrt(A) the chosen place leads by {lead:.3g} only, and "
                  f"the {n - 1} others share what is left")
        _agree(weights, X, expected, f"the output of {name} for n = {n} places")


def test_single_taps(convolution_layer, rng):
    """A kernel with one tap and the rest zero shifts X round the circle; its sign is kept."""
    X = torch.randn(6, 2, generator=rng, dtype=F64)
    for tap in range(5):
        kernel = torch.zeros(2, 2, 5, dtype=F64)
        kernel[:, :, tap] = -torch.eye(2, dtype=F64)
        expected = -X.roll(2 - tap, 0)
        _agree(convolution_layer(kernel, 6), X, expected, f"the output for a kernel with tap {tap} alone")
