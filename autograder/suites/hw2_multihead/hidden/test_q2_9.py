"""Hidden checks of q2_9: window_attention, strided_attention, channel_attention and attention_cost."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from autograder.judge.expect import raises
from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, number, same, tensor
from course_utils.instruments.calls import call_with_slices, call_with_views
from course_utils.instruments.work import count_work

F64 = torch.float64


def _draw(rng, B=3, N=12, D=5, dtype=F64):
    return [torch.randn(B, N, D, generator=rng, dtype=F64).to(dtype) for _ in range(3)]


def _attend(q, k, v, blocked=None, scale=None):
    """Attention in one formula; `blocked` [N, N] has True where a key is not seen."""
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    return (scores if blocked is None else scores.masked_fill(blocked, -math.inf)).softmax(-1) @ v


def _alone(got, what):
    check(not isinstance(got, (tuple, list)), f"{what} returns a {type(got).__name__}; it returns `out` alone")
    return got


def _elsewhere(N, window):
    """True where two tokens lie in different blocks."""
    block = torch.arange(N) // window
    return block[:, None] != block


@pytest.mark.weight(3)
def test_window_values(window_attention, rng):
    """The output is that of full attention in which every token sees its own block of neighbours alone."""
    for B, N, D, window in ((3, 12, 5, 3), (2, 12, 5, 4), (1, 10, 3, 5), (4, 8, 6, 2), (2, 9, 4, 3), (7, 40, 3, 8)):
        q, k, v = _draw(rng, B, N, D)
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=~_elsewhere(N, window))
        got = _alone(window_attention(q, k, v, window), "window_attention")
        strided = torch.arange(N) % (N // window)
        distance = (torch.arange(N)[:, None] - torch.arange(N)).abs()
        block = torch.arange(N) // (N // window)
        same_or_because(got, expected, f"the output with N={N}, window={window}", {
            "nothing is cut, every token sees all": _attend(q, k, v),
            "a block holds every (N / window)-th token; its tokens must be neighbours":
                _attend(q, k, v, strided[:, None] != strided),
            "there are `window` blocks of N / window tokens; asked for are N / window blocks of `window` tokens":
                _attend(q, k, v, block[:, None] != block),
            "that is a band around each token, and not blocks": _attend(q, k, v, distance >= window),
            "a band of half the window around each token is not a block": _attend(q, k, v, distance > window // 2),
            "the scale 1 / sqrt(D) is missing": _attend(q, k, v, _elsewhere(N, window), scale=1.0),
            "the scale is made from the window, and the dot product runs over D":
                _attend(q, k, v, _elsewhere(N, window), scale=1 / math.sqrt(window)),
        })


def test_window_extremes(window_attention, rng):
    """With window = N it is full attention, with window = 1 the values come back."""
    q, k, v = _draw(rng)
    same(_alone(window_attention(q, k, v, 12), "window_attention"), F.scaled_dot_product_attention(q, k, v),
         "the output with window = N")
    same(_alone(window_attention(q, k, v, 1), "window_attention"), v, "the output with window = 1")


@pytest.mark.weight(2)
def test_blocks_are_apart(window_attention, rng):
    """A change of one token moves outputs in its own block, and in no other block or row."""
    q, k, v = _draw(rng)
    before = tensor(_alone(window_attention(q, k, v, 4), "window_attention"), "the output", (3, 12, 5), F64)
    for token in (0, 5, 11, 4, 3):
        other_k, other_v = k.clone(), v.clone()
        other_k[1, token] -= 1
        other_v[1, token] += 1
        after = tensor(window_attention(q, other_k, other_v, 4), "the output", (3, 12, 5), F64)
        moved = (after - before).abs().amax(-1) > 1e-9  # [B, N]
        inside = torch.zeros(3, 12, dtype=torch.bool)
        inside[1, token // 4 * 4 : token // 4 * 4 + 4] = True
        check(not moved[~inside].any(), f"with window=4 a change of token {token} moves outputs outside its block")
        check(moved[inside].all(), f"with window=4 a change of token {token} must move all four outputs of its block")


@pytest.mark.weight(2)
def test_window_must_divide(window_attention, rng):
    """A window that does not divide N is a ValueError; one that does is not."""
    for N, window in ((12, 5), (7, 2), (6, 4), (5, 6), (9, 12)):
        with raises(ValueError, f"window_attention with N={N} and window={window}"):
            window_attention(*_draw(rng, N=N), window)
    window_attention(*_draw(rng, N=15), 5)


def _other_group(N, stride):
    """True where two tokens' places differ modulo the stride."""
    place = torch.arange(N) % stride
    return place[:, None] != place


def _strided(q, k, v, stride):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~_other_group(q.shape[1], stride))


@pytest.mark.weight(3)
def test_stride_values(strided_attention, rng):
    """The output is that of full attention in which token i sees the tokens with j % stride == i % stride alone."""
    for B, N, D, stride in ((3, 12, 5, 3), (2, 12, 5, 4), (1, 10, 3, 5), (4, 8, 6, 2), (2, 9, 4, 3), (7, 40, 3, 8)):
        q, k, v = _draw(rng, B, N, D)
        expected = _strided(q, k, v, stride)
        got = _alone(strided_attention(q, k, v, stride), "strided_attention")
        order = torch.arange(N).reshape(-1, stride).T.flatten()
        apart = _other_group(N, stride)
        same_or_because(got, expected, f"the output with N={N}, stride={stride}", {
            "nothing is cut, every token sees all": _attend(q, k, v),
            "these are blocks of neighbours; the tokens of a group are `stride` places apart":
                _attend(q, k, v, _elsewhere(N, stride)),
            "the tokens of a group are N / stride places apart; it is `stride` places":
                _attend(q, k, v, _other_group(N, N // stride)),
            "the outputs stand group after group; put them into the tokens' own order": expected[:, order],
            "a token sees only the earlier ones of its "
            "group": _attend(q, k, v, apart | torch.ones(N, N).triu(1).bool()),
            "the scale 1 / sqrt(D) is missing": _attend(q, k, v, apart, scale=1.0),
            "the scale is made from the group, and the dot product runs over D":
                _attend(q, k, v, apart, scale=1 / math.sqrt(N // stride)),
            "the token itself is left out of its group": _attend(q, k, v, apart | torch.eye(N).bool()),
        })


def test_stride_extremes(strided_attention, rng):
    """With stride = 1 it is full attention, with stride = N the values come back."""
    q, k, v = _draw(rng)
    same(_alone(strided_attention(q, k, v, 1), "strided_attention"), F.scaled_dot_product_attention(q, k, v),
         "the output with stride = 1")
    same(_alone(strided_attention(q, k, v, 12), "strided_attention"), v, "the output with stride = N")


@pytest.mark.weight(2)
def test_groups_are_apart(strided_attention, rng):
    """A change of one token moves outputs in its own group, and in no other group or row."""
    q, k, v = _draw(rng)
    before = tensor(_alone(strided_attention(q, k, v, 4), "strided_attention"), "the output", (3, 12, 5), F64)
    for token in (0, 5, 11, 3):
        other_k, other_v = k.clone(), v.clone()
        other_k[1, token] -= 1
        other_v[1, token] += 1
        after = tensor(strided_attention(q, other_k, other_v, 4), "the output", (3, 12, 5), F64)
        moved = (after - before).abs().amax(-1) > 1e-9  # [B, N]
        inside = torch.zeros(3, 12, dtype=torch.bool)
        inside[1, token % 4 :: 4] = True
        check(not moved[~inside].any(), f"with stride=4 a change of token {token} moves outputs outside its group")
        check(moved[inside].all(), f"with stride=4 a change of token {token} must move all three outputs of its group")


@pytest.mark.weight(2)
def test_stride_must_divide(strided_attention, rng):
    """A stride that does not divide N is a ValueError; one that does is not."""
    for N, stride in ((12, 5), (7, 2), (6, 4), (5, 6), (9, 12)):
        with raises(ValueError, f"strided_attention with N={N} and stride={stride}"):
            strided_attention(*_draw(rng, N=N), stride)
    strided_attention(*_draw(rng, N=15), 5)


@pytest.mark.weight(3)
def test_channel_values(channel_attention, rng):
    """The output is attention(q^T, k^T, v^T)^T with the scale 1 / sqrt(N)."""
    for B, N, D in ((3, 12, 5), (2, 4, 7), (1, 6, 6), (2, 1, 3), (2, 5, 1), (7, 40, 9)):
        q, k, v = _draw(rng, B, N, D)
        turned = [x.mT.contiguous() for x in (q, k, v)]
        expected = F.scaled_dot_product_attention(*turned).mT
        got = _alone(channel_attention(q, k, v), "channel_attention")
        same_or_because(got, expected, f"the output at N={N}, D={D}", {
            "the result has yet to be transposed back": expected.mT,
            "the scale is made from D, and the dot product of two channels runs over N places":
                _attend(*turned, scale=1 / math.sqrt(D)).mT,
            "the scale 1 / sqrt(N) is missing": _attend(*turned, scale=1.0).mT,
            "that is attention between tokens; transpose q, k and v": _attend(q, k, v),
            "queries and keys are swapped": _attend(turned[1], turned[0], turned[2]).mT,
            "the weights are applied from the wrong side":
                v @ (q.mT @ k / math.sqrt(N)).softmax(-1),
            "the softmax runs over the wrong axis of the D x D table":
                ((q.mT @ k / math.sqrt(N)).softmax(-2) @ v.mT).mT,
        })


def test_channels_by_behaviour(channel_attention, rng):
    """One value of a channel moves that output place in all channels; the order of the places does not matter."""
    q, k, v = _draw(rng, N=6)
    before = tensor(_alone(channel_attention(q, k, v), "channel_attention"), "the output", (3, 6, 5), F64)
    other = v.clone()
    other[1, 2, 3] += 1
    moved = (tensor(channel_attention(q, k, other), "the output", (3, 6, 5), F64) - before).abs() > 1e-9
    expected = torch.zeros(3, 6, 5, dtype=torch.bool)
    expected[1, 2] = True
    check(torch.equal(moved, expected), "a change of v at place 2 must move place 2 of every channel of its row, and "
          "nothing else")
    order = torch.randperm(6, generator=rng)
    same(channel_attention(q[:, order], k[:, order], v[:, order]), before[:, order], "the output with reordered places")
    shuffled = torch.randperm(5, generator=rng)
    same(channel_attention(q, k[..., shuffled], v[..., shuffled]), before, "the output with the channels of k and v "
         "reordered alike")


def _turned(q, k, v):
    """Channel attention by torch's own attention."""
    return F.scaled_dot_product_attention(*(x.mT.contiguous() for x in (q, k, v))).mT


def _windowed(q, k, v, window):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~_elsewhere(q.shape[1], window))


def _gradients(f, reference, name, values, rng):
    mine, theirs = ([x.clone().requires_grad_() for x in values] for _ in range(2))
    out = tensor(_alone(f(*mine), name), f"the output of {name}", values[0].shape, F64)
    check(out.requires_grad, f"no gradient flows through {name}: stay with torch, and do not detach")
    up = torch.randn(*out.shape, generator=rng, dtype=F64)
    (out * up).sum().backward()
    (reference(*theirs) * up).sum().backward()
    for leaf, a, b in zip("qkv", mine, theirs, strict=True):
        check(a.grad is not None, f"no gradient of {name} reaches {leaf}: it is cut off from the output")
        same(a.grad, b.grad, f"the gradient of {name} by {leaf}")


def test_window_gradients(window_attention, rng):
    """Gradients of window_attention by q, k and v are those of attention in which other blocks are masked."""
    for window in (3, 4):
        ways = [partial(f, window=window) for f in (window_attention, _windowed)]
        _gradients(*ways, "window_attention", _draw(rng, 2), rng)


def test_stride_gradients(strided_attention, rng):
    """Gradients of strided_attention by q, k and v are those of attention in which other groups are masked."""
    for stride in (3, 4):
        ways = [partial(f, stride=stride) for f in (strided_attention, _strided)]
        _gradients(*ways, "strided_attention", _draw(rng, 2), rng)


def test_channel_gradients(channel_attention, rng):
    """Gradients of channel_attention by q, k and v are those of attention(q^T, k^T, v^T)^T."""
    _gradients(channel_attention, _turned, "channel_attention", _draw(rng, 2, 6), rng)


def test_scores_far_out(window_attention, strided_attention, channel_attention, rng):
    """Scores of a thousand and more neither overflow nor become NaN, in all three."""
    q, k, v = _draw(rng)
    q, k = 50 * q, 50 * k
    same(_alone(window_attention(q, k, v, 4), "window_attention"), _windowed(q, k, v, 4),
         "the output of window_attention with scores of a thousand and more", atol=1e-8)
    same(_alone(strided_attention(q, k, v, 4), "strided_attention"), _strided(q, k, v, 4),
         "the output of strided_attention with scores of a thousand and more", atol=1e-8)
    same(_alone(channel_attention(q, k, v), "channel_attention"), _turned(q, k, v),
         "the output of channel_attention with scores of a thousand and more", atol=1e-8)


def test_views_of_other_tensors(window_attention, strided_attention, channel_attention, in_box, rng):
    """Inputs that are slices or transposes of other tensors count by their values, however they lie in memory."""
    for layout, call in (("slices of wider tensors", call_with_slices), ("transposes", call_with_views)):
        q, k, v = _draw(rng, 2)
        told = f"for inputs that are {layout} (index axes, and leave the strides to torch)"
        same(in_box(call, window_attention, q, k, v, 4), _windowed(q, k, v, 4),
             f"the output of window_attention {told}")
        same(in_box(call, strided_attention, q, k, v, 4), _strided(q, k, v, 4),
             f"the output of strided_attention {told}")
        same(in_box(call, channel_attention, q, k, v), _turned(q, k, v), f"the output of channel_attention {told}")


def test_float32(window_attention, strided_attention, channel_attention, rng):
    """In float32 all results are float32, to its precision."""
    q, k, v = _draw(rng, dtype=torch.float32)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=~_elsewhere(12, 3))
    same(window_attention(q, k, v, 3), expected, "the output of window_attention", atol=1e-5)
    same(strided_attention(q, k, v, 3), _strided(q, k, v, 3), "the output of strided_attention", atol=1e-5)
    expected = F.scaled_dot_product_attention(*(x.mT.contiguous() for x in (q, k, v))).mT
    same(channel_attention(q, k, v), expected, "the output of channel_attention", atol=1e-5)


@pytest.mark.weight(2)
@pytest.mark.parametrize("kind", ["patches", "channels"])
def test_cost_counted(attention_cost, rng, kind):
    """The cost is what torch's counter finds in the two products, at random sizes and at the size of a real model."""
    for N, D in ((6, 4), (256, 512), (1024, 512), *torch.randint(1, 300, (4, 2), generator=rng).tolist()):
        x = torch.empty(N, D, device="meta") if kind == "patches" else torch.empty(D, N, device="meta")
        expected = count_work(lambda y: (y @ y.T).softmax(-1) @ y, x)["flops"]
        told = f"attention_cost({N}, {D}, {kind!r})"
        patches, channels = 4 * N * N * D, 4 * N * D * D
        same_or_because(number(attention_cost(N, D, kind), told), expected, told, {
            "patches and channels are swapped": channels if kind == "patches" else patches,
            "a multiply-add is two operations, or one of the two products is missing": expected / 2,
            "a multiply-add is two operations, and there are two products": expected / 4,
            "that is the number of weights, not the work to make and use them": N * N if kind == "patches" else D * D,
            "the four projections are not asked for": expected + 8 * N * D * D,
        }, rtol=0, atol=0)


def test_cost_ratio(attention_cost, rng):
    """Channels cost D / N times as much as patches, so they cross where N = D; patches grow with the square of N."""
    for N, D in torch.randint(2, 500, (4, 2), generator=rng).tolist():
        patches, channels = (number(attention_cost(N, D, kind), f"attention_cost({N}, {D}, {kind!r})")
                             for kind in ("patches", "channels"))
        check(patches * D == channels * N, f"at N={N}, D={D} channels cost {channels:g} and patches {patches:g}, which "
              f"is not D / N = {D} / {N} times as much")
        longer = number(attention_cost(4 * N, D, "patches"), "attention_cost"), number(
            attention_cost(4 * N, D, "channels"), "attention_cost")
        check(longer == (16 * patches, 4 * channels), "four times as many patches must cost 16 times as much between "
              "patches, and 4 times as much between channels")
