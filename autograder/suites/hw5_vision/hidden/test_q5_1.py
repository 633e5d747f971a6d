"""Hidden checks of q5_1: patchify and unpatchify."""

import pytest
import torch

from autograder.judge.expect import raises
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_twice, call_with_slices, call_with_views

F64 = torch.float64
EXACT = {"rtol": 0, "atol": 0}
SIZES = [  # B, C, rows, cols, patch
    (2, 3, 4, 5, 2),
    (3, 2, 3, 2, 4),
    (4, 1, 2, 3, 3),
    (2, 5, 3, 3, 2),
    (1, 3, 1, 4, 2),
    (3, 4, 5, 1, 3),
    (2, 3, 4, 2, 1),
    (3, 2, 1, 1, 5),
]


def _draw(rng, *shape, dtype=F64):
    return torch.randn(*shape, generator=rng, dtype=F64).to(dtype)


def _patchify(images, p):
    """Patch by patch: row after row of patches, each cut out and flattened as (channel, row, column)."""
    _, _, H, W = images.shape
    corners = [(top, left) for top in range(0, H, p) for left in range(0, W, p)]
    return torch.stack([images[:, :, top : top + p, left : left + p].flatten(1) for top, left in corners], 1)


def _unpatchify(patches, p, C, H, W):
    """Each patch put where it belongs."""
    images = patches.new_zeros(len(patches), C, H, W)
    for n in range(patches.shape[1]):
        top, left = n // (W // p) * p, n % (W // p) * p
        images[:, :, top : top + p, left : left + p] = patches[:, n].reshape(-1, C, p, p)
    return images


def _grid(B, C, rows, cols, p):
    """The axes' names of an image that is cut up, with their sizes."""
    return dict(zip("bchiwj", (B, C, rows, p, cols, p), strict=True))


def _as(x, source, target, sizes, shape):
    """Axes `source` of x, put in the order `target` and flattened to `shape`."""
    return torch.einsum(f"{source}->{target}", x.reshape([sizes[axis] for axis in source])).reshape(shape)


WRONG_ORDERS = {  # how the axes (batch, channel, patch row h, row i, patch column w, column j) end up
    "bhwijc": "a patch is flattened as (row, column, channel); the channel comes first, then row, then column",
    "bhwicj": "a patch is flattened as (row, channel, column); the channel comes first, then row, then column",
    "bhwcji": "a patch is flattened as (channel, column, row): its rows and columns have changed places",
    "bwhcij": "the patches run down the columns; row-major order runs along the rows",
    "bwhcji": "the image is transposed: patches run down the columns, and so do the pixels in each",
    "bcijhw": "these are the columns of F.unfold or of a strided view without the last transpose",
    "bchwij": "the channels have become tokens: move the channel's axis behind those of the patches",
    "bhiwjc": "rows and columns of patches and pixels have not been reordered, and channels come last",
    "bchiwj": "a `reshape` alone keeps the order in memory; the axes must be reordered before they are flattened",
}


def test_shapes_and_dtypes(patchify, unpatchify, rng):
    """[B, C, H, W] becomes [B, N, C * patch * patch] and comes back, in the input's dtype."""
    for B, C, rows, cols, p in SIZES:
        H, W, N, K = rows * p, cols * p, rows * cols, C * p * p
        for dtype in (torch.float32, F64):
            images, patches = _draw(rng, B, C, H, W, dtype=dtype), _draw(rng, B, N, K, dtype=dtype)
            tensor(patchify(images, p), f"patchify of {[B, C, H, W]} with patch {p}", (B, N, K), dtype)
            tensor(unpatchify(patches, p, C, H, W), f"unpatchify of {[B, N, K]}", (B, C, H, W), dtype)


@pytest.mark.weight(3)
def test_patchify_values(patchify, rng):
    """Patch n is the square of pixels at row n // cols, column n % cols, flattened as (channel, row, column)."""
    for B, C, rows, cols, p in SIZES:
        H, W = rows * p, cols * p
        images = _draw(rng, B, C, H, W)
        what = f"patchify of {[B, C, H, W]} with patch {p}"
        got = tensor(patchify(images, p), what, (B, rows * cols, C * p * p), F64)
        sizes = _grid(B, C, rows, cols, p)
        causes = {why: _as(images, "bchiwj", order, sizes, got.shape) for order, why in WRONG_ORDERS.items()}
        causes["height and width have changed places"] = _as(images.mT, "bchiwj", "bhwcij", sizes, got.shape)
        causes["a patch gathers pixels that lie apart; it is a block of neighbours: unfold the height as (rows, p), "
               "not as (p, rows)"] = _as(images, "bcihjw", "bhwcij", sizes, got.shape)
        same_or_because(got, _patchify(images, p), what, causes, **EXACT)


@pytest.mark.weight(3)
def test_unpatchify_values(unpatchify, rng):
    """Every patch goes back to its place in the image, every number to its channel, row and column."""
    for B, C, rows, cols, p in SIZES:
        H, W = rows * p, cols * p
        patches = _draw(rng, B, rows * cols, C * p * p)
        what = f"unpatchify to {[B, C, H, W]} with patch {p}"
        got = tensor(unpatchify(patches, p, C, H, W), what, (B, C, H, W), F64)
        sizes = _grid(B, C, rows, cols, p)
        causes = {why: _as(patches, order, "bchiwj", sizes, got.shape) for order, why in WRONG_ORDERS.items()}
        causes["the axes were put in an order that suits the shape, not the pixels: axes of patches and of pixels must "
               "alternate before they are merged"] = _as(patches, "bhwcij", "bchwij", sizes, got.shape)
        turned = _grid(B, C, cols, rows, p)
        causes["height and width have changed places"] = _as(patches, "bhwcij", "bchiwj", turned, got.shape)
        same_or_because(got, _unpatchify(patches, p, C, H, W), what, causes, **EXACT)


@pytest.mark.weight(2)
def test_inverses(patchify, unpatchify, rng):
    """Each undoes the other exactly, bit for bit."""
    for B, C, rows, cols, p in SIZES:
        H, W, N, K = rows * p, cols * p, rows * cols, C * p * p
        images, patches = _draw(rng, B, C, H, W), _draw(rng, B, N, K)
        cut = tensor(patchify(images, p), f"patchify of {[B, C, H, W]} with patch {p}", (B, N, K), F64)
        told = f"for {[B, C, H, W]}, patch {p}"
        same(unpatchify(cut, p, C, H, W), images, f"unpatchify(patchify(images)) {told}", **EXACT)
        whole = tensor(unpatchify(patches, p, C, H, W), f"unpatchify to {[B, C, H, W]}", (B, C, H, W), F64)
        same(patchify(whole, p), patches, f"patchify(unpatchify(patches)) for {[B, C, H, W]}, patch {p}", **EXACT)


@pytest.mark.weight(2)
def test_every_size_that_does_not_divide(patchify):
    """A height or width that is not a multiple of the patch is a ValueError, whatever the other is."""
    for H, W, p in ((5, 6, 3), (6, 5, 3), (7, 7, 2), (6, 6, 4), (2, 4, 4), (9, 12, 6), (12, 9, 6)):
        side = "height" if H % p else "width"
        with raises(ValueError, f"patchify of images {[2, 3, H, W]} with patch {p}, which does not divide the {side},"):
            patchify(torch.zeros(2, 3, H, W), p)


@pytest.mark.weight(0.5)
def test_no_way_back_to_sizes_that_do_not_divide(unpatchify):
    """unpatchify to a height or width that is not a multiple of the patch is a ValueError too."""
    for H, W, p in ((5, 6, 3), (6, 5, 3), (7, 7, 2), (12, 9, 6)):
        with raises(ValueError, f"unpatchify to height {H} and width {W} with patch {p}, which does not divide both,"):
            unpatchify(torch.zeros(2, (H // p) * (W // p), 3 * p * p), p, 3, H, W)


def test_pixels_move_alone(patchify, rng):
    """A change of one pixel in one channel is seen in one entry of one patch."""
    images = _draw(rng, 3, 2, 6, 12)
    before = tensor(patchify(images, 3), "patchify of [3, 2, 6, 12] with patch 3", (3, 8, 18), F64)
    for b, c, i, j in ((0, 0, 0, 0), (1, 1, 2, 7), (2, 0, 5, 11), (1, 1, 4, 3)):
        other = images.clone()
        other[b, c, i, j] += 1
        moved = tensor(patchify(other, 3), "patchify of [3, 2, 6, 12] with patch 3", (3, 8, 18), F64) != before
        found, expected = moved.nonzero().tolist(), [[b, i // 3 * 4 + j // 3, c * 9 + i % 3 * 3 + j % 3]]
        check(found == expected, f"channel {c} of the pixel in row {i}, column {j} of image {b} is found at "
              f"{found[:3]} "
              f"in [B, N, C * patch * patch], expected at {expected[0]}")


def test_layout_in_memory(patchify, unpatchify, in_box, rng):
    """Only values count, not how they lie in memory: views such as a transposed image are cut like any other."""
    images, patches = _draw(rng, 2, 3, 4, 6), _draw(rng, 2, 6, 12)
    for how, name in ((call_with_views, "a transposed view"), (call_with_slices, "a slice of a larger tensor")):
        same(in_box(how, patchify, images, 2), _patchify(images, 2), f"patchify of images that are {name}", **EXACT)
        same(in_box(how, unpatchify, patches, 2, 3, 4, 6), _unpatchify(patches, 2, 3, 4, 6),
             f"unpatchify of patches that are {name}", **EXACT)


@pytest.mark.weight(0.5)
def test_results_are_their_own(patchify, unpatchify, in_box, rng):
    """A result stays as it is when the function is called again."""
    images, patches = _draw(rng, 2, 2, 3, 4, 6), _draw(rng, 2, 2, 6, 12)
    for name, function, given, more, expected in (
        ("patchify", patchify, images, (2,), _patchify(images[0], 2)),
        ("unpatchify", unpatchify, patches, (2, 3, 4, 6), _unpatchify(patches[0], 2, 3, 4, 6)),
    ):
        kept, _ = in_box(call_twice, function, [given[0], *more], [given[1], *more])
        same(kept, expected, f"the result of {name} after a second call with other numbers", **EXACT)


def test_gradients(patchify, unpatchify, rng):
    """Gradients flow back through both, each entry to the pixel that it came from."""
    images, patches = _draw(rng, 2, 3, 4, 6).requires_grad_(), _draw(rng, 2, 6, 12).requires_grad_()
    for name, leaf, out, back in (
        ("patchify", images, patchify(images, 2), lambda g: _unpatchify(g, 2, 3, 4, 6)),
        ("unpatchify", patches, unpatchify(patches, 2, 3, 4, 6), lambda g: _patchify(g, 2)),
    ):
        out = tensor(out, name, patches.shape if name == "patchify" else images.shape, F64)
        check(out.requires_grad, f"no gradient flows through {name}: stay with torch, and do not detach")
        up = _draw(rng, *out.shape)
        (got,) = torch.autograd.grad(out, leaf, up)
        same(got, back(up), f"the gradient through {name}")


@pytest.mark.weight(0.5)
def test_device(patchify, unpatchify, watch, rng):
    """Nothing is made on a fixed device: both would run on a GPU as they stand."""
    device_ready(watch, patchify, call=(_draw(rng, 2, 3, 4, 6).float(), 2))
    device_ready(watch, unpatchify, call=(_draw(rng, 2, 6, 12).float(), 2, 3, 4, 6))
