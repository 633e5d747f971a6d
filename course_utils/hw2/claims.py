"""q2_10: eight claims about heads, masks, caches and counts, each with a function that tries it on an example.

`holds(name, example)` says whether a claim is true of one example (course_utils/checking/claims.py tells what that is).
Vectors are rows and weights stand on the right, Q = X Wq, without biases unless a claim has one; the scores are
divided by the root of the width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.claims import Claim, attend, check_scores, count, equal, holds_among, mask, numbers


def exchange_heads(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any, n_heads: Any, i: Any, j: Any) -> bool:
    """Whether the layer's output stays when heads i and j trade places: x [N, D], W* [D, D]."""
    x = numbers("x", x, 2)  # [N, D]
    D = x.shape[1]
    Wq, Wk, Wv, Wo = (numbers(name, W, 2, (D, D)) for name, W in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv), ("Wo", Wo)))
    H = _heads("n_heads", n_heads, D)
    i, j = count("i", i, least=0), count("j", j, least=0)
    if max(i, j) >= H:
        raise ValueError(f"i = {i} and j = {j} must be smaller than n_heads = {H}")
    order = [{i: j, j: i}.get(h, h) for h in range(H)]
    columns = [slice(h * D // H, (h + 1) * D // H) for h in order]
    Pq, Pk, Pv = (torch.cat([W[:, c] for c in columns], dim=1) for W in (Wq, Wk, Wv))  # [D, D]
    Po = torch.cat([Wo[c] for c in columns])  # [D, D]
    before, after = _head_terms(x, Wq, Wk, Wv, Wo, H), _head_terms(x, Pq, Pk, Pv, Po, H)  # [H, N, D]
    return equal(before.sum(0), after.sum(0), before.abs().amax())


def mask_after_softmax(scores: Any, blocked: Any, values: Any) -> bool:
    """Whether weights set to 0 after the softmax give what scores of -inf before it give."""
    scores = numbers("scores", scores, 2)  # [T, S]
    check_scores(scores)
    blocked = mask("blocked", blocked, 2, tuple(scores.shape))  # [T, S]
    values = numbers("values", values, 2)  # [S, Dv]
    if len(values) != scores.shape[1]:
        raise ValueError(f"values has {len(values)} rows and scores {scores.shape[1]} columns")
    before = scores.masked_fill(blocked, -math.inf).softmax(-1).masked_fill(blocked, 0.0)  # an empty row gives 0
    after = scores.softmax(-1).masked_fill(blocked, 0.0)
    return equal(before @ values, after @ values, values.abs().amax())


def cache_without_mask(x: Any, Wq: Any, Wk: Any, Wv: Any) -> bool:
    """Whether keys and values of the first N - 1 tokens stay, in every layer, when token N joins: W* [L, D, D]."""
    x = numbers("x", x, 2)  # [N, D]
    _check_joins(x)
    D = x.shape[1]
    Wq = numbers("Wq", Wq, 3)  # [L, D, D]
    L = len(Wq)
    layers = [numbers(name, W, 3, (L, D, D)) for name, W in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv))]
    old, new = x[:-1], x
    for q, k, v in zip(*layers, strict=True):
        for W in (k, v):
            if not equal(old @ W, (new @ W)[:-1], new.abs().amax() * W.abs().amax()):
                return False
        old, new = (X + attend(X @ q, X @ k, X @ v) for X in (old, new))
    return True


def key_bias_is_idle(x: Any, Wq: Any, Wk: Any, Wv: Any, bk: Any) -> bool:
    """Whether one head's output is the same with and without the bias bk [D] on its keys."""
    x = numbers("x", x, 2)  # [N, D]
    D = x.shape[1]
    Wq, Wk, Wv = (numbers(name, W, 2, (D, D)) for name, W in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv)))
    bk = numbers("bk", bk, 1, (D,))
    Q, K, V = x @ Wq, x @ Wk, x @ Wv  # [N, D]
    return equal(attend(Q, K, V), attend(Q, K + bk, V), V.abs().amax())


def heads_get_slices(x: Any, Wq: Any, Wk: Any, Wv: Any, n_heads: Any, head: Any) -> bool:
    """Whether the head's output stays when all features outside of its slice of x are set to 0: x [N, D], W* [D, D]."""
    x = numbers("x", x, 2)  # [N, D]
    D = x.shape[1]
    Wq, Wk, Wv = (numbers(name, W, 2, (D, D)) for name, W in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv)))
    H, h = _heads("n_heads", n_heads, D), count("head", head, least=0)
    if h >= H:
        raise ValueError(f"head = {h} must be smaller than n_heads = {H}")
    own = slice(h * D // H, (h + 1) * D // H)
    cut = torch.zeros_like(x)
    cut[:, own] = x[:, own]
    whole, sliced = (attend(z @ Wq[:, own], z @ Wk[:, own], z @ Wv[:, own]) for z in (x, cut))  # [N, Dh]
    return equal(whole, sliced, torch.maximum(whole.abs().amax(), sliced.abs().amax()))


def more_heads_cost_less(N: Any, D: Any, fewer: Any, more: Any) -> bool:
    """Whether, at N tokens of width D, more > fewer makes the layer with more heads take fewer FLOPs."""
    N, D = count("N", N), count("D", D)
    fewer, more = _heads("fewer", fewer, D), _heads("more", more, D)

    def flops(H: int) -> int:
        width = D // H
        projections = H * 3 * 2 * N * D * width + 2 * N * D * D  # each head has three of its own; one puts together
        return projections + H * 2 * 2 * N * N * width  # scores, and weights times values

    return more <= fewer or flops(more) < flops(fewer)


def cross_needs_equal_width(x: Any, y: Any, Wq: Any, Wk: Any, Wv: Any) -> bool:
    """Whether tokens x [T, D1] and y [S, D2] of different widths leave cross-attention without an output."""
    x, y = numbers("x", x, 2), numbers("y", y, 2)
    projections = (("Wq", Wq, x, "x"), ("Wk", Wk, y, "y"), ("Wv", Wv, y, "y"))
    Wq, Wk, Wv = (numbers(name, W, 2) for name, W, _, _ in projections)
    for (name, _, tokens, of), W in zip(projections, (Wq, Wk, Wv), strict=True):
        if len(W) != tokens.shape[1]:
            raise ValueError(f"{name} has {len(W)} rows, and the tokens of {of} have width {tokens.shape[1]}")
    if x.shape[1] == y.shape[1] or Wq.shape[1] != Wk.shape[1]:
        return True  # the claim says nothing of equal widths; and queries and keys of different widths do not multiply
    return not bool(attend(x @ Wq, y @ Wk, y @ Wv).isfinite().all())


def new_key_meets_old_queries(x: Any, Wq: Any, Wk: Any, Wv: Any) -> bool:
    """Whether the outputs of the first N - 1 tokens of causal self-attention are others once token N has joined."""
    x = numbers("x", x, 2)  # [N, D]
    _check_joins(x)
    D = x.shape[1]
    Wq, Wk, Wv = (numbers(name, W, 2, (D, D)) for name, W in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv)))
    old, new = (attend(z @ Wq, z @ Wk, z @ Wv, causal=True) for z in (x[:-1], x))
    return not equal(old, new[:-1], (x @ Wv).abs().amax())


def _head_terms(x: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor, Wo: Tensor, H: int) -> Tensor:
    """What each head adds to the output: head h has columns h * Dh ... of Wq, Wk, Wv, and the same rows of Wo."""
    terms = []
    for h in range(H):
        c = slice(h * len(Wq) // H, (h + 1) * len(Wq) // H)
        terms.append(attend(x @ Wq[:, c], x @ Wk[:, c], x @ Wv[:, c]) @ Wo[c])  # [N, D]
    return torch.stack(terms)  # [H, N, D]


def _check_joins(x: Tensor) -> None:
    if len(x) < 2:
        raise ValueError(f"x has {len(x)} token, and needs two or more: the last one joins the others")


def _heads(name: str, value: Any, D: int) -> int:
    """A number of heads, which divides the width."""
    H = count(name, value)
    if D % H:
        raise ValueError(f"{name} = {H} does not divide D = {D}")
    return H


_SQUARE = {"Wq": "[D, D]", "Wk": "[D, D]", "Wv": "[D, D]"}

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        Claim(
            "exchange_heads",
            "The order of the heads means nothing. Let heads i and j trade places, together with their columns of Wq, "
            "Wk and Wv and their rows of Wo, and the layer's output is the same for every input.",
            {
                "x": "[N, D]",
                **_SQUARE,
                "Wo": "[D, D]",
                "n_heads": "a number that divides D",
                "i": "a head, from 0",
                "j": "a head, from 0",
            },
            exchange_heads,
        ),
        Claim(
            "mask_after_softmax",
            "It does not matter where you mask. Setting the weights of blocked keys to 0 after the softmax gives the "
            "same output as setting their scores to -inf before it.",
            {"scores": "[T, S]", "blocked": "bool [T, S], True = blocked", "values": "[S, Dv]"},
            mask_after_softmax,
        ),
        Claim(
            "cache_without_mask",
            "The keys and values of the tokens so far do not change when one more token joins at the end. So they can "
            "be cached in every layer of a stack of self-attention layers (one head, residual connections), even if "
            "the layers have no causal mask.",
            {
                "x": "[N, D], N >= 2, the last row is the token that joins",
                "Wq": "[L, D, D], one matrix per layer",
                "Wk": "[L, D, D]",
                "Wv": "[L, D, D]",
            },
            cache_without_mask,
        ),
        Claim(
            "key_bias_is_idle",
            "The bias of the keys is D parameters for nothing. Whatever vector bk is added to all the keys of a "
            "self-attention head, its output stays the same.",
            {"x": "[N, D]", **_SQUARE, "bk": "[D]"},
            key_bias_is_idle,
        ),
        Claim(
            "heads_get_slices",
            "Multi-head attention gives each head a slice of the input: head h sees the features h * Dh to (h + 1) * "
            "Dh "
            "- 1 of every token. Whatever stands in the other features, its output is the same.",
            {"x": "[N, D]", **_SQUARE, "n_heads": "a number that divides D", "head": "a head, from 0"},
            heads_get_slices,
        ),
        Claim(
            "more_heads_cost_less",
            "A head of width D / H has only a part of the work. So, at the same width D, a layer with more heads takes "
            "fewer FLOPs in its matrix products.",
            {
                "N": "a whole number >= 1",
                "D": "a whole number >= 1",
                "fewer": "a number of heads that divides D",
                "more": "a number of heads that divides D",
            },
            more_heads_cost_less,
        ),
        Claim(
            "cross_needs_equal_width",
            "Cross-attention multiplies queries of one sequence with keys of another, so the tokens of both must have "
            "the same width, or no output can be computed.",
            {"x": "[T, D1]", "y": "[S, D2]", "Wq": "[D1, A]", "Wk": "[D2, A]", "Wv": "[D2, C]"},
            cross_needs_equal_width,
        ),
        Claim(
            "new_key_meets_old_queries",
            "When a token joins a causal self-attention layer, its key must be multiplied with the queries of all "
            "earlier "
            "tokens, since their outputs are others than before.",
            {"x": "[N, D], N >= 2, the last row is the token that joins", **_SQUARE},
            new_key_meets_old_queries,
        ),
    )
}


def holds(name: str, example: Mapping[str, Any]) -> bool:
    """Whether the claim of that name is true of the example; a ValueError says what is wrong with an example."""
    return holds_among(CLAIMS, name, example)
