"""One cell of shell lines, 28 KB of the 2 MB that a cell may have: what reads it must not take minutes."""


def make(kit):
    return kit.notebook([kit.cell("!a\n" * 7_000)] + kit.cells())
