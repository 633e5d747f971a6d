"""Public checks of q5_5: ViT."""

import torch
import torch.nn.functional as F

from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error

F64 = torch.float64
SIDE, P, C, D, H, WIDTH, LAYERS, CLASSES = 6, 2, 3, 8, 2, 10, 2, 5
SIZES = (SIDE, P, C, D, H, WIDTH, LAYERS, CLASSES)
POOLS = ("cls", "gap", "map")
BRANCHES = ("self_attn.o_proj", "ff.fc2")  # the last linear layer of each branch


def _shapes(pool, hidden=4 * D):
    """The names of the contract with their shapes; `hidden` is the width of the MAP head's mlp."""
    shapes = {"embed.proj.weight": (D, C * P * P), "embed.proj.bias": (D,), "positions": (1, (SIDE // P) ** 2, D)}
    shapes |= {"norm.weight": (D,), "norm.bias": (D,), "head.weight": (CLASSES, D), "head.bias": (CLASSES,)}
    roads = {f"self_attn.{road}_proj": (D, D) for road in "qkvo"}
    for i in range(LAYERS):
        shapes |= _linears(f"layers.{i}.", {**roads, "ff.fc1": (WIDTH, D), "ff.fc2": (D, WIDTH)})
        shapes |= {f"layers.{i}.norm{j}.{kind}": (D,) for j in (1, 2) for kind in ("weight", "bias")}
    if pool == "cls":
        shapes["cls"] = (1, 1, D)
    if pool == "map":
        shapes |= {"map_head.probe": (1, 1, D), "map_head.norm.weight": (D,), "map_head.norm.bias": (D,)}
        roads = {f"attn.{road}_proj": (D, D) for road in "qkvo"}
        shapes |= _linears("map_head.", {**roads, "mlp.fc1": (hidden, D), "mlp.fc2": (D, hidden)})
    return shapes


def _linears(prefix, linears):
    both = {f"{prefix}{name}.weight": shape for name, shape in linears.items()}
    return both | {f"{prefix}{name}.bias": shape[:1] for name, shape in linears.items()}


def _weights(pool, hidden=4 * D):
    """Fixed lively weights; the norms' gains are around 1."""
    g = torch.Generator().manual_seed(55)
    weights = {}
    for name, shape in sorted(_shapes(pool, hidden).items()):
        weights[name] = torch.randn(shape, generator=g, dtype=F64) * (shape[-1] ** -0.5 if len(shape) == 2 else 0.5)
        if "norm" in name and name.endswith("weight"):
            weights[name] += 1
    return weights


def _module(ViT, pool, weights=None):
    """The model in float64 and evaluation mode, with weights put in by name."""
    vit = ViT(*SIZES, pool=pool)
    vit.double()
    vit.eval()
    state = dict(vit.state_dict())
    weights = weights or _weights(pool, len(state.get("map_head.mlp.fc1.bias", range(4 * D))))
    for name, value in weights.items():
        check(name in state, f'the model with pool="{pool}" has no `{name}`: compare its names with the table')
        tensor(state[name], name, value.shape)
    vit.load_state_dict({**state, **weights})
    return vit


def _images(H=SIDE, W=SIDE, B=3):
    return torch.randn(B, C, H, W, generator=torch.Generator().manual_seed(56), dtype=F64)


def _run(vit, images):
    logits = tensor(vit(images), "the logits", (len(images), CLASSES), images.dtype)
    check(logits.isfinite().all(), "the logits are not finite")
    return logits


def test_names_and_shape(ViT):
    """Images [B, C, H, W] give logits [B, n_classes]; names and shapes are those of the table, for each pool."""
    # keeps: parts, shape, cls-only, map-only
    for pool in POOLS:
        vit = _module(ViT, pool)
        _run(vit, _images())
        for name, other in (("cls", "cls"), ("map_head.probe", "map")):
            check(pool == other or name not in vit.state_dict(), f'`{name}` belongs to pool="{other}" only')


def test_unknown_pool(ViT):
    """A pool that is none of "cls", "gap", "map" is a ValueError."""
    # keeps: unknown-pool
    expect_value_error('ViT with pool="max"', ViT, *SIZES, pool="max")


def _idle(pool):
    """Weights of layers that add nothing to their tokens."""
    weights = _weights(pool)
    for name in weights:
        if any(branch in name for branch in BRANCHES) and name.startswith("layers"):
            weights[name] = torch.zeros_like(weights[name])
    return weights


def test_class_token_with_idle_layers(ViT):
    """Layers that add nothing leave the class token as it is: the logits are head(norm(cls)), whatever the image."""
    # keeps: cls, norm
    w = _idle("cls")
    got = _run(_module(ViT, "cls", w), _images())
    expected = F.linear(F.layer_norm(w["cls"][:, 0], (D,), w["norm.weight"], w["norm.bias"]), w["head.weight"],
                        w["head.bias"])
    same(got, expected.expand(3, CLASSES), "the logits, against head(norm(cls)) (the class token gets no position)")


def test_average_with_idle_layers(ViT):
    """With idle layers and a black image the average is that of norm(proj's bias + positions)."""
    # keeps: gap, norm, positions
    w = _idle("gap")
    got = _run(_module(ViT, "gap", w), torch.zeros(2, C, SIDE, SIDE, dtype=F64))
    tokens = F.layer_norm(w["embed.proj.bias"] + w["positions"], (D,), w["norm.weight"], w["norm.bias"])  # [1, N, D]
    expected = F.linear(tokens.mean(1), w["head.weight"], w["head.bias"])
    same(got, expected.expand(2, CLASSES), "the logits of a black image")


def test_images_of_another_size(ViT):
    """Images of another size, square or not, give logits too, and their content and its place count."""
    # keeps: other-sizes
    for pool in POOLS:
        vit = _module(ViT, pool)
        for H, W in ((8, 8), (4, 10), (2, 2)):
            images = _images(H, W)
            before = _run(vit, images)
            check((_run(vit, images.flip(0)) - before.flip(0)).abs().max() < 1e-9, "images of a batch mix")
            check((before[0] - before[1]).abs().max() > 1e-6, f"different images of {H} x {W} have the same logits")
        turned = (_run(vit, _images(4, 10).flip(3)) - _run(vit, _images(4, 10))).abs().max()
        check(turned > 1e-6, "a mirrored image has the same logits")


def test_map_with_idle_layers(ViT, MAPHead):
    """With idle layers the MAP head gets norm(tokens), and the logits are head of what it gives."""
    # keeps: map, norm, map-only
    w = _idle("map")
    vit = _module(ViT, "map", w)
    images = _images()
    tokens = F.layer_norm(_tokens(images, w), (D,), w["norm.weight"], w["norm.bias"])
    own = MAPHead(D, H)
    own.double()
    own.load_state_dict({**own.state_dict(), **{name.removeprefix("map_head."): value for name, value in w.items()
                                                if name.startswith("map_head.")}})
    expected = F.linear(own(tokens), w["head.weight"], w["head.bias"])
    same(_run(vit, images), expected, "the logits, against head(map_head(norm(tokens)))")


def _tokens(images, w):
    """The embedded patches plus positions, square by square."""
    rows, cols = images.shape[-2] // P, images.shape[-1] // P
    squares = [images[:, :, P * r : P * r + P, P * c : P * c + P].flatten(1) for r in range(rows) for c in range(cols)]
    return F.linear(torch.stack(squares, 1), w["embed.proj.weight"], w["embed.proj.bias"]) + w["positions"]


def test_every_layer(ViT):
    """All n_layers layers are used, each with weights of its own; nothing drops, so training mode gives the same."""
    # keeps: layers
    for pool in POOLS:
        vit = _module(ViT, pool)
        before = _run(vit, _images())
        vit.train()
        same(_run(vit, _images()), before, f'the logits with pool="{pool}" in training mode: there is no dropout')
        for i in range(LAYERS):
            weights = _weights(pool, len(_hidden(vit)))
            weights[f"layers.{i}.ff.fc2.bias"] = weights[f"layers.{i}.ff.fc2.bias"] + torch.arange(D, dtype=F64)
            moved = (_run(_module(ViT, pool, weights), _images()) - before).abs().max()
            check(moved > 1e-6, f'with pool="{pool}" the weights of layer {i} have no influence: does every place of '
                  "the list have a layer of its own?")


def _hidden(vit):
    return vit.state_dict().get("map_head.mlp.fc1.bias", range(4 * D))


def test_positions_of_another_grid(ViT, resize_positions):
    """Images of another size get `resize_positions(positions, own grid, their grid)`, rows first, in every call."""
    # keeps: other-sizes, divides, positions
    w = _idle("gap")
    vit = _module(ViT, "gap", w)
    for H, W in ((4, 10), (8, 6), (SIDE, SIDE)):
        _same_black(vit, w, resize_positions, H, W)
    w["positions"] = -2 * w["positions"]
    vit.load_state_dict({**vit.state_dict(), "positions": w["positions"]})  # as training would change them
    _same_black(vit, w, resize_positions, 4, 10)
    for H, W in ((5, 6), (6, 7)):
        expect_value_error(f"a ViT with patches of {P} on images of {H} x {W}", vit, _images(H, W))


def _same_black(vit, w, resize_positions, H, W):
    """A black image's average is that of norm(bias + its positions), each weighed by its place."""
    places = resize_positions(w["positions"], (SIDE // P, SIDE // P), (H // P, W // P))
    square = torch.zeros(1, C, H, W, dtype=F64)
    square[0, :, :P, -P:] = 3.0  # the last square of the first row is white
    tokens = w["embed.proj.bias"] + places.clone()
    tokens[:, W // P - 1] += F.linear(torch.full((1, C * P * P), 3.0, dtype=F64), w["embed.proj.weight"])
    tokens = F.layer_norm(tokens, (D,), w["norm.weight"], w["norm.bias"])
    same(_run(vit, square), F.linear(tokens.mean(1), w["head.weight"], w["head.bias"]), f"the logits of an image of "
         f"{H} x {W} with one white square, the layers adding nothing")


def probe_names_cls(ViT):
    return sorted(name for name in ViT(*SIZES, pool="cls").state_dict() if not name.startswith("layers"))


def probe_names_gap(ViT):
    return sorted(name for name in ViT(*SIZES, pool="gap").state_dict() if not name.startswith("layers"))


def probe_names_map(ViT):
    return sorted(name for name in ViT(*SIZES).state_dict() if not name.startswith("layers"))


def probe_names_of_layers(ViT):
    return sorted(name for name in ViT(*SIZES).state_dict() if name.startswith("layers"))


def probe_positions(ViT):
    return list(ViT(*SIZES, pool="cls").state_dict()["positions"].shape)


def probe_unknown_pool(ViT):
    return raises_value_error(ViT, *SIZES, pool="max")


def probe_cls(ViT):
    return _module(ViT, "cls")(_images())


def probe_gap(ViT):
    return _module(ViT, "gap")(_images())


def probe_map(ViT):
    return _module(ViT, "map")(_images())


def probe_cls_idle(ViT):
    return _module(ViT, "cls", _idle("cls"))(_images())


def probe_gap_idle(ViT):
    return _module(ViT, "gap", _idle("gap"))(_images())


def probe_map_idle(ViT):
    return _module(ViT, "map", _idle("map"))(_images())


def probe_cls_larger(ViT):
    return _module(ViT, "cls")(_images(8, 8))


def probe_gap_larger(ViT):
    return _module(ViT, "gap")(_images(8, 8))


def probe_map_larger(ViT):
    return _module(ViT, "map")(_images(8, 8))


def probe_map_smaller(ViT):
    return _module(ViT, "map")(_images(4, 4))


def probe_gap_wide(ViT):
    return _module(ViT, "gap")(_images(4, 10))


def probe_gap_tall(ViT):
    return _module(ViT, "gap")(_images(10, 4))


def probe_gap_as_many_patches(ViT):
    return _module(ViT, "gap")(_images(2, 18))


def probe_cls_wide(ViT):
    return _module(ViT, "cls")(_images(4, 10))


def probe_one_image(ViT):
    return _module(ViT, "gap")(_images(B=1))


def probe_alone(ViT):
    return [_module(ViT, pool)(_images()[:1]) for pool in POOLS]


def probe_training_mode(ViT):
    vit = _module(ViT, "gap")
    vit.train()
    return vit(_images())


def probe_float32(ViT):
    vit = _module(ViT, "cls")
    vit.float()
    return str(vit(_images(8, 8).float()).dtype)


def probe_gradient(ViT):
    images = _images().requires_grad_()
    logits = _module(ViT, "map")(images)
    (logits * torch.linspace(-1, 1, logits.numel(), dtype=F64).reshape(logits.shape)).sum().backward()
    return images.grad


def probe_gradient_at_another_size(ViT):
    images = _images(4, 6).requires_grad_()
    logits = _module(ViT, "cls")(images)
    (logits * torch.linspace(-1, 1, logits.numel(), dtype=F64).reshape(logits.shape)).sum().backward()
    return images.grad


def probe_size_that_does_not_divide(ViT):
    return raises_value_error(_module(ViT, "gap"), _images(7, 6))


def probe_larger_after_a_step(ViT):
    vit = _module(ViT, "gap")
    vit(_images(8, 8))
    weights = _weights("gap")
    vit.load_state_dict({**vit.state_dict(), **weights, "positions": -weights["positions"]})
    return vit(_images(8, 8))


def probe_repeats_in_training_mode(ViT):
    vit = _module(ViT, "gap")
    vit.train()
    return all(bool((vit(_images()) == vit(_images())).all()) for _ in range(3))
