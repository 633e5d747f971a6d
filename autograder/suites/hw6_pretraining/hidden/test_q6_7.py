"""Hidden checks of q6_7: GPT, against torch's own layers and by counted work."""

import pytest
import torch

from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error
from course_utils.hw6.torch_gpt import gpt_weights, loaded, twin_logits, twin_padded
from course_utils.hw6.writing_runs import in_chunks, two_caches
from course_utils.instruments.calls import call_with_default_dtype

F64 = torch.float64


def _problem(rng, V=13, D=12, H=3, d_ff=20, L=2, max_len=12, B=3, N=9, dtype=F64):
    weights = gpt_weights(rng, V, D, d_ff, L, max_len, dtype)
    return weights, H, torch.randint(V, (B, N), generator=rng)


def _left(rng, B, N, most):
    """Different paddings on the left, none in the first row."""
    amounts = torch.randint(1, most + 1, (B, 1), generator=rng)
    amounts[0], amounts[-1] = 0, most
    return torch.arange(N) < amounts


def _real(logits, padding):
    return [row[~gone] for row, gone in zip(logits, padding, strict=True)]


def _joined(chunks, B, lengths, V, dtype=F64):
    check(isinstance(chunks, list | tuple) and len(chunks) == len(lengths), "not every chunk gave logits")
    return torch.cat(
        [
            tensor(one, f"the logits of chunk {i}", (B, n, V), dtype)
            for i, (one, n) in enumerate(zip(chunks, lengths, strict=True))
        ],
        1,
    ).detach()


@pytest.mark.weight(3)
def test_agrees_with_torch(GPT, rng):
    """With the same weights the logits are those of torch's own pre-norm layers, for several sizes."""
    for sizes in ({}, {"D": 8, "H": 1, "L": 1, "d_ff": 4}, {"D": 8, "H": 8, "L": 3, "B": 1, "N": 12}, {"N": 1}):
        weights, H, ids = _problem(rng, **sizes)
        got = tensor(loaded(GPT, weights, H)(ids), "the logits", (*ids.shape, len(weights["token_embed.weight"])), F64)
        same(got.detach(), twin_logits(weights, H, ids), f"the logits with {sizes or 'several blocks'}")


@pytest.mark.weight(1)
def test_causal(GPT, rng):
    """Later tokens change no logit."""
    weights, H, ids = _problem(rng)
    model, other = loaded(GPT, weights, H), ids.clone()
    other[:, 5:] = (other[:, 5:] + 1) % 13
    same(model(other)[:, :5].detach(), model(ids)[:, :5].detach(), "the logits before tokens that were changed")


@pytest.mark.weight(2)
def test_left_padding(GPT, rng):
    """Each row has the logits that its real tokens have alone, and logits at padding are finite."""
    weights, H, ids = _problem(rng, B=4)
    padding = _left(rng, 4, 9, 8)
    model = loaded(GPT, weights, H)
    got = tensor(model(ids, padding), "the logits with padding", (4, 9, 13), F64).detach()
    check(
        got.isfinite().all(),
        "logits at padding are not finite",
        mistake="nan-at-padding" if got.isnan().any() else None,
    )
    same(_real(got, padding), twin_padded(weights, H, ids, padding), "the real logits, row by row")
    none = torch.zeros_like(padding)
    same(model(ids, none).detach(), twin_logits(weights, H, ids), "the logits with a mask that masks nothing")


@pytest.mark.weight(1.5)
def test_padding_content(GPT, rng):
    """What stands in the padding changes no real logit, nor does more of it."""
    weights, H, ids = _problem(rng, B=4)
    padding, model = _left(rng, 4, 9, 6), loaded(GPT, weights, H)
    other = torch.where(padding, torch.randint(13, ids.shape, generator=rng), ids)
    right = twin_padded(weights, H, ids, padding)
    same(_real(model(other, padding).detach(), padding), right, "the real logits with other tokens in the padding")
    wider, mask = torch.cat([ids[:, :2], ids], 1), torch.cat([torch.ones(4, 2, dtype=torch.bool), padding], 1)
    same(_real(model(wider, mask).detach(), mask), right, "the real logits with two columns of padding more")


@pytest.mark.weight(2)
@pytest.mark.parametrize("lengths", [[1] * 9, [4, 5], [1, 3, 1, 4], [9]], ids=["single", "two", "mixed", "whole"])
def test_cache(GPT, in_box, rng, lengths):
    """In chunks of any length the logits are those of the whole pass; the cache is changed in place."""
    weights, H, ids = _problem(rng)
    got = _joined(in_box(in_chunks, loaded(GPT, weights, H), ids, lengths), 3, lengths, 13)
    same(got, twin_logits(weights, H, ids), f"the logits of chunks of {lengths} tokens")


@pytest.mark.weight(2)
@pytest.mark.parametrize("lengths", [[6, 1, 1, 1], [2, 7], [8, 1]], ids=["prompt", "early", "late"])
def test_cache_and_padding(GPT, in_box, rng, lengths):
    """With a cache and padding too, the mask covering all tokens so far; also where a row is all padding at first."""
    weights, H, ids = _problem(rng, B=4)
    padding = _left(rng, 4, 9, 5)
    got = _joined(in_box(in_chunks, loaded(GPT, weights, H), ids, lengths, padding), 4, lengths, 13)
    check(got.isfinite().all(), "logits with a cache and padding are not finite")
    same(_real(got, padding), twin_padded(weights, H, ids, padding), f"the real logits in chunks of {lengths}")


def test_caches_are_apart(GPT, in_box, rng):
    """Two texts in turns, each with a cache of its own, do not see each other."""
    weights, H, ids = _problem(rng)
    got = in_box(two_caches, loaded(GPT, weights, H), ids[:1, :5], ids[1:2, :5])
    for i, mine in enumerate(got):
        same(_joined(mine, 1, [1] * 5, 13), twin_logits(weights, H, ids[i : i + 1, :5]), f"the logits of text {i}")


@pytest.mark.weight(1.5)
def test_too_long(GPT, in_box, rng):
    """More than max_len columns are a ValueError, in the cache, in padding, or at once; exactly max_len are not."""
    weights, H, ids = _problem(rng, N=13)
    model, padding = loaded(GPT, weights, H), torch.arange(13).expand(3, 13) < 6
    expect_value_error("13 tokens with max_len = 12", model, ids)
    expect_value_error("7 tokens and 6 paddings with max_len = 12", model, ids, padding)
    for lengths in ([12, 1], [6, 7], [1, 12]):
        expect_value_error(f"chunks of {lengths} with max_len = 12", in_box, in_chunks, model, ids, lengths)
    expect_value_error(
        "12 columns with padding in the cache and one more", in_box, in_chunks, model, ids, [12, 1], padding
    )
    same(model(ids[:, :12]).detach(), twin_logits(weights, H, ids[:, :12]), "the logits of max_len tokens")
    got = _joined(in_box(in_chunks, model, ids[:, :12], [11, 1]), 3, [11, 1], 13)
    same(got, twin_logits(weights, H, ids[:, :12]), "the logits of max_len tokens with a cache")


@pytest.mark.weight(2)
def test_counted(GPT, watch, rng):
    """Counted: with a cache only the new tokens run through the layers, one or several, padding or not."""
    D, H, d_ff, L, max_len = 32, 4, 64, 2, 32
    for padded in (False, True):
        weights, H, ids = _problem(rng, 9, D, H, d_ff, L, max_len, B=2, N=28)
        model = loaded(GPT, gpt_weights(0, 9, D, d_ff, L, max_len), H)
        padding = torch.arange(28) < torch.tensor([[0], [3]]) if padded else None
        right = twin_padded(weights, H, ids, padding) if padded else list(twin_logits(weights, H, ids))
        with watch() as session:
            session.load(model, weights)
            cache, start = session.call(model.new_cache, opaque="all").value, 0
            for new in (23, 1, 1, 3):
                end = start + new
                mask = None if padding is None else padding[:, :end]
                seen = session.call(model, ids[:, start:end], mask, cache)
                once = 2 * new * (L * (8 * D**2 + 4 * D * d_ff) + 2 * D * 9)
                look = 2 * new * L * 4 * max_len * D
                for row, all_of_it in zip(seen.value, right, strict=True):
                    same(
                        row[-1],
                        all_of_it[len(all_of_it) - 28 + end - 1],
                        f"the logits of token {end} in a watched call",
                    )
                if start:
                    check(
                        seen.flops <= 1.2 * once + 3 * look,
                        f"with {start} tokens in the cache, {new} more for each of two "
                        f"texts cost {seen.flops:,} operations; their own way through the layers costs {once:,}: "
                        "what is computed again that the cache could have kept?",
                        mistake="everything-again",
                    )
                start = end


def _bare(V, D, L, max_len):
    """Weights with which every part can be seen alone: embeddings in features 0 to 3, branches in features 4 to 7."""
    weights = {name: torch.zeros_like(value) for name, value in gpt_weights(0, V, D, 2 * D, L, max_len).items()}
    weights["token_embed.weight"][0, :4] = 1.0
    weights["token_embed.weight"][1 : 1 + D] = torch.eye(D, dtype=F64)  # logits 1 to D are the features themselves
    weights["final_norm.weight"] += 1
    return weights


def _features(GPT, weights, dropout, B=24, T=6):
    """What reaches the last norm in training mode, in units of a kept embedding: [B, T, D], and who is usable."""
    D = weights["token_embed.weight"].shape[1]
    model = loaded(GPT, weights, 1, dropout=dropout)
    model.train()
    logits = tensor(model(torch.zeros(B, T, dtype=torch.long)), "the logits", (B, T, 1 + D), F64).detach()[..., 1:]
    low, high = logits[..., :4].amin(-1, keepdim=True), logits[..., :4].amax(-1, keepdim=True)
    usable = (high - low > 1e-3)[..., 0]  # among the four features of the embedding some are dropped, and some are not
    return (logits - low) / (high - low).clamp(min=1e-3), usable


@pytest.mark.weight(1)
def test_dropout_of_embeddings(GPT):
    """In training mode the embeddings' sum is dropped out; in evaluation mode nothing is."""
    weights = _bare(9, 8, 1, 8)
    _, usable = _features(GPT, weights, 0.5)
    check(
        usable.any(),
        "with dropout=0.5 no feature of the embeddings' sum is dropped in training mode",
        mistake="embeddings-not-dropped",
    )
    model = loaded(GPT, weights, 1, dropout=0.5)
    ids = torch.zeros(2, 6, dtype=torch.long)
    same(model(ids).detach(), twin_logits(weights, 1, ids), "the logits in evaluation mode with dropout=0.5")
    model = loaded(GPT, weights, 1)
    model.train()
    same(model(ids).detach(), twin_logits(weights, 1, ids), "the logits in training mode with dropout=0")


@pytest.mark.weight(1)
def test_dropout_of_attention(GPT):
    """The attention weights are dropped out, and the branch as a whole is."""
    weights = _bare(9, 8, 1, 8)
    weights["blocks.0.attn.v_proj.bias"][4:] = 1.0
    weights["blocks.0.attn.o_proj.weight"] += torch.eye(8, dtype=F64)
    features, usable = _features(GPT, weights, 0.5)
    check(usable.any(), "with dropout=0.5 no feature of the embeddings' sum is dropped in training mode")
    branch = features[..., 4:]  # kept features of a branch are twice as large, as are those of the embedding: 1 here
    first = branch[:, 0][usable[:, 0]]  # the first token has one key: its weight is 1, dropped or doubled
    shares = [float(value) for value in first.flatten()]
    check(
        all(min(abs(value), abs(value - 2)) < 1e-6 for value in shares),
        "a first token has one key, whose weight is "
        "dropped or doubled at dropout=0.5, and its branch again; your branch has other values",
        mistake="attention-weights-not-dropped",
    )
    kept = branch[usable]
    mixed = (kept.amax(-1) > 1e-6) & (kept.amin(-1) < 1e-6)
    check(mixed.any(), "the attention branch is added whole: its features are dropped out before it is added")


@pytest.mark.weight(1)
def test_dropout_of_the_feed_forward_branch(GPT):
    """The feed-forward branch is dropped out as a whole, and nothing inside it."""
    weights = _bare(9, 8, 1, 8)
    weights["blocks.0.ff.fc1.bias"] += 1.0
    hidden = torch.nn.functional.gelu(torch.ones((), dtype=F64), approximate="tanh")
    weights["blocks.0.ff.fc2.weight"][4:] = 1 / (16 * hidden)
    features, usable = _features(GPT, weights, 0.5)
    check(usable.any(), "with dropout=0.5 no feature of the embeddings' sum is dropped in training mode")
    branch = features[usable][:, 4:]
    inside = ((branch.abs() > 1e-6) & ((branch - 1).abs() > 1e-6)).any()
    check(
        not inside,
        "the feed-forward branch has other values than 0 and twice its size at dropout=0.5: something inside "
        "it is dropped, too",
        mistake="dropout-inside-ff",
    )
    check(
        ((branch - 1).abs() < 1e-6).any() and (branch.abs() < 1e-6).any(),
        "no feature of the feed-forward branch is dropped before it is added",
    )


@pytest.mark.weight(0.5)
def test_gradients(GPT, rng):
    """Every parameter learns: the tied embedding from both of its places."""
    weights, H, ids = _problem(rng)
    model, unseen = loaded(GPT, weights, H), len(weights["token_embed.weight"]) - 1
    model(ids % unseen)[:, :-1].square().mean().backward()
    still = [name for name, grad in model.grads().items() if grad is None or not grad.any()]
    still = [name for name in still if name in weights and not name.endswith("k_proj.bias")]
    check(not still, f"no gradient reaches {', '.join(still[:4])}")
    check(
        model.grads()["token_embed.weight"][unseen].any(),
        "the logits send no gradient to `token_embed.weight`: it is detached there, or not tied",
    )


@pytest.mark.weight(0.5)
def test_float32_and_devices(GPT, in_box, watch, rng):
    """Float32 in, float32 out, also where the default dtype is another; and it would run on a GPU as it stands."""
    weights, H, ids = _problem(rng, dtype=torch.float32)
    model = loaded(GPT, weights, H)
    got = in_box(call_with_default_dtype, model, F64, ids)
    same(
        tensor(got, "the logits", (3, 9, 13), torch.float32).detach(),
        twin_logits(weights, H, ids),
        "the logits",
        rtol=1e-3,
        atol=1e-4,
    )
    padding = _left(rng, 3, 9, 5)
    device_ready(watch, GPT, (13, 12, 3, 20, 2, 12), call=(ids, padding))
