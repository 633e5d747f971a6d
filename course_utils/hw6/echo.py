"""A small model that speaks like a GPT and is none: to try `sample` and `perplexity` with, before there is a GPT.

What a token has to say fades with its distance, at a fixed rate; there is no attention and nothing is learnt. From the
outside it is what a language model is here: `model(ids, key_padding_mask=None, cache=None)` gives logits [B, T, V],
`new_cache()` an empty cache that is changed in place, `max_len` the largest number of columns.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Echo(nn.Module):
    """Logits from a fading memory of the tokens so far: token_embed, position_embed, mix; attribute max_len."""

    def __init__(self, vocab_size: int, d_model: int, max_len: int, fade: float = 0.6, dropout: float = 0.0) -> None:
        super().__init__()
        self.max_len, self.fade = max_len, fade
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.mix = nn.Linear(d_model, d_model)
        self.position_embed = nn.Embedding(max_len, d_model)
        self.dropout = nn.Dropout(dropout)

    def new_cache(self) -> dict[str, Tensor]:
        """A cache that holds no token yet."""
        return {}

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None, cache: Any = None) -> Tensor:
        """ids [B, T]: the tokens after those in the cache; key_padding_mask bool [B, S], all so far -> [B, T, V]."""
        B, T = ids.shape
        said = self.token_embed(ids)  # [B, T, D]
        if cache:
            said = torch.cat([cache["said"], said], 1)  # [B, S, D]
        S = said.shape[1]
        if self.max_len < S:
            raise ValueError(f"{S} columns, and max_len = {self.max_len}")
        if cache is not None:
            cache["said"] = said
        if key_padding_mask is None:
            key_padding_mask = torch.zeros(B, S, dtype=torch.bool, device=ids.device)
        if tuple(key_padding_mask.shape) != (B, S):
            raise ValueError(f"the mask is {list(key_padding_mask.shape)}; it covers all tokens so far, [{B}, {S}]")
        real = ~key_padding_mask
        place = (torch.cumsum(real, 1) - 1).clamp(min=0)[:, S - T :]  # from the first real token on
        columns = torch.arange(S, device=ids.device)
        age = columns[S - T :, None] - columns  # [T, S]
        fading = torch.where(age < 0, 0.0, self.fade ** age.clamp(min=0).to(said.dtype))  # later ones are not heard
        heard = (fading * real[:, None].to(said.dtype)) @ said  # [B, T, D]
        h = torch.tanh(self.mix(self.dropout(heard + self.position_embed(place))))
        return h @ self.token_embed.weight.T  # [B, T, V]


def echo_weights(seed: int, vocab_size: int, d_model: int, max_len: int, size: float = 1.0) -> dict[str, Tensor]:
    """Random weights in float64, by name; `size` is that of the logits, about."""
    rng = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    return {
        "token_embed.weight": size * draw(vocab_size, d_model),
        "position_embed.weight": draw(max_len, d_model),
        "mix.weight": 1.5 * draw(d_model, d_model) / d_model**0.5,
        "mix.bias": 0.3 * draw(d_model),
    }


def echo(weights: dict[str, Tensor], fade: float = 0.6, dropout: float = 0.0) -> Echo:
    """An Echo with these weights, in evaluation mode."""
    (V, D), (max_len, _) = weights["token_embed.weight"].shape, weights["position_embed.weight"].shape
    model = Echo(V, D, max_len, fade, dropout).to(weights["token_embed.weight"].dtype)
    model.load_state_dict(weights)
    return model.eval()
