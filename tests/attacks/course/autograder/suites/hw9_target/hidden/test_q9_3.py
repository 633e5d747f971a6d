"""Hidden checks of q9_3. MARK-OF-THE-HIDDEN-SUITE"""

import torch

from course_utils.checking.compare import same

F64 = torch.float64


def test_values(make_kernel, reference, rng):
    """The kernel is Gaussian, for every width, and keeps leading axes."""
    x, y = (torch.randn(2, 5, 3, generator=rng, dtype=F64) for _ in range(2))
    for width in (0.7, 2.0):
        same(make_kernel(width)(x, y), reference.make_kernel(width)(x, y), f"the kernel of width {width}")


def test_single_numbers(make_kernel, reference, rng):
    """Two vectors give one number."""
    x, y = torch.randn(2, 3, generator=rng, dtype=F64)
    same(make_kernel(1.2)(x, y), reference.make_kernel(1.2)(x, y).item(), "the kernel of two vectors")
