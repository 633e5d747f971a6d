"""Public checks of q2_1: split_heads and merge_heads."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_slices

F64 = torch.float64


def _numbered(B, N, D):
    """Entries that tell where they come from: row b, token n, column d reads b * 10000 + n * 100 + d."""
    b, n, d = (torch.arange(size, dtype=F64) for size in (B, N, D))
    return 10000 * b[:, None, None] + 100 * n[:, None] + d


def test_which_column_goes_where(split_heads):
    """Head h of [B, N, D] holds columns h * Dh to (h + 1) * Dh - 1 of every token, in order."""
    # keeps: split
    x = _numbered(2, 5, 12)
    got = tensor(split_heads(x, 3), "split_heads of [2, 5, 12] with 3 heads", (2, 3, 5, 4), F64)
    check(not torch.equal(got, x.reshape(2, 3, 5, 4)), "the shape is right, but tokens are torn apart: a `view` or "
          "`reshape` alone keeps the order in memory. First unfold the last axis, then swap two axes")
    for h in range(3):
        same(got[:, h], x[:, :, 4 * h : 4 * h + 4], f"head {h}, against columns {4 * h} to {4 * h + 3}")


def test_merge_puts_heads_side_by_side(merge_heads):
    """merge_heads lays the heads of each token side by side, the first head first: [B, H, N, Dh] -> [B, N, H * Dh]."""
    # keeps: merge
    x = _numbered(2, 5, 12)
    heads = torch.stack([x[:, :, 4 * h : 4 * h + 4] for h in range(3)], 1)
    same(merge_heads(heads), x, "merge_heads of [2, 3, 5, 4]")


def test_round_trips(split_heads, merge_heads, rng):
    """merge_heads undoes split_heads and split_heads undoes merge_heads, exactly, for any number of heads."""
    # keeps: inverses
    for B, N, D, H in ((2, 5, 12, 3), (3, 4, 6, 1), (1, 3, 8, 8)):
        x = torch.randn(B, N, D, generator=rng)
        same(merge_heads(split_heads(x, H)), x, f"merge_heads(split_heads(x, {H}))", rtol=0, atol=0)
        heads = torch.randn(B, H, N, D // H, generator=rng)
        same(split_heads(merge_heads(heads), H), heads, f"split_heads(merge_heads(x), {H})", rtol=0, atol=0)


def test_only_numbers_move(split_heads, merge_heads, rng):
    """Any dtype goes through, whole numbers and truth values too, and gradients pass."""
    # keeps: dtypes, gradients
    for dtype in (torch.int64, torch.bool, torch.float32):
        x = torch.randint(2, (2, 3, 4), generator=rng).to(dtype)
        back = merge_heads(split_heads(x, 2))
        check(back.dtype == dtype and torch.equal(back, x), f"{dtype} does not come back as it went in")
    x = torch.randn(2, 3, 4, generator=rng, dtype=F64, requires_grad=True)
    heads = split_heads(x, 2)
    check(heads.requires_grad, "no gradient passes through split_heads")
    merged = merge_heads(heads)
    check(merged.requires_grad, "no gradient passes through merge_heads")
    up = torch.randn(2, 3, 4, generator=rng, dtype=F64)
    (merged * up).sum().backward()
    same(x.grad, up, "the gradient through both")


def probe_split(split_heads):
    return split_heads(_numbered(2, 5, 12), 3)


def probe_split_one_head(split_heads):
    return split_heads(_numbered(2, 3, 4), 1)


def probe_split_narrow_heads(split_heads):
    return split_heads(_numbered(3, 2, 6), 6)


def probe_split_as_many_heads_as_tokens(split_heads):
    return split_heads(_numbered(2, 3, 6), 3)


def probe_merge(merge_heads):
    return merge_heads(_numbered(6, 5, 4).reshape(2, 3, 5, 4))


def probe_merge_one_head(merge_heads):
    return merge_heads(_numbered(2, 3, 4).reshape(2, 1, 3, 4))


def probe_merge_narrow_heads(merge_heads):
    return merge_heads(_numbered(6, 5, 1).reshape(2, 3, 5, 1))


def probe_merge_as_many_heads_as_tokens(merge_heads):
    return merge_heads(_numbered(6, 3, 4).reshape(2, 3, 3, 4))


def probe_float32(split_heads, merge_heads):
    x = _numbered(2, 5, 12).float()
    return [str(split_heads(x, 3).dtype), str(merge_heads(x.reshape(2, 2, 5, 6)).dtype)]


def probe_both(split_heads, merge_heads):
    return merge_heads(split_heads(_numbered(2, 5, 12), 3))


def probe_split_of_a_slice(split_heads):
    return run_beside(call_with_slices, split_heads, _numbered(2, 5, 12), 3)


def probe_merge_of_a_slice(merge_heads):
    return run_beside(call_with_slices, merge_heads, _numbered(6, 5, 4).reshape(2, 3, 5, 4))


def probe_gradient_passes(split_heads, merge_heads):
    x = torch.randn(2, 3, 4, dtype=torch.float64).requires_grad_()
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    return [bool(split_heads(x, 2).requires_grad), bool(merge_heads(heads).requires_grad)]
