"""q6_13: six claims about pretraining and writing, each with a function that tries it on an example.

`holds(name, example)` says whether a claim is true of one example (course_utils/checking/claims.py tells what that is).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.checking.claims import (
    LARGEST_AXIS,
    LARGEST_ENTRY,
    TOLERANCE,
    Claim,
    attend,
    count,
    equal,
    holds_among,
    mask,
    numbers,
)

LARGEST_LOGIT = 10.0  # beyond it a gradient may round to nothing
IGNORED = -100  # the label of a place that was not chosen


def order_needs_positions(x: Any, order: Any, Wq: Any, Wk: Any, Wv: Any) -> bool:
    """Whether the last output stays when the tokens before it change places: x [N, D], W* [L, D, D], causal."""
    x = numbers("x", x, 2)  # [N, D]
    N, D = x.shape
    if N < 3:
        raise ValueError(f"x has {N} tokens, and needs three or more: two that change places, and the last one")
    order = [count("an entry of order", i, least=0) for i in _items("order", order)]
    if sorted(order) != list(range(N - 1)):
        raise ValueError(f"order is {order}, which is no order of the {N - 1} tokens before the last")
    Wq = numbers("Wq", Wq, 3)  # [L, D, D]
    L = len(Wq)
    layers = [numbers(name, W, 3, (L, D, D)) for name, W in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv))]
    ends = []
    for tokens in (x, torch.cat([x[order], x[-1:]])):
        for q, k, v in zip(*layers, strict=True):
            tokens = tokens + attend(tokens @ q, tokens @ k, tokens @ v, causal=True)
        ends.append(tokens[-1])  # [D]
    return equal(ends[0], ends[1], torch.stack(ends).abs().amax())


def loss_reaches_every_word(logits: Any, labels: Any) -> bool:
    """Whether the loss of masked words has a gradient at every place: logits [N, V], labels [N], -100 not chosen."""
    logits = numbers("logits", logits, 2, largest=LARGEST_LOGIT)  # [N, V]
    N, V = logits.shape
    if V < 2:
        raise ValueError("with one word there is nothing to guess: V must be 2 or more")
    labels = [count("a label", label, least=IGNORED) for label in _items("labels", labels)]
    if len(labels) != N or any(label != IGNORED and not 0 <= label < V for label in labels):
        raise ValueError(f"labels are {N} numbers, each {IGNORED} or from 0 to {V - 1}")
    chosen = torch.tensor([label != IGNORED for label in labels])  # [N]
    grad = logits.softmax(-1) - torch.nn.functional.one_hot(torch.tensor(labels).clamp(min=0), V)  # [N, V]
    return bool(((grad * chosen[:, None]).abs().amax(-1) > 0).all())


def nucleus_keeps_most_words(probabilities: Any) -> bool:
    """Whether top-p with p = 0.9 keeps at least 90% of the words: probabilities [V]."""
    p = numbers("probabilities", probabilities, 1)  # [V]
    if bool((p < 0).any()) or abs(float(p.sum()) - 1) > TOLERANCE:
        raise ValueError("these are no probabilities: they must be 0 or more, and their sum 1")
    ranked = p.sort(descending=True).values
    kept = 1 + int((ranked.cumsum(0)[:-1] < 0.9 - TOLERANCE).sum())
    return kept >= 0.9 * len(p)


def lower_perplexity_knows_better(
    perplexity_a: Any, tokens_a: Any, perplexity_b: Any, tokens_b: Any, characters: Any
) -> bool:
    """Whether, of two models of one text, the one with the lower perplexity gives it the fewer bits per character."""
    a, b = _perplexity("perplexity_a", perplexity_a), _perplexity("perplexity_b", perplexity_b)
    n, m = count("tokens_a", tokens_a), count("tokens_b", tokens_b)
    characters = count("characters", characters)
    if max(n, m) > characters:
        raise ValueError(f"a text of {characters} characters has no {max(n, m)} tokens: each has one or more")
    bits = [count * math.log2(each) / characters for each, count in ((a, n), (b, m))]
    if a == b:
        return True  # the claim says nothing
    lower, higher = (bits[0], bits[1]) if a < b else (bits[1], bits[0])
    return lower <= higher * (1 + TOLERANCE)


def neighbours_tell_inference(document: Any, i: Any, j: Any) -> bool:
    """Whether two pairs of neighbours, at i and at j, agree in whether the first sentence implies the second."""
    sentences = []
    for place, sentence in enumerate(_items("document", document)):
        stated = {count(f"a fact of sentence {place}", fact, least=0) for fact in _items("a sentence", sentence)}
        if not stated:
            raise ValueError(f"sentence {place} states nothing: give it a fact or more")
        sentences.append(stated)
    i, j = count("i", i, least=0), count("j", j, least=0)
    if max(i, j) + 1 >= len(sentences):
        raise ValueError(f"sentence {max(i, j)} has no neighbour: the document has {len(sentences)} sentences")
    implied = [sentences[place + 1] <= sentences[place] for place in (i, j)]
    return implied[0] == implied[1]


def same_places_teach_as_much(fixed: Any, anew: Any) -> bool:
    """Whether masks that stay ask for as many different words as masks drawn anew: bool [N], and bool [E, N]."""
    fixed = mask("fixed", fixed, 1, true="chosen")  # [N]
    anew = mask("anew", anew, 2, true="chosen")  # [E, N]
    if anew.shape[1] != len(fixed):
        raise ValueError(f"fixed has {len(fixed)} places and anew {anew.shape[1]}")
    if bool((anew.sum(1) != fixed.sum()).any()):
        raise ValueError("every epoch must choose as many places as `fixed` does, or the comparison is not fair")
    return bool(fixed.sum() >= anew.any(0).sum())


def _items(name: str, value: Any) -> list[Any]:
    """A list, tuple, set or tensor of one axis as a list."""
    if isinstance(value, Tensor) or hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence | set | frozenset) or isinstance(value, str):
        raise ValueError(f"{name} is a {type(value).__name__}, not a list")
    if not 0 < len(value) <= LARGEST_AXIS:
        raise ValueError(f"{name} has {len(value)} entries: from 1 to {LARGEST_AXIS} are allowed")
    return list(value)


def _perplexity(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} is a {type(value).__name__}, not a number") from None
    if not 1 <= found <= LARGEST_ENTRY:
        raise ValueError(f"{name} = {value} is no perplexity: those are 1 or more (here up to {LARGEST_ENTRY:g})")
    return found


CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        Claim(
            "order_needs_positions",
            "Without position embeddings a causal decoder cannot tell orders apart: let the tokens before the last "
            "one change places, and the last output is the same.",
            {
                "x": "[N, D], N >= 3, one row for each token",
                "order": "a list of the numbers 0 to N - 2, in another order",
                "Wq": "[L, D, D], one matrix per layer",
                "Wk": "[L, D, D]",
                "Wv": "[L, D, D]",
            },
            order_needs_positions,
        ),
        Claim(
            "loss_reaches_every_word",
            "The loss of masked words looks at every token: its gradient is not zero at any place of the sentence.",
            {"logits": "[N, V], V >= 2, entries up to 10", "labels": "[N], whole numbers below V, or -100"},
            loss_reaches_every_word,
        ),
        Claim(
            "nucleus_keeps_most_words",
            "Top-p with p = 0.9 keeps at least 90% of the vocabulary.",
            {"probabilities": "[V], 0 or more, sum 1"},
            nucleus_keeps_most_words,
        ),
        Claim(
            "lower_perplexity_knows_better",
            "Perplexities compare models, whatever their vocabularies: of two models of one text, the one with the "
            "lower perplexity has the fewer bits per character.",
            {
                "perplexity_a": "a number >= 1",
                "tokens_a": "how many tokens the text has for model a",
                "perplexity_b": "a number >= 1",
                "tokens_b": "how many it has for model b",
                "characters": "how many characters the text has",
            },
            lower_perplexity_knows_better,
        ),
        Claim(
            "neighbours_tell_inference",
            "Whether one sentence implies another is a label that comes free with the text, as for next-sentence "
            "prediction: pairs that stand alike in a document (neighbours) agree in it.",
            {
                "document": "a list of sentences, each a list of the facts (whole numbers) that it states",
                "i": "a place: the pair of sentences i and i + 1",
                "j": "another place: the pair of sentences j and j + 1",
            },
            neighbours_tell_inference,
        ),
        Claim(
            "same_places_teach_as_much",
            "Masking the same places in every epoch is as good as drawing them anew: after E epochs the loss has "
            "asked for as many different words.",
            {
                "fixed": "bool [N], True where a word is chosen in every epoch",
                "anew": "bool [E, N], the same for each epoch, as many in each as in fixed",
            },
            same_places_teach_as_much,
        ),
    )
}


def holds(name: str, example: Mapping[str, Any]) -> bool:
    """Whether the claim of that name is true of the example; a ValueError says what is wrong with an example."""
    return holds_among(CLAIMS, name, example)
