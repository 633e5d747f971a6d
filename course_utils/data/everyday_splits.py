"""Everyday sentences to train on and to test with: each test asks for something that training did not show.

    unseen sentences      all of their pairs of words were trained on, the sentence was not
    unseen combinations   known words, of which two never came together: verb and object, or adjective and noun
    longer sentences      three clauses, where training has at most two

A sentence is kept for tests by its own words (`is_for_tests`), so that none of them was trained on, whichever seed
drew it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence

from course_utils.data.everyday import Sentence, Writer
from course_utils.data.pairs import Pair

FOR_TESTS = 10  # one English sentence in so many is never trained on
TESTS = ("unseen sentences", "unseen combinations", "longer sentences")


def is_for_tests(english: Sequence[str]) -> bool:
    """Whether a sentence is never trained on, whatever the seed."""
    return int.from_bytes(hashlib.sha256(" ".join(english).encode()).digest()[:4], "big") % FOR_TESTS == 0


def training_pairs(n: int, seed: int = 0) -> list[Pair]:
    """`n` different English sentences, each with one of its good translations, drawn by chance."""
    rng = random.Random(f"translations {seed}")
    stream = (one for one in _sentences(seed, False) if not one.is_held_back and not is_for_tests(one.english))
    return [(one.english, rng.choice(one.german)) for one, _ in zip(stream, range(n), strict=False)]


def held_out_sentences(kind: str, n: int, seed: int = 0) -> list[Sentence]:
    """`n` different sentences of one of the `TESTS`, with all of their references."""
    if kind not in TESTS:
        raise ValueError(f"the tests are {', '.join(TESTS)}, not {kind!r}")
    long, combined = kind == "longer sentences", kind == "unseen combinations"
    stream = (
        one
        for one in _sentences(f"test {seed}", long)
        if one.is_held_back == combined and (combined or long or is_for_tests(one.english))
    )
    return [one for one, _ in zip(stream, range(n), strict=False)]


def _sentences(seed: int | str, long: bool) -> Iterator[Sentence]:
    """Different sentences without end."""
    writer, seen = Writer(random.Random(f"sentences {seed} {long}")), set[tuple[str, ...]]()
    while True:
        sentence = writer.sentence(long)
        if tuple(sentence.english) not in seen:
            seen.add(tuple(sentence.english))
            yield sentence
