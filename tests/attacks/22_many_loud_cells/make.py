"""Sixty cells that each print what one cell may: control bytes, which JSON writes as six characters."""


def make(kit):
    cells = [kit.cell("print('\\x00' * 16000, end='')") for _ in range(60)]
    return kit.notebook(cells + kit.cells())
