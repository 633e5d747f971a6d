"""The corpus of homework 6: short stories by a small grammar, the same on every machine.

    ada gladly gave the net and anchor to bob at dusk . bob soon hid the lamp from cleo at night . they then took ...

What happens goes round with the day: something is taken in the morning, shown at noon, given away in the evening,
hidden at night, and then it is morning again. Who gives something away has it no longer, so the other person acts next;
in all other cases the same person goes on. That is all that ties a sentence to the next: **who does what follows from
the sentence before**. A story has a theme (most of its things, but four sentences in ten have things that fit anywhere)
and a mood (some of its adverbs), and it begins at any time of the day. So neither topic nor opening formula give
away which sentence follows which.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

PAD, CLS, SEP, MASK, UNK = range(5)
SPECIAL = ("[pad]", "[cls]", "[sep]", "[mask]", "[unk]")
SPECIAL_IDS = tuple(range(len(SPECIAL)))

NAMES = ("ada", "bob", "cleo", "dora", "emil", "finn", "greta", "hugo", "ines", "jonas")
ROUND = {  # what happens when, in this order and round again: verbs, the word before the other person, times
    "taken": (("took", "stole", "borrowed"), "from", ("dawn", "sunrise")),
    "shown": (("showed", "described", "praised"), "to", ("noon", "midday")),
    "given": (("gave", "sent", "handed"), "to", ("dusk", "sunset")),  # then the other person acts next
    "hidden": (("hid", "kept", "guarded"), "from", ("night", "midnight")),
}
THEMES = {
    "sea": ("anchor", "net", "oar", "shell", "sail", "rope", "crab", "buoy"),
    "kitchen": ("spoon", "pan", "onion", "loaf", "kettle", "plate", "jam", "ladle"),
    "school": ("pencil", "chalk", "atlas", "ruler", "notebook", "essay", "globe", "eraser"),
    "garden": ("spade", "seed", "bulb", "rake", "pot", "hose", "fern", "rose"),
}
ANYWHERE = ("lamp", "coin", "letter", "hat", "book", "key", "ball", "watch")
MOODS = {"glad": ("gladly", "merrily", "warmly", "proudly"), "grim": ("sadly", "angrily", "coldly", "wearily")}
CALM = ("then", "quickly", "soon", "later")
THEMED, MOODY, TWO, PRONOUN = 0.6, 0.4, 0.75, 0.1  # shares of the sentences

Sentence = list[int]
Document = list[Sentence]


class Story(NamedTuple):
    """A story's sentences as lists of words, and what is known of it."""

    sentences: list[list[str]]
    theme: str
    mood: str
    actors: list[str]  # who acts in each sentence, also where it says "they"
    kinds: list[str]  # what happens in each sentence: a key of ROUND


class Words:
    """Words and their numbers; `encode` and `decode` go from one to the other."""

    def __init__(self, words: Iterable[str]) -> None:
        self.tokens = [*SPECIAL, *words]
        self.ids = {word: i for i, word in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, words: Sequence[str]) -> Sentence:
        """Words to numbers; one that is not known becomes UNK."""
        return [self.ids.get(word, UNK) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Numbers to words."""
        return [self.tokens[i] for i in ids]


def words() -> Words:
    """Every word that the grammar can say, in a fixed order."""
    things = [word for theme in (*THEMES.values(), ANYWHERE) for word in theme]
    moods = [word for mood in MOODS.values() for word in mood]
    verbs = [verb for choices, _, times in ROUND.values() for verb in (*choices, *times)]
    plain = ("the", "and", "to", "from", "at", "they", ".")
    return Words([*plain, *NAMES, *verbs, *moods, *CALM, *things])


def stories(n: int, seed: int = 0, sentences: tuple[int, int] = (4, 7)) -> list[Story]:
    """n stories with 4 to 7 sentences each (or as told); the same seed gives the same stories on every machine."""
    return [_story(random.Random(f"story {seed} {i}"), sentences) for i in range(n)]


def encoded(tales: Sequence[Story], vocabulary: Words | None = None) -> list[Document]:
    """Stories as documents: lists of sentences, each a list of numbers."""
    vocabulary = vocabulary or words()
    return [[vocabulary.encode(sentence) for sentence in tale.sentences] for tale in tales]


def corpus(n: int = 3_000, held_out: int = 500, seed: int = 0) -> tuple[list[Story], list[Story]]:
    """The stories to train on, and those that are held out."""
    tales = stories(n + held_out, seed)
    return tales[:n], tales[n:]


def read_folder(folder: str | Path, most: int = 8_000) -> tuple[list[list[list[str]]], Words]:
    """Every `.txt` file below a folder: paragraphs as documents, their sentences as lists of words, and the words.

    A paragraph ends with an empty line, a sentence with ".", "!" or "?". The `most` frequent words have numbers.
    """
    files = sorted(Path(folder).rglob("*.txt"))
    if not files:
        raise FileNotFoundError(f"there is no .txt file in {folder}: put some there, or name another folder")
    documents = []
    for file in files:
        for paragraph in file.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            if sentences := _sentences(paragraph):
                documents.append(sentences)
    counts: dict[str, int] = {}
    for sentence in (sentence for document in documents for sentence in document):
        for word in sentence:
            counts[word] = counts.get(word, 0) + 1
    return documents, Words(sorted(counts, key=lambda word: (-counts[word], word))[:most])


def _story(rng: random.Random, sentences: tuple[int, int]) -> Story:
    theme, mood = rng.choice(sorted(THEMES)), rng.choice(sorted(MOODS))
    actor, start = rng.choice(NAMES), rng.randrange(len(ROUND))
    story = Story([], theme, mood, [], [])
    for turn in range(rng.randint(*sentences)):
        kind = list(ROUND)[(start + turn) % len(ROUND)]
        other = rng.choice([name for name in NAMES if name != actor])
        story.sentences.append(_sentence(rng, kind, actor, other, theme, mood))
        story.actors.append(actor)
        story.kinds.append(kind)
        actor = other if kind == "given" else actor
    return story


def _sentence(rng: random.Random, kind: str, actor: str, other: str, theme: str, mood: str) -> list[str]:
    """One sentence: who (or "they"), perhaps in which mood, did what, with whom, when."""
    verbs, towards, times = ROUND[kind]
    things = rng.sample(THEMES[theme] if rng.random() < THEMED else ANYWHERE, 2 if rng.random() < TWO else 1)
    said = ["they" if rng.random() < PRONOUN else actor]
    said += [rng.choice(MOODS[mood] if rng.random() < MOODY else CALM), rng.choice(verbs), "the"]
    return [*said, *" and ".join(things).split(), towards, other, "at", rng.choice(times), "."]


def _sentences(paragraph: str) -> list[list[str]]:
    """The sentences of a paragraph as lists of lower-case words and marks."""
    sentences, current = list[list[str]](), list[str]()
    for word in _spaced(paragraph).split():
        current.append(word)
        if word in (".", "!", "?"):
            sentences.append(current)
            current = []
    return [*sentences, current] if current else sentences


def _spaced(text: str) -> str:
    """Lower case, with a space on both sides of every mark."""
    return "".join(c if c.isalnum() or c in "'- \n" else f" {c} " for c in text.lower())
