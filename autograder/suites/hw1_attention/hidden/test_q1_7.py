"""Hidden checks of q1_7: attention."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from autograder.suites.once import once
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views
from course_utils.instruments.work import functions_called

F64 = torch.float64


def _draw(rng, *lead, T=4, S=6, D=5, Dv=7, dtype=F64):
    return [torch.randn(*lead, *shape, generator=rng, dtype=dtype) for shape in ((T, D), (S, D), (S, Dv))]


def _run(attention, q, k, v, **options):
    """(out, weights) after a look at their form."""
    got = attention(q, k, v, **options)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "attention returns the pair (out, weights)")
    out = tensor(got[0], "the output", (*q.shape[:-1], v.shape[-1]), q.dtype)
    weights = tensor(got[1], "the weights", (*q.shape[:-1], k.shape[-2]), q.dtype)
    check(not out.isnan().any(), "the output has NaN")
    check(not weights.isnan().any(), "the weights have NaN")
    return out, weights


def _visible(T, S, padding=None, causal=False):
    """True where query i may see key j: [B, T, S], one row per row of the padding."""
    seen = torch.arange(S) <= torch.arange(T)[:, None] + S - T if causal else torch.ones(T, S, dtype=torch.bool)
    return seen[None] if padding is None else seen & ~padding[:, None]


@once
def _by_hand(q, k, v, padding=None, causal=False, beta=None):
    """Attention with one Python loop per query, over the keys that it sees: [B, T, D], [B, S, D], [B, S, Dv]."""
    B, T, D = q.shape
    S = k.shape[1]
    beta = 1 / math.sqrt(D) if beta is None else beta
    seen = _visible(T, S, padding, causal).expand(B, T, S).tolist()
    out, weights = q.new_zeros(B, T, v.shape[-1]), q.new_zeros(B, T, S)
    for b in range(B):
        for i in range(T):
            keys = [j for j in range(S) if seen[b][i][j]]
            if keys:
                weights[b, i, keys] = torch.softmax(beta * (k[b, keys] @ q[b, i]), -1)
                out[b, i] = weights[b, i, keys] @ v[b, keys]
    return out, weights


def _per_head(q, k, v, padding=None, **options):
    """The same for [B, H, N, D], head by head."""
    heads = [_by_hand(q[:, h], k[:, h], v[:, h], padding, **options) for h in range(q.shape[1])]
    return tuple(torch.stack(part, 1) for part in zip(*heads, strict=True))


def _padding(lengths, S=6):
    return torch.arange(S) >= torch.tensor(lengths)[:, None]


def test_shapes_and_dtypes(attention, rng):
    """out is [..., T, Dv] and weights [..., T, S] in the input's dtype, for three and for four axes."""
    for lead in ((3,), (2, 3), (1,), (1, 1)):
        for dtype in (torch.float32, F64):
            q, k, v = _draw(rng, *lead, dtype=dtype)
            for options in ({}, {"causal": True}, {"key_padding_mask": _padding([4] * lead[0])}, {"beta": 0.5}):
                out, weights = _run(attention, q, k, v, **options)
                check(out.isfinite().all() and weights.isfinite().all(), f"a result is not finite with {options}")


@pytest.mark.weight(2)
def test_values(attention, rng):
    """Without masks, out and weights are those of scaled dot-product attention."""
    q, k, v = _draw(rng, 3)
    out, weights = _run(attention, q, k, v)
    scores = q @ k.mT
    same_or_because(weights, torch.softmax(scores / math.sqrt(5), -1), "the weights", {
        "your weights sum to 1 over the queries, not over the keys; look at the axis of the softmax":
            torch.softmax(scores / math.sqrt(5), -2),
        "the scale 1 / sqrt(D) is missing": torch.softmax(scores, -1),
        "you divide by D, and the scale is 1 / sqrt(D)": torch.softmax(scores / 5, -1),
        "you multiply by sqrt(D), and dividing is right": torch.softmax(scores * math.sqrt(5), -1),
        "these are the scores; the weights come after the softmax": scores / math.sqrt(5),
        "the scale is made from T, not from the width D": torch.softmax(scores / 2, -1),
        "the scale is made from S, not from the width D": torch.softmax(scores / math.sqrt(6), -1),
        "the scale is made from the width of v, not of q and k": torch.softmax(scores / math.sqrt(7), -1),
    })
    same(out, F.scaled_dot_product_attention(q, k, v), "the output")


def test_weights_are_used(attention, rng):
    """The weights are not negative, sum to 1 over the keys, and the output is weights times values."""
    q, k, v = _draw(rng, 3)
    for options in ({}, {"key_padding_mask": _padding([6, 4, 1])}, {"causal": True}, {"beta": 2.0}):
        out, weights = _run(attention, q, k, v, **options)
        check((weights >= 0).all(), "a weight is negative: weights come after the softmax")
        told = f"with {options}" if options else "without masks"
        same(weights.sum(-1), torch.ones(3, 4, dtype=F64), f"the sum of the weights over the keys {told}")
        same(out, weights @ v, f"the output, against your weights times the values, {told}")


@pytest.mark.weight(2)
def test_padding_values(attention, rng):
    """A padded batch gives each row what it would get alone, without its padding; queries are not masked."""
    padding = torch.cat([_padding([6, 4, 1]), torch.tensor([[0, 1, 0, 0, 1, 0]], dtype=torch.bool)])
    for T in (4, 6):
        q, k, v = _draw(rng, 4, T=T)
        out, weights = _run(attention, q, k, v, key_padding_mask=padding)
        padded = padding[:, None].expand_as(weights)
        expected, scores = _by_hand(q, k, v, padding), q @ k.mT / math.sqrt(5)
        same_or_because(weights, expected[1], f"the weights with T={T} and S=6", {
            "the mask is upside down (True = padding)": _by_hand(q, k, v, ~padding)[1],
            "the mask has no effect": torch.softmax(scores, -1),
            "the mask comes after the softmax, so the rest no longer sums to 1":
                torch.softmax(scores, -1).masked_fill(padded, 0),
            "a blocked score of 0 still counts, as exp(0) = 1": torch.softmax(scores.masked_fill(padded, 0), -1),
        })
        same(out, expected[0], f"the output with T={T} and S=6")
        check((weights[padded] == 0).all(), "a padded key has a weight that is small but not 0")


def test_padding_never_leaks(attention, rng):
    """Changing a padded key or value changes nothing; changing a real one does."""
    q, k, v = _draw(rng, 3)
    padding = _padding([5, 3, 1])
    before = _run(attention, q, k, v, key_padding_mask=padding)
    wild = 1e3 * torch.randn(3, 6, 1, generator=rng, dtype=F64) * padding[..., None]
    after = _run(attention, q, k + wild, v - wild, key_padding_mask=padding)
    same(after[0], before[0], "the output after a change in padded keys and values")
    same(after[1], before[1], "the weights after a change in padded keys and values")
    real = (~padding[..., None]).to(F64)
    for name, moved in (("value", _run(attention, q, k, v + real, key_padding_mask=padding)[0] - before[0]),
                        ("query", _run(attention, -q, k, v, key_padding_mask=padding)[1][:2] - before[1][:2])):
        check((moved.abs().amax((1, 2)) > 1e-6).all(), f"another {name} changes nothing")


@pytest.mark.weight(2)
@pytest.mark.parametrize("T, S", [(5, 5), (3, 7), (6, 4)], ids=["square", "fewer-queries", "more-queries"])
def test_causal_values(attention, rng, T, S):
    """Query i sees key j iff j <= i + (S - T); a query that sees nothing gets zeros."""
    q, k, v = _draw(rng, 3, T=T, S=S, D=8)
    out, weights = _run(attention, q, k, v, causal=True)
    i, j = torch.arange(T)[:, None], torch.arange(S)
    same_or_because((weights[0] != 0).int(), _visible(T, S, causal=True)[0].int(), "the keys that each query sees", {
        "the causal mask is upside down, queries see the future only": (j >= i + S - T).int(),
        "off by one, a query sees its own position too": (j < i + S - T).int(),
        "off by one, a query sees no position after its own": (j <= i + S - T + 1).int(),
        "the triangle is aligned at the first key; align it so that the last query sees everything": (j <= i).int(),
        "nothing is blocked": torch.ones(T, S, dtype=torch.int),
    })
    expected = _by_hand(q, k, v, causal=True)
    same(weights, expected[1], "the weights")
    same(out, expected[0], "the output")


@pytest.mark.weight(2)
def test_padding_and_causal(attention, rng):
    """Both masks together: a key must be real and not in the future; rows left with nothing are zero."""
    padding = torch.tensor([[0] * 6, [0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0], [1] * 6], dtype=torch.bool)
    for T in (5, 6, 8, 1):
        q, k, v = _draw(rng, 4, T=T)
        out, weights = _run(attention, q, k, v, key_padding_mask=padding, causal=True)
        expected = _by_hand(q, k, v, padding, causal=True)
        same_or_because(weights, expected[1], f"the weights with T={T} and S=6", {
            "only the padding is blocked, not the future": _by_hand(q, k, v, padding)[1],
            "only the future is blocked, not the padding": _by_hand(q, k, v, causal=True)[1],
        })
        same(out, expected[0], f"the output with T={T} and S=6")
        blocked = ~_visible(T, 6, padding, causal=True)
        check((weights[blocked] == 0).all(), "a blocked key has a weight that is not exactly 0")
        check((out[blocked.all(-1)] == 0).all(), "a query that sees no key has an output that is not exactly 0")


@pytest.mark.weight(2)
def test_all_padded_row(attention, rng):
    """A row with every key padded gives exact zeros in out and weights, and leaves the other rows alone."""
    q, k, v = _draw(rng, 3)
    padding = _padding([6, 0, 3])
    got = attention(q, k, v, key_padding_mask=padding)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "attention returns the pair (out, weights)")
    out, weights = tensor(got[0], "the output", (3, 4, 7), F64), tensor(got[1], "the weights", (3, 4, 6), F64)
    check(not weights[1].isnan().any() and not out[1].isnan().any(), "NaN: a softmax over nothing but -inf")
    check(not torch.allclose(weights[1], torch.full((4, 6), 1 / 6, dtype=F64)),
          "with every key blocked the weights are uniform: a large negative number is not enough, set them to 0")
    check((weights[1] == 0).all(), "with every key blocked the weights must be exactly 0")
    check((out[1] == 0).all(), "with every key blocked the output must be exactly 0")
    expected = _by_hand(q, k, v, padding)
    same(weights, expected[1], "the weights")
    same(out, expected[0], "the output")


@pytest.mark.weight(2)
def test_heads(attention, rng):
    """[B, H, N, Dh] works head by head, and key_padding_mask [B, S] is the same for all heads of a row."""
    for B, H in ((3, 2), (2, 4), (3, 3)):
        q, k, v = _draw(rng, B, H)
        padding = _padding([6, 3, 1][:B])
        for options in ({}, {"causal": True}, {"beta": 0.8}):
            for mask in (None, padding):
                out, weights = _run(attention, q, k, v, key_padding_mask=mask, **options)
                expected = _per_head(q, k, v, mask, **options)
                same(weights, expected[1], f"the weights for B={B}, H={H}")
                same(out, expected[0], f"the output for B={B}, H={H}")
    q, k, v = _draw(rng, 2, 3, T=6, S=4)
    out, weights = _run(attention, q, k, v, key_padding_mask=_padding([4, 0], 4), causal=True)
    expected = _per_head(q, k, v, _padding([4, 0], 4), causal=True)
    same(weights, expected[1], "the weights with rows that see nothing")
    same(out, expected[0], "the output with rows that see nothing")


def test_heads_split_from_a_model(attention, in_box, rng):
    """Heads as a model makes them, split off and transposed, give what a copy of them gives."""
    padding = _padding([6, 3])
    for lead, by_hand in (((2, 3), _per_head), ((2,), _by_hand)):
        q, k, v = _draw(rng, *lead)
        for options in ({}, {"key_padding_mask": padding, "causal": True}):
            got = in_box(call_with_views, attention, q, k, v, **options)
            check(isinstance(got, (tuple, list)) and len(got) == 2, "attention returns the pair (out, weights)")
            expected = by_hand(q, k, v, options.get("key_padding_mask"), causal=options.get("causal", False))
            same(got[1], expected[1], f"the weights of transposed q, k, v with {len(lead) + 2} axes")
            same(got[0], expected[0], f"the output of transposed q, k, v with {len(lead) + 2} axes")


def test_beta(attention, rng):
    """A given beta multiplies the dot products in place of 1 / sqrt(D); beta = 0 gives the plain mean."""
    q, k, v = _draw(rng, 3)
    uniform = torch.full((3, 4, 6), 1 / 6, dtype=F64)
    out, weights = _run(attention, q, k, v, beta=0.0)
    cause = "beta = 0 is taken for no beta at all; ask `beta is None`, for 0 counts as false"
    same_or_because(weights, uniform, "the weights at beta = 0", {cause: _by_hand(q, k, v)[1]})
    same(out, v.mean(1, keepdim=True).expand(3, 4, 7), "the output at beta = 0")
    for beta in (1.0, 0.3, 2.5):
        for padding in (None, _padding([6, 4, 2])):
            out, weights = _run(attention, q, k, v, key_padding_mask=padding, beta=beta)
            expected = _by_hand(q, k, v, padding, beta=beta)
            same_or_because(weights, expected[1], f"the weights at beta = {beta}", {
                "beta comes on top of 1 / sqrt(D); it takes its place":
                    _by_hand(q, k, v, padding, beta=beta / math.sqrt(5))[1],
                "beta has no effect": _by_hand(q, k, v, padding)[1],
                "you divide by beta, and it multiplies": _by_hand(q, k, v, padding, beta=1 / beta)[1],
            })
            same(out, expected[0], f"the output at beta = {beta}")


@pytest.mark.weight(0.5)
@pytest.mark.parametrize("lead", [(4,), (4, 2)], ids=["three-axes", "four-axes"])
def test_beta_zero_with_masks(attention, rng, lead):
    """At beta = 0 the keys that are not blocked share the weight evenly: a blocked key stays blocked, no NaN."""
    padding = torch.tensor([[0] * 6, [0, 1, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0], [1] * 6], dtype=torch.bool)
    for T in (4, 6, 8):
        q, k, v = _draw(rng, *lead, T=T)
        for mask in (None, padding):
            for causal in (False, True):
                got = attention(q, k, v, key_padding_mask=mask, causal=causal, beta=0.0)
                check(isinstance(got, (tuple, list)) and len(got) == 2, "attention returns the pair (out, weights)")
                out, weights = tensor(got[0], "the output", dtype=F64), tensor(got[1], "the weights", dtype=F64)
                told = " and ".join(["a padding mask"] * (mask is not None) + ["causal=True"] * causal) or "no mask"
                check(not weights.isnan().any(), f"beta = 0 with {told} gives NaN: 0 times -inf has no value, so "
                      "multiply by beta before you block keys", mistake="beta-after-the-mask")
                by_hand = _by_hand if len(lead) == 1 else _per_head
                expected = by_hand(q, k, v, mask, causal=causal, beta=0.0)
                same(weights, expected[1], f"the weights at beta = 0 with {told}")
                same(out, expected[0], f"the output at beta = 0 with {told}")


@pytest.mark.weight(0.5)
def test_half_precision(attention, rng):
    """q, k and v of 16 bits give results of 16 bits, with masks and without."""
    padding = _padding([6, 4, 0])
    for lead in ((3,), (3, 2)):
        inputs = [x.to(torch.bfloat16) for x in _draw(rng, *lead)]
        for options in ({}, {"beta": 0.3}, {"causal": True}, {"key_padding_mask": padding},
                        {"key_padding_mask": padding, "causal": True}):
            out, weights = _run(attention, *inputs, **options)
            by_hand = _by_hand if len(lead) == 1 else _per_head
            more = {name: value for name, value in options.items() if name != "key_padding_mask"}
            expected = by_hand(*(x.double() for x in inputs), options.get("key_padding_mask"), **more)
            same(weights.double(), expected[1], "the weights in bfloat16", rtol=0, atol=0.05)
            same(out.double(), expected[0], "the output in bfloat16", rtol=0, atol=0.2)


@pytest.mark.weight(0.5)
@pytest.mark.parametrize("T, S", [(150, 150), (3, 1100), (140, 2)], ids=["square", "many-keys", "many-queries"])
def test_many_keys(attention, rng, T, S):
    """The masks grow with the sequences: there is no largest number of queries or keys."""
    q, k, v = _draw(rng, 1, T=T, S=S, D=3, Dv=2)
    padding = torch.rand(1, S, generator=rng) < 0.3
    padding[:, 0] = False  # else it would hang on the seed whether the first query sees nothing, which is another case
    for options in ({"causal": True}, {"key_padding_mask": padding, "causal": True}):
        out, weights = _run(attention, q, k, v, **options)
        seen = _visible(T, S, options.get("key_padding_mask"), causal=True)
        scores = (q @ k.mT / math.sqrt(3)).masked_fill(~seen, -math.inf)
        expected = torch.softmax(scores, -1).masked_fill(~seen, 0.0)
        same(weights, expected, f"the causal weights for {T} queries and {S} keys")
        same(out, expected @ v, f"the output for {T} queries and {S} keys")


def test_large_scores(attention, rng):
    """Scores of +-10000 and beyond are finite in float32 and float64, and blocked keys stay blocked."""
    for dtype in (torch.float32, F64):
        q, k, v = _draw(rng, 3, D=4, dtype=dtype)
        q = q.sign() * 200
        k[:, :, 0] = q.new_tensor([100.0, -30.0, 60.0, 5.0, -80.0, 20.0]) * 5  # scores up to +-50000
        k[:, :, 1:] = 0
        padding = _padding([6, 4, 5])
        for options in ({}, {"key_padding_mask": padding}, {"key_padding_mask": padding, "causal": True}):
            out, weights = _run(attention, q, k, v, **options)
            check(out.isfinite().all() and weights.isfinite().all(), "large scores give results that are not finite")
            expected = _by_hand(q, k, v, options.get("key_padding_mask"), options.get("causal", False))
            same(weights, expected[1], "the weights for large scores", rtol=0, atol=1e-6)
            same(out, expected[0], "the output for large scores", rtol=1e-5, atol=1e-5)
    q, k, v = _draw(rng, 2, D=4)
    low = torch.full_like(k, -100.0)  # every real score is near -20000
    out, weights = _run(attention, torch.full_like(q, 100.0), low, v, key_padding_mask=_padding([4, 2]))
    same(weights, _by_hand(q, 0 * k, v, _padding([4, 2]))[1], "the weights when all real scores are near -20000 "
         "(a blocked score must lie below any of them)", atol=1e-6)


@pytest.mark.weight(2)
@pytest.mark.parametrize("lead", [(4,), (4, 2)], ids=["three-axes", "four-axes"])
def test_gradients(attention, reference, rng, lead):
    """Gradients of out and weights by q, k and v are right, and finite also where nothing is visible."""
    padding = torch.tensor([[0] * 6, [0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0], [1] * 6], dtype=torch.bool)
    for causal in (False, True):
        values = _draw(rng, *lead, T=5)
        up = torch.randn(*lead, 5, 7, generator=rng, dtype=F64), torch.randn(*lead, 5, 6, generator=rng, dtype=F64)
        gradients = []
        for function in (attention, reference.attention):
            leaves = [x.clone().requires_grad_() for x in values]
            outputs = _run(function, *leaves, key_padding_mask=padding, causal=causal)
            check(all(x.requires_grad for x in outputs), "no gradient flows: a result is cut off from the inputs "
                  "(numpy, `.detach()`, `.item()` or a new tensor made from numbers)")
            gradients.append(torch.autograd.grad(outputs, leaves, up, allow_unused=True))
        for name, mine, theirs in zip("qkv", *gradients, strict=True):
            check(mine is not None, f"no gradient reaches {name}")
            check(not mine.isnan().any(), f"the gradient of {name} has NaN: a NaN that is overwritten in the forward "
                  "pass comes back in the backward pass. Keep -inf minus -inf from happening at all")
            same(mine, theirs, f"the gradient of {name}" + (" with causal=True" if causal else ""))


def test_gradients_by_differences(attention, rng):
    """Finite differences of your own output agree with the gradients that flow back."""
    leaves = [x.requires_grad_() for x in _draw(rng, 2, T=2, S=3, D=2, Dv=2)]
    padding = _padding([3, 2], 3)
    _run(attention, *leaves, key_padding_mask=padding)
    options = {"raise_exception": False, "fast_mode": True, "check_undefined_grad": False}
    agrees = torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, padding, True)[0], leaves, **options)
    check(agrees, "moving q, k or v by a little changes the output by something else than the gradient says")


@pytest.mark.weight(2)
def test_built_from_its_parts(attention, in_box, rng):
    """It is written with products and a softmax, not with nn.MultiheadAttention or scaled_dot_product_attention."""
    cases = (((3,), {}), ((3,), {"key_padding_mask": _padding([6, 4, 2]), "causal": False}),
             ((2, 3), {"key_padding_mask": None, "causal": True}))
    for lead, options in cases:
        inputs = _draw(rng, *lead, D=60, Dv=70)  # thousands of numbers: too many to guess from times
        got, used = in_box(functions_called, attention, *inputs, **options)
        for name in ("multi_head_attention_forward", "scaled_dot_product_attention"):
            check(not any(str(call).endswith(name) for call in used), f"the answer calls F.{name}, which this question "
                  "rules out: it is what you are to build")
        check(isinstance(got, (tuple, list)) and len(got) == 2, "attention returns the pair (out, weights)")
        expected = (_by_hand if len(lead) == 1 else _per_head)(*inputs, options.get("key_padding_mask"),
                                                               causal=options.get("causal", False))
        for mine, right, what in zip(got, expected, ("output", "weights"), strict=True):
            same(mine, right, f"the {what} of a watched call")


@pytest.mark.weight(0.5)
def test_device(attention, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    q, k, v = _draw(rng, 3)
    device_ready(watch, attention, call=(q, k, v), kwargs={"key_padding_mask": _padding([6, 4, 1]), "causal": True})


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_softargmax(attention, softargmax, rng):
    """Together with your own q1_1: rows with padding, and one with nothing to see."""
    q, k, v = _draw(rng, 3)
    padding = _padding([6, 4, 0])
    softargmax(torch.zeros(2))
    out, weights = _run(attention, q, k, v, key_padding_mask=padding)
    expected = _by_hand(q, k, v, padding)
    same(weights, expected[1], "the weights")
    same(out, expected[0], "the output")
