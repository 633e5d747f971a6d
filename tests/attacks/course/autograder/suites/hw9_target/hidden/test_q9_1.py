"""Hidden checks of q9_1. MARK-OF-THE-HIDDEN-SUITE"""

import pytest
import torch

from course_utils.checking.compare import check, same, tensor

F64 = torch.float64


@pytest.mark.weight(2)
def test_values(row_weights, reference, rng):
    """The weights are the softmax of each row."""
    scores = torch.randn(2, 3, 4, generator=rng, dtype=F64)
    same(row_weights(scores), reference.row_weights(scores), "the weights")


def test_blocked(row_weights, reference, rng):
    """Blocked entries get weight 0 and the others share 1."""
    scores = torch.randn(3, 4, generator=rng, dtype=F64)
    blocked = torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=torch.bool)
    weights = tensor(row_weights(scores, blocked), "the weights", (3, 4), F64)
    same(weights, reference.row_weights(scores, blocked), "the weights")
    check((weights[blocked] == 0).all(), "a blocked entry has weight")


def test_gradient(row_weights, rng):
    """The gradient is that of the softmax."""
    scores = torch.randn(3, 4, generator=rng, dtype=F64).requires_grad_()
    direction = torch.randn(3, 4, generator=rng, dtype=F64)
    weights = tensor(row_weights(scores), "the weights", (3, 4), F64)
    check(weights.requires_grad, "no gradient flows")
    a = torch.softmax(scores.detach(), -1)
    got = torch.autograd.grad(weights, scores, direction)[0]
    same(got, a * (direction - (a * direction).sum(-1, keepdim=True)), "the gradient")


def test_rows_sum_to_one(row_weights, rng):
    """Each row sums to 1, and its largest score has the largest weight."""
    # Written without a look at the type first, as a hurried author would: whatever comes back must not pass by lying.
    scores = torch.randn(3, 4, generator=rng, dtype=F64)
    weights = row_weights(scores)
    check(weights.sum(-1).allclose(torch.ones(3, dtype=F64)), "a row does not sum to 1")
    check(weights.argmax(-1).equal(scores.argmax(-1)), "the largest score does not have the largest weight")
