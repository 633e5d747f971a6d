"""What is wrong with translations: the kinds of errors of a wrong one, and how often what is hard comes out right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from course_utils.data.everyday_words import german_forms
from course_utils.hw4.tasks import HeldOut

Tokens = Sequence[str]
KINDS = (
    *("ending", "form of the verb", "place of the verb", "other order", "negation", "pronoun", "other word"),
    *("left out", "added"),
)


def is_right(output: Tokens, example: HeldOut) -> bool:
    """Whether it is one of the references."""
    return list(output) in example.references


def nearest_to(output: Tokens, references: Sequence[Tokens]) -> Tokens:
    """The reference that shares most with the output."""
    return max(references, key=lambda one: SequenceMatcher(None, output, one, autojunk=False).ratio())


def kinds_of_errors(output: Tokens, references: Sequence[Tokens]) -> set[str]:
    """What is wrong, by the reference that is nearest: some of `KINDS`, and none if it is right."""
    nearest = nearest_to(output, references)
    if sorted(output) == sorted(nearest):
        moved = [a for a, b in zip(output, nearest, strict=True) if a != b]
        return {_order(output, nearest)} if moved else set()
    return set(_differences(output, nearest))


def table_of_errors(outputs: Sequence[Tokens], examples: Sequence[HeldOut]) -> dict[str, int]:
    """How many of the outputs have an error of each kind; one may have several."""
    counts = Counter(
        kind
        for output, example in zip(outputs, examples, strict=True)
        for kind in kinds_of_errors(output, example.references)
    )
    return {kind: counts[kind] for kind in KINDS}


def shares_right(outputs: Sequence[Tokens], examples: Sequence[HeldOut]) -> dict[str, tuple[int, float]]:
    """For everything hard: how many sentences have it, and the share of them that is right; the hardest first."""
    found: dict[str, list[bool]] = {}
    for output, example in zip(outputs, examples, strict=True):
        for name in example.phenomena:
            found.setdefault(name, []).append(is_right(output, example))
    shares = {name: (len(right), sum(right) / len(right)) for name, right in found.items()}
    return dict(sorted(shares.items(), key=lambda item: item[1][1]))


def _order(output: Tokens, right: Tokens) -> str:
    """Which kind of word moves: what must be taken out so that the others stand in order."""
    pieces = SequenceMatcher(None, output, right, autojunk=False).get_opcodes()
    moved = [word for kind, a, b, _, _ in pieces if kind != "equal" for word in output[a:b]]
    return "place of the verb" if any(_is(word, "verb") for word in moved) else "other order"


def _differences(output: Tokens, right: Tokens) -> Iterator[str]:
    for kind, a, b, c, d in SequenceMatcher(None, output, right, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        ours, theirs = list(output[a:b]), list(right[c:d])
        both = min(len(ours), len(theirs))
        yield from (
            _exchanged(one, other) for one, other in zip(ours[:both], theirs[:both], strict=True) if one != other
        )
        yield from (_alone(word, "added") for word in ours[both:])
        yield from (_alone(word, "left out") for word in theirs[both:])


def _exchanged(word: str, right: str) -> str:
    """The kind of error where one word stands in the place of another."""
    shared = _forms(word) & _forms(right)
    if any(kind == "verb" for kind, _ in shared):
        return "form of the verb"
    if shared:
        return "ending"
    if _is(word, "negation") or _is(right, "negation"):
        return "negation"
    return "pronoun" if _is(right, "pronoun") and not _is(right, "article") else "other word"


def _alone(word: str, kind: str) -> str:
    return "negation" if _is(word, "negation") else kind


def _forms(word: str) -> set[tuple[str, str]]:
    return {
        (kind, lemma) for kind, lemma in german_forms().get(word, frozenset()) if kind in ("noun", "verb", *_ENDING)
    }


_ENDING = ("adjective", "article", "negation")


def _is(word: str, kind: str) -> bool:
    return any(found == kind for found, _ in german_forms().get(word, frozenset()))
