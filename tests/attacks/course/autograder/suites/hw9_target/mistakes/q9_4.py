# %% median
"""That is the middle one, not the mean."""
def describe(values):
    step = values[-1] - values[0]
    trend = "rising" if step > 0 else "falling" if step < 0 else "flat"
    return {"count": len(values), "mean": sorted(values)[len(values) // 2], "trend": trend}

# %% off-by-one
"""The count is one too small."""
def describe(values):
    step = values[-1] - values[0]
    trend = "rising" if step > 0 else "falling" if step < 0 else "flat"
    return {"count": len(values) - 1, "mean": sum(values) / len(values), "trend": trend}

# %% trend-reversed
"""The trend goes the other way."""
def describe(values):
    step = values[0] - values[-1]
    trend = "rising" if step > 0 else "falling" if step < 0 else "flat"
    return {"count": len(values), "mean": sum(values) / len(values), "trend": trend}

# %% sum
"""That is the sum, not the mean."""
def describe(values):
    step = values[-1] - values[0]
    trend = "rising" if step > 0 else "falling" if step < 0 else "flat"
    return {"count": len(values), "mean": sum(values), "trend": trend}
