# %% Long keys, names and messages: what a page says of them is short.
def describe(values):
    return {"\x00" * 1500 + str(i): i for i in range(1000)}


def row_weights(scores, blocked=None):
    raise type("E" * 10**6, (Exception,), {})("\U0001f600" * 10**6)
