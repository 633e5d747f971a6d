"""Labels that come with the stories, for fine-tuning: the theme, the mood, and who is meant by "they"."""

from __future__ import annotations

import random
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.hw6.pretraining import Examples, padded
from course_utils.hw6.stories import CLS, MOODS, NAMES, SEP, THEMES, encoded, stories

LABELS = {"theme": sorted(THEMES), "mood": sorted(MOODS), "who": list(NAMES)}
THEY = "they"


class Labelled(NamedTuple):
    """Pairs of neighbouring sentences, one of each story, and what is asked about each."""

    examples: Examples
    labels: Tensor


def labelled_pairs(what: str, n: int, seed: int) -> Labelled:
    """n pairs with their labels, numbers of `LABELS[what]`; asked "who", the second sentence says "they"."""
    rng, packed, labels, batch = random.Random(f"{what} {seed}"), [], list[int](), 0
    while len(labels) < n:
        tales = stories(n, seed + 10_000 * batch)
        for story, document in zip(tales, encoded(tales), strict=True):
            fitting = [i for i in range(1, len(document)) if what != "who" or THEY in story.sentences[i]]
            if fitting and len(labels) < n:
                i = rng.choice(fitting)
                first, second = document[i - 1 : i + 1]
                packed.append(([CLS, *first, SEP, *second, SEP], [0] * (len(first) + 2) + [1] * (len(second) + 1)))
                told = {"theme": story.theme, "mood": story.mood, "who": story.actors[i]}[what]
                labels.append(LABELS[what].index(told))
        batch += 1
    return Labelled(padded(packed), torch.tensor(labels))
