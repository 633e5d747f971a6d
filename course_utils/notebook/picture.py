"""A figure that carries its description wherever it is shown: a notebook, an exported page."""

from __future__ import annotations

import base64
import functools
import io
import sys
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, ParamSpec

import numpy as np
from cycler import cycler
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.notebook.palette import HEAT, SERIES

P = ParamSpec("P")

DPI = 180  # rendered at twice the size that it is shown at
SHOWN_DPI = 90

STYLE: Any = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.alpha": 0.3,
    "lines.linewidth": 2.0,
    "figure.facecolor": "white",
    "image.cmap": HEAT,
    "axes.prop_cycle": cycler(color=SERIES),
}

Bundle = dict[str, Any]  # by MIME type


class Picture:
    """A drawn figure and its alt text. It shows itself once in the cell that draws it."""

    def __init__(self, figure: Figure, alt: str) -> None:
        if not alt.strip():
            raise ValueError("a picture needs alt text: one sentence that says what it shows")
        self.alt = " ".join(alt.split())
        self.size = tuple(round(inches * SHOWN_DPI) for inches in figure.get_size_inches())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        self.png = buffer.getvalue()
        self._shown_in: int | None = None
        self._show()

    def _show(self) -> None:
        """Display the picture when a notebook is running; elsewhere do nothing."""
        shell = _shell()
        if shell is not None:
            from IPython.display import display

            data, metadata = self._repr_mimebundle_()
            display(data, metadata=metadata, raw=True)
            self._shown_in = shell.execution_count

    def _ipython_display_(self) -> None:
        """As the last value of a cell: show, unless that cell has shown the picture already."""
        shell = _shell()
        if shell is None or self._shown_in != shell.execution_count:
            self._show()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[Bundle, Bundle]:
        encoded = base64.b64encode(self.png).decode()
        data = {"text/plain": repr(self), "text/html": self._repr_html_(), "image/png": encoded}
        return data, {"image/png": {"alt": self.alt, "width": self.size[0], "height": self.size[1]}}

    def _repr_html_(self) -> str:
        source = f"data:image/png;base64,{base64.b64encode(self.png).decode()}"
        style = "max-width:100%;height:auto"
        return f"<img alt='{escape(self.alt)}' width={self.size[0]} style='{style}' src='{source}'>"

    def __repr__(self) -> str:
        return f"[picture: {self.alt}]"


def _shell() -> Any:
    """The running IPython shell, or None; does not import IPython where nobody has."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def styled(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """Draw with our settings, and leave matplotlib's as they were."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Picture:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def legend(axes: Axes, series: Mapping[str, Any]) -> None:
    """A legend, where anything has a name."""
    if any(series):
        axes.legend()


def array(values: Any) -> np.ndarray:
    """Tensors, arrays and lists of either as a numpy array, without their gradients."""
    torch = sys.modules.get("torch")  # where nobody has imported it, there is no tensor
    if torch is not None and isinstance(values, torch.Tensor):
        return values.detach().cpu().to(torch.float64).numpy()
    if isinstance(values, (list, tuple)):
        return np.array([array(value) for value in values])
    return np.asarray(values, dtype=np.float64)
