"""Tokens and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")  # their places in this tuple are the numbers above


class Vocabulary:
    """The special tokens, then `tokens` in their order; a token's number is its place."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = [*SPECIALS, *tokens]
        self.numbers = {token: i for i, token in enumerate(self.tokens)}
        if len(self.numbers) < len(self.tokens):
            twice = [token for token, count in Counter(self.tokens).items() if count > 1]
            raise ValueError(f"a vocabulary has each token once, but these come again: {', '.join(twice[:5])}")

    @classmethod
    def build(cls, sentences: Iterable[Iterable[str]], max_size: int | None = None, min_count: int = 1) -> Vocabulary:
        """The tokens of the sentences, frequent ones first, equally frequent ones by alphabet.

        `max_size` is the most that `len` may become, the four special tokens counted.
        """
        if max_size is not None and max_size < len(SPECIALS):
            raise ValueError(f"max_size is {max_size}, but the special tokens alone are {len(SPECIALS)}")
        counts = Counter(token for sentence in sentences for token in sentence)
        kept = [token for token, count in counts.items() if count >= min_count and token not in SPECIALS]
        kept.sort(key=lambda token: (-counts[token], token))
        return cls(kept if max_size is None else kept[: max_size - len(SPECIALS)])

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """One number per token, UNK for those that are not here; BOS and EOS are for the caller to add."""
        return [self.numbers.get(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens with these numbers, without PAD, BOS and EOS."""
        numbers = [int(i) for i in ids]
        for i in numbers:
            if not 0 <= i < len(self.tokens):
                raise ValueError(f"no token has the number {i}: they go from 0 to {len(self.tokens) - 1}")
        return [self.tokens[i] for i in numbers if i not in (PAD, BOS, EOS)]

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.numbers
