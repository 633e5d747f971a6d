"""What a check looks at in a module that an answer makes: the names of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


def parameter_names(make: Callable[..., nn.Module], *args: Any) -> list[str]:
    """The names of all parameters of `make(*args)`, sorted."""
    return sorted(name for name, _ in make(*args).named_parameters())
