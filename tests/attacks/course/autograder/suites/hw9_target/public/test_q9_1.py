"""Public checks of q9_1."""

import torch

from course_utils.checking.compare import same

F64 = torch.float64


def test_two_scores(row_weights):
    """Scores 0 and log 3 give weights 1/4 and 3/4."""
    same(row_weights(torch.tensor([[1.0, 3.0]], dtype=F64).log()), torch.tensor([[0.25, 0.75]], dtype=F64), "the weights")


def probe_scores(row_weights):
    return row_weights(torch.tensor([[0.3, -1.2, 2.0], [1.0, 0.0, 0.5]], dtype=F64))
