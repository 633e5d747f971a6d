"""Public checks of q2_3: padding_mask, causal_mask and masks_for."""

import torch

from course_utils.checking.compare import check, same, tensor

ATTENTIONS = {
    "encoder": {"encoder_self"},
    "decoder": {"decoder_self"},
    "encoder-decoder": {"encoder_self", "decoder_self", "cross"},
}


def _rows(*rows):
    return torch.tensor([[entry == "x" for entry in row] for row in rows])


def test_padding_mask(padding_mask):
    """Lengths 3, 1 and 4 give a bool mask [3, 4] that is True behind each end; max_len makes it wider."""
    # keeps: padding-mask, max-len, list-or-tensor
    expected = _rows("...x", ".xxx", "....")
    for lengths in ([3, 1, 4], torch.tensor([3, 1, 4])):
        told = f"padding_mask of a {type(lengths).__name__.lower()}"
        got = tensor(padding_mask(lengths), told, (3, 4), torch.bool)
        check(not torch.equal(got, ~expected), "the mask is upside down: True = padding")
        same(got, expected, told)
        wider = tensor(padding_mask(lengths, max_len=6), f"{told} with max_len=6", (3, 6), torch.bool)
        same(wider, _rows("...xxx", ".xxxxx", "....xx"), f"{told} with max_len=6")


def test_causal_mask(causal_mask):
    """causal_mask(T, S) is True where key j lies after query i, j > i + (S - T): the last query sees everything."""
    # keeps: causal-mask, last-sees-all
    for sizes, expected in (((3,), _rows(".xx", "..x", "...")), ((2, 4), _rows("...x", "....")),
                            ((4, 2), _rows("xx", "xx", ".x", ".."))):
        told = f"causal_mask{sizes}" if len(sizes) > 1 else f"causal_mask({sizes[0]})"
        got = tensor(causal_mask(*sizes), told, expected.shape, torch.bool)
        check(not torch.equal(got, ~expected), "the mask is upside down: True = blocked")
        same(got, expected, told)


def test_lengths_of_nothing(padding_mask):
    """A length may be 0: then all of its row is padding. A tensor of any integer dtype is welcome."""
    # keeps: length-zero
    expected = _rows("xx", "..", ".x")
    for lengths in ([0, 2, 1], torch.tensor([0, 2, 1], dtype=torch.int32)):
        same(padding_mask(lengths), expected, "padding_mask of the lengths 0, 2 and 1")


def test_masks_for(masks_for):
    """masks_for names every attention that the architecture has, each with a set of "padding" and "causal"."""
    # keeps: attentions
    for architecture, attentions in ATTENTIONS.items():
        got = masks_for(architecture)
        check(isinstance(got, dict), f"masks_for({architecture!r}) is no dict")
        check(set(got) == attentions, f"masks_for({architecture!r}) has the keys {sorted(map(str, got))}, and that "
              f"architecture has {', '.join(sorted(attentions))}")
        for name, masks in got.items():
            check(isinstance(masks, (set, frozenset, list, tuple)) and all(m in ("padding", "causal") for m in masks),
                  f'the masks of {name} are {masks!r}, expected a set made of "padding" and "causal"')


def _leaks(attention, masks):
    """Whether some real output hears what it must not, with these masks: found by changing one token at a time."""
    g = torch.Generator().manual_seed(3)
    T, S = (5, 6) if attention == "cross" else (6, 6)
    q, k, v = (torch.randn(n, 4, generator=g, dtype=torch.float64) for n in (T, S, S))
    padding, real = torch.arange(S) >= 4, range(4)
    later = torch.arange(S) > torch.arange(T)[:, None] + (S - T)
    blocked = torch.zeros(T, S, dtype=torch.bool)
    for name, mask in (("padding", padding.expand(T, S)), ("causal", later)):
        blocked = blocked | mask if name in masks else blocked
    weights = (q @ k.T).masked_fill(blocked, -torch.inf).softmax(-1)
    heard = weights > 0  # [T, S]
    ahead = attention == "decoder_self"
    return any(heard[i, j] and (padding[j] or ahead and j > i) for i in real for j in range(S))


def test_masks_are_needed_and_enough(masks_for):
    """With your masks no real position hears what it must not; and without any one of them it would."""
    # keeps: needed
    for architecture, attentions in ATTENTIONS.items():
        for name in sorted(attentions):
            masks = set(masks_for(architecture)[name])
            told = f"masks_for({architecture!r})[{name!r}]"
            check(not _leaks(name, masks), f"{told} is {sorted(masks)}: with these masks alone a real position hears "
                  f"what it "
                  "must not")
            for mask in sorted(masks):
                check(_leaks(name, masks - {mask}), f"{told} is {sorted(masks)}: without {mask!r} no real position "
                      f"would hear more "
                      "that it must not, so that mask is not needed")


def _sorted(masks):
    return {name: sorted(kinds) if not isinstance(kinds, str) else kinds for name, kinds in masks.items()}


def probe_lengths(padding_mask):
    return padding_mask([3, 1, 4, 0])


def probe_lengths_as_tensor(padding_mask):
    return padding_mask(torch.tensor([2, 5, 3]))


def probe_max_len(padding_mask):
    return padding_mask([3, 1], max_len=5)


def probe_max_len_by_position(padding_mask):
    return padding_mask(torch.tensor([3, 4, 1]), 6)


def probe_equal_lengths(padding_mask):
    return padding_mask([2, 2, 2])


def probe_many_rows(padding_mask):
    return padding_mask([1, 2, 3, 2, 1, 2])


def probe_as_many_rows_as_tokens(padding_mask):
    return padding_mask([1, 3, 2])


def probe_padding_dtype(padding_mask):
    return str(padding_mask([3, 1]).dtype)


def probe_causal_square(causal_mask):
    return causal_mask(4)


def probe_causal_one(causal_mask):
    return causal_mask(1)


def probe_causal_wide(causal_mask):
    return causal_mask(3, 5)


def probe_causal_newest_token(causal_mask):
    return causal_mask(1, 4)


def probe_causal_tall(causal_mask):
    return causal_mask(5, 3)


def probe_causal_same(causal_mask):
    return causal_mask(3, 3)


def probe_causal_dtype(causal_mask):
    return str(causal_mask(3).dtype)


def probe_encoder(masks_for):
    return _sorted(masks_for("encoder"))


def probe_decoder(masks_for):
    return _sorted(masks_for("decoder"))


def probe_encoder_decoder(masks_for):
    return _sorted(masks_for("encoder-decoder"))
