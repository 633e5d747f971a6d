"""Would a module run on another device? Tried on torch's device without numbers, so that no GPU is needed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


def left_behind(make: Callable[..., nn.Module], sizes: Any, *args: Any) -> str:
    """What a new module says when it and its inputs are moved to another device, if a tensor of its own stayed behind.

    An empty string means that all came along, or that this device cannot tell (it has no numbers to look at).
    """
    model = make(*sizes)
    model = copy.deepcopy(model).to("meta")
    try:
        model(*(value.to("meta") if isinstance(value, Tensor) else value for value in args))
    except (RuntimeError, NotImplementedError) as error:
        told = str(error).strip().split("\n")[0]
        return told if "on device" in told or "same device" in told or "devices" in told else ""
    except Exception:
        return ""
    return ""


def kinds_inside(make: Callable[..., nn.Module], sizes: Any) -> list[str]:
    """The names of the classes that a new module is made of, as `torch.nn.modules.linear.Linear`."""
    model = make(*sizes)
    return sorted({f"{type(part).__module__}.{type(part).__qualname__}" for part in model.modules()})
