"""Pictures: drawn without pyplot, shown once, and never without a description."""

import base64
import subprocess
import sys

import matplotlib
import nbformat
import pytest
import torch
from bs4 import BeautifulSoup
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from course_utils import plots

W = torch.eye(3, requires_grad=True)
DRAWN = {
    "heatmap": lambda alt: plots.heatmap(W, ["a", "b", "c"], ["longer", "labels", "here"], "Weights", alt=alt),
    "heatmaps": lambda alt: plots.heatmaps({"one": W, "two": 2 * W}, title="Row", alt=alt),
    "zeros left white, labels for each panel": lambda alt: plots.heatmaps(
        {"one": W, "two": 2 * W}, xlabel=["a", "b"], ylabel=["c", "d"], numbers=True, blank_zeros=True, alt=alt
    ),
    "curves on each other": lambda alt: plots.curves([1, 2], {"a": [1, 2], "b": [1, 2]}, overlap=True, alt=alt),
    "bars with numbers": lambda alt: plots.bars(["x", "y"], [1, 2], alt=alt, numbers=".3f"),
    "curves": lambda alt: plots.curves(range(1, 4), {"a": W[0], "b": [torch.tensor(1.0)] * 3}, alt=alt, logx=True),
    "bars": lambda alt: plots.bars(["x", "y"], {"u": [1, 2], "v": [3, 4]}, alt=alt),
    "single bars": lambda alt: plots.bars(["x", "y"], torch.tensor([1, 2]), alt=alt, logy=True),
    "scatter": lambda alt: plots.scatter_with_curve([1, 2], [3, 4], [1, 2], {"fit": [3, 4]}, alt=alt),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_every_plot_is_a_png_that_carries_its_alt_text_escaped(kind):
    picture = DRAWN[kind]('weights of "<it>"')
    assert picture.png.startswith(b"\x89PNG")
    data, metadata = picture._repr_mimebundle_()
    assert "alt='weights of &quot;&lt;it&gt;&quot;'" in data["text/html"]
    assert base64.b64decode(data["image/png"]) == picture.png
    assert metadata["image/png"]["alt"] == 'weights of "<it>"'
    assert repr(picture) == '[picture: weights of "<it>"]'


@pytest.mark.parametrize("kind", DRAWN)
def test_a_plot_without_alt_text_is_refused(kind):
    with pytest.raises(ValueError, match="alt text"):
        DRAWN[kind]("  ")


def test_drawing_leaves_matplotlibs_settings_alone():
    before = dict(matplotlib.rcParams)
    DRAWN["curves"]("x")
    assert dict(matplotlib.rcParams) == before


def test_drawing_works_without_ipython():
    program = (
        "import sys; sys.modules['IPython'] = None\n"
        "from course_utils import plots\nprint(plots.heatmap([[1, 0], [0, 1]], alt='identity'))"
    )
    found = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert found.stdout == "[picture: identity]\n", found.stderr


def test_a_notebook_shows_a_picture_once_in_its_cell_and_its_page_has_the_alt_text():
    cells = [
        "from course_utils import after, plots",
        "picture = plots.heatmap([[1, 0], [0, 1]], alt='the <identity>')\npicture",
        "with after('q1_1'):\n    plots.heatmap([[1, 0], [0, 1]], alt='inside')",
        "picture",
        "with after('q1_1'):\n    plots.heatmap(softargmax([1, 2]), alt='waiting')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert [len(found) for found in outputs] == [0, 1, 1, 1, 1]
    assert outputs[1][0].metadata["image/png"]["alt"] == "the <identity>"
    assert outputs[4][0].text == "This picture appears once q1_1 is answered.\n"
    page, _ = HTMLExporter().from_notebook_node(notebook)
    alts = [image.get("alt") for image in BeautifulSoup(page, "html.parser").find_all("img")]
    assert alts == ["the <identity>", "inside", "the <identity>"]


def test_a_few_points_on_a_logarithmic_axis_are_named_as_they_are():
    axes = matplotlib.figure.Figure().subplots()
    axes.set(xscale="log")
    plots._tick_the_points(axes, torch.tensor([4, 8, 16, 32]).numpy())
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8", "16", "32"]
    assert not axes.get_xticklabels(minor=True)


def test_an_exact_zero_is_told_from_a_small_number():
    axes = matplotlib.figure.Figure().subplots()
    plots._draw_matrix(axes, torch.tensor([[0.0, 0.004, 0.5]]).numpy(), None, None, True, 0.0, 1.0, blank_zeros=True)
    assert [text.get_text() for text in axes.texts] == ["0", "0.00", "0.50"]
    assert axes.images[0].get_array().mask.tolist() == [[True, False, False]]
