"""Hidden checks of q5_3: resize_positions."""

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.hw5.attention_runs import resize_after_a_step

F64 = torch.float64
D = 5
LARGER = [((3, 4), (5, 7)), ((2, 3), (4, 6)), ((4, 4), (7, 7)), ((3, 5), (3, 8)), ((1, 3), (2, 5)), ((1, 1), (3, 2))]
SMALLER = [((6, 5), (3, 4)), ((8, 8), (4, 4)), ((7, 6), (2, 6)), ((5, 4), (1, 1)), ((9, 4), (2, 2))]
MIXED = [((3, 6), (6, 3)), ((2, 6), (4, 3)), ((6, 2), (3, 4)), ((5, 3), (4, 7)), ((4, 4), (2, 8))]


def _draw(rng, rows, cols, dtype=F64):
    return torch.randn(1, rows * cols, D, generator=rng, dtype=F64).to(dtype)


def _as_grid(x, old):
    return x.reshape(1, *old, -1).permute(0, 3, 1, 2)  # [1, D, rows, cols]


def _interpolated(x, old, new, mode="bicubic", align_corners=False, antialias=False):
    options = {} if mode in ("nearest", "area") else {"align_corners": align_corners, "antialias": antialias}
    return F.interpolate(_as_grid(x, old), new, mode=mode, **options).flatten(2).mT


def _causes(x, old, new):
    """What known misunderstandings lead to; a way that cannot be gone on these grids is left out."""
    (rows, cols), (new_rows, new_cols) = old, new

    def torn():
        return F.interpolate(x.reshape(1, D, rows, cols), new, mode="bicubic").flatten(2).mT

    def along_a_line():
        return F.interpolate(x.mT[:, :, None], (1, new_rows * new_cols), mode="bicubic")[:, :, 0].mT

    def straight_line():
        return F.interpolate(x.mT, new_rows * new_cols, mode="linear").mT

    def not_put_back():
        return F.interpolate(_as_grid(x, old), new, mode="bicubic").reshape(1, -1, D)

    def column_major():
        return F.interpolate(_as_grid(x, old), new, mode="bicubic").mT.flatten(2).mT

    def swapped():
        return F.interpolate(_as_grid(x, (cols, rows)), (new_cols, new_rows), mode="bicubic").flatten(2).mT

    ways = {
        "nothing was resized": lambda: x,
        "this is bicubic with align_corners=True; here the corners of the pixels' areas agree, align_corners=False":
            lambda: _interpolated(x, old, new, align_corners=True),
        "this is bicubic with antialias; it is left out here": lambda: _interpolated(x, old, new, antialias=True),
        "this is bilinear interpolation, and bicubic is asked for": lambda: _interpolated(x, old, new, "bilinear"),
        "this is bilinear interpolation with align_corners=True, and bicubic with align_corners=False is asked for":
            lambda: _interpolated(x, old, new, "bilinear", True),
        "this is bilinear interpolation with antialias, and bicubic without is asked for":
            lambda: _interpolated(x, old, new, "bilinear", False, True),
        "the nearest old position is copied, and bicubic interpolation is asked for":
            lambda: _interpolated(x, old, new, "nearest"),
        "old positions are averaged over areas, and bicubic interpolation is asked for":
            lambda: _interpolated(x, old, new, "area"),
        "the features were not moved in front before the grid was unfolded: [1, N, D] was reshaped to [1, D, rows, "
        "cols] "
        "straight away": torn,
        "the resized grid was not moved back: features come last before it is flattened to [1, N, D]": not_put_back,
        "the new grid is flattened column by column; positions are in row-major order": column_major,
        "the grids are (rows, cols), and here rows and cols have changed places": swapped,
        "the new grid's rows and cols have changed places": lambda: _interpolated(x, old, (new_cols, new_rows)),
        "the old grid's rows and cols have changed places": lambda: _interpolated(x, (cols, rows), new),
        "the positions were interpolated along one line; they lie on a grid of rows and columns": along_a_line,
        "the positions were interpolated linearly along one line; they lie on a grid": straight_line,
    }
    return {cause: value for cause, way in ways.items() if (value := _tried(way)) is not None}


def _tried(way):
    try:
        return way()
    except RuntimeError:
        return None


def _value(resize_positions, x, old, new):
    what = f"the positions of a grid {old} for a grid {new}"
    got = tensor(resize_positions(x, old, new), what, (1, new[0] * new[1], D), x.dtype)
    check(not got.isnan().any(), f"{what} have NaN")
    expected = _interpolated(x, old, new)
    try:
        same(got, expected, what)
    except Wrong:
        if torch.allclose(got, expected, rtol=1e-5, atol=1e-5):
            raise Wrong(f"{what} are right to about seven digits only: something is computed in float32, and these "
                        "positions are float64") from None
        same_or_because(got, expected, what, _causes(x, old, new))


@pytest.mark.weight(2)
def test_grids_that_agree(resize_positions, rng):
    """When the grids agree nothing changes."""
    for grid in ((3, 4), (5, 5), (1, 6), (1, 1)):
        x = _draw(rng, *grid)
        got = tensor(resize_positions(x, grid, grid), f"the positions for the same grid {grid}", x.shape, F64)
        same(got, x, f"the positions for the same grid {grid}", rtol=1e-12, atol=1e-12)


@pytest.mark.weight(3)
def test_larger_grids(resize_positions, rng):
    """For a larger grid: bicubic interpolation, align_corners=False."""
    for old, new in LARGER:
        _value(resize_positions, _draw(rng, *old), old, new)


@pytest.mark.weight(3)
def test_smaller_grids(resize_positions, rng):
    """For a smaller grid: bicubic interpolation, align_corners=False, no antialias."""
    for old, new in SMALLER:
        _value(resize_positions, _draw(rng, *old), old, new)


@pytest.mark.weight(2)
def test_other_proportions(resize_positions, rng):
    """More rows and fewer columns, or as many positions in another grid: rows and columns are kept apart."""
    for old, new in MIXED:
        _value(resize_positions, _draw(rng, *old), old, new)


def test_proportions_that_round(resize_positions, rng):
    """Every grid comes out as asked, also where rows / old rows is no exact number."""
    for old, new in (((11, 3), (15, 2)), ((2, 13), (3, 15)), ((13, 2), (30, 2)), ((3, 25), (2, 29))):
        _value(resize_positions, _draw(rng, *old), old, new)


def test_transposed(resize_positions, rng):
    """Transposing the grid and resizing may change places."""
    old, new = (3, 5), (6, 4)
    x = _draw(rng, *old)
    got = tensor(resize_positions(x, old, new), "the positions", (1, 24, D), F64)
    turned = x.reshape(1, *old, D).transpose(1, 2).reshape(1, 15, D)
    other = tensor(resize_positions(turned, old[::-1], new[::-1]), "the positions", (1, 24, D), F64)
    same(other.reshape(1, 4, 6, D).transpose(1, 2).reshape(1, 24, D), got, "positions that were transposed, resized "
         "and "
         "transposed back")
    _value(resize_positions, x, old, new)


def test_features_stay_apart(resize_positions, rng):
    """Each column of the positions is resized by itself, and the result is linear in the positions."""
    old, new = (3, 4), (5, 6)
    x, y = _draw(rng, *old), _draw(rng, *old)
    both = tensor(resize_positions(2 * x - 3 * y, old, new), "the positions", (1, 30, D), F64)
    same(both, 2 * resize_positions(x, old, new) - 3 * resize_positions(y, old, new), "the resized 2 x - 3 y, against "
         "2 and -3 times the resized x and y")
    other = x.clone()
    other[..., 2] += 1
    moved = (resize_positions(other, old, new) - resize_positions(x, old, new)).abs().amax((0, 1)) > 1e-9
    check(moved.tolist() == [False, False, True, False, False], "a change in column 2 of the positions is seen in "
          f"columns {moved.nonzero().flatten().tolist()} of the result")


@pytest.mark.weight(2)
def test_gradient(resize_positions, rng):
    """Gradients flow back to the positions, for new grids and for the same one: they stay learnable."""
    for old, new in (((3, 4), (5, 2)), ((3, 4), (3, 4))):
        mine = _draw(rng, *old).requires_grad_()
        other = mine.detach().clone().requires_grad_()
        got = tensor(resize_positions(mine, old, new), "the positions", (1, new[0] * new[1], D), F64)
        check(got.requires_grad, f"no gradient flows back from the grid {new} to the positions of {old}")
        up = torch.randn(got.shape, generator=rng, dtype=F64)
        got.backward(up)
        _interpolated(other, old, new).backward(up)
        same(mine.grad, other.grad, f"the gradient of positions of {old}, resized to {new}")


def test_after_a_step(resize_positions, in_box, rng):
    """Positions that have been learning are resized as they are now, and gradients flow in every step."""
    old, new = (3, 4), (5, 2)
    x, step = _draw(rng, *old), _draw(rng, *old)
    got, slope = in_box(resize_after_a_step, resize_positions, x, step, old, new)
    same(got, _interpolated(x + step, old, new), "the positions, resized again after a step of training",
         rtol=1e-5, atol=1e-5)
    leaf = (x + step).requires_grad_()
    _interpolated(leaf, old, new).sum().backward()
    check(slope is not None, "no gradient reaches positions that are resized a second time")
    same(slope, leaf.grad, "the gradient of positions that are resized a second time", rtol=1e-5, atol=1e-5)


def test_float32(resize_positions, rng):
    """float32 in, float32 out."""
    for old, new in (((3, 4), (5, 7)), ((6, 5), (3, 4)), ((3, 4), (3, 4))):
        x = _draw(rng, *old)
        what = f"float32 positions of {old} for {new}"
        got = tensor(resize_positions(x.float(), old, new), what, (1, new[0] * new[1], D), torch.float32)
        same(got, _interpolated(x, old, new).float(), what, rtol=1e-3, atol=1e-4)


@pytest.mark.weight(0.5)
def test_device(resize_positions, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, resize_positions, call=(_draw(rng, 3, 4).float(), (3, 4), (5, 2)))
