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
    ids, mask = _pair(pad_batch([[5, 6, 7, 8], [9], [4, 3]], PAD), "pad_batch")
    expected = torch.tensor([[5, 6, 7, 8], [9, 0, 0, 0], [4, 3, 0, 0]])
    same(tensor(ids, "the ids", (3, 4), torch.int64), expected, "the ids")
    same(tensor(mask, "the mask", (3, 4), torch.bool), expected == PAD, "the mask (True = padding)")


def test_pad_id_inside(pad_batch):
    """A pad_id inside a sentence is a real token: padding is what lies beyond a sentence's length."""
    ids, mask = _pair(pad_batch([[3, PAD, 4], [PAD], [5, PAD]], PAD), "pad_batch")
    same(ids, torch.tensor([[3, 0, 4], [0, 0, 0], [5, 0, 0]]), "the ids")
    same(mask, torch.tensor([[False, False, False], [False, True, True], [False, False, True]]), "the mask")


def test_teacher_forcing(teacher_forcing):
    """The decoder reads BOS and the sentence; it is asked for the sentence and EOS."""
    inputs, labels = _pair(teacher_forcing([[7, 8, 9], [5]], BOS, EOS, PAD), "teacher_forcing")
    tensor(inputs, "the inputs", (2, 4), torch.int64)
    same(tensor(labels, "the labels", (2, 4), torch.int64), torch.tensor([[7, 8, 9, EOS], [5, EOS, PAD, PAD]]),
         "the labels")
    same(inputs[0], torch.tensor([BOS, 7, 8, 9]), "the inputs of the first sentence")
    same(inputs[1, :2], torch.tensor([BOS, 5]), "the inputs of the second sentence where there is a label")


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
