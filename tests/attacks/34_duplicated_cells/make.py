"""The same question answered three times, and redefined once more by a later cell."""

WRONG = "def row_weights(scores, blocked=None):\n    return scores"


def make(kit):
    stub = "def row_weights(scores, blocked=None):\n    raise NotImplementedError('q9_1: to do')"
    kernel = kit.answers["q9_3"]
    cells = [kit.cell(stub, "q9_1"), kit.cell(WRONG, "q9_1"), *kit.cells(["q9_1", "q9_2"])]
    cells += [kit.cell(kernel, "q9_3"), kit.cell(kernel, "q9_3"), kit.cell("def make_kernel(width):\n    return None")]
    return kit.notebook(cells)
