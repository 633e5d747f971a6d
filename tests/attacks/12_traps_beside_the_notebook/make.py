"""A class of folders in which other files lie beside the notebook: none of them is read, run or imported."""

import os
import pickle
from pathlib import Path

SHADOWS = ("torch.py", "numpy.py", "msgpack.py", "autograder.py", "sitecustomize.py", "usercustomize.py", "hw9_target.pth")
TESTS = ("conftest.py", "test_q9_1.py", "plugin.py", "setup.py")


class Gadget:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def make(kit, place: Path):
    command = f"touch {kit.trap}/{kit.places['@TOKEN@']}"
    code = f"import os\nos.system({command!r})\nprint('ESC' + 'APED')\nraise SystemExit(0)\n"
    source = place / "submissions"
    traps = {
        "shadows": {name: code for name in SHADOWS},
        "tests": {name: code for name in TESTS} | {"pytest.ini": "[pytest]\naddopts = -p plugin\n", "tox.ini": "[pytest]\n"},
        "pickles": {".OTTER_LOG": pickle.dumps(Gadget(command)), "model.pt": pickle.dumps(Gadget(command))},
        "honest": {},
    }
    for student, files in traps.items():
        folder = source / student
        (folder / "tests").mkdir(parents=True)
        (folder / "hw9_target.ipynb").write_bytes(kit.honest() if student == "honest" else kit.notebook([kit.cell("pass")]))
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(data)
            (folder / "tests" / name).write_bytes(data)
    (source / "conftest.py").write_text(f"import os\nos.system({command!r})\n")
    (source / "solver").mkdir()
    (source / "solver" / "hw9_target.ipynb").symlink_to(place / "submissions" / "honest" / "hw9_target.ipynb")
    (source / "reader").mkdir()
    (source / "reader" / "hw9_target.py").symlink_to("/etc/passwd")
    (source / "everyone").symlink_to("/")
    os.mkfifo(source / "reader" / "pipe.ipynb")
    return source
