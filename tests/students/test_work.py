"""Counted work, and the helpers that count it beside an answer or compare it with torch's own attention."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from autograder.suites.growth import growth_exponent
from course_utils.checking.beside import run_beside
from course_utils.checking.compare import NotAnswered, Wrong
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.hw2.feature_maps import elu_features, exp_features, square_features
from course_utils.hw2.kv_runs import decode_stepwise, decode_together, work_per_step
from course_utils.instruments.torch_match import projection_weights, torch_twin, twin_attention
from course_utils.instruments.work import count_work, functions_called

F64 = torch.float64


def rand(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def counts(f, *args):
    """What a call costs, without what it gives back."""
    return {name: value for name, value in count_work(f, *args).items() if name != "result"}


def test_a_product_costs_two_operations_for_each_multiply_add():
    assert counts(torch.matmul, rand(3, 4), rand(4, 5)) == {"flops": 2 * 3 * 4 * 5, "largest": 15, "made": 15}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_count_is_that_of_torchs_own_counter(device):
    module = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, device=device).eval()
    convolution = nn.Conv1d(12, 7, 3, device=device)
    x = torch.zeros(2, 5, 12, device=device)
    for f, value in ((module, x), (convolution, x.mT), (lambda x: torch.einsum("bnd,bmd->bnm", x, x), x)):
        counter = FlopCounterMode(display=False)
        with counter, sdpa_kernel(SDPBackend.MATH):
            torch.backends.mha.set_fastpath_enabled(False)
            f(value)
            torch.backends.mha.set_fastpath_enabled(True)
        assert count_work(f, value)["flops"] == counter.get_total_flops() > 0


@pytest.mark.parametrize("grad", [False, True])
def test_fused_attention_counts_as_its_products(grad):
    q, k, v = rand(2, 3, 8, 4), rand(2, 3, 6, 4), rand(2, 3, 6, 4)
    module, x = nn.MultiheadAttention(12, 3, batch_first=True).eval(), torch.zeros(2, 8, 12)
    with torch.set_grad_enabled(grad):
        fused = count_work(F.scaled_dot_product_attention, q, k, v)
        assert fused["flops"] == 2 * 2 * 2 * 3 * 8 * 6 * 4
        assert fused["largest"] >= 2 * 3 * 8 * 6
        assert count_work(module, x, x, x)["flops"] == 2 * (8 * 8 * 12 * 12 + 4 * 8 * 8 * 12)
    assert torch.backends.mha.get_fastpath_enabled()


def test_multiply_then_sum_shows_in_the_tensors():
    x = rand(5, 7)
    assert counts(lambda x: (x[:, None] * x[None]).sum(-1), x) == {"flops": 0, "largest": 175, "made": 2 * 175}


def test_what_is_read_counts_where_the_result_is_smaller():
    x = rand(5, 7)
    assert counts(lambda x: x[:, None].expand(5, 9, 7).sum(1), x) == {"flops": 0, "largest": 35, "made": 5 * 9 * 7}
    assert counts(lambda x: x.new_zeros(7).index_add_(0, torch.arange(5) * 0, x[:, 0]), x)["made"] >= 5


def test_views_and_writing_in_place_make_nothing():
    work = counts(lambda x: x.mT.reshape(10, 4)[1:].unflatten(1, (2, 2)).mul_(2), rand(4, 10).mT.contiguous().mT)
    assert work == {"flops": 0, "largest": 0, "made": 0}


def test_the_largest_tensor_is_found_inside():
    assert count_work(lambda x: (x @ x.T).sum(), rand(50, 2))["largest"] == 2500


def test_keywords_and_backward_passes_are_counted():
    x = rand(3, 4).requires_grad_()
    forward = count_work(F.linear, x, weight=rand(5, 4))["flops"]
    assert forward == 2 * 3 * 4 * 5
    assert count_work(lambda x: F.linear(x, rand(5, 4)).sum().backward(), x)["flops"] == 2 * forward


def test_an_error_leaves_nothing_switched_on():
    with pytest.raises(RuntimeError):
        count_work(torch.matmul, rand(2, 3), rand(2, 3))
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("power", [0, 1, 2, 1.5])
def test_the_exponent_of_a_power_is_found(power):
    assert math.isclose(growth_exponent([10, 20, 80], [7 * n**power for n in (10, 20, 80)]), power, abs_tol=1e-9)


def test_no_work_at_all_has_exponent_zero():
    assert growth_exponent([10, 20], [0, 0]) == 0


def test_functions_are_called_by_their_names():
    q = rand(1, 2, 4)
    _, names = functions_called(lambda q: F.scaled_dot_product_attention(q, q, q).softmax(-1), q)
    assert names == ["torch.Tensor.softmax", "torch.nn.functional.scaled_dot_product_attention"]
    _, (name,) = functions_called(lambda q: torch.ops.aten.scaled_dot_product_attention.default(q, q, q), q)
    assert name.endswith("scaled_dot_product_attention")
    module = nn.MultiheadAttention(4, 2, dtype=F64)
    assert "torch.nn.functional.multi_head_attention_forward" in functions_called(module, q, q, q)[1]


class Attention(nn.Module):
    """One head, for the steps below."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 4, dtype=F64)


def step(mha, x_t, cache):
    cache = torch.cat([cache, mha.project(x_t)], 1)
    return F.scaled_dot_product_attention(cache[:, -1:], cache, cache), cache


def empty():
    return torch.zeros(2, 0, 4, dtype=F64)


def test_steps_hand_the_cache_on_and_sequences_take_turns():
    mha, x, y = Attention(), rand(2, 5, 4), rand(2, 5, 4, seed=1)
    with torch.no_grad():
        k = mha.project(x)
    full = F.scaled_dot_product_attention(k, k, k, is_causal=True)
    torch.testing.assert_close(torch.cat(decode_stepwise(step, empty, mha, x), 1), full)
    first, second = decode_together(step, empty, mha, [x, y])
    torch.testing.assert_close(torch.cat(first, 1), full)
    torch.testing.assert_close(torch.cat(second, 1), torch.cat(decode_stepwise(step, empty, mha, y), 1))


def test_the_work_of_single_steps_is_counted():
    work = work_per_step(step, empty, Attention(), rand(2, 6, 4), [2, 6])
    assert [w["flops"] for w in work] == [2 * (2 * 16 + 4 * t * 4) for t in (2, 6)]


def test_a_step_that_gives_no_pair_is_told():
    with pytest.raises(TypeError, match="cached_step gave a Tensor, expected the pair"):
        decode_stepwise(lambda mha, x_t, cache: x_t, empty, Attention(), rand(2, 1, 4))


@pytest.mark.parametrize("bias", [True, False])
def test_the_twin_is_attention_with_these_weights(bias):
    w = projection_weights(6, torch.Generator().manual_seed(0), bias)
    x, y, z = rand(2, 3, 6), rand(2, 5, 6, seed=1), rand(2, 5, 6, seed=2)
    padding = torch.arange(5) >= torch.tensor([[5], [4]])
    out, weights = twin_attention(torch_twin(w, 2), x, y, z, padding, causal=True)
    q, k, v = (
        F.linear(a, w[f"{n}_proj.weight"], w.get(f"{n}_proj.bias")).unflatten(-1, (2, 3)).transpose(1, 2)
        for n, a in (("q", x), ("k", y), ("v", z))
    )
    blocked = padding[:, None, None] | (torch.arange(5) > torch.arange(3)[:, None] + 2)
    expected = (q @ k.mT / math.sqrt(3)).masked_fill(blocked, -math.inf).softmax(-1)
    torch.testing.assert_close(weights, expected)
    merged = (expected @ v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, F.linear(merged, w["o_proj.weight"], w.get("o_proj.bias")))


def test_random_weights_keep_attention_lively():
    x = rand(4, 8, 12)
    twin = torch_twin(projection_weights(12, torch.Generator().manual_seed(1)), 3)
    weights = twin_attention(twin, x, x, x)[1]
    entropy = -torch.special.xlogy(weights, weights).sum(-1).mean().item()
    assert 0.3 * math.log(8) < entropy < 0.95 * math.log(8)


@pytest.mark.parametrize("features", [elu_features, exp_features, square_features])
def test_features_have_positive_products_and_keep_the_dtype(features):
    q, k = 2 * rand(2, 5, 3), 2 * rand(2, 7, 3, seed=1)
    assert (features(q) @ features(k).mT >= 0).all()
    assert features(q.float()).dtype == torch.float32 and features(q[0, 0]).ndim == 1


def test_square_features_make_the_square_of_one_plus_the_product():
    q, k = rand(5, 3), rand(7, 3, seed=1)
    torch.testing.assert_close(square_features(q) @ square_features(k).T, (1 + q @ k.T) ** 2)


class StandIn:
    """What the judge holds in the place of an answer."""

    def __init__(self):
        self._student = self

    def run(self, function, *args):
        return "in the box", function, args


def test_functions_run_where_the_answers_are():
    assert run_beside(max, 3, 5) == 5
    stand_in = StandIn()
    assert run_beside(count_work, stand_in, 3) == ("in the box", count_work, (stand_in, 3))


class FromTheBox(Exception):
    def __init__(self, *names):
        super().__init__(f"{names[0]} in your cell")
        self.type_names = names


def raising(error):
    raise error


@pytest.mark.parametrize("error", [ValueError("no"), FromTheBox("MyError", "ValueError", "Exception")])
def test_a_value_error_is_expected(error):
    expect_value_error("f", raising, error)
    assert raises_value_error(raising, error)


def test_another_error_or_none_is_wrong():
    with pytest.raises(Wrong, match="must raise a ValueError, and raises nothing"):
        expect_value_error("f", abs, 1)
    with pytest.raises(Wrong, match="and raises KeyError in your cell"):
        expect_value_error("f", raising, FromTheBox("KeyError"))
    with pytest.raises(KeyError):
        expect_value_error("f", raising, KeyError("x"))
    assert not raises_value_error(abs, 1) and not raises_value_error(raising, KeyError("x"))


@pytest.mark.parametrize("error", [NotAnswered("q2_2: not yet"), NotImplementedError("q2_2: write this function")])
def test_a_stub_is_no_wrong_answer(error):
    with pytest.raises(type(error)):
        raises_value_error(raising, error)
