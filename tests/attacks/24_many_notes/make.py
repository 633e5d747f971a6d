"""Hundreds of cells that fail with another text in every box, and a question that loses two boxes."""


def make(kit):
    fails = [kit.cell("import time; raise ValueError(time.time_ns())")] * 400
    return kit.notebook([*fails, kit.cell("def row_weights(scores, blocked=None):\n    import os\n    os._exit(0)", "q9_1"), *kit.cells(["q9_2"])])
