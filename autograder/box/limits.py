"""How much a box may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass

MB = 2**20


@dataclass(frozen=True)
class Limits:
    """Time in seconds, sizes in bytes; what a box uses beyond them ends it, never the judge.

    Of a call, a cell, a box or a submission the time counts in which a box was at work or asleep, and not what it has
    waited for a core: a busy machine costs nobody anything.
    """

    wall: float = 10.0  # one call
    wall_cell: float = 20.0  # one cell of the notebook
    wall_box: float = 600.0  # the life of one box
    wall_submission: float = 900.0  # all boxes of one submission; kept by the judge
    cpu: int = 300  # processor time of one process
    memory: int = 1536 * MB  # beyond what the libraries take
    processes: int = 32  # processes and threads
    file_size: int = 64 * MB
    open_files: int = 128
    output: int = 64 * 1024  # printed by one cell or call and kept
    tmpfs: int = 64 * MB  # all files together
    autograd: int = 1  # 0: none at all, for what is to be worked out by hand

    def as_dict(self) -> dict[str, float]:
        """For the message that opens a box."""
        return asdict(self)
