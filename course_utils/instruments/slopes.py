"""Which parameters of a model get a gradient; run beside the answer, where the parameters are."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


def slopes(model: nn.Module, *given: Any) -> dict[str, Tensor]:
    """The gradient of the sum of all squared outputs at each parameter; a parameter that none reaches is left out."""
    model.zero_grad()
    out = model(*given)
    sum(part.pow(2).sum() for part in (out if isinstance(out, (tuple, list)) else (out,))).backward()
    found = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    return found
