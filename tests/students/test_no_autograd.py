"""Where gradients are to be worked out by hand, autograd gives none."""

import pytest
import torch

from course_utils.instruments.no_autograd import without_autograd


def square_gradient(x):
    return 2 * x


def square_gradient_by_autograd(x):
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        return torch.autograd.grad(x.square().sum(), x)[0]


def square_gradient_by_func(x):
    return torch.func.grad(lambda v: v.square().sum())(x)


def square_gradient_forwards(x):
    return torch.func.jacfwd(lambda v: v.square().sum())(x)


def square_gradient_ready_made(x):
    return torch.ops.aten.threshold_backward(2 * x, torch.ones_like(x), 0)


def test_a_formula_works_without_autograd():
    x = torch.tensor([1.0, -2.0])
    assert torch.equal(without_autograd(square_gradient, x), 2 * x)


BY_TORCH = [square_gradient_by_autograd, square_gradient_by_func, square_gradient_forwards, square_gradient_ready_made]


@pytest.mark.parametrize("function", BY_TORCH)
def test_autograd_fails_there_and_works_again_afterwards(function):
    x = torch.tensor([1.0, -2.0])
    with pytest.raises(RuntimeError):
        without_autograd(function, x)
    assert torch.equal(function(x), 2 * x)


def test_keyword_arguments_pass_through():
    assert without_autograd(torch.sum, torch.ones(2, 3), dim=0).tolist() == [2.0, 2.0, 2.0]
