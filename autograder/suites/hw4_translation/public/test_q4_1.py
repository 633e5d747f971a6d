"""Public checks of q4_1: pad_batch and teacher_forcing."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import with_arguments

PAD, BOS, EOS = 0, 1, 2


def _pair(got, what):
    check(isinstance(got, (tuple, list)) and len(got) == 2, f"{what} returns a pair of two tensors")
    return got


def test_pad_batch(pad_batch):
    """Three sentences of different lengths become ids [3, 4], filled with pad_id on the right, and a mask."""
    # keeps: ids, mask
    ids, mask = _pair(pad_batch([[5, 6, 7, 8], [9], [4, 3]], PAD), "pad_batch")
    expected = torch.tensor([[5, 6, 7, 8], [9, 0, 0, 0], [4, 3, 0, 0]])
    same(tensor(ids, "the ids", (3, 4), torch.int64), expected, "the ids")
    same(tensor(mask, "the mask", (3, 4), torch.bool), expected == PAD, "the mask (True = padding)")


def test_pad_id_inside(pad_batch):
    """A pad_id inside a sentence is a real token: padding is what lies beyond a sentence's length."""
    # keeps: pad-inside
    ids, mask = _pair(pad_batch([[3, PAD, 4], [PAD], [5, PAD]], PAD), "pad_batch")
    same(ids, torch.tensor([[3, 0, 4], [0, 0, 0], [5, 0, 0]]), "the ids")
    same(mask, torch.tensor([[False, False, False], [False, True, True], [False, False, True]]), "the mask")


def test_teacher_forcing(teacher_forcing):
    """The decoder reads BOS and the sentence; it is asked for the sentence and EOS."""
    # keeps: forcing
    inputs, labels = _pair(teacher_forcing([[7, 8, 9], [5]], BOS, EOS, PAD), "teacher_forcing")
    tensor(inputs, "the inputs", (2, 4), torch.int64)
    same(tensor(labels, "the labels", (2, 4), torch.int64), torch.tensor([[7, 8, 9, EOS], [5, EOS, PAD, PAD]]),
         "the labels")
    same(inputs[0], torch.tensor([BOS, 7, 8, 9]), "the inputs of the first sentence")
    same(inputs[1, :2], torch.tensor([BOS, 5]), "the inputs of the second sentence where there is a label")


def test_other_numbers(pad_batch, teacher_forcing):
    """pad_id, bos_id and eos_id are what the call says: with 7 for padding, 8 for BOS and 6 for EOS all rows follow."""
    # keeps: ids, mask, forcing
    ids, mask = _pair(pad_batch([[5, 0], [3, 1, 2], [4]], 7), "pad_batch")
    same(ids, torch.tensor([[5, 0, 7], [3, 1, 2], [4, 7, 7]]), "the ids where pad_id is 7")
    same(mask, torch.tensor([[False, False, True], [False] * 3, [False, True, True]]), "the mask where pad_id is 7")
    inputs, labels = _inputs_with_labels(_pair(teacher_forcing([[1, 2, 3], [0], [2, 1]], 8, 6, 7), "teacher_forcing"),
                                         (3, 1, 2))
    same(labels, torch.tensor([[1, 2, 3, 6], [0, 6, 7, 7], [2, 1, 6, 7]]), "the labels where EOS is 6 and padding 7")
    same(inputs, torch.tensor([[8, 1, 2, 3], [8, 0, -1, -1], [8, 2, 1, -1]]), "the inputs where BOS is 8 (-1 stands "
         "where nothing is asked)")


def test_lengths_at_the_edge(pad_batch, teacher_forcing):
    """Sentences of one length need no padding; an empty one is nothing but padding, and as a target it is EOS alone."""
    # keeps: ids, mask, forcing, given-stays
    given = [[3, 4], [], [5, 6]]
    ids, mask = _pair(pad_batch(given, PAD), "pad_batch")
    same(ids, torch.tensor([[3, 4], [0, 0], [5, 6]]), "the ids of three sentences, one of them empty")
    same(mask, torch.tensor([[False, False], [True, True], [False, False]]), "their mask")
    same(_pair(pad_batch([[3, 4], [5, 6]], PAD), "pad_batch")[1], torch.zeros(2, 2, dtype=torch.bool), "the mask of "
         "two sentences of one length")
    _, labels = _pair(teacher_forcing(given, BOS, EOS, PAD), "teacher_forcing")
    same(labels, torch.tensor([[3, 4, EOS], [EOS, PAD, PAD], [5, 6, EOS]]), "the labels, one target being empty")
    for name, f, rest in (("pad_batch", pad_batch, (PAD,)), ("teacher_forcing", teacher_forcing, (BOS, EOS, PAD))):
        left = run_beside(with_arguments, f, [[5, 6], [9]], *rest)[1][0]
        check(left == [[5, 6], [9]], f"{name} has changed the lists that it was given: they are {left} now")


def _inputs_with_labels(got, lengths):
    """The pair, with inputs blotted out where the label is padding: they are free there."""
    inputs, labels = got
    there = torch.arange(inputs.shape[1]) <= torch.tensor(lengths)[:, None]
    return torch.where(there, inputs, -1), labels


def probe_ids(pad_batch):
    return pad_batch([[5, 6, 7, 8], [9], [4, 3]], PAD)[0]


def probe_mask(pad_batch):
    return pad_batch([[5, 6, 7, 8], [9], [4, 3]], PAD)[1]


def probe_dtypes(pad_batch):
    return [str(x.dtype) for x in pad_batch([[5, 6], [9]], PAD)]


def probe_other_pad_id(pad_batch):
    return pad_batch([[5, 0], [3, 1, 2], []], 7)


def probe_other_pad_id_mask(pad_batch):
    return pad_batch([[5, 0], [3, 1, 2], [6]], 7)[1]


def probe_pad_id_inside(pad_batch):
    return pad_batch([[3, PAD, 4], [PAD], [5, PAD]], PAD)


def probe_pad_id_first(pad_batch):
    return pad_batch([[PAD, 3, 4, 5], [6, 7]], PAD)[1]


def probe_one_sentence(pad_batch):
    return pad_batch([[3, 4, 5]], PAD)


def probe_equal_lengths(pad_batch):
    return pad_batch([[3, 4], [5, 6]], PAD)


def probe_empty_sentence(pad_batch):
    return pad_batch([[3, 4], []], PAD)


def probe_lists_stay(pad_batch):
    return run_beside(with_arguments, pad_batch, [[5, 6], [9]], PAD)[1][0]


def probe_labels(teacher_forcing):
    return teacher_forcing([[7, 8, 9], [5]], BOS, EOS, PAD)[1]


def probe_inputs(teacher_forcing):
    return _inputs_with_labels(teacher_forcing([[7, 8, 9], [5]], BOS, EOS, PAD), (3, 1))[0]


def probe_forcing_shapes(teacher_forcing):
    return [list(x.shape) for x in teacher_forcing([[7, 8, 9], [5]], BOS, EOS, PAD)]


def probe_forcing_dtypes(teacher_forcing):
    return [str(x.dtype) for x in teacher_forcing([[7, 8, 9], [5]], BOS, EOS, PAD)]


def probe_forcing_equal_lengths(teacher_forcing):
    return _inputs_with_labels(teacher_forcing([[7, 8], [5, 6]], BOS, EOS, PAD), (2, 2))


def probe_forcing_other_ids(teacher_forcing):
    return _inputs_with_labels(teacher_forcing([[1, 2, 3], [0], [2, 1]], 8, 6, 9), (3, 1, 2))


def probe_forcing_pad_id_inside(teacher_forcing):
    return _inputs_with_labels(teacher_forcing([[7, PAD, 9], [PAD, PAD], [5]], BOS, EOS, PAD), (3, 2, 1))


def probe_forcing_eos_inside(teacher_forcing):
    return _inputs_with_labels(teacher_forcing([[7, EOS, 9], [BOS, 4]], BOS, EOS, PAD), (3, 2))


def probe_forcing_empty(teacher_forcing):
    return _inputs_with_labels(teacher_forcing([[7, 8], []], BOS, EOS, PAD), (2, 0))


def probe_forcing_lists_stay(teacher_forcing):
    return run_beside(with_arguments, teacher_forcing, [[7, 8], [5]], BOS, EOS, PAD)[1][0]
