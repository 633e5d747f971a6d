"""Cells of 5 KB, each with as many magics as one cell may have: the sum counts."""


def make(kit):
    return kit.notebook([kit.cell("!a\nxxxxxxx\n" * 400, tags=["plot"])] * 100 + kit.cells())
