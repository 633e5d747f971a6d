# %% last-layer-recursion
"""Recursion from the last layer down."""
def receptive_field(heads, layers):
    return 1 if layers == 0 else (heads + 1) * receptive_field(heads, layers - 1)


def _sources(attended, position):
    if len(attended) == 0:
        return {position}
    below, layer = attended[:-1], attended[-1]
    found = _sources(below, position)
    for target in layer[position]:
        found = found | _sources(below, int(target))
    return found


def reach(attended):
    return _sources(attended, 0)


# %% content-carried-upwards
"""From the first layer up: every position holds the set of inputs it knows."""
def receptive_field(heads, layers):
    return math.prod([heads + 1] * layers)


def reach(attended):
    if len(attended) == 0:
        return {0}
    knows = [{i} for i in range(len(attended[0]))]
    for layer in attended:
        knows = [knows[i].union(*(knows[int(j)] for j in layer[i])) for i in range(len(layer))]
    return knows[0]


# %% boolean-matrices
"""Products of matrices A + I, one per layer; the columns of row 0 that are not zero."""
def receptive_field(heads, layers):
    return torch.tensor(heads + 1) ** layers


def reach(attended):
    if len(attended) == 0:
        return {0}
    n = len(attended[0])
    total = torch.eye(n, dtype=torch.bool)
    for layer in attended:
        step = torch.eye(n, dtype=torch.bool)
        for i in range(n):
            for j in layer[i]:
                step[i, int(j)] = True
        total = (step.double() @ total.double()) > 0  # later layers from the left
    return set(total[0].nonzero()[:, 0].tolist())


# %% worklist
"""A list of (layer, position) pairs still to be looked at."""
def receptive_field(heads, layers):
    seen = 1
    for _ in range(layers):
        seen = seen + heads * seen
    return seen


def reach(attended):
    todo, done = [(len(attended), 0)], set()
    while todo:
        depth, position = todo.pop()
        if (depth, position) in done:
            continue
        done.add((depth, position))
        if depth > 0:
            todo.append((depth - 1, position))
            todo.extend((depth - 1, int(j)) for j in attended[depth - 1][position])
    return {position for depth, position in done if depth == 0}


# %% numpy-index-arrays
"""numpy arrays of indices, np.unique per layer, first row of each layer's picks."""
import numpy as np


def receptive_field(heads, layers):
    return sum(math.comb(layers, k) * heads**k for k in range(layers + 1))


def reach(attended):
    found = np.array([0])
    for layer in attended[::-1] if isinstance(attended, (list, tuple)) else reversed(attended):
        picks = np.array([[int(j) for j in row] for row in layer])
        found = np.unique(np.concatenate([found, picks[found].ravel()]))
    return set(found.astype(int).tolist())
