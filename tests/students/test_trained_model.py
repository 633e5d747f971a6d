"""The trained model that a homework asks for: which one does, and whether a right one fits."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from autograder.builder.release import release_files
from autograder.homework import read_homework
from autograder.judge.local import reference_names
from course_utils.data.everyday_words import vocabularies
from course_utils.hw4.tasks import SENTENCE_SIZES
from course_utils.hw5.vision import SIZES, SMALL
from course_utils.notebook.checkpoints import save_checkpoint
from course_utils.terminal import originals, trained_model


@pytest.mark.parametrize("name", ["hw4_translation", "hw5_vision", "hw6_pretraining"])
def test_a_model_is_asked_for_where_a_question_is_judged_by_it(name: str) -> None:
    original = originals.from_zip(release_files(name)[f"{name}/course_utils/originals/{name}.zip"], name)
    assert bool(original.checkpoint) == (name in trained_model.JUDGED)
    if original.checkpoint:
        question, module = trained_model.JUDGED[name]
        assert question in {asked.id for asked in original.questions}
        assert hasattr(importlib.import_module(module), "checkpoint_form")


@pytest.mark.parametrize(("name", "options"), [
    ("hw4_translation", [{}]), ("hw5_vision", [{"pool": "cls"}, {"pool": "gap"}, {"pool": "map"}]),
])  # fmt: skip
def test_the_checkpoint_of_a_right_model_fits(name: str, options: list[dict[str, str]], tmp_path: Path) -> None:
    parts = reference_names(read_homework(name))
    for option in options:
        if name == "hw4_translation":
            model = parts.Transformer(*map(len, vocabularies()), **SENTENCE_SIZES)
        else:
            model = parts.ViT(**SIZES, **option)
        save_checkpoint(tmp_path / "model.safetensors", model)
        assert trained_model.trouble_with(tmp_path / "model.safetensors", name) == ""
    other = parts.Transformer(50, 60, **SENTENCE_SIZES) if name == "hw4_translation" else parts.ViT(**SMALL)
    save_checkpoint(tmp_path / "other.safetensors", other)
    assert "does not fit" in trained_model.trouble_with(tmp_path / "other.safetensors", name)
