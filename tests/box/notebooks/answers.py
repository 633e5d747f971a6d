"""What the student in test_proxies.py and test_odd_answers.py hands in."""

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
    raise ValueError("bad\n\x1b[31mshape in /home/someone/secret/file.py")


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
        "numpy": np.arange(6, dtype=">f4").reshape(2, 3),
        "npbool": np.bool_(True),
        "scalar": np.float64(1.5),
        "int": np.int32(3),
        "sympy": sympy.Rational(1, 4),
        "symint": sympy.Integer(3),
        "symmatrix": sympy.Matrix([[1, 2]]),
        "oo": sympy.oo,
        "set": {1, 2},
        "frozen": frozenset({(1, 2)}),
        "named": Pair(1, torch.ones(2)),
        "size": torch.ones(2, 3).shape,
        "range": range(3),
        "view": {"a": 1}.keys(),
        "fraction": Fraction(1, 2),
        "big": 2**90,
        "nan": math.nan,
        "param": nn.Parameter(torch.ones(2)),
        "objects": np.array([1, "a", None], dtype=object),
        "dtype": torch.float16,
        "sparse": torch.eye(2).to_sparse(),
        "strided": torch.arange(6).reshape(2, 3).T,
        "complex": 1 + 2j,
        "tensor_key": {torch.tensor(1): 2},
        "point": Point(),
        "surrogate": "\ud800",
        "keys": {np.int64(4): 1},
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
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__

    def __sub__(self, other):
        return 0.0


def lie():
    return torch.zeros(3).as_subclass(Liar)


def lying_number():
    return LyingNumber(4.0)


def leave():
    raise SystemExit(3)


def nasty_error():
    class Nasty(Exception):
        def __str__(self):
            raise KeyboardInterrupt

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
