"""nbformat 3, with worksheets."""

import json


def make(kit):
    cells = [{"cell_type": "code", "input": source, "language": "python"} for source in kit.answers.values()]
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()
