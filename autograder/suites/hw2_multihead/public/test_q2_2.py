"""Public checks of q2_2: MultiHeadAttention, against nn.MultiheadAttention with the same weights."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.explain.fingerprints import precision
from course_utils.hw2.modules import parameter_names
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
    """The projections are q_proj, k_proj, v_proj and o_proj, with biases if asked for, and nothing else is learned."""
    # keeps: projections, n-heads, no-biases
    check(_module(MultiHeadAttention).n_heads == H, "the attribute n_heads is not the number of heads")
    for bias in (True, False):
        found, expected = run_beside(parameter_names, MultiHeadAttention, D, H, 0.0, bias), sorted(_weights(bias=bias))
        check(found == expected, f"with bias={bias} the parameters are {', '.join(found)}; expected are "
              f"{', '.join(expected)}, and no others")


def test_width_that_does_not_split(MultiHeadAttention):
    """A width that the heads do not divide is a ValueError when the module is made."""
    # keeps: divides
    expect_value_error("MultiHeadAttention(10, 4), where 4 does not divide 10,", MultiHeadAttention, 10, 4)


def test_against_torch(MultiHeadAttention):
    """With its weights copied over, nn.MultiheadAttention gives the same output and the same weights."""
    # keeps: head-columns, scale, agrees
    mha, inputs = _module(MultiHeadAttention), _inputs()
    out, weights = _run(mha, *inputs)
    expected = twin_attention(torch_twin(_weights(), H), *inputs)
    same(weights, expected[1], "the weights (scores are divided by sqrt(Dh), Dh = D / H)")
    same(out, expected[0], "the output")


def test_masks_against_torch(MultiHeadAttention):
    """The same with padding by row and by call, with causal=True, with both (of one query too), without biases."""
    # keeps: agrees, padding, causal
    both = {"key_padding_mask": PADDING, "causal": True}
    for bias in (True, False):
        mha = _module(MultiHeadAttention, bias=bias)
        for T, options in ((4, {"key_padding_mask": PADDING}), (4, {"causal": True}), (4, both), (1, both),
                           (4, {"key_padding_mask": PADDING.flip(0)})):
            inputs = _inputs(T=T)
            out, weights = _run(mha, *inputs, **options)
            expected = twin_attention(torch_twin(_weights(bias=bias), H), *inputs, **options)
            told = f"{' and '.join(options)}{' for a single query' if T == 1 else ''}"
            same(weights, expected[1], f"the weights with {told}")
            same(out, expected[0], f"the output with {told}")


def test_self_and_cross(MultiHeadAttention):
    """Queries, keys and values may be one tensor or three, or two of them the same: each is projected from its own."""
    # keeps: self-and-cross
    mha, (x, y, z) = _module(MultiHeadAttention), _inputs(T=5)
    for given, places in (((x,), (0, 0, 0)), ((x, y), (0, 1, 1)), ((x, y), (0, 0, 1)), ((x, y, z), (0, 1, 2))):
        got = run_beside(call_with_shared, mha, list(given), list(places))
        expected = twin_attention(torch_twin(_weights(), H), *(given[i] for i in places))
        same(got[0], expected[0], f"the output where query, key and value are the tensors {places}")


def test_causal_when_lengths_differ(MultiHeadAttention):
    """The last query is level with the last key: query i sees key j iff j <= i + (S - T), for T > S too."""
    # keeps: causal, nothing-to-see
    mha = _module(MultiHeadAttention)
    for T, S in ((2, 5), (5, 3)):
        _, weights = _run(mha, *_inputs(T=T, S=S), causal=True)
        seen = torch.arange(S) <= torch.arange(T)[:, None] + (S - T)
        check(weights.isfinite().all(), f"the weights with T={T}, S={S} and causal=True have NaN")
        check(torch.equal(weights > 0, seen.expand_as(weights)), f"with T={T}, S={S} and causal=True the wrong keys "
              f"are seen: "
              "query i sees key j iff j <= i + (S - T)")


def test_nothing_to_see(MultiHeadAttention):
    """A query with every key blocked, by one mask or both, has weights 0 and gives o_proj's bias; never NaN."""
    # keeps: nothing-to-see
    mha, inputs = _module(MultiHeadAttention), _inputs(T=5)
    bias = _weights()["o_proj.bias"]
    out, weights = _run(mha, *inputs, key_padding_mask=PADDING | torch.tensor([[False], [True], [False]]))
    check(out.isfinite().all() and weights.isfinite().all(), "NaN: a softmax over nothing but -inf")
    check((weights[1] == 0).all(), "with every key blocked the weights must be exactly 0")
    same(out[1], bias.expand(5, D), "the output of the blocked row, against o_proj's bias")
    left = PADDING.flip(1)  # padding on the left: with causal=True the first queries see nothing
    out, weights = _run(mha, *inputs, key_padding_mask=left, causal=True)
    check(out.isfinite().all() and weights.isfinite().all(), "NaN where the two masks together leave a query nothing")
    same(out[1, 0], bias, "the output of a query whose keys are all blocked by the two masks together")


def test_large_scores_here(MultiHeadAttention):
    """Scores of a thousand and more neither overflow nor become NaN."""
    # keeps: never-nan
    mha, (query, key, value) = _module(MultiHeadAttention), _inputs()
    out, weights = _run(mha, 50 * query, 50 * key, value)
    expected = twin_attention(torch_twin(_weights(), H), 50 * query, 50 * key, value)
    same(out, expected[0], "the output with large scores", rtol=1e-5, atol=1e-6)


def test_gradients_flow(MultiHeadAttention):
    """Gradients of the output reach query, key and value, and those of the weights query and key."""
    # keeps: gradients
    leaves = [x.requires_grad_() for x in _inputs()]
    blocked = PADDING | torch.tensor([[False], [True], [False]])
    out, weights = _module(MultiHeadAttention)(*leaves, key_padding_mask=blocked)
    for what, result, count in (("output", out, 3), ("weights", weights, 2)):
        check(result.requires_grad, f"the {what} are cut off from the graph: return them without `detach`")
        up = torch.linspace(-1, 1, result.numel(), dtype=F64).reshape(result.shape)
        found = torch.autograd.grad((result * up).sum(), leaves[:count], retain_graph=True, allow_unused=True)
        for name, g in zip(("query", "key", "value")[:count], found, strict=True):
            check(g is not None and g.isfinite().all() and g.abs().max() > 0, f"no finite gradient of the {what} "
                  f"reaches {name}")


def _weights_left(MultiHeadAttention, p=0.25, training=True, **options):
    """Which of four equal weights are left, read off the output: [B, T, H, Dh], 1 + 2 + 4 + 8 where nothing is dropped.

    Queries and keys are 0, so that all weights are 1/4; key j has the value 2^j in every feature; o_proj passes on.
    """
    mha = MultiHeadAttention(12, 3, dropout=p)
    mha.double()
    mha.train(training)
    eye, zero = torch.eye(12, dtype=F64), torch.zeros(12, dtype=F64)
    biases = {f"{name}.bias": zero for name in ("q_proj", "k_proj", "v_proj", "o_proj")}
    weights = {"q_proj.weight": 0 * eye, "k_proj.weight": 0 * eye, "v_proj.weight": eye, "o_proj.weight": eye}
    mha.load_state_dict({**dict(mha.state_dict()), **weights, **biases})
    value = (2.0 ** torch.arange(4, dtype=F64))[:, None].expand(60, 4, 12)
    x = torch.ones(60, 4, 12, dtype=F64)
    out = tensor(mha(x, x, value, **options)[0], "the output", (60, 4, 12), F64).detach()
    return 4 * out.unflatten(-1, (3, 4))


def test_dropout(MultiHeadAttention):
    """In training mode each weight of each head is dropped by itself, after the softmax; never in eval mode."""
    # keeps: dropout
    same(_weights_left(MultiHeadAttention, training=False), torch.full((60, 4, 3, 4), 15.0, dtype=F64),
         "four times the output in evaluation mode, where nothing is dropped,")
    for told, options in (("", {}), (" with causal=True", {"causal": True})):
        left = 0.75 * _weights_left(MultiHeadAttention, **options)[:, 3]  # [B, H, Dh]: it sees four keys
        check((left - left.round()).abs().max() < 1e-6, f"in training mode{told} what is left of the weights is not "
              f"scaled by "
              "1 / (1 - dropout), or something else than the weights is dropped")
        check((left - left[..., :1]).abs().max() < 1e-6, f"in training mode{told} features of one head lose "
              f"different keys: the "
              "dropout acts on values, heads or the output. It acts on the weights, after the softmax")
        bits = (left[..., 0].round().long()[..., None] >> torch.arange(4)) & 1  # [B, H, S]
        share = 1 - bits.double().mean().item()
        check(abs(share - 0.25) < 0.08, f"with dropout=0.25{told} a share of {share:.2f} of the weights is dropped "
              f"in training mode")
        check(not torch.equal(bits[:, 0], bits[:, 1]), f"in training mode{told} all heads lose the same weights: "
              f"each weight of "
              "each head is dropped by itself")


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
    return not bool(((first - second).abs() <= 1e-6).all())  # NaN is no sign of sameness


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
