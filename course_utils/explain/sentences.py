"""Messages as whole sentences, each told once."""

from __future__ import annotations

from collections.abc import Iterable

AGAIN = "The same as above."
OPENERS = {
    "a", "after", "all", "an", "at", "both", "cell", "each", "every", "expected", "for", "in", "it", "its", "line",
    "lines", "needs", "no", "none", "not", "on", "one", "only", "passed", "row", "that", "the", "there", "this",
    "under", "when", "where", "with", "without", "you", "your",
}  # fmt: skip


def whole(message: str) -> str:
    """A message with a capital and a full stop; a name of code at its beginning stays as it is written."""
    text = message.strip()
    if not text:
        return ""
    if text.partition(" ")[0].rstrip(",:") in OPENERS:
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "...", ":", "`)")) else f"{text}."


def told_once(messages: Iterable[str]) -> list[str]:
    """The messages as sentences; one that was told already says so."""
    seen: set[str] = set()
    told = []
    for message in messages:
        text = whole(message)
        told.append(AGAIN if text and text in seen else text)
        seen.add(text)
    return told
