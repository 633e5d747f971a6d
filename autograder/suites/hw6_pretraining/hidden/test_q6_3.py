"""Hidden checks of q6_3: BERT."""

import pytest
import torch

from autograder.suites.devices import device_ready
from autograder.suites.hw6_pretraining.berts import Bert, lively, put_in, shapes
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error

F64 = torch.float64


class Case:
    """A model with lively weights, and an input with padding."""

    def __init__(
        self, BERT, rng, V=23, D=12, heads=3, d_ff=20, layers=2, longest=9, dtype=F64, lengths=(7, 4, 1), dropout=0.0
    ):
        self.weights = {name: value.to(dtype) for name, value in lively(rng, V, D, d_ff, layers, longest).items()}
        self.model = BERT(V, D, heads, d_ff, layers, longest, dropout)
        self.model = self.model.double() if dtype == F64 else self.model.float()
        self.model.eval()
        put_in(self.model, self.weights)
        N = max(lengths)
        self.ids = torch.randint(V, (len(lengths), N), generator=rng)
        self.segments = torch.randint(2, self.ids.shape, generator=rng)
        self.padding = torch.arange(N) >= torch.tensor(lengths)[:, None]
        self.right = Bert(self.weights, heads)
        self.V, self.D = V, D


def _forward(model, *given):
    got = model(*given)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward gives the pair (word_logits, pair_logits)")
    return got


@pytest.mark.weight(3)
@pytest.mark.parametrize("kind", ["two-layers", "one-layer", "three-layers", "no-layers"])
def test_agrees(BERT, rng, kind):
    """With weights put in by name it gives the published model's numbers, for other sizes too."""
    sizes = {
        "two-layers": {},
        "one-layer": {"V": 9, "D": 8, "heads": 1, "d_ff": 5, "layers": 1, "longest": 7},
        "three-layers": {"D": 16, "heads": 4, "layers": 3},
        "no-layers": {"layers": 0},
    }[kind]
    case = Case(BERT, rng, **sizes)
    h, real = case.right.encode(case.ids, case.segments, case.padding), ~case.padding
    got = tensor(
        case.model.encode(case.ids, case.segments, case.padding), "encode's result", (*case.ids.shape, case.D), F64
    )
    same(got[real], h[real], "encode's result at real tokens")
    words, pair = _forward(case.model, case.ids, case.segments, case.padding)
    right = case.right(case.ids, case.segments, case.padding)
    same(tensor(words, "the word logits", (*case.ids.shape, case.V), F64)[real], right[0][real], "the word logits")
    same(tensor(pair, "the pair logits", (len(case.ids), 2), F64), right[1], "the pair logits")


def test_without_segments_or_mask(BERT, rng):
    """segments=None means all 0, and no mask means no padding; both may be given by name."""
    case = Case(BERT, rng)
    zeros = torch.zeros_like(case.ids)
    for given, right in (
        ({}, (zeros, None)),
        ({"segments": case.segments}, (case.segments, None)),
        ({"key_padding_mask": case.padding}, (zeros, case.padding)),
    ):
        words, pair = case.model(case.ids, **given)
        expected = case.right(case.ids, *right)
        real = ~case.padding
        same(words[real], expected[0][real], f"the word logits with {sorted(given) or 'ids alone'}")
        same(pair, expected[1], f"the pair logits with {sorted(given) or 'ids alone'}")


@pytest.mark.weight(2)
def test_padding_is_not_seen(BERT, rng):
    """Neither the content nor the amount of padding moves a real token."""
    case = Case(BERT, rng)
    real = ~case.padding
    before = case.model(case.ids, case.segments, case.padding)
    other = torch.where(case.padding, torch.randint(case.V, case.ids.shape, generator=rng), case.ids)
    after = case.model(other, torch.where(case.padding, 1 - case.segments, case.segments), case.padding)
    more = [
        torch.cat([x, fill], 1)
        for x, fill in (
            (case.ids, case.ids[:, :2]),
            (case.segments, case.segments[:, :2]),
            (case.padding, torch.ones(len(case.ids), 2, dtype=torch.bool)),
        )
    ]
    longer = case.model(*more)
    for got, what in ((after, "another content of"), (longer, "more")):
        same(got[0][:, : real.shape[1]][real], before[0][real], f"the word logits with {what} padding")
        same(got[1], before[1], f"the pair logits with {what} padding")


def test_longest(BERT, rng):
    """max_len tokens are fine, one more is a ValueError, in encode and in forward."""
    case = Case(BERT, rng, lengths=(9, 3))
    same(case.model(case.ids)[1], case.right(case.ids)[1], "the pair logits of max_len tokens")
    long = torch.randint(case.V, (2, 10), generator=rng)
    expect_value_error("max_len + 1 tokens", case.model, long)
    expect_value_error("max_len + 1 tokens in encode", case.model.encode, long)
    expect_value_error(
        "max_len + 1 tokens, the last padding,", case.model, long, None, torch.arange(10).expand(2, -1) > 5
    )


@pytest.mark.weight(2)
def test_gradients(BERT, rng):
    """Both heads have the gradients of the published model; the tied table gets those of both its uses."""
    case = Case(BERT, rng)
    weights = {name: value.clone().requires_grad_() for name, value in case.weights.items()}
    mix = torch.randn(*case.ids.shape, case.V, generator=rng, dtype=F64).masked_fill(case.padding[..., None], 0)
    for part in (0, 1):
        case.model.zero_grad()
        out = case.model(case.ids, case.segments, case.padding)[part]
        right = Bert(weights, 3)(case.ids, case.segments, case.padding)[part]
        factor = mix if part == 0 else torch.tensor([1.0, -2.0], dtype=F64)
        (out * factor).sum().backward()
        expected = torch.autograd.grad((right * factor).sum(), list(weights.values()), allow_unused=True)
        grads = case.model.grads()
        for name, value in zip(weights, expected, strict=True):
            got, want = grads.get(name), torch.zeros_like(weights[name]) if value is None else value
            same(
                torch.zeros_like(want) if got is None else got,
                want,
                f"the gradient of `{name}` from the {('word', 'pair')[part]} logits",
                rtol=1e-6,
                atol=1e-8,
            )


def test_single_precision(BERT, rng):
    """float32 weights give float32 results that agree too."""
    case = Case(BERT, rng, dtype=torch.float32)
    words, pair = case.model(case.ids, case.segments, case.padding)
    right = Bert({name: value.double() for name, value in case.weights.items()}, 3)(
        case.ids, case.segments, case.padding
    )
    same(
        tensor(words, "the word logits", dtype=torch.float32)[~case.padding].double(),
        right[0][~case.padding],
        "the word logits in float32",
        rtol=1e-3,
        atol=1e-4,
    )
    same(
        tensor(pair, "the pair logits", dtype=torch.float32).double(),
        right[1],
        "the pair logits in float32",
        rtol=1e-3,
        atol=1e-4,
    )


def test_first_loss(BERT, rng):
    """A fresh model has a word loss of ln V: its weights start as N(0, 0.02^2)."""
    model = BERT(200, 48, 4, 96, 2, 16)
    state = model.state_dict()
    for name, shape in shapes(200, 48, 96, 2, 16).items():
        check(name in state, f"there is no parameter `{name}`")
        value = state[name].double()
        if len(shape) > 1:
            spread = value.pow(2).mean().sqrt().item()
            check(0.0125 < spread < 0.03, f"`{name}` starts with numbers of size {spread:.4f}, expected 0.02")
        elif name.endswith("bias"):
            check((value == 0).all(), f"`{name}` does not start at 0")
    model.eval()
    ids = torch.randint(200, (8, 16), generator=rng)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(ids)[0].flatten(0, 1), ids.flatten()).item()
    check(4.6 < loss < 6.2, f"the first word loss is {loss:.2f}, expected about ln 200 = 5.30")


def test_dropout(BERT, rng):
    """Dropout works in training and is off in evaluation; the embeddings' sum is dropped out too."""
    case = Case(BERT, rng, layers=0, dropout=0.5)
    same(
        case.model.encode(case.ids),
        case.right.encode(case.ids),
        "encode's result in evaluation mode with dropout 0.5",
    )
    case.model.train()
    with torch.no_grad():
        got = case.model.encode(case.ids)
    share = (got == 0).double().mean().item()
    check(
        0.25 < share < 0.75,
        f"in training mode with dropout=0.5 and no layers {share:.0%} of encode's "
        f"numbers are 0, "
        "expected about half: the sum of the embeddings is dropped out after its norm",
    )


@pytest.mark.weight(0.5)
def test_device(BERT, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    ids = torch.randint(9, (2, 4), generator=rng)
    device_ready(watch, BERT, (9, 8, 2, 12, 1, 6), call=(ids,))
