"""The real corpus of homework 4: pieces of words, batches by tokens, long runs that go on, and `course train`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import nbformat
import pytest
import torch
from torch import nn

from autograder.builder.notebooks import solution_notebook, student_notebook
from autograder.homework import read_homework
from course_utils.data import BOS, EOS, PAD, DataError, Subwords, fetch
from course_utils.data.token_batches import token_batches
from course_utils.notebook.long_runs import FALL, LongPlan, share_of_rate, train_long
from course_utils.notebook.runs import TrainingRun
from course_utils.terminal.main import main

OWN_COPY = Path(__file__).parents[3] / "shared" / "data" / "multi30k"
PEOPLE = [
    ("A man", "Ein Mann"),
    ("A woman", "Eine Frau"),
    ("A small dog", "Ein kleiner Hund"),
    ("A girl", "Ein Mädchen"),
]
DEEDS = [("is running", "rennt"), ("is waiting", "wartet"), ("sleeps", "schläft"), ("sings loudly", "singt laut")]


def small_corpus(folder: Path) -> Path:
    """Sixteen captions, the same in each split."""
    pairs = [(f"{a} {c}.", f"{b} {d}.") for (a, b), (c, d) in itertools.product(PEOPLE, DEEDS)]
    folder.mkdir()
    for split in ("train", "val", "test_2016_flickr"):
        for side, language in enumerate(("en", "de")):
            (folder / f"{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return folder


def test_pieces_of_words_give_any_text_back(tmp_path: Path) -> None:
    words = Subwords.learn(["Ein Mädchen schläft.", "A girl sleeps."] * 3, 300)
    for text in ("Ein Mädchen schläft.", "Zwei Überraschungen: 3,50 € für ein 犬!", "a\u0308", ""):
        ids = words.encode(text)
        assert words.decode([BOS, *ids, EOS, PAD]) == text.replace("a\u0308", "ä")
        assert all(4 <= i < len(words) for i in ids)  # none of the special ones, UNK neither
    assert len(words.encode("Mädchen")) < len(words.encode("Mxdchen"))  # what was often seen is in one piece
    words.save(tmp_path / "words.json")
    again = Subwords.load(tmp_path / "words.json")
    assert again.encode_all(["A girl."]) == [words.encode("A girl.")] and len(again) == len(words)
    (tmp_path / "words.json").write_text("{}")
    with pytest.raises(DataError, match=r"words\.json is no vocabulary"):
        Subwords.load(tmp_path / "words.json")
    with pytest.raises(ValueError, match="alone are 260"):
        Subwords.learn(["a"], 100)


def test_batches_by_tokens_have_every_row_once_and_can_begin_anywhere() -> None:
    sources = [[7] * (1 + i % 9) for i in range(50)]
    targets = [[7] * (1 + i % 5) for i in range(50)]
    taken = list(itertools.islice(token_batches(sources, targets, 24, seed=1), 60))
    seen, epoch = list[int](), 0
    while len(seen) < 50:
        seen, epoch = seen + taken[epoch], epoch + 1
    assert sorted(seen) == list(range(50))
    for rows in taken:
        assert len(rows) * max(max(len(sources[i]), len(targets[i]) + 1) for i in rows) <= 24
    assert taken[:epoch] != taken[epoch : 2 * epoch]  # shuffled anew
    for start in (1, epoch, epoch + 3):
        assert list(itertools.islice(token_batches(sources, targets, 24, 1, start), 9)) == taken[start : start + 9]


def long_run(folder: Path, plan: LongPlan, scores: list[float], stop_at: int = 0) -> tuple[nn.Module, TrainingRun, int]:
    """Fit a line with dropout; the scores of the looks are given, and the run may break at a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0)
    run = TrainingRun(folder, folder / "best.safetensors")

    def update(number: int) -> float:
        if number == stop_at and stop_at:
            raise KeyboardInterrupt
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(number))
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def look() -> dict[str, float]:
        return {"bleu": scores[len(run.curves.values.get("score", []))]}

    made = train_long(model, optimizer, update, itertools.count, lambda step: 1e-2, look, run, plan)
    return model, run, made


def test_a_long_run_goes_on_exactly_keeps_the_best_and_stops_early(tmp_path: Path) -> None:
    plan = LongPlan(every=5, patience=3, steps=40)
    whole, run, made = long_run(tmp_path / "whole", plan, [1, 2, 5, 4, 5, 3, 9, 9])
    assert made == 30 and run.best == 5.0 and run.finished  # three looks without a better score than the third
    with pytest.raises(KeyboardInterrupt):
        long_run(tmp_path / "parts", plan, [1, 2, 5, 4, 5, 3, 9, 9], stop_at=17)
    resumed, second, made = long_run(tmp_path / "parts", plan, [1, 2, 5, 4, 5, 3, 9, 9])
    assert made == 30 and second.curves.values["loss"] == run.curves.values["loss"]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_a_finished_run_is_shown_again_or_made_longer_from_before_the_fall(tmp_path: Path) -> None:
    _, first, made = long_run(tmp_path, LongPlan(5, 99, steps=20), list(range(1, 20)))
    assert made == 20 and first.curves.steps["loss"] == [5, 10, 15, 20]
    _, again, _ = long_run(tmp_path, LongPlan(5, 99, steps=20), [])  # nothing is trained, so nothing is looked at
    assert again.curves.values == first.curves.values
    longer, second, made = long_run(tmp_path, LongPlan(5, 99, steps=40), list(range(1, 20)))
    assert made == 40 and second.curves.steps["loss"] == [5, 10, 15, 20, 25, 30, 35, 40]
    straight, third, _ = long_run(tmp_path / "straight", LongPlan(5, 99, steps=40), list(range(1, 20)))
    assert third.curves.values["loss"] == second.curves.values["loss"]
    assert all(torch.equal(a, b) for a, b in zip(longer.parameters(), straight.parameters(), strict=True))


def test_the_rate_falls_over_the_last_quarter_and_minutes_become_steps(tmp_path: Path) -> None:
    shares = [share_of_rate(step, 100) for step in range(1, 101)]
    assert shares[:75] == [1.0] * 75 and 0 < shares[-1] < 0.05 and shares[75:] == sorted(shares[75:], reverse=True)
    assert share_of_rate(10**6, None) == 1.0
    _, run, made = long_run(tmp_path, LongPlan(10**9, 9, minutes=0.002), [1.0])
    assert run.facts["last_step"] > run.facts["last_step"] * (1 - FALL) > 0 and 0 < made <= run.facts["last_step"]
    with pytest.raises(ValueError, match="either"):
        LongPlan(1, 1)


def test_course_train_learns_captions_with_the_answers_of_a_notebook(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    homework = read_homework("hw4_translation")
    notebook = tmp_path / "hw4_translation.ipynb"
    corpus = small_corpus(tmp_path / "multi30k")
    asked = ["train", str(notebook), "--folder", str(corpus), "--recipe", "smoke", "--device", "cpu", "--threads", "1"]
    nbformat.write(student_notebook(homework), notebook)
    assert main([*asked, "--steps", "8"]) == 2
    assert "not there yet: q4_1, q4_2, q4_3, q4_4, q4_5, q4_6." in capfd.readouterr().err
    solved = solution_notebook(homework)
    stub = next(cell for cell in student_notebook(homework).cells if cell.id == "q4_8")
    solved.cells = [stub if cell.id == "q4_8" else cell for cell in solved.cells]  # decoding with a cache is not needed
    nbformat.write(solved, notebook)
    assert main([*asked, "--steps", "120", "--beam", "2"]) == 0
    told = json.loads((tmp_path / "hw4_captions" / "report.json").read_text())
    assert told["steps"] <= 120 and told["test"]["greedy"]["bleu"] > 60 and told["validation_bleu"] > 60
    assert "tok:13a" in told["test"]["beam of 2"]["signature"] and "case:mixed" in capfd.readouterr().out
    assert len((tmp_path / "hw4_captions" / "test.greedy.txt").read_text().splitlines()) == 16


@pytest.mark.skipif(not OWN_COPY.is_dir(), reason="Multi30k does not come with the course")
def test_the_checksums_of_multi30k_are_those_of_the_published_files() -> None:
    for name, sha256 in fetch.SETS["multi30k"][1].items():
        assert fetch.digest(OWN_COPY / name) == sha256
