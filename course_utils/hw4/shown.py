"""Translations as one reads them: beside their references, from a sentence of one's own, and what looked where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from torch import Tensor

from course_utils.data import UNK
from course_utils.hw4.error_kinds import nearest_to
from course_utils.hw4.tasks import HeldOut
from course_utils.hw4.translation import WordList

Tokens = Sequence[str]
SHORT = {"don't": "do not", "doesn't": "does not", "didn't": "did not", "can't": "cannot", "won't": "will not"}
SHORT |= {"isn't": "is not", "aren't": "are not", "wasn't": "was not", "weren't": "were not", "can not": "cannot"}
SHORT |= {"i'm": "I am", "he's": "he is", "she's": "she is", "it's": "it is", "we're": "we are", "they're": "they are"}


def beside(outputs: Sequence[Tokens], examples: Sequence[HeldOut], width: int = 56) -> str:
    """A line for each: right or wrong, what was written, and, if it is wrong, the reference that is nearest."""
    lines = []
    for output, example in zip(outputs, examples, strict=True):
        nearest = nearest_to(output, example.references)
        right = list(output) in example.references
        said, meant = " ".join(output) or "(nothing)", " ".join(nearest)
        lines.append(f"  right  {said}" if right else f"  wrong  {said:{width}} | {meant}")
    return "\n".join(lines)


def read_sentence(text: str, words: WordList) -> tuple[list[str], list[str]]:
    """A sentence that somebody typed, as tokens of this vocabulary, and those of them that it does not know."""
    text = re.sub(r"[’`]", "'", text).strip()
    for short, long in SHORT.items():
        text = re.sub(rf"\b{short}\b", long, text, flags=re.IGNORECASE)
    tokens = [_as_known(token, words) for token in re.findall(r"\w+|[^\w\s]", text)]
    if tokens and tokens[-1] not in (".", "?", "!"):
        tokens.append(".")
    return tokens, [token for token in tokens if not _knows(words, token)]


def told_unknown(unknown: Sequence[str], words: WordList) -> str:
    """What to know about words that the model does not know, in a sentence for each; empty if it knows all."""
    lines = []
    for word in dict.fromkeys(unknown):
        near = get_close_matches(word.lower(), words.tokens, n=3, cutoff=0.6)
        lines.append(f"The model does not know {word!r}." + (f" It knows {', '.join(near)}." if near else ""))
    if lines:
        lines.append("It reads <unk> there, which it never met in training: expect a guess in its place, or worse.")
    return "\n".join(lines)


def looked_at(weights: Tensor, written: Tokens, source: Tokens) -> str:
    """An alt text for a picture of attention [T, S]: which word looks most at which."""
    best = weights.argmax(-1).tolist()
    return "; ".join(f"{word} looks most at {source[i]}" for word, i in zip(written, best, strict=True))


def _as_known(token: str, words: WordList) -> str:
    """The token as the vocabulary writes it: Monday, I, and all else in small letters."""
    forms = (token, token.lower(), token.capitalize())
    return next((form for form in forms if _knows(words, form)), token)


def _knows(words: WordList, token: str) -> bool:
    return UNK not in words.encode([token])
