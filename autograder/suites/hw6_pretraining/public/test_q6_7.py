"""Public checks of q6_7: GPT."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import NotAnswered, Wrong, check, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.hw6.torch_gpt import gpt_weights, loaded, twin_logits, twin_padded
from course_utils.hw6.writing_runs import chunk_work, in_chunks, two_caches
from course_utils.instruments.slopes import slopes

F64 = torch.float64
V, D, H, FF, L, MAX = 11, 8, 2, 12, 2, 10


def _weights(seed=67, **sizes):
    return gpt_weights(seed, **({"V": V, "D": D, "d_ff": FF, "L": L, "max_len": MAX} | sizes))


def _ids(B=2, N=7, seed=68):
    return torch.randint(V, (B, N), generator=torch.Generator().manual_seed(seed))


def _padded():
    """Three rows of 7 columns with 0, 2 and 6 paddings on the left."""
    return _ids(3), torch.arange(7) < torch.tensor([[0], [2], [6]])


def _real(logits, padding):
    return [row[~gone] for row, gone in zip(logits, padding, strict=True)]


def test_names(GPT):
    """The parameters have their names and shapes, and max_len is kept."""
    # keeps: names, max-len-kept
    model = GPT(V, D, H, FF, L, MAX)
    found = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    for name, value in _weights().items():
        check(name in found, f"`{name}` is missing among the parameters: {', '.join(sorted(found)[:6])}, ...")
        check(
            found[name] == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected {list(value.shape)}"
        )
    same(model.max_len, MAX, "the attribute max_len")


def test_torchs_own_layers(GPT):
    """With the same weights the logits are those of torch's own pre-norm layers."""
    # keeps: tanh-gelu, tied
    ids = _ids()
    got = tensor(loaded(GPT, _weights(), H)(ids), "the logits", (2, 7, V), F64)
    same(got.detach(), twin_logits(_weights(), H, ids), "the logits")


def _slopes(GPT):
    return run_beside(slopes, loaded(GPT, _weights(), H), _ids() % (V - 1))  # token V - 1 is not in the input


def test_where_gradients_go(GPT):
    """Every parameter gets a gradient, and the table of tokens gets it as the matrix of the logits too."""
    # keeps: tied
    found = _slopes(GPT)
    still = [name for name in _weights() if not name.endswith("k_proj.bias") and name not in found]
    check(not still, f"no gradient reaches `{still[0] if still else ''}`: is something frozen, detached or not used?")
    unseen = found["token_embed.weight"][V - 1]
    check(unseen.any(), "the logits send no gradient to `token_embed.weight`: it is detached there, or not tied")


def test_no_look_ahead(GPT):
    """Another last token changes no logit before it."""
    # keeps: causal
    model, ids, other = loaded(GPT, _weights(), H), _ids(), _ids()
    other[:, -1] = (other[:, -1] + 1) % V
    same(model(other)[:, :-1].detach(), model(ids)[:, :-1].detach(), "the logits before a token that was changed")


def test_dropout(GPT):
    """In training mode two passes differ, in evaluation mode they do not."""
    # keeps: dropout
    model, ids = loaded(GPT, _weights(), H, dropout=0.5), _ids()
    same(model(ids).detach(), twin_logits(_weights(), H, ids), "the logits in evaluation mode with dropout=0.5")
    model.train()
    check((model(ids) - model(ids)).abs().max() > 1e-6, "two passes in training mode with dropout=0.5 are the same")
    check(
        _embeddings_drop(GPT),
        "with branches that add nothing two passes in training mode are the same: the sum of the embeddings is dropped "
        "out too",
    )


def _embeddings_drop(GPT):
    """Whether two passes in training mode differ where no branch adds anything."""
    silent = {
        name: torch.zeros_like(value) if "o_proj" in name or "fc2" in name else value
        for name, value in _weights().items()
    }
    model, ids = loaded(GPT, silent, H, dropout=0.5), _ids()
    model.train()
    return bool((model(ids) - model(ids)).abs().max() > 1e-6)


def test_first_loss(GPT):
    """A new model knows nothing: its loss is near ln V."""
    # keeps: small-start
    model, ids = GPT(100, 32, 4, 64, 2, 16), torch.randint(100, (8, 16), generator=torch.Generator().manual_seed(1))
    loss = torch.nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()
    check(
        abs(loss - math.log(100)) < 0.3, f"the first loss with 100 tokens is {loss:.2f}, and ln 100 = 4.61: start small"
    )


def test_filled_up_on_the_left(GPT):
    """Rows that are filled up on the left have the logits that they have alone, whatever stands in the padding."""
    # keeps: left-positions, left-content, left-finite
    model, (ids, padding) = loaded(GPT, _weights(), H), _padded()
    got = tensor(model(ids, padding), "the logits with padding", (3, 7, V), F64).detach()
    check(got.isfinite().all(), "logits at padding are not finite: a padding token sees nothing, mind its softmax")
    for row, (mine, right) in enumerate(
        zip(_real(got, padding), twin_padded(_weights(), H, ids, padding), strict=True)
    ):
        same(mine, right, f"the real logits of row {row}, with {int(padding[row].sum())} paddings")
    other = torch.where(padding, (ids + 3) % V, ids)
    again = model(other, padding).detach()
    same(_real(again, padding), _real(got, padding), "the real logits with other tokens in the padding")


def test_in_chunks(GPT):
    """Token by token and in chunks, with one cache that is changed in place, the logits are those of the whole pass."""
    # keeps: chunks, cache-logits, in-place
    model, ids = loaded(GPT, _weights(), H), _ids()
    right = twin_logits(_weights(), H, ids)
    for lengths in ([1] * 7, [3, 1, 2, 1]):
        got = run_beside(in_chunks, model, ids, lengths)
        same(torch.cat([one.detach() for one in got], 1), right, f"the logits of chunks of {lengths} tokens")


def test_two_caches(GPT):
    """Two texts in turns, each with a cache of its own, do not see each other."""
    # keeps: two-caches
    model, first, second = loaded(GPT, _weights(), H), _ids(1, 4), _ids(1, 4, seed=69)
    got = run_beside(two_caches, model, first, second)
    for ids, mine in zip((first, second), got, strict=True):
        same(
            torch.cat([one.detach() for one in mine], 1),
            twin_logits(_weights(), H, ids),
            "the logits of two texts in turns",
        )


def test_mask_so_far(GPT):
    """With a cache the mask covers all tokens so far, and positions go on from the first real token."""
    # keeps: mask-so-far
    model, (ids, padding) = loaded(GPT, _weights(), H), _padded()
    for lengths in ([3, 4], [6, 1]):
        got = torch.cat([one.detach() for one in run_beside(in_chunks, model, ids, lengths, padding)], 1)
        check(got.isfinite().all(), "logits with a cache and padding are not finite")
        same(_real(got, padding), twin_padded(_weights(), H, ids, padding), f"the real logits in chunks of {lengths}")


def _work(GPT):
    wide = _weights(V=9, D=24, d_ff=48, max_len=24)
    return run_beside(chunk_work, loaded(GPT, wide, H), _ids(1, 20) % 9, [19, 1]), wide


def test_one_token_more(GPT):
    """Counted work: with 19 tokens in the cache, one more costs one token's way through the layers."""
    # keeps: counted
    work, wide = _work(GPT)
    same(work["result"].detach(), twin_logits(wide, H, _ids(1, 20) % 9)[:, -1:], "the logits of token 20")
    once = L * (8 * 24**2 + 4 * 24 * 48) + 2 * 24 * 9
    look = L * 4 * 24 * 24
    check(
        work["flops"] <= 1.2 * once + 3 * look,
        f"token 20 costs {work['flops']:,} operations; its own way through "
        f"the layers costs {once:,}: what is computed again that the cache could have kept?",
    )


def test_more_than_max_len(GPT):
    """More columns than max_len are a ValueError: tokens, those in the cache, and padding."""
    # keeps: too-long
    model = loaded(GPT, _weights(), H)
    ids = _ids(1, MAX + 1)
    expect_value_error(f"{MAX + 1} tokens with max_len = {MAX}", model, ids)
    expect_value_error("the same with padding", model, ids, torch.arange(MAX + 1)[None] < 4)
    expect_value_error("the same with a cache", run_beside, in_chunks, model, ids, [MAX, 1])
    model(ids[:, :MAX])


def probe_logits(GPT):
    return loaded(GPT, _weights(), H)(_ids())


def probe_one_head(GPT):
    return loaded(GPT, _weights(), 1)(_ids())


def probe_one_token(GPT):
    return loaded(GPT, _weights(), H)(_ids(N=1))


def probe_padded(GPT):
    ids, padding = _padded()
    return _real(loaded(GPT, _weights(), H)(ids, padding), padding)


def probe_padded_is_finite(GPT):
    ids, padding = _padded()
    return bool(loaded(GPT, _weights(), H)(ids, padding).isfinite().all())


def probe_padding_content(GPT):
    model, (ids, padding) = loaded(GPT, _weights(), H), _padded()
    other = torch.where(padding, (ids + 3) % V, ids)
    pairs = zip(_real(model(ids, padding), padding), _real(model(other, padding), padding), strict=True)
    return [bool((a - b).abs().max() > 1e-6) for a, b in pairs]


def probe_token_by_token(GPT):
    return torch.cat(run_beside(in_chunks, loaded(GPT, _weights(), H), _ids(), [1] * 7), 1)


def probe_chunks(GPT):
    return torch.cat(run_beside(in_chunks, loaded(GPT, _weights(), H), _ids(), [3, 4]), 1)


def probe_chunks_with_padding(GPT):
    ids, padding = _padded()
    got = torch.cat(run_beside(in_chunks, loaded(GPT, _weights(), H), ids, [6, 1], padding), 1)
    return _real(got, padding)


def probe_two_caches(GPT):
    model = loaded(GPT, _weights(), H)
    try:
        return [torch.cat(one, 1) for one in run_beside(two_caches, model, _ids(1, 3), _ids(1, 3, seed=69))]
    except (NotAnswered, Wrong):
        raise
    except Exception:
        return "fails"


def probe_work(GPT):
    return round(math.log2(_work(GPT)[0]["flops"]))


def probe_errors(GPT):
    model, ids = loaded(GPT, _weights(), H), _ids(1, MAX + 1)
    return [
        raises_value_error(model, ids),
        raises_value_error(model, ids, torch.arange(MAX + 1)[None] < 4),
        raises_value_error(run_beside, in_chunks, model, ids, [MAX, 1]),
        raises_value_error(run_beside, in_chunks, model, ids, [5, 6]),
    ]


def probe_first_loss(GPT):
    model, ids = GPT(100, 32, 4, 64, 2, 16), torch.randint(100, (8, 16), generator=torch.Generator().manual_seed(1))
    loss = torch.nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()
    return "near ln V" if abs(loss - math.log(100)) < 0.3 else "far"


def probe_eval_is_still(GPT):
    model, ids = loaded(GPT, _weights(), H, dropout=0.5), _ids()
    return bool((model(ids) - model(ids)).abs().max() > 1e-6)


def probe_all_dropped(GPT):
    """With dropout=1 nothing is left but what is not dropped: the last norm's bias."""
    model = loaded(GPT, _weights(), H, dropout=1.0)
    model.train()
    return model(_ids())


def probe_embeddings_drop(GPT):
    return _embeddings_drop(GPT)


def probe_slopes(GPT):
    found = _slopes(GPT)
    return [name in found for name in ("token_embed.weight", "position_embed.weight")], bool(
        found["token_embed.weight"][V - 1].any() if "token_embed.weight" in found else False
    )


def probe_first_row_padded(GPT):
    ids, padding = (x.flip(0) for x in _padded())
    return _real(loaded(GPT, _weights(), H)(ids, padding), padding)
