"""Public checks of q4_3: smoothed_loss."""

import math

import torch
from torch import nn

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number, same
from course_utils.instruments.work import functions_called

F64 = torch.float64
PAD = 0
LABELS = torch.tensor([[3, 1, 4, 2], [2, 4, PAD, PAD], [1, PAD, PAD, PAD]])


def _logits(labels=LABELS, vocab=5, seed=43):
    return 2 * torch.randn(*labels.shape, vocab, generator=torch.Generator().manual_seed(seed), dtype=F64)


def test_even_logits(smoothed_loss):
    """Where all V tokens are equally likely, the loss is log V, smoothed or not."""
    for smoothing in (0.0, 0.1, 0.5):
        got = number(smoothed_loss(torch.zeros(3, 4, 5, dtype=F64), LABELS, PAD, smoothing), "the loss")
        same(got, math.log(5), f"the loss of even logits with smoothing {smoothing}")


def test_agrees_with_torch(smoothed_loss):
    """It is nn.CrossEntropyLoss with label_smoothing and ignore_index; the default smoothing is 0.1."""
    logits = _logits()
    for smoothing in (0.0, 0.1, 0.3):
        theirs = nn.CrossEntropyLoss(label_smoothing=smoothing, ignore_index=PAD)(logits.transpose(1, 2), LABELS)
        got = number(smoothed_loss(logits, LABELS, PAD, smoothing), "the loss")
        same(got, theirs.item(), f"the loss with smoothing {smoothing}")
        if smoothing == 0.1:
            same(number(smoothed_loss(logits, LABELS, PAD), "the loss"), theirs.item(), "the loss with the default")


def test_padding(smoothed_loss):
    """What the model says where the label is padding does not count, and gets no gradient."""
    logits = _logits().requires_grad_()
    loss = smoothed_loss(logits, LABELS, PAD)
    check(isinstance(loss, torch.Tensor) and loss.requires_grad, "no gradient flows through the loss")
    (grad,) = torch.autograd.grad(loss, logits)
    check((grad[LABELS == PAD] == 0).all(), "a position whose label is padding has a gradient")
    check((grad[LABELS != PAD].abs().sum(-1) > 0).all(), "a position with a real label has no gradient")
    other = torch.where((LABELS == PAD)[..., None], 7 - logits.detach(), logits.detach())
    same(number(smoothed_loss(other, LABELS, PAD), "the loss"), loss.item(), "the loss after a change in the padding")


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
