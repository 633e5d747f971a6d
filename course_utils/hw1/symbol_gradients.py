"""Which source symbols a model of q1_5 can learn from: the gradients that reach their embeddings."""

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
