"""Public checks of q6_1: mask_tokens."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.hw6.chance import masked, masked_by_torchs_own

MASK_ID, VOCAB, SPECIAL = 3, 30, (0, 1, 2, 3, 17)


def _ids(n=4000, seed=1):
    return torch.randint(VOCAB, (n // 20, 20), generator=torch.Generator().manual_seed(seed))


def _masked(mask_tokens, ids, p=0.15, seed=2, special=SPECIAL, calls=1, elsewhere=0):
    given = ids.clone()
    results = run_beside(masked, mask_tokens, given, MASK_ID, VOCAB, special, p, seed, calls, elsewhere)
    check(torch.equal(given, ids), "ids were changed in place: work on a copy")
    for result in results:
        check(isinstance(result, (tuple, list)) and len(result) == 2, "mask_tokens gives the pair (inputs, labels)")
        for got, what in zip(result, ("the inputs", "the labels"), strict=True):
            tensor(got, what, ids.shape, torch.int64)
    return results if calls > 1 else results[0]


def _special(ids):
    return torch.isin(ids, torch.tensor(SPECIAL))


def test_labels(mask_tokens):
    """Labels are the old tokens at the chosen places and -100 elsewhere, where inputs are as they were."""
    # keeps: shapes, labels, copy
    ids = _ids()
    inputs, labels = _masked(mask_tokens, ids)
    chosen = labels != -100
    same(labels[chosen], ids[chosen], "the labels at chosen places")
    same(inputs[~chosen], ids[~chosen], "the inputs where nothing was chosen")
    shape = (2, 3, 4)
    _masked(mask_tokens, torch.full(shape, 9))


def test_special_tokens(mask_tokens):
    """Special tokens are never chosen, and never drawn as random words."""
    # keeps: special, even
    ids = _ids()
    inputs, labels = _masked(mask_tokens, ids, p=1.0)
    check((labels[_special(ids)] == -100).all(), "a special token has a label: special tokens are never chosen")
    new = inputs[(inputs != ids) & (inputs != MASK_ID)]
    check(not _special(new).any(), "a random word is a special token: draw from the ids that are not special")
    check(len(new.unique()) >= 20, f"only {len(new.unique())} of 25 ids are ever drawn as random words")
    inputs, _ = _masked(mask_tokens, torch.full((2000, 20), 9), p=1.0)
    counts = torch.bincount(inputs[(inputs != 9) & (inputs != MASK_ID)], minlength=VOCAB)
    for word in [i for i in range(VOCAB) if i != 9 and i not in SPECIAL]:
        check(
            70 < counts[word] < 250,
            f"of 40,000 chosen words {counts[word]} become word {word}, expected about 160: each of 25 is as likely",
        )


def test_rates(mask_tokens):
    """About 15 percent are chosen; of these, each by itself, 80 percent are masked, 10 become another word, 10 stay."""
    # keeps: rate, fates, stays
    ids = torch.randint(4, 17, (200, 100), generator=torch.Generator().manual_seed(5))
    inputs, labels = _masked(mask_tokens, ids, p=None)
    chosen = labels != -100
    share = chosen.double().mean().item()
    check(0.13 < share < 0.17, f"{share:.1%} of the positions are chosen, expected about 15%")
    masks, stay = ((x[chosen]).double().mean().item() for x in (inputs == MASK_ID, inputs == ids))
    check(0.74 < masks < 0.86, f"{masks:.1%} of the chosen positions are masked, expected about 80%")
    check(0.06 < stay < 0.15, f"{stay:.1%} of the chosen positions stay, expected about 10%")
    masks = _masked(mask_tokens, ids, p=1.0)[0] == MASK_ID
    both, alone = (x.double().mean().item() for x in (masks[::2] & masks[1::2], masks))
    check(abs(both - alone**2) < 0.05, f"two positions, one below the other, are both masked in {both:.1%} of cases, "
          f"where one alone is in {alone:.1%}: draw the fate of each position by itself")


def test_none_and_all(mask_tokens):
    """p=0 chooses nothing, p=1 everything that is not special."""
    # keeps: edges
    ids = _ids(200)
    inputs, labels = _masked(mask_tokens, ids, p=0.0)
    same(inputs, ids, "the inputs with p=0")
    check((labels == -100).all(), "with p=0 nothing is chosen")
    _, labels = _masked(mask_tokens, ids, p=1.0)
    check(((labels == -100) == _special(ids)).all(), "with p=1 every position is chosen, special ones excepted")


def test_generator(mask_tokens):
    """The same generator state gives the same result, whatever torch's own numbers do; the next call gives another."""
    # keeps: generator, moves-on
    ids = _ids()
    first, second = _masked(mask_tokens, ids, calls=2)
    again = _masked(mask_tokens, ids, elsewhere=77)
    for got, expected, what in zip(again, first, ("the inputs", "the labels"), strict=True):
        check(torch.equal(got, expected), f"{what} differ from a generator in the same state: all chance comes from it")
    check(
        not torch.equal(first[1], second[1]),
        "two calls in a row choose the same places: the generator does not move on",
    )


def test_each_by_itself(mask_tokens):
    """Each position is chosen by itself, so the number of chosen ones varies from call to call."""
    # keeps: rate
    ids = torch.full((10, 10), 9)
    counts = {int((labels != -100).sum()) for _, labels in _masked(mask_tokens, ids, p=0.3, calls=40)}
    check(len(counts) > 3, f"40 calls choose {sorted(counts)} of 100 positions: each is chosen by itself, so it varies")


def _without_generator(mask_tokens, seed):
    return run_beside(masked_by_torchs_own, mask_tokens, _ids(400), MASK_ID, VOCAB, SPECIAL, seed)[1]


def test_no_generator(mask_tokens):
    """Without a generator torch's own numbers decide: the same seed of torch gives the same places, another others."""
    # keeps: generator
    first, again, other = (_without_generator(mask_tokens, seed) for seed in (1, 1, 2))
    check(torch.equal(first, again), "after the same torch.manual_seed other places are chosen")
    check(not torch.equal(first, other), "without a generator the same places are chosen whatever torch's seed is")


def test_p(mask_tokens):
    """p outside [0, 1] is a ValueError."""
    # keeps: p-range
    for p in (-0.1, 1.5):
        expect_value_error(f"p={p}", mask_tokens, _ids(40), MASK_ID, VOCAB, SPECIAL, p)


def _shares(inputs, labels, ids):
    """What became of the positions, in classes that chance does not blur."""
    chosen = labels != -100
    n = max(int(chosen.sum()), 1)
    new = inputs[chosen & (inputs != ids) & (inputs != MASK_ID)]
    shares = [
        chosen.double().mean(),
        (inputs == MASK_ID)[chosen].double().mean(),
        (inputs == ids)[chosen].double().mean(),
    ]
    shares.append(torch.tensor(len(new) / n))
    special = [(_special(ids) & chosen).any(), _special(new).any(), ((inputs != ids) & ~chosen).any()]
    return [round(float(x) * 10) for x in shares], [bool(x) for x in special], len(new.unique()) // 4


def probe_all_chosen(mask_tokens):
    ids = torch.cat([_ids(), torch.full((200, 20), 9)])
    return _shares(*_masked(mask_tokens, ids, p=1.0), ids)


def probe_half_chosen(mask_tokens):
    ids = torch.full((2000, 20), 9)
    return _shares(*_masked(mask_tokens, ids, p=0.5), ids)


def probe_few_special(mask_tokens):
    ids = _ids(8000)
    inputs, labels = _masked(mask_tokens, ids, p=1.0, special=(MASK_ID,))
    return sorted(labels.unique().tolist())[:4], round(float((labels == -100).double().mean()) * 10)


def probe_default(mask_tokens):
    ids = torch.full((2000, 20), 9)
    return round(float((_masked(mask_tokens, ids, p=None)[1] != -100).double().mean()) * 30)


def probe_labels(mask_tokens):
    ids = _ids(400)
    _, labels = _masked(mask_tokens, ids, p=1.0)
    return labels


def probe_stays_have_labels(mask_tokens):
    ids = torch.full((400, 20), 9)
    inputs, labels = _masked(mask_tokens, ids, p=1.0)
    return round(float(((inputs == ids) & (labels == 9)).double().mean()) * 20), sorted(labels.unique().tolist())


def probe_repeats(mask_tokens):
    ids = _ids()
    first, second = _masked(mask_tokens, ids, calls=2)
    again = _masked(mask_tokens, ids, elsewhere=77)
    return [torch.equal(a, b) for a, b in zip((*first, *first), (*again, *second), strict=True)]


def probe_counts_vary(mask_tokens):
    ids = torch.full((40,), 9)
    results = _masked(mask_tokens, ids, p=0.3, calls=30)
    return len({int((labels != -100).sum()) for _, labels in results}) > 1


def probe_columns(mask_tokens):
    ids = torch.full((50, 40), 9)
    _, labels = _masked(mask_tokens, ids, p=0.3)
    return bool(((labels != -100) == (labels[0] != -100)).all())


def probe_wrong_p(mask_tokens):
    return [raises_value_error(mask_tokens, _ids(40), MASK_ID, VOCAB, SPECIAL, p) for p in (-0.1, 1.5)]


def probe_no_generator(mask_tokens):
    first, again, other = (_without_generator(mask_tokens, seed) for seed in (1, 1, 2))
    return torch.equal(first, again), torch.equal(first, other)


def probe_unchosen_labels(mask_tokens):
    _, labels = _masked(mask_tokens, torch.full((20, 20), 9), p=0.5)
    return sorted(labels.unique().tolist())


def probe_words_in_a_call(mask_tokens):
    ids = torch.full((400, 20), 9)
    inputs, _ = _masked(mask_tokens, ids, p=1.0)
    return min(3, len(inputs[(inputs != ids) & (inputs != MASK_ID)].unique()))
