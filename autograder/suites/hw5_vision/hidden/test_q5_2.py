"""Hidden checks of q5_2: PatchEmbedding and as_convolution."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.in_box.hw5 import convolution_and_embedding
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor

F64 = torch.float64
SIZES = [  # B, C, rows, cols, patch, D
    (2, 3, 4, 5, 2, 7),
    (3, 2, 3, 2, 4, 5),
    (4, 1, 2, 3, 3, 6),
    (1, 4, 1, 2, 1, 3),
]


def _weights(rng, p, C, D):
    return {
        "proj.weight": torch.randn(D, C * p * p, generator=rng, dtype=F64) / math.sqrt(C * p * p),
        "proj.bias": torch.randn(D, generator=rng, dtype=F64),
    }


def _module(PatchEmbedding, weights, p, C, D):
    """The student's embedding in float64 with these weights."""
    embedding = PatchEmbedding(p, C, D)
    found = embedding.parameter_shapes()
    for name, value in weights.items():
        check(name in found, f"there is no parameter `{name}`: the one layer is proj, an nn.Linear(C * patch * patch, "
              f"D) (found {', '.join(found) or 'none'})")
        check(tuple(found[name]) == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected "
              f"{list(value.shape)} for patch {p}, {C} channels and width {D}")
    extra = sorted(set(found) - set(weights))
    check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many: the only ones are those of proj")
    embedding.double()
    embedding.load_state_dict({**embedding.state_dict(), **weights})
    return embedding


def _case(PatchEmbedding, rng, size):
    B, C, rows, cols, p, D = size
    weights, images = _weights(rng, p, C, D), torch.randn(B, C, rows * p, cols * p, generator=rng, dtype=F64)
    return _module(PatchEmbedding, weights, p, C, D), weights, images


def _by_hand(images, weights, p, order="cij", column_major=False, bias=True):
    """Token by token; `order` is how a patch is flattened."""
    _, _, H, W = images.shape
    corners = [(top, left) for top in range(0, H, p) for left in range(0, W, p)]
    if column_major:
        corners.sort(key=lambda corner: corner[1])
    squares = [images[:, :, top : top + p, left : left + p] for top, left in corners]
    flat = torch.stack([torch.einsum(f"bcij->b{order}", square).flatten(1) for square in squares], 1)
    return F.linear(flat, weights["proj.weight"], weights["proj.bias"] if bias else None)


def _run(embedding, images, size):
    B, C, rows, cols, p, D = size
    what = f"the embedding of images {[B, C, rows * p, cols * p]} with patch {p}"
    got = tensor(embedding(images), what, (B, rows * cols, D), images.dtype)
    check(not got.isnan().any(), f"{what} has NaN")
    return got, what


@pytest.mark.weight(3)
@pytest.mark.parametrize("size", SIZES[:3])
def test_value(PatchEmbedding, rng, size):
    """Token n is proj of the n-th patch in row-major order, flattened as (channel, row, column)."""
    embedding, weights, images = _case(PatchEmbedding, rng, size)
    (B, C, *_, p, _), (got, what) = size, _run(embedding, images, size)
    strips = images.reshape(B, -1, C * p * p)
    same_or_because(got, _by_hand(images, weights, p), what, {
        "a patch is flattened as (row, column, channel); channels come first": _by_hand(images, weights, p, "ijc"),
        "rows and columns of a patch have changed places": _by_hand(images, weights, p, "cji"),
        "the patches run down the columns; row-major order runs along the rows":
            _by_hand(images, weights, p, column_major=True),
        "proj's bias is missing": _by_hand(images, weights, p, bias=False),
        "the image is cut into strips by a reshape without reordering the axes":
            F.linear(strips, weights["proj.weight"], weights["proj.bias"]),
    })


def test_one_module_for_all_sizes(PatchEmbedding, rng):
    """The same module embeds images of any size that the patch divides, batches of one too."""
    p, C, D = 3, 2, 5
    weights = _weights(rng, p, C, D)
    embedding = _module(PatchEmbedding, weights, p, C, D)
    for B, rows, cols in ((2, 3, 4), (1, 1, 1), (3, 5, 2)):
        images = torch.randn(B, C, rows * p, cols * p, generator=rng, dtype=F64)
        got, what = _run(embedding, images, (B, C, rows, cols, p, D))
        same(got, _by_hand(images, weights, p), what)


@pytest.mark.weight(3)
@pytest.mark.parametrize("size", SIZES)
def test_convolution(PatchEmbedding, as_convolution, rng, size):
    """as_convolution gives an nn.Conv2d with a kernel and a stride of one patch, whose outputs are the same tokens."""
    embedding, weights, images = _case(PatchEmbedding, rng, size)
    B, C, rows, cols, p, D = size
    convolution = as_convolution(embedding)
    _looks_like_a_convolution(convolution, p)
    convolution.double()
    got = tensor(convolution(images), f"the convolution's output for images {[B, C, rows * p, cols * p]} and patch {p}",
                 (B, D, rows, cols))

    def convolved(kernel, bias=weights["proj.bias"]):
        return F.conv2d(images, kernel.reshape(D, C, p, p), bias, stride=p)

    w = weights["proj.weight"]
    expected = _by_hand(images, weights, p).mT.reshape(B, D, rows, cols)
    close = {"rtol": 1e-5, "atol": 1e-5} if _float32_inside(convolution, w) else {}
    bias = convolution.state_dict().get("bias")
    same_or_because(got, expected, "the convolution's output", {
        "the convolution has a bias of its own, or none; it is proj's": convolved(w, bias),
        "the kernel was reshaped as (row, column, channel); a patch is flattened as (channel, row, column)":
            convolved(w.reshape(D, p, p, C).permute(0, 3, 1, 2)),
        "rows and columns of the kernel have changed places": convolved(w.reshape(D, C, p, p).mT),
        "the kernel is flipped; nn.Conv2d does not flip": convolved(w.reshape(D, C, p, p).flip(-2, -1)),
    }, **close)
    same(got.flatten(2).mT, embedding(images), "the convolution's output, read as tokens, against the embedding itself",
         **close)


def _looks_like_a_convolution(convolution, p):
    try:
        kernel, stride = convolution.kernel_size, convolution.stride
    except Exception:  # the student's object has no such attribute
        kernel = stride = None
    check(kernel is not None and stride is not None, "as_convolution returns an nn.Conv2d, with its kernel_size and "
          "stride")
    check(tuple(kernel) == (p, p), f"the convolution's kernel is {tuple(kernel)}; it covers one patch, {(p, p)}")
    check(tuple(stride) == (p, p), f"the convolution's stride is {tuple(stride)}; patches do not overlap, so it is "
          f"{(p, p)}")


def _float32_inside(convolution, weight):
    """Whether the kernel's numbers went through float32 on their way."""
    kernel = convolution.state_dict().get("weight")
    return kernel is not None and kernel.numel() == weight.numel() and torch.equal(kernel, kernel.float().double())


def test_convolution_leaves_the_embedding_alone(PatchEmbedding, as_convolution, rng):
    """Making the convolution changes nothing in the embedding, and it can be made again."""
    embedding, _, images = _case(PatchEmbedding, rng, SIZES[0])
    before = embedding.state_dict()
    first = as_convolution(embedding)
    second = as_convolution(embedding)
    same(dict(embedding.state_dict()), dict(before), "the embedding's weights after as_convolution", rtol=0, atol=0)
    for convolution in (first, second):
        convolution.double()
    same(second(images), first(images), "the output of a second convolution made from the same embedding")


def test_embedding_can_still_learn(PatchEmbedding, as_convolution, in_box):
    """Parameters of the embedding that want a gradient do so after as_convolution, and frozen ones stay frozen."""
    for frozen in (False, True):
        seen = in_box(convolution_and_embedding, PatchEmbedding, as_convolution, (2, 3, 7), frozen)
        told = "wants a gradient though it was frozen before" if frozen else "wants no gradient any more"
        check(seen["after"] == seen["before"], f"after as_convolution the embedding's proj {told}: the embedding is "
              "not to be changed")


@pytest.mark.weight(0.5)
def test_convolution_keeps_the_dtype(PatchEmbedding, as_convolution, rng):
    """The convolution of a float64 embedding has its very weights, in float64, that of a float32 one in float32."""
    embedding, weights, _ = _case(PatchEmbedding, rng, SIZES[0])
    for dtype in (F64, torch.float32):
        embedding.double() if dtype == F64 else embedding.float()
        for name, value in as_convolution(embedding).state_dict().items():
            tensor(value, f"`{name}` of the convolution", dtype=dtype)
            own = weights.get(f"proj.{name}")
            if own is not None and own.numel() == value.numel():  # in whatever order; the values are tried above
                same(value.flatten().sort().values, own.to(dtype).flatten().sort().values,
                     f"the numbers in `{name}` of the convolution, against proj's own, both sorted",
                     rtol=1e-12 if dtype == F64 else 1e-6, atol=0)


@pytest.mark.weight(0.5)
def test_convolutions_of_two_embeddings(PatchEmbedding, as_convolution, rng):
    """Each embedding has a convolution of its own, which a second one of the same sizes leaves as it is."""
    (first, weights, images), (second, _, _) = (_case(PatchEmbedding, rng, SIZES[0]) for _ in range(2))
    kept = as_convolution(first)
    as_convolution(second)
    kept.double()
    got = tensor(kept(images), "the convolution's output")
    same(got.flatten(2).mT, _by_hand(images, weights, SIZES[0][4]), "the output of the first of two convolutions",
         rtol=1e-5, atol=1e-5)


@pytest.mark.weight(2)
def test_gradients(PatchEmbedding, rng):
    """Gradients reach the images, proj.weight and proj.bias, and they are those of a linear map."""
    embedding, weights, images = _case(PatchEmbedding, rng, SIZES[0])
    p = SIZES[0][4]
    mine, other = images.clone().requires_grad_(), images.clone().requires_grad_()
    leaves = {name: value.clone().requires_grad_() for name, value in weights.items()}
    got, _ = _run(embedding, mine, SIZES[0])
    check(got.requires_grad, "no gradient flows from the tokens")
    up = torch.randn(got.shape, generator=rng, dtype=F64)
    embedding.zero_grad()
    got.backward(up)
    _by_hand(other, leaves, p).backward(up)
    same(mine.grad, other.grad, "the gradient of the images")
    found = embedding.grads()
    for name, leaf in leaves.items():
        check(found.get(name) is not None, f"no gradient reaches `{name}`")
        same(found[name], leaf.grad, f"the gradient of `{name}`")


def test_images_stay_apart(PatchEmbedding, rng):
    """A change of one pixel moves one token of one image."""
    embedding, _, images = _case(PatchEmbedding, rng, SIZES[0])
    before, _ = _run(embedding, images, SIZES[0])
    p, cols = SIZES[0][4], SIZES[0][3]
    for b, c, i, j in ((0, 0, 0, 0), (1, 2, 5, 7), (1, 1, 2, 9)):
        other = images.clone()
        other[b, c, i, j] += 1
        moved = ((_run(embedding, other, SIZES[0])[0] - before).abs().amax(-1) > 1e-9).nonzero().tolist()
        expected = [[b, i // p * cols + j // p]]
        check(moved == expected, f"the pixel in row {i}, column {j} of image {b} moves the tokens {moved[:3]} "
              f"(image, token), expected {expected[0]} alone")


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_patchify(PatchEmbedding, patchify, rng):
    """Together with your own q5_1: the embedding is proj of your patches."""
    embedding, weights, images = _case(PatchEmbedding, rng, SIZES[1])
    got, what = _run(embedding, images, SIZES[1])
    patches = tensor(patchify(images, SIZES[1][4]), "patchify", (3, 6, 32), F64)
    same(got, F.linear(patches, weights["proj.weight"], weights["proj.bias"]), f"{what}, against proj of your patches")


def test_float32(PatchEmbedding, rng):
    """A float32 embedding of float32 images gives float32 tokens."""
    embedding, weights, images = _case(PatchEmbedding, rng, SIZES[0])
    embedding.float()
    got, what = _run(embedding, images.float(), SIZES[0])
    same(got, _by_hand(images, weights, SIZES[0][4]).float(), what, rtol=1e-3, atol=1e-4)


@pytest.mark.weight(0.5)
def test_device(PatchEmbedding, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, PatchEmbedding, (2, 3, 7), call=(torch.randn(2, 3, 4, 6, generator=rng),))


@pytest.mark.weight(0.5)
def test_convolution_keeps_the_device(PatchEmbedding, as_convolution, watch, rng):
    """The convolution is on the embedding's device."""
    device_ready(watch, as_convolution, call=(PatchEmbedding(2, 3, 7),), then=(torch.randn(2, 3, 4, 6, generator=rng),))
