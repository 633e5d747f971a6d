"""The stand-in device finds tensors made in the wrong place, and holds its tongue where it cannot tell."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from course_utils.elsewhere import FINE, UNKNOWN, WRONG, try_elsewhere

X = torch.randn(2, 3, 4)


def _mask_on_cpu(x: Tensor) -> Tensor:
    return x.masked_fill(torch.ones(3, 4, dtype=torch.bool).triu(1), -math.inf)


def _mask_on_input(x: Tensor) -> Tensor:
    return x.masked_fill(torch.ones(3, 4, dtype=torch.bool, device=x.device).triu(1), -math.inf)


def _result_on_cpu(x: Tensor) -> Tensor:
    return torch.zeros(x.shape)


def _filled_by_a_mask(x: Tensor) -> Tensor:
    start = torch.zeros(x.shape)
    start[x > 0] = x[x > 0]
    return x + start


def _filled_by_a_mask_in_place(x: Tensor) -> Tensor:
    start = torch.zeros_like(x)
    start[x > 0] = x[x > 0]
    return x + start


def _looks_at_values(x: Tensor) -> Tensor:
    return x if x.sum().item() > 0 else -x


class _Constant(nn.Module):
    def __init__(self, buffer: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        if buffer:
            self.register_buffer("table", torch.ones(4))
        else:
            self.table = torch.ones(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) @ self.table.diag()


@pytest.mark.parametrize(
    ("function", "verdict"),
    [(_mask_on_cpu, WRONG), (_mask_on_input, FINE), (_result_on_cpu, WRONG), (_looks_at_values, UNKNOWN)]
    + [(_filled_by_a_mask, WRONG), (_filled_by_a_mask_in_place, FINE)],
)
def test_functions(function: object, verdict: str) -> None:
    assert try_elsewhere(function, call=[X])[0] == verdict  # type: ignore[arg-type]


def test_a_constant_of_a_module_is_a_buffer() -> None:
    assert try_elsewhere(_Constant, [True], call=[X])[0] == FINE
    verdict, why = try_elsewhere(_Constant, [False], call=[X])
    assert verdict == WRONG and "buffer" in why


def test_torchs_own_layers_are_fine() -> None:
    assert try_elsewhere(nn.TransformerEncoderLayer, [8, 2], {"batch_first": True}, [torch.randn(2, 3, 8)])[0] == FINE
    assert try_elsewhere(nn.GRU, [4, 4], call=[X])[0] == FINE


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_real_gpu() -> None:
    assert try_elsewhere(_mask_on_cpu, call=[X])[0] == WRONG
    assert try_elsewhere(_mask_on_input, call=[X])[0] == FINE
