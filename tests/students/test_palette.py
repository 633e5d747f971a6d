"""Colours: one module has them all, and they can be told apart and read by everyone, in both themes."""

from __future__ import annotations

import ast
import itertools
import re

import matplotlib
import numpy as np
import pytest

from autograder.places import COURSE_UTILS, SOLUTIONS
from course_utils import plots
from course_utils.notebook import palette
from course_utils.notebook.palette import contrast, ink, luminance

WHITE, DARK_THEME = (1.0, 1.0, 1.0), (0x11 / 255,) * 3  # the grounds of JupyterLab's two themes
APART = 15  # in CIELAB; about 2 is the least that an eye sees
# Machado, Oliveira and Fernandes (2009), severity 1: what is left of linear red, green and blue
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.412456, 0.357576, 0.180438], [0.212673, 0.715152, 0.072175], [0.019334, 0.119192, 0.950304]])


def components(colour: str) -> list[float]:
    """#0072B2 as red, green and blue between 0 and 1."""
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def seen(rgb: list[float], vision: str) -> np.ndarray:
    """Where a colour lies in CIELAB for someone with this vision."""
    given = np.array(rgb[:3])
    linear = np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(VISION[vision]) @ linear, 0, 1) / (0.95047, 1.0, 1.08883)
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def least_distance(colours: list[str], vision: str) -> float:
    places = [seen(components(colour), vision) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(places, 2))


@pytest.mark.parametrize("vision", VISION)
def test_any_two_series_can_be_told_apart(vision: str) -> None:
    assert least_distance(palette.SERIES, vision) > APART


def test_the_measure_refuses_a_palette_that_is_not_made_for_it() -> None:
    usual = [matplotlib.colors.to_hex(colour) for colour in matplotlib.colormaps["tab10"].colors[:7]]
    assert least_distance(usual, "usual") > APART > least_distance(usual, "deuteranopia")


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("name", [palette.HEAT, palette.GREY])
def test_more_is_lighter_on_every_map(name: str, vision: str) -> None:
    colours = matplotlib.colormaps[name](np.linspace(0, 1, 24))
    assert (np.diff([seen(colour, vision)[0] for colour in colours]) > 0).all()


def test_the_first_series_and_all_words_stand_out_from_the_paper() -> None:
    assert all(contrast(components(colour), WHITE) > 3 for colour in palette.SERIES[:5])
    assert contrast(components(palette.PADDING_INK), components(palette.PADDING)) > 4.5
    for colour in matplotlib.colormaps[palette.HEAT](np.linspace(0, 1, 24)):
        assert contrast(colour, matplotlib.colors.to_rgb(ink(colour))) > 4.5


@pytest.mark.parametrize("status", palette.STATUS)
def test_a_badge_can_be_read_and_its_edge_seen_in_both_themes(status) -> None:
    colour = components(palette.STATUS[status])
    assert contrast(colour, WHITE) > 4.5 and contrast(colour, DARK_THEME) > 3


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast(WHITE, (0, 0, 0)) == pytest.approx(21) and contrast(WHITE, WHITE) == 1
    assert contrast(components("#767676"), WHITE) == pytest.approx(4.54, abs=0.01)
    assert luminance(components("#ff0000")) == pytest.approx(0.2126)


def test_no_other_module_has_colours_of_its_own() -> None:
    files = [path for path in COURSE_UTILS.rglob("*.py") if path.name != "palette.py"]
    files += SOLUTIONS.glob("hw*.py")
    named = set(matplotlib.colors.get_named_colors_mapping()) - {"black", "white", "none"}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg in {"color", "c", "facecolor", "edgecolor", "cmap"}:
                words = {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)}
                assert not words & named and node.arg != "cmap" or not words, f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = set(re.findall(r"#[0-9a-fA-F]{3,8}\b", node.value)) - {"#fff"}
                assert not found or path.parent == SOLUTIONS, f"{path.name}:{node.lineno} has {found}"


def test_a_picture_brings_its_own_paper_into_a_dark_theme() -> None:
    import io

    picture = plots.curves([0, 1], {"a": [0, 1]}, "x", "y", "title", alt="a line")
    pixels = matplotlib.image.imread(io.BytesIO(picture.png))
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    assert (edge == 1).all()  # white, and opaque
