"""Proxies: a test sees the student's objects as if they were its own, and only data passes."""

import math
import socket
import subprocess
import sys
import textwrap
import threading

import pytest
import torch

from autograder.box import protocol, server
from autograder.box.channel import LoopbackChannel, SocketChannel
from autograder.judge.expect import raises
from autograder.judge.faults import StudentRaised
from autograder.judge.proxies import ModuleProxy, Student
from autograder.judge.verdicts import StudentCrash, StudentError, StudentMemory, StudentTimeout
from course_utils import kernels
from course_utils.checking import NotAnswered, Wrong

NOTEBOOK = """
import math
from collections import namedtuple
from dataclasses import dataclass
import numpy as np
import torch
from torch import nn

def double(x, y=1.0):
    return {"sum": 2 * x + y, "parts": [x, (y,)]}

def mix(pair, *, scale):
    a, b = pair
    return torch.tanh(a @ b) * scale["s"]

def detached(x):
    return x.detach() * 2, x * 3

def unused(x, y):
    return x * 2

def weigh(x, y, kernel):
    return kernel(x, y)

def make_kernel(d):
    return lambda a, b: (a * b).sum(-1) / d

def apply(function, *args):
    return function(*args)

def clobber(q, weights):
    weights["W"] += 1
    return q

def clobber_quietly(q):
    q.data.numpy()[0] = 7
    return q.sum()

def same_object(x):
    return x

def stub(x):
    raise NotImplementedError("q1_1: write softargmax")

def uses_stub(x):
    return stub(x) + 1

def breaks(x):
    y = x + 1
    raise ValueError("bad\\n\\x1b[31mshape in /home/someone/secret/file.py")

def torch_complains(x):
    return torch.zeros(2, 3) @ torch.zeros(2, 3)

def greedy():
    return torch.empty(10**15)

class Layer(nn.Module):
    def __init__(self, d, n_heads=2):
        if d % n_heads:
            raise ValueError("d must be divisible")
        super().__init__()
        self.n_heads = n_heads
        self.table = {"a": [1, 2]}
        self.lin = nn.Linear(d, d)
        self.drop = nn.Dropout(0.5)
        self.never = nn.Parameter(torch.zeros(1))

    def forward(self, x, mask=None):
        return self.drop(self.lin(x))

    def encode(self, x):
        return x + 1

class Cache:
    def __init__(self):
        self.items = []

def step(layer, x, cache):
    cache.items.append(x)
    return layer.lin(x), cache

ANSWER = {"k": [1, 2.5]}

@dataclass
class Point:
    x: int = 3

Pair = namedtuple("Pair", "a b")

def odd(kind):
    import sympy
    from fractions import Fraction
    return {
        "numpy": np.arange(6, dtype=">f4").reshape(2, 3), "npbool": np.bool_(True),
        "scalar": np.float64(1.5), "int": np.int32(3),
        "sympy": sympy.Rational(1, 4), "symint": sympy.Integer(3), "symmatrix": sympy.Matrix([[1, 2]]), "oo": sympy.oo,
        "set": {1, 2}, "frozen": frozenset({(1, 2)}), "named": Pair(1, torch.ones(2)), "size": torch.ones(2, 3).shape,
        "range": range(3), "view": {"a": 1}.keys(), "fraction": Fraction(1, 2), "big": 2**90, "nan": math.nan,
        "param": nn.Parameter(torch.ones(2)), "objects": np.array([1, "a", None], dtype=object), "dtype": torch.float16,
        "sparse": torch.eye(2).to_sparse(), "strided": torch.arange(6).reshape(2, 3).T, "complex": 1 + 2j,
        "tensor_key": {torch.tensor(1): 2}, "point": Point(), "surrogate": "\\ud800", "keys": {np.int64(4): 1},
    }[kind]

def endless():
    value = []
    value.append(value)
    return value

def enormous():
    return torch.zeros(2**28, dtype=torch.uint8).expand(4, -1)

def no_values():
    return torch.empty(2, device="meta")

class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in (torch.allclose, torch.equal):
            return True
        return torch.ones(2)

class LyingNumber(float):
    def __eq__(self, other): return True
    __hash__ = float.__hash__
    def __sub__(self, other): return 0.0

def lie():
    return torch.zeros(3).as_subclass(Liar)

def lying_number():
    return LyingNumber(4.0)

def leave():
    raise SystemExit(3)

def nasty_error():
    class Nasty(Exception):
        def __str__(self): raise KeyboardInterrupt
    raise Nasty()

class Special(ValueError):
    pass

def special():
    raise Special("no")

def say(n):
    print("x" * n)

def noise():
    return torch.rand(1).item() + np.random.rand() + __import__("random").random()

def remember(model):
    return sum(p.sum() for p in model.parameters()).item()
"""


def over_socket(source):
    """A student whose server runs in a process of its own."""
    ours, theirs = socket.socketpair()
    code = f"import socket; from autograder.box.server import serve; serve(socket.socket(fileno={theirs.fileno()}))"
    process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()])
    theirs.close()
    channel = SocketChannel(ours)
    student = Student(channel, wall=60)
    student.load([{"id": "answers", "source": source}])
    return student, lambda: (channel.close(), process.wait())


@pytest.fixture(params=["loopback", "socket"], scope="module")
def student(request):
    if request.param == "loopback":
        channel = LoopbackChannel()
        student = Student(channel)
        assert [outcome.fault for outcome in student.load([{"id": "answers", "source": NOTEBOOK}])] == [None]
        yield student
        channel.close()
    else:
        student, close = over_socket(NOTEBOOK)
        yield student
        close()


def load(*sources, **extra):
    student = Student(LoopbackChannel())
    cells = [{"id": f"c{i}", "source": textwrap.dedent(source), **extra} for i, source in enumerate(sources)]
    return student, student.load(cells)


# functions


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


def test_a_missing_name_is_not_answered(student):
    with pytest.raises(NotAnswered, match="nowhere"):
        student["nowhere"]
    assert "double" in student and "nowhere" not in student
    kinds = {"double": "callable", "Layer": "class", "ANSWER": "object"}
    assert student.kinds([*kinds, "nowhere"]) == kinds
    assert student["ANSWER"] == {"k": [1, 2.5]}


@pytest.mark.parametrize("name", ["stub", "uses_stub"])
def test_a_stub_is_not_answered(student, name):
    with pytest.raises(NotAnswered) as caught:
        student[name](1)
    assert caught.value.question == "q1_1"


def test_torchs_own_not_implemented_is_an_error():
    student, _ = load("import torch\ndef f():\n    return torch.nn.functional.gelu(torch.ones(2).long())")
    with pytest.raises(StudentRaised, match="NotImplementedError"):
        student["f"]()


# in place


def test_changing_an_input_in_place_is_found_out(student):
    x, weights = torch.ones(2), {"W": torch.ones(2), "V": torch.ones(1)}
    with pytest.raises(Wrong, match=r"`clobber` changed its input `weights\['W'\]` in place"):
        student["clobber"](x, weights)
    assert torch.equal(weights["W"], torch.ones(2))
    with pytest.raises(Wrong, match="input `q`"):
        student["clobber_quietly"](x)
    assert torch.isnan(student["same_object"](torch.tensor(math.nan)))


# errors


def test_an_error_says_where_in_the_students_code(student):
    with pytest.raises(StudentRaised) as caught:
        student["breaks"](1)
    error = caught.value
    assert error.type_name == "ValueError" and isinstance(error, StudentError)
    assert str(error).startswith("ValueError: bad")
    assert "in your cell answers, line 50: `raise ValueError(" in str(error)
    assert "\n" not in str(error) and "\x1b" not in str(error) and "/home" not in str(error).split(" (in")[0]


def test_the_line_is_the_students_even_when_torch_raises(student):
    with pytest.raises(StudentRaised, match=r"line \d+: `return torch.zeros\(2, 3\) @"):
        student["torch_complains"](1)


def test_too_much_memory_is_memory(student):
    with pytest.raises(StudentMemory):
        student["greedy"]()


def test_expected_exceptions(student):
    with raises(ValueError):
        student["Layer"](5, n_heads=2)
    with raises(ValueError):
        student["special"]()
    with pytest.raises(Wrong, match="raised nothing"), raises(ValueError):
        student["double"](torch.ones(1))
    with pytest.raises(Wrong, match="should raise KeyError, but raised ValueError: d must be"), raises(KeyError):
        student["Layer"](5)


def test_an_exception_that_fights_back_is_still_reported(student):
    if isinstance(student._channel, LoopbackChannel):
        pytest.skip("only trusted code runs in this process")
    with pytest.raises(StudentRaised, match="SystemExit: 3"):
        student["leave"]()
    with pytest.raises(StudentRaised, match="Nasty"):
        student["nasty_error"]()


# odd results


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("numpy", torch.arange(6.0).reshape(2, 3)),
        ("scalar", 1.5),
        ("int", 3),
        ("npbool", True),
        ("sympy", 0.25),
        ("symint", 3),
        ("symmatrix", [[1, 2]]),
        ("oo", math.inf),
        ("set", {1, 2}),
        ("frozen", {(1, 2)}),
        ("named", (1, torch.ones(2))),
        ("size", (2, 3)),
        ("range", [0, 1, 2]),
        ("view", ["a"]),
        ("fraction", 0.5),
        ("big", 2**90),
        ("param", torch.ones(2)),
        ("objects", [1, "a", None]),
        ("dtype", torch.float16),
        ("sparse", torch.eye(2)),
        ("strided", torch.arange(6).reshape(2, 3).T),
        ("complex", 1 + 2j),
        ("tensor_key", {1: 2}),
        ("keys", {4: 1}),
        ("surrogate", "?"),
    ],
)
def test_odd_results_become_data(student, kind, expected):
    got = student["odd"](kind)
    assert type(got) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert got.dtype == expected.dtype and torch.equal(got, expected)
    elif kind == "named":
        assert torch.equal(got[1], expected[1])
    else:
        assert got == expected


def test_nan_and_plain_objects_pass_too(student):
    assert math.isnan(student["odd"]("nan"))
    assert student["odd"]("point").x == 3


@pytest.mark.parametrize("name", ["endless", "enormous", "no_values"])
def test_what_cannot_pass_is_the_students_error(student, name):
    with pytest.raises(StudentError, match="not data|too large"):
        student[name]()


def test_a_tensor_that_lies_arrives_as_its_bytes(student):
    got = student["lie"]()
    assert type(got) is torch.Tensor and torch.equal(got, torch.zeros(3)) and not torch.equal(got, torch.ones(3))
    number = student["lying_number"]()
    assert type(number) is float and number == 4.0 and number != 5.0


# cells


def test_a_failing_cell_does_not_stop_the_next():
    student, outcomes = load("x = 1", "def f(:\n", "y = x / 0", "z = x + 1\nprint('z', z)")
    assert [type(outcome.fault) for outcome in outcomes] == [type(None), StudentRaised, StudentRaised, type(None)]
    assert "in your cell c1, line 1" in str(outcomes[1].fault)
    assert "in your cell c2, line 1: `y = x / 0`" in str(outcomes[2].fault)
    assert student["z"] == 2 and outcomes[3].printed == "z 2\n"


def test_kept_names_survive_later_cells():
    student = Student(LoopbackChannel())
    first = {"id": "a", "source": "def f(): return 1", "keep": ["f", "g"]}
    student.load([first, {"id": "b", "source": "def f(): return 2\nh = 3"}])
    assert student["f"]() == 1 and student["h"] == 3 and "g" not in student


def test_notebook_habits_work():
    student, outcomes = load(
        """
        import inspect, warnings
        import matplotlib.pyplot as plt
        from dataclasses import dataclass
        @dataclass
        class P:
            x: "int" = 1
        warnings.warn("careful")
        plt.plot([1, 2]); plt.show()
        display(P())
        def f():
            return inspect.getsource(f)
        """
    )
    assert outcomes[0].fault is None and outcomes[0].printed == ""
    assert "return inspect.getsource" in student["f"]()


def test_printed_text_is_capped(student):
    student.printed = ""
    student["say"](5)
    assert student.printed == "xxxxx\n"
    student["say"](10**7)
    student["say"](10**7)
    assert len(student.printed) <= 64 * 1024


def test_the_students_randomness_is_seeded(student):
    values = []
    for seed in (1, 1, 2):
        student.seed(seed)
        values.append(student["noise"]())
    assert values[0] == values[1] != values[2]


# a box that does not answer


def dishonest(reply):
    """A channel whose other end reads one request and then does as `reply` says."""
    ours, theirs = socket.socketpair()

    def run():
        with theirs:
            frame = server._read_frame(theirs)
            reply(theirs, *protocol.unpack(frame, protocol.TO_BOX)[:1])

    thread = threading.Thread(target=run)
    thread.start()
    return SocketChannel(ours), thread


def good(header, value, sequence=None):
    sequence = header.sequence if sequence is None else sequence
    return protocol.pack({"value": value}, header.nonce, sequence, protocol.TO_JUDGE)


@pytest.mark.parametrize(
    "reply",
    [
        lambda s, h: None,
        lambda s, h: s.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 9),
        lambda s, h: s.sendall(good(h, 1)[:-1]),
        lambda s, h: s.sendall(good(h, 1, sequence=h.sequence + 1)),
        lambda s, h: s.sendall(protocol.pack({"value": 1}, b"guessed!", h.sequence, protocol.TO_JUDGE)),
        lambda s, h: s.sendall(protocol.pack([1], h.nonce, h.sequence, protocol.TO_JUDGE)),
        lambda s, h: s.sendall(protocol.pack({"value": 1, "error": 2}, h.nonce, h.sequence, protocol.TO_JUDGE)),
        lambda s, h: s.sendall(protocol.HEADER.pack(protocol.MAGIC, h.nonce, h.sequence, 2**31, 2**62)),
        lambda s, h: s.sendall(protocol.pack({"error": 5}, h.nonce, h.sequence, protocol.TO_JUDGE)),
    ],
)
def test_whatever_is_not_an_answer_is_a_crash(reply):
    channel, thread = dishonest(reply)
    with pytest.raises(StudentCrash):
        Student(channel, wall=10).kinds(["x"])
    thread.join()
    channel.close()


def test_an_extra_reply_is_found_before_the_next_request():
    def reply(connection, header):
        connection.sendall(good(header, {}) + good(header, {"x": "callable"}))
        release.wait(10)

    release = threading.Event()
    channel, thread = dishonest(reply)
    student = Student(channel, wall=10)
    assert student.kinds(["x"]) == {}
    with pytest.raises(StudentCrash):
        student.kinds(["x"])
    release.set()
    thread.join()
    channel.close()


def test_silence_is_a_timeout_and_the_channel_stays_broken():
    release = threading.Event()
    channel, thread = dishonest(lambda s, h: release.wait(10))
    student = Student(channel, wall=0.05)
    for _ in range(2):
        with pytest.raises(StudentTimeout):
            student.kinds(["x"])
    release.set()
    thread.join()
    channel.close()


@pytest.mark.parametrize(
    "value, extra",
    [
        (torch.ones(2), {"call": 1, "differentiable": [5]}),
        (torch.ones(2), {"call": 1, "differentiable": [0, 0]}),
        (torch.ones(2), {"call": 1, "differentiable": "x"}),
        (torch.ones(2).long(), {"call": 1, "differentiable": [0]}),
        (torch.ones(2), {"call": "x", "differentiable": [0]}),
        (1, {"mutated": "x"}),
        (1, {"mutated": [3]}),
        (1, {"printed": 3}),
    ],
)
def test_forged_bookkeeping_is_a_crash(value, extra):
    class Forger:
        def request(self, message, wall=None):
            return {"value": {"f": "callable"}} if message["op"] == "names" else {"value": value, **extra}

    with pytest.raises(StudentCrash):
        Student(Forger())["f"](torch.ones(1, requires_grad=True))


@pytest.mark.parametrize("method", ["state_dict", "grads", "parameter_shapes"])
@pytest.mark.parametrize("value", [[], {"weight": "heavy"}, {3: torch.ones(1)}])
def test_forged_weights_are_a_crash(method, value):
    class Forger:
        def request(self, message, wall=None):
            replies = {"names": {"M": "class"}, "call": protocol.Handle(1, "module"), "method": value}
            return {"value": replies[message["op"]]}

    with pytest.raises(StudentCrash):
        getattr(Student(Forger())["M"](), method)()


def test_a_forged_gradient_is_a_crash():
    class Forger:
        def request(self, message, wall=None):
            if message["op"] == "call":
                return {"value": torch.ones(2), "call": 1, "differentiable": [0]}
            return {"value": {"f": "callable"} if message["op"] == "names" else [torch.ones(7)]}

    x = torch.ones(1, requires_grad=True)
    with pytest.raises(StudentCrash):
        Student(Forger())["f"](x).sum().backward()


def test_a_scratch_cell_neither_replaces_nor_removes_an_answer() -> None:
    student = Student(LoopbackChannel())
    answer = {"id": "q1_1", "source": "def f(x):\n    return x + 1\ndef g(x):\n    return f(x)", "keep": ["f"]}
    student.load([answer, {"id": "cell 2", "source": "def f(x):\n    return 0"}, {"id": "cell 3", "source": "del f"}])
    assert student["f"](1) == 2 and student["g"](1) == 2


def test_magics_and_shell_lines_do_nothing() -> None:
    student = Student(LoopbackChannel())
    source = "get_ipython().run_line_magic('matplotlib', 'inline')\nx = get_ipython().getoutput('ls')\ny = 3"
    (outcome,) = student.load([{"id": "cell 1", "source": source}])
    assert outcome.fault is None and student["y"] == 3
