"""What `make.py` files build their submissions with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Kit:
    """The honest answers, the places to attack, and a notebook writer."""

    def __init__(self, answers: dict[str, str], places: dict[str, str], trap: Path) -> None:
        self.answers = answers  # question -> the reference's answer cell
        self.places = places  # "@CANARIES@" and the like -> what it stands for
        self.trap = trap  # a folder that anything may write to, and nothing should

    def fill(self, text: str) -> str:
        """The text with the places filled in."""
        for name, value in self.places.items():
            text = text.replace(name, value)
        return text

    def percent(self, text: str, honest: list[str]) -> bytes:
        """A percent file with the reference's answers to some questions below it."""
        parts = [self.fill(text)] + [f'# %% question="{q}"\n{self.answers[q]}' for q in honest]
        return "\n\n".join(parts).encode()

    def cell(self, source: str, grade_id: Any = None, **metadata: Any) -> dict[str, Any]:
        """A code cell as it stands in a notebook."""
        if grade_id is not None:
            metadata["nbgrader"] = {"grade_id": grade_id, "grade": True, "points": 1, "solution": True}
        return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], "execution_count": None}

    def cells(self, honest: list[str] | None = None) -> list[dict[str, Any]]:
        """The reference's answer cells."""
        return [self.cell(self.answers[q], q) for q in (self.answers if honest is None else honest)]

    def notebook(self, cells: list[dict[str, Any]], **fields: Any) -> bytes:
        """The bytes of a notebook."""
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | fields).encode()

    def honest(self) -> bytes:
        """The notebook of a student who did everything right."""
        return self.notebook(self.cells())
