"""A megabyte of code in one cell, half of what a cell may have: its tree takes a gigabyte, and the judge builds it."""


def make(kit):
    return kit.notebook([kit.cell("a;" * 500_000), *kit.cells()])
