"""Pictures of a special kind: grids of curves, points on a sphere, images, tables of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from course_utils.notebook.palette import EDGE, GREY, GUIDE, PADDING, PADDING_INK
from course_utils.notebook.picture import Picture, array, styled

MARKERS = "osD^vPX*"


@styled
def curve_grid(
    x: Any,
    panels: Mapping[str, Mapping[str, Any]],
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    *,
    alt: str,
    columns: int = 4,
) -> Picture:
    """Small panels of lines over a common x, all on one scale: {name of the panel: {label: y}}."""
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(2.4 * columns + 0.6, 1.9 * rows + 0.7), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, ys) in zip(grid.flat, panels.items(), strict=False):
        axes.grid(True)
        axes.set_title(name)
        for i, (label, y) in enumerate(ys.items()):
            axes.plot(array(x), array(y), label=label, linestyle=("-", "--", "-.", ":")[i % 4])
    for axes in grid.flat[max(len(panels) - columns, 0) : len(panels)]:
        axes.tick_params(labelbottom=True)  # the lowest panel of a column, also where the last row is not full
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside right upper")  # inside, it covers curves
    figure.supxlabel(xlabel)
    figure.supylabel(ylabel)
    figure.suptitle(title)
    return Picture(figure, alt)


@styled
def sphere(
    points: Mapping[str, Any], radius: float, normal: Sequence[float], title: str = "", *, alt: str, reach: float = 3.0
) -> Picture:
    """Clouds of points [n, 3], a sphere round the origin, and the plane through the origin with this normal."""
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes: Any = figure.add_subplot(projection="3d")
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
    ball = np.stack([np.cos(around) * np.sin(up), np.sin(around) * np.sin(up), np.cos(up)])
    axes.plot_wireframe(*(radius * ball), color=EDGE, linewidth=0.4)
    basis = np.linalg.svd(np.array([normal], dtype=float))[2][1:]  # two directions inside the plane
    a, b = np.meshgrid(np.linspace(-reach, reach, 2), np.linspace(-reach, reach, 2))
    axes.plot_surface(*(basis[0][:, None, None] * a + basis[1][:, None, None] * b), color=GUIDE, alpha=0.2)
    for i, (label, cloud) in enumerate(points.items()):
        axes.scatter(*array(cloud).T, s=14, marker=MARKERS[i % len(MARKERS)], label=label, depthshade=False)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach), title=title)
    axes.set(xlabel="feature 1", ylabel="feature 2", zlabel="feature 3")
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=18, azim=15)
    axes.legend(loc="upper left")
    return Picture(figure, alt)


@styled
def images(
    panels: Mapping[str, Any],
    title: str = "",
    *,
    alt: str,
    patch: int | None = None,
    over: Mapping[str, Any] | None = None,
    columns: int = 8,
    vmin: float | None = 0.0,
    vmax: float | None = 1.0,
) -> Picture:
    """Images [H, W] or [C, H, W], each under its name, on one grey scale (three channels in colour).

    `patch` draws the borders of the patches; `over` lays maps [rows, cols], by the same names, over the images.
    """
    pictures = {name: array(panel) for name, panel in panels.items()}
    vmin = min(p.min() for p in pictures.values()) if vmin is None else vmin
    vmax = max(p.max() for p in pictures.values()) if vmax is None else vmax
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    figure = Figure(figsize=(min(1.45 * columns + 0.3, 12.0), 1.65 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (name, picture) in zip(grid.flat, pictures.items(), strict=False):
        picture = picture if picture.ndim == 2 else picture[0] if len(picture) == 1 else np.moveaxis(picture, 0, -1)
        height, width = picture.shape[:2]
        extent = (0, width, height, 0)
        axes.imshow(picture, cmap=GREY, vmin=vmin, vmax=vmax, extent=extent)
        if over is not None:
            axes.imshow(array(over[name]), alpha=0.6, extent=extent)
        if patch is not None:
            axes.vlines(np.arange(0, width + 1, patch), 0, height, color=GUIDE, linewidth=0.8)
            axes.hlines(np.arange(0, height + 1, patch), 0, width, color=GUIDE, linewidth=0.8)
        axes.set_title(name, fontsize=11)
    figure.suptitle(title)
    return Picture(figure, alt)


@styled
def token_tables(panels: Mapping[str, tuple[Sequence[Sequence[str]], Any]], title: str = "", *, alt: str) -> Picture:
    """Tables of words, one below the other: {name: (rows of words, which of them are padding)}; padding is grey."""
    longest = max(len(row) for rows, _ in panels.values() for row in rows)
    heights = [len(rows) for rows, _ in panels.values()]
    size = (min(1.2 + 0.85 * longest, 12.0), 0.36 * sum(heights) + 0.45 * len(panels) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, (rows, padding)) in zip(grid, panels.items(), strict=True):
        axes.set(xlim=(0, longest), ylim=(len(rows), 0), yticks=[], xticks=[])
        axes.set_title(name, loc="left")
        axes.spines[:].set_visible(False)
        for (i, j), padded in np.ndenumerate(array(padding) > 0):
            axes.fill_between([j, j + 1], i, i + 1, facecolor=PADDING if padded else "none", edgecolor=EDGE)
            colour = PADDING_INK if padded else "black"
            axes.text(j + 0.5, i + 0.5, rows[i][j], ha="center", va="center", fontsize=9, color=colour)
    figure.suptitle(title)
    return Picture(figure, alt)
