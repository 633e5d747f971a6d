"""What a model of q1_5 can learn: the gradients that reach its symbols, and parameters that none reaches."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def symbol_gradients(model: nn.Module, src: Tensor, tgt_in: Tensor, vocab_src: int) -> Tensor | None:
    """How much gradient the sum of the squared logits sends to each source symbol: [vocab_src].

    It is read off the parameters with one row per source symbol; None for a model without any. Gradients that the
    model had before are kept.
    """
    rows = [p for p in model.parameters() if p.ndim == 2 and len(p) == vocab_src]
    if not rows:
        return None
    logits, _ = model(src, tgt_in)
    found = torch.autograd.grad(logits.square().sum(), rows, allow_unused=True)
    sizes = [torch.zeros(vocab_src) if g is None else g.detach().abs().amax(-1).cpu() for g in found]
    return torch.stack(sizes).amax(0)


def idle_parameters(model: nn.Module, src: Tensor, tgt_in: Tensor) -> list[str]:
    """The parameters that move the logits and get no gradient from them, frozen ones among them.

    Those that the model does not use are left alone. The model is as it was afterwards.
    """
    named = dict(model.named_parameters())
    learning = {name: p for name, p in named.items() if p.requires_grad}
    logits = model(src, tgt_in)[0]
    found = torch.autograd.grad(logits.square().sum(), list(learning.values()), allow_unused=True)
    reached = {name for name, g in zip(learning, found, strict=True) if g is not None and bool(g.ne(0).any())}
    return [name for name in named if name not in reached and _moves(model, named[name], src, tgt_in, logits.detach())]


@torch.no_grad()
def _moves(model: nn.Module, parameter: nn.Parameter, src: Tensor, tgt_in: Tensor, logits: Tensor) -> bool:
    """Whether other values of a parameter give other logits."""
    kept = parameter.detach().clone()
    parameter.add_(torch.linspace(0.5, 1.0, kept.numel()).to(kept).reshape(kept.shape))
    moved = model(src, tgt_in)[0]
    parameter.copy_(kept)
    return not torch.allclose(moved, logits, rtol=1e-5, atol=1e-6)
