"""Ids of a megabyte each, on cells that fail."""


def make(kit):
    return kit.notebook([kit.cell("1 / 0", str(i) + "x" * 2**20) for i in range(8)] + kit.cells())
