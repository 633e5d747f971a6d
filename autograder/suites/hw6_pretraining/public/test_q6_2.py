"""Public checks of q6_2: sentence_pairs and pack."""

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.hw6.chance import kept, pairs

DOCUMENTS = [[[1, 2], [3], [4, 5, 6]], [[7], [8, 9]], [[10, 11]], [[3], [12], [13, 1], [7]]]
TWINS = [[[1], [2]], [[1], [2]], [[3], [2]]]  # the first two are equal
STUCK = [[[1], [2]], [[2]], [[2], [2]]]  # nothing but [2] elsewhere, for the first


def _draw(sentence_pairs, documents=DOCUMENTS, seed=3, times=1, elsewhere=0):
    return run_beside(pairs, sentence_pairs, documents, seed, times, elsewhere)


def _expected_firsts(documents):
    return [sentence for document in documents for sentence in document[:-1]]


def test_one_for_each(sentence_pairs):
    """One pair for every sentence with a successor, in the order of the text; right pairs are the successors."""
    # keeps: one-each, in-order
    for result in _draw(sentence_pairs, times=5):
        same([list(first) for first, _, _ in result], _expected_firsts(DOCUMENTS), "the first sentences")
        successors = [s for document in DOCUMENTS for s in document[1:]]
        for (first, second, is_next), follows in zip(result, successors, strict=True):
            check(isinstance(is_next, bool), f"is_next is a bool, not {is_next!r}")
            check(not is_next or list(second) == follows, f"after {first} follows {follows}, not {list(second)}")


def test_wrong_seconds(sentence_pairs):
    """Wrong seconds come from another document, are never equal to the successor, and all of them can come."""
    # keeps: another, not-the-successor, every-candidate
    for documents in (DOCUMENTS, TWINS):
        seen = {}
        for result in _draw(sentence_pairs, documents, times=150):
            places = [(d, i) for d, document in enumerate(documents) for i in range(len(document) - 1)]
            check(len(result) == len(places), f"{len(result)} pairs for {len(places)} sentences with a successor")
            for place, (_, second, is_next) in zip(places, result, strict=True):
                if not is_next:
                    seen.setdefault(place, set()).add(tuple(second))
        for (d, i), found in seen.items():
            others = {tuple(s) for e, document in enumerate(documents) if e != d for s in document}
            wanted = others - {tuple(documents[d][i + 1])}
            check(
                found <= wanted,
                f"after {documents[d][i]} came {sorted(found - wanted)} as a wrong second: "
                "it is the true successor, or in no other document",
            )
            check(found == wanted, f"after {documents[d][i]} the wrong second is never {sorted(wanted - found)}")


def test_half(sentence_pairs):
    """About half of the pairs are right."""
    # keeps: half
    results = _draw(sentence_pairs, times=150)
    share = sum(is_next for result in results for _, _, is_next in result) / sum(map(len, results))
    check(0.4 < share < 0.6, f"{share:.1%} of the pairs are right, expected about half")


def test_no_candidate(sentence_pairs):
    """Where no wrong second exists it is a ValueError, whatever the coin says."""
    # keeps: no-candidate
    for documents in (STUCK, [[[1], [2]]], [[[1], [2]], []]):
        for seed in range(8):
            expect_value_error(f"sentence_pairs of {documents}", run_beside, pairs, sentence_pairs, documents, seed, 1)


def test_all_from_rng(sentence_pairs):
    """The same rng gives the same pairs; documents stay as they are."""
    # keeps: rng, untouched
    check(
        _draw(sentence_pairs, times=3) == _draw(sentence_pairs, times=3, elsewhere=7),
        "the same rng gives other pairs: some chance comes from elsewhere",
    )
    first, second = _draw(sentence_pairs, times=2)
    check(_draw(sentence_pairs, seed=4) != [first] or first != second, "rng is not used")
    check(run_beside(kept, sentence_pairs, DOCUMENTS, 1) is True, "the documents were changed")


def test_layout(pack):
    """[cls] first [sep] second [sep]; segments are 0 up to the first sep, then 1."""
    # keeps: layout, empty
    same(
        list(pack([5, 6], [7, 8, 9], 1, 2, 20)),
        [[1, 5, 6, 2, 7, 8, 9, 2], [0, 0, 0, 0, 1, 1, 1, 1]],
        "the packed pair",
    )
    same(list(pack([], [7], 1, 2, 20)), [[1, 2, 7, 2], [0, 0, 1, 1]], "an empty first sentence")
    same(list(pack([], [], 1, 2, 3)), [[1, 2, 2], [0, 0, 1]], "two empty sentences")


def test_too_long(pack):
    """The longer sentence is cut first, the second where they are equal."""
    # keeps: longer-first, unchanged
    first, second = [5, 6, 7, 8, 9], [15, 16, 17]
    for room, a, b in ((8, 5, 3), (7, 4, 3), (6, 3, 3), (5, 3, 2), (4, 2, 2), (1, 1, 0), (0, 0, 0)):
        ids, _ = pack(first, second, 1, 2, room + 3)
        same(list(ids), [1, *first[:a], 2, *second[:b], 2], f"sentences of 5 and 3 tokens with max_len={room + 3}")
    check((first, second) == ([5, 6, 7, 8, 9], [15, 16, 17]), "pack changed its sentences")
    for room, b in ((6, 5), (4, 3), (2, 1)):
        ids, _ = pack([5], [11, 12, 13, 14, 15, 16], 1, 2, room + 3)
        same(list(ids), [1, 5, 2, *range(11, 11 + b), 2], f"sentences of 1 and 6 tokens with max_len={room + 3}")


def test_no_room(pack):
    """max_len below 3 is a ValueError."""
    # keeps: too-small
    for max_len in (2, 0, -1):
        expect_value_error(f"max_len={max_len}", pack, [5], [6], 1, 2, max_len)


def probe_kinds_of_pairs(sentence_pairs):
    """Which seconds come, with which label; what is seen in 400 draws is all there is."""
    seen = set()
    for result in _draw(sentence_pairs, times=150):
        seen |= {(i, tuple(second), bool(is_next)) for i, (_, second, is_next) in enumerate(result)}
    return sorted(map(str, seen))


def probe_twins(sentence_pairs):
    seen = set()
    for result in _draw(sentence_pairs, TWINS, times=100):
        seen |= {(i, tuple(second), bool(is_next)) for i, (_, second, is_next) in enumerate(result)}
    return sorted(map(str, seen))


def probe_firsts(sentence_pairs):
    return [first for first, _, _ in _draw(sentence_pairs)[0]]


def probe_share(sentence_pairs):
    results = _draw(sentence_pairs, times=150)
    return round(6 * sum(bool(x) for result in results for _, _, x in result) / max(sum(map(len, results)), 1))


def probe_stuck(sentence_pairs):
    return [
        raises_value_error(run_beside, pairs, sentence_pairs, documents, seed, 1)
        for documents in (STUCK, [[[1], [2]]])
        for seed in range(6)
    ]


def probe_repeats(sentence_pairs):
    first, again = (_draw(sentence_pairs, times=3, elsewhere=n) for n in (0, 7))
    coins = [[[pair[2] for pair in result] for result in results] for results in (first, again)]
    return first == again, coins[0] == coins[1]


def probe_layout(pack):
    return list(pack([5, 6], [7, 8, 9], 1, 2, 20)), list(pack([], [7], 1, 2, 20))


def probe_cut(pack):
    results = []
    for a, b in ((5, 3), (3, 5), (4, 4)):
        for room in range(7):
            results.append(list(pack(list(range(10, 10 + a)), list(range(20, 20 + b)), 1, 2, room + 3)))
    return results


def probe_no_room(pack):
    return [raises_value_error(pack, [5], [6], 1, 2, max_len) for max_len in (2, 0, -1)]
