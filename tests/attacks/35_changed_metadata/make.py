"""Points, ids and locks changed in the file, test cells deleted or replaced, answers under the wrong question's id."""


def make(kit):
    cells = kit.cells()
    for cell in cells:
        cell["metadata"]["nbgrader"] |= {"points": 1000, "locked": False, "grade": True, "score": 1000, "checksum": "0"}
        cell["metadata"]["score"] = cell["metadata"]["points"] = 1000
    first, second = cells[0]["metadata"]["nbgrader"], cells[1]["metadata"]["nbgrader"]
    first["grade_id"], second["grade_id"] = "q9_2", "q9_1"  # the other way round
    cells[3]["metadata"]["nbgrader"]["grade_id"] = "test_q9_4"
    cells.append(kit.cell("score = 1000\n1000", "test_q9_1", points=1000))
    cells.append(kit.cell("1000", "q9_99"))
    return kit.notebook(cells, metadata={"otter": {"points": 1000}, "points": 1000, "total": 1000})
