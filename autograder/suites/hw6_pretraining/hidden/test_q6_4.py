"""Hidden checks of q6_4: pretraining_loss and reached."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from autograder.suites.hw6_pretraining.berts import Bert, lively
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error

F64 = torch.float64


def _draw(rng, B=5, N=7, V=9, share=0.3, scale=2.0):
    words = scale * torch.randn(B, N, V, generator=rng, dtype=F64)
    pairs = scale * torch.randn(B, 2, generator=rng, dtype=F64)
    labels = torch.randint(V, (B, N), generator=rng)
    labels[torch.rand(B, N, generator=rng) >= share] = -100
    labels[0, 0] = 0
    return words, pairs, labels, torch.rand(B, generator=rng) < 0.5


def _expected(words, pairs, labels, is_next):
    chosen = labels != -100
    w = F.cross_entropy(words[chosen], labels[chosen]) if chosen.any() else words.sum() * 0
    p = F.cross_entropy(pairs, torch.where(is_next, 0, 1))
    return w + p, w, p


def _causes(words, pairs, labels, is_next):
    logp = -words.log_softmax(-1)
    chosen = labels != -100
    each = logp.gather(-1, labels.clamp(min=0)[..., None])[..., 0] * chosen
    rows = chosen.any(1)
    return (
        {},
        {
            "it is divided by all places, and not by the chosen ones": each.mean(),
            "it is the mean of the rows' means": (each.sum(1)[rows] / chosen.sum(1)[rows]).mean(),
            "it is a sum, and a mean is asked for": each.sum(),
        },
        {
            "the classes are the wrong way round: is_next is class 0": F.cross_entropy(pairs, is_next.long()),
            "it is a sum, and a mean is asked for": F.cross_entropy(pairs, (~is_next).long(), reduction="sum"),
        },
    )


def _call(pretraining_loss, *given):
    got = pretraining_loss(*given)
    check(isinstance(got, (tuple, list)) and len(got) == 3, "pretraining_loss gives three losses: total, words, pairs")
    return [tensor(x, what, ()) for x, what in zip(got, ("the total", "the word loss", "the pair loss"), strict=True)]


@pytest.mark.weight(3)
def test_losses(pretraining_loss, rng):
    """The three losses for batches of several sizes, in float64 and float32."""
    for B, N, V, share in ((5, 7, 9, 0.3), (1, 3, 4, 1.0), (8, 2, 30, 0.1), (3, 5, 2, 0.5)):
        given = _draw(rng, B, N, V, share)
        got, causes = _call(pretraining_loss, *given), _causes(*given)
        for i, (mine, right) in enumerate(zip(got, _expected(*given), strict=True)):
            same_or_because(mine, right, ("the total", "the word loss", "the pair loss")[i], causes[i])
    words, pairs, labels, is_next = _draw(rng)
    got = _call(pretraining_loss, words.float(), pairs.float(), labels, is_next)
    for mine, right in zip(got, _expected(words, pairs, labels, is_next), strict=True):
        check(mine.dtype == torch.float32, "float32 logits give float32 losses")
        same(mine.double(), right, "a loss in float32", rtol=1e-4, atol=1e-5)


@pytest.mark.weight(2)
def test_nothing_chosen(pretraining_loss, rng):
    """Without labels the word loss is exactly 0 and attached; its gradient is zero, and the pair loss goes on."""
    words, pairs, labels, is_next = _draw(rng)
    words.requires_grad_()
    pairs.requires_grad_()
    nothing = torch.full_like(labels, -100)
    total, w, p = _call(pretraining_loss, words, pairs, nothing, is_next)
    check(w.item() == 0, f"the word loss without labels is {w.item()}, expected exactly 0")
    check(w.requires_grad, "the word loss without labels is not attached to the logits")
    (grad,) = torch.autograd.grad(w, words, retain_graph=True)
    check((grad == 0).all(), "the gradient of the word loss without labels is not exactly zero")
    same(p, _expected(words, pairs, nothing, is_next)[2].detach(), "the pair loss without labels")
    check(total.requires_grad, "the total hangs on nothing: total.backward() would fail")
    grads = torch.autograd.grad(total, (words, pairs), allow_unused=True)
    check(grads[0] is None or (grads[0] == 0).all(), "the total without labels has a gradient at the word logits")
    check(
        grads[1] is not None and grads[1].abs().sum() > 0,
        "the total without labels has no gradient at the pair logits",
    )


@pytest.mark.weight(2)
def test_gradients(pretraining_loss, rng):
    """Gradients are those of the definition, and zero at places that were not chosen."""
    words, pairs, labels, is_next = _draw(rng)
    for which in range(3):
        mine, theirs = ([x.clone().requires_grad_() for x in (words, pairs)] for _ in range(2))
        loss = _call(pretraining_loss, *mine, labels, is_next)[which]
        name = ("total", "word loss", "pair loss")[which]
        check(loss.requires_grad, f"the {name} hangs on nothing: its backward() would fail")
        got = torch.autograd.grad(loss, mine, allow_unused=True)
        right = torch.autograd.grad(_expected(*theirs, labels, is_next)[which], theirs, allow_unused=True)
        for a, b, x in zip(got, right, mine, strict=True):
            a, b = (torch.zeros_like(x) if g is None else g for g in (a, b))
            same(a, b, f"the gradient of the {name}")
            if a.ndim == 3:
                check((a[labels == -100] == 0).all(), "a place that was not chosen has a gradient")


def test_large_logits(pretraining_loss, rng):
    """Logits of 1e4 in float32 give finite losses that are right."""
    words, pairs, labels, is_next = _draw(rng, scale=1e4)
    got = _call(pretraining_loss, words.float(), pairs.float(), labels, is_next)
    right = _expected(words.float().double(), pairs.float().double(), labels, is_next)
    for mine, value in zip(got, right, strict=True):
        same(mine.double(), value, "a loss of large logits", rtol=1e-3, atol=1e-2)


@pytest.mark.weight(3)
def test_reached_by_gradient(reached, rng):
    """`reached` names exactly the parts that get a gradient from each loss alone, as autograd finds them."""
    weights = {name: value.requires_grad_() for name, value in lively(rng, 11, 8, 12, 1, 6).items()}
    ids = torch.randint(11, (3, 6), generator=rng)
    out = Bert(weights, 2)(ids, torch.randint(2, ids.shape, generator=rng))
    for task, part in zip(("words", "pairs"), out, strict=True):
        grads = torch.autograd.grad(part.pow(2).sum(), list(weights.values()), allow_unused=True, retain_graph=True)
        right = {name.split(".")[0] for name, grad in zip(weights, grads, strict=True) if grad is not None}
        got = reached(task)
        check(isinstance(got, (set, frozenset)), f"reached({task!r}) is a set of names")
        missing, extra = sorted(right - set(got)), sorted(set(got) - right)
        check(
            not missing,
            f"reached({task!r}) lacks {', '.join(missing)}: follow this loss back through its head and the encoder",
        )
        check(not extra, f"reached({task!r}) holds {', '.join(map(str, extra))}, which this loss alone does not reach")


def test_unknown_task(reached):
    """Anything but the two tasks is a ValueError."""
    for task in ("Words", "pair", "both", "mlm", ""):
        expect_value_error(f"reached({task!r})", reached, task)


@pytest.mark.weight(0.5)
def test_device(pretraining_loss, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, pretraining_loss, call=_draw(rng))
