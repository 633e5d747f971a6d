"""Public checks of q9_2."""

import torch

from course_utils.checking.compare import same

F64 = torch.float64


def _gate(Gate, dim, weight, bias):
    gate = Gate(dim).double()
    gate.load_state_dict({"linear.weight": weight, "linear.bias": bias})
    return gate


def test_open_half(Gate):
    """Weights and biases of 0 let half of x through."""
    gate = _gate(Gate, 3, torch.zeros(3, 3, dtype=F64), torch.zeros(3, dtype=F64))
    x = torch.tensor([[2.0, -4.0, 6.0]], dtype=F64)
    same(gate(x), x / 2, "the output")


def probe_gate(Gate):
    weight = torch.arange(9, dtype=F64).view(3, 3) / 10
    return _gate(Gate, 3, weight, torch.tensor([0.1, -0.2, 0.3], dtype=F64))(torch.tensor([[1.0, -2.0, 0.5]], dtype=F64))
