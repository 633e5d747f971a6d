"""Hidden checks of q6_2: sentence_pairs and pack."""

import pytest
import torch

from autograder.suites.chances import likely
from course_utils.checking.compare import check, same
from course_utils.checking.raises import expect_value_error
from course_utils.hw6.chance import kept, pairs
from course_utils.hw6.stories import encoded, stories


def _int(rng, low, high):
    return int(torch.randint(low, high, (1,), generator=rng))


def _documents(rng, n=6, longest=5, words=12):
    """Documents of 0 to `longest` short sentences out of few words, so that sentences come again elsewhere."""
    return [
        [[_int(rng, 5, 5 + words) for _ in range(_int(rng, 1, 3))] for _ in range(_int(rng, 0, longest + 1))]
        for _ in range(n)
    ]


def _candidates(documents, d, i):
    others = {tuple(s) for e, document in enumerate(documents) if e != d for s in document}
    return others - {tuple(documents[d][i + 1])}


def _places(documents):
    return [(d, i) for d, document in enumerate(documents) for i in range(len(document) - 1)]


def _can(documents):
    return all(_candidates(documents, d, i) for d, i in _places(documents)) and _places(documents)


def _read(result, documents):
    """The pairs with their places; `Wrong` where their form or their number is not right."""
    places = _places(documents)
    check(len(result) == len(places), f"{len(result)} pairs for {len(places)} sentences with a successor")
    for (d, i), pair in zip(places, result, strict=True):
        check(len(pair) == 3, "a pair is (first, second, is_next)")
        first, second, is_next = pair
        check(isinstance(is_next, bool), f"is_next is a bool, not {is_next!r}")
        check(isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)), "sentences are lists of ints")
        same(list(first), documents[d][i], f"the first sentence of the pair at sentence {i} of document {d}")
        yield d, i, tuple(second), is_next


@pytest.mark.weight(3)
def test_who_can_come(sentence_pairs, in_box, rng):
    """True seconds are the successors; wrong ones are of another document, differ from it, and all of them come."""
    for n, longest in ((4, 2), (3, 3)):
        documents = _documents(rng, n, longest)
        while not _can(documents):
            documents = _documents(rng, n, longest)
        seen = {place: set() for place in _places(documents)}
        for result in in_box(pairs, sentence_pairs, documents, _int(rng, 0, 10**6), 500):
            for d, i, second, is_next in _read(result, documents):
                if is_next:
                    check(
                        second == tuple(documents[d][i + 1]),
                        "a pair with is_next=True is not a sentence and its successor",
                    )
                else:
                    check(
                        second in _candidates(documents, d, i),
                        f"a wrong second, {list(second)}, equals the true successor or stands in no other document",
                    )
                    seen[d, i].add(second)
        for place, found in seen.items():
            missing = _candidates(documents, *place) - found
            check(
                len(missing) <= 0.02 * len(found),
                f"in 500 draws {[list(s) for s in missing][:3]} never came "
                f"as a wrong "
                "second, and it can: every candidate must be possible",
            )


@pytest.mark.weight(2)
def test_the_coin(sentence_pairs, in_box, rng):
    """Each pair is right with probability 1/2, by itself."""
    documents = encoded(stories(60, seed=_int(rng, 0, 10**6)))
    results = in_box(pairs, sentence_pairs, documents, _int(rng, 0, 10**6), 8)
    coins = torch.tensor([[is_next for *_, is_next in _read(result, documents)] for result in results])  # [8, pairs]
    check(
        likely(int(coins.sum()), coins.numel(), 0.5),
        f"{coins.double().mean():.3f} of the pairs are right, expected 0.5",
    )
    odd, even = coins[:, 1::2], coins[:, : coins.shape[1] // 2 * 2 : 2]
    check(
        likely(int((odd == even).sum()), odd.numel(), 0.5),
        "neighbouring pairs have the same coin too often or too seldom",
    )
    check(
        likely(int((coins[::2] == coins[1::2]).sum()), coins[1::2].numel(), 0.5),
        "two calls in a row throw the same coins",
    )


@pytest.mark.weight(2)
def test_equal_documents(sentence_pairs, in_box, rng):
    """Another document is another place in the list: one that is equal counts as another."""
    documents = [[[5], [6], [7]], [[5], [6], [7]]]
    seen = set()
    for result in in_box(pairs, sentence_pairs, documents, _int(rng, 0, 10**6), 120):
        seen |= {(i, second) for d, i, second, is_next in _read(result, documents) if d == 0 and not is_next}
    same(
        sorted(seen),
        [(0, (5,)), (0, (7,)), (1, (5,)), (1, (6,))],
        "what comes as a wrong second where two documents are equal",
    )


@pytest.mark.weight(2)
def test_nobody_to_draw(sentence_pairs, in_box, rng):
    """Without a candidate it is a ValueError, whatever the coin says and wherever the document stands."""
    for documents in (
        [[[5], [6]]],
        [[[5], [6]], [[6]]],
        [[], [[5], [6]], [[6], [6]]],
        [[[6], [6], [5]], [[6]]],
        [[[6]], [[6]], [[5], [6]]],
    ):
        for _ in range(8):
            expect_value_error(
                f"sentence_pairs of {documents}", in_box, pairs, sentence_pairs, documents, _int(rng, 0, 10**6)
            )


def test_nothing_to_pair(sentence_pairs, in_box):
    """Documents with fewer than two sentences give no pair, and are no error; their sentences can be drawn."""
    for documents in ([], [[]], [[[5]]], [[[5, 6]], [], [[7]]]):
        same(in_box(pairs, sentence_pairs, documents, 1)[0], [], f"the pairs of {documents}")
    seen = {tuple(pair[1]) for result in in_box(pairs, sentence_pairs, [[[5], [6]], [[8]]], 2, 60) for pair in result}
    same(sorted(seen), [(6,), (8,)], "the seconds where the only candidate is a document of one sentence")


def test_reproducible(sentence_pairs, in_box, rng):
    """All chance comes from rng, and the documents are not changed."""
    documents = encoded(stories(20, seed=_int(rng, 0, 10**6)))
    first, again = (in_box(pairs, sentence_pairs, documents, 5, 3, elsewhere) for elsewhere in (1, 2))
    check(first == again, "the same rng gives other pairs: all chance comes from it, none from `random` or torch")
    check(first[0] != first[1], "two calls in a row give the same pairs: rng does not move on")
    check(in_box(pairs, sentence_pairs, documents, 6, 3) != first, "another rng gives the same pairs")
    check(in_box(kept, sentence_pairs, documents, 1) is True, "the documents were changed")


def _packed(first, second, cls_id, sep_id, max_len):
    first, second = list(first), list(second)
    while len(first) + len(second) + 3 > max_len:
        if len(first) > len(second):
            first = first[:-1]
        else:
            second = second[:-1]
    return [cls_id, *first, sep_id, *second, sep_id], [0] * (len(first) + 2) + [1] * (len(second) + 1)


@pytest.mark.weight(3)
def test_every_room(pack, rng):
    """For all lengths and all max_len from 3 on: the longer sentence loses its last token, the second where equal."""
    for a, b in ((0, 0), (0, 4), (4, 0), (1, 1), (5, 2), (2, 6), (4, 4), (7, 3)):
        first, second = ([_int(rng, 5, 99) for _ in range(n)] for n in (a, b))
        for max_len in (3, 4, 5, 6, 7, 8, 10, 13, 50):
            got = pack(first, second, 1, 2, max_len)
            check(isinstance(got, (tuple, list)) and len(got) == 2, "pack gives the pair (ids, segments)")
            expected = _packed(first, second, 1, 2, max_len)
            for mine, right, what in zip(got, expected, ("ids", "segments"), strict=True):
                check(isinstance(mine, list), f"the {what} are a list of ints")
                same(mine, right, f"the {what} for sentences of {a} and {b} tokens with max_len={max_len}")


def test_other_special_ids(pack):
    """cls_id and sep_id are what they are given as, and may stand in a sentence too."""
    same(
        list(pack([9, 7], [8], 9, 7, 99)),
        [[9, 9, 7, 7, 8, 7], [0, 0, 0, 0, 1, 1]],
        "a pair with cls_id=9 and sep_id=7",
    )


def test_small_max_len(pack):
    """max_len below 3 is a ValueError, with empty sentences too."""
    for max_len in (2, 1, 0, -5):
        expect_value_error(f"max_len={max_len}", pack, [5], [6], 1, 2, max_len)
        expect_value_error(f"max_len={max_len} with empty sentences", pack, [], [], 1, 2, max_len)
