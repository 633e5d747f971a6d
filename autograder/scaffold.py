"""The files of a new homework or question: a small worked example, with a TODO wherever an author has to write.

What is written here builds and can be proved as a draft at once; every TODO is told as missing until it is gone.
"""

from __future__ import annotations

import re
from pathlib import Path

from autograder.errors import BadInput
from autograder.homework import NAME, QUESTION_ID, homework_names, question_of, read_homework
from autograder.percent import PercentCell, read_percent
from autograder.places import SOLUTIONS, SUITES, THE_COURSE, shown
from autograder.write import Files, write

CHAPTER = re.compile(r"##? ")


def new_homework(name: str) -> list[Path]:
    """Write `solutions/<name>.py`, a page without questions; raises `BadInput` where its name or number is taken."""
    matched = NAME.fullmatch(name)
    if not matched:
        raise BadInput(f"`{name}` is no name of a homework. Write it as hw7_rope, in small letters.")
    taken = next((other for other in homework_names() if other.startswith(f"hw{matched[1]}_")), None)
    if taken:
        raise BadInput(f"There is already a homework {matched[1]}, {taken}. Nothing is written; choose another number.")
    path = SOLUTIONS / f"{name}.py"
    card = CARD if THE_COURSE.card else ""
    return _write({path: HOMEWORK.format(name=name, number=matched[1], card=card).encode()})


def new_question(
    homework: str, question: str, name: str | None, points: float, minutes: int, difficulty: int
) -> list[Path]:
    """Write a question's cells into the source, and its four files; raises `BadInput` where it is there already."""
    read = read_homework(homework, draft=True)
    number = homework.removeprefix("hw").partition("_")[0]
    matched = QUESTION_ID.fullmatch(question)
    if not matched or matched[1] != number:
        raise BadInput(f"`{question}` is no question of {homework}. Write it as q{number}_{len(read.graded) + 1}.")
    name = name or f"answer_{question.removeprefix('q')}"
    cells = read_percent(read.source)
    if line := next((cell.line for cell in cells if question_of(cell) == question), None):
        raise BadInput(f"{shown(read.source)}:{line}: {question} is there already. Nothing is written.")
    if not name.isidentifier() or name in read.names:
        raise BadInput(f"The answer cannot define `{name}`: give a name that is no other answer's with --name.")
    if difficulty not in range(1, 6) or points <= 0 or minutes <= 0:
        raise BadInput("Points and minutes are positive numbers, and the difficulty is 1, 2, 3, 4 or 5.")
    suite = SUITES / homework
    words = {"question": question, "name": name}
    drawn = {"import": IMPORT[THE_COURSE.rng], "draw": DRAW[THE_COURSE.rng]}
    files: Files = {
        suite / "public" / f"test_{question}.py": _filled(PUBLIC, words),
        suite / "hidden" / f"test_{question}.py": _filled(HIDDEN, words | drawn),
        suite / "mistakes" / f"{question}.py": _filled(MISTAKES, words),
        suite / "variants" / f"{question}.py": _filled(VARIANTS, words),
    }
    numbers = {"points": f"{points:g}", "minutes": str(minutes), "difficulty": str(difficulty)}
    lines = read.source.read_text(encoding="utf-8").split("\n")
    above = _place(cells, question, len(lines) + 1) - 1
    text = _filled(QUESTION, words | numbers).decode().split("\n")
    gap = [""] if above == len(lines) and lines[-1] else []
    changed = "\n".join([*lines[:above], *gap, *text, *lines[above:]])
    return _write(files, {read.source: changed.encode()})


def _write(new: Files, changed: Files | None = None) -> list[Path]:
    """Write new files, and others anew; nothing at all where one of the new ones is there already."""
    there = [shown(path) for path in new if path.exists()]
    if there:
        raise BadInput(f"{' and '.join(there)} is there already. Nothing is written.")
    files = new | (changed or {})
    write(files, [])
    return list(files)


def _place(cells: list[PercentCell], question: str, end: int) -> int:
    """The line above which a question belongs: after the one before it, with all that hangs on that one."""
    asked = [(_number(question_of(cell)), i) for i, cell in enumerate(cells) if question_of(cell)]
    before = [place for place in asked if place[0] < _number(question)]
    if asked and not before:
        return cells[asked[0][1]].line
    start = max(before)[1] + 1 if before else _last_chapter(cells)
    return next((cell.line for cell in cells[start:] if _opens(cell)), end)


def _opens(cell: PercentCell) -> bool:
    """Whether a chapter, a question or the end of the page begins with this cell."""
    return bool(question_of(cell)) or CHAPTER.match(cell.source) is not None or "check_all" in cell.source


def _last_chapter(cells: list[PercentCell]) -> int:
    """Where the last text with a `##` heading stands: what closes a page without questions."""
    chapters = [i for i, cell in enumerate(cells) if cell.kind == "markdown" and CHAPTER.match(cell.source)]
    return chapters[-1] if len(chapters) > 1 else len(cells)


def _number(question: str) -> int:
    return int(question.partition("_")[2])


def _filled(template: str, words: dict[str, str]) -> bytes:
    for key, word in words.items():
        template = template.replace(f"<{key}>", word)
    return template.encode()


HOMEWORK = r"""# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="TODO: half a line for the table in README.md"
# # Homework {number}: TODO a title
#
# TODO: a few sentences that make one want to read on: a question, a picture, what this homework builds.
#
# **When you are done, you will be able to**
#
# - TODO: do something that one can try, such as: derive the factor $1/\sqrt d$ instead of believing it;
# - TODO: a second thing;
# - TODO: a third thing;
# - TODO: a fourth thing;
# - TODO: a fifth thing.
#
# **What you need**: TODO: what one should know, and the homeworks that come before.

# %% [markdown] contents=true
# The table of contents stands here, with the times to read and to work.

# %% [markdown]
# ## How to work
#
# Every question has a text, one answer cell, a check and a ladder of help. Replace the `raise
# NotImplementedError` in the answer cell, run the cell, then run the check below it. The check tries your
# answer on small examples; the grader that computes your points does the same on many more inputs, and
# relies on nothing that is not written in this notebook. The help is folded: first what you might be
# seeing, then a hint, then the steps in words. Opening it costs nothing.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged with
# ours in its place too, so an error costs its points once.

{card}# %%
from course_utils import Grader, seed_everything

seed_everything(0)
grader = Grader("{name}")

# %% [markdown]
# ## Part I. TODO a name
#
# TODO: what the questions of this part have in common.

# %% [markdown]
# ## What to read next
#
# TODO: two or three sentences: where you started, where you are, what comes in the next homework.
#
# - TODO: author (year), [*a paper*](https://arxiv.org/abs/1706.03762): which question it stands behind.
# - TODO: author (year), [*a second one*](https://arxiv.org/abs/1409.0473).
# - TODO: author (year), [*a third one*](https://arxiv.org/abs/1508.04025).
# - TODO: author (year), [*a fourth one*](https://arxiv.org/abs/1911.03584).
# - TODO: author (year), [*a fifth one*](https://arxiv.org/abs/1409.3215).
# - TODO: author (year), [*a book*](https://udlbook.github.io/udlbook/), and the chapter.
#
# Before you hand in, restart the kernel, run everything from top to bottom, and look at the checks once
# more.

# %%
grader.check_all()
"""

CARD = """\
# %% [markdown]
# ## The convention card
#
# The same in every homework.

# %% [markdown] card=true
# The convention card of the course stands here.

"""

QUESTION = r'''# %% [markdown] question="<question>"
# ### TODO: a title in plain words
#
# TODO: what it is and why it matters, a formula, a number worked by hand, and every convention that the suite
# relies on. An example to write over: the *root mean square* of numbers is
# $\sqrt{(x_1^2 + \dots + x_n^2) / n}$. For $1$ and $7$ it is $\sqrt{50 / 2} = 5$.
#
# Write `<name>(numbers)`. It takes a list of floats and returns a float, 0 for an empty list.

# %% question="<question>" points=<points> minutes=<minutes> difficulty=<difficulty>
def <name>(numbers: list[float]) -> float:
    """The root mean square of the numbers, 0 for none."""
    # BEGIN SOLUTION
    # TODO: the reference's answer
    return (sum(x * x for x in numbers) / max(len(numbers), 1)) ** 0.5
    # END SOLUTION


# %% [markdown] help="<question>"
# symptom: TODO: what one sees. For example: the result grows with the length of the list.
#
# hint: TODO: a question that leads on. For example: what does a mean divide by?
#
# pseudo-code: TODO: the steps in words. For example: square every number, take the mean, take its root.
'''

PUBLIC = '''\
# TODO: checks that students get as they stand; the docstring is the sentence that they read
from course_utils.checking.compare import same


def test_a_small_example(<name>):
    """For 1 and 7 the result is 5."""
    same(<name>([1.0, 7.0]), 5.0, "the result for 1 and 7")


# TODO: probes return what was computed on fixed inputs: by it a mistake is recognised
def probe_five_numbers(<name>):
    return <name>([0.5, -1.0, 2.0, 3.0, -4.0])
'''

IMPORT = {"torch": "import torch\n\n", "numpy": ""}
DRAW = {"torch": "torch.randn(count, generator=rng)", "numpy": "rng.normal(size=count)"}

HIDDEN = '''\
# TODO: what the public checks leave open: random inputs, edges, everything that the text promises
<import>from course_utils.checking.compare import same


def test_many_numbers(<name>, reference, rng):
    """Lists of any length have the right result."""
    for count in (1, 2, 17):
        numbers = <draw>.tolist()
        same(<name>(numbers), reference.<name>(numbers), f"the result for {count} numbers")


def test_no_numbers(<name>):
    """An empty list gives 0."""
    same(<name>([]), 0.0, "the result for an empty list")
'''

MISTAKES = '''\
# %% no-root
"""Your result is the mean of the squares: of 1 and 7 it would be 25. Which step is left?"""
# TODO: known wrong answers, at least four: what a good TA would say, then what differs from the reference's answer
replace(" ** 0.5", "")


# %% sum-for-mean
"""Your result grows with the length of the list. What does a mean divide by?"""
replace(" / max(len(numbers), 1)", "")
'''

VARIANTS = '''\
# %% hypot
"""The length of the vector, over the root of the count."""
# TODO: right answers written another way, at least three


def <name>(numbers):
    import math

    return math.hypot(*numbers) / math.sqrt(max(len(numbers), 1))
'''
