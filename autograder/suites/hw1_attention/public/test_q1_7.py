"""Public checks of q1_7: attention."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import Wrong, check, same, same_as_yours, tensor
from course_utils.explain.fingerprints import precision
from course_utils.instruments.calls import call_with_views
from course_utils.instruments.work import functions_called

F64 = torch.float64


def _run(attention, q, k, v, **options):
    got = attention(q, k, v, **options)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "attention returns the pair (out, weights)")
    out = tensor(got[0], "the output", (*q.shape[:-1], v.shape[-1]), q.dtype)
    return out, tensor(got[1], "the weights", (*q.shape[:-1], k.shape[-2]), q.dtype)


def test_worked_numbers(attention):
    """Dot products 112 and 96 at width 64 give scores 14 and 12, hence weights 0.8808 and 0.1192."""
    # keeps: formula, scale
    q, k = torch.ones(1, 1, 64, dtype=F64), torch.tensor([[[1.75], [1.5]]], dtype=F64).expand(1, 2, 64)
    v = torch.tensor([[[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]]], dtype=F64)
    out, weights = _run(attention, q, k, v)
    a, b = 1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(2.0))
    alone = weights[0, 0, 0] > 0.9999 and weights[0, 0, 1] < 1e-4
    check(not alone, "the weights are 1 and 0: the dot products were not divided by the root of 64, the width of the "
          "queries and keys")
    same(weights, torch.tensor([[[a, b]]], dtype=F64), "the weights")
    same(out, torch.tensor([[[a, b, 5.0]]], dtype=F64), "the output")


def test_padding(attention, rng):
    """True in key_padding_mask blocks a key: it has weight 0, and the others sum to 1."""
    # keeps: padding, sums
    q, k = torch.randn(2, 3, 4, generator=rng, dtype=F64), torch.randn(2, 5, 4, generator=rng, dtype=F64)
    v = torch.randn(2, 5, 6, generator=rng, dtype=F64)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    out, weights = _run(attention, q, k, v, key_padding_mask=padding)
    check((weights[1, :, :3] > 0).any(), "the real keys have no weight: is the mask upside down? True = padding")
    check((weights[1, :, 3:] == 0).all(), "a padded key has weight")
    same(weights.sum(-1), torch.ones(2, 3, dtype=F64), "the sum of the weights over the keys")
    short, _ = _run(attention, q[1:], k[1:, :3], v[1:, :3])
    same_as_yours(out[1:], short, "the output of the padded row", "without its padding")


def test_causal(attention, rng):
    """With causal=True query i sees key j iff j <= i + (S - T): the last query sees everything."""
    # keeps: causal
    for T, S in ((4, 4), (2, 5), (3, 1)):
        q, k, v = (torch.randn(2, n, 3, generator=rng, dtype=F64) for n in (T, S, S))
        _, weights = _run(attention, q, k, v, causal=True)
        seen = torch.arange(S) <= torch.arange(T)[:, None] + S - T
        check(torch.equal(weights != 0, seen.expand(2, T, S)),
              f"for T={T} and S={S} the queries see the wrong keys: row by row you have\n{(weights[0] != 0).int()}, "
              f"expected\n{seen.int()}")


def test_nothing_to_see(attention, rng):
    """A query with every key blocked gets output 0 and weights 0, never NaN; inputs are not changed."""
    # keeps: blocked-row, in-place
    q, k, v = (torch.randn(2, n, 4, generator=rng, dtype=F64) for n in (3, 5, 5))
    padding = torch.tensor([[False] * 5, [True] * 5])
    kept = [x.clone() for x in (q, k, v, padding)]
    out, weights = _run(attention, q, k, v, key_padding_mask=padding)
    check(out.isfinite().all() and weights.isfinite().all(), "NaN: a softmax over nothing but -inf")
    check((weights[1] == 0).all() and (out[1] == 0).all(), "with every key blocked, both must be exactly 0")
    check((weights[0].sum(-1) - 1).abs().max() < 1e-9, "in the other row the weights do not sum to 1 over the keys")
    for name, a, b in zip(("q", "k", "v", "key_padding_mask"), (q, k, v, padding), kept, strict=True):
        check(torch.equal(a, b), f"{name} was changed in place: work on new tensors")


def _expected(q, k, v, padding=None, causal=False, beta=None):
    """One query after another, over the keys that it may see."""
    T, S = q.shape[-2], k.shape[-2]
    beta = q.shape[-1] ** -0.5 if beta is None else beta
    out, weights = q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_zeros(*q.shape[:-1], S)
    for place in torch.cartesian_prod(*(torch.arange(n) for n in q.shape[:-1])).tolist():
        *lead, i = place
        lead = tuple(lead)
        sees = [j for j in range(S) if not (padding is not None and padding[lead[0], j])
                and not (causal and j > i + S - T)]
        if sees:
            seen = torch.softmax(beta * (k[lead][sees] @ q[(*lead, i)]), -1)
            weights[(*lead, i, sees)] = seen
            out[(*lead, i)] = seen @ v[lead][sees]
    return out, weights


def _compare(attention, rng, *lead, T=3, S=5, padding=None, dtype=F64, told="", **options):
    q, k, v = (torch.randn(*lead, *shape, generator=rng, dtype=dtype) for shape in ((T, 4), (S, 4), (S, 6)))
    given = options if padding is None else {"key_padding_mask": padding, **options}
    out, weights = _run(attention, q, k, v, **given)
    expected = _expected(q, k, v, padding, **options)
    same(weights, expected[1], f"the weights{told}")
    same(out, expected[0], f"the output{told}")


GAPS = torch.tensor([[False, True, False, False, True], [True, False, False, False, False]])  # padding at any place


def test_each_head(attention, rng):
    """With heads [B, H, N, Dh] every head attends for itself, scaled by its own width; padding is its example's."""
    # keeps: heads, scale, padding
    _compare(attention, rng, 2, 3, told=" with three heads")
    _compare(attention, rng, 2, 3, padding=GAPS, told=" with three heads and padding")
    _compare(attention, rng, 2, 3, T=5, padding=GAPS, causal=True, told=" with three heads and both masks")


def test_padding_at_any_place(attention, rng):
    """Padding may stand in front or in the middle; what lies under it has no say, however large its score."""
    # keeps: padding
    _compare(attention, rng, 2, padding=GAPS, told=" with padding in the middle")
    _compare(attention, rng, 2, T=5, padding=GAPS, told=" of five queries and five keys with padding")
    q, k, v = (torch.randn(2, n, 4, generator=rng, dtype=F64) for n in (3, 5, 5))
    loud = torch.where(GAPS[..., None], 100 * q[:, :1].sum(1, keepdim=True), k)
    same(_run(attention, q, loud, v, key_padding_mask=GAPS)[0], _expected(q, k, v, GAPS)[0],
         "the output with loud keys under the padding")


def test_both_masks(attention, rng):
    """A key is blocked if either mask blocks it, for a single query too."""
    # keeps: both
    _compare(attention, rng, 2, T=4, padding=GAPS, causal=True, told=" with both masks")
    _compare(attention, rng, 2, T=1, padding=GAPS, causal=True, told=" of a single query with both masks")


def test_own_beta(attention, rng):
    """beta takes the place of the scale; beta = 0 spreads evenly over the keys that are not blocked."""
    # keeps: beta, beta-zero
    _compare(attention, rng, 2, beta=1.7, told=" at beta = 1.7")
    _compare(attention, rng, 2, beta=0.0, told=" at beta = 0")
    _compare(attention, rng, 2, T=4, padding=GAPS, causal=True, beta=0.0, told=" at beta = 0 with both masks")


def test_what_learns(attention, rng):
    """Gradients are those of the formula, with masks too, and finite beside a row that sees nothing."""
    # keeps: blocked-gradient, gradients
    padding = torch.tensor([[False, True, False], [True, True, True]])
    leaves = [torch.randn(2, n, 3, generator=rng, dtype=F64).requires_grad_() for n in (2, 3, 3)]
    attention(*leaves, key_padding_mask=padding, causal=True)[0].square().sum().backward()
    others = [leaf.detach()[:1].clone().requires_grad_() for leaf in leaves]  # only the first example sees anything
    out, _ = _expected(*others, padding[:1], causal=True)
    out.square().sum().backward()
    for name, got, right in zip("qkv", leaves, others, strict=True):
        check(got.grad is not None, f"{name} gets no gradient: is something detached?")
        check(got.grad.isfinite().all(), f"the gradient of {name} is not finite beside a row with every key blocked")
        same(got.grad, torch.cat([right.grad, torch.zeros_like(right.grad)]), f"the gradient of {name}", rtol=1e-5,
             atol=1e-8)


def test_dtype_and_size(attention, rng):
    """float32 and float64 are kept, all the way; scores of any size give finite weights."""
    # keeps: dtype, formula
    _compare(attention, rng, 2, dtype=torch.float32, told=" in float32")
    q, k, v = (torch.randn(2, n, 4, generator=rng, dtype=F64) for n in (3, 5, 5))
    same(_run(attention, q, k, v)[1].sum(-1), torch.ones(2, 3, dtype=F64), "the sum of the weights", rtol=0, atol=1e-12)
    out, weights = _run(attention, 300 * q, 300 * k, v)
    check(out.isfinite().all() and weights.isfinite().all(), "large scores give NaN or infinity")


def test_views(attention, rng):
    """Heads that were split off by a transpose, and so do not lie together in memory, give the same result."""
    # keeps: heads
    q, k, v = (torch.randn(2, n, 3, 4, generator=rng, dtype=F64) for n in (3, 5, 5))
    heads = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    usual, _ = _run(attention, *heads)
    try:
        got = run_beside(call_with_views, attention, *heads)
    except Exception as error:
        raise Wrong("heads that were made by a transpose are refused: `reshape` takes them, `view` does not") from error
    same_as_yours(got[0], usual, "the output for heads that are views", "for copies of them")


def test_ruled_out_functions(attention, rng):
    """Neither F.scaled_dot_product_attention nor nn.MultiheadAttention is called."""
    # keeps: ruled-out
    q, k, v = (torch.randn(1, n, 4, generator=rng, dtype=F64) for n in (3, 5, 5))
    _, used = run_beside(functions_called, attention, q, k, v)
    for name in ("scaled_dot_product_attention", "multi_head_attention_forward"):
        check(not any(call.endswith(name) for call in used), f"your answer calls {name}, which this question rules out")


def _inputs(*lead, T=3, S=5, D=4, Dv=6):
    g = torch.Generator().manual_seed(71)
    return [torch.randn(*lead, *shape, generator=g, dtype=F64) for shape in ((T, D), (S, D), (S, Dv))]


PADDING = torch.tensor([[False, False, True, False, True], [True, False, False, False, False]])


def probe_plain(attention):
    return attention(*_inputs(2))


def probe_weights(attention):
    return attention(*_inputs(2))[1]


def probe_padding(attention):
    return attention(*_inputs(2), key_padding_mask=PADDING)


def probe_causal_square(attention):
    return attention(*_inputs(2, T=4, S=4), causal=True)


def probe_causal_fewer_queries(attention):
    return attention(*_inputs(2), causal=True)


def probe_causal_more_queries(attention):
    return attention(*_inputs(2, T=6, S=4), causal=True)


def probe_padding_and_causal(attention):
    return attention(*_inputs(2, T=4), key_padding_mask=PADDING, causal=True)


def probe_all_padded(attention):
    return attention(*_inputs(2), key_padding_mask=PADDING | torch.tensor([[True], [False]]))


def probe_beta(attention):
    return attention(*_inputs(2), beta=1.7)


def probe_beta_zero(attention):
    return attention(*_inputs(2), beta=0.0)


def probe_beta_with_padding(attention):
    return attention(*_inputs(2), key_padding_mask=PADDING, beta=0.9)


def probe_heads(attention):
    return attention(*_inputs(2, 3))


def probe_heads_padding(attention):
    return attention(*_inputs(2, 3), key_padding_mask=PADDING)


def probe_heads_all_masks(attention):
    return attention(*_inputs(2, 3, T=4), key_padding_mask=PADDING, causal=True, beta=0.6)


def probe_self_attention_with_padding(attention):
    return attention(*_inputs(2, T=5), key_padding_mask=PADDING)


def probe_very_low_scores(attention):
    q, k, v = _inputs(2)
    return attention(torch.full_like(q, 100.0), torch.full_like(k, -100.0), v, key_padding_mask=PADDING)


def probe_one_row(attention):
    return attention(*_inputs(1, T=1), key_padding_mask=PADDING[:1])


def probe_large_scores(attention):
    q, k, v = _inputs(2)
    return attention(100 * q, 100 * k, v, key_padding_mask=PADDING)


def probe_precision(attention):
    return precision(attention(*_inputs(2))[1].sum(-1) - 1)


def probe_float32(attention):
    return [str(x.dtype) for x in attention(*(x.float() for x in _inputs(2)), key_padding_mask=PADDING)]


def probe_gradient(attention):
    q, k, v = (x.requires_grad_() for x in _inputs(2))
    out, _ = attention(q, k, v, key_padding_mask=PADDING | torch.tensor([[True], [False]]))
    (out * torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)).sum().backward()
    return [q.grad, k.grad, v.grad]


def probe_ruled_out(attention):
    _, used = run_beside(functions_called, attention, *_inputs(2))
    names = ("multi_head_attention_forward", "scaled_dot_product_attention")
    return [any(call.endswith(name) for call in used) for name in names]


def probe_heads_split_from_a_model(attention):
    return run_beside(call_with_views, attention, *_inputs(2, 3))


def probe_beta_zero_with_masks(attention):
    return attention(*_inputs(2, T=4), key_padding_mask=PADDING, causal=True, beta=0.0)


def probe_causal_runs_for_any_lengths(attention):
    try:
        return list(attention(*_inputs(2), causal=True)[1].shape)
    except Exception:
        return "fails"


def probe_as_many_heads_as_examples(attention):
    return attention(*_inputs(2, 2), key_padding_mask=PADDING)


def probe_mask_stays(attention):
    padding = PADDING.clone()
    attention(*_inputs(2), key_padding_mask=padding, causal=True)
    return bool(torch.equal(padding, PADDING))
