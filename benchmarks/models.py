"""The reference models beside torch's own at the same sizes, in one run: time of a forward and backward pass.

    python benchmarks/models.py [--rounds 15] [--json]

Each pair takes turns, on one thread, and the median of the ratios of neighbouring rounds is shown, so that a busy
machine slows both sides alike. Then cached decoding beside uncached.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from autograder.homework import read_homework
from autograder.judge.local import reference_names

B, N, D, H, FF, LAYERS, VOCAB = 16, 48, 128, 4, 512, 2, 300
MAX_LEN = 256
ATTENDED = ((16, 48, 56, 128, 4), (64, 12, 12, 96, 4), (16, 48, 56, 512, 8), (4, 128, 128, 256, 8))  # B, T, S, D, H


def main() -> None:
    """Measure, print a table, and with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ratios = {}
    for name, (ours, theirs) in pairs().items():
        ratios[name], mine, other = measure(ours, theirs, options.rounds)
        print(f"{name:28}{1000 * mine:8.1f} ms ours {1000 * other:8.1f} ms torch's   ratio {ratios[name]:.2f}")
    cached, plain = decoding()
    ratios["uncached / cached decoding"], mine, other = measure(plain, cached, 3)
    print(f"decoding {MAX_LEN} tokens: {mine:.2f} s uncached, {other:.2f} s cached, "
          f"{ratios['uncached / cached decoding']:.1f} times")  # fmt: skip
    if options.json:
        print(json.dumps(ratios))


def pairs() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """(ours, theirs) by name, each a forward and backward pass."""
    blocks, translation, vision = (_reference(name) for name in ("hw3_blocks", "hw4_translation", "hw5_vision"))
    memory = torch.randn(B, N + 8, D)
    padding = torch.arange(N + 8)[None] >= torch.randint(N // 2, N + 8, (B, 1))
    src, tgt = torch.randint(VOCAB, (B, N + 8)), torch.randint(VOCAB, (B, N))
    future = nn.Transformer.generate_square_subsequent_mask(N, dtype=torch.bool)
    layer: dict[str, Any] = {"batch_first": True, "norm_first": True, "activation": "gelu", "dropout": 0.0}
    encoder, their_encoder = blocks.EncoderLayer(D, H, FF), nn.TransformerEncoderLayer(D, H, FF, **layer)
    whole = translation.Transformer(VOCAB, VOCAB, D, H, FF, LAYERS)
    theirs = _TheirTransformer(nn.Transformer(D, H, LAYERS, LAYERS, FF, **layer), future)
    images = torch.randn(B, 3, 32, 32)
    vit = vision.ViT(32, 4, 3, D, H, FF, LAYERS, 10, pool="gap")
    their_vit = _TheirViT(layer)
    return {
        **{"attention, {1} x {2}, width {3}".format(*sizes): _attention(blocks, *sizes) for sizes in ATTENDED},
        "EncoderLayer": (
            lambda: _both(encoder, encoder(memory, padding)),
            lambda: _both(their_encoder, their_encoder(memory, src_key_padding_mask=padding)),
        ),
        "Transformer": (
            lambda: _both(whole, whole(src, tgt, padding)),
            lambda: _both(theirs, theirs(src, tgt, padding)),
        ),
        "ViT": (lambda: _both(vit, vit(images)), lambda: _both(their_vit, their_vit(images))),
    }


def _attention(
    blocks: SimpleNamespace, batch: int, T: int, S: int, d: int, heads: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """`MultiHeadAttention` and torch's module, T queries over S keys with padding; both give the weights."""
    x, memory = torch.randn(batch, T, d), torch.randn(batch, S, d)
    padding = torch.arange(S)[None] >= torch.randint(S // 2, S, (batch, 1))
    ours, theirs = blocks.MultiHeadAttention(d, heads), nn.MultiheadAttention(d, heads, batch_first=True)
    return (
        lambda: _both(ours, ours(x, memory, memory, padding)[0]),
        lambda: _both(theirs, theirs(x, memory, memory, padding, average_attn_weights=False)[0]),
    )


class _TheirTransformer(nn.Module):
    """nn.Transformer between embeddings and a tied output."""

    def __init__(self, core: nn.Transformer, future: Tensor) -> None:
        super().__init__()
        self.core, self.future = core, future
        self.src, self.tgt = nn.Embedding(VOCAB, D), nn.Embedding(VOCAB, D)

    def forward(self, src: Tensor, tgt: Tensor, padding: Tensor) -> Tensor:
        """Logits."""
        masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        h = self.core(self.src(src), self.tgt(tgt), tgt_mask=self.future, tgt_is_causal=True, **masks)
        return h @ self.tgt.weight.T


class _TheirViT(nn.Module):
    """nn.TransformerEncoder on the patches of a strided convolution, mean pooling."""

    def __init__(self, layer: dict[str, Any]) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, D, 4, 4)
        self.positions = nn.Parameter(torch.zeros(1, 64, D))
        self.core = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, FF, **layer), LAYERS, nn.LayerNorm(D))
        self.head = nn.Linear(D, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        x = self.patches(images).flatten(2).mT + self.positions
        return self.head(self.core(x).mean(1))


def decoding() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Greedy decoding with and without a cache, of sentences that never end."""
    translation = _reference("hw4_translation")
    model = translation.Transformer(VOCAB, VOCAB, D, H, FF, LAYERS, max_len=MAX_LEN + 1).eval()
    src = torch.randint(4, VOCAB, (2, 20))
    options = (src, torch.zeros_like(src, dtype=torch.bool), 1, VOCAB, MAX_LEN)  # no token has the id of EOS
    return (
        lambda: translation.cached_greedy_decode(model, *options),
        lambda: translation.greedy_decode(model, *options),
    )


def measure(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """The median ratio of neighbouring rounds, and the median seconds of each side."""
    ours(), theirs()
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
    ratio = statistics.median(mine / other for mine, other in times)
    return ratio, statistics.median(mine for mine, _ in times), statistics.median(other for _, other in times)


def _seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _both(model: nn.Module, out: Tensor) -> None:
    model.zero_grad()
    out.square().mean().backward()


def _reference(name: str) -> SimpleNamespace:
    return reference_names(read_homework(name))


if __name__ == "__main__":
    main()
