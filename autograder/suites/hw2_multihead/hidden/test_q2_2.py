"""Hidden checks of q2_2: MultiHeadAttention, against nn.MultiheadAttention with the same weights."""

import math

import pytest
import torch

from autograder.judge.expect import raises
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.instruments.calls import call_with_shared
from course_utils.instruments.torch_match import PROJECTIONS, projection_weights, torch_twin, twin_attention
from course_utils.instruments.work import functions_called

F64 = torch.float64
D, H = 12, 3


def _module(MultiHeadAttention, rng, d_model=D, n_heads=H, bias=True, dtype=F64, **options):
    """The student's module in eval mode with random weights, and those weights."""
    mha = MultiHeadAttention(d_model, n_heads, bias=bias, **options)
    mha.eval()
    weights = projection_weights(d_model, rng, bias, dtype)
    mha.double() if dtype == F64 else mha.float()
    mha.load_state_dict({**_state(mha, weights), **weights})
    return mha, weights


def _state(mha, weights):
    """The module's own state, after a look at its names: buffers of the student's own are welcome in it."""
    state = mha.state_dict()
    missing = [name for name in weights if name not in state]
    check(not missing, f"the module has no {', '.join(missing)}: its projections are q_proj, k_proj, v_proj and o_proj "
          f"(found {', '.join(state) or 'nothing'})")
    for name, weight in weights.items():
        tensor(state[name], name, weight.shape)
    return state


def _draw(rng, B=3, T=4, S=6, d_model=D, dtype=F64):
    return [torch.randn(B, n, d_model, generator=rng, dtype=F64).to(dtype) for n in (T, S, S)]


def _run(mha, query, key, value, n_heads=H, **options):
    """(out, weights) after a look at their form."""
    got = mha(query, key, value, **options)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
    (B, T, width), S = query.shape, key.shape[1]
    out = tensor(got[0], "the output", (B, T, width), query.dtype)
    check(not (isinstance(got[1], torch.Tensor) and got[1].shape == (B, T, S)), f"the weights have shape {[B, T, S]}: "
          f"do not average over the heads, expected [B, H, T, S] = {[B, n_heads, T, S]}")
    weights = tensor(got[1], "the weights", (B, n_heads, T, S), query.dtype)
    check(not out.isnan().any(), "the output has NaN")
    check(not weights.isnan().any(), "the weights have NaN")
    return out, weights


def _padding(lengths, S=6):
    return torch.arange(S) >= torch.tensor(lengths)[:, None]


def _project(weights, name, x):
    out = x @ weights[f"{name}.weight"].mT
    return out + weights[f"{name}.bias"] if f"{name}.bias" in weights else out


def _by_hand(weights, n_heads, query, key, value, key_padding_mask=None, causal=False, **wrong):
    """(out, weights), head by head and query by query; `wrong` puts in one misunderstanding."""
    (B, T, width), S = query.shape, key.shape[1]
    Dh = width // n_heads
    q, k, v = (_project(weights, wrong.get("names", PROJECTIONS)[i], x) for i, x in enumerate((query, key, value)))
    split = wrong.get("split", lambda x: torch.stack(x.split(Dh, -1), 1))
    q, k, v = split(q), split(k), split(v)  # [B, H, N, Dh]
    seen = torch.arange(S) <= torch.arange(T)[:, None] + S - T if causal else torch.ones(T, S, dtype=torch.bool)
    attended = query.new_zeros(B, n_heads, T, S)
    for b in range(B):
        for i in range(T):
            keys = [j for j in range(S) if seen[i, j] and not (key_padding_mask is not None and key_padding_mask[b, j])]
            if keys:
                scores = torch.einsum("hd,hjd->hj", q[b, :, i], k[b][:, keys]) * wrong.get("scale", 1 / math.sqrt(Dh))
                attended[b, :, i, keys] = torch.softmax(scores, -1)
    heads = attended @ v
    merged = wrong.get("merge", lambda x: torch.cat(x.unbind(1), -1))(heads)
    return (merged if wrong.get("bare") else _project(weights, wrong.get("last", "o_proj"), merged)), attended


def _causes(weights, n_heads, *inputs, **options):
    """(out, weights) that known misunderstandings lead to, with and without masks."""
    width = inputs[0].shape[-1]
    Dh = width // n_heads

    def result(**wrong):
        return _by_hand(weights, n_heads, *inputs, **options, **wrong)

    return {
        "the scores are divided by sqrt(D), and the dot product of a head runs over Dh = D / H entries":
            result(scale=1 / math.sqrt(width)),
        "the scale 1 / sqrt(Dh) is missing": result(scale=1.0),
        "o_proj is not applied": result(bare=True),
        "heads are merged without swapping the axes back, so that tokens are mixed":
            result(merge=lambda x: x.reshape(len(x), -1, width)),
        "heads are split by a `view` that tears tokens apart":
            result(split=lambda x: x.reshape(len(x), n_heads, -1, Dh)),
        "a head holds every H-th column; its columns must be neighbours":
            result(split=lambda x: x.reshape(len(x), -1, Dh, n_heads).permute(0, 3, 1, 2),
                   merge=lambda x: x.permute(0, 2, 3, 1).flatten(2)),
        "queries and keys use each other's projection": result(names=("k_proj", "q_proj", "v_proj")),
        "keys and values use each other's projection": result(names=("q_proj", "v_proj", "k_proj")),
        "the keys are used as values": _by_hand(weights, n_heads, inputs[0], inputs[1], inputs[1], **options),
    }


def _mask_causes(weights, n_heads, *inputs, key_padding_mask=None, causal=False):
    """Weights that known misunderstandings about masks lead to."""
    def attended(padding=key_padding_mask, causal=causal):
        return _by_hand(weights, n_heads, *inputs, padding, causal)[1]

    causes = {"the masks have no effect": attended(None, False), "the padding is not blocked": attended(None),
              "the future is not blocked": attended(causal=False)}
    if key_padding_mask is not None:
        B, S = key_padding_mask.shape
        dealt = key_padding_mask.repeat(n_heads, 1).reshape(B, n_heads, S)
        causes["the mask is upside down (True = padding)"] = attended(~key_padding_mask)
        causes["the rows of the mask are dealt out to the wrong rows and heads; every head of row b needs mask b"] = (
            torch.stack([attended(dealt[:, h])[:, h] for h in range(n_heads)], 1))
    return causes


def _explained(got, expected, what, causes, **how):
    """`same_or_because` with causes that are worked out only when they are needed."""
    try:
        same(got, expected, what, **how)
    except Wrong:
        same_or_because(got, expected, what, causes(), **how)


def _compare(mha, weights, inputs, told, n_heads=H, **options):
    """Out and weights against torch's own module."""
    out, attended = _run(mha, *inputs, n_heads=n_heads, **options)
    expected = twin_attention(torch_twin(weights, n_heads), *inputs, **options)
    how = {} if inputs[0].dtype == F64 else {"atol": 1e-5}

    def causes(part):
        return {why: pair[part] for why, pair in _causes(weights, n_heads, *inputs, **options).items()}

    _explained(attended, expected[1], f"the weights {told}",
               lambda: {**_mask_causes(weights, n_heads, *inputs, **options), **causes(1)}, **how)
    _explained(out, expected[0], f"the output {told}", lambda: causes(0), **how)


def test_construction(MultiHeadAttention, rng):
    """The parameters are q_proj, k_proj, v_proj and o_proj, each [D, D] and [D]; n_heads is kept as an attribute."""
    for bias in (True, False):
        mha = MultiHeadAttention(D, H, bias=bias)
        state, expected = mha.state_dict(), projection_weights(D, rng, bias)
        _state(mha, expected)
        left = [name for name in state if name.endswith("_proj.bias")]
        check(bias or not left, f"bias=False leaves {', '.join(left)}")
        more = [name for name in mha.parameter_shapes() if name not in expected]
        check(not more, f"the module has parameters of its own besides the four projections: {', '.join(more)} "
              "(constants are buffers)")
    check(MultiHeadAttention(D, 4).n_heads == 4, "the attribute n_heads is not the number of heads")
    left = [name for name in MultiHeadAttention(D, H, 0.5, False).state_dict() if name.endswith("_proj.bias")]
    check(not left, f"MultiHeadAttention({D}, {H}, 0.5, False) has {', '.join(left)}: the third argument is `dropout`, "
          "the fourth `bias`")


def test_heads_must_divide(MultiHeadAttention):
    """A d_model that n_heads does not divide is a ValueError, at construction; one that it divides is not."""
    MultiHeadAttention(12, 6)
    for d_model, n_heads in ((12, 5), (10, 4), (6, 12), (7, 2)):
        with raises(ValueError, f"MultiHeadAttention({d_model}, {n_heads})"):
            MultiHeadAttention(d_model, n_heads)


@pytest.mark.weight(3)
def test_self_attention(MultiHeadAttention, rng):
    """Self-attention agrees with nn.MultiheadAttention given the same weights: out and weights, from one head to D."""
    for d_model, n_heads in ((12, 3), (12, 1), (10, 5), (8, 2), (6, 6)):
        mha, weights = _module(MultiHeadAttention, rng, d_model, n_heads)
        x = _draw(rng, T=5, d_model=d_model)[0]
        _compare(mha, weights, (x, x, x), f"of self-attention with D={d_model}, H={n_heads}", n_heads)


@pytest.mark.weight(3)
def test_cross_attention(MultiHeadAttention, rng):
    """With other keys and values, and more or fewer of them than queries, it agrees too."""
    mha, weights = _module(MultiHeadAttention, rng)
    for T, S in ((4, 6), (5, 2), (1, 7), (3, 1), (5, 5)):
        _compare(mha, weights, _draw(rng, T=T, S=S), f"of cross-attention with T={T}, S={S}")


@pytest.mark.weight(3)
def test_padding(MultiHeadAttention, rng):
    """Padding that differs from row to row blocks the same keys in every head of its row, and no query."""
    padding = torch.cat([_padding([6, 4, 1]), torch.tensor([[0, 1, 0, 0, 1, 0]], dtype=torch.bool)])
    for n_heads in (3, 4, 1):
        mha, weights = _module(MultiHeadAttention, rng, n_heads=n_heads)
        for T in (4, 6):
            inputs = _draw(rng, 4, T)
            _compare(mha, weights, inputs, f"with padding, T={T}, S=6, H={n_heads}", n_heads, key_padding_mask=padding)


@pytest.mark.weight(2)
def test_causal(MultiHeadAttention, rng):
    """With causal=True query i sees key j iff j <= i + (S - T), also when there are fewer queries than keys."""
    mha, weights = _module(MultiHeadAttention, rng)
    for T, S in ((5, 5), (3, 7), (1, 4)):
        inputs = _draw(rng, T=T, S=S)
        _, attended = _run(mha, *inputs, causal=True)
        i, j = torch.arange(T)[:, None], torch.arange(S)
        same_or_because((attended[0, 0] != 0).int(), (j <= i + S - T).int(),
                        f"the keys that each query sees with T={T}, S={S}", {
            "the triangle is aligned at the first key; align it so that the last query sees everything": (j <= i).int(),
            "the mask is upside down, queries see the future only": (j >= i + S - T).int(),
            "nothing is blocked": torch.ones(T, S, dtype=torch.int),
            "off by one, a query sees its own position too": (j < i + S - T).int(),
        })
        _compare(mha, weights, inputs, f"with causal=True, T={T}, S={S}", causal=True)


@pytest.mark.weight(2)
def test_padding_and_causal(MultiHeadAttention, rng):
    """Both masks together: a key must be real and not in the future."""
    mha, weights = _module(MultiHeadAttention, rng)
    padding = _padding([6, 4, 2])
    for T in (6, 4, 1):
        inputs = _draw(rng, T=T)
        _compare(mha, weights, inputs, f"with both masks, T={T}, S=6", key_padding_mask=padding, causal=True)


@pytest.mark.weight(2)
def test_masks_that_leave_nothing_together(MultiHeadAttention, rng):
    """Padding on the left and causal=True: a query may see no key though neither mask blocks all; no NaN, weights 0."""
    mha, weights = _module(MultiHeadAttention, rng)
    for T in (6, 4):
        S = 6
        padding = torch.cat([torch.arange(S) < torch.tensor([[0], [1], [3], [5]]),
                             torch.rand(2, S, generator=rng) < 0.6])
        dead = (padding[:, None] | (torch.arange(S) > torch.arange(T)[:, None] + S - T)).all(-1)  # [B, T]
        values = _draw(rng, len(padding), T)
        mine, theirs = ([x.clone().requires_grad_() for x in values] for _ in range(2))
        told = f"with padding on the left and causal=True, T={T}, S={S}"
        out, attended = _run(mha, *mine, key_padding_mask=padding, causal=True)
        check((attended.transpose(1, 2)[dead] == 0).all(), f"{told}, a query that may see no key has weights that are "
              "not 0: ask of every query what both masks together leave it")
        expected = _by_hand(weights, H, *theirs, padding, True)
        same(attended, expected[1], f"the weights {told}")
        same(out, expected[0], f"the output {told}")
        up = torch.randn(out.shape, generator=rng, dtype=F64)
        check(out.requires_grad, "no gradient flows: the output is cut off from the inputs and the parameters")
        (out * up).sum().backward()
        (expected[0] * up).sum().backward()
        for name, a, b in zip(("query", "key", "value"), mine, theirs, strict=True):
            check(a.grad is not None and a.grad.isfinite().all(), f"the gradient of {name} is not finite {told}: a NaN "
                  "that is overwritten in the forward pass comes back in the backward pass")
            same(a.grad, b.grad, f"the gradient of {name} {told}")


def test_one_tensor_in_two_places(MultiHeadAttention, in_box, rng):
    """Each input counts by what it holds, also where two of them are one tensor: mha(x, x, y), mha(x, y, x)."""
    mha, weights = _module(MultiHeadAttention, rng)
    given, twin = _draw(rng, T=6)[:2], torch_twin(weights, H)
    calls = {"x, x, x": [0, 0, 0], "x, x, y": [0, 0, 1], "x, y, x": [0, 1, 0], "y, x, x": [1, 0, 0]}
    for told, places in calls.items():
        for options in ({}, {"causal": True}, {"key_padding_mask": _padding([6, 4, 2])}):
            got = in_box(call_with_shared, mha, given, places, **options)
            check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
            expected = twin_attention(twin, *(given[i] for i in places), **options)
            why = "project the query from `query`, the keys from `key`, the values from `value`, whichever are the same"
            same(got[1], expected[1], f"the weights of mha({told}) ({why})")
            same(got[0], expected[0], f"the output of mha({told}) ({why})")


def test_long_sequences(MultiHeadAttention, rng):
    """Hundreds of queries and thousands of keys are fine, with a causal mask too: there is no largest length."""
    mha, weights = _module(MultiHeadAttention, rng, 4, 2)
    twin = torch_twin(weights, 2)
    for T, S in ((300, 300), (2, 2500)):
        for causal in (False, True):
            inputs = _draw(rng, 1, T, S, 4)
            out, attended = _run(mha, *inputs, n_heads=2, causal=causal)
            expected = twin_attention(twin, *inputs, causal=causal)
            same(attended, expected[1], f"the weights with T={T}, S={S}, causal={causal}")
            same(out, expected[0], f"the output with T={T}, S={S}, causal={causal}")


def test_calls_are_apart(MultiHeadAttention, rng):
    """One module, call after call, with equal shapes and with others: every call uses its own masks."""
    mha, weights = _module(MultiHeadAttention, rng)
    told = "of a later call with other lengths (is a mask of an earlier one kept?)"
    for B, T, S in ((3, 3, 6), (3, 3, 9), (3, 5, 9), (3, 5, 5), (1, 5, 7), (4, 2, 7), (3, 3, 6)):
        padding = _padding(torch.randint(1 + S - T, S + 1, (B,), generator=rng).tolist(), S)
        for options in ({"causal": True}, {"key_padding_mask": padding}, {"key_padding_mask": padding, "causal": True}):
            _compare(mha, weights, _draw(rng, B, T, S), f"{told}, T={T}, S={S}", **options)
    for lengths, causal in (([6, 4, 2], False), ([1, 6, 3], False), (None, False), ([6, 4, 2], True), ([3, 5, 6], True),
                            (None, True), ([6, 4, 2], False)):
        padding = None if lengths is None else _padding(lengths)
        told = f"of a later call with lengths {lengths}, causal={causal} (is something kept from an earlier one?)"
        _compare(mha, weights, _draw(rng), told, key_padding_mask=padding, causal=causal)


@pytest.mark.weight(2)
def test_rows_with_nothing_to_see(MultiHeadAttention, rng):
    """Where every key is blocked the weights are exactly 0, out is o_proj's bias, and other rows are as ever."""
    for bias in (True, False):
        mha, weights = _module(MultiHeadAttention, rng, bias=bias)
        expected = weights["o_proj.bias"] if bias else torch.zeros(D, dtype=F64)
        inputs, padding = _draw(rng), _padding([6, 0, 3])
        got = mha(*inputs, key_padding_mask=padding)
        check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
        out, attended = tensor(got[0], "the output", (3, 4, D), F64), tensor(got[1], "the weights", (3, H, 4, 6), F64)
        check(not out[1].isnan().any() and not attended[1].isnan().any(), "NaN: a softmax over nothing but -inf")
        check(not torch.allclose(attended[1], torch.full((H, 4, 6), 1 / 6, dtype=F64)),
              "with every key blocked the weights are uniform: a large negative number is not enough, set them to 0")
        check((attended[1] == 0).all(), "with every key blocked the weights must be exactly 0")
        same_or_because(out[1], expected.expand(4, D), "the output of a row with every key blocked, against o_proj's "
                        "bias", {"o_proj still has to add its bias": torch.zeros(4, D, dtype=F64)}, rtol=0, atol=1e-12)
        rest = [x[::2] for x in inputs]
        twin = twin_attention(torch_twin(weights, H), *rest, key_padding_mask=padding[::2])
        same(out[::2], twin[0], "the output of the other rows")
        same(attended[::2], twin[1], "the weights of the other rows")
    mha, weights = _module(MultiHeadAttention, rng)
    inputs = _draw(rng, T=6, S=4)  # the first two queries are before the first key
    out, attended = _run(mha, *inputs, causal=True)
    check((attended[:, :, :2] == 0).all(), "with causal=True and T > S, the first T - S queries see no key: weights 0")
    bias = weights["o_proj.bias"].expand(3, 2, D)
    same(out[:, :2], bias, "the output of a query that sees no key, against o_proj's bias", rtol=0, atol=1e-12)
    twin = twin_attention(torch_twin(weights, H), inputs[0][:, 2:], *inputs[1:], causal=True)
    same(out[:, 2:], twin[0], "the output of the queries that see a key, with T > S")


@pytest.mark.weight(2)
def test_masks_by_behaviour(MultiHeadAttention, rng):
    """Changing a padded or future token moves nothing; changing a visible one moves the output."""
    mha, _ = _module(MultiHeadAttention, rng)
    x, padding = _draw(rng, T=6)[0], _padding([6, 4, 2])
    before, attended = _run(mha, x, x, x, key_padding_mask=padding)
    wild = x + 100 * torch.randn(3, 6, D, generator=rng, dtype=F64) * padding[..., None]
    after, _ = _run(mha, x, wild, wild, key_padding_mask=padding)
    same(after, before, "the output after a change in the padding")
    check((attended * padding[:, None, None]).abs().max() == 0, "a padded key has a weight that is not exactly 0")
    moved = _run(mha, x, torch.cat([-x[:, :1], x[:, 1:]], 1), x, key_padding_mask=padding)[1] - attended
    check((moved.abs().amax((1, 2, 3)) > 1e-6).all(), "another key at a real position leaves the weights as they are")
    moved = _run(mha, x, x, x + (~padding[..., None]).to(F64), key_padding_mask=padding)[0] - before
    check((moved.abs().amax((1, 2)) > 1e-6).all(), "other real values leave the output as it is")
    before, _ = _run(mha, x, x, x, causal=True)
    for t in (1, 3, 5):
        other = x.clone()
        other[:, t] += torch.randn(3, D, generator=rng, dtype=F64)
        moved = (_run(mha, other, other, other, causal=True)[0] - before).abs().amax(-1)  # [B, T]
        check((moved[:, :t] < 1e-9).all(), f"with causal=True a change of token {t} moves an output before it")
        check((moved[:, t:] > 1e-6).all(), f"with causal=True a change of token {t} must move the outputs from {t} on")


@pytest.mark.weight(2)
def test_gradients(MultiHeadAttention, rng):
    """Gradients by inputs and by all parameters are those of nn.MultiheadAttention, with padding and causal mask."""
    padding = _padding([6, 4, 2])
    for options in ({}, {"key_padding_mask": padding}, {"key_padding_mask": padding, "causal": True}):
        mha, weights = _module(MultiHeadAttention, rng)
        twin, values = torch_twin(weights, H), _draw(rng)
        up = torch.randn(3, 4, D, generator=rng, dtype=F64)
        mine, theirs = ([x.clone().requires_grad_() for x in values] for _ in range(2))
        mha.zero_grad()
        out, _ = _run(mha, *mine, **options)
        check(out.requires_grad, "no gradient flows: the output is cut off from the inputs and the parameters")
        (out * up).sum().backward()
        (twin_attention(twin, *theirs, **options)[0] * up).sum().backward()
        for name, a, b in zip(("query", "key", "value"), mine, theirs, strict=True):
            check(a.grad is not None, f"no gradient reaches {name}")
            same(a.grad, b.grad, f"the gradient of {name}")
        grads = mha.grads()
        parts = dict(zip(PROJECTIONS, (*twin.in_proj_weight.grad.chunk(3), twin.out_proj.weight.grad), strict=True))
        for name, expected in parts.items():
            if (got := grads.get(f"{name}.weight")) is not None:  # a module may keep its parameters otherwise
                same(got, expected, f"the gradient of {name}.weight")


@pytest.mark.weight(2)
def test_gradients_where_nothing_is_seen(MultiHeadAttention, rng):
    """With a row of which every key is blocked all gradients are finite, and that row's inputs get zero."""
    mha, _ = _module(MultiHeadAttention, rng)
    leaves, padding = [x.requires_grad_() for x in _draw(rng)], _padding([6, 0, 3])
    mha.zero_grad()
    out, _ = _run(mha, *leaves, key_padding_mask=padding)
    (out * torch.randn(3, 4, D, generator=rng, dtype=F64)).sum().backward()
    told = ("a NaN that is overwritten in the forward pass comes back in the backward pass; keep -inf minus -inf from "
            "happening at all")
    for name, leaf in zip(("query", "key", "value"), leaves, strict=True):
        check(leaf.grad is not None and leaf.grad.isfinite().all(), f"the gradient of {name} is not finite: {told}")
        check((leaf.grad[1] == 0).all(), f"{name} of the row that sees nothing has a gradient")
    for name, grad in mha.grads().items():
        check(grad is None or grad.isfinite().all(), f"the gradient of {name} is not finite: {told}")


def test_gradients_of_the_weights(MultiHeadAttention, rng):
    """The returned weights are part of the graph too: their gradients are those of nn.MultiheadAttention's."""
    for options in ({}, {"key_padding_mask": _padding([6, 4, 2]), "causal": True}):
        mha, weights = _module(MultiHeadAttention, rng)
        twin, values = torch_twin(weights, H), _draw(rng)
        up = torch.randn(3, H, 4, 6, generator=rng, dtype=F64)
        mine, theirs = ([x.clone().requires_grad_() for x in values] for _ in range(2))
        mha.zero_grad()
        _, attended = _run(mha, *mine, **options)
        check(attended.requires_grad, "no gradient flows through the weights that you return: do not detach them")
        (attended * up).sum().backward()
        (twin_attention(twin, *theirs, **options)[1] * up).sum().backward()
        for name, a, b in zip(("query", "key"), mine, theirs, strict=False):
            check(a.grad is not None, f"no gradient of the weights reaches {name}")
            same(a.grad, b.grad, f"the gradient of the weights by {name}")
        if (got := mha.grads().get("q_proj.weight")) is not None:
            same(got, twin.in_proj_weight.grad[:D], "the gradient of the weights by q_proj.weight")


def test_gradients_by_differences(MultiHeadAttention, rng):
    """Finite differences of your own output and weights agree with the gradients that flow back."""
    mha, _ = _module(MultiHeadAttention, rng, 4, 2)
    leaves = [x.requires_grad_() for x in _draw(rng, 3, 2, 3, 4)]
    padding = _padding([3, 2, 0], 3)
    _run(mha, *leaves, n_heads=2, key_padding_mask=padding)
    options = {"raise_exception": False, "fast_mode": True, "check_undefined_grad": False}
    agrees = torch.autograd.gradcheck(lambda q, k, v: tuple(mha(q, k, v, padding, True)), leaves, **options)
    check(agrees, "moving an input by a little changes the output or the weights by something else than the gradient "
          "says")


def test_large_scores(MultiHeadAttention, rng):
    """Scores of a thousand and more neither overflow nor become NaN: the largest one is subtracted before the exp."""
    mha, weights = _module(MultiHeadAttention, rng)
    query, key, value = _draw(rng)
    for options in ({}, {"key_padding_mask": _padding([6, 4, 2])}, {"causal": True}):
        _compare(mha, weights, (60 * query, 60 * key, value), "with scores of a thousand and more", **options)


def test_without_bias(MultiHeadAttention, rng):
    """bias=False means no bias in any of the four projections."""
    mha, weights = _module(MultiHeadAttention, rng, bias=False)
    inputs = _draw(rng)
    _compare(mha, weights, inputs, "with bias=False", key_padding_mask=_padding([6, 4, 2]))
    zero = torch.zeros(3, 4, D, dtype=F64)
    same(_run(mha, zero, zero, zero)[0], zero, "the output of zeros with bias=False")


def test_state_dict_round_trip(MultiHeadAttention, rng):
    """A second module that loads the first one's state_dict gives the same outputs."""
    first, _ = _module(MultiHeadAttention, rng, dtype=torch.float32)
    second = MultiHeadAttention(D, H)
    second.eval()
    second.load_state_dict(first.state_dict())
    inputs = _draw(rng, dtype=torch.float32)
    for a, b, what in zip(_run(first, *inputs), _run(second, *inputs), ("output", "weights"), strict=True):
        same(b, a, f"the {what} of a module with the first one's state", atol=1e-5)


def test_float32(MultiHeadAttention, rng):
    """In float32 the results are float32 and agree with torch's, with masks and without."""
    mha, weights = _module(MultiHeadAttention, rng, dtype=torch.float32)
    inputs = _draw(rng, dtype=torch.float32)
    for options in ({}, {"key_padding_mask": _padding([6, 4, 2])}, {"causal": True}):
        _compare(mha, weights, inputs, "in float32", **options)


@pytest.mark.weight(2)
def test_eval_mode(MultiHeadAttention, rng):
    """In eval mode dropout is off, so passes agree with each other and with torch; dropout=0 is always off."""
    mha, weights = _module(MultiHeadAttention, rng, dropout=0.5)
    inputs = _draw(rng)
    first, second = _run(mha, *inputs)[0], _run(mha, *inputs)[0]
    check(torch.equal(first, second), "two passes in eval mode differ: dropout is still on (is `self.training` asked?)")
    _compare(mha, weights, inputs, "in eval mode with dropout=0.5")
    mha, weights = _module(MultiHeadAttention, rng)
    mha.train()
    _compare(mha, weights, inputs, "in training mode with dropout=0")


def _orthogonal(rng, n):
    return torch.linalg.qr(torch.randn(n, n, generator=rng, dtype=F64))[0]


@pytest.mark.weight(2)
def test_dropout_on_the_weights(MultiHeadAttention, rng):
    """In training mode each attention weight is dropped or kept whole, with the stated chance, one by one."""
    p, B, n_heads, S = 0.3, 100, 2, 3
    width = n_heads * S  # as wide as there are keys: the weights can be read off the output
    mha, weights = _module(MultiHeadAttention, rng, width, n_heads, dropout=p)
    weights.update({f"{name}.weight": _orthogonal(rng, width) for name in ("v_proj", "o_proj")})
    mha.load_state_dict({**mha.state_dict(), **weights})
    values = torch.stack([_orthogonal(rng, S) for _ in range(n_heads)])  # [H, S, Dh]
    value = (torch.cat(values.unbind(0), -1) - weights["v_proj.bias"]) @ weights["v_proj.weight"]  # [S, D]
    query, key = (0.5 * torch.randn(S, width, generator=rng, dtype=F64) for _ in range(2))
    inputs = [x.expand(B, S, width) for x in (query, key, value)]
    plain = twin_attention(torch_twin(weights, n_heads), *(x[:1] for x in inputs))[1].detach()  # [1, H, T, S]
    mha.train()
    got = mha(*inputs)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
    out = tensor(got[0], "the output", (B, S, width), F64).detach()
    merged = (out - weights["o_proj.bias"]) @ weights["o_proj.weight"]
    used = torch.stack(merged.split(S, -1), 1) @ values.mT  # [B, H, T, S]
    check((used - plain).abs().max() > 1e-6, f"in training mode with dropout={p} nothing is dropped")
    dropped, kept = used.abs() < 1e-6, (used - plain / (1 - p)).abs() < 1e-6
    check(not ((used - plain).abs() < 1e-6).any(),
          "what dropout keeps must be divided by 1 - p, so that the mean stays the same")
    check((dropped | kept).all(), "read off the output, the weights that the values were multiplied with are neither 0 "
          "nor the usual ones divided by 1 - p: dropout acts on the attention weights, after the softmax, and on "
          "nothing else")
    for axis, told in enumerate(("all rows of the batch lose the same weights", "all heads lose the same weights",
                                 "all queries lose the same keys", "a query loses all of its keys or none")):
        n = dropped.shape[axis] - 1
        alike = (dropped.narrow(axis, 0, n) == dropped.narrow(axis, 1, n)).double().mean().item()
        check(alike < 0.9, f"in training mode {told}: drop weights one by one")
    rate, error = dropped.double().mean().item(), math.sqrt(p * (1 - p) / dropped.numel())
    check(abs(rate - p) < 6 * error, f"{rate:.1%} of the weights are dropped, expected {p:.0%}")


def test_dropout_with_masks(MultiHeadAttention, rng):
    """In training mode weights are dropped with every mask: causal, padding or both."""
    p, B = 0.3, 300
    mha, weights = _module(MultiHeadAttention, rng, 4, 1, dropout=p)
    once = [torch.randn(1, 2, 4, generator=rng, dtype=F64) for _ in range(3)]
    inputs = [x.expand(B, 2, 4) for x in once]
    mha.train()
    for padding, causal in ((None, True), (_padding([1], 2), False), (_padding([1], 2), True)):
        told = f"with causal={causal}{'' if padding is None else ' and padding'}"
        plain = twin_attention(torch_twin(weights, 1), *once, padding, causal)[0][0].detach() - weights["o_proj.bias"]
        got = mha(*inputs, key_padding_mask=None if padding is None else padding.expand(B, 2), causal=causal)
        check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
        out = tensor(got[0], f"the output {told}", (B, 2, 4), F64).detach() - weights["o_proj.bias"]
        first = out[:, 0]  # the first query sees the first key alone
        dropped, kept = (first.abs().amax(-1) < 1e-9), ((first - plain[0] / (1 - p)).abs().amax(-1) < 1e-9)
        check(dropped.any(), f"in training mode with dropout={p} nothing is dropped {told}")
        check((dropped | kept).all(), f"{told}, a query that sees one key must give 0 or its usual output divided by "
              "1 - p (o_proj's bias aside): dropout acts on the attention weights, after the softmax")
        rate, error = dropped.double().mean().item(), math.sqrt(p * (1 - p) / B)
        check(abs(rate - p) < 6 * error, f"{rate:.1%} of the weights are dropped {told}, expected {p:.0%}")


def test_dropout_mean(MultiHeadAttention, rng):
    """In training mode equal rows of a batch lose other weights each, and their mean is the output of eval mode."""
    mha, weights = _module(MultiHeadAttention, rng, dropout=0.4)
    once = _draw(rng, 1)
    plain = twin_attention(torch_twin(weights, H), *once, _padding([5]))[0][0].detach()
    inputs, padding = [x.expand(800, -1, -1) for x in once], _padding([5]).expand(800, 6)
    mha.train()
    with torch.no_grad():
        got = mha(*inputs, key_padding_mask=padding)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
    out = tensor(got[0], "the output", (800, 4, D), F64)
    check(not out.isnan().any(), "the output has NaN in training mode")
    check((out.std(0) > 1e-6).all(), "in training mode with dropout=0.4 equal rows of a batch give equal outputs: "
          "every weight of every row and head is dropped or kept on its own")
    gap = ((out.mean(0) - plain) / (out.std(0) / math.sqrt(800))).abs().max().item()
    check(gap < 6, f"the mean over 800 equal rows is {gap:.1f} standard errors away from the output of eval mode: "
          "dropout comes after the softmax, and what it keeps is divided by 1 - p")


def test_keyword_arguments(MultiHeadAttention, rng):
    """Arguments can be given by the names of the signature, or in its order."""
    mha, weights = _module(MultiHeadAttention, rng)
    (query, key, value), padding = _draw(rng), _padding([6, 4, 2])
    expected = twin_attention(torch_twin(weights, H), query, key, value, padding, True)
    for got in (mha(query, key, value, padding, True),
                mha(query=query, key=key, value=value, key_padding_mask=padding, causal=True)):
        check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
        same(got[0], expected[0], "the output")
        same(got[1], expected[1], "the weights")


@pytest.mark.weight(2)
def test_built_from_its_parts(MultiHeadAttention, in_box, rng):
    """It is written with products and a softmax, not with nn.MultiheadAttention or scaled_dot_product_attention."""
    mha, weights = _module(MultiHeadAttention, rng)
    inputs, padding = _draw(rng, T=20, S=36), _padding([36, 20, 2], 36)  # too many numbers to guess from times
    for mode in (mha.eval, mha.train):
        mode()
        for options in ({}, {"key_padding_mask": padding}, {"causal": True}):
            got, used = in_box(functions_called, mha, *inputs, **options)
            for name in ("multi_head_attention_forward", "native_multi_head_attention", "scaled_dot_product_attention"):
                check(not any(call.endswith(name) for call in used), f"the answer calls torch's own {name}, which this "
                      "question rules out: it is what you are to build")
            check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (out, weights)")
            expected = twin_attention(torch_twin(weights, H), *inputs, **options)
            for mine, right, what in zip(got, expected, ("output", "weights"), strict=True):
                same(mine, right, f"the {what} of a watched call")


@pytest.mark.weight(0.5)
def test_device(MultiHeadAttention, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    inputs = _draw(rng, dtype=torch.float32)
    for kwargs in ({}, {"key_padding_mask": _padding([6, 4, 2])}, {"causal": True}):
        device_ready(watch, MultiHeadAttention, (D, H), {}, call=inputs, kwargs=kwargs)


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_heads(MultiHeadAttention, rng):
    """Together with your own q2_1, self-attention with padding and causal mask agrees with nn.MultiheadAttention."""
    mha, weights = _module(MultiHeadAttention, rng)
    x = _draw(rng, T=6)[0]
    _compare(mha, weights, (x, x, x), "of self-attention", key_padding_mask=_padding([6, 4, 2]), causal=True)
