"""Hidden checks of q2_3: padding_mask, causal_mask and masks_for, by what the masks do."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.torch_match import projection_weights, torch_twin, twin_attention

F64 = torch.float64
ATTENTIONS = {
    "encoder": ("encoder_self",),
    "decoder": ("decoder_self",),
    "encoder-decoder": ("encoder_self", "decoder_self", "cross"),
}
WHAT = {"padding": "padding mask", "causal": "causal mask"}


def _padding(lengths, width):
    """True behind each row's end, entry by entry."""
    return torch.tensor([[j >= n for j in range(width)] for n in lengths])


def _future(T, S):
    return torch.tensor([[j > i + (S - T) for j in range(S)] for i in range(T)])


def _attend(x, blocked):
    """Self-attention of x [B, N, D] with a mask [B, N, N] or [N, N], True = blocked."""
    return F.scaled_dot_product_attention(x, x, x, attn_mask=~blocked)


@pytest.mark.weight(3)
def test_padding_values(padding_mask, rng):
    """padding_mask is a bool [B, longest] that is True from each row's length on, for lists and for tensors."""
    for B, longest in ((3, 7), (5, 4), (1, 6), (4, 1)):
        lengths = torch.randint(1, longest + 1, (B,), generator=rng)
        lengths[B // 2] = longest
        for given in (lengths.tolist(), lengths, lengths.to(torch.int32)):
            got = padding_mask(given)
            kind = "list" if isinstance(given, list) else f"tensor of {str(given.dtype).removeprefix('torch.')}"
            tensor(got, f"padding_mask of a {kind}", (B, longest), torch.bool)
            expected = _padding(lengths.tolist(), longest)
            same_or_because(got, expected, f"padding_mask of {lengths.tolist()} as a {kind}", {
                "the mask is upside down, True = padding": ~expected,
                "off by one, the last real token is not padding": _padding((lengths - 1).tolist(), longest),
                "off by one, the first token after the end is padding": _padding((lengths + 1).tolist(), longest),
                "that is padding on the left, and sequences begin at position 0": expected.flip(-1),
            })


@pytest.mark.weight(2)
def test_padding_max_len(padding_mask, rng):
    """max_len sets the width of the mask, by name or by position; a length of 0 is all padding."""
    for lengths, width in (([3, 1, 5], 8), ([2, 2], 5), ([4, 0, 1], 4), ([0, 3], 6), ([5], 5)):
        for given in (lengths, torch.tensor(lengths)):
            for got in (padding_mask(given, max_len=width), padding_mask(given, width)):
                tensor(got, f"padding_mask({lengths}, {width})", (len(lengths), width), torch.bool)
                same(got, _padding(lengths, width), f"padding_mask({lengths}, {width})")
    same(padding_mask([2, 0, 3]), _padding([2, 0, 3], 3), "padding_mask([2, 0, 3])")
    tensor(padding_mask([0, 0]), "padding_mask([0, 0])", (2, 0))


@pytest.mark.weight(2)
def test_padding_by_behaviour(padding_mask, rng):
    """Used as key_padding_mask, changes in the padding move nothing, and changes in every real token do."""
    lengths = [6, 4, 1]
    mask = tensor(padding_mask(lengths), "padding_mask([6, 4, 1])", (3, 6), torch.bool)
    twin = torch_twin(projection_weights(8, rng), 2)
    x = torch.randn(3, 6, 8, generator=rng, dtype=F64)
    before = twin_attention(twin, x, x, x, mask)[0]
    for t in range(6):
        other = x.clone()
        other[:, t] += torch.randn(3, 8, generator=rng, dtype=F64)
        moved = (twin_attention(twin, x, other, other, mask)[0] - before).abs().amax((1, 2))
        for row, length in enumerate(lengths):
            if t >= length:
                check(moved[row] < 1e-9, f"in a row of {length} tokens, a change of position {t} (padding) moves the "
                      "output")
            else:
                check(moved[row] > 1e-6, f"in a row of {length} tokens, a change of position {t} (real) moves nothing: "
                      "is the mask upside down, or off by one?")


@pytest.mark.weight(3)
def test_causal_values(causal_mask):
    """causal_mask(T, S) is a bool [T, S], True exactly where j > i + (S - T); S is T unless given."""
    for T, S in ((4, 4), (3, 6), (1, 5), (6, 3), (5, 1), (1, 1), (7, 7)):
        i, j = torch.arange(T)[:, None], torch.arange(S)
        for sizes in ((T, S), (T,)) if T == S else ((T, S),):
            told, expected = f"causal_mask{sizes}" if len(sizes) > 1 else f"causal_mask({T})", _future(T, S)
            got = tensor(causal_mask(*sizes), told, (T, S), torch.bool)
            same_or_because(got, expected, told, {
                "the mask is upside down, True = blocked": ~expected,
                "the triangle is aligned at the first key; align it so that the last query sees everything": j > i,
                "a query may see its own position": j >= i + S - T,
                "off by one, a query sees the position after its own": j > i + S - T + 1,
                "the past is blocked instead of the future": j < i + S - T,
                "rows and columns are swapped, queries are the rows": j < i,
            })


@pytest.mark.weight(2)
def test_causal_by_behaviour(causal_mask, rng):
    """With the mask in an attention, a change of token t moves the outputs from t on, and none before it."""
    mask = tensor(causal_mask(6), "causal_mask(6)", (6, 6), torch.bool)
    x = torch.randn(2, 6, 5, generator=rng, dtype=F64)
    before = _attend(x, mask)
    check(not before.isnan().any(), "with causal_mask(6) some query sees no key at all, not even its own position")
    for t in range(6):
        other = x.clone()
        other[:, t] += torch.randn(2, 5, generator=rng, dtype=F64)
        moved = (_attend(other, mask) - before).abs().amax((0, 2))
        check((moved[:t] < 1e-9).all(), f"a change of token {t} moves an output before it")
        check((moved[t:] > 1e-9).all(), f"a change of token {t} leaves an output from {t} on as it is")


def test_causal_is_the_end_of_the_square(causal_mask):
    """The mask of the last T queries is the last T rows of the full square: what a cache relies on."""
    full = tensor(causal_mask(6), "causal_mask(6)", (6, 6), torch.bool)
    for T in (1, 2, 5):
        same(causal_mask(T, 6), full[-T:], f"causal_mask({T}, 6), against the last rows of causal_mask(6)")
    newest = tensor(causal_mask(1, 9), "causal_mask(1, 9)", (1, 9), torch.bool)
    check(not newest.any(), "causal_mask(1, 9) blocks a key, and the newest token may see all of them")


def _answer(masks_for, architecture):
    """{attention: set of masks} after a look at its form."""
    got, names = masks_for(architecture), ATTENTIONS[architecture]
    check(isinstance(got, dict), f"masks_for({architecture!r}) is no dict from attentions to sets of masks")
    check(set(got) == set(names), f"masks_for({architecture!r}) has the keys {sorted(map(str, got))}; the attentions "
          f"of that architecture are {', '.join(names)}")
    for name, masks in got.items():
        check(isinstance(masks, (set, frozenset, list, tuple)), f"the masks of {name} are {masks!r}, expected a set")
        check(all(isinstance(mask, str) and mask in WHAT for mask in masks),
              f'the masks of {name} are {masks!r}, and the masks are "padding" and "causal"')
    return {name: set(masks) for name, masks in got.items()}


class _Model:
    """A small encoder, decoder or both, from torch's own attention: what moves which output, for given masks?"""

    S, T, D = 7, 5, 8
    SOURCE, TARGET = (7, 4, 2), (5, 3, 2)  # real tokens of each row; the rest, on the right, is padding

    def __init__(self, architecture, rng):
        self.architecture = architecture
        self.twins = {name: [torch_twin(projection_weights(self.D, rng), 2) for _ in range(2)]
                      for name in ATTENTIONS["encoder-decoder"]}
        self.source = torch.randn(3, self.S, self.D, generator=rng, dtype=F64)
        self.target = torch.randn(3, self.T, self.D, generator=rng, dtype=F64)
        self.nudge = torch.randn(self.D, generator=rng, dtype=F64)

    def _layer(self, name, layer, query, key, padding, masks):
        options = {"key_padding_mask": padding if "padding" in masks[name] else None, "causal": "causal" in masks[name]}
        return query + twin_attention(self.twins[name][layer], query, key, key, **options)[0]

    @torch.no_grad()
    def __call__(self, masks, source, target):
        """The outputs [3, N, D], two layers deep."""
        source_padding, target_padding = _padding(self.SOURCE, self.S), _padding(self.TARGET, self.T)
        x, y = source, target
        for layer in range(2):
            if "encoder_self" in masks:
                x = self._layer("encoder_self", layer, x, x, source_padding, masks)
        for layer in range(2):
            if "decoder_self" in masks:
                y = self._layer("decoder_self", layer, y, y, target_padding, masks)
            if "cross" in masks:
                y = self._layer("cross", layer, y, x, source_padding, masks)
        return x if self.architecture == "encoder" else y

    def moved(self, masks, stream, token):
        """Which outputs of real positions move with one token of the source or the target: bool [3, N]."""
        inputs = {"source": self.source, "target": self.target}
        other = {**inputs, stream: inputs[stream].clone()}
        other[stream][:, token] += self.nudge
        moved = (self(masks, **other) - self(masks, **inputs)).abs().amax(-1) > 1e-9
        return moved & ~_padding(self.SOURCE if self.architecture == "encoder" else self.TARGET, moved.shape[1])

    def leak(self, masks):
        """The first forbidden influence on an output that matters, in words; None if there is none."""
        if self.architecture != "decoder":
            for token in range(self.S):
                if self.moved(masks, "source", token)[token >= torch.tensor(self.SOURCE)].any():
                    return "a change in the padding of the source moves an output"
        if self.architecture != "encoder":
            for token in range(self.T):
                moved = self.moved(masks, "target", token)
                if moved[:, :token].any():
                    return "a change in a target token moves an output before it: the model sees what it must predict"
                if moved[token >= torch.tensor(self.TARGET)].any():
                    return "a change in the padding of the target moves an output"
        return None


def test_masks_form(masks_for):
    """masks_for names the attentions that each architecture has, and for each a set of "padding" and "causal"."""
    for architecture in ATTENTIONS:
        _answer(masks_for, architecture)


@pytest.mark.weight(2)
@pytest.mark.parametrize("architecture", ATTENTIONS)
def test_masks_are_enough(masks_for, rng, architecture):
    """A model with your masks lets no padding and no future token move an output that matters."""
    masks = _answer(masks_for, architecture)
    leak = _Model(architecture, rng).leak(masks)
    check(leak is None, f"in a model of the kind {architecture!r} with the masks that you name, {leak}")


@pytest.mark.weight(2)
@pytest.mark.parametrize("architecture", ATTENTIONS)
def test_masks_are_needed(masks_for, rng, architecture):
    """Each mask that you name is needed: without it padding or the future would get through."""
    masks, model = _answer(masks_for, architecture), _Model(architecture, rng)
    check(any(masks.values()), f"masks_for({architecture!r}) names no mask at all")
    everything = {name: set(WHAT) for name in masks}
    for name, kinds in masks.items():
        for kind in sorted(kinds):
            reason = ("every token of the source is there to be read" if name != "decoder_self" else
                      "padding is on the right, so the causal mask hides it from every real token")
            leak = model.leak({**everything, name: kinds - {kind}})
            check(leak is not None, f"in a model of the kind {architecture!r} the {WHAT[kind]} of {name} is not needed"
                  f": without it nothing forbidden gets through ({reason})")


@pytest.mark.weight(0.5)
def test_device(padding_mask, watch):
    """The mask is made where the lengths are: it would run on a GPU as it stands."""
    device_ready(watch, padding_mask, call=(torch.tensor([3, 1, 5]), 6))
