"""Rules for the page that students read: how it opens and closes, headings in order, cells of a screen, alt texts.

The build tells what would be better, with its place. It refuses a homework that breaks one where the course asks for
that (`page_rules = "refuse"`), drafts aside; elsewhere it warns.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from autograder.builder.contents import contents_problems, headings
from autograder.builder.notebooks import with_badge
from autograder.errors import Problem
from autograder.homework import BEGIN, END, Homework, Question, question_of
from autograder.percent import PercentCell
from autograder.places import THE_COURSE
from autograder.requirements import requirement_problems, unmarked_problems

CODE_LINES = 46  # at 1440 x 900 JupyterLab shows 779 pixels of a notebook: 17 a line of code
TEXT_LINES = 36  # and some 20 a line of text with the space around it
LINE = 110  # characters in a line of text there
ABILITIES, NEEDS = "**When you are done, you will be able to**", "**What you need**"
CLOSING, GOODBYE = "What to read next", "Before you hand in"
LEAST_ABILITIES, LEAST_LINKS, LEAST_ALT = 5, 6, 30
PICTURE = re.compile(r"!\[\s*\]\(|<img(?![^>]*\balt=['\"][^'\"])")
BARE_PLOT = re.compile(r"\bplt\.(plot|show|imshow|figure|subplots)\b")
SOLUTION = re.compile(rf"# {BEGIN}.*?# {END}", re.DOTALL)
SAYS_WHAT = re.compile(r"\bWrite\b|^- `", re.MULTILINE)


def page_problems(homework: Homework) -> Iterator[Problem]:
    """Everything that a reader of the notebook would miss or stumble over."""
    yield from contents_problems(homework)
    yield from _frame_problems(homework)
    yield from _heading_problems(homework)
    for cell in homework.cells:
        yield from _length_problems(homework, cell)
        yield from _picture_problems(homework, cell)
    for question in homework.questions:
        yield from _statement_problems(homework, question)
    yield from kept_problems(homework)


def kept_problems(homework: Homework) -> Iterator[Problem]:
    """What the marks of requirements and the checks that keep them do not agree on."""
    public, hidden = ({q: file(q) for q in homework.asked} for file in (homework.public_file, homework.hidden_file))
    yield from requirement_problems(homework.source, homework.asked, public, hidden)


def sentence_problems(homework: Homework) -> list[Problem]:
    """Sentences that ask for something and bear no mark; refused where the course says so, else counted."""
    return list(unmarked_problems(homework.source, homework.asked))


def screen_lines(text: str) -> int:
    """About how many lines a text takes on the page, its folded parts closed."""
    lines = 0.0
    for block in re.split(r"\n\s*\n", re.sub(r"<details>.*?</details>", "folded", text, flags=re.DOTALL)):
        if block.startswith(("|", "```")):
            parts = block.split("\n")
        else:
            parts = re.split(r"\n(?=- |\d+\. )", block)
        lines += 0.7 + sum(math.ceil(len(re.sub(r"\]\([^)]*\)", "]", part)) / LINE) for part in parts)
    return round(lines)


def _frame_problems(homework: Homework) -> Iterator[Problem]:
    """It opens with what one will be able to do, then the contents; it closes with what to read, and a reminder."""
    texts = [cell for cell in homework.cells if cell.kind == "markdown"]
    if not texts:
        yield Problem(homework.source, 1, "no text in it.", "Begin with a `# %% [markdown]` cell: title and abilities.")
        return
    first, last = texts[0], texts[-1]
    _, _, abilities = first.source.partition(ABILITIES)
    listed = abilities.count("\n- ")
    if listed < LEAST_ABILITIES:
        what = f"the page opens with {listed} abilities, fewer than {LEAST_ABILITIES}."
        yield Problem(homework.source, first.line, what, f"List them below `{ABILITIES}`, each after `- `.")
    if NEEDS not in abilities:
        what = "the page does not say what one needs to know and have."
        yield Problem(homework.source, first.line, what, f"Write `{NEEDS}: ...` below the abilities.")
    if not first.metadata.get("summary"):
        what = "the homework has no summary for the table in README.md."
        yield Problem(homework.source, first.line, what, 'Give its first cell one: `summary="half a line"`.')
    if not any(cell.metadata.get("contents") for cell in texts[1:2]):
        what = "the contents do not follow the opening."
        yield Problem(homework.source, first.line, what, "Put a `# %% [markdown] contents=true` cell below it.")
    if THE_COURSE.card and not any(cell.metadata.get("card") for cell in texts):
        what = "the convention card is nowhere."
        yield Problem(homework.source, first.line, what, "Put a `# %% [markdown] card=true` cell near the beginning.")
    if not last.source.startswith(f"## {CLOSING}\n"):
        what = f"the last text is not `## {CLOSING}`."
        yield Problem(homework.source, last.line, what, "End the page with it.")
        return
    links = len(re.findall(r"\]\(https://[^)\s]+\)", last.source))
    if links < LEAST_LINKS:
        what = f"`{CLOSING}` has {links} links, fewer than {LEAST_LINKS}."
        yield Problem(homework.source, last.line, what, "Name the papers and books as `[*title*](https://...)`.")
    if GOODBYE not in last.source:
        what = "nobody is told to run everything once more."
        remedy = f"End the last text with `{GOODBYE}, restart the kernel, run everything and look at the checks.`"
        yield Problem(homework.source, last.line, what, remedy)


def _heading_problems(homework: Homework) -> Iterator[Problem]:
    """One title, first; below it no level is left out."""
    above = 0
    for heading in headings(homework):
        if (heading.level == 1) != (above == 0):
            what = f"the heading {heading.text!r} is of level {heading.level}."
            yield Problem(homework.source, heading.line, what, "Let the title, and it alone, be the first `#` heading.")
        elif heading.level > above + 1:
            what = f"the heading {heading.text!r} leaves out a level, from {above} to {heading.level}."
            yield Problem(homework.source, heading.line, what, f"Write it with `{'#' * (above + 1)}`.")
        above = heading.level


def _length_problems(homework: Homework, cell: PercentCell) -> Iterator[Problem]:
    """No cell is longer than a screen; what is given is folded away, and so is help."""
    if {"given", "help", "card", "contents"} & cell.metadata.keys():
        return
    if cell.kind == "code":
        lines, most = SOLUTION.sub("stub", cell.source).count("\n") + 1, CODE_LINES
    else:
        asked = next((asked for asked in homework.graded if asked.id == question_of(cell)), None)
        text = cell.source.partition(BEGIN)[0]
        lines, most = screen_lines(with_badge(text, asked) if asked else text), TEXT_LINES
    if lines > most:
        what = f"the cell takes {lines} lines, more than the {most} of a screen."
        yield Problem(homework.source, cell.line, what, "Split it in two.")


def _picture_problems(homework: Homework, cell: PercentCell) -> Iterator[Problem]:
    """Every picture says in words what it shows."""
    if cell.kind == "markdown":
        if found := PICTURE.search(cell.source):
            line = cell.line + 1 + cell.source[: found.start()].count("\n")
            yield Problem(homework.source, line, "a picture has no alt text.", "Write `![what it shows](...)`.")
        return
    for call in (node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "plots":
            alt = next((ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "alt"), "")
            if len(alt) <= LEAST_ALT:
                what = f"`{ast.unparse(call.func)}` has no telling alt text."
                line = cell.line + call.lineno
                yield Problem(homework.source, line, what, "Say what the picture shows: `alt=...`, a sentence.")
    if found := BARE_PLOT.search(cell.source):
        line = cell.line + 1 + cell.source[: found.start()].count("\n")
        what = f"`{found[0]}` draws a picture without alt text."
        yield Problem(homework.source, line, what, "Draw with course_utils.plots.")


def _statement_problems(homework: Homework, question: Question) -> Iterator[Problem]:
    """Text, answer, help, in this order and nothing graded between; the text names everything that is to be written."""
    cells = list(homework.cells)
    answer = next(i for i, cell in enumerate(cells) if cell.line == question.line)
    text = next((i for i, cell in enumerate(cells) if cell.kind == "markdown" and _asks(cell, question)), None)
    if text is None:
        return  # told where the source is read
    between = [cell for cell in cells[text + 1 : answer] if question_of(cell) and "help" not in cell.metadata]
    if text > answer or between:
        what = f"the text of {question.id} does not stand right above its answer."
        yield Problem(homework.source, cells[text].line, what, "Move it there.")
        return
    written = "\n".join(cell.source for cell in cells[text:answer] if cell.kind == "markdown")
    if not SAYS_WHAT.search(written):
        what = f"the text of {question.id} does not say what to write."
        yield Problem(homework.source, cells[text].line, what, "Say it: ``Write `name(...)` ...``.")
    for name in question.names:
        if f"`{name}" not in written:
            what = f"the text of {question.id} does not name `{name}`, which its answer defines."
            yield Problem(homework.source, cells[text].line, what, "Name it with its arguments in backticks.")
    below = cells[answer + 1] if answer + 1 < len(cells) else None
    if any(cell.metadata.get("help") == question.id for cell in cells) and (
        below is None or below.metadata.get("help") != question.id
    ):
        what = f"the help of {question.id} does not stand right below its answer."
        yield Problem(homework.source, question.line, what, "Move it there.")


def _asks(cell: PercentCell, question: Question) -> bool:
    return cell.metadata.get("question") == question.id
