"""Public checks of q1_12: weights that turn the position layer into other layers."""

import torch
import torch.nn.functional as F

from course_utils.checking.compare import Wrong, check, same
from course_utils.hw1.position_layer import position_layer

F64 = torch.float64


def _x(n, d, seed=121):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=F64)


def _permutation(permutation_layer, perm, d):
    """The layer's weights; `perm` is a list, or a tensor for an answer that wants one."""
    try:
        return permutation_layer(perm, d)
    except Exception:
        return permutation_layer(torch.tensor(perm), d)


def _close(got, expected, what):
    same(got, expected, what, rtol=0, atol=1e-5 * max(1.0, expected.abs().max().item()))


def _does(X, layer, expected, what):
    """Compare what the layer makes of X; where that is wrong, tell a softmax that is too soft or hears the content."""
    got = position_layer(X, layer)
    try:
        _close(got, expected, what)
    except Wrong:
        blind = {name: torch.cat([0 * layer[name][:, : X.shape[1]], layer[name][:, X.shape[1] :]], 1)
                 for name in ("Wq", "Wk")}
        for changed, told in (({"Wq": 1000 * layer["Wq"]}, "is a blur of several places: with a Wq that is a thousand "
                               "times as large it would be right, so give the chosen place a larger lead"),
                              (blind, "depends on the content in a wrong way: content reaches the scores. The first d "
                               "rows of Wq and Wk meet the content, and should be zero")):
            mended = position_layer(X, {**layer, **changed})
            check(mended.shape != expected.shape or not torch.allclose(mended, expected, atol=1e-4), f"{what} {told}")
        raise


def test_identity_gives_x_back(identity_layer):
    """The identity gives X back, however large its entries are."""
    # keeps: identity, every-content
    for scale in (1, 10):
        X = scale * _x(5, 3)
        _does(X, identity_layer(5, 3), X, f"the layer's output for X of size {scale}")


def test_permutation_of_three(permutation_layer):
    """Output i is input perm[i]: with perm = (2, 0, 1) the first output is the last input."""
    # keeps: permutation
    X, perm = _x(3, 2), [2, 0, 1]
    layer = _permutation(permutation_layer, perm, 2)
    got = position_layer(X, layer)
    check(got.shape != X.shape or not torch.allclose(got, X[[1, 2, 0]], atol=1e-5),
          "this is the inverse permutation: input i went to output perm[i]")
    _does(X, layer, X[perm], "the layer's output")


def test_pointwise_map(pointwise_layer):
    """Every position is multiplied by the same W, here [4, 3], and no position sees another."""
    # keeps: pointwise
    X, W = _x(5, 3), _x(4, 3, seed=122)
    _does(X, pointwise_layer(W, 5), X @ W.T, "the layer's output")


def test_convolution_of_three_taps(convolution_layer):
    """A circular convolution of width 3: it agrees with torch's conv1d on a circularly padded input."""
    # keeps: convolution
    X, kernel = _x(6, 2), torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(123), dtype=F64)
    expected = F.conv1d(F.pad(X.T[None], (1, 1), mode="circular"), kernel)[0].T  # [n, d_out]
    layer = convolution_layer(kernel, 6)
    got = position_layer(X, layer)
    mirrored = F.conv1d(F.pad(X.T[None], (1, 1), mode="circular"), kernel.flip(-1))[0].T
    check(got.shape != expected.shape or not torch.allclose(got, mirrored, atol=1e-5),
          "the kernel is mirrored: tap t reads position i + t - K // 2")
    _does(X, layer, expected, "the layer's output")


def test_square_maps(pointwise_layer, convolution_layer):
    """Square maps are not transposed: output i is W x_i, and a convolution of width 1 is such a map."""
    # keeps: pointwise, convolution
    X, W = _x(5, 3), _x(3, 3, seed=122)
    _close(position_layer(X, pointwise_layer(W, 5)), X @ W.T, "the layer's output")
    _close(position_layer(X, convolution_layer(W[..., None], 5)), X @ W.T, "the output of a convolution of one tap")


def test_round_the_corner(convolution_layer):
    """A kernel that is wider than the input goes round several times, no flip."""
    # keeps: convolution, wraps
    for n, taps in ((5, 5), (2, 9), (3, 7), (1, 3)):
        X, kernel = _x(n, 2), torch.randn(3, 2, taps, generator=torch.Generator().manual_seed(125), dtype=F64)
        expected = torch.stack([sum(kernel[:, :, t] @ X[(i + t - taps // 2) % n] for t in range(taps))
                                for i in range(n)])
        _close(position_layer(X, convolution_layer(kernel, n)), expected, f"the output for {taps} taps on {n} places")


def test_sharp_enough(identity_layer, permutation_layer):
    """Many places and large contents: the softmax still picks one place, whatever the content."""
    # keeps: every-content, sharp, permutation, identity
    perm = [(7 * i + 3) % 100 for i in range(100)]
    for scale in (1, 20):
        X = scale * _x(100, 2)
        layer = _permutation(permutation_layer, perm, 2)
        _does(X, layer, X[perm], f"the permutation of 100 places, contents of size {scale}")
        _does(X, identity_layer(100, 2), X, f"the identity on 100 places, contents of size {scale}")
    X = _x(1, 3)
    _close(position_layer(X, identity_layer(1, 3)), X, "the identity on one place")


def test_float32(identity_layer, convolution_layer):
    """Contents in float32 work too: the weights are cast to their dtype."""
    # keeps: cast
    X, kernel = _x(6, 2).float(), _x(2, 6, seed=126).reshape(2, 2, 3)
    same(position_layer(X, identity_layer(6, 2)), X, "the identity in float32", rtol=0, atol=1e-4)
    expected = F.conv1d(F.pad(X.T[None], (1, 1), mode="circular"), kernel.float())[0].T
    same(position_layer(X, convolution_layer(kernel, 6)), expected, "the convolution in float32", rtol=0, atol=1e-4)


def probe_identity(identity_layer):
    X = _x(5, 3)
    return position_layer(X, identity_layer(5, 3))


def probe_identity_large(identity_layer):
    X = 20 * _x(4, 2)
    return position_layer(X, identity_layer(4, 2))


def probe_permutation(permutation_layer):
    return position_layer(_x(5, 3), _permutation(permutation_layer, [3, 0, 4, 2, 1], 3))


def probe_permutation_large(permutation_layer):
    return position_layer(20 * _x(4, 3), _permutation(permutation_layer, [1, 2, 3, 0], 3))


def probe_pointwise(pointwise_layer):
    return position_layer(_x(5, 3), pointwise_layer(_x(4, 3, seed=122), 5))


def probe_pointwise_large(pointwise_layer):
    return position_layer(20 * _x(3, 4), pointwise_layer(_x(2, 4, seed=122), 3))


def _kernel(d_out, d_in, width):
    return torch.randn(d_out, d_in, width, generator=torch.Generator().manual_seed(124), dtype=F64)


def probe_convolution(convolution_layer):
    return position_layer(_x(6, 2), convolution_layer(_kernel(4, 2, 3), 6))


def probe_convolution_one_tap(convolution_layer):
    return position_layer(_x(4, 2), convolution_layer(_kernel(3, 2, 1), 4))


def probe_convolution_full_width(convolution_layer):
    return position_layer(_x(5, 2), convolution_layer(_kernel(3, 2, 5), 5))


def probe_convolution_wider_than_the_input(convolution_layer):
    return position_layer(_x(3, 2), convolution_layer(_kernel(4, 2, 7), 3))


def probe_convolution_large(convolution_layer):
    return position_layer(20 * _x(6, 2), convolution_layer(_kernel(4, 2, 3), 6))


def probe_pointwise_square(pointwise_layer):
    return position_layer(_x(4, 3), pointwise_layer(_x(3, 3, seed=122), 4))


def probe_convolution_square(convolution_layer):
    return position_layer(_x(4, 3), convolution_layer(_kernel(3, 3, 3), 4))


def probe_convolution_many_times_round(convolution_layer):
    return position_layer(_x(2, 2), convolution_layer(_kernel(3, 2, 9), 2))


def probe_permutation_of_many_places(permutation_layer):
    perm = [(7 * i + 3) % 100 for i in range(100)]
    return position_layer(_x(100, 2), _permutation(permutation_layer, perm, 2))


def probe_permutation_of_seven(permutation_layer):
    return position_layer(_x(7, 2), _permutation(permutation_layer, [2, 5, 0, 6, 1, 3, 4], 2))
