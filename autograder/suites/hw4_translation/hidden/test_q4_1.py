"""Hidden checks of q4_1: pad_batch and teacher_forcing, against loops over single entries."""

import pytest
import torch

from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import with_arguments


def _sentences(rng, lengths, vocab=20, least=0):
    return [torch.randint(least, vocab, (n,), generator=rng).tolist() for n in lengths]


def _filled(sequences, fill, width=None, left=False):
    """The padded ids, entry by entry."""
    width = max(map(len, sequences), default=0) if width is None else width
    ids = torch.full((len(sequences), width), fill)
    for i, sentence in enumerate(sequences):
        for j, token in enumerate(sentence[:width]):
            ids[i, j + (width - len(sentence) if left else 0)] = token
    return ids


def _beyond(sequences, width=None):
    width = max(map(len, sequences), default=0) if width is None else width
    mask = torch.ones(len(sequences), width, dtype=torch.bool)
    for i, sentence in enumerate(sequences):
        mask[i, : len(sentence)] = False
    return mask


def _padded(pad_batch, sequences, pad_id):
    got = pad_batch(sequences, pad_id)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "pad_batch returns the pair (ids, key_padding_mask)")
    shape = len(sequences), max(map(len, sequences), default=0)
    return tensor(got[0], "the ids", shape, torch.int64), tensor(got[1], "the mask", shape, torch.bool)


def _check_padding(pad_batch, sequences, pad_id):
    ids, mask = _padded(pad_batch, sequences, pad_id)
    same_or_because(ids, _filled(sequences, pad_id), "the ids", {
        "the padding is on the left, and it belongs on the right": _filled(sequences, pad_id, left=True),
        "the padding is 0 and not pad_id": _filled(sequences, 0),
    })
    expected = _beyond(sequences)
    same_or_because(mask, expected, "the mask", {
        "the mask is upside down (True = padding)": ~expected,
        "a pad_id inside a sentence is a real token; padding begins where the sentence ends":
            _filled(sequences, pad_id) == pad_id,
        "the mask looks for zeros": _filled(sequences, pad_id) == 0,
        "nothing is marked": torch.zeros_like(expected),
    })


@pytest.mark.weight(2)
def test_random_sentences(pad_batch, rng):
    """Sentences of random lengths: the ids are int64 with pad_id on the right, the mask is bool and True there."""
    for lengths, pad_id in (((4, 1, 6, 3), 0), ((2, 5, 5), 3), ((1, 1, 2), 19), ((7, 2, 4, 6, 1), 25)):
        _check_padding(pad_batch, _sentences(rng, lengths, least=1 if pad_id == 0 else 4, vocab=19), pad_id)


@pytest.mark.weight(2)
def test_pad_id_inside_a_sentence(pad_batch, rng):
    """A pad_id inside a sentence, at its start or at its end, is a real token."""
    for pad_id in (0, 5):
        sequences = [[3, pad_id, 4, 2], [pad_id, 7], [8, pad_id, pad_id], [pad_id], [6, 6, 6, 6, pad_id]]
        _check_padding(pad_batch, sequences, pad_id)


def test_one_sentence_and_equal_lengths(pad_batch, rng):
    """A batch of one sentence, and one in which nothing needs padding."""
    for lengths in ((5,), (1,), (3, 3, 3)):
        _check_padding(pad_batch, _sentences(rng, lengths), 0)


def test_empty_sentence(pad_batch, teacher_forcing):
    """A sentence without tokens is all padding; its one label is EOS."""
    for sequences in ([[4, 5, 6], [], [7]], [[], [3]]):
        _check_padding(pad_batch, sequences, 0)
        _check_forcing(teacher_forcing, sequences, 1, 2, 0)


def _forced(target, bos, eos, pad):
    width = max(map(len, target), default=0) + 1
    inputs, labels = ([[bos, *row] for row in target], [[*row, eos] for row in target])
    return _filled(inputs, pad, width), _filled(labels, pad, width)


def _check_forcing(teacher_forcing, target, bos, eos, pad):
    got = teacher_forcing(target, bos, eos, pad)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "teacher_forcing returns the pair (inputs, labels)")
    longest = max(map(len, target), default=0)
    shape = len(target), longest + 1
    told = f"with a longest sentence of {longest}, one more for BOS or EOS"
    for name, value in zip(("inputs", "labels"), got, strict=True):
        value = tensor(value, f"the {name}", dtype=torch.int64)
        check(tuple(value.shape) == shape, f"the {name} have shape {list(value.shape)}, expected {list(shape)}: {told}")
    inputs, labels = _forced(target, bos, eos, pad)
    both = _filled([[bos, *row, eos] for row in target], pad, longest + 2)
    ends = _filled(target, pad, longest + 1)
    ends[:, -1] = eos
    same_or_because(got[1], labels, "the labels", {
        "inputs and labels have changed places": inputs,
        "labels and inputs are the same sequence; a label is the token after its input": both[:, :-1],
        "EOS stands at the end of the row; it comes right after each sentence": ends,
        "EOS is missing": _filled(target, pad, longest + 1),
        "the padding of the labels is EOS and not pad_id": _filled([[*row, eos] for row in target], eos, longest + 1),
        "the padding of the labels is -100 and not pad_id": _filled([[*row, eos] for row in target], -100, longest + 1),
        "the padding is 0 and not pad_id": _filled([[*row, eos] for row in target], 0, longest + 1),
    })
    there = ~_beyond([[*row, eos] for row in target], longest + 1)  # free where the label is padding
    same_or_because(torch.where(there, got[0], -1), torch.where(there, inputs, -1), "the inputs (-1 where the label is "
                    "padding and anything goes)", {
        "inputs and labels have changed places": torch.where(there, labels, -1),
        "BOS is missing": torch.where(there, _filled(target, pad, longest + 1), -1),
        "the inputs begin with EOS and not with BOS":
            torch.where(there, _filled([[eos, *row] for row in target], pad, longest + 1), -1),
        "the inputs begin with pad_id and not with BOS":
            torch.where(there, _filled([[pad, *row] for row in target], pad, longest + 1), -1),
    })


@pytest.mark.weight(3)
def test_inputs_and_labels(teacher_forcing, rng):
    """Inputs are BOS and the sentence, labels the sentence and EOS; each row ends where its sentence ends."""
    for lengths, bos, eos, pad in (((4, 1, 6, 3), 1, 2, 0), ((2, 5), 31, 30, 29), ((3, 3, 2), 2, 0, 1)):
        _check_forcing(teacher_forcing, _sentences(rng, lengths, least=3), bos, eos, pad)


def test_long_sentences(pad_batch, teacher_forcing, rng):
    """Sentences of any length, 700 tokens too, and batches of many sentences come through whole."""
    for lengths in ((700, 2), [1 + i % 3 for i in range(150)]):
        sequences = _sentences(rng, lengths, least=3)
        _check_padding(pad_batch, sequences, 0)
        _check_forcing(teacher_forcing, sequences, 1, 2, 0)


def test_teacher_forcing_one_row(teacher_forcing, rng):
    """A batch of one sentence, one of a single token, and sentences of equal length."""
    for lengths in ((5,), (1,), (4, 4, 4)):
        _check_forcing(teacher_forcing, _sentences(rng, lengths, least=3), 1, 2, 0)


def test_special_tokens_inside(teacher_forcing):
    """A token of the sentence stays what it is, also where it has the number of pad_id, EOS or BOS."""
    _check_forcing(teacher_forcing, [[7, 0, 9, 8], [0, 0], [5, 0], [4]], 1, 2, 0)
    _check_forcing(teacher_forcing, [[7, 2, 9], [1, 4], [2]], 1, 2, 0)


def test_lists_stay_as_they_are(pad_batch, teacher_forcing, in_box):
    """The lists that are given do not change."""
    given = [[5, 6, 7], [8], [9, 4]]
    for f, name, more in ((pad_batch, "pad_batch", (0,)), (teacher_forcing, "teacher_forcing", (1, 2, 0))):
        _, after = in_box(with_arguments, f, [list(row) for row in given], *more)
        same(after[0], given, f"the list given to {name}, afterwards (it has changed in place)")
