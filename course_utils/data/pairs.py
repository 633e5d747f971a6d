"""Sentences with their translations, from the user's own files."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from course_utils.data.files import DataError, find, opened

Pair = tuple[list[str], list[str]]  # (source tokens, target tokens)

SPLITS = {
    "train": ("train",),
    "val": ("val", "valid"),
    "test": ("test_2016_flickr", "test2016", "flickr2016", "test"),
}


def tokenise(text: str) -> list[str]:
    """Lower case; runs of letters and digits are tokens, and so is every other mark by itself.

    >>> tokenise("Twenty-one dogs, it's true.")
    ['twenty', '-', 'one', 'dogs', ',', 'it', "'", 's', 'true', '.']
    """
    return re.findall(r"\w+|[^\w\s]", unicodedata.normalize("NFC", text).lower())


def split_pairs(pairs: Sequence[Pair], held_out: int = 500, seed: int = 0) -> tuple[list[Pair], list[Pair]]:
    """Shuffle and split into (train, test), with `held_out` pairs in test and no source sentence on both sides."""
    if not 0 <= held_out <= len(pairs):
        raise ValueError(f"cannot hold out {held_out} of {len(pairs)} pairs")
    shuffled = random.Random(seed).sample(list(pairs), len(pairs))
    test = shuffled[:held_out]
    seen = {tuple(source) for source, _ in test}
    return [pair for pair in shuffled[held_out:] if tuple(pair[0]) not in seen], test


def read_pairs(path: str | Path) -> list[Pair]:
    """Pairs from a text file, plain or .gz: each line a sentence, a tab, its translation. More columns are ignored."""
    path = Path(path)
    pairs = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(f"{path}, line {number}: no tab between a sentence and its translation")
        source, target = tokenise(columns[0]), tokenise(columns[1])
        if not source or not target:
            side = "sentence" if not source else "translation"
            raise DataError(f"{path}, line {number}: the {side} is empty")
        pairs.append((source, target))
    if not pairs:
        raise DataError(f"{path} has no pairs: it needs lines with a sentence, a tab and its translation")
    return pairs


def multi30k(folder: str | Path, source: str = "de", target: str = "en") -> dict[str, list[Pair]]:
    """The splits train, val and test of your own copy of Multi30k: train.de, train.en and so on, plain or .gz.

    The set is for non-commercial research and education, so it does not come with the course. Pairs with an empty
    side are left out.
    """
    folder = Path(folder)
    return {split: _parallel(folder, names, source, target) for split, names in SPLITS.items()}


def multi30k_texts(folder: str | Path, source: str = "en", target: str = "de") -> dict[str, list[tuple[str, str]]]:
    """The same splits as sentences, as they were written: for pieces of words, and for scores that can be compared."""
    return {split: _sentences(Path(folder), names, source, target) for split, names in SPLITS.items()}


def _parallel(folder: Path, names: Sequence[str], source: str, target: str) -> list[Pair]:
    pairs = [(tokenise(a), tokenise(b)) for a, b in _sentences(folder, names, source, target)]
    return [pair for pair in pairs if all(pair)]


def _sentences(folder: Path, names: Sequence[str], source: str, target: str) -> list[tuple[str, str]]:
    paths = [find(folder, [f"{name}.{language}" for name in names], "Multi30k") for language in (source, target)]
    sides = [_lines(path) for path in paths]
    if len(sides[0]) != len(sides[1]):
        counts = " and ".join(f"{path.name} {len(lines)}" for path, lines in zip(paths, sides, strict=True))
        raise DataError(f"{folder}: line i of one file translates line i of the other, but the lines are {counts}")
    pairs = [(a.strip(), b.strip()) for a, b in zip(*sides, strict=True)]
    return [pair for pair in pairs if all(pair)]


def _lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text. Only a line feed ends one: str.splitlines would also split at rarer marks."""
    with opened(path) as stream:
        raw = stream.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if raw[-1] == b"":
        raw.pop()
    lines = []
    for number, line in enumerate(raw, start=1):
        try:
            lines.append(line.decode("utf-8").rstrip("\r"))
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not UTF-8 text; save the file as UTF-8") from None
    return lines
