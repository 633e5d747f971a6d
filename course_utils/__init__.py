"""What students import: checks, plots, seeds, devices and tools for derivations.

Importing the package is cheap: each name below is loaded from its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "after": "experiments",
    "card_markdown": "conventions",
    "Grader": "checks",
    "pick_device": "devices",
    "seed_everything": "seeding",
}
_MODULES = ("derivations", "kernels", "plots", "position_layer", "reversal", "spot_the_error")

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"course_utils.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"course_utils.{name}")
    raise AttributeError(f"module 'course_utils' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
