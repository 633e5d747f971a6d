"""Hidden checks of q2_13: per_head_projection, block_diagonal and as_grouped_convolution."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.hw2.grouped import copy_of_weights, looks
from course_utils.instruments.calls import call_with_slices, call_with_views

F64 = torch.float64
SIZES = [(3, 2), (2, 3), (4, 5), (1, 6), (6, 1), (2, 2)]  # H, Dh


def _draw(rng, H, Dh, B=3, N=4, dtype=F64):
    return (torch.randn(B, N, H * Dh, generator=rng, dtype=F64).to(dtype),
            torch.randn(H, Dh, Dh, generator=rng, dtype=F64).to(dtype))


def _by_hand(x, W):
    """Slice by slice, as a convolution in groups computes it."""
    D = x.shape[-1]
    return F.conv1d(x.mT, W.reshape(D, -1, 1), groups=len(W)).mT


def _causes(x, W):
    H, Dh, _ = W.shape
    dealt = x.unflatten(-1, (Dh, H)).transpose(-1, -2).flatten(-2)
    return {
        "the matrices are transposed: `W[h]` stands on the left of its slice": _by_hand(x, W.mT),
        "the order of the heads' matrices is reversed": _by_hand(x, W.flip(0)),
        "every head uses the matrix of head 0": _by_hand(x, W[:1].expand_as(W)),
        "head h holds the columns h, h + H, ...; a slice is `Dh` neighbouring columns": _by_hand(dealt, W),
        "the heads' results are added up; they stand side by side":
            _by_hand(x, W).unflatten(-1, (H, Dh)).sum(-2, keepdim=True).expand(-1, -1, H, -1).flatten(-2),
    }


@pytest.mark.weight(3)
def test_projection(per_head_projection, rng):
    """Head h maps its own slice by its own matrix, and the results stand side by side, at any sizes."""
    for H, Dh in SIZES:
        x, W = _draw(rng, H, Dh)
        got = tensor(per_head_projection(x, W), f"the projection with {H} heads of width {Dh}", x.shape, F64)
        same_or_because(got, _by_hand(x, W), f"the projection with {H} heads of width {Dh}", _causes(x, W))


@pytest.mark.weight(2)
def test_matrix(block_diagonal, rng):
    """block_diagonal has the heads' matrices along its diagonal and exact zeros elsewhere."""
    for H, Dh in SIZES:
        _, W = _draw(rng, H, Dh)
        expected = torch.zeros(H, Dh, H, Dh, dtype=F64)
        expected[range(H), :, range(H)] = W
        expected = expected.reshape(H * Dh, H * Dh)
        same_or_because(block_diagonal(W), expected, f"the matrix of {H} heads of width {Dh}", {
            "the blocks are transposed": torch.block_diag(*W.mT),
            "the blocks stand one below the other in the first columns": torch.cat([
                W.reshape(H * Dh, Dh), torch.zeros(H * Dh, H * Dh - Dh, dtype=F64)], 1),
            "the blocks stand in the reverse order": torch.block_diag(*W.flip(0)),
        })


@pytest.mark.weight(2)
def test_one_map(per_head_projection, block_diagonal, as_grouped_convolution, rng):
    """Projection, matrix and convolution are one map."""
    for H, Dh in SIZES[:4]:
        x, W = _draw(rng, H, Dh)
        projected = tensor(per_head_projection(x, W), "the projection", x.shape, F64)
        matrix = tensor(block_diagonal(W), "the matrix", (H * Dh, H * Dh), F64)
        same(projected, x @ matrix.T, f"the projection against x @ block_diagonal(W).T, {H} heads of width {Dh}")
        convolved = tensor(as_grouped_convolution(W)(x.mT.contiguous()), "the convolution's output", (3, H * Dh, 4))
        same(convolved.mT, projected, f"the convolution's output, transposed, against the projection, {H} heads of "
             f"width "
             f"{Dh}", dtype=False)


@pytest.mark.weight(2)
def test_kind_of_convolution(as_grouped_convolution, in_box, rng):
    """It is an nn.Conv1d from D to D channels, of width 1, in H groups, without bias, and its weight is W's numbers."""
    for H, Dh in SIZES:
        x, W = _draw(rng, H, Dh)
        seen = in_box(looks, as_grouped_convolution, W)
        check(seen["kind"] == "Conv1d", f"as_grouped_convolution gives a {seen['kind']}, expected an nn.Conv1d")
        for name, expected in {"in_channels": H * Dh, "out_channels": H * Dh, "kernel_size": [1], "groups": H,
                               "bias": False}.items():
            check(seen[name] == expected, f"for {H} heads of width {Dh} the convolution has {name} = {seen[name]}, "
                  f"expected "
                  f"{expected}")
        got = tensor(as_grouped_convolution(W)(x.mT.contiguous()), "the convolution's output", (3, H * Dh, 4))
        causes = {told: value.mT for told, value in _causes(x, W).items()}
        same_or_because(got, _by_hand(x, W).mT, f"the convolution's output with {H} heads of width {Dh}", causes,
                        dtype=False)


def test_weight_is_a_copy(as_grouped_convolution, in_box, rng):
    """The weight is a copy of W in its dtype, [D, Dh, 1], and a parameter; neither changes with the other."""
    for dtype in (F64, torch.float32, torch.bfloat16):
        _, W = _draw(rng, 2, 3, dtype=dtype)
        seen = in_box(copy_of_weights, as_grouped_convolution, W)
        check(seen["shape"] == [6, 3, 1], f"the convolution's weight has shape {seen['shape']}, expected [6, 3, 1]")
        check(seen["dtype"] == str(dtype), f"for W in {dtype} the convolution's weight is {seen['dtype']}")
        check(not seen["follows"] and not seen["leads"], "the convolution's weight and W share their memory: copy W")
        check(seen["trainable"], "the convolution's weight is no parameter that learns")


def test_blind_to_the_rest(per_head_projection, rng):
    """A change of one feature moves outputs of its own slice, place and example, and no others."""
    x, W = _draw(rng, 3, 2)
    before = tensor(per_head_projection(x, W), "the projection", x.shape, F64)
    other = x.clone()
    other[1, 2, 3] += 1
    moved = (tensor(per_head_projection(other, W), "the projection", x.shape, F64) - before).abs() > 1e-12
    expected = torch.zeros_like(moved)
    expected[1, 2, 2:4] = True
    check(torch.equal(moved, expected), "a change of feature 3 of token 2 of example 1 must move features 2 and 3 of "
          "that "
          "token, and nothing else")


def test_projection_gradients(per_head_projection, rng):
    """Gradients by x and by W are those of the convolution in groups."""
    mine, theirs = ([t.clone().requires_grad_() for t in values] for values in [_draw(rng, 3, 2)] * 2)
    out = tensor(per_head_projection(*mine), "the projection", (3, 4, 6), F64)
    check(out.requires_grad, "no gradient flows through per_head_projection: stay with torch, and do not detach")
    up = torch.randn(out.shape, generator=rng, dtype=F64)
    (out * up).sum().backward()
    (_by_hand(*theirs) * up).sum().backward()
    for name, a, b in zip(("x", "W"), mine, theirs, strict=True):
        check(a.grad is not None, f"no gradient reaches {name}")
        same(a.grad, b.grad, f"the gradient by {name}")


def test_views(per_head_projection, in_box, rng):
    """Inputs that are slices or transposes of other tensors count by their values."""
    for call in (call_with_slices, call_with_views):
        x, W = _draw(rng, 2, 3)
        same(in_box(call, per_head_projection, x, W), _by_hand(x, W), "the projection of inputs that are views")


def test_float32(per_head_projection, block_diagonal, rng):
    """In float32 the results are float32."""
    x, W = _draw(rng, 2, 3, dtype=torch.float32)
    same(per_head_projection(x, W), _by_hand(x, W), "the projection", atol=1e-5)
    same(block_diagonal(W), torch.block_diag(*W), "the matrix")


@pytest.mark.weight(0.5)
def test_device(per_head_projection, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, per_head_projection, call=_draw(rng, 2, 3))
