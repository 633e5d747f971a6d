"""The real corpus of homework 4: captions of photographs (Multi30k), English into German, with the student's own parts.

Words are cut into pieces by byte pairs, one vocabulary for both languages, whose vectors both sides share. Sentences of
like length are batched together. BLEU is sacrebleu's own, of whole sentences as they were written, and comes with its
signature.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_utils.data.fetch import DownloadError, download_set
from course_utils.data.pairs import multi30k_texts
from course_utils.data.subwords import Subwords
from course_utils.data.token_batches import token_batches
from course_utils.data.vocabulary import BOS, EOS, PAD
from course_utils.hw4.translation import BETAS, Batch, Decode, Ids, PadBatch, evaluating
from course_utils.notebook.device import pick_device
from course_utils.notebook.long_runs import LongPlan, train_long
from course_utils.notebook.runs import TrainingRun
from course_utils.notebook.seeding import seed_everything
from course_utils.notebook.training import autocast_for, to_device

LONGEST = 80  # tokens of a caption; the longest of the set have 64 pieces
AT_A_TIME = 128  # sentences that are translated together
SHOWN = 10  # translations at the end; three at each look


def tell_multi30k(folder: Path, address: str | None = None) -> tuple[bool, list[str]]:
    """Multi30k, 2 MB, fetched where it is not there: whether it is whole now, and what to say about it."""
    try:
        place = download_set("multi30k", folder, address)
    except DownloadError as error:
        return False, [str(error)]
    return True, [f"{place}: all files are there, and whole.", "`course train hw4` trains on it."]


@dataclass(frozen=True)
class Recipe:
    """Sizes and settings of a run."""

    d_model: int
    n_heads: int
    d_ff: int
    n_layers: int
    dropout: float
    pieces: int  # in the vocabulary
    tokens: int  # in a batch, on each side
    rate: float  # times the schedule of 2017
    warmup: int
    every: int  # steps between looks
    patience: int  # looks


CPU = Recipe(128, 4, 512, 2, 0.1, pieces=4_000, tokens=1_536, rate=0.6, warmup=200, every=50, patience=20)
GPU = Recipe(256, 4, 512, 4, 0.3, pieces=8_000, tokens=8_192, rate=1.0, warmup=2_000, every=500, patience=12)
SMOKE = Recipe(32, 2, 64, 1, 0.0, pieces=400, tokens=256, rate=1.0, warmup=10, every=4, patience=9)
RECIPES = {"cpu": CPU, "gpu": GPU, "smoke": SMOKE}


class Captions:
    """The splits as sentences and as token numbers, and the vocabulary, which is learned from the training split."""

    def __init__(self, folder: str | Path, pieces: int, vocabulary: Path) -> None:
        self.texts = multi30k_texts(folder)
        if vocabulary.is_file():
            self.words = Subwords.load(vocabulary)
        else:
            self.words = Subwords.learn([*self.side("train", 0), *self.side("train", 1)], pieces)
            vocabulary.parent.mkdir(parents=True, exist_ok=True)
            self.words.save(vocabulary)
        sides = (self.words.encode_all(self.side("train", which)) for which in (0, 1))
        pairs = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) <= LONGEST]
        self.sources, self.targets = [list(side) for side in zip(*pairs, strict=True)]

    def side(self, split: str, which: int) -> list[str]:
        """The sentences of a split in one language: 0 is the source."""
        return [pair[which] for pair in self.texts[split]]

    def batches(self, parts: Mapping[str, Any], most: int, seed: int, start: int) -> Iterator[Batch]:
        """Batches without end, from number `start` on, made by the student's functions of 4.1."""
        for rows in token_batches(self.sources, self.targets, most, seed, start):
            src, src_padding = parts["pad_batch"]([self.sources[row] for row in rows], PAD)
            yield (src, src_padding, *parts["teacher_forcing"]([self.targets[row] for row in rows], BOS, EOS, PAD))


def build(parts: Mapping[str, Any], recipe: Recipe, vocabulary: int) -> nn.Module:
    """The student's `Transformer`; source, target and output share one table of vectors."""
    sizes = {name: getattr(recipe, name) for name in ("d_model", "n_heads", "d_ff", "n_layers", "dropout")}
    model: Any = parts["Transformer"](vocabulary, vocabulary, **sizes)
    model.src_embed.weight = model.tgt_embed.weight
    return model


@torch.no_grad()
def translate_texts(
    model: nn.Module, decode: Decode, pad_batch: PadBatch, words: Subwords, texts: Sequence[str]
) -> list[str]:
    """Sentences into sentences, dropout off; those of like length are decoded together."""
    device = next(model.parameters()).device
    sources = words.encode_all(texts)
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    outputs: dict[int, Ids] = {}
    with evaluating(model), autocast_for(device):
        for first in range(0, len(order), AT_A_TIME):
            rows = order[first : first + AT_A_TIME]
            src, padding = to_device(pad_batch([sources[i] for i in rows], PAD), device)
            most = min(LONGEST, 2 * src.shape[1] + 10)
            outputs |= dict(zip(rows, decode(model, src, padding, BOS, EOS, most), strict=True))
    return [words.decode(outputs[i]) for i in range(len(texts))]


def score(outputs: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Corpus BLEU of sentences as they are written, 0 to 100, and sacrebleu's signature: how it was counted."""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU()
    found = metric.corpus_score(list(outputs), [list(references)])
    return float(found.score), str(metric.get_signature())


def train(names: Mapping[str, Any], **options: Any) -> int:
    """`train_captions` for the terminal: what came of it is in files."""
    train_captions(names, **options)
    return 0


def train_captions(
    names: Mapping[str, Any], folder: str, out: str, recipe: str = "", steps: int | None = None,
    minutes: float | None = None, threads: int = 0, device: str | None = None, seed: int = 0, beam: int = 0,
    compiled: bool = False, anew: bool = False, cached: bool = True,
) -> TrainingRun:  # fmt: skip
    """Train a notebook's model on captions into the folder `out`, or go on with the run there; then score it.

    `names` are the student's: `globals()` in the notebook.
    """
    place, home = pick_device(device), Path(out)
    chosen = RECIPES[recipe or ("gpu" if place.type == "cuda" else "cpu")]
    run = TrainingRun(home, home / "best.safetensors", anew)
    data = Captions(folder, chosen.pieces, home / "vocabulary.json")
    seed_everything(seed)
    if threads:
        torch.set_num_threads(threads)
    model = build(names, chosen, len(data.words)).to(place)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=BETAS)
    trained = torch.compile(model) if compiled else model
    decode = names["cached_greedy_decode" if cached else "greedy_decode"]
    weights = sum(p.numel() for p in model.parameters())
    print(f"{chosen}\n{weights:,} weights, {len(data.sources):,} pairs, {len(data.words):,} pieces, on {place}")

    def update(batch: Batch) -> float:
        for side, ids in (("source_tokens", batch[0]), ("target_tokens", batch[3])):
            run.facts[side] = run.facts.get(side, 0) + int((ids != PAD).sum())
        return float(names["train_step"](trained, batch, optimizer, PAD))

    def look() -> dict[str, float]:
        outputs = translate_texts(model, decode, names["pad_batch"], data.words, data.side("val", 0))
        _show(data, "val", outputs, 3, seed=len(run.curves.values.get("score", [])))
        return {"bleu": score(outputs, data.side("val", 1))[0]}

    made = train_long(
        model, optimizer, update,
        lambda start: data.batches(names, chosen.tokens, seed, start),
        lambda step: chosen.rate * names["noam_rate"](step, chosen.d_model, chosen.warmup),
        look, run, LongPlan(chosen.every, chosen.patience, steps, minutes),
    )  # fmt: skip
    decoders: dict[str, Decode] = {"greedy": decode}
    if beam:
        decoders[f"beam of {beam}"] = lambda *args: names["beam_search"](*args, beam, 1.0)
    told = {
        "steps": made, "weights": weights, "pairs": len(data.sources), "threads": torch.get_num_threads(),
        "torch": torch.__version__, "device": str(place), "seed": seed, "recipe": asdict(chosen), "facts": run.facts,
        "validation_bleu": run.best,
        "test": {name: _test(model, one, names["pad_batch"], data, home, name) for name, one in decoders.items()},
    }  # fmt: skip
    (home / "report.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    draw(run, home / "curve.png")
    print(f"{home}: report.json, curve.png, test.greedy.txt, best.safetensors")
    return run


def draw(run: TrainingRun, path: Path) -> None:
    """The learning curve as a picture: loss and validation BLEU over the steps."""
    from matplotlib.figure import Figure

    from course_utils.notebook.palette import SERIES

    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, name, title, colour in (
        (left, "loss", "smoothed loss in training", SERIES[0]),
        (right, "bleu", "BLEU on the validation set", SERIES[1]),
    ):
        axes.plot(run.curves.steps[name], run.curves.values[name], color=colour, marker="o", markersize=3)
        axes.set(xlabel="step", title=title)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def _test(
    model: nn.Module, decode: Decode, pad_batch: PadBatch, data: Captions, home: Path, name: str
) -> dict[str, Any]:
    """Score the test split and keep its translations."""
    outputs = translate_texts(model, decode, pad_batch, data.words, data.side("test", 0))
    bleu, signature = score(outputs, data.side("test", 1))
    (home / f"test.{name.replace(' ', '_')}.txt").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    _show(data, "test", outputs, SHOWN, seed=0)
    print(f"test of 2016, {name}: BLEU {bleu:.2f} ({signature})", flush=True)
    return {"bleu": bleu, "signature": signature}


def _show(data: Captions, split: str, outputs: Sequence[str], some: int, seed: int) -> None:
    """Print some translations beside those of a person."""
    for row in random.Random(seed).sample(range(len(outputs)), min(some, len(outputs))):
        source, reference = data.texts[split][row]
        print(f"  {source}\n    model:  {outputs[row]}\n    person: {reference}")
