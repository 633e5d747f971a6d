"""Hidden checks of q5_5: ViT, against a composition of torch's own layers with the same weights."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.in_box.hw5 import first_layer_tokens, refusing
from autograder.judge.expect import raises
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.instruments.torch_match import encoder_layer_state, mha_state

F64 = torch.float64
SIZES = {"image_size": 12, "patch": 4, "channels": 3, "d_model": 12, "n_heads": 3, "d_ff": 20, "n_layers": 2,
         "n_classes": 5}
OTHER = {"image_size": 6, "patch": 2, "channels": 1, "d_model": 8, "n_heads": 2, "d_ff": 14, "n_layers": 3,
         "n_classes": 4}
POOLS = pytest.mark.parametrize("pool", ["cls", "gap", "map"])
ELSEWHERE = [(16, 16), (8, 20), (20, 12), (4, 8), (36, 4), (4, 4)]  # 36 x 4 has as many patches as 12 x 12


class Twin(nn.Module):
    """A Vision Transformer put together from torch's own parts, with the turns that one can take wrongly."""

    def __init__(self, rng, pool, hidden, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes):
        super().__init__()
        self.pool, self.grid, self.width = pool, (image_size // patch,) * 2, d_model
        self.conv = nn.Conv2d(channels, d_model, patch, stride=patch)
        self.positions = nn.Parameter(torch.zeros(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(n_layers)
        )
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(torch.zeros(1, 1, d_model))
        if pool == "map":
            self.probe = nn.Parameter(torch.zeros(1, 1, d_model))
            self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
            self.map_norm = nn.LayerNorm(d_model, eps=1e-6)
            self.fc1, self.fc2 = nn.Linear(d_model, hidden), nn.Linear(hidden, d_model)
        self.double()
        for name, parameter in self.named_parameters():  # lively, so that nothing is zero or equal by chance
            noise = torch.randn(parameter.shape, generator=rng, dtype=F64)
            width = parameter[0].numel() if parameter.ndim > 1 and parameter.shape[0] > 1 else 1
            parameter.data = noise * 1.5 / math.sqrt(width) if width > 1 else 0.4 * noise
            if "norm" in name and name.endswith("weight"):
                parameter.data += 1

    def state(self):
        """The weights under the contract's names."""
        state = {"embed.proj.weight": self.conv.weight.flatten(1), "embed.proj.bias": self.conv.bias,
                 "positions": self.positions}
        for i, layer in enumerate(self.layers):
            state |= {f"layers.{i}.{name}": value for name, value in encoder_layer_state(layer).items()}
        state |= _named(norm=self.norm, head=self.head)
        if self.pool == "cls":
            state["cls"] = self.cls
        if self.pool == "map":
            state["map_head.probe"] = self.probe
            state |= {f"map_head.attn.{name}": value for name, value in mha_state(self.attention).items()}
            parts = {"map_head.norm": self.map_norm, "map_head.mlp.fc1": self.fc1, "map_head.mlp.fc2": self.fc2}
            state |= _named(**parts)
        return {name: value.detach().clone() for name, value in state.items()}

    def slopes(self):
        """The gradients under the contract's names."""
        values = [parameter.data for parameter in self.parameters()]
        for parameter in self.parameters():
            parameter.data = parameter.grad
        slopes = self.state()
        for parameter, value in zip(self.parameters(), values, strict=True):
            parameter.data = value
        return slopes

    def forward(self, images, **wrong):
        tokens = self.conv(images)  # [B, D, rows, cols]
        grid = tuple(tokens.shape[-2:])
        x = tokens.flatten(2).mT
        x = x + wrong.get("positions", self._positions)(grid)
        if self.pool == "cls":
            cls = self.cls.expand(len(x), -1, -1)
            x = torch.cat([x, cls] if wrong.get("cls_last") else [cls, x], 1)
        for layer in self.layers:
            layer = self.layers[0] if wrong.get("one_layer") else layer
            layer.norm_first = not wrong.get("post_norm")
            x = layer(x)
            layer.norm_first = True
        norm, pool = wrong.get("norm", self.norm), wrong.get("pool", self._pooled)
        return wrong.get("head", self.head)(norm(pool(x)) if wrong.get("norm_last") else pool(norm(x)))

    def _positions(self, grid, **options):
        if grid == self.grid:
            return self.positions
        table = self.positions.mT.unflatten(-1, self.grid)
        return F.interpolate(table, grid, **{"mode": "bicubic", "align_corners": False, **options}).flatten(2).mT

    def _other_eps(self, x):
        return F.layer_norm(x, (self.width,), self.norm.weight, self.norm.bias, 1e-6)

    def _pooled(self, x):
        if self.pool == "cls":
            return x[:, 0]
        if self.pool == "gap":
            return x.mean(1)
        z = self.attention(self.probe.expand(len(x), -1, -1), x, x)[0][:, 0]
        return z + self.fc2(F.gelu(self.fc1(self.map_norm(z)), approximate="tanh"))

    def causes(self, images):
        """The logits that known misunderstandings lead to."""
        ways = {
            "the norm comes after the pooling; it belongs before": {"norm_last": True},
            "the last norm is missing": {"norm": nn.Identity()},
            "the positions are not added": {"positions": lambda grid: 0},
            "a softmax was applied; logits come before it": {"head": lambda x: self.head(x).softmax(-1)},
            "a log-softmax was applied; logits come before it": {"head": lambda x: self.head(x).log_softmax(-1)},
            "only the first layer is used, again and again": {"one_layer": True},
            "the layers are post-norm; pre-norm is asked for": {"post_norm": True},
            "the last norm has an eps of 1e-6; here it is LayerNorm's default": {"norm": self._other_eps},
            "the first token is read": {"pool": lambda x: x[:, 0]},
            "the mean of the tokens is read": {"pool": lambda x: x.mean(1)},
            "the last token is read": {"pool": lambda x: x[:, -1]},
            "the mean of the patches is read, and not the class token": {"pool": lambda x: x[:, 1:].mean(1)},
            "the largest entry over the tokens is taken, not their mean": {"pool": lambda x: x.amax(1)},
            "the class token stands at the end": {"cls_last": True},
            "the class token stands at the end, and the last token is read": {"cls_last": True,
                                                                             "pool": lambda x: x[:, -1]},
            "the positions are resized with aligned corners": {
                "positions": lambda grid: self._positions(grid, align_corners=True)},
            "the positions are resized bilinearly, and bicubic is asked for": {
                "positions": lambda grid: self._positions(grid, mode="bilinear")},
            "the positions were cut off or taken in order; they lie on a grid and must be resized": {
                "positions": lambda grid: self.positions[:, : grid[0] * grid[1]]},
            "the rows and columns of the image's grid have changed places": {
                "positions": lambda grid: self._positions(grid[::-1])},
            "there are no positions for another size": {
                "positions": lambda grid: self.positions if grid == self.grid else 0},
            "the mean is over all tokens, weighed as a sum": {"pool": lambda x: x.sum(1)},
        }
        result = {}
        for cause, wrong in ways.items():
            try:
                result[cause] = self(images, **wrong).detach()
            except RuntimeError:  # a way that cannot be gone with this pool or at this size
                continue
        return result


def _named(**modules):
    return {f"{name}.{kind}": value for name, part in modules.items() for kind, value in part.named_parameters()}


def _pair(ViT, rng, pool, sizes=SIZES):
    """The student's model in float64 and evaluation mode, and a twin with the same weights."""
    vit = ViT(**sizes, pool=pool)
    found = vit.parameter_shapes()
    hidden = found.get("map_head.mlp.fc1.weight", (4 * sizes["d_model"],))[0]
    twin = Twin(rng, pool, hidden, **sizes)
    state = twin.state()
    for name, value in state.items():
        check(name in found, f'with pool="{pool}" there is no parameter `{name}`: the parts are embed, positions, '
              'layers, '
              f'norm, head{", cls" if pool == "cls" else ", map_head" if pool == "map" else ""}')
        check(tuple(found[name]) == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected "
              f"{list(value.shape)}" + (": positions are for the patches only" if name == "positions" else ""))
    extra = sorted(set(found) - set(state))
    check(not extra, f'with pool="{pool}", `{extra[0] if extra else ""}` is a parameter too many')
    vit.double()
    vit.eval()
    vit.load_state_dict({**vit.state_dict(), **state})
    return vit, twin


def _images(rng, B=3, side=(12, 12), channels=3):
    return torch.randn(B, channels, *side, generator=rng, dtype=F64)


def _run(vit, images, classes=5, what="the logits"):
    got = tensor(vit(images), what, (len(images), classes), images.dtype)
    check(not got.isnan().any(), f"{what} have NaN")
    return got


def _value(vit, twin, images, what, classes=5):
    got, expected = _run(vit, images, classes, what), twin(images).detach()
    try:
        same(got, expected, what)
    except Wrong:  # only now are the causes worth their time
        same_or_because(got, expected, what, twin.causes(images))


@POOLS
@pytest.mark.weight(3)
def test_value(ViT, rng, pool):
    """With weights put in by name, the logits are those of a model put together from torch's own layers."""
    vit, twin = _pair(ViT, rng, pool)
    for B in (3, 1):
        _value(vit, twin, _images(rng, B), f'the logits of {B} images with pool="{pool}"')


@POOLS
@pytest.mark.weight(2)
def test_other_resolutions(ViT, rng, pool):
    """Images of another size, square or not, smaller or larger: the positions are resized to their grid."""
    vit, twin = _pair(ViT, rng, pool)
    for side in ELSEWHERE:
        what = f'the logits of images of {side[0]} x {side[1]} with pool="{pool}", made for 12 x 12'
        _value(vit, twin, _images(rng, 2, side), what)
    _value(vit, twin, _images(rng, 2), f'the logits at 12 x 12 afterwards, pool="{pool}"')


@pytest.mark.parametrize("side", [(16, 16), (8, 20)])
def test_other_resolutions_after_a_step(ViT, rng, side):
    """Positions that have changed since are resized anew: nothing is kept from an earlier call."""
    vit, twin = _pair(ViT, rng, "gap")
    images = _images(rng, 2, side)
    _run(vit, images)
    with torch.no_grad():
        twin.positions += torch.randn(twin.positions.shape, generator=rng, dtype=F64)
    vit.load_state_dict({**vit.state_dict(), **twin.state()})
    _value(vit, twin, images, f"the logits of images of {side[0]} x {side[1]} after the positions have changed")


@pytest.mark.weight(0.5)
def test_sizes_that_do_not_divide(ViT, in_box, rng):
    """An image whose height or width is not a multiple of the patch is a ValueError, with every pool.

    Who raises it is free: the embedding here refuses such images, so a model may hand them on as they are.
    """
    for pool in ("cls", "gap", "map"):
        vit = ViT(**SIZES, pool=pool)
        in_box(refusing, vit, SIZES["patch"])
        for H, W in ((12, 14), (13, 12), (10, 10), (15, 18)):
            with raises(ValueError, f'images of {H} x {W} with patch 4 and pool="{pool}"'):
                vit(_images(rng, 2, (H, W)).float())


@POOLS
def test_other_sizes(ViT, rng, pool):
    """Other widths, patches, channels, numbers of layers and classes work too."""
    vit, twin = _pair(ViT, rng, pool, OTHER)
    _value(vit, twin, _images(rng, 4, (6, 6), 1), f'the logits of another model with pool="{pool}"', classes=4)
    vit, twin = _pair(ViT, rng, pool, OTHER | {"n_classes": 1, "n_layers": 1})
    _value(vit, twin, _images(rng, 2, (6, 6), 1), f'the logits of a model with one class and pool="{pool}"', classes=1)


@pytest.mark.weight(0.5)
def test_class_token_in_front(ViT, in_box, rng):
    """The class token is the first of the tokens that the layers get: pictures of attention look for it there."""
    vit, twin = _pair(ViT, rng, "cls")
    tokens = in_box(first_layer_tokens, vit, _images(rng))
    if tokens is None:
        return  # the layers' parts are called one by one
    cls = vit.state_dict()["cls"].detach()
    tokens = tensor(tokens, "the tokens of the first layer", (3, 10, cls.shape[-1]))
    if torch.allclose(tokens[:, -1:], cls.expand(3, -1, -1)):
        raise Wrong("the class token stands behind the patches; its place is in front of them",
                    mistake="class-token-at-the-end")
    same(tokens[:, :1], cls.expand(3, -1, -1), "the first token of the first layer, against cls")


def test_default_pool(ViT, rng):
    """Without `pool` the model has a MAP head; arguments may be given by position."""
    vit = ViT(*SIZES.values())
    check("map_head.probe" in vit.parameter_shapes(), 'without `pool` there is no map_head: the default is "map"')
    _, twin = _pair(ViT, rng, "map")
    vit.double()
    vit.eval()
    vit.load_state_dict({**vit.state_dict(), **twin.state()})
    _value(vit, twin, _images(rng), "the logits of the model with the default pool")


def test_unknown_pools(ViT, rng):
    """A pool that is none of "cls", "gap" and "map" is a ValueError when the model is made."""
    for pool in ("max", "mean", "token", "MAP", "cls ", "ap", "s", "", "cls gap", None):
        with raises(ValueError, f"ViT(..., pool={pool!r}), before any image is seen,"):
            ViT(**SIZES, pool=pool)


@POOLS
@pytest.mark.weight(2)
def test_gradients(ViT, rng, pool):
    """Gradients reach the images and every parameter, and they are those of torch's layers."""
    vit, twin = _pair(ViT, rng, pool)
    for side in ((12, 12), (8, 16)):
        images = _images(rng, 2, side)
        mine, other = images.clone().requires_grad_(), images.clone().requires_grad_()
        vit.zero_grad()
        twin.zero_grad()
        got = _run(vit, mine)
        check(got.requires_grad, "no gradient flows from the logits")
        up = torch.randn(got.shape, generator=rng, dtype=F64)
        got.backward(up)
        twin(other).backward(up)
        same(mine.grad, other.grad, f"the gradient of images of {side[0]} x {side[1]}")
        found = vit.grads()
        for name, expected in twin.slopes().items():
            check(found.get(name) is not None, f"no gradient reaches `{name}` from images of {side[0]} x {side[1]}")
            same(found[name], expected, f"the gradient of `{name}` from images of {side[0]} x {side[1]}")


@POOLS
def test_images_stay_apart(ViT, rng, pool):
    """The logits of an image do not depend on the other images of the batch, nor on its place among them."""
    vit, twin = _pair(ViT, rng, pool)
    images = _images(rng, 4)
    together = _run(vit, images)
    order = torch.tensor([2, 0, 3, 1])
    same(_run(vit, images[order]), together[order], "the logits of a reordered batch")
    for row in range(4):
        same(_run(vit, images[row : row + 1]), together[row : row + 1], f"the logits of image {row} as a batch of its "
             "own")
    check((together[0] - together[1]).abs().max() > 1e-6, "two different images have the same logits")
    same(together, twin(images).detach(), "the logits")


@POOLS
def test_places_count(ViT, rng, pool):
    """Patches in other places give other logits, and they would not without positions."""
    vit, twin = _pair(ViT, rng, pool)
    images = _images(rng)
    moved = images.roll((4, 4), (2, 3))
    check(((_run(vit, moved) - _run(vit, images)).abs().amax(-1) > 1e-6).all(), "patches in other places give the same "
          "logits: are the positions added?")
    vit.load_state_dict({**vit.state_dict(), "positions": torch.zeros(1, 9, 12, dtype=F64)})
    same(_run(vit, moved), _run(vit, images), "the logits with positions of 0, after the patches were moved")


@POOLS
def test_start(ViT, rng, pool):
    """A new model is alive: different images have different logits, and the loss has a gradient at every weight."""
    vit = ViT(**SIZES, pool=pool)
    images = _images(rng).float()
    vit.zero_grad()
    logits = _run(vit, images)
    check(logits.isfinite().all(), "an untrained model's logits are not finite")
    F.cross_entropy(logits, torch.tensor([0, 3, 1])).backward()
    found = vit.grads()
    dead = [name for name in found if found[name] is None or not found[name].isfinite().all()]
    check(not dead, f"no finite gradient reaches `{dead[0] if dead else ''}` of a new model")


def test_modes(ViT, rng):
    """There is no dropout: training mode and evaluation mode give the same logits."""
    vit, twin = _pair(ViT, rng, "gap")
    images = _images(rng)
    vit.train()
    _value(vit, twin, images, "the logits in training mode")
    vit.eval()
    _value(vit, twin, images, "the logits in evaluation mode")


@pytest.mark.integration
def test_together(ViT, rng):
    """Together with your own q5_1 to q5_4: the whole model at its own size and at another, with each pool."""
    for pool in ("cls", "gap", "map"):
        vit, twin = _pair(ViT, rng, pool)
        for side in ((12, 12), (8, 20)):
            images = _images(rng, 2, side)
            same(_run(vit, images), twin(images).detach(), f'the logits of images of {side[0]} x {side[1]}, '
                 f'pool="{pool}"')


@POOLS
@pytest.mark.weight(0.5)
def test_float32(ViT, rng, pool):
    """A model in float32 gives float32 logits, at other sizes too."""
    vit, twin = _pair(ViT, rng, pool)
    vit.float()
    for side in ((12, 12), (8, 20)):
        images = _images(rng, 2, side)
        same(_run(vit, images.float()), twin(images).detach().float(), "the logits in float32", rtol=1e-2, atol=2e-3)


@POOLS
@pytest.mark.weight(0.2)
def test_device(ViT, watch, rng, pool):
    """Nothing is made on a fixed device: it would run on a GPU as it stands, at other sizes too."""
    for side in ((12, 12), (8, 16)):
        device_ready(watch, ViT, (), {**SIZES, "pool": pool}, call=(_images(rng, 2, side).float(),))
