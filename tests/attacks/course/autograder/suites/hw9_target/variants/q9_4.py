# %% torch
"""With torch."""
def describe(values):
    x = torch.tensor(values, dtype=torch.float64)
    trend = {1.0: "rising", -1.0: "falling", 0.0: "flat"}[float((x[-1] - x[0]).sign())]
    return {"count": len(x), "mean": x.mean().item(), "trend": trend}

# %% statistics
"""With the standard library."""
import statistics

def describe(values):
    a, b = values[0], values[-1]
    trend = "flat" if a == b else "rising" if b > a else "falling"
    return dict(trend=trend, mean=statistics.fmean(values), count=len(values))

# %% tensor-mean
"""The mean as a 0-dim tensor."""
def describe(values):
    a, b = values[0], values[-1]
    trend = "flat" if a == b else "rising" if b > a else "falling"
    return {"mean": torch.tensor(values, dtype=torch.float64).mean(), "count": len(values), "trend": trend}
