"""Proxies: a test sees the student's objects as if they were its own, and only data passes."""

import textwrap

import pytest
import torch

from autograder.box.channel import LoopbackChannel
from autograder.judge.expect import raises
from autograder.judge.proxies import ModuleProxy, Student
from course_utils.checking.beside import ask_all
from course_utils.hw1 import kernels
from course_utils.hw5.cnn_facts import cnn_facts

# functions


COUNTING = """
import torch
calls = []
def add(a, b):
    calls.append(a)
    return a + b
def count():
    return len(calls)
class SmallCNN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        calls.append("made")
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                          torch.nn.LazyLinear(10))
    def forward(self, x):
        return self.layers(x)
"""


@pytest.fixture
def counting():
    found = Student(LoopbackChannel())
    found.load([{"id": "counting", "source": COUNTING, "keep": ("add", "count", "SmallCNN")}])
    return found


def test_many_questions_are_one_message(counting, monkeypatch):
    sent, request = [], LoopbackChannel.request
    monkeypatch.setattr(
        LoopbackChannel, "request", lambda self, message, **limits: sent.append(message) or request(self, message)
    )
    add = counting["add"]
    sent.clear()
    assert ask_all(add, [(1, 2), (3, 4), (5, 6)]) == [3, 7, 11]
    assert len(sent) == 1 and counting["count"]() == 3
    assert ask_all(lambda a, b: a * b, [(1, 2), (3, 4)]) == [2, 12]  # in a notebook there is nobody in between


def test_a_fact_is_asked_for_once_and_whoever_asks_has_their_own(counting):
    first = counting.run(cnn_facts, counting["SmallCNN"])
    made = counting["count"]()
    first["kernels"].clear()
    again = counting.run(cnn_facts, counting["SmallCNN"])
    assert counting["count"]() == made > 0 and again["kernels"]
    counting.load([{"id": "other", "source": "class Other(SmallCNN):\n    pass", "keep": ("Other",)}])
    assert counting.run(cnn_facts, counting["Other"])["shape"] == again["shape"] and counting["count"]() > made


def test_arguments_and_results_keep_their_structure(student):
    x = torch.ones(2)
    result = student["double"](x, y=0.5)
    assert torch.equal(result["sum"], torch.tensor([2.5, 2.5])) and result["parts"][1] == (0.5,)
    result["parts"][0] += 1
    assert x.sum() == 2


def test_gradients_cross_the_boundary(student):
    a = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    s = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    mix = student["mix"]
    assert torch.autograd.gradcheck(lambda a, b, s: mix([a, b], scale={"s": s}), (a, b, s))
    assert torch.autograd.gradcheck(lambda x: student["double"](x)["parts"][0], (a,))
    jacobian = torch.autograd.functional.jacobian(lambda a: mix((a, b), scale={"s": s}).sum(), a)
    assert torch.allclose(jacobian, torch.autograd.grad((torch.tanh(a @ b) * s).sum(), a)[0])


def test_a_graph_can_be_used_twice_and_is_forgotten_afterwards(student):
    x = torch.ones(3, requires_grad=True)
    y = student["same_object"](x)
    (y * 2).sum().backward(retain_graph=True)
    (y * 3).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 5.0))
    del y
    assert student._graphs


def test_what_the_student_detaches_has_no_gradient(student):
    x = torch.ones(2, requires_grad=True)
    constant, live = student["detached"](x)
    assert not constant.requires_grad and live.requires_grad
    with torch.no_grad():
        assert not any(part.requires_grad for part in student["detached"](x))
    assert not student["detached"](torch.ones(2))[1].requires_grad


def test_an_unused_input_has_gradient_zero(student):
    x, y = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    grads = torch.autograd.grad(student["unused"](x, y).sum(), (x, y))
    assert torch.equal(grads[1], torch.zeros(3))


def test_double_backward_is_refused(student):
    x = torch.ones(2, requires_grad=True)
    (first,) = torch.autograd.grad(student["double"](x)["sum"].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        first.sum().backward()


# callables


def test_course_functions_go_by_name_and_students_callables_by_handle(student):
    a, b = torch.randn(3, 2), torch.randn(3, 2)
    assert torch.equal(student["weigh"](a, b, kernels.gaussian_kernel), kernels.gaussian_kernel(a, b))
    kernel = student["make_kernel"](2)
    assert torch.allclose(kernel(a, b), (a * b).sum(-1) / 2)
    assert torch.allclose(student["weigh"](a, b, kernel), (a * b).sum(-1) / 2)
    assert student["apply"](student["same_object"], 3) == 3


@pytest.mark.parametrize("value", [lambda a: a, torch.softmax, textwrap.dedent, object()])
def test_other_callables_cannot_be_sent(student, value):
    with pytest.raises(TypeError, match="cannot be sent"):
        student["apply"](value, 1)


def test_a_course_function_can_run_in_the_box(student):
    a = torch.randn(3, 2)
    assert torch.equal(student.run(kernels.laplace_kernel, a, b=a), torch.ones(3))


# modules


def test_a_module_proxy_does_what_a_module_does(student):
    layer = student["Layer"](4).double().eval()
    assert isinstance(layer, ModuleProxy)
    assert layer.parameter_shapes() == {"never": (1,), "lin.weight": (4, 4), "lin.bias": (4,)}
    assert layer.n_heads == 2 and layer.table == {"a": [1, 2]} and layer.training is False
    weights = {name: torch.randn_like(value) for name, value in layer.state_dict().items()}
    layer.load_state_dict(weights)
    x = torch.randn(3, 4, dtype=torch.float64)
    expected = x @ weights["lin.weight"].T + weights["lin.bias"]
    assert torch.allclose(layer(x, mask=None), expected)
    assert torch.allclose(layer.encode(x), x + 1)
    assert layer.train() is layer and layer.training is True
    assert layer.float().state_dict()["lin.bias"].dtype == torch.float32


def test_parameters_get_gradients_from_a_backward_pass_in_the_judge(student):
    layer = student["Layer"](2).eval()
    out = layer(torch.ones(3, 2))
    out.sum().backward()
    grads = layer.grads()
    assert torch.equal(grads["lin.bias"], torch.full((2,), 3.0)) and grads["never"] is None
    layer(torch.ones(3, 2)).sum().backward()
    assert torch.equal(layer.grads()["lin.bias"], torch.full((2,), 6.0))
    layer.zero_grad()
    assert layer.grads()["lin.bias"] is None


def test_wrong_weights_are_the_students_error(student):
    layer = student["Layer"](2)
    with raises(RuntimeError):
        layer.load_state_dict({"other": torch.ones(1)})
    layer.load_state_dict({"lin.bias": torch.ones(2)}, strict=False)


def test_objects_travel_back_in(student):
    layer, cache = student["Layer"](2), student["Cache"]()
    for _ in range(3):
        _, cache = student["step"](layer, torch.ones(1, 2), cache)
    assert len(cache.items) == 3
    assert isinstance(student["remember"](layer), float)


def test_handles_that_nobody_holds_are_dropped():
    channel = LoopbackChannel()
    student = Student(channel)
    student.load([{"id": "c", "source": "def f():\n    return object()\ndef g():\n    return 1"}])
    for _ in range(20):
        student["f"]()
    student["g"]()
    assert len(channel._server._handles) == 0


# names
