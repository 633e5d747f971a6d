"""Public checks of q5_1: patchify and unpatchify."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.instruments.calls import call_twice, call_with_views

F64 = torch.float64


def _numbered(B, C, H, W):
    """Entries that tell where they come from: 10000 * image + 1000 * channel + 10 * row + column."""
    b, c, i, j = (torch.arange(size, dtype=F64) for size in (B, C, H, W))
    return 10000 * b[:, None, None, None] + 1000 * c[:, None, None] + 10 * i[:, None] + j


def test_one_patch(patchify):
    """Within a patch all of channel 0 comes first, row by row, then channel 1."""
    # keeps: inside
    got = tensor(patchify(_numbered(1, 2, 2, 2), 2), "patchify of one image [1, 2, 2, 2], patch 2", (1, 1, 8), F64)
    expected = torch.tensor([[[0.0, 1, 10, 11, 1000, 1001, 1010, 1011]]], dtype=F64)
    same(got, expected, "the one patch, flattened as (channel, row, column)", rtol=0, atol=0)


def test_which_patch_is_where(patchify):
    """Patches come in row-major order: the first row of patches from left to right, then the next row."""
    # keeps: order, patchify
    images = _numbered(2, 3, 4, 6)
    got = tensor(patchify(images, 2), "patchify of [2, 3, 4, 6], patch 2", (2, 6, 12), F64)
    check(not torch.equal(got, images.reshape(2, 6, 12)), "the shape is right, but a patch is a square of pixels: a "
          "`reshape` alone keeps the order in memory and cuts the image into strips")
    same(got[:, 1], images[:, :, :2, 2:4].flatten(1), "patch 1: rows 0 and 1, columns 2 and 3", rtol=0, atol=0)
    same(got[:, 3], images[:, :, 2:4, :2].flatten(1), "patch 3: rows 2 and 3, columns 0 and 1", rtol=0, atol=0)


def test_round_trips(patchify, unpatchify, rng):
    """unpatchify undoes patchify and patchify undoes unpatchify, exactly."""
    # keeps: inverse, unpatchify, not-square
    for B, C, H, W, p in ((2, 3, 4, 6, 2), (3, 1, 6, 3, 3), (1, 2, 3, 2, 1)):
        images = torch.randn(B, C, H, W, generator=rng)
        told = f"images of shape {[B, C, H, W]}, patch {p}"
        same(unpatchify(patchify(images, p), p, C, H, W), images, f"unpatchify(patchify({told}))", rtol=0, atol=0)
        patches = torch.randn(B, H // p * (W // p), C * p * p, generator=rng)
        same(patchify(unpatchify(patches, p, C, H, W), p), patches, f"patchify(unpatchify({told}))", rtol=0, atol=0)


def test_sizes_that_do_not_divide(patchify, unpatchify):
    """A height or a width that the patch does not divide is a ValueError, in both functions."""
    # keeps: divides
    expect_value_error("patchify of images [1, 2, 5, 6] with patch 3", patchify, torch.zeros(1, 2, 5, 6), 3)
    expect_value_error("patchify of images [1, 2, 6, 5] with patch 3", patchify, torch.zeros(1, 2, 6, 5), 3)
    expect_value_error("patchify of images [1, 1, 6, 6] with patch 4", patchify, torch.zeros(1, 1, 6, 6), 4)
    expect_value_error("unpatchify to 5 x 6 pixels with patch 3", unpatchify, torch.zeros(1, 2, 18), 3, 2, 5, 6)
    expect_value_error("unpatchify to 6 x 5 pixels with patch 3", unpatchify, torch.zeros(1, 2, 18), 3, 2, 6, 5)


def test_way_back_alone(unpatchify):
    """unpatchify puts patch n where it was: row n // cols and column n % cols of a grid that is not square."""
    # keeps: unpatchify, not-square, order
    images = _numbered(2, 2, 6, 9)
    squares = [images[:, :, r : r + 3, c : c + 3].flatten(1) for r in (0, 3) for c in (0, 3, 6)]
    same(unpatchify(torch.stack(squares, 1), 3, 2, 6, 9), images, "unpatchify of the six squares of [2, 2, 6, 9]",
         rtol=0, atol=0)


def test_any_images(patchify, unpatchify):
    """Views of other images are cut like any, gradients flow back, and a later call leaves earlier results alone."""
    # keeps: patchify, unpatchify, gradients
    images, patches = _fresh(2, 3, 4, 6), _fresh(2, 6, 12)
    same(run_beside(call_with_views, patchify, images, 2), patchify(images, 2), "patchify of a transposed view of the "
         "same images")
    first, _ = run_beside(call_twice, patchify, [images, 2], [-images, 2])
    same(first, patchify(images, 2), "the result of a first call, after a second one with other images")
    first, _ = run_beside(call_twice, unpatchify, [patches, 2, 3, 4, 6], [-patches, 2, 3, 4, 6])
    same(first, unpatchify(patches, 2, 3, 4, 6), "the result of a first call of unpatchify, after a second one")
    for name, x, f in (("patchify", images, lambda x: patchify(x, 2)),
                       ("unpatchify", patches, lambda x: unpatchify(x, 2, 3, 4, 6))):
        x = x.requires_grad_()
        got = f(x)
        check(got.requires_grad, f"no gradient flows back through {name}")
        got.sum().backward()
        same(x.grad, torch.ones_like(x), f"the gradient of the sum of {name}'s result: every pixel counts once")


def probe_patchify(patchify):
    return patchify(_numbered(2, 3, 4, 6), 2)


def probe_tall_images(patchify):
    return patchify(_numbered(2, 2, 9, 6), 3)


def probe_square_images(patchify):
    return patchify(_numbered(2, 2, 6, 6), 2)


def probe_one_channel(patchify):
    return patchify(_numbered(2, 1, 4, 6), 2)


def probe_one_patch(patchify):
    return patchify(_numbered(2, 3, 2, 2), 2)


def probe_pixels(patchify):
    return patchify(_numbered(2, 3, 2, 3), 1)


def probe_unpatchify(unpatchify):
    return unpatchify(_numbered(1, 2, 6, 12)[0], 2, 3, 4, 6)


def probe_unpatchify_tall(unpatchify):
    return unpatchify(_numbered(1, 2, 6, 18)[0], 3, 2, 9, 6)


def probe_unpatchify_square(unpatchify):
    return unpatchify(_numbered(1, 2, 9, 8)[0], 2, 2, 6, 6)


def probe_unpatchify_one_channel(unpatchify):
    return unpatchify(_numbered(1, 2, 6, 4)[0], 2, 1, 4, 6)


def probe_unpatchify_pixels(unpatchify):
    return unpatchify(_numbered(1, 2, 6, 3)[0], 1, 3, 2, 3)


def probe_both(patchify, unpatchify):
    return unpatchify(patchify(_numbered(2, 3, 4, 6), 2), 2, 3, 4, 6)


def probe_height_that_does_not_divide(patchify):
    return raises_value_error(patchify, torch.zeros(1, 2, 5, 6), 3)


def probe_width_that_does_not_divide(patchify):
    return raises_value_error(patchify, torch.zeros(1, 2, 6, 5), 3)


def probe_neither_divides_but_the_area_does(patchify):
    return raises_value_error(patchify, torch.zeros(1, 1, 6, 6), 4)


def probe_what_a_size_that_does_not_divide_gives(patchify):
    return patchify(_numbered(1, 2, 5, 6), 3)


def probe_way_back_to_a_size_that_does_not_divide(unpatchify):
    return raises_value_error(unpatchify, torch.zeros(1, 2, 18), 3, 2, 5, 6)


def probe_dtypes(patchify, unpatchify):
    x = _numbered(2, 3, 4, 6).float()
    return [str(patchify(x, 2).dtype), str(unpatchify(x.reshape(2, 6, 12), 2, 3, 4, 6).dtype)]


def probe_gradients(patchify, unpatchify):
    images, patches = _numbered(2, 3, 4, 6).requires_grad_(), _numbered(1, 2, 6, 12)[0].requires_grad_()
    up = torch.linspace(-1, 1, 144, dtype=F64)
    (patchify(images, 2).flatten() @ up + unpatchify(patches, 2, 3, 4, 6).flatten() @ up).backward()
    return [images.grad, patches.grad]


def _fresh(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(64), dtype=F64)


def probe_transposed_images(patchify):
    return run_beside(call_with_views, patchify, _fresh(2, 3, 4, 6), 2)


def probe_kept_patches(patchify):
    return run_beside(call_twice, patchify, [_fresh(2, 3, 4, 6), 2], [-_fresh(2, 3, 4, 6), 2])[0]


def probe_kept_images(unpatchify):
    return run_beside(call_twice, unpatchify, [_fresh(2, 6, 12), 2, 3, 4, 6], [-_fresh(2, 6, 12), 2, 3, 4, 6])[0]
