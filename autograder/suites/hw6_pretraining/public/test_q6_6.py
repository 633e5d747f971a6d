"""Public checks of q6_6: my_tasks, on stories of our grammar."""

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw6.chance import tasks
from course_utils.hw6.leaks import is_next_sentence, leaks
from course_utils.hw6.stories import encoded, stories

N = 400
BELOW = 0.65


def _made(my_tasks, n=N, seed=21):
    documents = encoded(stories(n, seed))
    made = run_beside(tasks, my_tasks, documents, seed)
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
    return made, documents


def test_form(my_tasks):
    """Two tasks that give (first, second, label), repeat from the same rng, and leave the documents alone."""
    # keeps: form, reproducible, documents-stay
    made, _ = _made(my_tasks, 40)
    check(made["again"] is True, "the same rng gives other examples: all chance comes from rng")
    check(made["kept"] is True, "a task changed the documents: work on copies")


def test_examples(my_tasks):
    """Enough examples, tokens of the documents alone, both labels between 35 and 65 percent."""
    # keeps: enough, tokens, balance
    made, documents = _made(my_tasks)
    known = {token for document in documents for sentence in document for token in sentence}
    for number, examples in enumerate(made["examples"], 1):
        check(
            len(examples) >= len(documents),
            f"task {number} gives {len(examples)} examples for {len(documents)} documents",
        )
        check(
            all(token in known for a, b, _ in examples for token in (*a, *b)),
            f"task {number} has tokens that are in no document",
        )
        share = sum(label for *_, label in examples) / len(examples)
        check(
            0.35 <= share <= 0.65,
            f"task {number}: {share:.0%} of the labels are True, between 35% and 65% are asked for",
        )


def test_leaks(my_tasks):
    """The label cannot be told from one side alone, nor from the lengths."""
    # keeps: leaks
    made, _ = _made(my_tasks)
    for number, examples in enumerate(made["examples"], 1):
        for where, share in leaks(examples).items():
            check(
                share < BELOW,
                f"task {number}: {share:.0%} of the labels can be told from {_alone(where)}; below 65% is asked for",
            )


def _alone(where):
    return "the two lengths" if where == "lengths" else f"`{where}` alone"


def test_two_new_tasks(my_tasks):
    """Neither is next-sentence prediction, and they are not the same task."""
    # keeps: not-nsp, two
    made, documents = _made(my_tasks)
    for number, examples in enumerate(made["examples"], 1):
        check(not is_next_sentence(examples, documents), f"task {number} is next-sentence prediction")
    first, second = made["examples"]
    flipped = [[a, b, not label] for a, b, label in second]
    check(sorted(first) != sorted(second) and sorted(first) != sorted(flipped), "the two tasks are one and the same")


def probe_facts(my_tasks):
    documents = encoded(stories(N, 22))
    made = run_beside(tasks, my_tasks, documents, 5)
    first, second = made["examples"]
    facts = [
        first == [[a, b, not label] for a, b, label in second],
        made["again"],
        made["kept"],
        made["examples"][0] == made["examples"][1],
    ]
    for examples in made["examples"]:
        found = leaks(examples)
        facts += [share >= BELOW for share in found.values()]
        facts += [is_next_sentence(examples, documents), len(examples) >= N]
        facts.append(0.35 <= sum(bool(x[2]) for x in examples) / len(examples) <= 0.65)
    return facts
