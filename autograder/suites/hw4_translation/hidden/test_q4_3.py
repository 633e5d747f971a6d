"""Hidden checks of q4_3: smoothed_loss, against nn.CrossEntropyLoss."""

import pytest
import torch
from torch import nn

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, number, same
from course_utils.instruments.work import functions_called

F64 = torch.float64


def _draw(rng, lengths=(6, 4, 1), vocab=9, pad=0, size=2.0):
    """Logits [B, T, V] and labels [B, T] with padding that differs from row to row."""
    labels = torch.randint(vocab - 1, (len(lengths), max(lengths)), generator=rng)
    labels = labels + (labels >= pad)  # every token but pad
    labels[torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]] = pad
    return size * torch.randn(*labels.shape, vocab, generator=rng, dtype=F64), labels


def _theirs(logits, labels, pad, smoothing, reduction="mean"):
    loss = nn.CrossEntropyLoss(label_smoothing=smoothing, ignore_index=pad, reduction=reduction)
    return loss(logits.flatten(0, 1), labels.flatten())


def _causes(logits, labels, pad, smoothing):
    logp, V, real = logits.log_softmax(-1), logits.shape[-1], labels != pad
    right = logp.gather(-1, labels[..., None])[..., 0]
    each = -(1 - smoothing) * right - smoothing * logp.mean(-1)

    def mean(values):
        return values[real].mean()

    spread = smoothing / (V - 1)
    return {
        "padding counts as well; the mean is over real tokens": each.mean(),
        "the sum over real tokens is divided by all places, padding counted": each[real].sum() / real.numel(),
        "the sum is not divided by the number of real tokens": each[real].sum(),
        "it is the mean over sentences of the mean within each; every real token weighs the same":
            ((each * real).sum(1) / real.sum(1)).mean(),
        "it is divided by the number of sentences; the mean is over real tokens": each[real].sum() / len(labels),
        "smoothing has no effect": mean(-right),
        "smoothing is spread over the V - 1 other tokens; torch spreads it over all V":
            mean(-(1 - smoothing) * right - spread * (logp.sum(-1) - right)),
        "the likelihood of the right token keeps its full weight": mean(-right - smoothing * logp.mean(-1)),
        "the smoothing term is a sum over the vocabulary; each token gets smoothing / V":
            mean(-(1 - smoothing) * right - smoothing * logp.sum(-1)),
        "smoothing and 1 - smoothing have changed places":
            mean(-smoothing * right - (1 - smoothing) * logp.mean(-1)),
        "the sign is wrong": mean(-each),
        "the logits are taken for log-probabilities; they need a log_softmax":
            mean(-(1 - smoothing) * logits.gather(-1, labels[..., None])[..., 0] - smoothing * logits.mean(-1)),
        "a softmax is taken of what went through a softmax before":
            _theirs(logits.softmax(-1), labels, pad, smoothing),
        "the pad token gets none of the smoothing; torch gives every token of the vocabulary the same":
            mean(-(1 - smoothing) * right - smoothing / (V - 1) * (logp.sum(-1) - logp[..., pad])),
        "logarithms to the base of 2": mean(each) / torch.tensor(2.0, dtype=each.dtype).log(),
    }


def _compare(smoothed_loss, logits, labels, pad, smoothing, what, default=False):
    got = smoothed_loss(logits, labels, pad) if default else smoothed_loss(logits, labels, pad, smoothing)
    check(not isinstance(got, torch.Tensor) or got.ndim == 0, f"{what} has shape {list(getattr(got, 'shape', ()))}, "
          "expected one number")
    expected = _theirs(logits, labels, pad, smoothing)
    same_or_because(got, expected, what, _causes(logits, labels, pad, smoothing))


@pytest.mark.weight(3)
def test_torch(smoothed_loss, rng):
    """It agrees with nn.CrossEntropyLoss(label_smoothing, ignore_index) in float64, for several smoothings."""
    for smoothing in (0.1, 0.25, 0.5, 0.9):
        logits, labels = _draw(rng)
        _compare(smoothed_loss, logits, labels, 0, smoothing, f"the loss with smoothing {smoothing}")


def test_no_smoothing(smoothed_loss, rng):
    """Without smoothing it is the plain cross-entropy of the real tokens."""
    _compare(smoothed_loss, *_draw(rng), 0, 0.0, "the loss with smoothing 0")


def test_default_smoothing(smoothed_loss, rng):
    """The default smoothing is 0.1; it may be given by name."""
    logits, labels = _draw(rng)
    _compare(smoothed_loss, logits, labels, 0, 0.1, "the loss with the default smoothing", default=True)
    same(number(smoothed_loss(logits, labels, 0, smoothing=0.3), "the loss"),
         _theirs(logits, labels, 0, 0.3).item(), "the loss with smoothing=0.3 given by name")


@pytest.mark.weight(2)
def test_other_sizes(smoothed_loss, rng):
    """Any pad_id, one sentence, one token, no padding at all, a vocabulary of two."""
    for lengths, vocab, pad in (((5, 2, 3, 4), 7, 3), ((4,), 6, 5), ((1,), 5, 0), ((3, 3), 11, 2), ((4, 1, 2), 2, 1)):
        logits, labels = _draw(rng, lengths, vocab, pad)
        _compare(smoothed_loss, logits, labels, pad, 0.1, f"the loss with V = {vocab}, pad_id = {pad} and lengths "
                 f"{list(lengths)}")


def test_pad_id_outside_the_vocabulary(smoothed_loss, rng):
    """pad_id need not be a word: -100 (the default of torch's ignore_index), -1, or one beyond the last word."""
    for pad in (-100, 9, -1):
        logits, labels = _draw(rng, vocab=9)
        labels = torch.where(labels == 0, pad, labels)
        labels[0, 0], labels[1, 1] = 0, 0  # a word
        for smoothing in (0.1, 0.0):
            got = number(smoothed_loss(logits, labels, pad, smoothing), "the loss")
            same(got, _theirs(logits, labels, pad, smoothing).item(), f"the loss with V = 9, pad_id = {pad} and "
                 f"smoothing {smoothing}")


def test_a_sentence_of_padding(smoothed_loss, rng):
    """A row that is nothing but padding adds nothing, and is not NaN."""
    logits, labels = _draw(rng, (5, 3, 2, 4))
    labels[1] = 0
    _compare(smoothed_loss, logits, labels, 0, 0.1, "the loss where a whole row is padding")


@pytest.mark.weight(2)
def test_gradient(smoothed_loss, rng):
    """The gradient is that of torch's loss; where the label is padding it is exactly zero."""
    logits, labels = _draw(rng)
    logits.requires_grad_()
    loss = smoothed_loss(logits, labels, 0)
    check(isinstance(loss, torch.Tensor) and loss.requires_grad, "no gradient flows through the loss: it must stay a "
          "tensor, without .item() or .detach()")
    (got,) = torch.autograd.grad(loss, logits)
    (expected,) = torch.autograd.grad(_theirs(logits, labels, 0, 0.1), logits)
    same(got, expected, "the gradient")
    (thrice,) = torch.autograd.grad(3 * smoothed_loss(logits, labels, 0), logits)
    same(thrice, 3 * expected, "the gradient of three times the loss")
    check((got[labels == 0] == 0).all(), "a position whose label is padding has a gradient")


def test_padding_is_not_looked_at(smoothed_loss, rng):
    """Other logits where the label is padding, however wild, change nothing."""
    logits, labels = _draw(rng)
    before = number(smoothed_loss(logits, labels, 0), "the loss")
    wild = torch.where((labels == 0)[..., None], 1e6 * torch.randn(logits.shape, generator=rng, dtype=F64), logits)
    same(number(smoothed_loss(wild, labels, 0), "the loss"), before, "the loss after a change in the padding")


def test_large_logits(smoothed_loss, rng):
    """Logits of 1e4 and more in float32 give what they should: neither inf nor NaN."""
    for shift, size in ((0, 1e4), (-3e4, 2.0), (5e4, 2.0)):
        logits, labels = _draw(rng, size=size)
        logits = (logits + shift).float()
        got = number(smoothed_loss(logits, labels, 0), "the loss")
        expected = _theirs(logits.double(), labels, 0, 0.1).item()
        same(got, expected, f"the loss of logits of size {size:g} around {shift:g} in float32", rtol=1e-3, atol=1e-4)


def test_float32(smoothed_loss, rng):
    """float32 logits give a float32 loss, float64 logits a float64 one."""
    logits, labels = _draw(rng)
    for dtype in (torch.float32, F64):
        got = smoothed_loss(logits.to(dtype), labels, 0)
        check(not isinstance(got, torch.Tensor) or got.dtype == dtype, f"{dtype} logits give a loss in "
              f"{getattr(got, 'dtype', '')}: results keep the input's dtype")
        same(number(got, "the loss"), _theirs(logits, labels, 0, 0.1).item(), f"the loss in {dtype}", rtol=1e-5)


@pytest.mark.weight(3)
def test_built_from_its_parts(smoothed_loss, in_box, rng):
    """It is written with log-probabilities, not with nn.CrossEntropyLoss or F.cross_entropy."""
    for smoothing in (0.1, 0.0):
        logits, labels = _draw(rng, (40, 20, 1), 30)  # too many numbers to guess from times
        got, used = in_box(functions_called, smoothed_loss, logits, labels, 0, smoothing)
        if any("cross_entropy" in str(call) for call in used):
            raise Wrong("the answer calls torch's own cross-entropy, which this question rules out: it is what you are "
                        "to build", mistake="torchs-own-loss")
        same(got, _theirs(logits, labels, 0, smoothing), "the loss of a watched call")


@pytest.mark.weight(0.5)
def test_device(smoothed_loss, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    logits, labels = _draw(rng)
    device_ready(watch, smoothed_loss, call=(logits, labels, 0))
