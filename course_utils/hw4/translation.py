"""The task of homework 4: English number words into German ones, from the corpus to the score.

    fifty - six thousand , one hundred and twelve  ->  sechs und fünfzig tausend ein hundert zwölf

German puts the ones before the tens, so word by word will not do. Every number has one right translation, and
vocabularies, corpus and splits are the same on every machine. `train_briefly` is the small run of the grader.
Batches, decoding in pieces and scores serve every other corpus too (`tasks.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from course_utils.data import BOS, EOS, PAD, Pair, Vocabulary, number_words, split_pairs
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
References = Sequence[Sequence[Any]]  # the good translations of one sentence
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # src, src_padding, inputs, labels
PadBatch = Callable[[Sequence[Ids], int], tuple[Tensor, Tensor]]
TeacherForcing = Callable[[Sequence[Ids], int, int, int], tuple[Tensor, Tensor]]
TrainStep = Callable[[nn.Module, Batch, torch.optim.Optimizer, int], float]
Decode = Callable[[nn.Module, Tensor, Tensor, int, int, int], list[Ids]]


class WordList(Protocol):
    """What turns tokens into numbers and back, as a `Vocabulary` does; `tokens` says what each number stands for."""

    tokens: list[str]

    def encode(self, tokens: Iterable[str], /) -> list[int]:
        """One or more numbers per token, without BOS and EOS."""

    def decode(self, ids: Iterable[int], /) -> list[str]:
        """The tokens again, without PAD, BOS and EOS."""

    def __len__(self) -> int: ...


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
    pairs: Sequence[Pair], source: WordList | None = None, target: WordList | None = None
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
    source: WordList | None = None,
    target: WordList | None = None,
    alike: int = 1,
) -> list[Batch]:
    """`steps` batches (src, src_padding, inputs, labels), made by the functions of 4.1.

    The pairs are shuffled anew in each epoch; which pairs a batch has depends on the seed and its place alone, so
    that a run can go on where another stopped. With `alike` above 1, the pairs of so many batches are sorted by length
    before they are dealt out, so that little is padded.
    """
    sources, targets = encode_pairs(pairs, source, target)
    rng, waiting, batches = random.Random(seed), list[list[int]](), list[Batch]()
    for _ in range(steps):
        waiting = waiting or _dealt(rng, targets, size, alike)
        taken = waiting.pop(0)
        src, src_padding = pad_batch([sources[i] for i in taken], PAD)
        inputs, labels = teacher_forcing([targets[i] for i in taken], BOS, EOS, PAD)
        batches.append((src, src_padding, inputs, labels))
    return batches


def _dealt(rng: random.Random, targets: Sequence[Ids], size: int, alike: int) -> list[list[int]]:
    """One epoch: the numbers of the pairs in batches; what is left over at the end waits for the next shuffle."""
    rows = rng.sample(range(len(targets)), len(targets))
    if alike == 1:
        return [rows[i : i + size] for i in range(0, max(len(rows) - size, 0) + 1, size)]
    pools = [
        sorted(rows[i : i + alike * size], key=lambda j: len(targets[j])) for i in range(0, len(rows), alike * size)
    ]
    dealt = [pool[i : i + size] for pool in pools for i in range(0, len(pool), size)]
    whole = [taken for taken in dealt if len(taken) == size] or dealt
    return rng.sample(whole, len(whole))


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


def exact_match(outputs: Sequence[Sequence[Any]], references: Sequence[References]) -> float:
    """The share of outputs that equal one of their references, token for token."""
    _paired(outputs, references)
    return sum(list(a) in map(list, some) for a, some in zip(outputs, references, strict=True)) / len(references)


def bleu(outputs: Sequence[Sequence[str]], references: Sequence[References]) -> float:
    """Corpus BLEU of lists of tokens, 0 to 100, by sacrebleu with its defaults."""
    from sacrebleu import corpus_bleu

    return float(corpus_bleu(*_texts(outputs, references), force=True).score)


def chrf(outputs: Sequence[Sequence[str]], references: Sequence[References]) -> float:
    """Corpus chrF of lists of tokens, 0 to 100, by sacrebleu with its defaults."""
    from sacrebleu import corpus_chrf

    return float(corpus_chrf(*_texts(outputs, references)).score)


def _texts(outputs: Sequence[Sequence[str]], references: Sequence[References]) -> tuple[list[str], list[list[str]]]:
    """What sacrebleu wants: texts, and the first references of all, the second ones of all, and so on."""
    _paired(outputs, references)
    most = max(map(len, references))
    rows = [[" ".join(tokens) for tokens in some] for some in references]
    filled = [[*row, *[row[0]] * (most - len(row))] for row in rows]  # a reference twice changes no score
    return [" ".join(tokens) for tokens in outputs], [list(column) for column in zip(*filled, strict=True)]


def _paired(outputs: Sequence[Any], references: Sequence[References]) -> None:
    if not references or len(outputs) != len(references):
        raise ValueError(
            f"{len(outputs)} outputs for {len(references)} lists of references: there must be one for each"
        )
    for some in references:
        if not some or isinstance(some[0], str):
            raise ValueError(f"the references of an output are a list of one or more lists of tokens, not {some!r:.60}")


def _share(step: int, steps: int) -> float:
    """The share of the full rate at a step, counted from 1: up over a tenth of the run, then down towards zero."""
    done = step / steps
    return min(done / 0.1, (1 + 1 / steps - done) / 0.9)
