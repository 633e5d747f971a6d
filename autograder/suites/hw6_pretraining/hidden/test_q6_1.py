# TODO: what the public checks leave open: random inputs, edges, everything that the text promises
import torch

from course_utils.checking.compare import same


def test_many_numbers(mask_tokens, reference, rng):
    """Lists of any length have the right result."""
    for count in (1, 2, 17):
        numbers = torch.randn(count, generator=rng).tolist()
        same(mask_tokens(numbers), reference.mask_tokens(numbers), f"the result for {count} numbers")


def test_no_numbers(mask_tokens):
    """An empty list gives 0."""
    same(mask_tokens([]), 0.0, "the result for an empty list")
