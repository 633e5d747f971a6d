"""What homework 4 trains on: one form for every corpus, so that training and decoding need not know which it is.

    task = load_task("sentences")          # or "numbers"
    task.train, task.look, task.tests      # pairs to train on, examples to look at on the way, and those for the end
    task.source, task.target, task.recipe  # vocabularies, sizes and steps

`load_model` is what the grader does with the checkpoint that is handed in, which is one of the sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from torch import nn

from course_utils.data import Pair
from course_utils.data.everyday_splits import TESTS, held_out_sentences, training_pairs
from course_utils.data.everyday_words import vocabularies as everyday_vocabularies
from course_utils.hw4.decoding_weights import lively_weights
from course_utils.hw4.translation import (
    CHECKPOINT,
    MAX_CHECKPOINT,
    MAX_LEN,
    RATE,
    SIZES,
    STEPS,
    WARMUP,
    WordList,
    corpus,
)
from course_utils.notebook.checkpoints import CheckpointError, CheckpointForm, load_checkpoint
from course_utils.notebook.training import fast

SENTENCES = 40_000  # pairs to train on
LOOKED_AT, TESTED = 150, 500  # examples at each look, and in each test at the end
SENTENCE_SIZES = {"d_model": 96, "n_heads": 4, "d_ff": 192, "n_layers": 2}


class HeldOut(NamedTuple):
    """A sentence that is held out, its good translations, and what is hard about it, where somebody has noted that."""

    source: list[str]
    references: list[list[str]]
    phenomena: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TaskRecipe:
    """The model's sizes and the run's."""

    sizes: dict[str, int]
    steps: int
    every: int  # so many steps from look to look
    batch: int = 64
    rate: float = RATE
    warmup: int = WARMUP
    dropout: float = 0.0
    max_len: int = MAX_LEN
    alike: int = 50  # sentences of one length come together, out of so many batches
    score: str = "exact"  # or "bleu": by which the best model is kept
    patience: int = 1_000  # looks without a better score after which the run stops


@dataclass(frozen=True)
class TranslationTask:
    """A corpus with its splits, its vocabularies and the recipe of its run."""

    name: str
    train: list[Pair]
    look: list[HeldOut]
    tests: dict[str, list[HeldOut]]
    source: WordList
    target: WordList
    recipe: TaskRecipe
    checkpoint: str  # where the best model is kept

    @property
    def folder(self) -> str:
        """Where the run is written down."""
        return f"{Path(self.checkpoint).stem}_run"

    def build(self, make_model: Callable[..., nn.Module]) -> nn.Module:
        """A fresh `Transformer` for this task."""
        return make_model(len(self.source), len(self.target), **self.recipe.sizes, dropout=self.recipe.dropout)


def load_task(name: str) -> TranslationTask:
    """The task of this name; with COURSE_FAST=1 the number words and 40 steps, whichever was asked for."""
    if name not in TASKS:
        raise ValueError(f"the tasks are {', '.join(TASKS)}, not {name!r}")
    if not fast():
        return TASKS[name]()
    task = numbers()
    return replace(task, recipe=replace(task.recipe, steps=40, every=20), checkpoint="fast_hw4_numbers.safetensors")


def sentences() -> TranslationTask:
    """Everyday sentences, English into German, each with up to five good translations."""
    train = training_pairs(SENTENCES)
    known = {word for english, _ in train for word in english}

    def held_out(kind: str, n: int, seed: int) -> list[HeldOut]:
        """Examples whose words were all trained on: a verb whose every object is held back may hide a word for good."""
        drawn = held_out_sentences(kind, n + n // 5, seed)
        return [HeldOut(one.english, one.german, one.phenomena) for one in drawn if known.issuperset(one.english)][:n]

    tests = {kind: held_out(kind, TESTED, seed=1) for kind in TESTS}
    recipe = TaskRecipe(SENTENCE_SIZES, steps=2_400, every=200, max_len=40)
    look = held_out(TESTS[0], LOOKED_AT, seed=0)
    return TranslationTask("sentences", train, look, tests, *everyday_vocabularies(), recipe, CHECKPOINT)


def numbers() -> TranslationTask:
    """Number words, English into German: small, and each has one right translation."""
    data = corpus()
    look, train = _single(data.train[-LOOKED_AT:]), data.train[:-LOOKED_AT]
    tests = {"unseen numbers": _single(data.held_out)}
    recipe = TaskRecipe(SIZES, STEPS, every=50)
    return TranslationTask("numbers", train, look, tests, data.source, data.target, recipe, "hw4_numbers.safetensors")


TASKS: dict[str, Callable[[], TranslationTask]] = {"sentences": sentences, "numbers": numbers}


def checkpoint_form() -> CheckpointForm:
    """What is read of the checkpoint that is handed in."""
    weights = lively_weights(0, *map(len, everyday_vocabularies()), **SENTENCE_SIZES)
    return CheckpointForm({name: tuple(value.shape) for name, value in weights.items()}, MAX_CHECKPOINT)


def load_model(make_model: Callable[..., nn.Module], path: str | Path = CHECKPOINT) -> nn.Module:
    """A model for the sentences, of the stated sizes, with the weights of a checkpoint file."""
    path = Path(path)
    if path.is_file() and path.stat().st_size > MAX_CHECKPOINT:
        size, most = path.stat().st_size / 2**20, MAX_CHECKPOINT // 2**20
        raise CheckpointError(f"{path} has {size:.0f} MB; a model of the stated sizes needs less than {most} MB")
    source, target = everyday_vocabularies()
    model = make_model(len(source), len(target), **SENTENCE_SIZES)
    load_checkpoint(path, model)
    return model.eval()


def _single(pairs: Sequence[Pair]) -> list[HeldOut]:
    return [HeldOut(source, [target]) for source, target in pairs]
