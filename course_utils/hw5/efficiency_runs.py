"""What `data_efficiency` really trains and measures: every run noted, or a stand-in in the place of training."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from course_utils.checking.beside import fact
from course_utils.data import mnist5k
from course_utils.hw5.training_watch import image_keys
from course_utils.hw5.vision import NAMES, SIZES, call

MARK = 0.0123456789  # what a stand-in for training leaves in every parameter
MOST = 500  # batches that it looks at
DIGIT = (SIZES["channels"], SIZES["image_size"], SIZES["image_size"])


class Notes:
    """What was done with each model: the digits that it was trained on and those that it was asked about.

    A digit is known by its number in the 4,000 training images followed by the 1,000 held-out ones of `mnist5k`; -1 is
    an image that is none of them.
    """

    def __init__(self) -> None:
        train, test = mnist5k()
        self._keys, self._numbers = image_keys(torch.cat([train.images, test.images])).sort()
        self.models: list[nn.Module] = []
        self.runs: list[dict[str, Any]] = []
        self.calls = 0  # of any module at all

    def run(self, model: nn.Module) -> dict[str, Any]:
        """The notes about this model."""
        for known, notes in zip(self.models, self.runs, strict=True):
            if known is model:
                return notes
        shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
        kind = "vit" if any(name.endswith("embed.proj.weight") for name in shapes) else "cnn"
        self.models.append(model)
        notes = {"kind": kind, "shapes": shapes, "trainings": 0, "steps": 0, "planned": 0, "images": 0}
        self.runs.append(notes | {"trained": [], "asked": []})
        return self.runs[-1]

    def trains(self, model: nn.Module, images: Tensor) -> None:
        """The model is trained on these images."""
        notes = self.run(model)
        notes["steps"] += 1
        notes["images"] += len(images)
        notes["trained"].append(self._known(images))

    def asks(self, model: nn.Module, images: Tensor) -> None:
        """The model is asked about these images."""
        self.run(model)["asked"].append(self._known(images))

    def told(self) -> list[dict[str, Any]]:
        """For each model its kind ("vit" or "cnn"), the `shapes` of its parameters, its steps, the number of `images`
        that it was shown, which digits these were (`trained`, each once), and which it was asked about (`asked`). A
        plan also has the number of its `trainings`, and the steps that they would have had."""
        none = torch.zeros(0, dtype=torch.long)
        return [
            {
                **notes,
                "trained": torch.cat([none, *notes["trained"]]).unique(),
                "asked": torch.cat([none, *notes["asked"]]),
            }
            for notes in self.runs
        ]

    def _known(self, images: Tensor) -> Tensor:
        keys = image_keys(images)
        near = torch.searchsorted(self._keys, keys - 1e-6).clamp(max=len(self._keys) - 1)
        return torch.where((self._keys[near] - keys).abs() < 1e-6, self._numbers[near], -1)


def efficiency(data_efficiency: Callable[..., Any], sizes: Sequence[int], steps: int | None) -> Any:
    """What the function finds for these sizes; a number of steps is offered to a function that has such a parameter."""
    return call(data_efficiency, list(sizes), **({} if steps is None else {"steps": steps}))


def _by_name(function: Any, args: Sequence[Any], given: dict[str, Any]) -> dict[str, float]:
    """The numbers among the arguments of a training, by name, also where they were given by position."""
    try:
        bound = inspect.signature(function).bind(None, None, *args, **given).arguments
    except (TypeError, ValueError):
        bound = given
    return {name: value for name, value in bound.items() if type(value) in (int, float)}


def _planned(options: dict[str, float], batches: int) -> int:
    """The steps of a training with these options, one epoch of which has so many batches."""
    steps = next((options[name] for name in NAMES["steps"] if name in options), None)
    epochs = next((options[name] for name in NAMES["epochs"] if name in options), 1)
    return int(steps if steps is not None else epochs * batches)


@fact
def efficiency_plan(data_efficiency: Callable[..., Any], sizes: Sequence[int], steps: int | None = 3) -> dict[str, Any]:
    """What the function would do, with stand-ins for `train_classifier` and `evaluate` that only take notes.

    `steps` are offered to a function that has such a parameter; with None it is left at its default.

    `trained`: for each training its model's class, its steps and how many different images; `further`: for each
    training whether its model came with the weights that an earlier one had left; `evaluated`: how many images each
    evaluation had; `result`: what is returned when the accuracies come out as 0.01, 0.02, 0.03, ...; `runs`: see
    `Notes.told`; `options`: for each training the numbers that it was given, by name; `calls`: how
    many modules were called all the same.
    """
    notes = Notes()
    options: list[dict[str, float]] = []
    trained: list[tuple[str, int, int]] = []
    further: list[bool] = []
    evaluated: list[int] = []

    world = inspect.unwrap(data_efficiency).__globals__
    real = world.get("train_classifier")

    def train_classifier(model: nn.Module, batches: Any, *args: Any, **given: Any) -> list[float]:
        options.append(_by_name(real, args, given))
        images = []
        for x, _ in itertools.islice(batches, MOST):
            notes.trains(model, x)
            images.append(x.flatten(1).double())
        run = notes.run(model)
        run["trainings"] += 1
        run["planned"] += _planned(options[-1], len(images))
        distinct = torch.cat([x @ torch.arange(1.0, x.shape[1] + 1).double() for x in images]).unique()
        trained.append((type(model).__name__, len(images), len(distinct)))
        marked = [bool((parameter == MARK).all()) for parameter in model.parameters()]
        further.append(bool(marked) and all(marked))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(MARK)
        return [1.0, 0.5]

    def evaluate(model: nn.Module, batches: Any, *_args: Any, **_options: Any) -> float:
        evaluated.append(0)
        for x, labels in batches:
            notes.asks(model, x)
            evaluated[-1] += len(labels)
        return len(evaluated) / 100

    mine: dict[str, Any] = {"train_classifier": train_classifier, "evaluate": evaluate}
    before = {name: world[name] for name in mine if name in world}
    world.update(mine)

    def called(_module: nn.Module, _args: Any) -> None:
        notes.calls += 1

    hook = register_module_forward_pre_hook(called)
    try:
        result = efficiency(data_efficiency, sizes, steps)
    finally:
        world.update(before)
        hook.remove()
    return {
        "trained": trained,
        "further": further,
        "evaluated": evaluated,
        "result": result,
        "runs": notes.told(),
        "options": options,
        "calls": notes.calls,
    }
