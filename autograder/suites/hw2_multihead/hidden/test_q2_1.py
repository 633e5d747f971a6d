"""Hidden checks of q2_1: split_heads and merge_heads."""

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_slices, call_with_views

F64 = torch.float64
SIZES = [(2, 5, 3, 4), (3, 4, 2, 5), (4, 7, 6, 1), (2, 6, 1, 3), (1, 3, 4, 2), (3, 1, 2, 4)]  # B, N, H, Dh


def _draw(rng, *shape, dtype=F64):
    return torch.randn(*shape, generator=rng, dtype=F64).to(dtype)


def _split(x, H):
    """Head by head, by the columns that it holds."""
    Dh = x.shape[-1] // H
    return torch.stack([x[:, :, h * Dh : (h + 1) * Dh] for h in range(H)], 1)


def _merge(x):
    """The heads of each token, side by side."""
    return torch.cat([x[:, h] for h in range(x.shape[1])], -1)


def test_shapes_and_dtypes(split_heads, merge_heads, rng):
    """[B, N, D] becomes [B, H, N, Dh] and comes back as [B, N, D], in the input's dtype."""
    for B, N, H, Dh in SIZES:
        for dtype in (torch.float32, F64):
            x, heads = _draw(rng, B, N, H * Dh, dtype=dtype), _draw(rng, B, H, N, Dh, dtype=dtype)
            tensor(split_heads(x, H), f"split_heads of {[B, N, H * Dh]} with {H} heads", (B, H, N, Dh), dtype)
            tensor(merge_heads(heads), f"merge_heads of {[B, H, N, Dh]}", (B, N, H * Dh), dtype)


@pytest.mark.weight(3)
def test_split_values(split_heads, rng):
    """Head h of every token holds that token's columns h * Dh to (h + 1) * Dh - 1, in their order."""
    for B, N, H, Dh in SIZES:
        x = _draw(rng, B, N, H * Dh)
        same_or_because(split_heads(x, H), _split(x, H), f"split_heads of {[B, N, H * Dh]} with {H} heads", {
            "a `view` or `reshape` straight to [B, H, N, Dh] keeps the order in memory and tears tokens apart; unfold "
            "the last axis first, then swap the axes of tokens and heads": x.reshape(B, H, N, Dh),
            "the last axis is unfolded as [Dh, H], so a head holds every H-th column; a head's columns are neighbours":
                x.reshape(B, N, Dh, H).permute(0, 3, 1, 2),
            "the heads stand in the third axis; tokens and heads have yet to be swapped": x.reshape(B, N, H, Dh),
            "the batch's axis and the heads' axis are swapped": _split(x, H).transpose(0, 1),
            "the heads come in reverse order": _split(x, H).flip(1),
        }, rtol=0, atol=0)


@pytest.mark.weight(3)
def test_merge_values(merge_heads, rng):
    """Every token gets its heads side by side, the first head first."""
    for B, N, H, Dh in SIZES:
        heads = _draw(rng, B, H, N, Dh)
        same_or_because(merge_heads(heads), _merge(heads), f"merge_heads of {[B, H, N, Dh]}", {
            "a `reshape` without the swap mixes tokens; swap the axes of heads and tokens back first":
                heads.reshape(B, N, H * Dh),
            "the merged columns run as [Dh, H], so heads are interleaved; a head's columns are neighbours":
                heads.permute(0, 2, 3, 1).reshape(B, N, H * Dh),
            "the heads come in reverse order": _merge(heads.flip(1)),
        }, rtol=0, atol=0)


@pytest.mark.weight(2)
def test_inverses(split_heads, merge_heads, rng):
    """Each undoes the other exactly, bit for bit."""
    for B, N, H, Dh in SIZES:
        x, heads = _draw(rng, B, N, H * Dh), _draw(rng, B, H, N, Dh)
        split = tensor(split_heads(x, H), f"split_heads with {H} heads", (B, H, N, Dh), F64)
        same(merge_heads(split), x, f"merge_heads(split_heads(x, {H}))", rtol=0, atol=0)
        merged = tensor(merge_heads(heads), f"merge_heads with {H} heads", (B, N, H * Dh), F64)
        same(split_heads(merged, H), heads, f"split_heads(merge_heads(x), {H})", rtol=0, atol=0)


def test_tokens_stay_apart(split_heads, rng):
    """A change in one token, or in one column, is seen in that token and in that head alone."""
    x = _draw(rng, 3, 5, 12)
    before = tensor(split_heads(x, 4), "split_heads of [3, 5, 12] with 4 heads", (3, 4, 5, 3), F64)
    for b, n, d in ((0, 0, 0), (1, 3, 7), (2, 4, 11), (1, 2, 5)):
        other = x.clone()
        other[b, n, d] += 1
        moved = tensor(split_heads(other, 4), "split_heads of [3, 5, 12] with 4 heads", (3, 4, 5, 3), F64) != before
        found, expected = moved.nonzero().tolist(), [[b, d // 3, n, d % 3]]
        check(found == expected, f"column {d} of token {n} in row {b} is found at {found[:3]} in [B, H, N, Dh], "
              f"expected at {expected[0]}: head {d // 3}, token {n}, column {d % 3} of that head")


def test_views_of_other_tensors(split_heads, merge_heads, in_box, rng):
    """Slices and transposes of other tensors are split and merged by their values, however they lie in memory."""
    for layout, call in (("a slice of a wider tensor", call_with_slices), ("a transpose", call_with_views)):
        x, heads = _draw(rng, 2, 5, 12), _draw(rng, 2, 3, 5, 4)
        told = f"of {layout} (index axes, and leave the strides to torch)"
        same(in_box(call, split_heads, x, 3), _split(x, 3), f"split_heads {told}", rtol=0, atol=0)
        same(in_box(call, merge_heads, heads), _merge(heads), f"merge_heads {told}", rtol=0, atol=0)


def _identical(a, b):
    return bool(((a == b) | ((a != a) & (b != b))).all())  # NaN is where NaN was


def test_any_numbers(split_heads, merge_heads, rng):
    """Numbers are moved and nothing else: bools, whole numbers of 60 bits, infinities and NaN arrive as they were."""
    odd = _draw(rng, 2, 5, 12)
    odd[0, 1, 2], odd[1, 3, 7], odd[0, 4, 11] = float("inf"), -float("inf"), float("nan")
    whole = torch.randint(2**60, (2, 5, 12), generator=rng)
    for kind, x in (("bools", odd > 0), ("whole numbers", whole), ("infinities and NaN", odd)):
        told = f"of {kind} (move the numbers, do not compute with them)"
        split = tensor(split_heads(x, 3), f"split_heads {told}", (2, 3, 5, 4), x.dtype)
        check(_identical(split, _split(x, 3)), f"split_heads {told} has other numbers, or has them elsewhere")
        merged = tensor(merge_heads(_split(x, 3)), f"merge_heads {told}", (2, 5, 12), x.dtype)
        check(_identical(merged, x), f"merge_heads {told} has other numbers, or has them elsewhere")


def test_gradients(split_heads, merge_heads, rng):
    """Gradients flow back through both, each entry to where it came from."""
    x, heads = _draw(rng, 2, 5, 12).requires_grad_(), _draw(rng, 2, 3, 5, 4).requires_grad_()
    for name, leaf, out, expected in (
        ("split_heads", x, split_heads(x, 3), _merge),
        ("merge_heads", heads, merge_heads(heads), lambda g: _split(g, 3)),
    ):
        out = tensor(out, name, (2, 3, 5, 4) if name == "split_heads" else (2, 5, 12), F64)
        check(out.requires_grad, f"no gradient flows through {name}: stay with torch, and do not detach")
        up = _draw(rng, *out.shape)
        (got,) = torch.autograd.grad(out, leaf, up)
        same(got, expected(up), f"the gradient through {name}")
