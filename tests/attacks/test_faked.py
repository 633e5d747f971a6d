"""What a submission says of its training counts for nothing: each file in learned/ fakes it with all else right."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent / "learned"
FAKES = {
    "dictionary_translator": ("hw4_translation", "q4_10/test_learned", "by the model's weights"),
    "made_up_losses": ("hw4_translation", "q4_10/test_learned", "train_step tells of a loss"),
    "invented_accuracies": ("hw5_vision", "q5_7/test_efficiency", "is right on"),
    "cnn_of_neighbours": ("hw5_vision", "q5_7/test_efficiency", "the SmallCNN trained on them is right on"),
}


@pytest.mark.parametrize("fake", FAKES)
def test_what_is_faked_gains_nothing(fake):
    from autograder.judge.local import sit_locally
    from autograder.judge.seat import Seat
    from autograder.judge.tools import tools
    from autograder.judge.verdicts import Verdict
    from autograder.percent import read_percent
    from autograder.submission import parse_submission

    name, case_id, words = FAKES[fake]
    homework, exam, _ = tools(name)
    below = {cell.metadata["question"]: cell.source for cell in read_percent(HERE / f"{fake}.py")}
    answers = {question.id: f"{question.answer}\n\n{below.get(question.id, '')}" for question in homework.questions}
    text = "\n\n".join(f'# %% question="{question}"\n{answer}' for question, answer in answers.items())
    submission = parse_submission(text.encode(), ".py", homework)
    with Seat(lambda *_: sit_locally(submission)) as seat:
        (case,) = (case for case in exam.cases if case.id == case_id)
        result = exam.sit(case, seat, seed=3)
    assert result.verdict is Verdict.FAILED and words in result.message, result
