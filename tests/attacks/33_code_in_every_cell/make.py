"""Cells of 100 KB, each as dense as one cell may be: the sum counts."""


def make(kit):
    return kit.notebook([kit.cell("a;" * 49_000)] * 60 + kit.cells())
