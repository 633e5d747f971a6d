"""Everyday sentences as the task of homework 4: splits, words, errors by kind, and what a reader is shown."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from course_utils.data import UNK
from course_utils.data.everyday import write
from course_utils.data.everyday_splits import TESTS, held_out_sentences, training_pairs
from course_utils.data.everyday_words import vocabularies
from course_utils.hw4.error_kinds import kinds_of_errors, shares_right, table_of_errors
from course_utils.hw4.shown import beside, looked_at, read_sentence, told_unknown
from course_utils.hw4.tasks import HeldOut, load_task
from course_utils.notebook.bars import progress
from course_utils.notebook.checkpoints import CheckpointError
from course_utils.notebook.clock import cost_of
from course_utils.notebook.runs import RunStopped, TrainingRun


def test_the_vocabularies_know_every_word_that_the_grammar_writes() -> None:
    english, german = vocabularies()
    for sentence in [*write(2_000, seed=11), *write(300, seed=11, long=True)]:
        assert UNK not in english.encode(sentence.english)
        assert all(UNK not in german.encode(words) for words in sentence.german)


def test_no_test_was_trained_on_whatever_the_seeds_and_each_asks_for_its_own() -> None:
    trained = {tuple(english) for english, _ in training_pairs(3_000, seed=0)}
    assert len(trained) == 3_000
    tests = {kind: held_out_sentences(kind, 60, seed=0) for kind in TESTS}
    assert not any(tuple(one.english) in trained for some in tests.values() for one in some)
    assert [all(one.is_held_back for one in some) for some in tests.values()] == [False, True, False]
    longest = max(sum(word == "," for word in english) for english in trained)
    assert all(sum(word in (",", "that") for word in one.english) > 1 >= longest for one in tests["longer sentences"])
    assert tests["unseen sentences"] == held_out_sentences("unseen sentences", 60, seed=0)
    with pytest.raises(ValueError, match="the tests are unseen sentences"):
        held_out_sentences("others", 1)


def test_a_quick_look_takes_the_numbers_whatever_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COURSE_FAST", "1")
    task = load_task("sentences")
    assert (task.name, task.recipe.steps, task.checkpoint) == ("numbers", 40, "fast_hw4_numbers.safetensors")
    trained = {tuple(source) for source, _ in task.train}
    assert not any(tuple(example.source) in trained for example in task.look)
    with pytest.raises(ValueError, match="sentences, numbers"):
        load_task("letters")


@pytest.mark.parametrize(
    ("output", "kinds"),
    [
        ("die alte Frau hat ihren Nachbarn angerufen .", set()),
        ("die alten Frau hat ihren Nachbarn angerufen .", {"ending"}),
        ("die alte Frau hat ihrem Nachbarn angerufen .", {"ending"}),
        ("die alte Frau habe ihren Nachbarn angerufen .", {"form of the verb"}),
        ("die alte Frau hat angerufen ihren Nachbarn .", {"place of the verb"}),
        ("die Frau alte hat ihren Nachbarn angerufen .", {"other order"}),
        ("die alte Frau hat ihren Nachbarn nicht angerufen .", {"negation"}),
        ("die alte Frau hat ihren Hund angerufen .", {"other word"}),
        ("die Frau hat ihren Nachbarn angerufen .", {"left out"}),
        ("die alte Frau hat heute ihren Nachbarn angerufen .", {"added"}),
    ],
)
def test_errors_have_a_kind(output: str, kinds: set[str]) -> None:
    references = ["sie ruft an .".split(), "die alte Frau hat ihren Nachbarn angerufen .".split()]
    assert kinds_of_errors(output.split(), references) == kinds


def test_tables_count_sentences() -> None:
    examples = [HeldOut(["a"], [["der", "Hund"]], frozenset({"x", "y"})), HeldOut(["b"], [["er"]], frozenset({"x"}))]
    outputs = [["den", "Hund"], ["er"]]
    assert shares_right(outputs, examples) == {"y": (1, 0.0), "x": (2, 0.5)}
    assert {kind: n for kind, n in table_of_errors(outputs, examples).items() if n} == {"ending": 1}
    shown = beside(outputs, examples).splitlines()
    assert "wrong" in shown[0] and shown[0].endswith("| der Hund") and shown[1].split() == ["right", "er"]


def test_a_sentence_of_ones_own_is_read_and_unknown_words_are_told() -> None:
    english, _ = vocabularies()
    tokens, unknown = read_sentence("My dog doesn't see the zebbra on MONDAY", english)
    assert " ".join(tokens) == "my dog does not see the zebbra on Monday ." and unknown == ["zebbra"]
    told = told_unknown(["applee"], english)
    assert "does not know 'applee'. It knows apple" in told and "<unk>" in told
    assert told_unknown([], english) == ""
    weights = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    assert looked_at(weights, ["ein", "Hund"], ["a", "dog"]) == "ein looks most at a; Hund looks most at dog"


def test_a_run_that_is_interrupted_says_one_line_and_goes_on(tmp_path) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())

    def steps(run: TrainingRun, start: int, stop: int | None = None) -> int:
        with run.going(start, 10) as bar:
            for done in range(start, 10, 2):
                for i in progress(range(done, done + 2)):
                    if i == stop:
                        raise KeyboardInterrupt
                run.save(model, optimizer, done + 2)
                run.look(0.5, model)
        return bar.done

    files = (tmp_path / "run", tmp_path / "best.safetensors")
    with pytest.raises(RunStopped) as stopped:
        steps(TrainingRun(*files), 0, stop=5)
    assert stopped.value._render_traceback_() == ["stopped at step 5; run the cell again to go on from step 4"]
    again = TrainingRun(*files)
    assert again.resume(model, optimizer) == 4 and steps(again, 4) == 10
    with pytest.raises(CheckpointError, match=r"does not fit this model.*To train anew, delete"):
        again.finish(nn.Linear(3, 3))


def test_the_memory_of_a_call_is_what_its_tensors_hold_at_one_time() -> None:
    def call() -> torch.Tensor:
        first = torch.ones(1000)
        second = first + 1
        del first
        return (second * 2).view(2, -1)

    assert cost_of(call, rounds=1).peak == 2 * 4000
