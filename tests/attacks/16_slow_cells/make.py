"""Cells that each take nearly all the time that a cell may take."""


def make(kit):
    return kit.notebook([kit.cell("import time; time.sleep(0.3)")] * 40)
