"""The task of homework 4: English number words into German ones, from the corpus to the score.

    fifty - six thousand , one hundred and twelve  ->  sechs und fünfzig tausend ein hundert zwölf

German puts the ones before the tens, so word by word will not do. Every number has one right translation, and
vocabularies, corpus and splits are the same on every machine. `train_briefly` is the small run of the grader,
`load_model` and `translate` are what it does with a checkpoint.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_utils.data import BOS, EOS, PAD, Pair, Vocabulary, number_words, split_pairs
from course_utils.notebook.checkpoints import CheckpointError, load_checkpoint
from course_utils.notebook.training import to_device

LANGUAGE = "de"
LARGEST = 999_999
PAIRS, HELD_OUT = 20_000, 500
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2}
STEPS, BATCH, WARMUP, RATE = 500, 64, 200, 0.5  # of the notebook's training run
MAX_LEN = 24  # steps of decoding; the longest German number here has 11 tokens, EOS not counted
CHECKPOINT = "hw4_translation.safetensors"
MAX_CHECKPOINT = 16 * 2**20  # bytes

BRIEF_SIZES = {"d_model": 48, "n_heads": 4, "d_ff": 96, "n_layers": 1}  # of the grader's small run
BRIEF_LARGEST, BRIEF_PAIRS, BRIEF_HELD_OUT = 9_999, 2_000, 100
BRIEF_STEPS, BRIEF_RATE = 100, 8e-3
BETAS = (0.9, 0.98)

Ids = list[int]
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # src, src_padding, inputs, labels
PadBatch = Callable[[Sequence[Ids], int], tuple[Tensor, Tensor]]
TeacherForcing = Callable[[Sequence[Ids], int, int, int], tuple[Tensor, Tensor]]
TrainStep = Callable[[nn.Module, Batch, torch.optim.Optimizer, int], float]
Decode = Callable[[nn.Module, Tensor, Tensor, int, int, int], list[Ids]]


class Corpus(NamedTuple):
    """Pairs of token lists, those to train on and those held out, and the two vocabularies."""

    train: list[Pair]
    held_out: list[Pair]
    source: Vocabulary
    target: Vocabulary


@cache
def vocabularies(language: str = LANGUAGE) -> tuple[Vocabulary, Vocabulary]:
    """The English vocabulary and the other one: every word of the numbers up to LARGEST, in a fixed order."""
    sources, targets = zip(*number_words(language, n=3_000, seed=0, largest=LARGEST), strict=True)
    return Vocabulary.build(sources), Vocabulary.build(targets)


def corpus(
    language: str = LANGUAGE, pairs: int = PAIRS, largest: int = LARGEST, held_out: int = HELD_OUT, seed: int = 0
) -> Corpus:
    """Number words in two languages, split; the vocabularies do not depend on how many pairs are taken."""
    train, test = split_pairs(number_words(language, pairs, seed, largest), held_out, seed)
    return Corpus(train, test, *vocabularies(language))


def brief_corpus(seed: int = 0) -> Corpus:
    """The small range of the grader's run: numbers up to BRIEF_LARGEST."""
    return corpus(pairs=BRIEF_PAIRS, largest=BRIEF_LARGEST, held_out=BRIEF_HELD_OUT, seed=seed)


def encode_pairs(
    pairs: Sequence[Pair], source: Vocabulary | None = None, target: Vocabulary | None = None
) -> tuple[list[Ids], list[Ids]]:
    """Sources and targets as lists of token numbers, without BOS and EOS."""
    own = vocabularies() if source is None or target is None else (source, target)
    source, target = source or own[0], target or own[1]
    return [source.encode(a) for a, _ in pairs], [target.encode(b) for _, b in pairs]


def make_batches(
    pairs: Sequence[Pair],
    pad_batch: PadBatch,
    teacher_forcing: TeacherForcing,
    *,
    steps: int = STEPS,
    size: int = BATCH,
    seed: int = 0,
    source: Vocabulary | None = None,
    target: Vocabulary | None = None,
) -> list[Batch]:
    """`steps` batches (src, src_padding, inputs, labels), made by the functions of 4.1.

    The pairs are shuffled anew in each epoch; which pairs a batch has depends on the seed and its place alone, so
    that a run can go on where another stopped.
    """
    sources, targets = encode_pairs(pairs, source, target)
    rng, rows, batches = random.Random(seed), list[int](), list[Batch]()
    for _ in range(steps):
        if len(rows) < size:
            rows = rng.sample(range(len(pairs)), len(pairs))
        taken, rows = rows[:size], rows[size:]
        src, src_padding = pad_batch([sources[i] for i in taken], PAD)
        inputs, labels = teacher_forcing([targets[i] for i in taken], BOS, EOS, PAD)
        batches.append((src, src_padding, inputs, labels))
    return batches


def build_model(make_model: Callable[..., nn.Module]) -> nn.Module:
    """A `Transformer` of the stated sizes for the stated vocabularies."""
    source, target = vocabularies()
    return make_model(len(source), len(target), **SIZES)


def train_briefly(model: nn.Module, train_step: TrainStep, batches: Sequence[Batch]) -> list[float]:
    """The grader's small run: `train_step` once for each batch; the loss of every step.

    The rate rises over a tenth of the steps and then falls to zero. Dropout draws the same in every run.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=BRIEF_RATE, betas=BETAS)
    losses = []
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for step, batch in enumerate(batches, 1):
            for group in optimizer.param_groups:
                group["lr"] = BRIEF_RATE * _share(step, len(batches))
            losses.append(float(train_step(model, batch, optimizer, PAD)))
    model.eval()
    return losses


def load_model(make_model: Callable[..., nn.Module], path: str | Path = CHECKPOINT) -> nn.Module:
    """A model of the stated sizes with the weights of a checkpoint file."""
    path = Path(path)
    if path.is_file() and path.stat().st_size > MAX_CHECKPOINT:
        size, most = path.stat().st_size / 2**20, MAX_CHECKPOINT // 2**20
        raise CheckpointError(f"{path} has {size:.0f} MB; a model of the stated sizes needs less than {most} MB")
    model = build_model(make_model)
    load_checkpoint(path, model)
    return model.eval()


@torch.no_grad()
def translate(
    model: nn.Module, decode: Decode, src: Tensor, src_padding: Tensor, max_len: int = MAX_LEN, size: int = 100
) -> list[Ids]:
    """Decode a padded batch src [N, S] in pieces of `size` sentences, with dropout off."""
    device = next(model.parameters()).device
    outputs: list[Ids] = []
    with evaluating(model):
        for ids, padding in zip(src.split(size), src_padding.split(size), strict=True):
            ids, padding = to_device((ids, padding), device)
            outputs += decode(model, ids, padding, BOS, EOS, max_len)
    return outputs


@torch.no_grad()
def cross_attention(model: nn.Module, src: Tensor, inputs: Tensor, src_padding: Tensor | None = None) -> Tensor:
    """Who looks where: the weights of every decoder layer's cross-attention, [L, B, H, T, S]."""
    seen: list[Tensor] = []
    layers: Any = model.decoder_layers
    hooks = [layer.cross_attn.register_forward_hook(lambda _m, _i, out: seen.append(out[1])) for layer in layers]
    try:
        with evaluating(model):
            model(src, inputs, src_padding)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(seen)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout off inside the block; afterwards the model is in the mode that it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def exact_match(outputs: Sequence[Sequence[Any]], references: Sequence[Sequence[Any]]) -> float:
    """The share of outputs that equal their reference, token for token."""
    _paired(outputs, references)
    return sum(list(a) == list(b) for a, b in zip(outputs, references, strict=True)) / len(references)


def bleu(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU of lists of tokens, 0 to 100, by sacrebleu; our tokens are taken as they are."""
    from sacrebleu import corpus_bleu

    return float(corpus_bleu(*_texts(outputs, references), tokenize="none", force=True).score)


def chrf(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Corpus chrF of lists of tokens, 0 to 100, by sacrebleu."""
    from sacrebleu import corpus_chrf

    return float(corpus_chrf(*_texts(outputs, references)).score)


def _texts(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    _paired(outputs, references)
    return [" ".join(tokens) for tokens in outputs], [[" ".join(tokens) for tokens in references]]


def _paired(outputs: Sequence[Any], references: Sequence[Any]) -> None:
    if not references or len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs for {len(references)} references: there must be one for each")


def _share(step: int, steps: int) -> float:
    """The share of the full rate at a step, counted from 1: up over a tenth of the run, then down towards zero."""
    done = step / steps
    return min(done / 0.1, (1 + 1 / steps - done) / 0.9)
