"""Public checks of q2_9: window_attention, strided_attention, channel_attention and attention_cost."""

import torch
import torch.nn.functional as F

from course_utils.checking.compare import check, number, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.instruments.work import count_work

F64 = torch.float64


def _inputs(B=2, N=6, D=4):
    g = torch.Generator().manual_seed(91)
    return [torch.randn(B, N, D, generator=g, dtype=F64) for _ in range(3)]


def _all(window_attention, strided_attention, channel_attention):
    """The three attentions as functions of q, k, v alone, by name."""
    return {
        "window_attention": lambda q, k, v: window_attention(q, k, v, 3),
        "strided_attention": lambda q, k, v: strided_attention(q, k, v, 3),
        "channel_attention": channel_attention,
    }


def _expected(name, q, k, v):
    """What torch's own attention gives for the three, with a window and a stride of 3."""
    place = torch.arange(q.shape[1])
    if name == "channel_attention":
        return F.scaled_dot_product_attention(*(x.mT.contiguous() for x in (q, k, v))).mT
    group = place // 3 if name == "window_attention" else place % 3
    return F.scaled_dot_product_attention(q, k, v, attn_mask=group[:, None] == group)


def test_windows(window_attention):
    """Each block of neighbouring tokens gets what it would get if it were a sequence of its own."""
    # keeps: windows, alone
    q, k, v = _inputs()
    for window in (2, 3, 6):
        cuts = [slice(i, i + window) for i in range(0, 6, window)]
        blocks = [F.scaled_dot_product_attention(q[:, cut], k[:, cut], v[:, cut]) for cut in cuts]
        same(window_attention(q, k, v, window), torch.cat(blocks, 1), f"the output with window={window}")


def test_windows_must_divide(window_attention):
    """A window that does not divide N is a ValueError."""
    # keeps: window-divides
    expect_value_error("window_attention with N = 6 and window = 4", window_attention, *_inputs(), 4)
    expect_value_error("window_attention with N = 6 and window = 7", window_attention, *_inputs(), 7)


def test_strides(strided_attention):
    """Tokens 0, s, 2s, ... get what they would get if they were a sequence of their own; so do 1, s + 1, ..."""
    # keeps: strides, own-order, alone
    q, k, v = _inputs(N=8)
    for stride in (2, 4, 8):
        expected = torch.empty_like(v)
        for r in range(stride):
            expected[:, r::stride] = F.scaled_dot_product_attention(q[:, r::stride], k[:, r::stride], v[:, r::stride])
        same(strided_attention(q, k, v, stride), expected, f"the output with N=8, stride={stride}")
    same(strided_attention(q, k, v, 1), F.scaled_dot_product_attention(q, k, v), "the output with stride=1")


def test_strides_must_divide(strided_attention):
    """A stride that does not divide N is a ValueError."""
    # keeps: stride-divides
    expect_value_error("strided_attention with N = 6 and stride = 4", strided_attention, *_inputs(), 4)
    expect_value_error("strided_attention with N = 6 and stride = 7", strided_attention, *_inputs(), 7)


def test_channels(channel_attention):
    """Channels attend to each other: attention of the transposed inputs, scaled by 1 / sqrt(N), transposed back."""
    # keeps: channels, alone
    q, k, v = _inputs()
    same(channel_attention(q, k, v), _expected("channel_attention", q, k, v), "the output")


def test_examples_are_apart(window_attention, strided_attention, channel_attention):
    """Each example of a batch gets what it gets alone, in the dtype that came in."""
    # keeps: rows-apart, dtype
    q, k, v = _inputs(3)
    for name, f in _all(window_attention, strided_attention, channel_attention).items():
        whole = f(q, k, v)
        for b in range(3):
            same(whole[b : b + 1], f(q[b : b + 1], k[b : b + 1], v[b : b + 1]), f"example {b} of {name} in a batch "
                 f"of 3")
        got = f(q.float(), k.float(), v.float())
        same(got, _expected(name, q, k, v).float(), f"the output of {name} in float32", atol=1e-5)


def test_large_scores(window_attention, strided_attention, channel_attention):
    """Scores of a thousand and more neither overflow nor become NaN."""
    # keeps: large-scores
    q, k, v = _inputs()
    for name, f in _all(window_attention, strided_attention, channel_attention).items():
        same(f(50 * q, 50 * k, v), _expected(name, 50 * q, 50 * k, v), f"the output of {name} with large "
             f"scores", atol=1e-8)


def test_gradients(window_attention, strided_attention, channel_attention):
    """Gradients reach queries, keys and values, and are those of torch's own attention."""
    # keeps: gradients
    for name, f in _all(window_attention, strided_attention, channel_attention).items():
        mine, theirs = ([x.clone().requires_grad_() for x in _inputs()] for _ in range(2))
        out = tensor(f(*mine), f"the output of {name}", shape=mine[2].shape)
        check(out.requires_grad, f"no gradient flows through {name}: stay with torch, and do not detach")
        up = torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)
        (out * up).sum().backward()
        (_expected(name, *theirs) * up).sum().backward()
        for leaf, a, b in zip("qkv", mine, theirs, strict=True):
            check(a.grad is not None, f"no gradient of {name} reaches {leaf}")
            same(a.grad, b.grad, f"the gradient of {name} by {leaf}")


def test_cost(attention_cost):
    """The cost is what torch's counter finds in the two products, scores and weights times values."""
    # keeps: cost
    for N, D in ((6, 4), (5, 9)):
        x = torch.randn(N, D)
        for kind, y in (("patches", x), ("channels", x.T)):
            expected = count_work(lambda z: (z @ z.T) @ z, y)["flops"]
            told = f"attention_cost({N}, {D}, {kind!r})"
            got = number(attention_cost(N, D, kind), told)
            check(got == expected, f"{told} is {got:.15g}, and the counter finds {expected}")
    for kind, expected in (("patches", 134_217_728), ("channels", 268_435_456)):
        got = number(attention_cost(256, 512, kind), "attention_cost")
        check(got == expected, f"attention_cost(256, 512, {kind!r}) is {got:.15g}, and the text says {expected}")


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


def probe_strides_of_two(strided_attention):
    return strided_attention(*_inputs(N=8), 2)


def probe_strides_of_four(strided_attention):
    return strided_attention(*_inputs(N=8), 4)


def probe_stride_that_does_not_divide(strided_attention):
    return strided_attention(*_inputs(), 4)


def probe_stride_value_error(strided_attention):
    return raises_value_error(strided_attention, *_inputs(), 4)


def probe_stride_gradients(strided_attention):
    return _gradients(lambda q, k, v: strided_attention(q, k, v, 3))


def probe_strides_with_large_scores(strided_attention):
    q, k, v = _inputs()
    return strided_attention(50 * q, 50 * k, v, 3)


def probe_strides_precisely(strided_attention):
    return str(((strided_attention(*_inputs(), 3) - _expected("strided_attention", *_inputs())).abs() > 1e-10).any())


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
