"""Hidden checks of q6_6: my_tasks on new stories. See docs/thresholds.md for the bar of the leak tests."""

import pytest
import torch

from course_utils.checking.compare import check
from course_utils.hw6.chance import tasks
from course_utils.hw6.leaks import is_next_sentence, leaks
from course_utils.hw6.stories import encoded, stories

N, BELOW = 400, 0.65


def _int(rng):
    return int(torch.randint(10**6, (1,), generator=rng))


def _read(made):
    check(
        isinstance(made, dict) and isinstance(made.get("examples"), list) and len(made["examples"]) == 2,
        "my_tasks gives two functions",
    )
    for number, examples in enumerate(made["examples"], 1):
        check(isinstance(examples, list) and examples, f"task {number} gives no examples")
        for example in examples:
            check(
                isinstance(example, list) and len(example) == 3 and isinstance(example[2], bool),
                f"task {number}: an example is (first, second, label) with a bool as label",
            )
            check(
                all(
                    isinstance(side, (list, tuple)) and all(type(token) is int for token in side)
                    for side in example[:2]
                ),
                f"task {number}: first and second are lists of ints",
            )
    return made


def _made(my_tasks, in_box, rng, sentences=(4, 7), n=N):
    documents = encoded(stories(n, _int(rng), sentences))
    return _read(in_box(tasks, my_tasks, documents, _int(rng))), documents


@pytest.mark.weight(2)
def test_reproducible(my_tasks, in_box, rng):
    """All chance comes from rng, and the documents stay as they are."""
    documents, seed = encoded(stories(60, _int(rng))), _int(rng)
    made, again = (_read(in_box(tasks, my_tasks, documents, seed)) for _ in range(2))
    check(made["again"] is True and made["examples"] == again["examples"], "the same rng gives other examples")
    check(made["kept"] is True, "a task changed the documents")


@pytest.mark.weight(2)
def test_every_document_counts(my_tasks, in_box, rng):
    """At least one example for each document with two or more sentences; tokens of the documents; balanced labels."""
    for sentences in ((4, 7), (1, 4)):
        made, documents = _made(my_tasks, in_box, rng, sentences)
        known = {token for document in documents for sentence in document for token in sentence}
        least = sum(len(document) >= 2 for document in documents)
        for number, examples in enumerate(made["examples"], 1):
            check(
                len(examples) >= least,
                f"task {number} gives {len(examples)} examples for {least} documents with two or more sentences",
            )
            check(
                all(token in known for a, b, _ in examples for token in (*a, *b)),
                f"task {number} has tokens of no document",
            )
            share = sum(label for *_, label in examples) / len(examples)
            check(0.35 <= share <= 0.65, f"task {number}: {share:.0%} of the labels are True")


@pytest.mark.weight(4)
def test_no_shortcut(my_tasks, in_box, rng):
    """The label can be told neither from `first` nor from `second` alone, nor from the lengths."""
    made, _ = _made(my_tasks, in_box, rng)
    for number, examples in enumerate(made["examples"], 1):
        for where, share in leaks(examples, _int(rng)).items():
            told = "the two lengths" if where == "lengths" else f"`{where}` alone"
            check(share < BELOW, f"task {number}: a linear classifier tells {share:.0%} of unseen labels from {told}")


@pytest.mark.weight(3)
def test_not_next_sentence(my_tasks, in_box, rng):
    """Neither task is next-sentence prediction."""
    made, documents = _made(my_tasks, in_box, rng)
    for number, examples in enumerate(made["examples"], 1):
        check(
            not is_next_sentence(examples, documents),
            f"task {number} is next-sentence prediction: one label "
            f"is a sentence "
            "and its true successor, the other takes second from another document",
        )


@pytest.mark.weight(2)
def test_different_tasks(my_tasks, in_box, rng):
    """The two tasks are not the same examples with the same labels, nor with all labels reversed."""
    made, _ = _made(my_tasks, in_box, rng, n=60)
    first, second = ([(tuple(a), tuple(b), label) for a, b, label in examples] for examples in made["examples"])
    check(sorted(first) != sorted(second), "the two tasks give the same examples")
    check(
        sorted(first) != sorted((a, b, not label) for a, b, label in second),
        "the second task is the first with its labels reversed",
    )
