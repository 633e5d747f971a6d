"""Torch's weights under the course's names: complete, copied, and query, key and value in their order."""

import pytest
import torch
from torch import nn

from course_utils.instruments.torch_match import decoder_layer_state, encoder_layer_state, mha_state

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj")
D = 6


def names(prefix, parts):
    return {f"{prefix}{part}.{kind}" for part in parts for kind in ("weight", "bias")}


def test_projections_are_cut_in_the_order_query_key_value():
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D, 2, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    state = mha_state(theirs)
    assert set(state) == names("", LINEAR)
    x = torch.randn(1, 3, D)
    q, k, v = (nn.functional.linear(x, state[f"{p}_proj.weight"], state[f"{p}_proj.bias"]) for p in "qkv")
    heads = [y.unflatten(-1, (2, -1)).transpose(1, 2) for y in (q, k, v)]
    mixed = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    ours = nn.functional.linear(mixed, state["o_proj.weight"], state["o_proj.bias"])
    torch.testing.assert_close(ours, theirs(x, x, x, need_weights=False)[0])


def test_without_biases_there_are_none():
    assert set(mha_state(nn.MultiheadAttention(D, 2, bias=False))) == {f"{name}.weight" for name in LINEAR}


def test_modules_that_have_no_match_are_refused():
    for other in (nn.MultiheadAttention(D, 2, kdim=4), nn.MultiheadAttention(D, 2, add_bias_kv=True)):
        with pytest.raises(ValueError, match="only nn.MultiheadAttention"):
            mha_state(other)


def test_layers_have_every_name_once():
    encoder = encoder_layer_state(nn.TransformerEncoderLayer(D, 2, 10, batch_first=True))
    decoder = decoder_layer_state(nn.TransformerDecoderLayer(D, 2, 10, batch_first=True))
    block = names("self_attn.", LINEAR) | names("", ("ff.fc1", "ff.fc2", "norm1", "norm2"))
    assert set(encoder) == block
    assert set(decoder) == block | names("cross_attn.", LINEAR) | names("", ("norm3",))
    assert encoder["ff.fc1.weight"].shape == (10, D) and encoder["ff.fc2.weight"].shape == (D, 10)


def test_the_state_is_a_copy_and_keeps_its_dtype():
    layer = nn.TransformerEncoderLayer(D, 2, 10).double()
    state = encoder_layer_state(layer)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    for value in state.values():
        assert value.dtype == torch.float64 and not value.requires_grad
        value.zero_()
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())
