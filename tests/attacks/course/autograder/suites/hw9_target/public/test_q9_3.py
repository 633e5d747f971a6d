"""Public checks of q9_3."""

import math

import torch

from course_utils.checking.compare import check, number, same

F64 = torch.float64


def test_one_width_away(make_kernel):
    """Two points one width apart have kernel exp(-1/2)."""
    kernel = make_kernel(3.0)
    check(callable(kernel), "make_kernel returns a function")
    got = number(kernel(torch.tensor([1.0, 0.0], dtype=F64), torch.tensor([4.0, 0.0], dtype=F64)), "the kernel")
    same(got, math.exp(-0.5), "the kernel")


def probe_kernel(make_kernel):
    return make_kernel(1.5)(torch.tensor([1.0, 2.0], dtype=F64), torch.tensor([0.5, -1.0], dtype=F64))
