"""A hundred thousand cells."""


def make(kit):
    return kit.notebook(kit.cells() + [kit.cell("pass")] * 10**5)
