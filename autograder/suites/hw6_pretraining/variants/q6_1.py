# %% hypot
"""The length of the vector, over the root of the count."""
# TODO: right answers written another way, at least three


def mask_tokens(numbers):
    import math

    return math.hypot(*numbers) / math.sqrt(max(len(numbers), 1))
