"""Pieces of words by byte pairs: one vocabulary for both languages, which knows every text and gives it back whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from course_utils.data.files import DataError
from course_utils.data.vocabulary import BOS, EOS, PAD, SPECIALS


class Subwords:
    """Text to token numbers and back, by the library `tokenizers`; PAD, BOS, EOS and UNK have their usual numbers.

    Frequent words are one token, rare ones are several, and in the worst case each byte is one: UNK never occurs.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        first = tuple(tokenizer.id_to_token(i) for i in range(len(SPECIALS)))
        if first != SPECIALS:
            raise DataError(f"a vocabulary of ours begins with {', '.join(SPECIALS)}, this one with {first}")

    @classmethod
    def learn(cls, texts: Iterable[str], size: int) -> Subwords:
        """Merge the most frequent neighbours in these texts, beginning with bytes, until there are `size` tokens."""
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

        alphabet = pre_tokenizers.ByteLevel.alphabet()
        if size < len(SPECIALS) + len(alphabet):
            raise ValueError(f"size is {size}, but bytes and special tokens alone are {len(SPECIALS) + len(alphabet)}")
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(SPECIALS), initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    @classmethod
    def load(cls, path: str | Path) -> Subwords:
        """Read what `save` wrote."""
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises no other kind
            raise DataError(f"{path} is no vocabulary of pieces of words: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the vocabulary as one file of JSON."""
        self._tokenizer.save(str(path))

    def encode(self, text: str) -> list[int]:
        """The numbers of the text's pieces; BOS and EOS are for the caller to add."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` for many texts at once, on all cores."""
        return [list(one.ids) for one in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these pieces, without PAD, BOS and EOS."""
        kept = [int(i) for i in ids if i not in (PAD, BOS, EOS)]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False)).strip()

    def pieces(self, text: str) -> list[str]:
        """The pieces as one may read them; a space in front is shown as _."""
        return [self._tokenizer.decode([i]).replace(" ", "_") for i in self.encode(text)]

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())
