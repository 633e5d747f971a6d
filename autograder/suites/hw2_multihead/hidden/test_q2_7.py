"""Hidden checks of q2_7: KVCache and cached_step, by value and by counted work."""

import math

import pytest
import torch

from autograder.in_box.hw2 import decode_with_new_weights, shared_state
from autograder.judge.faults import StudentRaised
from autograder.suites.causes import same_or_because
from autograder.suites.devices import STRAY, on_another_device
from autograder.suites.growth import growth_exponent
from autograder.suites.measures import worked_in_spans
from autograder.suites.once import once
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.hw2.kv_runs import decode_stepwise, decode_together
from course_utils.instruments.torch_match import projection_weights, torch_twin, twin_attention

F64 = torch.float64
D, H = 12, 3


def _module(MultiHeadAttention, rng, d_model=D, n_heads=H, bias=True, dtype=F64, **options):
    """The module of q2_2 in eval mode with random weights, and those weights."""
    mha = MultiHeadAttention(d_model, n_heads, bias=bias, **options)
    mha.eval()
    mha.double() if dtype == F64 else mha.float()
    weights = projection_weights(d_model, rng, bias, dtype)
    mha.load_state_dict({**mha.state_dict(), **weights})
    return mha, weights


def _tokens(rng, B=3, N=7, d_model=D, dtype=F64):
    return torch.randn(B, N, d_model, generator=rng, dtype=F64).to(dtype)


def _joined(steps, x):
    """The outputs of all steps as one tensor [B, N, D], after a look at their form."""
    B, N, width = x.shape
    check(isinstance(steps, list) and len(steps) == N, f"there are {N} steps, and not all of them gave an output")
    outputs = [tensor(out, f"the output of step {t}", (B, 1, width), x.dtype) for t, out in enumerate(steps)]
    joined = torch.cat(outputs, 1)
    check(not joined.isnan().any(), "an output has NaN")
    return joined


@once
def _by_hand(weights, n_heads, x, seen=None, scale=None, bare=False):
    """The causal pass, step by step; `seen(t)` are the positions that step t looks at."""
    B, N, width = x.shape
    Dh = width // n_heads

    def project(name, value):
        bias = weights.get(f"{name}.bias", torch.zeros(width, dtype=x.dtype))
        return value @ weights[f"{name}.weight"].mT + bias

    q, k, v = (torch.stack(project(name, x).split(Dh, -1), 1) for name in ("q_proj", "k_proj", "v_proj"))
    rows = []
    for t in range(N):
        at = list(range(t + 1)) if seen is None else seen(t)
        scores = torch.einsum("bhd,bhjd->bhj", q[:, :, t], k[:, :, at]) * (scale or 1 / math.sqrt(Dh))
        rows.append(torch.einsum("bhj,bhjd->bhd", scores.softmax(-1), v[:, :, at]).flatten(1))
    merged = torch.stack(rows, 1)
    return merged if bare else project("o_proj", merged)


def _compare(got, weights, x, told, n_heads=H):
    expected = twin_attention(torch_twin(weights, n_heads), x, x, x, causal=True)[0].detach()
    same_or_because(got, expected, told, {
        "the new token looks at itself alone; what the cache holds is not used":
            _by_hand(weights, n_heads, x, lambda t: [t]),
        "the new token does not see itself; its key and value belong into the cache before it looks":
            _by_hand(weights, n_heads, x, lambda t: list(range(max(t, 1)))),
        "the new token sees only the first key; a causal mask for one query must let it see everything":
            _by_hand(weights, n_heads, x, lambda t: [0]),
        "the cache keeps the last token alone":
            _by_hand(weights, n_heads, x, lambda t: list(range(max(t - 1, 0), t + 1))),
        "the heads are not split": _by_hand(weights, 1, x),
        "the scores are divided by sqrt(D), and a head's dot product runs over Dh entries":
            _by_hand(weights, n_heads, x, scale=1 / math.sqrt(x.shape[-1])),
        "the scale 1 / sqrt(Dh) is missing": _by_hand(weights, n_heads, x, scale=1.0),
        "o_proj is not applied": _by_hand(weights, n_heads, x, bare=True),
        "o_proj's bias is missing":
            expected - weights["o_proj.bias"] if "o_proj.bias" in weights else torch.zeros_like(expected),
    }, **({} if x.dtype == F64 else {"atol": 1e-5}))


@pytest.mark.weight(3)
def test_agrees_with_the_full_pass(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Token by token, the outputs are those of one causal pass of torch's attention over the whole sequence."""
    mha, weights = _module(MultiHeadAttention, rng)
    x = _tokens(rng)
    _compare(_joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x), weights, x, "the outputs of all steps")


@pytest.mark.weight(2)
def test_other_sizes(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """One head or many, one row or several, with and without biases."""
    sizes = ((12, 1, 2, 4, True), (8, 8, 4, 5, True), (10, 2, 1, 6, False), (6, 3, 2, 1, True))
    for d_model, n_heads, B, N, bias in sizes:
        mha, weights = _module(MultiHeadAttention, rng, d_model, n_heads, bias)
        x = _tokens(rng, B, N, d_model)
        got = _joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x)
        _compare(got, weights, x, f"the outputs with D={d_model}, H={n_heads}, B={B}, bias={bias}", n_heads)


def test_long_sequence(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Nothing is lost over 70 steps, nor over 540."""
    mha, weights = _module(MultiHeadAttention, rng)
    x = _tokens(rng, 2, 70)
    _compare(_joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x), weights, x, "the outputs of 70 steps")
    mha, weights = _module(MultiHeadAttention, rng, 2, 1)
    x = _tokens(rng, 1, 540, 2)
    expected = twin_attention(torch_twin(weights, 1), x, x, x, causal=True)[0].detach()
    same(_joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x), expected, "the outputs of 540 steps (a "
         "cache has no largest length)")


@pytest.mark.weight(2)
def test_repeated_tokens(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """A token that comes again is a token more, and so is one of zeros: each has a key and a value of its own."""
    mha, weights = _module(MultiHeadAttention, rng)
    x = _tokens(rng, N=4)[:, [0, 1, 0, 0, 2, 1, 3, 0]]
    x[1] = x[1, :1]  # one token all the way
    x[:, 4] = 0
    same_rows = x[:1].expand(3, -1, -1).clone()
    for y, told in ((x, "tokens that come again"), (same_rows, "rows that are all the same")):
        got = _joined(in_box(decode_stepwise, cached_step, KVCache, mha, y), y)
        _compare(got, weights, y, f"the outputs for {told} (every step adds one key and one value)")


def test_training_mode(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Dropout is off in a step, also where the module is in training mode."""
    for dropout in (0.0, 0.5):
        mha, weights = _module(MultiHeadAttention, rng, dropout=dropout)
        mha.train()
        x = _tokens(rng)
        got = _joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x)
        _compare(got, weights, x, f"the outputs of a module in training mode with dropout={dropout} (a step drops "
                 "nothing)")


def test_float32(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """A module and tokens in float32 give float32, to its precision."""
    mha, weights = _module(MultiHeadAttention, rng, dtype=torch.float32)
    x = _tokens(rng, dtype=torch.float32)
    got = _joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x)
    _compare(got, weights, x, "the outputs in float32")


@pytest.mark.weight(2)
def test_caches_are_apart(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Two sequences in turns, each with its own KVCache(), give what each gives alone."""
    mha, weights = _module(MultiHeadAttention, rng)
    first, second = _tokens(rng), _tokens(rng)
    try:
        got = in_box(decode_together, cached_step, KVCache, mha, [first, second])
        for x, steps, which in zip((first, second), got, ("first", "second"), strict=True):
            expected = twin_attention(torch_twin(weights, H), x, x, x, causal=True)[0].detach()
            same(_joined(steps, x), expected, f"the outputs of the {which} of two sequences in turns (do the caches "
                 "share something: an attribute of the class, a global, a default argument?)")
    except (Wrong, StudentRaised) as error:
        shared = in_box(shared_state, KVCache)
        check(not shared, f"two new caches have the same {', '.join(map(str, shared))}", mistake="cache-shared-by-all")
        raise error from None


def test_a_new_cache_is_empty(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """After a sequence is done, a new KVCache() knows nothing of it, also with another module or batch."""
    mha, weights = _module(MultiHeadAttention, rng)
    other, other_weights = _module(MultiHeadAttention, rng, 8, 2)
    again = [(mha, weights, 3, H)] * 4  # the same shapes: what is left behind would fit
    for module, known, B, n_heads in (*again, (mha, weights, 1, H), (other, other_weights, 2, 2)):
        x = _tokens(rng, B, 4, len(known["q_proj.weight"]))
        got = _joined(in_box(decode_stepwise, cached_step, KVCache, module, x), x)
        expected = twin_attention(torch_twin(known, n_heads), x, x, x, causal=True)[0].detach()
        same(got, expected, "the outputs with a new cache, after another sequence was decoded (all that a cache knows "
             "belongs inside it)")


@pytest.mark.weight(2)
def test_old_tokens_keep_their_keys(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Only the new token is projected: old keys and values stay, even if the module has new weights by then."""
    mha, old = _module(MultiHeadAttention, rng)
    new, x, switch = projection_weights(D, rng), _tokens(rng), 4
    got = in_box(decode_with_new_weights, cached_step, KVCache, mha, x, new, switch)
    got = _joined(got, x)[:, switch:]
    before, after = (_projected(weights, x) for weights in (old, new))
    (q, all_k, all_v), (_, old_k, old_v) = after, before
    k, v = (torch.cat([a[:, :, :switch], b[:, :, switch:]], 2) for a, b in ((old_k, all_k), (old_v, all_v)))
    expected, anew = (_attended(q, k, v, new)[:, switch:] for k, v in ((k, v), (all_k, all_v)))
    same_or_because(got, expected, f"the outputs from step {switch} on, where the module has new weights", {
        "the keys and values of old tokens are made anew from their inputs; keep projected keys and values": anew,
    })


def _projected(weights, x):
    """Queries, keys and values [B, H, N, Dh] of all tokens."""
    names = ("q_proj", "k_proj", "v_proj")
    return [torch.stack((x @ weights[f"{name}.weight"].mT + weights[f"{name}.bias"]).chunk(H, -1), 1) for name in names]


def _attended(q, k, v, weights):
    """The causal pass from queries, keys and values to outputs [B, N, D]."""
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.cat(heads.unbind(1), -1) @ weights["o_proj.weight"].mT + weights["o_proj.bias"]


def test_large_scores(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Scores of a thousand and more neither overflow nor become NaN."""
    mha, weights = _module(MultiHeadAttention, rng)
    large = {name: w * (40 if name[0] in "qk" else 1) for name, w in weights.items()}
    mha.load_state_dict({**mha.state_dict(), **large})
    x = _tokens(rng)
    got = _joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x)
    _compare(got, large, x, "the outputs with scores of a thousand and more")


def test_rows_are_apart(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Every row of the batch has its own past: other tokens in one row leave the others as they are."""
    mha, _ = _module(MultiHeadAttention, rng)
    x = _tokens(rng)
    other = x.clone()
    other[1] = _tokens(rng, 1)[0]
    before, after = (_joined(in_box(decode_stepwise, cached_step, KVCache, mha, y), y) for y in (x, other))
    same(after[::2], before[::2], "the outputs of the other rows")
    check((after[1] - before[1]).abs().amax(-1).min() > 1e-6, "another row of tokens gives the same outputs")


WIDTH, HEADS, ROWS = 24, 4, 2


def _work(MultiHeadAttention, KVCache, cached_step, watch, rng, spans):
    """What the steps of each span cost together, once their outputs are right."""
    mha, weights = _module(MultiHeadAttention, rng, WIDTH, HEADS)
    x = _tokens(rng, ROWS, spans[-1][1], WIDTH)
    expected = twin_attention(torch_twin(weights, HEADS), x, x, x, causal=True)[0].detach()
    with watch() as session:
        found = worked_in_spans(session, cached_step, KVCache, mha, x, spans)
    for (first, _), work in zip(spans, found, strict=True):
        for t, out in enumerate(work["result"], first + 1):
            same(out, expected[:, t - 1 : t], f"the output of step {t} (counted only where it is right)")
    return found


@pytest.mark.weight(2)
def test_only_the_new_token_is_projected(MultiHeadAttention, KVCache, cached_step, watch, rng):
    """Counted work: a step projects one token, and looks with it at the tokens so far; nothing is done twice."""
    spans = [(t - 1, t) for t in (12, 24)]
    for (_, t), work in zip(spans, _work(MultiHeadAttention, KVCache, cached_step, watch, rng, spans), strict=True):
        projections, products = ROWS * 8 * WIDTH**2, ROWS * 4 * t * WIDTH
        again = ROWS * 4 * t * WIDTH**2  # keys and values of all tokens
        check(work["flops"] <= 1.1 * projections + 3 * products, f"the step to length {t} costs {work['flops']:,} "
              f"operations; projecting one token costs {projections:,} and its two products {products:,}. Projecting "
              f"the keys and values of all {t} tokens again would cost {again:,}: keep projected keys and values in "
              "the cache, and let the one new query look at them")


@pytest.mark.weight(2)
def test_work_is_linear(MultiHeadAttention, KVCache, cached_step, watch, rng):
    """Counted work: what a step costs grows no faster than the length."""
    ends = [16, 32, 64]
    spans = [(end - 8, end) for end in ends]  # 8 steps together: a cache may grow by leaps
    found = _work(MultiHeadAttention, KVCache, cached_step, watch, rng, spans)
    told = {"flops": "operations", "made": "numbers written to memory", "largest": "the largest tensor"}
    for kind, what in told.items():
        power = growth_exponent(ends, [work[kind] for work in found])
        check(power < 1.35, f"from length 16 to 64 the work of a step ({what}) grows like the length to the power of "
              f"{power:.2f}, and 1 is enough: one query looks at t keys; a table of t x t is not needed")


@pytest.mark.weight(0.5)
def test_device(MultiHeadAttention, KVCache, cached_step, watch, rng):
    """Nothing is made on a fixed device, not in an empty cache either: it would run on a GPU as it stands."""
    mha, weights = _module(MultiHeadAttention, rng)
    x, steps = _tokens(rng), []
    with on_another_device(watch, "empty-on-the-cpu") as session:
        cache = session.call(KVCache, opaque="all").value
        for t in range(x.shape[1]):
            seen = session.call(cached_step, mha, x[:, t : t + 1], cache, opaque="last")
            check(isinstance(seen.value, (tuple, list)) and len(seen.value) == 2, "cached_step returns (out, cache)")
            check(not seen.strays, STRAY)
            out, cache = seen.value
            steps.append(out)
    _compare(_joined(steps, x), weights, x, "the outputs of all steps on another device")


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_attention(MultiHeadAttention, KVCache, cached_step, in_box, rng):
    """Together with your own q2_1 and q2_2, stepwise outputs are those of your own module with causal=True."""
    mha, _ = _module(MultiHeadAttention, rng)
    x = _tokens(rng)
    full = mha(x, x, x, causal=True)
    check(isinstance(full, (tuple, list)) and len(full) == 2, "your module's forward returns the pair (out, weights)")
    expected = tensor(full[0], "your module's output", x.shape, F64).detach()
    check(not expected.isnan().any(), "your module's output has NaN")
    steps = _joined(in_box(decode_stepwise, cached_step, KVCache, mha, x), x)
    gap = (steps - expected).abs().max().item()
    check(gap < 1e-6, f"your q2_7 and your own q2_2 disagree: stepwise outputs and one pass of your module with "
          f"causal=True differ by up to {gap:.4g}. Which of the two is wrong, their own cases tell")
