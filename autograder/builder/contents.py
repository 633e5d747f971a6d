"""The contents cell of a notebook: how long it takes, and a link to every part and question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.errors import BadSource, Problem
from autograder.homework import Explanation, Homework, Question, prompt_and_answer
from autograder.percent import PercentCell

WORDS_PER_MINUTE = 200
TITLE = "Contents"
PLAIN = re.compile(r"[A-Za-z0-9 .,:;?!'-]+")  # what JupyterLab, nbconvert and Markdown all take as it stands


@dataclass(frozen=True)
class Heading:
    """A heading of the notebook, and the question that it opens, if any."""

    level: int
    text: str
    line: int
    asked: Question | Explanation | None = None


def contents_markdown(homework: Homework) -> str:
    """The cell's text: reading and working time, then a table of parts and questions with their links."""
    if problems := list(contents_problems(homework)):
        raise BadSource(problems)
    listed = _listed(homework)
    first = next((i for i, heading in enumerate(listed) if _below(listed, heading)), 0)
    listed = listed[first:]  # what stands before the first part is near enough
    work = _hours(5 * round(sum(asked.minutes for asked in homework.graded) / 5))
    rows = [_row(heading, _below(listed, heading)) for heading in listed]
    return "\n".join(
        [
            f"## {TITLE}",
            "",
            f"**Time**: about {reading_minutes(homework)} minutes of reading ({WORDS_PER_MINUTE} words a minute, "
            f"without code and folded help), and about {work} of work for all {len(homework.graded)} questions "
            f"({homework.points:g} points).",
            "",
            "| part and question | points | minutes |",
            "|:---|---:|---:|",
            *rows,
        ]
    )


def anchor(heading: str) -> str:
    """The id that JupyterLab and nbconvert give to a heading of plain text."""
    return heading.replace(" ", "-")


def reading_minutes(homework: Homework) -> int:
    """How long the texts take to read, rounded to five minutes."""
    texts = (re.sub(r"<details>.*?</details>", "", _prose(cell), flags=re.DOTALL) for cell in homework.cells)
    words = sum(bool(re.search(r"\w", word)) for text in texts for word in text.split())
    return max(5, 5 * round(words / WORDS_PER_MINUTE / 5))


def _prose(cell: PercentCell) -> str:
    """What students read of a cell without opening or running anything."""
    if cell.kind != "markdown" or {"help", "card", "contents"} & cell.metadata.keys():
        return ""
    return prompt_and_answer(cell.source)[0] if "explain" in cell.metadata else cell.source


def headings(homework: Homework) -> Iterator[Heading]:
    """The headings that students read, in order."""
    asked = {question.id: question for question in homework.graded}
    for cell in homework.cells:
        fenced = False
        question = asked.get(str(cell.metadata.get("question") or cell.metadata.get("explain")))
        for line, text in enumerate(_prose(cell).splitlines(), cell.line + 1):
            fenced ^= text.startswith("```")
            if not fenced and (matched := re.fullmatch(r"(#+) (.*)", text)):
                yield Heading(len(matched[1]), matched[2].strip(), line, question)


def _listed(homework: Homework) -> list[Heading]:
    return [heading for heading in headings(homework) if heading.level in (2, 3)]


def contents_problems(homework: Homework) -> Iterator[Problem]:
    """Headings that a link of the contents would not reach."""
    seen: set[str] = set()
    for heading in _listed(homework):
        if not PLAIN.fullmatch(heading.text):
            what = f"the heading {heading.text!r} has more than plain letters, so the contents cannot link to it."
            yield Problem(homework.source, heading.line, what, "Write it without formulas, code, quotes and brackets.")
        if heading.text in seen:
            what = f"two headings are {heading.text!r}, so a link would reach the first only."
            yield Problem(homework.source, heading.line, what, "Give each heading a text of its own.")
        seen.add(heading.text)


def _below(headings: list[Heading], part: Heading) -> list[Question | Explanation]:
    """The questions that stand under a heading."""
    if part.asked:
        return [part.asked]
    rest = headings[headings.index(part) + 1 :]
    end = next((i for i, heading in enumerate(rest) if heading.level <= part.level), len(rest))
    return [heading.asked for heading in rest[:end] if heading.asked]


def _row(heading: Heading, asked: list[Question | Explanation]) -> str:
    link = f"[{heading.text}](#{anchor(heading.text)})"
    strong = "**" if heading.level == 2 else ""
    points, minutes = sum(one.points for one in asked), sum(one.minutes for one in asked)
    numbers = (f"{strong}{number:g}{strong}" if asked else "" for number in (points, minutes))
    return f"| {strong}{link}{strong} | " + " | ".join(numbers) + " |"


def _hours(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    words = [f"{n} {unit}{'s' * (n > 1)}" for n, unit in ((hours, "hour"), (rest, "minute")) if n]
    return " ".join(words)
