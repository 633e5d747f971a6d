"""Public checks of q5_3: resize_positions."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.hw5.attention_runs import resize_after_a_step

F64 = torch.float64


def _positions(rows, cols, D=3):
    return torch.randn(1, rows * cols, D, generator=torch.Generator().manual_seed(53), dtype=F64)


def test_same_grid(resize_positions):
    """When the grids agree, the positions come back as they are."""
    # keeps: identity
    x = _positions(2, 3)
    same(resize_positions(x, (2, 3), (2, 3)), x, "the positions for the same grid", rtol=1e-12, atol=1e-12)


def test_shapes(resize_positions):
    """[1, N, D] for a grid (rows, cols) becomes [1, rows * cols of the new grid, D]."""
    # keeps: shape
    for new in ((4, 6), (3, 2), (5, 3), (1, 7)):
        what = f"positions of a grid (2, 3) for the grid {new}"
        tensor(resize_positions(_positions(2, 3), (2, 3), new), what, (1, new[0] * new[1], 3), F64)


def test_constant(resize_positions):
    """Positions that are all alike stay so: every column keeps its value."""
    # keeps: shape, bicubic
    x = torch.tensor([1.0, -2.0, 0.5], dtype=F64).expand(1, 6, 3)
    same(resize_positions(x, (2, 3), (4, 5)), x[:, :1].expand(1, 20, 3), "constant positions, resized")


def test_columns_alone(resize_positions):
    """Where all rows of the grid are alike, all rows of the new grid are alike too."""
    # keeps: row-major
    one = _positions(1, 4)
    got = tensor(resize_positions(one.repeat(1, 3, 1), (3, 4), (5, 6)), "the positions", (1, 30, 3), F64)
    rows = got.reshape(5, 6, 3)
    check((rows - rows[:1]).abs().max() < 1e-9, "every row of the old grid is the same, but the rows of the new grid "
          "differ: is the grid unfolded as (rows, cols), in row-major order?")


def test_values(resize_positions):
    """The values are those of bicubic interpolation with align_corners=False and without antialias."""
    # keeps: bicubic
    for old, new, expected in (
        ((1, 4), (1, 6), [-0.08680556, 0.21875, 1.43055556, 3.15277778, 6.78125, 9.43402778]),
        ((1, 8), (1, 4), [0.21875, 6.125, 20.125, 43.53125]),
        ((2, 4), (4, 2), [-1.81152344, 2.90527344, 4.58007812, 15.10742188, 15.10742188, 35.20507812, 21.49902344,
                          47.40722656]),
    ):
        squares = torch.arange(old[0] * old[1], dtype=F64).square().reshape(1, -1, 1)  # 0, 1, 4, 9, ...
        got = resize_positions(squares, old, new)
        same(got, torch.tensor(expected, dtype=F64).reshape(1, -1, 1), f"the squares 0, 1, 4, 9, ... on a grid {old}, "
             "for "
             f"a grid {new}", atol=1e-6)


def test_not_square(resize_positions):
    """Grids are (rows, cols): exchanging rows and columns of both grids exchanges them in the result."""
    # keeps: not-square, row-major
    x = _positions(3, 4)
    for new in ((5, 7), (2, 6), (4, 3)):
        turned = x.reshape(1, 3, 4, 3).transpose(1, 2).reshape(1, 12, 3)
        a = tensor(resize_positions(x, (3, 4), new), "the positions", (1, new[0] * new[1], 3), F64)
        b = tensor(resize_positions(turned, (4, 3), new[::-1]), "the positions", (1, new[0] * new[1], 3), F64)
        same(b.reshape(new[1], new[0], 3).transpose(0, 1), a.reshape(*new, 3), f"the grid (4, 3) for {new[::-1]} "
             f"and turned, against (3, 4) for {new}")
    same(resize_positions(_positions(2, 6)[:, :, :1] * 0 + 1, (2, 6), (3, 4)), torch.ones(1, 12, 1, dtype=F64), "ones")
    moved = resize_positions(_positions(2, 6), (2, 6), (3, 4))
    check((moved - _positions(2, 6)).abs().max() > 1e-3, "grids of 2 x 6 and 3 x 4 have as many places, but not "
          "the same ones: compare the grids")


def test_learns_and_forgets(resize_positions):
    """Gradients flow back to the old table, in every call: after a step of training the new positions are resized."""
    # keeps: gradients
    x = _positions(3, 4)
    resized, slope = run_beside(resize_after_a_step, resize_positions, x, x.flip(1), (3, 4), (5, 2))
    check(slope is not None and (slope != 0).any(), "no gradient comes back to the old table")
    check((resized - resize_positions(x, (3, 4), (5, 2)).detach()).abs().max() > 1e-6, "after a step of training the "
          "resized positions are those of before: resize the table as it is at each call")
    same(resized, resize_positions(x + x.flip(1), (3, 4), (5, 2)).detach(), "the positions resized after a step "
         "of training, against those of the changed table")
    one = torch.full((1, 12, 2), 1 / 3, dtype=F64)
    same(resize_positions(one, (3, 4), (5, 7)), torch.full((1, 35, 2), 1 / 3, dtype=F64), "a table of thirds, resized "
         "in float64", rtol=0, atol=1e-12)
    tensor(resize_positions(x.float(), (3, 4), (5, 7)), "positions in float32", (1, 35, 3), torch.float32)


def probe_larger(resize_positions):
    return resize_positions(_positions(3, 4), (3, 4), (5, 7))


def probe_smaller(resize_positions):
    return resize_positions(_positions(6, 5), (6, 5), (3, 2))


def probe_square(resize_positions):
    return resize_positions(_positions(3, 3), (3, 3), (5, 5))


def probe_twice(resize_positions):
    return resize_positions(_positions(3, 4), (3, 4), (6, 8))


def probe_half(resize_positions):
    return resize_positions(_positions(4, 6), (4, 6), (2, 3))


def probe_square_half(resize_positions):
    return resize_positions(_positions(4, 4), (4, 4), (2, 2))


def probe_one_axis(resize_positions):
    return resize_positions(_positions(3, 4), (3, 4), (3, 8))


def probe_square_to_tall(resize_positions):
    return resize_positions(_positions(3, 3), (3, 3), (6, 2))


def probe_transposed_grid(resize_positions):
    return resize_positions(_positions(3, 4), (3, 4), (4, 3))


def probe_same_number(resize_positions):
    return resize_positions(_positions(2, 6), (2, 6), (3, 4))


def probe_from_one(resize_positions):
    return resize_positions(_positions(1, 1), (1, 1), (2, 3))


def probe_same_grid(resize_positions):
    return resize_positions(_positions(3, 4), (3, 4), (3, 4))


def probe_first_position(resize_positions):
    return resize_positions(_positions(4, 4), (4, 4), (8, 8))[:, 0]


def probe_shape(resize_positions):
    return list(resize_positions(_positions(3, 4), (3, 4), (5, 7)).shape)


def probe_float32(resize_positions):
    return str(resize_positions(_positions(3, 4).float(), (3, 4), (5, 7)).dtype)


def probe_gradient(resize_positions):
    x = _positions(3, 4).requires_grad_()
    got = resize_positions(x, (3, 4), (2, 5))
    (got * torch.linspace(-1, 1, got.numel(), dtype=F64).reshape(got.shape)).sum().backward()
    return x.grad


def probe_after_a_step(resize_positions):
    x = _positions(3, 4)
    return run_beside(resize_after_a_step, resize_positions, x, x.flip(1), (3, 4), (5, 2))[0]


def probe_exact(resize_positions):
    """Whether a table of equal rows stays what it is, to more digits than float32 has."""
    x = torch.full((1, 12, 2), 1 / 3, dtype=F64)
    return bool((resize_positions(x, (3, 4), (5, 7)) - 1 / 3).abs().max() < 1e-12)
