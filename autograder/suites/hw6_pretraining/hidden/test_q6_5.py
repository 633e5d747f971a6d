"""Hidden checks of q6_5: task_kind and info_nce."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error

F64 = torch.float64
KINDS = {
    "masked words": "generative",
    "next word": "generative",
    "fill the gap of a span": "generative",
    "next sentence": "contrastive",
    "sentence order": "contrastive",
    "which caption belongs to which image": "contrastive",
}


def _similarities(a, b, temperature, unit=True):
    if unit:
        a, b = (x / x.pow(2).sum(-1, keepdim=True).sqrt() for x in (a, b))
    return a @ b.T / temperature


def _rows(s):
    return (s.logsumexp(1) - s.diagonal()).mean()


def _right(a, b, temperature):
    s = _similarities(a, b, temperature)
    return (_rows(s) + _rows(s.T)) / 2


def _draw(rng, B=6, D=5):
    return (
        torch.randn(B, D, generator=rng, dtype=F64) * torch.rand(B, 1, generator=rng, dtype=F64).add(0.2)
        for _ in range(2)
    )


@pytest.mark.weight(2)
@pytest.mark.parametrize("task", KINDS, ids=lambda name: name.replace(" ", "-"))
def test_every_kind(task_kind, task):
    """What is asked for: a piece of the data, or what belongs together?"""
    same(task_kind(task), KINDS[task], f"task_kind({task!r})")


def test_other_tasks(task_kind):
    """Anything else is a ValueError, an almost right name too."""
    for task in ("", "Masked words", "masked word", "generative", "logical inference"):
        expect_value_error(f"task_kind({task!r})", task_kind, task)


@pytest.mark.weight(4)
def test_values(info_nce, rng):
    """The loss for several sizes and temperatures."""
    for B, D, temperature in ((6, 5, 0.1), (2, 3, 1.0), (17, 8, 0.05), (5, 1, 0.7), (9, 2, 2.0)):
        a, b = _draw(rng, B, D)
        s, raw = _similarities(a, b, temperature), _similarities(a, b, temperature, unit=False)
        causes = {
            "only a's rows ask": _rows(s),
            "only b's rows ask": _rows(s.T),
            "it is the sum of both directions": _rows(s) + _rows(s.T),
            "the rows are not scaled to length 1": (_rows(raw) + _rows(raw.T)) / 2,
            "it is multiplied by the temperature": (_rows(s * temperature**2) + _rows(s.T * temperature**2)) / 2,
            "it is a sum over rows": B * (_rows(s) + _rows(s.T)) / 2,
        }
        got = tensor(info_nce(a, b, temperature), "the loss", (), F64)
        same_or_because(
            got, _right(a, b, temperature), f"the loss for B={B}, D={D}, temperature={temperature}", causes
        )


def test_default_temperature(info_nce, rng):
    """The default temperature is 0.1; it may be given by name."""
    a, b = _draw(rng)
    same(info_nce(a, b), _right(a, b, 0.1), "the loss with the default temperature")
    same(info_nce(a, b, temperature=0.3), _right(a, b, 0.3), "the loss with temperature=0.3 by name")


def test_a_single_row(info_nce, rng):
    """B = 1 gives 0, with finite gradients."""
    a, b = (x.requires_grad_() for x in _draw(rng, 1))
    loss = tensor(info_nce(a, b), "the loss of one row", ())
    check(abs(loss.item()) < 1e-9, f"the loss of a single row is {loss.item()}, expected 0")
    grads = torch.autograd.grad(loss, (a, b))
    check(all(g.isfinite().all() for g in grads), "the gradients of a single row are not finite")


@pytest.mark.weight(2)
def test_very_cold(info_nce, rng):
    """Temperatures down to 1e-6 in float32: finite and right, also where a row's best answer is another."""
    a, b = (x.float() for x in _draw(rng))
    for temperature in (1e-2, 1e-4, 1e-6):
        for other in (b, a.clone()):
            got = tensor(info_nce(a, other, temperature), f"the loss at temperature {temperature}", (), torch.float32)
            check(torch.isfinite(got), f"the loss at temperature {temperature} in float32 is {got.item()}")
            same(
                got.double(),
                _right(a.double(), other.double(), temperature),
                f"the loss at temperature {temperature} in float32",
                rtol=1e-3,
                atol=1e-6 / temperature + 1e-4,
            )


@pytest.mark.weight(2)
def test_gradients(info_nce, rng):
    """The gradients for both sides are those of the definition."""
    a, b = _draw(rng)
    mine, right = ([x.clone().requires_grad_() for x in (a, b)] for _ in range(2))
    got = torch.autograd.grad(info_nce(*mine, 0.2), mine, allow_unused=True)
    for g, expected, name in zip(got, torch.autograd.grad(_right(*right, 0.2), right), "ab", strict=True):
        check(g is not None, f"no gradient reaches {name}")
        same(g, expected, f"the gradient for {name}")


def test_known_numbers(info_nce):
    """Equal rows cost ln B; orthogonal ones ln(1 + (B - 1) / e) at temperature 1."""
    for B in (2, 3, 7):
        same(
            info_nce(torch.ones(B, 2, dtype=F64), 5 * torch.ones(B, 2, dtype=F64)).item(),
            math.log(B),
            f"equal rows, B={B}",
        )
        eye = torch.eye(B, dtype=F64)
        same(info_nce(2 * eye, eye, 1.0).item(), math.log(1 + (B - 1) / math.e), f"orthogonal rows, B={B}")


@pytest.mark.weight(0.5)
def test_device(info_nce, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, info_nce, call=tuple(_draw(rng)))
