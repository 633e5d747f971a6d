"""Public checks of q2_2: MultiHeadAttention, against nn.MultiheadAttention with the same weights."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.explain.fingerprints import precision
from course_utils.instruments.calls import call_with_shared
from course_utils.instruments.torch_match import projection_weights, torch_twin, twin_attention
from course_utils.instruments.work import functions_called

F64 = torch.float64
D, H = 6, 3
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True], [False, True, False, False, True]])


def _weights(d_model=D, bias=True):
    return projection_weights(d_model, torch.Generator().manual_seed(22), bias)


def _module(MultiHeadAttention, d_model=D, n_heads=H, bias=True, **options):
    """The module in float64 and eval mode, with fixed weights put in by name."""
    mha = MultiHeadAttention(d_model, n_heads, bias=bias, **options)
    mha.double()
    mha.eval()
    state, weights = dict(mha.state_dict()), _weights(d_model, bias)
    missing = [name for name in weights if name not in state]
    check(not missing, f"the module has no {', '.join(missing)}: its projections are q_proj, k_proj, v_proj and o_proj")
    mha.load_state_dict({**state, **weights})
    return mha


def _inputs(B=3, T=4, S=5, d_model=D):
    g = torch.Generator().manual_seed(23)
    return [torch.randn(B, n, d_model, generator=g, dtype=F64) for n in (T, S, S)]


def _run(mha, query, key, value, **options):
    got = mha(query, key, value, **options)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
    (B, T, _), S = query.shape, key.shape[1]
    out = tensor(got[0], "the output", query.shape, query.dtype)
    return out, tensor(got[1], "the weights", (B, H, T, S), query.dtype)


def test_names(MultiHeadAttention):
    """The projections are q_proj, k_proj, v_proj and o_proj; a width that the heads do not divide is a ValueError."""
    check(_module(MultiHeadAttention).n_heads == H, "the attribute n_heads is not the number of heads")
    expect_value_error("MultiHeadAttention(10, 4), where 4 does not divide 10,", MultiHeadAttention, 10, 4)


def test_against_torch(MultiHeadAttention):
    """With its weights copied over, nn.MultiheadAttention gives the same output and the same weights."""
    mha, inputs = _module(MultiHeadAttention), _inputs()
    out, weights = _run(mha, *inputs)
    expected = twin_attention(torch_twin(_weights(), H), *inputs)
    same(weights, expected[1], "the weights (scores are divided by sqrt(Dh), Dh = D / H)")
    same(out, expected[0], "the output")


def test_masks_against_torch(MultiHeadAttention):
    """The same with padding that differs from row to row, with causal=True, and with both."""
    mha, inputs = _module(MultiHeadAttention), _inputs()
    for options in ({"key_padding_mask": PADDING}, {"causal": True}, {"key_padding_mask": PADDING, "causal": True}):
        out, weights = _run(mha, *inputs, **options)
        expected = twin_attention(torch_twin(_weights(), H), *inputs, **options)
        told = " and ".join(options)
        same(weights, expected[1], f"the weights with {told}")
        same(out, expected[0], f"the output with {told}")


def test_nothing_to_see(MultiHeadAttention):
    """A row with every key blocked has weights 0 and gives o_proj's bias; it is never NaN."""
    mha, inputs = _module(MultiHeadAttention), _inputs()
    out, weights = _run(mha, *inputs, key_padding_mask=PADDING | torch.tensor([[False], [True], [False]]))
    check(out.isfinite().all() and weights.isfinite().all(), "NaN: a softmax over nothing but -inf")
    check((weights[1] == 0).all(), "with every key blocked the weights must be exactly 0")
    same(out[1], _weights()["o_proj.bias"].expand(4, D), "the output of the blocked row, against o_proj's bias")


def probe_names(MultiHeadAttention):
    return sorted(name for name in MultiHeadAttention(D, H).state_dict() if name.endswith(("weight", "bias")))


def probe_names_without_bias(MultiHeadAttention):
    return sorted(name for name in MultiHeadAttention(D, H, bias=False).state_dict() if name.endswith("bias"))


def probe_n_heads(MultiHeadAttention):
    return MultiHeadAttention(D, 2).n_heads


def probe_value_error(MultiHeadAttention):
    return raises_value_error(MultiHeadAttention, 10, 4)


def probe_self_attention(MultiHeadAttention):
    x = _inputs()[0]
    return _module(MultiHeadAttention)(x, x, x)


def probe_cross_attention(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs())


def probe_output(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs())[0]


def probe_weights(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs())[1]


def probe_one_head(MultiHeadAttention):
    return _module(MultiHeadAttention, n_heads=1)(*_inputs())


def probe_other_heads(MultiHeadAttention):
    return _module(MultiHeadAttention, d_model=8, n_heads=2)(*_inputs(d_model=8))


def probe_without_bias(MultiHeadAttention):
    return _module(MultiHeadAttention, bias=False)(*_inputs())


def probe_padding(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(), key_padding_mask=PADDING)


def probe_padding_square(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(T=5), key_padding_mask=PADDING)


def probe_causal(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(), causal=True)


def probe_causal_square(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(T=5), causal=True)


def probe_causal_more_queries(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(T=7), causal=True)


def probe_both_masks(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(T=5), key_padding_mask=PADDING, causal=True)


def probe_nothing_to_see(MultiHeadAttention):
    blocked = PADDING | torch.tensor([[False], [True], [False]])
    return _module(MultiHeadAttention)(*_inputs(), key_padding_mask=blocked)


def probe_nothing_to_see_without_bias(MultiHeadAttention):
    return _module(MultiHeadAttention, bias=False)(*_inputs(), key_padding_mask=PADDING | True)


def probe_gradients(MultiHeadAttention):
    leaves = [x.requires_grad_() for x in _inputs()]
    blocked = PADDING | torch.tensor([[False], [True], [False]])
    out = _module(MultiHeadAttention)(*leaves, key_padding_mask=blocked)[0]
    (out * torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_float32(MultiHeadAttention):
    mha = _module(MultiHeadAttention)
    mha.float()
    return [str(x.dtype) for x in mha(*(x.float() for x in _inputs()), causal=True)]


def probe_eval_mode(MultiHeadAttention):
    return _module(MultiHeadAttention, dropout=0.5)(*_inputs())


def probe_eval_mode_repeats(MultiHeadAttention):
    mha = _module(MultiHeadAttention, dropout=0.5)
    return bool(torch.equal(mha(*_inputs())[0], mha(*_inputs())[0]))


def probe_dropout_default(MultiHeadAttention):
    mha = _module(MultiHeadAttention)
    mha.train()
    return mha(*_inputs())[0]


def _dropped(MultiHeadAttention, p=0.25, n_heads=1):
    """Training mode, one key: (out - bias) as a share of what eval mode gives, 400 rows: [400, 2, D]."""
    mha, bias = _module(MultiHeadAttention, n_heads=n_heads, dropout=p), _weights()["o_proj.bias"]
    inputs = [x.expand(400, -1, -1) for x in _inputs(B=1, T=2, S=1)]
    plain = (twin_attention(torch_twin(_weights(), n_heads), *(x[:1] for x in inputs))[0] - bias).detach()
    mha.train()
    return (mha(*inputs)[0].detach() - bias) / plain


def probe_something_is_dropped(MultiHeadAttention):
    return bool((_dropped(MultiHeadAttention) - 1).abs().max() > 1e-6)


def probe_dropped_whole(MultiHeadAttention):
    share = _dropped(MultiHeadAttention)
    return bool((share - share[..., :1]).abs().max() < 1e-6)


def probe_kept_are_scaled(MultiHeadAttention):
    share = _dropped(MultiHeadAttention)
    return bool(((share.abs() < 1e-6) | ((share - 4 / 3).abs() < 1e-6)).all())


def probe_share_of_dropped(MultiHeadAttention):
    rate = (_dropped(MultiHeadAttention)[..., 0].abs() < 1e-6).double().mean().item()
    return "about p" if 0.15 < rate < 0.35 else "about 1 - p" if 0.65 < rate < 0.85 else f"about {10 * rate:.0f} of 10"


def probe_drops_query_by_query(MultiHeadAttention):
    share = _dropped(MultiHeadAttention)
    return bool((share[:, 0] - share[:, 1]).abs().max() > 1e-6)


def probe_drops_head_by_head(MultiHeadAttention):
    share = _dropped(MultiHeadAttention, n_heads=3)
    return bool(((share.abs() > 1e-6) & ((share - 4 / 3).abs() > 1e-6)).any())


def probe_ruled_out(MultiHeadAttention):
    _, used = run_beside(functions_called, _module(MultiHeadAttention), *_inputs())
    names = ("multi_head_attention_forward", "scaled_dot_product_attention")
    return [any(call.endswith(name) for call in used) for name in names]


def probe_positional_arguments(MultiHeadAttention):
    return _module(MultiHeadAttention)(*_inputs(), PADDING, True)


def probe_other_parameters(MultiHeadAttention):
    return any(name not in _weights() for name in MultiHeadAttention(D, H).state_dict())


def probe_second_call(MultiHeadAttention):
    mha, inputs = _module(MultiHeadAttention), _inputs()
    mha(*inputs, key_padding_mask=PADDING)
    return mha(*inputs, key_padding_mask=PADDING.flip(0))


def probe_large_scores(MultiHeadAttention):
    query, key, value = _inputs()
    return _module(MultiHeadAttention)(60 * query, 60 * key, value)


def _passes_differ(MultiHeadAttention, **options):
    mha = _module(MultiHeadAttention, dropout=0.5)
    mha.train()
    first, second = (mha(*_inputs(), **options)[0] for _ in range(2))
    return bool((first - second).abs().max() > 1e-6)


def probe_training_passes_differ(MultiHeadAttention):
    return _passes_differ(MultiHeadAttention)


def probe_causal_training_passes_differ(MultiHeadAttention):
    return _passes_differ(MultiHeadAttention, causal=True)


def probe_padded_training_passes_differ(MultiHeadAttention):
    return _passes_differ(MultiHeadAttention, key_padding_mask=PADDING)


def probe_precision(MultiHeadAttention):
    out, weights = _module(MultiHeadAttention)(*_inputs())
    expected = twin_attention(torch_twin(_weights(), H), *_inputs())
    return [precision(out - expected[0]), precision(weights - expected[1])]


def probe_padding_on_the_left(MultiHeadAttention):
    left = torch.arange(5) < torch.tensor([[0], [2], [4]])
    return _module(MultiHeadAttention)(*_inputs(T=5), key_padding_mask=left, causal=True)


def probe_query_and_key_are_one(MultiHeadAttention):
    return run_beside(call_with_shared, _module(MultiHeadAttention), _inputs(T=5)[:2], [0, 0, 1])


def probe_gradient_of_the_weights(MultiHeadAttention):
    query, key, value = _inputs()
    weights = _module(MultiHeadAttention)(query.requires_grad_(), key, value)[1]
    if not weights.requires_grad:
        return "no gradient"
    (weights * torch.linspace(-1, 1, weights.numel(), dtype=F64).reshape(weights.shape)).sum().backward()
    return query.grad
