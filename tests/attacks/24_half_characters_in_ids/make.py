"""Half of a surrogate pair in a cell's id, which JSON can hold and UTF-8 cannot; the cell fails, so its id is told."""


def make(kit):
    cells = [kit.cell("raise ValueError('\\ud800')", "\ud800 id"), kit.cell("x = '\ud800'"), kit.cell("1 / 0", "\udfff")]
    return kit.notebook(cells + kit.cells())
