"""What lateness costs: one policy for every front end."""

from __future__ import annotations

import math
from dataclasses import dataclass

DAY = 24 * 60 * 60


@dataclass(frozen=True)
class LatePolicy:
    """A share of the score per day begun, after a time of grace, up to a most."""

    percent_per_day: float = 10.0
    grace_minutes: float = 15.0
    most_percent: float = 50.0

    def penalty(self, score: float, seconds_late: float) -> float:
        """The points to take off a score that came in so late."""
        if seconds_late <= self.grace_minutes * 60:
            return 0.0
        percent = min(self.percent_per_day * math.ceil(seconds_late / DAY), self.most_percent, 100.0)
        return round(score * percent / 100, 2)
