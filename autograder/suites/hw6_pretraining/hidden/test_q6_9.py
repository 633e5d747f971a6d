# TODO: what the public checks leave open: random inputs, edges, everything that the text promises
import torch

from course_utils.checking.compare import same


def test_many_numbers(next_probabilities, reference, rng):
    """Lists of any length have the right result."""
    for count in (1, 2, 17):
        numbers = torch.randn(count, generator=rng).tolist()
        same(next_probabilities(numbers), reference.next_probabilities(numbers), f"the result for {count} numbers")


def test_no_numbers(next_probabilities):
    """An empty list gives 0."""
    same(next_probabilities([]), 0.0, "the result for an empty list")
