"""Public checks of q2_13: per_head_projection, block_diagonal and as_grouped_convolution."""

import torch
import torch.nn.functional as F

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.hw2.grouped import copy_of_weights, heeds_the_matrices, looks

F64 = torch.float64


def _inputs(H=3, Dh=2, B=2, N=5, dtype=F64):
    g = torch.Generator().manual_seed(213)
    return (torch.randn(B, N, H * Dh, generator=g, dtype=F64).to(dtype),
            torch.randn(H, Dh, Dh, generator=g, dtype=F64).to(dtype))


def _by_hand(x, W):
    """Slice by slice."""
    Dh = W.shape[-1]
    return torch.cat([F.linear(x[..., h * Dh : (h + 1) * Dh], W[h]) for h in range(len(W))], -1)


def test_worked_numbers(per_head_projection):
    """Two heads of width 2, one swaps its features, one doubles them: (1, 2, 3, 4) becomes (2, 1, 6, 8)."""
    # keeps: worked, per-head
    W = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]], dtype=F64)
    got = per_head_projection(torch.tensor([[[1.0, 2.0, 3.0, 4.0]]], dtype=F64), W)
    same(got, torch.tensor([[[2.0, 1.0, 6.0, 8.0]]], dtype=F64), "the projection")


def test_slices(per_head_projection):
    """Head h maps its slice by its matrix, W[h] on the left of the vector, at any sizes."""
    # keeps: per-head, any-sizes
    for H, Dh in ((3, 2), (2, 3), (1, 4), (4, 1), (2, 5)):
        x, W = _inputs(H, Dh)
        same(per_head_projection(x, W), _by_hand(x, W), f"the projection with {H} heads of width {Dh}")


def test_blocks(block_diagonal):
    """The matrix has W's matrices along its diagonal, in order, and zeros elsewhere."""
    # keeps: blocks, any-sizes
    for H, Dh in ((3, 2), (2, 3), (1, 4)):
        _, W = _inputs(H, Dh)
        expected = torch.zeros(H * Dh, H * Dh, dtype=F64)
        for h in range(H):
            expected[h * Dh : (h + 1) * Dh, h * Dh : (h + 1) * Dh] = W[h]
        same(block_diagonal(W), expected, f"the matrix of {H} heads of width {Dh}")


def test_projection_is_the_matrix(per_head_projection, block_diagonal):
    """per_head_projection(x, W) equals x @ block_diagonal(W).T."""
    # keeps: same-map
    x, W = _inputs()
    same(per_head_projection(x, W), x @ tensor(block_diagonal(W), "the matrix", (6, 6), F64).T,
         "your projection, against x times your matrix transposed")


def test_convolution(as_grouped_convolution):
    """as_grouped_convolution gives an nn.Conv1d of width 1 with groups=H and no bias: [B, D, N] to [B, D, N]."""
    # keeps: is-a-convolution, groups, same-as-convolution, any-sizes
    for H, Dh in ((3, 2), (2, 3), (1, 4)):
        x, W = _inputs(H, Dh)
        seen = run_beside(looks, as_grouped_convolution, W)
        check(seen["kind"] == "Conv1d", f"as_grouped_convolution gives a {seen['kind']}, expected an nn.Conv1d")
        for name, expected in {"in_channels": H * Dh, "out_channels": H * Dh, "kernel_size": [1], "stride": [1],
                               "padding": [0], "groups": H, "bias": False}.items():
            check(seen[name] == expected, f"the convolution for {H} heads of width {Dh} has {name} = {seen[name]}, "
                  f"expected "
                  f"{expected}")
        got = tensor(as_grouped_convolution(W)(x.mT.contiguous()), "the convolution's output", (2, H * Dh, 5))
        same(got.mT, _by_hand(x, W), f"the convolution's output, transposed, with {H} heads of width {Dh}", dtype=False)


def test_copy(as_grouped_convolution):
    """The convolution's weight is a copy of W, in W's dtype: it stays when W changes, and W when it does."""
    # keeps: copied, keeps-dtype
    for dtype in (F64, torch.float32):
        _, W = _inputs(dtype=dtype)
        seen = run_beside(copy_of_weights, as_grouped_convolution, W)
        check(seen["dtype"] == str(dtype), f"for W in {dtype} the convolution's weight is {seen['dtype']}")
        check(not seen["follows"], "the convolution's weight changes when W does: copy W")
        check(not seen["leads"], "W changes when the convolution's weight does: copy W")
        check(seen["trainable"], "the convolution's weight is no parameter that learns")


def test_gradients(per_head_projection):
    """Gradients flow to x and to W."""
    # keeps: gradients
    mine, theirs = ([t.clone().requires_grad_() for t in _inputs()] for _ in range(2))
    out = per_head_projection(*mine)
    check(out.requires_grad, "no gradient flows through per_head_projection: stay with torch, and do not detach")
    up = torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)
    (out * up).sum().backward()
    (_by_hand(*theirs) * up).sum().backward()
    for name, a, b in zip(("x", "W"), mine, theirs, strict=True):
        check(a.grad is not None, f"no gradient reaches {name}")
        same(a.grad, b.grad, f"the gradient by {name}")


def probe_projection(per_head_projection):
    return per_head_projection(*_inputs())


def probe_projection_wide(per_head_projection):
    return per_head_projection(*_inputs(2, 4))


def probe_square_projection(per_head_projection):
    return per_head_projection(*_inputs(2, 2))


def probe_matrix(block_diagonal):
    return block_diagonal(_inputs()[1])


def probe_matrix_wide(block_diagonal):
    return block_diagonal(_inputs(2, 4)[1])


def probe_convolved(as_grouped_convolution):
    x, W = _inputs()
    return as_grouped_convolution(W)(x.mT.contiguous())


def probe_convolved_wide(as_grouped_convolution):
    x, W = _inputs(2, 4)
    return as_grouped_convolution(W)(x.mT.contiguous())


def probe_looks(as_grouped_convolution):
    return run_beside(looks, as_grouped_convolution, _inputs()[1])


def probe_copy(as_grouped_convolution):
    return run_beside(copy_of_weights, as_grouped_convolution, _inputs(dtype=torch.float32)[1])


def probe_dtype(as_grouped_convolution):
    return run_beside(copy_of_weights, as_grouped_convolution, _inputs()[1])["dtype"]


def probe_gradients(per_head_projection):
    leaves = [t.requires_grad_() for t in _inputs()]
    out = per_head_projection(*leaves)
    if not out.requires_grad:
        return "no gradient"
    (out * torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_precisely(per_head_projection):
    x, W = _inputs()
    return str(bool(((per_head_projection(x, W) - _by_hand(x, W)).abs() > 1e-10).any()))


def probe_heeds_the_matrices(as_grouped_convolution):
    return run_beside(heeds_the_matrices, as_grouped_convolution, _inputs()[1])


def probe_convolved_twice(as_grouped_convolution):
    x, W = _inputs()
    return str(bool((as_grouped_convolution(W)(x.mT) == as_grouped_convolution(W)(x.mT)).all()))
