"""A patient's vital signs before any training: what a mended model of q3_10 shows, beside its healthy twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.checking.beside import fact
from course_utils.hw3.patients import LENGTHS, PatientAttention, admitted, chart, healthy, planted, toy_batch

N = 32  # sequences that are looked at


@fact
def vital_signs(fix: Callable[[nn.Module], nn.Module], number: int, seed: int = 0) -> dict[str, Any]:
    """What the mended patient is like, not trained yet.

    `changed`: names in the state that differ from the healthy twin's; `written`: names in the state that differ from
    the patient's as it came; `lost`: those of them that were good; `unlearned`: parameters without a gradient;
    `order`, `padding`: whether the order of tokens, and the content of the padding, move the output; `noise`: how much
    two calls in training mode differ; `equal_units`: linear layers whose units are all the same; `scale`: the
    attentions' scales times the root of a head's width; `road`: whether a token still reaches the read-out when the
    branches of all blocks give 0; `twin`: whether the outputs are those of the healthy twin.
    """
    twin = healthy(seed).eval()
    sick = planted(twin, number) if number else healthy(seed)
    model = fix(admitted(chart(sick)))
    if not isinstance(model, nn.Module):
        raise TypeError(f"return the mended model, not {type(model).__name__}")
    changed, written = _differing(model, twin), _differing(model, sick)
    ids, padding, _ = toy_batch(torch.Generator().manual_seed(seed + 1), N)
    unlearned = parameters_without_gradient(model, ids, padding)
    noise = _noise(model, ids, padding)
    linear = [(name, part) for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    model.eval()
    with torch.no_grad():
        out = model(ids, padding)
        junk = model(torch.where(padding, ids.roll(1, 0).clamp_min(2), ids), padding)
        whole = ids[padding.sum(1) == 0]  # sequences without padding
        order = [0, *range(LENGTHS[1] - 1, 0, -1)]
        none = torch.zeros_like(whole, dtype=torch.bool)
        return {
            "changed": changed,
            "written": written,
            "lost": [name for name in written if name not in _open_to_change(sick, twin)],
            "unlearned": unlearned,
            "order": _moves(model(whole[:, order], none), model(whole, none)),
            "padding": _moves(junk, out),
            "noise": round(noise, 2),
            "equal_units": [name for name, part in linear if bool((part.weight == part.weight[0]).all())],
            "scale": _scales(model),
            "road": _has_a_road(model, ids, padding),  # nothing looks at the model after this: it is changed
            "twin": not _moves(out, twin(ids, padding)),
        }


@fact
def trains_as_healthy(fix: Callable[[nn.Module], nn.Module], number: int, seed: int = 0) -> bool:
    """Whether weights, outputs and gradients of the mended patient are its healthy twin's, in training mode.

    Then it learns what that learns, and nobody need wait for it.
    """
    twin = healthy(seed)
    model = fix(admitted(chart(planted(twin, number))))
    if not isinstance(model, nn.Module):
        raise TypeError(f"return the mended model, not {type(model).__name__}")
    ids, padding, labels = toy_batch(torch.Generator().manual_seed(seed + 1), N)
    mine, usual = (_in_training(each, ids, padding, labels) for each in (model, twin))
    return mine.keys() == usual.keys() and all(map(_near, mine.values(), usual.values()))


def _in_training(model: nn.Module, ids: Tensor, padding: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The state of a model and, under other names, its outputs and its gradients for one batch."""
    model.train()
    model.zero_grad()
    out = model(ids, padding)
    if out.requires_grad:
        F.cross_entropy(out, labels).backward()
    gradients = {f"gradient of {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    return dict(sorted({"": out.detach(), **gradients, **model.state_dict()}.items()))


def _near(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a.float() - b.float()).norm() <= 1e-3 * b.float().norm() + 1e-6)


def parameters_without_gradient(model: nn.Module, *inputs: Tensor) -> list[str]:
    """The names of parameters that no gradient of a random sum of the outputs reaches; keys' biases aside."""
    model.zero_grad()
    out = model(*inputs)
    if out.requires_grad:
        (out * torch.randn(out.shape, generator=torch.Generator().manual_seed(0)).to(out)).sum().backward()
    found = [name for name, p in model.named_parameters() if p.grad is None or not bool(p.grad.abs().max() > 1e-12)]
    model.zero_grad()
    return [name for name in found if not name.endswith("k_proj.bias")]  # a shift of all scores moves nothing


def _has_a_road(model: nn.Module, ids: Tensor, padding: Tensor) -> bool:
    """Whether the first token moves the output when no branch does, since all are taken out: by the residual road."""
    for name, part in model.named_modules():
        if name.startswith("blocks.") and name.endswith((".o_proj", ".fc2")) and isinstance(part, nn.Linear):
            nn.init.zeros_(part.weight)
            nn.init.zeros_(part.bias)
    other = ids.clone()
    other[:, 0] = 7
    return _moves(model(other, padding), model(ids, padding))


def _noise(model: nn.Module, ids: Tensor, padding: Tensor) -> float:
    """How far two calls in training mode lie apart, in units of the outputs' own spread."""
    model.train()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        one, two = model(ids, padding), model(ids, padding)
    return float((one - two).std() / one.std().clamp_min(1e-9))


def _scales(model: nn.Module) -> list[float]:
    parts = [part for part in model.modules() if isinstance(part, PatientAttention)]
    return [round(float(part.scale) * math.sqrt(part.q_proj.out_features / part.n_heads), 4) for part in parts]


def _differing(model: nn.Module, other: nn.Module) -> list[str]:
    state = model.state_dict()
    return [name for name, value in other.state_dict().items() if not _same(state.get(name), value)]


def _open_to_change(sick: nn.Module, twin: nn.Module) -> set[str]:
    """What is not the healthy twin's in a patient; a layer whose weight is sick may be drawn anew with its bias."""
    faulty = _differing(sick, twin)
    layers = {name.removesuffix(".weight") for name in faulty if name.endswith(".weight")}
    return {*faulty, *(f"{layer}.bias" for layer in layers)}


def _same(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and a.shape == b.shape and bool(torch.allclose(a.to(b), b, atol=1e-5))


def _moves(a: Tensor, b: Tensor) -> bool:
    return bool((F.softmax(a, -1) - F.softmax(b, -1)).abs().max() > 1e-5)
