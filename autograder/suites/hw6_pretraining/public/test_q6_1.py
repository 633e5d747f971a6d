# TODO: checks that students get as they stand; the docstring is the sentence that they read
from course_utils.checking.compare import same


def test_a_small_example(mask_tokens):
    """For 1 and 7 the result is 5."""
    same(mask_tokens([1.0, 7.0]), 5.0, "the result for 1 and 7")


# TODO: probes return what was computed on fixed inputs: by it a mistake is recognised
def probe_five_numbers(mask_tokens):
    return mask_tokens([0.5, -1.0, 2.0, 3.0, -4.0])
