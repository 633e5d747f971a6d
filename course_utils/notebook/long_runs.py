"""The loop that long training runs share: looks, best model, early stopping, a budget, going on after a stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from course_utils.notebook.runs import TrainingRun
from course_utils.notebook.training import EarlyStop, progress, save_checkpoint

FALL = 0.25  # the last part of a run, over which the rate falls to zero


@dataclass(frozen=True)
class LongPlan:
    """How long to train, how often to look, and after how many looks without a better score to stop.

    With `minutes` in the place of `steps`, the number of steps is settled when three quarters of the time have passed.
    """

    every: int
    patience: int
    steps: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("a plan has either a number of steps or a number of minutes")


def share_of_rate(step: int, steps: int | None) -> float:
    """1 until the fall begins, then down in a line to almost 0 at the last of `steps`; 1 while that is not known."""
    if steps is None:
        return 1.0
    begin = math.floor((1 - FALL) * steps)
    return min(1.0, (steps + 1 - step) / (steps + 1 - begin))


def train_long(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    update: Callable[[Any], float],
    batches: Callable[[int], Iterator[Any]],
    rate: Callable[[int], float],
    look: Callable[[], Mapping[str, float]],
    run: TrainingRun,
    plan: LongPlan,
) -> int:
    """Train until the plan or the scores say stop; the model gets the best weights. Returns the steps made in all.

    `update(batch)` makes one step and returns its loss; `batches(n)` gives the batches from number n on; `rate(step)`
    is the learning rate before the fall; the first score of `look()` is the one to be best in, the higher the better.
    A stopped run goes on from its last look when this is called again; a finished one, where the plan asks for more,
    from the last look before its rate fell.
    """
    if run.finished and _asks_for_more(plan, run):
        run.reopen()
    stop = EarlyStop(plan.patience, higher=True)
    made, clock = run.resume(model, optimizer), _Clock(run.facts)
    over = run.finished or any([stop(score) for score in run.curves.values.get("score", [])])
    losses: list[float] = []
    bar = progress(batches(made), total=plan.steps, label="training")
    for batch in bar if not over else ():
        end = plan.steps or _end(run.facts, made, clock, plan.minutes or 0.0)
        made += 1
        if end is not None and made == math.floor((1 - FALL) * end) + 1:
            run.mark()
        for group in optimizer.param_groups:
            group["lr"] = rate(made) * share_of_rate(made, end)
        losses.append(update(batch))
        bar.show(loss=losses[-1], rate=optimizer.param_groups[0]["lr"])
        over = made == end or (plan.minutes is not None and clock.minutes >= plan.minutes)
        if over or made % plan.every == 0:
            scores = look()
            score = next(iter(scores.values()))
            over = stop(score) or over
            clock.note(run.facts)
            run.curves.add(made, loss=sum(losses) / len(losses), score=score, **scores, **run.facts)
            losses.clear()
            save_checkpoint(run.latest, model, optimizer, made)
            run.look(score, model)
            told = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
            time_told = f"{clock.minutes:.1f} minutes, {run.facts['processor_seconds']:.0f} s of processor"
            print(f"step {made}: loss {run.curves.values['loss'][-1]:.3f}, {told}; {time_told}", flush=True)
        if over:
            break
    run.finish(model)
    return made


def _asks_for_more(plan: LongPlan, run: TrainingRun) -> bool:
    """Whether a finished run is shorter than the plan by more than the rounding of its end."""
    made = run.curves.steps.get("loss", [0])[-1]
    return made < (plan.steps or 0) or run.facts.get("seconds", 0.0) < 54 * (plan.minutes or 0.0)


def _end(facts: dict[str, float], made: int, clock: _Clock, minutes: float) -> int | None:
    """The last step of a run that has a time: settled once, late enough that the run's speed is known."""
    if "last_step" not in facts and clock.minutes >= (1 - FALL) * minutes:
        facts["last_step"] = math.ceil((made + 1) / (1 - FALL))  # the fall begins with the next step or the one after
    return int(facts["last_step"]) if "last_step" in facts else None


class _Clock:
    """The time of a run, that of its earlier calls included."""

    def __init__(self, facts: Mapping[str, float]) -> None:
        self.begun = time.monotonic() - facts.get("seconds", 0.0)
        self.processor = time.process_time() - facts.get("processor_seconds", 0.0)

    @property
    def minutes(self) -> float:
        """How long it has run by now."""
        return (time.monotonic() - self.begun) / 60

    def note(self, facts: dict[str, float]) -> None:
        """Write down the time by the clock on the wall and by the processor."""
        facts["seconds"], facts["processor_seconds"] = self.minutes * 60, time.process_time() - self.processor
