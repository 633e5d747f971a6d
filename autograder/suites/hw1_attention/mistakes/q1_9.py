# %% only-the-runner-up-counts
"""You compare the best score with the second best only: that is right for two scores, but with more of them
all rivals share the denominator."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p <= 1 / len(gaps):
        return 0.0
    if p >= 1 / (gaps == 0).sum().item():
        return math.inf
    best, second = scores.double().unique().flip(0)[:2].tolist()
    return max(0.0, math.log(p / (1 - p)) / (best - second))


# %% all-rivals-at-the-gap
"""You treat every rival as if it were as strong as the runner-up: your beta is enough, but not the smallest.
Use the actual score of each rival."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p <= 1 / len(gaps):
        return 0.0
    if p >= 1 / (gaps == 0).sum().item():
        return math.inf
    rivals = gaps[gaps > 0]
    ties = len(gaps) - len(rivals)
    return math.log(p * len(rivals) / (1 - p * ties)) / rivals.min().item()


# %% temperature-returned
"""You return the temperature: beta is its inverse, and grows as p does."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p <= 1 / len(gaps):
        return math.inf
    if p >= 1 / (gaps == 0).sum().item():
        return 0.0

    def largest(beta):
        return 1 / torch.exp(-beta * gaps).sum().item()

    low, high = 0.0, 1.0
    while largest(high) < p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < p else (low, middle)
    return 1 / high


# %% negative-beta
"""For p below 1 / n your beta is negative. At beta = 0 the largest weight is already 1 / n, and beta must not
be less than 0."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p >= 1 / (gaps == 0).sum().item():
        return math.inf

    def largest(beta):
        return 1 / torch.exp(-beta * gaps).sum().item()

    low, high = 0.0, 1.0
    while low > -1e9 and largest(low) > p:
        low = 2 * low - 1
    while largest(high) < p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < p else (low, middle)
    return high


# %% search-capped
"""You search only up to a fixed beta: scores that lie close together need a far larger one, and where p is
out of reach the answer is inf, not the end of your interval."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p <= 1 / len(gaps):
        return 0.0

    def largest(beta):
        return 1 / torch.exp(-beta * gaps).sum().item()

    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < p else (low, middle)
    return high


# %% ties-added-up
"""You add up the weights of the tied best scores. Asked is the largest single weight: with m tied at the top
it never exceeds 1 / m."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    ties = (gaps == 0).sum().item()
    if p <= ties / len(gaps):
        return 0.0
    if p >= 1:
        return math.inf

    def largest(beta):
        return ties / torch.exp(-beta * gaps).sum().item()

    low, high = 0.0, 1.0
    while largest(high) < p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < p else (low, middle)
    return high


# %% p-at-the-tie-bound-finite
"""At p = 1 / m with m tied at the top (p = 1 without a tie) the weight only tends to p: no finite beta
reaches it. Your search stops where rounding hides the difference."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p <= 1 / len(gaps):
        return 0.0
    if p > 1 / (gaps == 0).sum().item():
        return math.inf

    def largest(beta):
        return 1 / torch.exp(-beta * gaps).sum().item()

    low, high = 0.0, 1.0
    while largest(high) < p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < p else (low, middle)
    return high


# %% first-score-for-largest
"""You follow the weight of the first score. The largest weight belongs to the largest score, wherever it
stands."""
def beta_to_focus(scores, p):
    gaps = scores.double()[0] - scores.double()
    if p <= 1 / len(gaps):
        return 0.0
    if (gaps < 0).any() or p >= 1 / (gaps == 0).sum().item():
        return math.inf

    def largest(beta):
        return 1 / torch.exp(-beta * gaps).sum().item()

    low, high = 0.0, 1.0
    while largest(high) < p:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < p else (low, middle)
    return high


# %% coarse-grid
"""You walk along a grid, so your beta is off by up to a grid step. The largest weight rises steadily with
beta: halve an interval until it is as narrow as you like."""
def beta_to_focus(scores, p):
    gaps = scores.double().max() - scores.double()
    if p <= 1 / len(gaps):
        return 0.0
    if p >= 1 / (gaps == 0).sum().item():
        return math.inf

    def largest(beta):
        return 1 / torch.exp(-beta * gaps).sum().item()

    beta, step = 0.0, 0.01
    while largest(beta) < p:
        beta, step = beta + step, step * 1.01
    return beta


# %% beta-at-most-a-hundred
"""Your search never looks beyond beta = 100. Scores that lie close together need more: find an upper end first, by
doubling until it is enough."""


def beta_to_focus(scores, p):
    gaps = scores.max().double() - scores.double()
    n, m = len(gaps), int((gaps == 0).sum())
    if p <= 1 / n:
        return 0.0
    if p >= 1 / m:
        return math.inf
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if torch.exp(-middle * gaps).sum() <= 1 / p else (middle, high)
    return high


# %% near-scores-tied
"""You count scores as tied when they are merely close. Tied means equal: however small the gap, a large enough beta
tells them apart."""


def beta_to_focus(scores, p):
    gaps = scores.max().double() - scores.double()
    near = gaps < 1e-3
    n, m = len(gaps), int(near.sum())
    if p <= 1 / n:
        return 0.0
    if p >= 1 / m:
        return math.inf
    low, high, rest = 0.0, 1.0, gaps[~near]
    while torch.exp(-high * rest).sum() > 1 / p - m:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if torch.exp(-middle * rest).sum() <= 1 / p - m else (middle, high)
    return high


# %% ties-before-even
"""For a single score, or scores that are all equal, 1 / m is 1 / n, and an even spread is enough at p = 1 / n: the
answer there is 0. Ask for p <= 1 / n first, with equality, and for p >= 1 / m after it."""


def beta_to_focus(scores, p):
    gaps = scores.max().double() - scores.double()
    n, m = len(gaps), int((gaps == 0).sum())
    if p >= 1 / m:
        return math.inf
    if p <= 1 / n:
        return 0.0
    low, high = 0.0, 1.0
    while torch.exp(-high * gaps).sum() > 1 / p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if torch.exp(-middle * gaps).sum() <= 1 / p else (middle, high)
    return high


# %% ties-by-isclose
"""You count scores as tied when `isclose` says so. Tied means equal: a gap of one in a million needs a beta of
millions, and that is the answer."""


def beta_to_focus(scores, p):
    s = scores.double()
    gaps = s.max() - s
    n, m = len(gaps), int(torch.isclose(s, s.max()).sum())
    if p <= 1 / n:
        return 0.0
    if p >= 1 / m:
        return math.inf
    low, high = 0.0, 1.0
    while torch.exp(-high * gaps).sum() > 1 / p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if torch.exp(-middle * gaps).sum() <= 1 / p else (middle, high)
    return high
