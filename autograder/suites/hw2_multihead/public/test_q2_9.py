"""Public checks of q2_9: window_attention, channel_attention and attention_cost."""

import torch
import torch.nn.functional as F

from course_utils.checking.compare import check, number, same
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.instruments.work import count_work

F64 = torch.float64


def _inputs(B=2, N=6, D=4):
    g = torch.Generator().manual_seed(91)
    return [torch.randn(B, N, D, generator=g, dtype=F64) for _ in range(3)]


def test_windows(window_attention):
    """Each block of neighbouring tokens gets what it would get if it were a sequence of its own."""
    q, k, v = _inputs()
    for window in (2, 3, 6):
        cuts = [slice(i, i + window) for i in range(0, 6, window)]
        blocks = [F.scaled_dot_product_attention(q[:, cut], k[:, cut], v[:, cut]) for cut in cuts]
        same(window_attention(q, k, v, window), torch.cat(blocks, 1), f"the output with window={window}")


def test_windows_must_divide(window_attention):
    """A window that does not divide N is a ValueError."""
    expect_value_error("window_attention with N = 6 and window = 4", window_attention, *_inputs(), 4)


def test_channels(channel_attention):
    """Channels attend to each other: attention of the transposed inputs, scaled by 1 / sqrt(N), transposed back."""
    q, k, v = _inputs()
    expected = F.scaled_dot_product_attention(q.mT.contiguous(), k.mT.contiguous(), v.mT.contiguous()).mT
    same(channel_attention(q, k, v), expected, "the output")


def test_cost(attention_cost):
    """The cost is what torch's counter finds in the two products, scores and weights times values."""
    for N, D in ((6, 4), (5, 9)):
        x = torch.randn(N, D)
        for kind, y in (("patches", x), ("channels", x.T)):
            expected = count_work(lambda z: (z @ z.T) @ z, y)["flops"]
            told = f"attention_cost({N}, {D}, {kind!r})"
            got = number(attention_cost(N, D, kind), told)
            check(got == expected, f"{told} is {got:.15g}, and the counter finds {expected}")


def probe_windows_of_two(window_attention):
    return window_attention(*_inputs(), 2)


def probe_windows_of_three(window_attention):
    return window_attention(*_inputs(), 3)


def probe_windows_of_one(window_attention):
    return window_attention(*_inputs(), 1)


def probe_one_window(window_attention):
    return window_attention(*_inputs(), 6)


def probe_window_that_does_not_divide(window_attention):
    return window_attention(*_inputs(), 4)


def probe_value_error(window_attention):
    return raises_value_error(window_attention, *_inputs(), 4)


def probe_window_too_wide(window_attention):
    return window_attention(*_inputs(), 7)


def probe_square_windows(window_attention):
    return window_attention(*_inputs(N=9), 3)


def probe_channels(channel_attention):
    return channel_attention(*_inputs())


def probe_channels_square(channel_attention):
    return channel_attention(*_inputs(N=5, D=5))


def probe_channels_long(channel_attention):
    return channel_attention(*_inputs(N=16, D=3))


def probe_form(window_attention, channel_attention):
    return [isinstance(out, (tuple, list)) for out in (window_attention(*_inputs(), 3), channel_attention(*_inputs()))]


def probe_patches(attention_cost):
    return [attention_cost(N, D, "patches") for N, D in ((6, 4), (5, 9), (1, 7))]


def probe_cost_of_channels(attention_cost):
    return [attention_cost(N, D, "channels") for N, D in ((6, 4), (5, 9), (1, 7))]


def probe_float32(window_attention, channel_attention):
    inputs = [x.float() for x in _inputs()]
    return [str(window_attention(*inputs, 2).dtype), str(channel_attention(*inputs).dtype)]


def _gradients(f):
    leaves = [x.requires_grad_() for x in _inputs()]
    out = f(*leaves)
    if not out.requires_grad:
        return "no gradient"
    (out * torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_window_gradients(window_attention):
    return _gradients(lambda q, k, v: window_attention(q, k, v, 3))


def probe_channel_gradients(channel_attention):
    return _gradients(channel_attention)


def probe_windows_with_large_scores(window_attention):
    q, k, v = _inputs()
    return window_attention(50 * q, 50 * k, v, 3)


def probe_channels_with_large_scores(channel_attention):
    q, k, v = _inputs()
    return channel_attention(50 * q, 50 * k, v)
