"""A notebook that is valid JSON and nothing else: every field of the wrong type; the honest cells in it still count."""


def make(kit):
    odd = [None, True, 3, 1e999, "x", [], [[]], {}, {"x": [1]}]
    cells = [*odd]
    for value in odd:
        cells.append({"cell_type": "code", "metadata": value, "source": value, "outputs": value, "id": value})
        cells.append({"cell_type": "code", "metadata": {"nbgrader": value, "tags": value}, "source": [value, "x = 1\n"]})
        cells.append({"cell_type": "code", "metadata": {"nbgrader": {"grade_id": value}, "tags": [value]}, "source": "x = 2"})
        cells.append({"cell_type": value, "source": "raise SystemExit"})
    data = kit.notebook(cells + kit.cells(), metadata=odd, nbformat="four", nbformat_minor=None)
    return data.replace(b"Infinity", b"1e999")
