"""Public checks of q6_5: task_kind and info_nce."""

import math

import torch
import torch.nn.functional as F

from course_utils.checking.compare import check, number, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error

F64 = torch.float64
TASKS = (
    "masked words",
    "next sentence",
    "next word",
    "sentence order",
    "which caption belongs to which image",
    "fill the gap of a span",
)


def _draw(B=5, D=4, seed=3):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(B, D, generator=g, dtype=F64), torch.randn(B, D, generator=g, dtype=F64)


def test_kinds(task_kind):
    """Each of the six is "generative" or "contrastive": hidden words are generated, next sentences told apart."""
    # keeps: kinds
    kinds = [task_kind(task) for task in TASKS]
    check(all(kind in ("generative", "contrastive") for kind in kinds), f"the kinds are {kinds}")
    same(
        [task_kind("masked words"), task_kind("next sentence")],
        ["generative", "contrastive"],
        "the kinds of BERT's tasks",
    )
    check(
        kinds.count("generative") == 3,
        f"{kinds.count('generative')} tasks are called generative: three of the six ask for words to be written",
    )


def test_unknown(task_kind):
    """Any other task is a ValueError."""
    # keeps: unknown
    expect_value_error("task_kind('chess')", task_kind, "chess")


def test_by_hand(info_nce):
    """Equal rows cost ln B; orthogonal ones at temperature 1 cost ln(1 + (B - 1) / e); one row costs 0."""
    # keeps: one-number, one-row
    ones = torch.ones(4, 3, dtype=F64)
    same(number(tensor(info_nce(ones, ones), "the loss", ()), "the loss"), math.log(4), "the loss of equal rows")
    eye = torch.eye(2, dtype=F64)
    same(number(info_nce(eye, eye, 1.0), "the loss"), math.log(1 + 1 / math.e), "the loss of orthogonal rows")
    same(number(info_nce(*_draw(1)), "the loss"), 0.0, "the loss of a single row")


def test_both_directions(info_nce):
    """It is the mean of both directions' cross-entropies of the similarities over 0.1; lengths do not matter."""
    # keeps: both-ways, lengths
    a, b = _draw()
    s = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T / 0.1
    own = torch.arange(5)
    expected = (F.cross_entropy(s, own) + F.cross_entropy(s.T, own)).item() / 2
    same(number(info_nce(a, b), "the loss"), expected, "the loss")
    same(number(info_nce(b, a), "the loss"), expected, "the loss with a and b exchanged")
    scale = torch.tensor([[0.1], [5.0], [1.0], [100.0], [2.0]], dtype=F64)
    same(number(info_nce(scale * a, b * 3), "the loss"), expected, "the loss of rows of other lengths")


def test_cold(info_nce):
    """Finite at a temperature of 1e-6 in float32, with gradients for both sides."""
    # keeps: cold, gradients
    a, b = (x.float().requires_grad_() for x in _draw())
    loss = info_nce(a, b, 1e-6)
    check(torch.isfinite(loss), f"the loss at temperature 1e-6 is {loss.item()}")
    grads = torch.autograd.grad(info_nce(a, b), (a, b))
    check(all(g.isfinite().all() and g.abs().sum() > 0 for g in grads), "no gradient reaches one of the two sides")


def probe_kinds(task_kind):
    return [task_kind(task) for task in TASKS]


def probe_unknown(task_kind):
    return raises_value_error(task_kind, "chess")


def probe_default(info_nce):
    return info_nce(*_draw())


def probe_warm(info_nce):
    return info_nce(*_draw(), 1.0)


def probe_lengths(info_nce):
    a, b = _draw()
    return info_nce(a * torch.arange(1.0, 6.0, dtype=F64)[:, None], 4 * b, 0.5)


def probe_one_row(info_nce):
    return info_nce(*_draw(1))


def probe_cold(info_nce):
    a, b = (x.float() for x in _draw())
    return str(bool(torch.isfinite(torch.as_tensor(info_nce(a, b, 1e-6)))))


def probe_swapped(info_nce):
    a, b = _draw()
    return info_nce(b, a, 0.2), info_nce(a, a, 0.2)


def probe_gradient(info_nce):
    a, b = (x.requires_grad_() for x in _draw())
    loss = info_nce(a, b)
    return [
        torch.zeros(5, 4, dtype=F64) if g is None else g for g in torch.autograd.grad(loss, (a, b), allow_unused=True)
    ]
