"""The plots of the notebooks: readable sizes, colours for every kind of vision, and always an alt text.

Each function draws, shows the picture in the running cell, and returns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from cycler import cycler
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.picture import COLOURS, STYLE, Picture

MARKERS = "osD^vPX*"
MOST_TICKS = 24  # more labels than this do not fit beside a heat map
MOST_NUMBERS = 80  # cells up to which a heat map carries its numbers


def heatmap(
    weights: Any,
    rows: Sequence[Any] | None = None,
    cols: Sequence[Any] | None = None,
    title: str = "",
    *,
    alt: str,
    xlabel: str = "keys",
    ylabel: str = "queries",
    numbers: bool | None = None,
    vmin: float | None = 0.0,
    vmax: float | None = None,
) -> Picture:
    """A matrix [rows, cols] as colours, such as attention weights; small ones carry their numbers."""
    matrix = _array(weights)
    with _style():
        size = (min(1.8 + 0.45 * matrix.shape[1], 9.0), min(1.4 + 0.4 * matrix.shape[0], 8.0))
        figure = Figure(figsize=(max(size[0], 4.2), max(size[1], 2.6)), layout="constrained")
        axes = figure.subplots()
        image = _draw_matrix(axes, matrix, rows, cols, numbers, vmin, vmax)
        figure.colorbar(image, ax=axes)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        return Picture(figure, alt)


def heatmaps(
    panels: Mapping[str, Any],
    rows: Sequence[Any] | None = None,
    cols: Sequence[Any] | None = None,
    title: str = "",
    *,
    alt: str,
    xlabel: str = "keys",
    ylabel: str = "queries",
    numbers: bool | None = False,
    vmin: float | None = 0.0,
    vmax: float | None = None,
) -> Picture:
    """A row of matrices, each under its name, all on one colour scale."""
    matrices = {name: _array(panel) for name, panel in panels.items()}
    vmin = min(m.min() for m in matrices.values()) if vmin is None else vmin
    vmax = max(m.max() for m in matrices.values()) if vmax is None else vmax
    with _style():
        figure = Figure(figsize=(min(3.1 * len(matrices) + 0.8, 12.0), 3.3), layout="constrained")
        grid = figure.subplots(1, len(matrices), squeeze=False)[0]
        for axes, (name, matrix) in zip(grid, matrices.items(), strict=True):
            image = _draw_matrix(axes, matrix, rows, cols, numbers, vmin, vmax)
            axes.set(title=name, xlabel=xlabel, ylabel=ylabel if axes is grid[0] else "")
        figure.colorbar(image, ax=list(grid))
        figure.suptitle(title)
        return Picture(figure, alt)


def curves(
    x: Any,
    ys: Mapping[str, Any],
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    *,
    alt: str,
    logx: bool = False,
    logy: bool = False,
    marks: bool = False,
) -> Picture:
    """Lines over a common x, one per label; `marks` puts a symbol on every point."""
    with _axes(alt, xlabel, ylabel, title) as (figure, axes, made):
        for i, (label, y) in enumerate(ys.items()):
            axes.plot(_array(x), _array(y), label=label, marker=MARKERS[i % len(MARKERS)] if marks else None,
                      linestyle=("-", "--", "-.", ":")[i % 4])
        axes.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
        _legend(axes, ys)
        made.append(Picture(figure, alt))
    return made[0]


def bars(
    labels: Sequence[Any],
    values: Any,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    *,
    alt: str,
    logy: bool = False,
) -> Picture:
    """Bars over labels: one series, or a mapping from names to series, which stand side by side."""
    series = values if isinstance(values, Mapping) else {"": values}
    width, places = 0.8 / len(series), np.arange(len(labels))
    with _axes(alt, xlabel, ylabel, title) as (figure, axes, made):
        for i, (name, heights) in enumerate(series.items()):
            axes.bar(places + (i - (len(series) - 1) / 2) * width, _array(heights), width, label=name,
                     hatch=("", "//", "..", "xx")[i % 4], edgecolor="white")
        axes.set_xticks(places, [str(label) for label in labels])
        axes.set_yscale("log" if logy else "linear")
        _legend(axes, series)
        made.append(Picture(figure, alt))
    return made[0]


def scatter_with_curve(
    x: Any,
    y: Any,
    curve_x: Any,
    curves: Mapping[str, Any],
    xlabel: str = "x",
    ylabel: str = "y",
    title: str = "",
    *,
    alt: str,
    points: str = "data",
) -> Picture:
    """Points and one or more curves through them, as in a regression."""
    with _axes(alt, xlabel, ylabel, title) as (figure, axes, made):
        axes.scatter(_array(x), _array(y), s=22, color="#555555", alpha=0.7, label=points)
        for i, (label, values) in enumerate(curves.items()):
            axes.plot(_array(curve_x), _array(values), label=label, linestyle=("-", "--", "-.", ":")[i % 4])
        axes.legend()
        made.append(Picture(figure, alt))
    return made[0]


@contextmanager
def _style() -> Iterator[None]:
    with rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        yield


@contextmanager
def _axes(alt: str, xlabel: str, ylabel: str, title: str) -> Iterator[tuple[Figure, Axes, list[Picture]]]:
    with _style():
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.grid(True)
        axes.set_axisbelow(True)
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        yield figure, axes, []


def _draw_matrix(
    axes: Axes,
    matrix: np.ndarray,
    rows: Sequence[Any] | None,
    cols: Sequence[Any] | None,
    numbers: bool | None,
    vmin: float | None,
    vmax: float | None,
) -> Any:
    image = axes.imshow(matrix, vmin=vmin, vmax=vmax, aspect="auto")
    for labels, count, set_ticks in ((rows, matrix.shape[0], axes.set_yticks), (cols, matrix.shape[1], axes.set_xticks)):
        if labels is not None and count <= MOST_TICKS:
            turned = {"rotation": 45, "ha": "right"} if labels is cols and max(map(len, map(str, labels))) > 3 else {}
            set_ticks(range(count), [str(label) for label in labels], **turned)
    if numbers if numbers is not None else matrix.size <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(matrix):
            dark = image.norm(value) < 0.6
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=9, color="white" if dark else "black")
    return image


def _legend(axes: Axes, series: Mapping[str, Any]) -> None:
    if any(series):
        axes.legend()


def _array(values: Any) -> np.ndarray:
    """Tensors, lists and arrays as a numpy array, without their gradients."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().to(torch.float64).numpy()
    return np.asarray([v.item() if isinstance(v, torch.Tensor) else v for v in values]
                      if isinstance(values, (list, tuple)) and values and isinstance(values[0], torch.Tensor)
                      else values, dtype=np.float64)
