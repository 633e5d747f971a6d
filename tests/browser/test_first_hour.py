"""What a student does in the first hour, in the real JupyterLab: run, read, paste, check, be told."""

from __future__ import annotations

import re

from autograder.homework import Homework, without_markers
from course_utils.explain.check_report import LABELS
from course_utils.notebook.palette import STATUS

# questions whose pictures one remembers, where it is not the homework's first; those that they use are answered first
REMEMBERED = {"hw1_attention": "q1_7", "hw2_multihead": "q2_3"}


def with_picture(homework: Homework) -> str:
    """The question to work on: the remembered one, else the first with a picture below its answer."""
    asked = ""
    for cell in homework.cells:
        if cell.kind == "code":
            asked = cell.metadata.get("question", asked)
            if asked and "plot" in cell.metadata.get("tags", []):
                return REMEMBERED.get(homework.name, asked)
    raise AssertionError(f"{homework.name} has no picture below an answer")


def test_a_stub_is_told_politely_an_answer_turns_green_and_a_mistake_is_named(homework: Homework, opened) -> None:
    from playwright.sync_api import expect

    question = homework.question(with_picture(homework))
    check = f"test_{question.id}"
    answer, mistake = without_markers(question.answer), homework.mistakes[question.id][0]
    plot = next(cell.id for cell in opened.below(check) if "plot" in cell.metadata.get("tags", []))
    keep = opened.keep if homework.name == "hw1_attention" else lambda *_: None  # one of each kind for the docs

    opened.run_all_above(question.id)
    opened.run(question.id)
    opened.run(check)
    titled = f"{question.id} ({homework.sections[question.id]})"
    expect(opened.region(check)).to_have_text(f"{titled}: {LABELS['not answered']}")
    keep("check_not_answered", opened.input(question.id), opened.output(check))

    for earlier in question.uses:
        opened.paste(earlier, without_markers(homework.question(earlier).answer))
        opened.run(earlier)
    opened.paste(question.id, answer)
    opened.run(question.id)
    opened.run(check)
    expect(opened.region(check)).to_have_attribute("aria-label", re.compile(r": all \d+ checks ok$"))
    expect(opened.region(check)).to_have_css("border-left-color", rgb(STATUS["passed"]))
    keep("check_green", opened.input(check), opened.output(check))

    opened.run(plot)
    picture = opened.output(plot).locator("img").first
    expect(picture).to_have_attribute("alt", re.compile(r"\w+ \w+ \w+"))
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 0
    opened.keep(f"{homework.name}_picture", picture)

    opened.paste(question.id, f"{answer}\n\n\n{mistake.source}")
    opened.run(question.id)
    opened.run(check)
    expect(opened.region(check)).to_contain_text(f"Looks like {mistake.label}: {mistake.text}".replace("`", ""))
    keep("check_mistake", opened.input(check), opened.output(check))


def rgb(colour: str) -> str:
    """#1a7f37 as a browser says it."""
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"
