"""Numbers in words: a translation task without end, with a right answer for every sentence, and no file to fetch."""

from __future__ import annotations

import copy
import random
import re
from functools import lru_cache
from typing import Any

from course_utils.data.pairs import Pair, tokenise

LANGUAGES = ("fr", "de", "es", "pt", "pl", "ru", "cs")  # those whose words are few enough to be tokens
COMPOUNDS = {"de": re.compile("(hundert|tausend|und)")}  # German writes one long word: we split it at these


def number_words(language: str = "fr", n: int = 20_000, seed: int = 0, largest: int = 999_999) -> list[Pair]:
    """`n` different numbers from 0 to `largest` as (English tokens, `language` tokens).

    Short numbers are as welcome as long ones: the number of digits is drawn first, then the digits.
    An encoder-decoder with d_model 64, two layers a side and batches of 64 translates these shares of 300 held-out
    numbers word for word, measured along single runs in French, German and Spanish, two of them in French:

        the whole range                   200 steps: .98 to .99    400 steps: .99 to 1.00    750 steps, French: 1.00
        largest=9_999, n=5_000            100 steps: .91 French, .99 German    200 steps: .99 to 1.00

    The second row, without Spanish, is for short runs. 100 steps take about 7 seconds of one core.
    """
    if language not in LANGUAGES:
        raise ValueError(f"number_words knows {', '.join(LANGUAGES)}, not {language!r}")
    if not 0 <= n <= largest + 1:
        raise ValueError(f"there are {largest + 1} numbers from 0 to {largest}, so n cannot be {n}")
    return [(list(source), list(target)) for source, target in _number_words(language, n, seed, largest)]


@lru_cache(maxsize=8)
def _number_words(language: str, n: int, seed: int, largest: int) -> list[Pair]:
    numbers = _draw(n, largest, random.Random(seed))
    return list(zip(_spell("en", numbers), _spell(language, numbers), strict=True))


def _draw(n: int, largest: int, rng: random.Random) -> list[int]:
    most = len(str(largest))
    chosen: dict[int, None] = {}  # a set that keeps its order
    while len(chosen) < n:
        number = rng.randrange(10 ** rng.randint(1, most))
        if number <= largest:
            chosen[number] = None
    numbers = list(chosen)
    rng.shuffle(numbers)  # short numbers run out first, so the early draws have more of them
    return numbers


def _spell(language: str, numbers: list[int]) -> list[list[str]]:
    converter = _converter(language, max(numbers, default=0))
    texts = [converter.to_cardinal(number) for number in numbers]
    if language in COMPOUNDS:
        texts = [COMPOUNDS[language].sub(r" \1 ", text) for text in texts]
    return [tokenise(text) for text in texts]


def _converter(language: str, largest: int) -> Any:
    """num2words' converter, without the words for numbers that we never need: it tries them all every time."""
    from num2words import CONVERTER_CLASSES  # type: ignore[import-untyped]

    converter = copy.copy(CONVERTER_CLASSES[language])
    if hasattr(converter, "cards"):
        converter.cards = {value: word for value, word in converter.cards.items() if value <= max(largest, 1)}
    return converter
