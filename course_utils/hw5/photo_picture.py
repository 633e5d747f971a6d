"""A photograph, and over copies of it where a model looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from course_utils.notebook.picture import Picture, array, styled


@styled
def photo_with_looks(photo: Any, looks: Mapping[str, Any], title: str = "", *, alt: str) -> Picture:
    """The photograph [3, H, W] in [0, 1], and beside it copies under maps [rows, cols], each under its name."""
    pixels = np.moveaxis(array(photo), 0, -1)  # [H, W, 3]
    extent = (0, pixels.shape[1], pixels.shape[0], 0)
    figure = Figure(figsize=(3.1 * (1 + len(looks)), 3.5), layout="constrained")
    panels: dict[str, Any] = {"the photograph": None, **looks}
    for axes, (name, look) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        axes.set_axis_off()
        axes.imshow(pixels, extent=extent)
        if look is not None:
            axes.imshow(array(look), alpha=0.6, extent=extent)
        axes.set_title(name)
    figure.suptitle(title)
    return Picture(figure, alt)
