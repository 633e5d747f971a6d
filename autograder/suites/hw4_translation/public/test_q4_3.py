"""Public checks of q4_3: smoothed_loss."""

import math

import torch
from torch import nn

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import Wrong, check, number, same, tensor
from course_utils.instruments.work import functions_called

F64 = torch.float64
PAD = 0
LABELS = torch.tensor([[3, 1, 4, 2], [2, 4, PAD, PAD], [1, PAD, PAD, PAD]])


def _logits(labels=LABELS, vocab=5, seed=43):
    return 2 * torch.randn(*labels.shape, vocab, generator=torch.Generator().manual_seed(seed), dtype=F64)


def test_even_logits(smoothed_loss):
    """Where all V tokens are equally likely, the loss is log V, smoothed or not."""
    # keeps: number, share
    for smoothing in (0.0, 0.1, 0.5):
        got = number(smoothed_loss(torch.zeros(3, 4, 5, dtype=F64), LABELS, PAD, smoothing), "the loss")
        same(got, math.log(5), f"the loss of even logits with smoothing {smoothing}")


def test_agrees_with_torch(smoothed_loss):
    """It is nn.CrossEntropyLoss with label_smoothing and ignore_index; the default smoothing is 0.1."""
    # keeps: agrees, share, mean
    logits = _logits()
    for smoothing in (0.0, 0.1, 0.3):
        theirs = nn.CrossEntropyLoss(label_smoothing=smoothing, ignore_index=PAD)(logits.transpose(1, 2), LABELS)
        got = number(smoothed_loss(logits, LABELS, PAD, smoothing), "the loss")
        same(got, theirs.item(), f"the loss with smoothing {smoothing}")
        if smoothing == 0.1:
            same(number(smoothed_loss(logits, LABELS, PAD), "the loss"), theirs.item(), "the loss with the default")


def test_padding(smoothed_loss):
    """What the model says where the label is padding does not count, and gets no gradient."""
    # keeps: padding, number
    logits = _logits().requires_grad_()
    loss = smoothed_loss(logits, LABELS, PAD)
    check(isinstance(loss, torch.Tensor) and loss.requires_grad, "no gradient flows through the loss")
    (grad,) = torch.autograd.grad(loss, logits)
    check((grad[LABELS == PAD] == 0).all(), "a position whose label is padding has a gradient")
    check((grad[LABELS != PAD].abs().sum(-1) > 0).all(), "a position with a real label has no gradient")
    other = torch.where((LABELS == PAD)[..., None], 7 - logits.detach(), logits.detach())
    same(number(smoothed_loss(other, LABELS, PAD), "the loss"), loss.item(), "the loss after a change in the padding")


def test_other_padding_numbers(smoothed_loss):
    """pad_id may be a word in the middle of the vocabulary, or none of its words: -100 or 99 serve as well."""
    # keeps: padding, pad-outside
    logits, expected = _logits(), None
    for pad in (PAD, -100, 99):
        got = number(_loss(smoothed_loss, logits, LABELS.masked_fill(LABELS == PAD, pad), pad), "the loss")
        expected = got if expected is None else expected
        same(got, expected, f"the loss where pad_id is {pad}, against the loss where it is 0")
    labels = torch.tensor([[3, 1, 4, 2], [2, 0, 4, 4], [0, 4, 4, 4]])  # 4 is padding, and 0 a word
    theirs = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=4)(logits.transpose(1, 2), labels)
    same(number(smoothed_loss(logits, labels, 4), "the loss"), theirs.item(), "the loss where pad_id is 4 and 0 a word")


def _loss(smoothed_loss, logits, labels, pad):
    """The loss; an error where the padding is no word of the vocabulary is told as what it is."""
    try:
        return smoothed_loss(logits, labels, pad)
    except (IndexError, RuntimeError) as error:
        if pad == PAD:
            raise
        raise Wrong(f"where pad_id is {pad}, which is no word, your function raises: {error}. The padded labels were "
                    "looked up; leave them out, or replace them, before you index") from None


def test_logits_in_the_thousands(smoothed_loss):
    """Logits in the thousands give a finite loss, and a shift of all logits by one number changes nothing."""
    # keeps: large
    logits = _logits()
    got = number(smoothed_loss(2e3 * logits, LABELS, PAD), "the loss of logits in the thousands")
    check(abs(got) < 1e6, f"the loss of logits in the thousands is {got}: a probability became 0 before its logarithm "
          "was taken")
    theirs = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=PAD)((2e3 * logits).transpose(1, 2), LABELS)
    same(got, theirs.item(), "the loss of logits in the thousands")
    same(number(smoothed_loss(logits - 1e4, LABELS, PAD), "the loss"), number(smoothed_loss(logits, LABELS, PAD), "-"),
         "the loss when all logits are 10,000 lower", rtol=1e-6)


def test_written_by_hand(smoothed_loss):
    """The loss is a tensor without axes in the logits' dtype, written without torch's own cross-entropy."""
    # keeps: number, by-hand
    for dtype in (torch.float64, torch.float32):
        tensor(smoothed_loss(_logits().to(dtype), LABELS, PAD), "the loss", (), dtype)
    _, used = run_beside(functions_called, smoothed_loss, _logits(), LABELS, PAD)
    names = [name for name in used if "cross_entropy" in name]
    check(not names, f"your answer calls {names[:1]}: neither nn.CrossEntropyLoss nor F.cross_entropy is allowed here")


def probe_default(smoothed_loss):
    return smoothed_loss(_logits(), LABELS, PAD)


def probe_no_smoothing(smoothed_loss):
    return smoothed_loss(_logits(), LABELS, PAD, 0.0)


def probe_more_smoothing(smoothed_loss):
    return smoothed_loss(_logits(), LABELS, PAD, smoothing=0.4)


def probe_all_smoothing(smoothed_loss):
    return smoothed_loss(_logits(), LABELS, PAD, smoothing=1.0)


def probe_without_padding(smoothed_loss):
    return smoothed_loss(_logits(), LABELS.clamp_min(1), PAD)


def probe_without_padding_or_smoothing(smoothed_loss):
    return smoothed_loss(_logits(), LABELS.clamp_min(1), PAD, 0.0)


def probe_other_pad_id(smoothed_loss):
    return smoothed_loss(_logits(), torch.tensor([[3, 1, 4, 2], [2, 0, 4, 4], [0, 4, 4, 4]]), 4)


def probe_one_row(smoothed_loss):
    return smoothed_loss(_logits(LABELS[1:2]), LABELS[1:2], PAD)


def probe_a_row_of_padding(smoothed_loss):
    labels = torch.tensor([[3, 1], [PAD, PAD], [2, PAD]])
    return smoothed_loss(_logits(labels), labels, PAD)


def probe_two_words(smoothed_loss):
    labels = torch.tensor([[1, 1, PAD]])
    return smoothed_loss(_logits(labels, 2), labels, PAD)


def probe_large_logits(smoothed_loss):
    return smoothed_loss(1e4 * _logits().float(), LABELS, PAD)


def probe_very_negative_logits(smoothed_loss):
    return smoothed_loss(_logits() - 1e5, LABELS, PAD)


def probe_shifted_logits(smoothed_loss):
    return smoothed_loss(_logits() + 3, LABELS, PAD)


def probe_dtype(smoothed_loss):
    loss = smoothed_loss(_logits(), LABELS, PAD)
    return [str(loss.dtype), list(loss.shape)] if isinstance(loss, torch.Tensor) else "no tensor"


def probe_gradient(smoothed_loss):
    logits = _logits().requires_grad_()
    return torch.autograd.grad(smoothed_loss(logits, LABELS, PAD), logits)[0]


def probe_equal_lengths(smoothed_loss):
    labels = torch.tensor([[3, 1, 4, 2, 1]])
    return smoothed_loss(_logits(labels, 5), labels, PAD)


def probe_pad_id_outside_the_vocabulary(smoothed_loss):
    smoothed_loss(_logits(), LABELS, PAD)  # where this works,
    try:
        return smoothed_loss(_logits(), LABELS.masked_fill(LABELS == PAD, -100), -100)
    except Exception:
        return "no loss where pad_id is -100"


def probe_ruled_out(smoothed_loss):
    _, used = run_beside(functions_called, smoothed_loss, _logits(), LABELS, PAD)
    return any("cross_entropy" in str(call) for call in used)
