"""Honest answers with something in their cells that cannot be run here."""


def make(kit):
    slow = "\nimport time; time.sleep(100)\n"
    cells = [
        kit.cell(kit.answers["q9_1"] + slow, "q9_1"),
        kit.cell("import asyncio\nawait asyncio.sleep(0.01)\n" + kit.answers["q9_2"], "q9_2"),
        kit.cell("open('my_data.csv')\n" + kit.answers["q9_3"], "q9_3"),
        *kit.cells(["q9_4"]),
    ]
    return kit.notebook(cells)
