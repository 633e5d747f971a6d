"""What the tests of boxes share: the limits, and the processes of a zygote at rest."""

import time
from pathlib import Path

from autograder.box.limits import MB, Limits
from autograder.box.sandbox import BoxFactory
from autograder.box.zygote import _family

NOTEBOOKS = Path(__file__).parent / "notebooks"
LIMITS = Limits(wall=15, cpu=60, memory=256 * MB, processes=16, file_size=8 * MB, open_files=64, tmpfs=16 * MB)
WALLED = {"bwrap", "namespaces"}


def at_rest(boxes: BoxFactory) -> set[int]:
    """The processes of a zygote without boxes; a closed box may need a moment to be buried."""
    alone = {"bwrap": 3, "namespaces": 2, "process": 1}[boxes.backend]
    end = time.monotonic() + 10
    while len(family := _family(boxes._keeper._process.pid)) > alone and time.monotonic() < end:
        time.sleep(0.01)
    return family
