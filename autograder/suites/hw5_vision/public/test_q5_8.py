"""Public checks of q5_8: attention_rollout and map_attention."""

import pytest
import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.hw5.attention_runs import audible, head_weights, look_and_leave

F64 = torch.float64
SIZES = {"image_size": 6, "patch": 2, "channels": 1, "d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 2,
         "n_classes": 3}
BY_HAND = [torch.tensor(layer, dtype=F64)[None, None] for layer in ([[0.5, 0.5], [0, 1]], [[1, 0], [0.5, 0.5]])]


def _layers(n_layers=3, B=2, H=3, N=4):
    g = torch.Generator().manual_seed(58)
    return [torch.randn(B, H, N, N, generator=g, dtype=F64).mul(2).softmax(-1) for _ in range(n_layers)]


def _model(ViT, query=1.0):
    """A model with fixed lively weights, in float64; `query` scales what the MAP head's probe asks."""
    vit = ViT(**SIZES, pool="map")
    vit.double()
    vit.eval()
    g, state = torch.Generator().manual_seed(59), dict(vit.state_dict())
    for name in sorted(state):
        if name.endswith(("weight", "bias", "positions", "probe")):
            noise = torch.randn(state[name].shape, generator=g, dtype=F64)
            state[name] = noise / state[name].shape[-1] ** 0.5 + ("norm" in name and name.endswith("weight"))
            if "map_head.attn.q_proj" in name:
                state[name] = 2 * query * state[name]
    vit.load_state_dict(state)
    return vit


def _images(H=6, W=6, B=3):
    return torch.randn(B, 1, H, W, generator=torch.Generator().manual_seed(60), dtype=F64)


def _look(map_attention, vit, images):
    """[B, N]: a weight for each patch; where each head has its own, their mean."""
    got = tensor(map_attention(vit, images), "map_attention")
    B, N = len(images), images.shape[2] // 2 * (images.shape[3] // 2)
    check(got.numel() in (B * N, B * 2 * N) and len(got) == B, f"map_attention has shape {list(got.shape)}, expected "
          f"[B, N] = {[B, N]}: one weight for each patch of each image")
    return got.detach().reshape(B, -1, N).mean(1)


def test_rollout_by_hand(attention_rollout):
    """Two layers of two tokens, by hand: row 0 is (0.75, 0.25)."""
    # keeps: order, row
    got = tensor(attention_rollout(BY_HAND), "the rollout of two layers [1, 1, 2, 2]", (1, 2), F64)
    check(not torch.allclose(got, torch.tensor([[0.8125, 0.1875]], dtype=F64)), "the layers are chained the wrong way "
          "round: later layers come from the left")
    same(got, torch.tensor([[0.75, 0.25]], dtype=F64), "row 0 of the rollout")


def test_rollout_sums_to_one(attention_rollout):
    """[B, N] for any number of layers and heads; each row sums to 1; weights that stay in place give token 0 alone."""
    # keeps: rollout, half
    for n in (1, 2, 4):
        got = tensor(attention_rollout(_layers(n)), f"the rollout of {n} layers", (2, 4), F64)
        same(got.sum(-1), torch.ones(2, dtype=F64), f"the sum of each row after {n} layers")
    eye = [torch.eye(4, dtype=F64).expand(2, 3, 4, 4)] * 3
    same(attention_rollout(eye), torch.eye(4, dtype=F64)[:1].expand(2, 4), "the rollout when each token sees itself "
         "alone")


def test_map_attention_looks(map_attention, ViT):
    """The weights of each image sum to 1, at other sizes too; a probe that asks nothing looks everywhere alike."""
    # keeps: map, other-sizes
    for images in (_images(), _images(4, 10)):
        got = _look(map_attention, _model(ViT), images)
        same(got.sum(-1), torch.ones(3, dtype=F64), "the sum of each image's weights")
        check((got - got[:1]).abs().max() > 1e-4, "the weights are the same for different images")
    even = torch.full((3, 9), 1 / 9, dtype=F64)
    same(_look(map_attention, _model(ViT, query=0.0), _images()), even, "the weights when the query is zero")


@pytest.mark.weight(0.5)
def test_map_attention_form(map_attention, ViT):
    """map_attention gives weights per image and patch, for each head or their mean, and the model stays as it was."""
    # keeps: map, as-before
    vit, images = _model(ViT), _images()
    before = vit(images)
    _look(map_attention, vit, images)
    same(vit(images), before, "the logits of the model after map_attention")


def test_rollout_of_heads(attention_rollout):
    """In each layer all heads count alike: three heads give what their mean gives, in any order."""
    # keeps: heads, rollout
    layers = _layers(3)
    mean = [layer.mean(1, keepdim=True) for layer in layers]
    same(attention_rollout(layers), attention_rollout(mean), "the rollout of three heads, against that of their mean")
    same_as_yours(attention_rollout([layer.flip(1) for layer in layers]), attention_rollout(layers),
                  "heads in another order", "in theirs")
    A, B = mean[0][:, 0], mean[1][:, 0]
    eye = torch.eye(4, dtype=F64)
    same(attention_rollout(layers[:2]), ((B + eye) / 2 @ (A + eye) / 2)[:, 0], "row 0 of (A_2 + I) / 2 (A_1 + I) / 2")
    same_as_yours(attention_rollout([layer[1:] for layer in layers]), attention_rollout(layers)[1:],
                  "one image without others", "with them")


def test_what_the_probe_sees(map_attention, ViT):
    """The weights are those of the MAP head's own probe on the normed tokens of the top, for each image by itself."""
    # keeps: map
    vit, images = _model(ViT), _images()
    got = _look(map_attention, vit, images)
    if run_beside(audible, vit, images):  # a head of another make does not tell what it looks at
        expected = run_beside(head_weights, vit, images).squeeze(2).mean(1)
        same(got, expected, "the weights, against those that the model's map_head.attn uses in forward")
    same(_look(map_attention, vit, images[1:2]), got[1:2], "the weights of one image alone")


def test_left_as_it_was(map_attention, ViT):
    """After map_attention the model has its hooks, its mode and its gradients as before, and can be trained."""
    # keeps: as-before
    left = run_beside(look_and_leave, map_attention, _model(ViT), _images())
    check(left["hooks"] == 0, "a hook of yours is still in the model: take it away")
    check(not left["deaf"], f"{left['deaf'][:1]} has lost a hook of other people: remove your own by its handle")
    check(not left["modes"], f"the model came in training mode, and {left['modes'][:1]} is in evaluation mode now")
    check(not left["woken"], f"the model came in evaluation mode, and {left['woken'][:1]} is in training mode now")
    check(not left["frozen"] and not left["thawed"], "afterwards other parameters want a gradient than before")
    check(left["grad"], "afterwards gradients are switched off everywhere: use `with torch.no_grad():`")
    check(not left["slopes"], "afterwards the gradients that the parameters had are others")
    check(not left["replaced"], f"{left['replaced'][:1]} is not the part that it was")


def probe_by_hand(attention_rollout):
    return attention_rollout(BY_HAND)


def probe_rollout(attention_rollout):
    return attention_rollout(_layers())


def probe_one_layer(attention_rollout):
    return attention_rollout(_layers(1))


def probe_two_layers(attention_rollout):
    return attention_rollout(_layers(2))


def probe_one_head(attention_rollout):
    return attention_rollout(_layers(3, H=1))


def probe_one_image(attention_rollout):
    return attention_rollout(_layers(3, B=1))


def probe_as_many_heads_as_tokens(attention_rollout):
    return attention_rollout(_layers(3, H=4))


def probe_as_many_images_as_heads(attention_rollout):
    return attention_rollout(_layers(3, B=3))


def probe_rollout_shape(attention_rollout):
    return list(attention_rollout(_layers()).shape)


def probe_rollout_float32(attention_rollout):
    return str(attention_rollout([layer.float() for layer in _layers()]).dtype)


def probe_look(map_attention, ViT):
    return map_attention(_model(ViT), _images())


def probe_look_at_larger_images(map_attention, ViT):
    return map_attention(_model(ViT), _images(8, 8))


def probe_look_at_wide_images(map_attention, ViT):
    return map_attention(_model(ViT), _images(4, 10))


def probe_look_without_query(map_attention, ViT):
    return map_attention(_model(ViT, query=0.0), _images())


def probe_look_shape(map_attention, ViT):
    return list(map_attention(_model(ViT), _images()).shape)


def probe_look_sums(map_attention, ViT):
    return map_attention(_model(ViT), _images()).sum(-1)


def probe_look_at_one_image(map_attention, ViT):
    return map_attention(_model(ViT), _images(B=1))


def probe_look_twice(map_attention, ViT):
    vit = _model(ViT)
    map_attention(vit, _images())
    return map_attention(vit, _images(8, 8))


def probe_model_afterwards(map_attention, ViT):
    vit = _model(ViT)
    before = vit(_images())
    map_attention(vit, _images())
    return bool((vit(_images()) - before).abs().max() > 1e-9)


def _left(map_attention, ViT):
    return run_beside(look_and_leave, map_attention, _model(ViT), _images())


def probe_hooks_left(map_attention, ViT):
    return _left(map_attention, ViT)["hooks"]


def probe_modes_left(map_attention, ViT):
    return len(_left(map_attention, ViT)["modes"]) > 0


def probe_frozen(map_attention, ViT):
    return len(_left(map_attention, ViT)["frozen"]) > 0


def probe_gradients_still_on(map_attention, ViT):
    return _left(map_attention, ViT)["grad"]


def probe_woken(map_attention, ViT):
    return len(_left(map_attention, ViT)["woken"]) > 0


def probe_hooks_lost(map_attention, ViT):
    return len(_left(map_attention, ViT)["deaf"])


def probe_parts_replaced(map_attention, ViT):
    return len(_left(map_attention, ViT)["replaced"])
