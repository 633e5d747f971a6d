"""Every colour of the course, in one place: for each kind of colour vision, on white paper and in a dark theme."""

from __future__ import annotations

from collections.abc import Sequence

from course_utils.explain.outcomes import Status

# Okabe and Ito (2008), the dark ones first; without their yellow, which nobody sees on white
SERIES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9"]
GUIDE = "#E69F00"  # borders and planes that guide the eye
POINTS = "#555555"  # data that a curve goes through
EDGE = "#999999"
PADDING, PADDING_INK = "#D0D0D0", "#555555"

BOXES = {  # of a diagram, by what they hold
    "data": "#F2F2F2", "layer": "#DCEBF5", "attention": "#FBE6D6", "norm": "#DDF2EA", "output": "#F6E6EF",
}  # fmt: skip

HEAT, GREY = "viridis", "gray"  # maps from dark to light

STATUS: dict[Status, str] = {
    "passed": "#1a7f37",
    "failed": "#9a5b00",
    "error": "#c0392b",
    "out of time": "#616b76",
    "not answered": "#616b76",
}


def luminance(rgb: Sequence[float]) -> float:
    """The relative luminance of red, green and blue between 0 and 1 (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """The contrast of two colours, from 1 (none) to 21 (black and white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def ink(ground: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on this ground."""
    return "black" if contrast(ground, (0, 0, 0)) >= contrast(ground, (1, 1, 1)) else "white"
