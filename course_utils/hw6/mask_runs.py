"""Masks that stay against masks drawn anew: the same small model, sentences and steps, once with each."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.hw6.stories import corpus, encoded, words

PAD, MASK, LENGTH, CHOSEN = 0, 1, 12, 0.15  # numbers of this run, not of the corpus
KINDS = ("the same places", "drawn anew")


class Guesser(nn.Module):
    """One layer of torch's own encoder over words and positions; logits for each place."""

    def __init__(self, vocab_size: int, d_model: int = 48) -> None:
        super().__init__()
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(LENGTH, d_model)
        self.layer = nn.TransformerEncoderLayer(d_model, 4, 2 * d_model, 0.1, F.gelu, batch_first=True)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, N] -> logits [B, N, V]."""
        x = self.token_embed(ids) + self.position_embed.weight[: ids.shape[1]]
        return self.out(self.layer(x, src_key_padding_mask=ids == PAD))


def fixed_or_anew(epochs: int = 30, n: int = 60, seed: int = 0) -> dict[str, list[float]]:
    """The loss on other sentences every few epochs, for both kinds of masks, and the epochs themselves."""
    train, test = _sentences(n, seed), _sentences(200, seed + 1)
    hidden = _chosen(test, torch.Generator().manual_seed(seed))
    found: dict[str, list[float]] = {"epoch": [], **{kind: [] for kind in KINDS}}
    every = max(epochs // 10, 1)
    for kind in KINDS:
        torch.manual_seed(seed)
        model, rng = Guesser(len(words()) + 2), torch.Generator().manual_seed(seed)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        stays = _chosen(train, rng)
        for epoch in range(1, epochs + 1):
            chosen = stays if kind == KINDS[0] else _chosen(train, rng)
            model.train()
            for rows in torch.randperm(n, generator=rng).split(20):
                optimizer.zero_grad()
                _loss(model, train[rows], chosen[rows]).backward()
                optimizer.step()
            if epoch % every == 0:
                model.eval()
                with torch.no_grad():
                    found[kind].append(float(_loss(model, test, hidden)))
                if kind == KINDS[0]:
                    found["epoch"].append(epoch)
    return found


def _sentences(n: int, seed: int) -> Tensor:
    """Sentences of the stories, filled up with PAD: [n, LENGTH]."""
    documents = encoded(corpus(n, 0, seed=100 + seed)[0])
    rows = [sentence[:LENGTH] for document in documents for sentence in document][:n]
    return torch.tensor([[i + 2 for i in row] + [PAD] * (LENGTH - len(row)) for row in rows])


def _chosen(ids: Tensor, rng: torch.Generator) -> Tensor:
    """Which places are hidden: each with probability CHOSEN, and one at least in each row: [n, LENGTH]."""
    draws = torch.rand(ids.shape, generator=rng).masked_fill(ids == PAD, 1.0)
    return (draws < CHOSEN) | (draws == draws.amin(1, keepdim=True))


def _loss(model: nn.Module, ids: Tensor, chosen: Tensor) -> Tensor:
    return F.cross_entropy(model(ids.masked_fill(chosen, MASK))[chosen], ids[chosen])
