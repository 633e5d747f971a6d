"""Hidden checks of q6_9: next_probabilities, against a version in Python's own numbers."""

import math

import pytest
import torch

from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error

F64 = torch.float64


def _row(logits, temperature, top_k, top_p):
    """One row, token by token; None where top_p lies so near an edge that rounding decides."""
    V, top = len(logits), max(logits)
    if temperature == 0:
        return [float(i == logits.index(top)) for i in range(V)]
    order = sorted(range(V), key=lambda i: (-logits[i], i))[: top_k or V]
    mass = {i: math.exp((logits[i] - top) / temperature) for i in order}
    if top_p is not None and top_p < 1:
        whole, so_far, kept = math.fsum(mass.values()), 0.0, []
        for i in order:
            if abs(so_far / whole - top_p) < 1e-6:
                return None
            if so_far / whole >= top_p:
                break
            kept.append(i)
            so_far += mass[i]
        order = kept
    whole = math.fsum(mass[i] for i in order)
    return [mass[i] / whole if i in order else 0.0 for i in range(V)]


def _compare(next_probabilities, logits, temperature=1.0, top_k=None, top_p=None):
    got = tensor(next_probabilities(logits, temperature, top_k, top_p), "the result", logits.shape, logits.dtype)
    told = f"with temperature={temperature:.3g}, top_k={top_k}, top_p={top_p}"
    for place, (mine, row) in enumerate(
        zip(got.reshape(-1, logits.shape[-1]), logits.reshape(-1, logits.shape[-1]), strict=True)
    ):
        right = _row(row.double().tolist(), temperature, top_k, top_p)
        if right is None:
            continue
        right = torch.tensor(right, dtype=F64).to(logits.dtype)
        check(not mine.isnan().any(), f"row {place} {told} has NaN")
        check(
            ((mine == 0) | (right > 0)).all(), f"row {place} {told}: tokens that are not kept have probability above 0"
        )
        same(mine, right, f"row {place} {told}")


@pytest.mark.weight(2)
def test_temperatures(next_probabilities, rng):
    """Temperatures from 0 to 10, for rows of any number."""
    for temperature in (0, 0.0, 0.05, 0.7, 1, 10.0):
        _compare(next_probabilities, 3 * torch.randn(4, 9, generator=rng, dtype=F64), temperature)


@pytest.mark.weight(2)
def test_top_k_of_any_size(next_probabilities, rng):
    """Every k from 1 to beyond V, at several temperatures."""
    for top_k in (1, 2, 5, 8, 9, 50):
        _compare(next_probabilities, 2 * torch.randn(4, 9, generator=rng, dtype=F64), 0.8, top_k)


@pytest.mark.weight(2)
def test_top_p_of_any_size(next_probabilities, rng):
    """Every p, at several temperatures; 1 removes nothing."""
    for top_p in (0.01, 0.3, 0.5, 0.77, 0.9, 0.99):
        for temperature in (0.4, 1.0, 3.0):
            _compare(next_probabilities, 2 * torch.randn(4, 9, generator=rng, dtype=F64), temperature, None, top_p)
    logits = 2 * torch.randn(4, 9, generator=rng, dtype=F64)
    same(next_probabilities(logits, top_p=1), logits.softmax(-1), "the result with top_p=1")


@pytest.mark.weight(2)
def test_all_together(next_probabilities, rng):
    """Temperature, then top_k, then top_p of what top_k has left."""
    for _ in range(25):
        temperature = float(0.3 + 2 * torch.rand((), generator=rng))
        top_k, top_p = int(torch.randint(2, 9, (), generator=rng)), float(0.2 + 0.7 * torch.rand((), generator=rng))
        _compare(next_probabilities, 2 * torch.randn(2, 9, generator=rng, dtype=F64), temperature, top_k, top_p)


@pytest.mark.weight(1.5)
def test_equals(next_probabilities, rng):
    """Of equal tokens at the edge those with the lower ids stay, however many there are."""
    for V in (4, 40, 300):
        _compare(next_probabilities, torch.zeros(V, dtype=F64), 1.0, V // 4 + 1)
        flat = next_probabilities(torch.zeros(V, dtype=torch.float32), top_p=0.3)
        check(
            (flat[: math.ceil(0.3 * V) - 1] > 0).all() and (flat[math.ceil(0.3 * V) + 1 :] == 0).all(),
            f"of {V} equal tokens top_p=0.3 keeps others than the first ones",
        )
        steps = torch.randint(0, 3, (3, V), generator=rng).double()
        _compare(next_probabilities, steps, 1.0, V // 2)
        _compare(next_probabilities, steps, 0)
    exact = torch.tensor([0.125, 0.25, 0.125, 0.125, 0.25, 0.125], dtype=F64).log2() * math.log(2)
    for top_p, kept in ((0.25, [1]), (0.3, [1, 4]), (0.55, [1, 4, 0]), (0.7, [1, 4, 0, 2])):
        got = next_probabilities(exact, top_p=top_p)
        check(
            sorted(kept) == got.nonzero().flatten().tolist(),
            f"of 1/8, 1/4, 1/8, 1/8, 1/4, 1/8 top_p={top_p} keeps "
            f"tokens {got.nonzero().flatten().tolist()}, expected {sorted(kept)}",
        )


@pytest.mark.weight(1)
def test_infinities_and_large_numbers(next_probabilities, rng):
    """-inf gets exactly 0 whatever the settings; large logits and small temperatures stay finite."""
    logits = 2 * torch.randn(5, 9, generator=rng, dtype=F64)
    logits[torch.rand(5, 9, generator=rng) < 0.5] = -math.inf
    logits[:, 3] = 0.5
    for settings in ((1.0,), (0.2, 4), (2.0, None, 0.9), (1.0, 8, 0.95), (0,)):
        _compare(next_probabilities, logits, *settings)
    for dtype, size in ((F64, 1e5), (torch.float32, 1e3)):
        got = next_probabilities((size * torch.randn(3, 9, generator=rng, dtype=F64)).to(dtype), 1e-2, 5, 0.9)
        check(got.isfinite().all(), f"logits of size {size:g} at temperature 0.01 give numbers that are not finite")


@pytest.mark.weight(1)
def test_any_axes_and_float32(next_probabilities, rng):
    """Any axes in front, one row alone, a vocabulary of one; float32 stays float32; inputs are not changed."""
    for shape in ((9,), (1, 9), (2, 3, 9), (2, 1, 2, 2, 9), (3, 1)):
        for dtype in (F64, torch.float32):
            _compare(next_probabilities, 2 * torch.randn(shape, generator=rng, dtype=F64).to(dtype), 0.9, 4, 0.8)
    _compare(next_probabilities, torch.randn(4, 9, 2, generator=rng, dtype=F64).mT, 0.9, 4, 0.8)


@pytest.mark.weight(1.5)
def test_every_error(next_probabilities):
    """temperature < 0, top_k < 1 and top_p outside (0, 1] are ValueErrors, whatever else is given."""
    logits = torch.tensor([[0.0, 1.0, 2.0]], dtype=F64)
    for temperature in (-1e-6, -2):
        expect_value_error(f"temperature={temperature}", next_probabilities, logits, temperature)
    for temperature in (0, 0.0, 1.0):
        for options in (
            {"top_k": 0},
            {"top_k": -1},
            {"top_p": 0},
            {"top_p": 0.0},
            {"top_p": -0.5},
            {"top_p": 1.0001},
            {"top_k": 0, "top_p": 0.5},
            {"top_k": 2, "top_p": 2.0},
        ):
            expect_value_error(
                f"{options} at temperature {temperature}", next_probabilities, logits, temperature, **options
            )


@pytest.mark.weight(0.5)
def test_another_device(next_probabilities, watch, rng):
    """It would run on a GPU as it stands."""
    logits = torch.randn(3, 9, generator=rng)
    device_ready(watch, next_probabilities, call=(logits, 0.8, 5, 0.9))
    device_ready(watch, next_probabilities, call=(logits, 0.0))
