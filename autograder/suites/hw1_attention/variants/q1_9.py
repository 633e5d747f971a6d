# %% newton
"""Newton on log(sum exp(-beta gap)) + log p, which is convex and falls: from 0 the steps never overshoot."""
def beta_to_focus(scores, p):
    s = scores.detach().double()
    gaps = s.max() - s
    n, tied = gaps.numel(), int((gaps == 0).sum())
    if p <= 1 / n:
        return 0.0
    if p * tied >= 1:
        return math.inf
    beta = 0.0
    for _ in range(10000):
        z = -beta * gaps
        f = torch.logsumexp(z, 0) + math.log(p)
        slope = (torch.softmax(z, 0) * gaps).sum()
        step = (f / slope).item()
        if step <= 1e-15 * beta:
            break
        beta += step
    return beta


# %% numpy-bisection
"""Bisection in numpy on the odds of the rivals, the interval doubled first."""
def beta_to_focus(scores, p):
    s = np.sort(scores.detach().cpu().numpy().astype(np.float64))[::-1]
    m = int(np.sum(s == s[0]))
    rivals = s[0] - s[m:]
    if p <= 1 / len(s):
        return 0.0
    if p >= 1 / m:
        return float("inf")
    wanted = 1 / p - m  # the rivals' exponentials must fall to this

    def too_much(beta):
        return np.exp(-beta * rivals).sum() > wanted

    high = 1.0
    while too_much(high):
        high *= 2
    low = 0.0
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return float(high)
        if too_much(middle):
            low = middle
        else:
            high = middle


# %% mpmath-root
"""A bracketed root finder with fifty digits."""
import mpmath


def beta_to_focus(scores, p):
    values = [float(x) for x in scores.double()]
    best = max(values)
    gaps = [best - x for x in values]
    if p <= 1 / len(gaps):
        return 0.0
    if p >= 1 / gaps.count(0.0):
        return math.inf
    with mpmath.workdps(50):
        def excess(beta):
            return mpmath.log(mpmath.fsum(mpmath.exp(-beta * g) for g in gaps)) + mpmath.log(mpmath.mpf(p))

        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while excess(high) > 0:
            low, high = high, 2 * high
        root = mpmath.findroot(excess, (low, high), solver="ridder", maxsteps=500, tol=1e-60, verify=False)
        return float(root)


# %% softargmax-bisection
"""Bisection on q1_1's softargmax, with a closed form where only one rival value exists."""
def beta_to_focus(scores, p):
    s = scores.detach().to(torch.float64)
    best = s.max()
    m = (s == best).sum().item()
    if p <= 1 / s.numel():
        return 0.0
    if p >= 1 / m:
        return math.inf
    others = s[s != best]
    if (others == others[0]).all():
        return math.log(p * len(others) / (1 - m * p)) / (best - others[0]).item()
    unit = (best - others.max()).item()  # in units of the smallest gap
    scaled = (s - best) / unit
    lo, hi = 0.0, 1.0
    while softargmax(scaled, beta=hi).max() < p:
        lo, hi = hi, hi * 2
    for _ in range(100):
        mid = lo + (hi - lo) / 2
        if softargmax(scaled, beta=mid).max() < p:
            lo = mid
        else:
            hi = mid
    return hi / unit


# %% interval-sections
"""Many betas at once: the interval is cut into a hundred pieces again and again."""
def beta_to_focus(scores, p):
    z = scores.double() - scores.double().max()
    if p <= 1 / len(z):
        return 0.0
    if p >= 1 / torch.count_nonzero(z == 0).item():
        return math.inf
    lo, hi = 0.0, 1.0
    while torch.softmax(hi * z, 0).max() < p:
        hi *= 4
    for _ in range(20):
        grid = torch.linspace(lo, hi, 101, dtype=torch.float64)
        top = torch.softmax(grid[:, None] * z.cpu(), 1).amax(1)
        i = int((top < p).sum())  # the largest weight rises with beta
        i = min(max(i, 1), 100)
        lo, hi = grid[i - 1].item(), grid[i].item()
    return hi
