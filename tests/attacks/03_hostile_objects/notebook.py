# %% Results that fight back while they are turned into data.
import collections
import decimal
import fractions
import itertools

import numpy as np
import torch


class Wide(tuple):
    __len__ = lambda self: 1
    __iter__ = lambda self: itertools.repeat(1.0, 10**6)


class Fickle(list):
    """Another value at every look."""

    count = itertools.count()
    __iter__ = lambda self: iter([0.1 * next(self.count)] * 3)


class Masked:
    __class__ = property(lambda self: torch.Tensor)


class Exploding:
    __class__ = property(lambda self: 1 / 0)
    __bool__ = __len__ = __iter__ = __repr__ = __str__ = __hash__ = lambda self: (_ for _ in ()).throw(SystemExit)


class Growing(collections.UserDict):
    def items(self):
        for i in itertools.count():
            yield i, i


class Meta(type):
    def __instancecheck__(cls, other):
        raise KeyboardInterrupt

    __mro__ = property(lambda cls: (int, float, torch.Tensor))


class Odd(metaclass=Meta):
    pass


loop = []
loop.append(loop)
deep = ()
for _ in range(10**4):
    deep = (deep,)
results = [
    Wide([1.0]), Fickle([1.0]), Masked(), Exploding(), Odd(), loop, deep, iter(range(3)), (x for x in range(3)),
    fractions.Fraction(10**400, 1), decimal.Decimal("1e999999"), decimal.Decimal("sNaN"), np.array([object()]), np.float128(1) if hasattr(np, "float128") else 1,
    np.zeros(3, dtype="U10"), np.datetime64("now"), torch.zeros(3).to_sparse(), torch.empty(3, device="meta"), torch.zeros(2**20).expand(2**10, 2**20),
    torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), type("X", (), {}), memoryview(b"x"),
    slice(None), Ellipsis, NotImplemented, b"bytes", range(10**12), {1: 2, True: 3}, {Exploding: 1}, [Exploding()] * 3, torch.Generator(), torch.device("cpu"),
]
turn = itertools.count()


def row_weights(scores, blocked=None):
    return results[next(turn) % len(results)]


def make_kernel(width):
    return lambda x, y: [row_weights(x), row_weights(x), row_weights(x)]


def describe(values):
    return {str(i): row_weights(None) for i in range(3)} | {"mean": row_weights(None), "trend": row_weights(None)}
