"""Public checks of q2_7: KVCache and cached_step."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import NotAnswered, Wrong, check, same, tensor
from course_utils.hw2.kv_runs import decode_together, decode_while_weights_change, work_per_step
from course_utils.instruments.torch_match import projection_weights, torch_twin, twin_attention

F64 = torch.float64
D, H = 6, 3


def _weights(bias=True):
    return projection_weights(D, torch.Generator().manual_seed(27), bias)


def _module(MultiHeadAttention, n_heads=H, bias=True):
    """Your module in float64 and eval mode, with fixed weights."""
    mha = MultiHeadAttention(D, n_heads, bias=bias)
    mha.double()
    mha.eval()
    mha.load_state_dict({**dict(mha.state_dict()), **_weights(bias)})
    return mha


def _tokens(B=2, N=5, seed=28):
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(seed), dtype=F64)


def _decode(cached_step, KVCache, mha, *sequences):
    """All tokens of each sequence, one by one and in turns, each with a cache of its own: [B, N, D] each."""
    decoded, outputs = [], run_beside(decode_together, cached_step, KVCache, mha, list(sequences))
    for x, steps in zip(sequences, outputs, strict=True):
        B, _, width = x.shape
        steps = [tensor(out, f"the output of step {t}", (B, 1, width), F64) for t, out in enumerate(steps)]
        decoded.append(torch.cat(steps, 1).detach())
    return decoded if len(sequences) > 1 else decoded[0]


def _work(cached_step, KVCache, mha, lengths):
    return run_beside(work_per_step, cached_step, KVCache, mha, _tokens(N=lengths[-1]), lengths)


def test_first_token(MultiHeadAttention, KVCache, cached_step):
    """The first token has nothing but itself to look at: o_proj(v_proj(x))."""
    # keeps: full-pass
    mha, x, w = _module(MultiHeadAttention), _tokens(N=1), _weights()
    value = x @ w["v_proj.weight"].T + w["v_proj.bias"]
    expected = value @ w["o_proj.weight"].T + w["o_proj.bias"]
    same(_decode(cached_step, KVCache, mha, x), expected, "the output for the first token")


def test_equals_the_full_pass(MultiHeadAttention, KVCache, cached_step):
    """Token by token, the outputs are those of one causal pass over the whole sequence."""
    # keeps: full-pass
    x = _tokens()
    got = _decode(cached_step, KVCache, _module(MultiHeadAttention), x)
    expected = twin_attention(torch_twin(_weights(), H), x, x, x, causal=True)[0].detach()
    for t in range(x.shape[1]):
        same(got[:, t], expected[:, t], f"the output of step {t}")


def test_two_sequences(MultiHeadAttention, KVCache, cached_step):
    """Two sequences in turns, each with a KVCache of its own, do not see each other."""
    # keeps: own-caches
    both = _tokens(), _tokens(seed=29)
    for x, got in zip(both, _decode(cached_step, KVCache, _module(MultiHeadAttention), *both), strict=True):
        expected = twin_attention(torch_twin(_weights(), H), x, x, x, causal=True)[0].detach()
        same(got, expected, "the outputs of two sequences that are decoded in turns")


def test_work(MultiHeadAttention, KVCache, cached_step):
    """Counted work: the step to length 24 projects one token and makes one query look at 24 keys."""
    # keeps: linear-work, new-token-alone
    x = _tokens(N=24)
    expected = twin_attention(torch_twin(_weights(), H), x, x, x, causal=True)[0].detach()
    (work,) = _work(cached_step, KVCache, _module(MultiHeadAttention), [24])
    same(work["result"], expected[:, 23:], "the output of step 24 (its work is counted only where it is right)")
    projections, products = 2 * 8 * D * D, 2 * 4 * 24 * D
    check(work["flops"] <= 1.1 * projections + 3 * products, f"the step to length 24 costs {work['flops']:,} "
          f"operations; projecting one token costs {projections:,} and the two products {products:,}: what is done "
          "again that the cache could have kept?")


def test_repeated_tokens_and_large_scores(MultiHeadAttention, KVCache, cached_step):
    """A token that comes again counts again, and scores of a thousand do not overflow; batches of one too."""
    # keeps: full-pass
    mha = _module(MultiHeadAttention)
    for told, x in (("a token that comes three "
                     "times", _tokens(N=3)[:, [0, 1, 0, 2, 0]]), ("large tokens", 40 * _tokens()),
                    ("a batch of one", _tokens(B=1))):
        expected = twin_attention(torch_twin(_weights(), H), x, x, x, causal=True)[0].detach()
        same(_decode(cached_step, KVCache, mha, x), expected, f"the outputs for {told}", rtol=1e-6, atol=1e-6)


def test_dropout_is_off(MultiHeadAttention, KVCache, cached_step):
    """A step drops nothing, also when the module is in training mode."""
    # keeps: no-dropout
    mha, x = MultiHeadAttention(D, H, dropout=0.5), _tokens()
    mha.double()
    mha.train()
    mha.load_state_dict({**dict(mha.state_dict()), **_weights()})
    expected = twin_attention(torch_twin(_weights(), H), x, x, x, causal=True)[0].detach()
    same(_decode(cached_step, KVCache, mha, x), expected, "the outputs of a module in training mode")


def test_old_keys_stay(MultiHeadAttention, KVCache, cached_step):
    """An old token keeps the key and the value of its own step, even if the layer has other weights by now."""
    # keeps: old-keys-stay, new-token-alone
    x, old = _tokens(N=3), _weights()
    new = projection_weights(D, torch.Generator().manual_seed(127), True)
    got = run_beside(decode_while_weights_change, cached_step, KVCache, _module(MultiHeadAttention), x, new)

    def heads(name, tokens, weights):
        return (tokens @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]).unflatten(-1, (H, -1)).transpose(1, 2)

    q = heads("q_proj", x[:, 2:], new)
    k, v = (torch.cat([heads(name, x[:, :2], old), heads(name, x[:, 2:], new)], 2) for name in ("k_proj", "v_proj"))
    mixed = ((q @ k.mT / (D // H) ** 0.5).softmax(-1) @ v).transpose(1, 2).flatten(2)
    same(got, mixed @ new["o_proj.weight"].T + new["o_proj.bias"], "the output of a step after the weights have "
         "changed")


def probe_decode(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens())


def probe_first_token(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens(N=1))


def probe_second_token(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens(N=2))[:, 1]


def probe_one_head(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention, n_heads=1), _tokens())


def probe_one_row(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens(B=1))


def probe_without_bias(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention, bias=False), _tokens())


def probe_a_second_cache(MultiHeadAttention, KVCache, cached_step):
    mha = _module(MultiHeadAttention)
    _decode(cached_step, KVCache, mha, _tokens(N=2))
    return _decode(cached_step, KVCache, mha, _tokens(N=3, seed=29))


def probe_a_new_cache_is_empty(MultiHeadAttention, KVCache, cached_step):
    mha, x = _module(MultiHeadAttention), _tokens(N=1)
    try:
        first, second = (_decode(cached_step, KVCache, mha, x) for _ in range(2))
    except (NotAnswered, Wrong):
        raise
    except Exception:  # what an earlier sequence has left behind need not fit
        return False
    return bool(torch.equal(first, second))


def probe_two_sequences(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens(N=3), _tokens(N=3, seed=29))


def probe_float32(MultiHeadAttention, KVCache, cached_step):
    mha = _module(MultiHeadAttention)
    mha.float()
    (steps,) = run_beside(decode_together, cached_step, KVCache, mha, [_tokens(N=2).float()])
    return [str(out.dtype) for out in steps]


def probe_other_weights_midway(MultiHeadAttention, KVCache, cached_step):
    mha, cache, x, out = _module(MultiHeadAttention), KVCache(), _tokens(), None
    for t in range(3):
        if t == 2:  # what is in the cache by now stays as it is
            mha.load_state_dict({**dict(mha.state_dict()), **{name: -0.5 * w for name, w in _weights().items()}})
        out, cache = cached_step(mha, x[:, t : t + 1], cache)
    return out


def probe_operations(MultiHeadAttention, KVCache, cached_step):
    (work,) = _work(cached_step, KVCache, _module(MultiHeadAttention), [24])
    return bool(work["flops"] > 2 * 9 * D * D + 2 * 12 * 24 * D)


def probe_operations_in_units_of_a_step(MultiHeadAttention, KVCache, cached_step):
    (work,) = _work(cached_step, KVCache, _module(MultiHeadAttention), [24])
    right = 2 * 8 * D * D + 2 * 4 * 24 * D
    return round(work["flops"] / right) if work["flops"] > 3 * right else "few"


def probe_growth(MultiHeadAttention, KVCache, cached_step):
    work = _work(cached_step, KVCache, _module(MultiHeadAttention), [24, 48])
    return {kind: work[1][kind] > 3 * work[0][kind] for kind in ("flops", "largest")}


def probe_steps_before_an_error(MultiHeadAttention, KVCache, cached_step):
    mha, cache, x = _module(MultiHeadAttention), KVCache(), _tokens()
    for t in range(3):
        try:
            _, cache = cached_step(mha, x[:, t : t + 1], cache)
        except NotAnswered:
            raise
        except Exception as error:
            return [str(t), type(error).__name__]
    return "no error"


def probe_shape(MultiHeadAttention, KVCache, cached_step):
    return str(list(cached_step(_module(MultiHeadAttention), _tokens(N=1), KVCache())[0].shape))


def probe_repeated_tokens(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens()[:, [0, 1, 0, 0, 2]])


def probe_training_mode_drops(MultiHeadAttention, KVCache, cached_step):
    mha = _module(MultiHeadAttention)
    mha.train()
    first, second = (_decode(cached_step, KVCache, mha, _tokens(N=24)) for _ in range(2))
    return bool((first - second).abs().max() > 1e-6)


def probe_large_scores(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), 100 * _tokens())


def probe_twelve_tokens(MultiHeadAttention, KVCache, cached_step):
    return _decode(cached_step, KVCache, _module(MultiHeadAttention), _tokens(N=12))
