"""What students import: `from course_utils import Grader, plots`.

notebook     what notebooks import
data         data sets that are here, or that you have
hw1 .. hw5   what one homework's notebook and checks share
checking     what checks compare with
instruments  what runs beside an answer
explain      how a check speaks
terminal     the `course` command

Importing the package is cheap: each name below is loaded from its module when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

_HOMES = {  # name -> the module that has it
    "after": "notebook.after",
    "card_markdown": "notebook.conventions",
    "Grader": "notebook.grader",
    "pick_device": "notebook.device",
    "seed_everything": "notebook.seeding",
}
_MODULES = ("derivations", "plots")  # of the room for notebooks

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"course_utils.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"course_utils.notebook.{name}")
    raise AttributeError(f"module 'course_utils' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by the names that version 0.1 had for them: notebooks that were handed out then still work."""

    places = {
        "bias_experiments": "hw5.bias_experiments",
        "claims": "hw2.claims",
        "derivations": "notebook.derivations",
        "feature_maps": "hw2.feature_maps",
        "kernels": "hw1.kernels",
        "patients": "hw3.patients",
        "plots": "notebook.plots",
        "position_layer": "hw1.position_layer",
        "reversal": "hw1.reversal",
        "spot_the_error": "hw1.spot_the_error",
        "stepwise": "hw2.kv_runs",
        "three_jobs": "hw2.three_jobs",
        "torch_weights": "instruments.torch_match",
        "training": "notebook.training",
        "translation": "hw4.translation",
        "vision": "hw5.vision",
        "work": "instruments.work",
    }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        package, _, module = name.rpartition(".")
        known = package == __name__ and module in self.places
        return importlib.machinery.ModuleSpec(name, self) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"{__name__}.{self.places[spec.name.rpartition('.')[2]]}")
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # it has run already, under its own name


if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
    sys.meta_path.append(_Moved())
