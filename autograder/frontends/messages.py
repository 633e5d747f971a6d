"""A question's feedback as plain text, for tools that show text: the words of the feedback page, no test's code."""

from __future__ import annotations

from typing import Any

Question = dict[str, Any]  # an entry of "questions" in feedback/<student>.json, described in docs/results.md


def case_line(case: dict[str, Any]) -> str:
    """One case: what was checked, and what came out where it went wrong."""
    variation = f" ({case['variation']})" if case["variation"] else ""
    if case["verdict"] == "passed":
        return f"[ok] {case['sentence']}{variation}"
    verdict = "" if case["verdict"] in ("failed", "error") else f"{case['verdict']}: "
    return f"[--] {case['sentence']}{variation}\n     {verdict}{message(case)}\n     ({case['id']})"


def message(case: dict[str, Any]) -> str:
    """What came out, and the sentence without values that explains it, where there is one."""
    return " ".join(filter(None, [case["message"], case.get("taught")]))


def question_text(question: Question) -> str:
    """The whole question: score, the mistake it looks like, its cases."""
    if question["text"] is not None:
        return "This question is graded by a person."
    head = f"{question['question']}: {question['judged']:g} of {question['points']:g} points"
    if not question["answered"]:
        return f"{head}. Not answered."
    together = [question["together"]] if question["together"] else []
    return "\n".join([head, *hints(question), *together, *map(case_line, question["cases"])])


def hints(question: Question) -> list[str]:
    """What the named mistakes cost together, where they explain everything, and the hint on each."""
    second = question["second"]["hint"] if question["second"] else ""
    return [line for line in (question["once"], question["hint"], second) if line]
