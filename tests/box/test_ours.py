"""Our own functions in a box are as we wrote them when the judge asks for one."""

from __future__ import annotations

import pytest
import torch

from course_utils import kernels, work

PATCHES = {
    "a name": "w.count_work = lambda *a, **k: {'flops': 1}",
    "a helper": "w._Counter = None",
    "a builtin": "w.dict = lambda *_: {'flops': 1}",
    "a method": "w._Counter.__torch_dispatch__ = lambda *_, **__: None",
    "a new method": "w._Counter.__getattribute__ = lambda *_: 1",
    "the code": "w.count_work.__code__ = (lambda f, /, *a, **k: {'flops': 1}).__code__",
    "a lost name": "del w.count_work",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_a_cell_that_patches_course_utils_changes_nothing(enter, patch):
    student = enter()
    cell = f"import course_utils.work as w\n{patch}\ndef product(a, b):\n    return a @ b"
    assert [outcome.fault for outcome in student.load([{"id": "patch", "source": cell}])] == [None]
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    assert student.run(work.count_work, student["product"], a, b) == work.count_work(torch.matmul, a, b)


def test_our_functions_stay_the_same_objects_for_the_student(enter):
    student = enter()
    cell = "from course_utils.kernels import gaussian_kernel as g\ndef same(kernel):\n    return kernel is g"
    student.load([{"id": "same", "source": cell}])
    assert student["same"](kernels.gaussian_kernel)
