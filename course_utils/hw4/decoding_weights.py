"""Lively weights for a `Transformer`: what it writes with them changes from step to step and from sentence to sentence.

A fresh model with tied weights repeats one token for ever, so that a wrong way of decoding looks right on it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.checking.compare import check

State = dict[str, Tensor]
PARTS = (
    "src_embed, tgt_embed, encoder_layers, decoder_layers, encoder_norm and decoder_norm, and the layers' parts have "
    "the names of the earlier homeworks"
)


def lively_weights(
    seed: int, src_vocab: int, tgt_vocab: int, d_model: int, n_heads: int, d_ff: int, n_layers: int
) -> State:
    """Random weights in float64 under the names of the contract; the sizes are those that the class takes.

    They depend on the seed alone, on any machine.
    """
    rng = random.Random(seed)
    many = np.random.RandomState(0)  # draws the same numbers as `rng.random()`, and many at a time
    *words, place = rng.getstate()[1]
    many.set_state({"bit_generator": "MT19937", "state": {"key": np.array(words, np.uint32), "pos": place}})
    places = torch.ones(d_model, dtype=torch.float64)
    places[:4] = 3.0  # where the position turns fastest: else every step is like the one before

    def uniform(*shape: int, spread: float) -> Tensor:
        """Numbers of that standard deviation."""
        return (torch.from_numpy(many.random_sample(shape)) - 0.5) * (math.sqrt(12) * spread)

    def linear(name: str, rows: int, columns: int, gain: float | Tensor = 1.0) -> Iterator[tuple[str, Tensor]]:
        yield f"{name}.weight", uniform(rows, columns, spread=1 / math.sqrt(columns)) * gain
        yield f"{name}.bias", uniform(rows, spread=0.1)

    def norm(name: str) -> Iterator[tuple[str, Tensor]]:
        yield f"{name}.weight", 1 + uniform(d_model, spread=0.1)
        yield f"{name}.bias", uniform(d_model, spread=0.1)

    weights: State = {
        "src_embed.weight": uniform(src_vocab, d_model, spread=2 / math.sqrt(d_model)),
        "tgt_embed.weight": uniform(tgt_vocab, d_model, spread=2 / math.sqrt(d_model)),
    }
    for stack, attentions in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "cross_attn"))):
        for i in range(n_layers):
            layer = f"{stack}_layers.{i}"
            for attention in attentions:
                for projection in ("q_proj", "k_proj", "v_proj"):
                    sharp = places if projection == "v_proj" else 2 * places
                    weights |= linear(f"{layer}.{attention}.{projection}", d_model, d_model, sharp)
                weights |= linear(f"{layer}.{attention}.o_proj", d_model, d_model)
            weights |= linear(f"{layer}.ff.fc1", d_ff, d_model, places)
            weights |= linear(f"{layer}.ff.fc2", d_model, d_ff)
            for number in range(len(attentions) + 1):
                weights |= norm(f"{layer}.norm{number + 1}")
        weights |= norm(f"{stack}_norm")
    # signs of both kinds: else a tied model likes best to write once more what it has just written
    later = many.get_state(legacy=False)["state"]
    rng.setstate((3, (*later["key"].tolist(), later["pos"]), None))
    signs = torch.tensor([rng.choice((-1.0, 1.0)) for _ in range(d_model)], dtype=torch.float64)
    weights["decoder_norm.weight"] = weights["decoder_norm.weight"] * signs
    return weights


def put_weights(model: Any, weights: State) -> Any:
    """The `Transformer` in float64 and evaluation mode with these weights, put in by name."""
    state = dict(model.state_dict())
    for name, value in weights.items():
        check(name in state, f"the model has no `{name}`: its parts are {PARTS}")
        found = list(state[name].shape)
        check(found == list(value.shape), f"`{name}` has shape {found}, expected {list(value.shape)}")
    model.double()
    model.eval()
    tied = {name: weights["tgt_embed.weight"] for name in second_names(state, weights)}
    model.load_state_dict({**state, **weights, **tied})
    return model


def second_names(state: State, weights: State) -> list[str]:
    """The names under which the model has its target embedding once more, as an output layer that is tied to it."""
    shared = state["tgt_embed.weight"]
    return [
        name
        for name, value in state.items()
        if name not in weights and value.shape == shared.shape and torch.equal(value, shared)
    ]
