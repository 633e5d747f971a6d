"""A tiny homework for tests that need one to break."""

from __future__ import annotations

from pathlib import Path

import pytest

SOURCE = '''\
# %% [markdown]
# # A tiny homework

# %%
import torch

# %% [markdown] question="q9_1"
# ## 9.1 Twice
# Return twice the number.

# %% question="q9_1" points=60 minutes=5 difficulty=1
def twice(x):
    """Twice x."""
    # BEGIN SOLUTION
    return 2 * x
    # END SOLUTION

# %% [markdown] help="q9_1"
# symptom: it is too small
#
# hint: add
#
# pseudo-code: add the number to itself

# %% [markdown] question="q9_2"
# ## 9.2 Half
# Return half the number.

# %% question="q9_2" points=40 minutes=5 difficulty=1
def half(x):
    """Half of x."""
    # BEGIN SOLUTION
    return x / 2
    # END SOLUTION

# %% [markdown] help="q9_2"
# symptom: it is too large
#
# hint: divide
#
# pseudo-code: divide by two
'''

CHECK = '''\
from course_utils.checking import same


def test_{name}_of_four({name}):
    """{name}(4) is {value}."""
    same({name}(4.0), {value}, "the result")


def probe_{name}({name}):
    return {name}(3.0)
'''

HIDDEN = '''\
from course_utils.checking import same


def test_{name}_of_anything({name}, reference, rng):
    """{name} works for any number."""
    import torch

    x = torch.randn(3, generator=rng, dtype=torch.float64)
    same({name}(x), reference.{name}(x), "the result")
'''


def _catalogue(name: str, bodies: list[str]) -> str:
    return "\n".join(
        f'# %% case-{i}\n"""Not {body}."""\ndef {name}(x):\n    return {body}\n' for i, body in enumerate(bodies)
    )


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A course folder with one tiny homework and its suites, all in order."""
    suite = tmp_path / "autograder" / "suites" / "hw9_tiny"
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "hw9_tiny.py").write_text(SOURCE)
    for folder in ("public", "hidden", "mistakes", "variants"):
        (suite / folder).mkdir(parents=True)
    for question, name, value in (("q9_1", "twice", 8.0), ("q9_2", "half", 2.0)):
        (suite / "public" / f"test_{question}.py").write_text("\n" + CHECK.format(name=name, value=value))
        (suite / "hidden" / f"test_{question}.py").write_text("\n" + HIDDEN.format(name=name))
        wrong = ["x * 3", "x + 2", "x - 1", "-x"]
        right = ["x + x", "2.0 * x", "x * 2"] if name == "twice" else ["0.5 * x", "x * 0.5", "x - x / 2"]
        (suite / "mistakes" / f"{question}.py").write_text(_catalogue(name, wrong))
        (suite / "variants" / f"{question}.py").write_text(_catalogue(name, right))
    return tmp_path
