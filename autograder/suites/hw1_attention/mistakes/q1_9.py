# %% only-the-runner-up-counts
"""You compare the best score with the second best only: that is right for two scores, but with more of them
all rivals share the denominator."""
replace("others = gaps[gaps > 0]", "return max(0.0, math.log(p / (1 - p)) / gaps[gaps > 0].min().item())")

# %% all-rivals-at-the-gap
"""You treat every rival as if it were as strong as the runner-up: your beta is enough, but not the smallest.
Use the actual score of each rival."""
replace("low, high = 0.0, 1 / others.min().item()", "return math.log(len(others) / room) / others.min().item()")

# %% temperature-returned
"""You return the temperature: beta is its inverse, and grows as p does."""
replace("return 0.0", "return -math.inf")
replace("return math.inf", "return 0.0")
replace("return -math.inf", "return math.inf")
replace("return high", "return 1 / high")

# %% negative-beta price=0.2
"""For p below 1 / n your beta is negative. At beta = 0 the largest weight is already 1 / n, and beta must not
be less than 0."""
replace("""if p <= 1 / n:
        return 0.0
    """,
        "")
replace("while torch.exp(-high", """while low > -1e9 and torch.exp(-low * others).sum() < room:
        low = 2 * low - 1
    while torch.exp(-high""")

# %% search-capped price=0.3
"""You search only up to a fixed beta: scores that lie close together need a far larger one, and where p is
out of reach the answer is inf, not the end of your interval."""
replace("""if p >= 1 / m:
        return math.inf
    """,
        "")
replace("1 / others.min().item()", "100.0")
replace("torch.exp(-high * others).sum() > room", "False")
replace("torch.exp(-middle * others).sum() <= room", "1 / torch.exp(-middle * gaps).sum() >= p")

# %% ties-added-up
"""You add up the weights of the tied best scores. Asked is the largest single weight: with m tied at the top
it never exceeds 1 / m."""
replace("if p <= 1 / n:", "if p <= m / n:")
replace("if p >= 1 / m:", "if p >= 1:")
replace("(1 - m * p) / p", "m * (1 - p) / p")

# %% p-at-the-tie-bound-finite price=0.2
"""At p = 1 / m with m tied at the top (p = 1 without a tie) the weight only tends to p: no finite beta
reaches it. Your search stops where rounding hides the difference."""
replace("p >= 1 / m", "p > 1 / m")
replace("1 / others.min().item()", "1.0")
replace("torch.exp(-high * others).sum() > room", "1 / torch.exp(-high * gaps).sum() < p")
replace("torch.exp(-middle * others).sum() <= room", "1 / torch.exp(-middle * gaps).sum() >= p")

# %% first-score-for-largest
"""You follow the weight of the first score. The largest weight belongs to the largest score, wherever it
stands."""
replace("s.max() - s", "s[0] - s")
replace("if p >= 1 / m:", "if (gaps < 0).any() or p >= 1 / m:")

# %% coarse-grid price=0.25
"""You walk along a grid, so your beta is off by up to a grid step. The largest weight rises steadily with
beta: halve an interval until it is as narrow as you like."""
replace("low, high = 0.0, 1 / others.min().item()", "high, step = 0.0, 0.01")
replace("low, high = high, 2 * high", "high, step = high + step, step * 1.01")
replace("range(200)", "range(0)")

# %% beta-at-most-a-hundred price=0.2
"""Your search never looks beyond beta = 100. Scores that lie close together need more: find an upper end first, by
doubling until it is enough."""
replace("1 / others.min().item()", "100.0")
replace("torch.exp(-high * others).sum() > room", "False")

# %% near-scores-tied price=0.2
"""You count scores as tied when they are merely close. Tied means equal: however small the gap, a large enough beta
tells them apart."""
replace("int((gaps == 0).sum())", "int((gaps < 1e-3).sum())")
replace("gaps[gaps > 0]", "gaps[gaps >= 1e-3]")

# %% ties-before-even price=0.2
"""For a single score, or scores that are all equal, 1 / m is 1 / n, and an even spread is enough at p = 1 / n: the
answer there is 0. Ask for p <= 1 / n first, with equality, and for p >= 1 / m after it."""
replace("""if p <= 1 / n:
        return 0.0
    if p >= 1 / m:
        return math.inf""",
        """if p >= 1 / m:
        return math.inf
    if p <= 1 / n:
        return 0.0""")

# %% ties-by-isclose price=0.2
"""You count scores as tied when `isclose` says so. Tied means equal: a gap of one in a million needs a beta of
millions, and that is the answer."""
replace("int((gaps == 0).sum())", "int(torch.isclose(s, s.max()).sum())")

# %% scores-in-float32 price=0.2
"""You compute in float32. A gap of a millionth beside scores of 1 keeps hardly a digit there: go over to float64
first."""
replace("s = scores.double()", "s = scores.float()")

# %% tensor-for-float price=0.1
"""You return a tensor. A Python float is asked for; `.item()` makes one."""
replace("return high", "return torch.tensor(high, dtype=torch.float64)")

# %% too-few-halvings price=0.2
"""Your beta has three or four right digits only: the search stops too early. Each halving of the interval wins about a
third of a digit."""
replace("for _ in range(200):", "for _ in range(10):")

# %% search-stops-early price=0.2
"""Your beta is nearly right: the search stops too early, or on too coarse a grid. Halving an interval a hundred times
costs nothing, and six digits are asked for."""
replace("for _ in range(200):", "for _ in range(16):")

# %% smallest-score-for-largest
"""You measure from the smallest score. The gaps are those to the *largest* one, which has the largest weight."""
replace("gaps = s.max() - s", "gaps = s - s.min()")

# %% distances-to-the-first-score
"""You measure from the first score, wherever the largest stands: put the largest score last, and look again."""
replace("gaps = s.max() - s", "gaps = (s[0] - s).abs()")
