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
    return f"[--] {case['sentence']}{variation}\n     {verdict}{case['message']}\n     ({case['id']})"


def question_text(question: Question) -> str:
    """The whole question: score, the mistake it looks like, its cases."""
    if question["text"] is not None:
        return "This question is graded by a person."
    head = f"{question['question']}: {question['judged']:g} of {question['points']:g} points"
    if not question["answered"]:
        return f"{head}. Not answered."
    hint = [question[told] for told in ("hint", "together") if question[told]]
    return "\n".join([head, *hint, *map(case_line, question["cases"])])
