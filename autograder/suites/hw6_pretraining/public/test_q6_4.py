"""Public checks of q6_4: pretraining_loss and reached."""

import torch
import torch.nn.functional as F

from course_utils.checking.compare import check, number, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error

F64 = torch.float64
LABELS = torch.tensor([[-100, 3, -100, 0], [2, -100, -100, -100], [-100, -100, -100, -100]])
IS_NEXT = torch.tensor([True, False, True])


def _logits(seed=8, V=5):
    g = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(*LABELS.shape, V, generator=g, dtype=F64), 2 * torch.randn(3, 2, generator=g, dtype=F64)


def _losses(pretraining_loss, words, pairs, labels=LABELS, is_next=IS_NEXT):
    got = pretraining_loss(words, pairs, labels, is_next)
    check(isinstance(got, (tuple, list)) and len(got) == 3, "pretraining_loss gives three losses: total, words, pairs")
    return [tensor(x, what, ()) for x, what in zip(got, ("the total", "the word loss", "the pair loss"), strict=True)]


def test_values(pretraining_loss):
    """The mean over chosen places, the mean over pairs with class 0 for True, and their sum."""
    # keeps: three, words, pairs, total
    words, pairs = _logits()
    total, w, p = _losses(pretraining_loss, words, pairs)
    logp = words.log_softmax(-1)
    same(number(w, "the word loss"), -(logp[0, 1, 3] + logp[0, 3, 0] + logp[1, 0, 2]).item() / 3, "the word loss")
    logp = pairs.log_softmax(-1)
    same(number(p, "the pair loss"), -(logp[0, 0] + logp[1, 1] + logp[2, 0]).item() / 3, "the pair loss")
    same(number(total, "the total"), w.item() + p.item(), "the total")


def test_where_gradients_go(pretraining_loss):
    """Each of the three losses has its gradient: the words' at the word logits, the pairs' at the pair logits."""
    # keeps: three
    words, pairs = (x.requires_grad_() for x in _logits())
    losses = _losses(pretraining_loss, words, pairs)
    for loss, what, of in zip(losses, ("total", "word loss", "pair loss"), ((0, 1), (0,), (1,)), strict=True):
        check(loss.requires_grad, f"the {what} hangs on nothing: {what}.backward() would fail")
        for i in of:
            (grad,) = torch.autograd.grad(loss, (words, pairs)[i], retain_graph=True, allow_unused=True)
            check(
                grad is not None and bool(grad.any()),
                f"no gradient goes from the {what} to the {('word', 'pair')[i]} logits",
            )


def test_no_labels(pretraining_loss):
    """Where no place is chosen the word loss is 0, attached, with gradients of zero."""
    # keeps: no-labels, attached
    words, pairs = (x.requires_grad_() for x in _logits())
    total, w, p = _losses(pretraining_loss, words, pairs, torch.full_like(LABELS, -100))
    check(w.item() == 0, f"the word loss without labels is {w.item()}, expected 0")
    check(w.requires_grad, "the word loss without labels is not attached to the logits: words.backward() would fail")
    (grad,) = torch.autograd.grad(w, words, retain_graph=True)
    check((grad == 0).all(), "the gradient of the word loss without labels is not zero")
    same(total.item(), p.item(), "the total without labels")


def test_reached(reached):
    """Eight of the ten parts are reached by words, seven by pairs: its own head each, and not the other's."""
    # keeps: reached
    for task, own, other, count in (("words", "mlm_dense", "nsp", 8), ("pairs", "pooler", "mlm_bias", 7)):
        got = reached(task)
        check(isinstance(got, (set, frozenset)), f"reached({task!r}) is a set of names")
        check(own in got and other not in got, f"reached({task!r}) should hold {own!r} and not {other!r}")
        check(len(got) == count, f"reached({task!r}) has {len(got)} names, and {count} parts of the table are reached")


def test_other_tasks(reached):
    """Another task is a ValueError."""
    # keeps: other-task
    for task in ("total", ""):
        expect_value_error(f"reached({task!r})", reached, task)


def probe_words(pretraining_loss):
    return pretraining_loss(*_logits(), LABELS, IS_NEXT)[1]


def probe_pairs(pretraining_loss):
    return pretraining_loss(*_logits(), LABELS, IS_NEXT)[2]


def probe_total(pretraining_loss):
    return pretraining_loss(*_logits(), LABELS, IS_NEXT)[0]


def probe_one_row(pretraining_loss):
    words, pairs = _logits()
    return [x.item() for x in pretraining_loss(words[:1], pairs[:1], LABELS[:1], IS_NEXT[:1])]


def probe_no_labels(pretraining_loss):
    words, pairs = (x.requires_grad_() for x in _logits())
    w = pretraining_loss(words, pairs, torch.full_like(LABELS, -100), IS_NEXT)[1]
    return str(w.item() if isinstance(w, torch.Tensor) else w), isinstance(w, torch.Tensor) and w.requires_grad


def probe_gradient(pretraining_loss):
    words, pairs = (x.requires_grad_() for x in _logits())
    return torch.autograd.grad(pretraining_loss(words, pairs, LABELS, IS_NEXT)[0], words)[0]


def probe_label_zero(pretraining_loss):
    words, pairs = _logits()
    return pretraining_loss(words, pairs, LABELS.clamp(max=0), IS_NEXT)[1], F.cross_entropy(
        pairs, torch.tensor([0, 1, 0])
    )


def probe_reached(reached):
    return [sorted(reached(task)) for task in ("words", "pairs")]


def probe_other(reached):
    return [raises_value_error(reached, task) for task in ("total", "")]


def probe_attached(pretraining_loss):
    words, pairs = (x.requires_grad_() for x in _logits())
    return [isinstance(x, torch.Tensor) and x.requires_grad for x in pretraining_loss(words, pairs, LABELS, IS_NEXT)]
