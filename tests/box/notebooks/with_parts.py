"""Student code that uses parts: the same whether they are its own or stand-ins."""

import copy

import torch
from torch import nn


def values(x):
    first, rest = both(x)
    return [scaled(x), scaled(x, by=3.0), first, rest["arg"], rest["n"], rest["log"]]


def gradients(x):
    x = x.detach().requires_grad_()
    first, rest = both(scaled(x * 2))
    (first.sum() + (rest["log"] ** 2).sum()).backward()
    return x.grad


def jacobians(x):
    return [torch.func.jacrev(scaled)(x), torch.autograd.functional.jacobian(lambda x: scaled(x) * x, x)]


def refused():
    try:
        scaled(torch.ones(2), by=0)
    except ValueError as error:
        return str(error)


class Block(nn.Module):
    """A module of the student's around one of the course's."""

    def __init__(self, dim, rate=0.0):
        super().__init__()
        self.inner = Layer(dim, rate)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        return self.out(self.inner(x) + self.inner.half(x))


def through_a_block(x, rate=0.0):
    torch.manual_seed(3)
    block = Block(x.shape[-1], rate)
    states = [dict(block.state_dict()), block.inner.dim, repr(block.inner.linear)]
    twin = copy.deepcopy(block).double()
    before = block(x)
    before.square().sum().backward()
    grads = {name: p.grad for name, p in block.named_parameters()}
    with torch.no_grad():
        block.inner.linear.weight.mul_(2)
    block.eval()
    return [states, before, grads, block(x), twin(x.double()), block.inner.linear(x), torch.rand(2)]


def changed_parts(x):
    torch.manual_seed(4)
    model, heard = Model(4), []
    ids = x.argsort(-1)
    hook = model.layers[1].register_forward_hook(lambda module, args, out: heard.append(out.detach()))
    other = model.embed.register_forward_pre_hook(lambda module, args: heard.append(args[0]))
    out = model(ids)
    out.square().sum().backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    hook.remove(), other.remove()
    model.layers[0] = nn.Identity()
    return [out, heard, grads, model(ids), [m for m in dict(model.named_modules()) if "drop" in m]]


class Loader:
    def __init__(self, seed=0):
        self.ids = torch.randint(7, (5, 2, 3), generator=torch.Generator().manual_seed(seed))

    def __iter__(self):
        return ((ids, ids.flip(-1)) for ids in self.ids)

    def __len__(self):
        return 5


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(7, 3), nn.Linear(3, 7)
        self.calls = 0

    def forward(self, ids):
        self.calls += 1
        return self.out(self.table(ids))


def training(with_optimizer):
    found = []
    for make in (lambda: Model(4), Own):
        torch.manual_seed(5)
        model = make()
        given = {"optimizer": torch.optim.Adam(model.parameters(), 0.05)} if with_optimizer else {}
        losses = trained(model, Loader(), **given)
        found += [losses, dict(model.state_dict()), model.training, getattr(model, "calls", None)]
    return found


def handed_back(x):
    torch.manual_seed(6)
    layer = copied(Layer(4))
    return [type(layer).__name__, layer(x), called(lambda x: x.square() + x, x)]


def spied():
    """Everything about the parts that can be read here."""
    import gc
    import linecache
    import sys

    seen = [repr(linecache.cache), repr(vars(scaled)), repr(scaled.__code__.co_consts), repr(Layer.__dict__)]
    for thing in gc.get_objects():
        try:
            if isinstance(thing, str | bytes) or type(thing).__name__ == "code":
                seen.append(repr(getattr(thing, "co_consts", thing)))
            elif isinstance(thing, dict | list | tuple):
                seen.append(
                    repr(
                        [
                            item
                            for item in (thing.values() if isinstance(thing, dict) else thing)
                            if isinstance(item, str)
                        ]
                    )
                )
        except Exception:
            continue
    seen += [repr(frame.f_locals) for frame in sys._current_frames().values()]
    return any("MARK-OF-" + "THE-REFERENCE" in text for text in seen)


class Pretender(nn.Module):
    """What is no tensor, and notes what is done with it."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def tanh(self):
        self.noted.append("tanh")
        return self

    def forward(self, *args):
        self.noted.append(args)


def pretended():
    asked = Pretender()
    for given in (asked, [asked], asked.tanh, object()):
        try:
            scaled(given)
        except TypeError as error:
            asked.noted.append("refused")
    return asked.noted


def asked_for_more():
    """What the other side says to requests that no stand-in makes."""
    peer, told = scaled.part_peer, []
    number = scaled.part_number
    layer = Layer(2)
    for message in (
        {"do": "get", "target": number, "what": "__code__", "args": []},
        {"do": "step", "target": number, "groups": [], "grads": []},
        {"do": "vjp", "graph": 99, "tensors": []},
        {"do": "nothing"},
        {"do": "call", "target": 10**6},
    ):
        try:
            told.append(peer.ask(message))
        except Exception as error:
            told.append(type(error).__name__)
    for method in ("__init__", "_call_impl", "register_forward_hook", "state_dict", "__class__"):
        try:
            told.append(peer.call(layer, method, (), {}))
        except Exception as error:
            told.append(str(error))
    return told


def watched(x):
    return scaled(scaled(x) @ x.mT @ x)


def watched_layer(x):
    return Layer(4)(scaled(x) @ x.mT @ x)


def endless(x):
    while True:
        scaled(x)


LAYER = Layer(4)


def plain_layer(x):
    return LAYER(x)


def watched_weights(x):
    """The watched numbers as weights."""
    weights = LAYER.linear._parameters
    before, weights["weight"] = weights["weight"], x
    result = LAYER(x)
    weights["weight"] = before
    return result
