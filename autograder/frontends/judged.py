"""Judge one submission in a process of its own, and read what its feedback page says."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from autograder.judge.verdicts import Infrastructure


def judged(homework: str, path: Path, sandbox: str = "auto") -> dict[str, Any]:
    """The feedback on one file, as in feedback/<student>.json; raises `Infrastructure` where it could not be graded."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-P", "-m", "autograder", "grade", str(path), "--assignment", homework]
        command += ["--out", out, "--jobs", "1", "--sandbox", sandbox]
        done = subprocess.run(command, cwd="/", text=True, capture_output=True)
        pages = list(Path(out, "feedback").glob("*.json"))
        feedback = json.loads(pages[0].read_text()) if pages else {}
    if not feedback or feedback["status"] == "infrastructure":
        raise Infrastructure(f"The judge could not grade this: {done.stdout[-1000:]}{done.stderr[-1000:]}".strip())
    return dict(feedback)
