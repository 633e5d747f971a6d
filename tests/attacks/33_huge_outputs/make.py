"""Thirty megabytes of outputs in the file."""


def make(kit):
    cells = kit.cells()
    cells[0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * (30 * 2**20)}]
    return kit.notebook(cells)
