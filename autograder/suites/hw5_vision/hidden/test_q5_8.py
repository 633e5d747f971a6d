"""Hidden checks of q5_8: attention_rollout by explicit loops, map_attention against torch's own layers."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.in_box.hw5 import made_audible
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.hw5.attention_runs import look_and_leave
from course_utils.instruments.calls import call_twice
from course_utils.instruments.torch_match import encoder_layer_state, mha_state

F64 = torch.float64
SHAPES = [(1, 2, 3, 4), (2, 3, 2, 5), (3, 2, 4, 6), (5, 4, 1, 3), (4, 1, 3, 7)]  # layers, B, H, N
SIDE, P, C, D, H, WIDTH, LAYERS, CLASSES = 12, 4, 3, 12, 3, 20, 2, 5
SIZES = {"image_size": SIDE, "patch": P, "channels": C, "d_model": D, "n_heads": H, "d_ff": WIDTH, "n_layers": LAYERS,
         "n_classes": CLASSES, "pool": "map"}


def _layers(rng, n_layers, B, H, N, dtype=F64):
    return [(2 * torch.randn(B, H, N, N, generator=rng, dtype=F64)).softmax(-1).to(dtype) for _ in range(n_layers)]


def _rollout(weights):
    """How much of each input token arrives at token 0, by loops, image by image and layer by layer from the top."""
    B, H, N, _ = weights[0].shape
    result = torch.zeros(B, N, dtype=F64)
    for b in range(B):
        share = [1.0] + [0.0] * (N - 1)  # what token 0 of the top is made of, followed downwards
        for layer in reversed(weights):
            mean = [[sum(layer[b, h, i, j].item() for h in range(H)) / H for j in range(N)] for i in range(N)]
            share = [share[j] / 2 + sum(share[i] * mean[i][j] for i in range(N)) / 2 for j in range(N)]
        result[b] = torch.tensor(share, dtype=F64)
    return result


def _chain(matrices, left=True):
    product = matrices[0]
    for matrix in matrices[1:]:
        product = matrix @ product if left else product @ matrix
    return product


def _rollout_causes(weights):
    N = weights[0].shape[-1]
    eye, means = torch.eye(N, dtype=F64), [layer.double().mean(1) for layer in weights]
    halves = [(mean + eye) / 2 for mean in means]
    top = [(layer.double().amax(1) + eye) / 2 for layer in weights]
    right = _chain(halves)
    return {
        "the layers are chained the wrong way round: later layers come from the left": _chain(halves, left=False)[:, 0],
        "the identity is left out: each layer is (A + I) / 2": _chain(means)[:, 0],
        "the identity is left out and the layers are chained the wrong way round": _chain(means, left=False)[:, 0],
        "A + I is not halved": _chain([mean + eye for mean in means])[:, 0],
        "column 0 is returned; row 0 is asked for": right[:, :, 0],
        "the last row is returned; row 0 is asked for": right[:, -1],
        "the mean of all rows is returned; row 0 is asked for": right.mean(1),
        "only the first head counts; take the mean over the heads":
            _chain([(w.double()[:, 0] + eye) / 2 for w in weights])[:, 0],
        "the largest head counts; take the mean over the heads": _chain(top)[:, 0],
        "the largest head counts, normalised; take the mean over the heads":
            _chain([t / t.sum(-1, keepdim=True) for t in top])[:, 0],
        "the heads are summed; take their mean": _chain([(layer.double().sum(1) + eye) / 2 for layer in weights])[:, 0],
        "the identity weighs twice as much: A / 2 + I": _chain([mean / 2 + eye for mean in means])[:, 0],
        "only the last layer counts": halves[-1][:, 0],
        "only the first layer counts": halves[0][:, 0],
        "the layers are averaged; they are multiplied": torch.stack(halves).mean(0)[:, 0],
        "each layer's weights are transposed": _chain([half.mT for half in halves])[:, 0],
    }


@pytest.mark.weight(3)
def test_rollout_value(attention_rollout, rng):
    """Mean over heads, (A + I) / 2, later layers from the left, row 0: against explicit loops."""
    for shape in SHAPES:
        weights = _layers(rng, *shape)
        what = f"the rollout of {shape[0]} {'layer' if shape[0] == 1 else 'layers'} of shape {list(shape[1:])}"
        got = tensor(attention_rollout(weights), what, (shape[1], shape[3]), F64)
        expected = _rollout(weights)
        try:
            same(got, expected, what)
        except Wrong:
            same_or_because(got, expected, what, _rollout_causes(weights))


@pytest.mark.weight(0.5)
def test_rollout_leaves_its_list(attention_rollout, in_box, rng):
    """The list of weights, and every tensor in it, is the same afterwards: a second call gives the same result."""
    weights = _layers(rng, 3, 2, 2, 4)
    first, second = in_box(call_twice, attention_rollout, [weights], [weights])
    same(first, _rollout(weights), "the rollout")
    same(second, first, "the rollout of the same list a second time")


def test_rollout_rows(attention_rollout, rng):
    """Each row sums to 1 and is nowhere negative; token 0 keeps at least 1 / 2 ** layers of itself."""
    for n in (1, 3, 6):
        got = tensor(attention_rollout(_layers(rng, n, 3, 2, 5)), f"the rollout of {n} layers", (3, 5), F64)
        same(got.sum(-1), torch.ones(3, dtype=F64), f"the sum of each row after {n} layers")
        check((got >= 0).all(), "a share is negative")
        check((got[:, 0] >= 0.5**n - 1e-9).all(), "the residual road keeps half of token 0 in each layer, and here "
              "less "
              "has arrived")


def test_rollout_of_moves(attention_rollout):
    """Weights that move tokens around, layer by layer: the order of the layers shows."""
    N = 4
    swap, turn = torch.eye(N, dtype=F64)[[1, 0, 2, 3]], torch.eye(N, dtype=F64).roll(1, 1)
    for first, second in ((swap, turn), (turn, swap)):
        weights = [matrix.expand(2, 3, N, N).clone() for matrix in (first, second)]
        got = tensor(attention_rollout(weights), "the rollout", (2, N), F64)
        same_or_because(got, _rollout(weights), "the rollout of a swap and a rotation", _rollout_causes(weights))


def test_rollout_images_stay_apart(attention_rollout, rng):
    """Each image has its own rollout."""
    weights = _layers(rng, 3, 4, 2, 5)
    together = tensor(attention_rollout(weights), "the rollout", (4, 5), F64)
    for b in range(4):
        alone = attention_rollout([layer[b : b + 1] for layer in weights])
        same(alone, together[b : b + 1], f"the rollout of image {b} alone, against that in the batch")
    same(together, _rollout(weights), "the rollout")


def test_rollout_float32(attention_rollout, rng):
    """float32 in, float32 out."""
    weights = _layers(rng, 3, 2, 3, 4, torch.float32)
    got = tensor(attention_rollout(weights), "the rollout of float32 weights", (2, 4), torch.float32)
    same(got, _rollout(weights).float(), "the rollout of float32 weights", rtol=1e-4, atol=1e-5)


class Twin(nn.Module):
    """A Vision Transformer of torch's own parts, up to its MAP head."""

    def __init__(self, rng):
        super().__init__()
        self.conv = nn.Conv2d(C, D, P, stride=P)
        self.positions = nn.Parameter(torch.zeros(1, (SIDE // P) ** 2, D))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(D, H, WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(LAYERS)
        )
        self.norm, self.probe = nn.LayerNorm(D), nn.Parameter(torch.zeros(1, 1, D))
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)
        self.double()
        for name, parameter in self.named_parameters():
            noise = torch.randn(parameter.shape, generator=rng, dtype=F64)
            width = parameter[0].numel() if parameter.ndim > 1 and parameter.shape[0] > 1 else 1
            parameter.data = noise * 1.5 / math.sqrt(width) if width > 1 else 0.5 * noise
            if "norm" in name and name.endswith("weight"):
                parameter.data += 1

    def state(self):
        """The weights under the contract's names."""
        state = {"embed.proj.weight": self.conv.weight.flatten(1), "embed.proj.bias": self.conv.bias,
                 "positions": self.positions, "norm.weight": self.norm.weight, "norm.bias": self.norm.bias,
                 "map_head.probe": self.probe}
        for i, layer in enumerate(self.layers):
            state |= {f"layers.{i}.{name}": value for name, value in encoder_layer_state(layer).items()}
        state |= {f"map_head.attn.{name}": value for name, value in mha_state(self.attention).items()}
        return {name: value.detach().clone() for name, value in state.items()}

    @torch.no_grad()
    def look(self, images, resize=True, norm=True, layers=True, positions=True):
        """The probe's weights [B, H, N]; the switches leave out a part."""
        tokens = self.conv(images)
        grid, x = tuple(tokens.shape[-2:]), tokens.flatten(2).mT
        table = self.positions
        if grid != (SIDE // P, SIDE // P) and resize:
            table = self.positions.mT.unflatten(-1, (SIDE // P, SIDE // P))
            table = F.interpolate(table, grid, mode="bicubic", align_corners=False).flatten(2).mT
        x = x + table if positions else x
        for layer in self.layers if layers else ():
            x = layer(x)
        x = self.norm(x) if norm else x
        probe = self.probe.expand(len(x), -1, -1)
        return self.attention(probe, x, x, average_attn_weights=False)[1][:, :, 0]


def _pair(ViT, in_box, rng):
    """The student's model in float64 and evaluation mode, and a twin with the same weights.

    A MAP head may be right without ever calling its attention for all images; then one that does takes its place.
    """
    vit, twin = ViT(**SIZES), Twin(rng)
    vit.double()
    vit.eval()
    own, state = vit.state_dict(), twin.state()
    for name, value in state.items():
        check(name in own, f"your ViT has no `{name}`")
        tensor(own[name], f"`{name}` of your ViT", value.shape)
    vit.load_state_dict({**own, **state})
    in_box(made_audible, vit, _images(rng, 2))
    return vit, twin


def _images(rng, B=4, side=(SIDE, SIDE)):
    return torch.randn(B, C, *side, generator=rng, dtype=F64)


def _looked(got, images):
    """What map_attention gave as [B, N]: weights by head are averaged, a grid is flattened."""
    B, N = len(images), images.shape[2] // P * (images.shape[3] // P)
    got = tensor(got, "map_attention", dtype=images.dtype)
    forms = [(B, N), (B, 1, N), (B, H, N), (B, H, 1, N), (B, images.shape[2] // P, images.shape[3] // P)]
    check(tuple(got.shape) in forms, f"map_attention has shape {list(got.shape)}, expected [B, N] = {[B, N]}: one "
          "weight "
          "for each patch of each image")
    got = got.detach().reshape(B, -1, N).mean(1)
    check(not got.isnan().any(), "map_attention has NaN")
    return got


def _look(map_attention, vit, twin, images, what):
    got, weights = _looked(map_attention(vit, images), images), twin.look(images)
    square = images.shape[2] == images.shape[3] == SIDE
    try:
        same(got, weights.mean(1), what)
    except Wrong:
        causes = {
            "only the first head counts; take the mean over the heads": weights[:, 0],
            "the largest head counts; take the mean over the heads": weights.amax(1),
            "the heads are summed; take their mean": weights.sum(1),
            "the norm before the MAP head is left out": twin.look(images, norm=False).mean(1),
            "the encoder's layers are left out": twin.look(images, layers=False).mean(1),
            "the positions are left out": twin.look(images, positions=False).mean(1),
            "every patch has the same weight": torch.full_like(got, 1 / got.shape[1]),
        }
        if not square and got.shape[1] == (SIDE // P) ** 2:
            causes["the positions are not resized to the image's grid"] = twin.look(images, resize=False).mean(1)
        same_or_because(got, weights.mean(1), what, causes)


@pytest.mark.weight(3)
def test_look_value(map_attention, ViT, in_box, rng):
    """The weights that the MAP head's probe gives to the patches, mean over heads, as torch's own layers have them."""
    vit, twin = _pair(ViT, in_box, rng)
    for B in (4, 1):
        _look(map_attention, vit, twin, _images(rng, B), f"the probe's weights on the patches of {B} images")


def test_look_rows(map_attention, ViT, in_box, rng):
    """The weights of each image are positive and sum to 1, and they follow the image."""
    vit, _ = _pair(ViT, in_box, rng)
    images = _images(rng)
    got = _looked(map_attention(vit, images), images)
    same(got.sum(-1), torch.ones(4, dtype=F64), "the sum of each image's weights")
    check((got > 0).all(), "a weight is not positive")
    check((got[0] - got[1]).abs().max() > 1e-6, "two images have the same weights")
    order = torch.tensor([2, 0, 3, 1])
    same(_looked(map_attention(vit, images[order]), images), got[order], "the weights of a reordered batch")


@pytest.mark.weight(2)
def test_look_elsewhere(map_attention, ViT, in_box, rng):
    """Images of another size have weights for their own patches, with resized positions."""
    vit, twin = _pair(ViT, in_box, rng)
    for side in ((16, 16), (8, 20), (36, 4), (4, 8)):
        what = f"the probe's weights on images of {side[0]} x {side[1]}, by a model made for {SIDE} x {SIDE}"
        _look(map_attention, vit, twin, _images(rng, 2, side), what)


def test_model_afterwards(map_attention, ViT, in_box, rng):
    """map_attention leaves the model as it was, and may be called again and again."""
    vit, twin = _pair(ViT, in_box, rng)
    images = _images(rng)
    state, logits = dict(vit.state_dict()), vit(images)
    for side in ((SIDE, SIDE), (8, 16), (SIDE, SIDE)):
        _look(map_attention, vit, twin, _images(rng, 3, side), "the probe's weights in one of several calls")
    same(dict(vit.state_dict()), state, "the model's weights after map_attention", rtol=0, atol=0)
    same(vit(images), logits, "the model's logits after map_attention")


def test_nothing_is_left_behind(map_attention, ViT, in_box, rng):
    """After map_attention the model has no more hooks than before, is in the mode that it had, and can still learn."""
    vit, _ = _pair(ViT, in_box, rng)
    left = in_box(look_and_leave, map_attention, vit, _images(rng))
    check(left["hooks"] <= 0, f"map_attention leaves {left['hooks']} hooks in the model: take them away afterwards")
    check(left["grad"], "map_attention leaves gradients switched off for everything that comes later: use `with "
          "torch.no_grad():`")
    check(not left["frozen"], f"`{left['frozen'][0] if left['frozen'] else ''}` wants no gradient after map_attention: "
          "the model is not to be changed")
    check(not left["modes"], "the model was in training mode before map_attention and is in evaluation mode "
          "afterwards: put it back into the mode that it had")
    check(not left["woken"], "the model was in evaluation mode before map_attention and is in training mode "
          "afterwards: put it back into the mode that it had")


def test_nothing_is_undone(map_attention, ViT, in_box, rng):
    """After map_attention the model's parts, other people's hooks, gradients and frozen parameters are as before."""
    vit, _ = _pair(ViT, in_box, rng)
    left = in_box(look_and_leave, map_attention, vit, _images(rng))
    check(not left["deaf"], f"a hook that others had put on `{_first(left['deaf'])}` is gone after map_attention: "
          "remove your own only, by the handle that register_forward_hook gives")
    check(not left["replaced"], f"`{_first(left['replaced'])}` is another after map_attention, or has another forward: "
          "the model is not to be changed")
    check(not left["thawed"], f"`{_first(left['thawed'])}` was frozen before map_attention and wants a gradient "
          "afterwards: leave requires_grad alone, torch.no_grad() is enough")
    check(not left["slopes"], f"the gradient of `{_first(left['slopes'])}` is another after map_attention: the model "
          "is not to be changed")


def _first(names):
    return names[0] if names else ""


@pytest.mark.weight(0.5)
def test_device(attention_rollout, watch, rng):
    """Nothing is made on a fixed device: the rollout would run on a GPU as it stands."""
    device_ready(watch, attention_rollout, call=(_layers(rng, 2, 2, 3, 4, torch.float32),))
