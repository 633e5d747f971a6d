# %% permuted-keys
"""The positions are permuted on the key side, and Wo carries the linear map; one builder for all four."""
def _heads(targets, maps, n):
    """targets[h][i]: the position that head h of output i looks at; maps[h]: [d_in, d_out]."""
    H, d_in = len(maps), maps[0].shape[0]
    Wq, Wk = maps[0].new_zeros(H, d_in + n, n), maps[0].new_zeros(H, d_in + n, n)
    for h, target in enumerate(targets):
        for i, j in enumerate(target):
            Wq[h, d_in + i, i] = 1.0
            Wk[h, d_in + j, i] = 500.0 * n
    Wv = torch.eye(d_in + n, d_in, dtype=Wq.dtype, device=Wq.device).repeat(H, 1, 1)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": torch.cat(list(maps), 0)}


def identity_layer(n, d):
    return _heads([range(n)], [torch.eye(d)], n)


def permutation_layer(perm, d):
    return _heads([[int(j) for j in perm]], [torch.eye(d)], len(perm))


def pointwise_layer(W, n):
    return _heads([range(n)], [W.T], n)


def convolution_layer(kernel, n):
    K = kernel.shape[-1]
    targets = [[(i + t - K // 2) % n for i in range(n)] for t in range(K)]
    return _heads(targets, [kernel[:, :, t].T for t in range(K)], n)


# %% parabola-of-width-two
"""A = 2: the score B (2 i j - j^2) has its maximum at j = i, for integers by a margin of B."""
def _parabola(targets, taps, n):
    """targets: [H, n], taps: [H, d_out, d_in]."""
    H, d_out, d_in = taps.shape
    goal = targets.to(taps)
    j = torch.arange(n, dtype=taps.dtype, device=taps.device)
    zero = taps.new_zeros(H, d_in, 2)
    Wq = torch.cat([zero, 200.0 * torch.stack([2 * goal, torch.ones_like(goal)], -1)], 1)
    Wk = torch.cat([zero, torch.stack([j, -j * j], -1).expand(H, n, 2)], 1)
    Wv = torch.cat([taps.transpose(1, 2), taps.new_zeros(H, n, d_out)], 1)
    return dict(Wq=Wq, Wk=Wk, Wv=Wv, Wo=torch.cat([torch.eye(d_out).to(taps)] * H))


def identity_layer(n, d):
    return _parabola(torch.arange(n)[None], torch.eye(d, dtype=torch.float64)[None], n)


def permutation_layer(perm, d):
    return _parabola(torch.as_tensor(perm)[None], torch.eye(d, dtype=torch.float64)[None], len(perm))


def pointwise_layer(W, n):
    return _parabola(torch.arange(n, device=W.device)[None], W[None], n)


def convolution_layer(kernel, n):
    K = kernel.shape[2]
    offsets = torch.arange(K, device=kernel.device)[:, None] - K // 2
    targets = torch.remainder(torch.arange(n, device=kernel.device) + offsets, n)
    return _parabola(targets, kernel.permute(2, 0, 1), n)


# %% positions-on-a-circle
"""A = 2: positions as points on a circle, a shift is a rotation; the permutation by a matrix of points."""
def _circle(n):
    angle = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    return torch.stack([angle.cos(), angle.sin()], -1)  # [n, 2]


def _gain(n):
    return 1.0 if n == 1 else 200 * math.sqrt(2) / (1 - math.cos(2 * math.pi / n))


def _below(block, rows):
    return torch.cat([block.new_zeros(rows, block.shape[1]), block])


def identity_layer(n, d):
    return permutation_layer(range(n), d)


def permutation_layer(perm, d):
    return convolution_like([list(perm)], torch.eye(d, dtype=torch.float64)[:, :, None], len(perm))


def pointwise_layer(W, n):
    return convolution_like([list(range(n))], W[:, :, None], n)


def convolution_layer(kernel, n):
    half = kernel.shape[2] // 2
    targets = [[(i + t) % n for i in range(n)] for t in range(-half, half + 1)]
    return convolution_like(targets, kernel, n)


def convolution_like(targets, kernel, n):
    d_out, d_in, K = kernel.shape
    points = _circle(n)
    Wq = torch.stack([_below(_gain(n) * points[torch.as_tensor(target)], d_in) for target in targets])
    Wk = torch.stack([_below(points, d_in)] * K)
    Wv = torch.stack([torch.cat([kernel[:, :, t].T, kernel.new_zeros(n, d_out)]) for t in range(K)])
    Wo = torch.eye(d_out, dtype=kernel.dtype, device=kernel.device).repeat(K, 1)
    return {"Wq": Wq.to(kernel.device), "Wk": Wk.to(kernel.device), "Wv": Wv, "Wo": Wo}


# %% numpy-with-an-idle-head
"""Filled in numpy by loops; one more head than needed, whose part of Wo is zero."""
def _numpy_layer(pairs, taps, n):
    """pairs[h]: list of (output position, input position); taps[h]: [d_out, d_in]."""
    H, (d_out, d_in) = len(taps) + 1, taps[0].shape
    Wq, Wk = np.zeros((H, d_in + n, n)), np.zeros((H, d_in + n, n))
    Wv, Wo = np.ones((H, d_in + n, d_out)), np.zeros((H * d_out, d_out))
    for h, (pairing, tap) in enumerate(zip(pairs, taps, strict=True)):
        for i, j in pairing:
            Wq[h, d_in + i, int(j)] = 30 * n
            Wk[h, d_in + i, i] = 30
        Wv[h] = 0
        Wv[h, :d_in] = 2 * tap.T
        Wo[h * d_out : (h + 1) * d_out] = np.eye(d_out) / 2
    return {name: torch.from_numpy(w) for name, w in (("Wq", Wq), ("Wk", Wk), ("Wv", Wv), ("Wo", Wo))}


def identity_layer(n, d):
    return _numpy_layer([[(i, i) for i in range(n)]], [np.eye(d)], n)


def permutation_layer(perm, d):
    return _numpy_layer([list(enumerate(perm))], [np.eye(d)], len(perm))


def pointwise_layer(W, n):
    return _numpy_layer([[(i, i) for i in range(n)]], [W.detach().cpu().double().numpy()], n)


def convolution_layer(kernel, n):
    k = kernel.detach().cpu().double().numpy()
    K = k.shape[2]
    pairs = [[(i, (i + t - K // 2) % n) for i in range(n)] for t in range(K)]
    return _numpy_layer(pairs, [k[:, :, t] for t in range(K)], n)


# %% rolled-identities
"""Permutation matrices in Wq by rolling the identity; heads built with einsum and one another."""
def _stack(matrices, values, n):
    d_in = values.shape[1]
    top = matrices.new_zeros(len(matrices), d_in, n)
    sharp = 1e3 * math.sqrt(n)
    eye = torch.eye(n, dtype=values.dtype, device=values.device).expand(len(matrices), n, n)
    Wv = torch.cat([values, values.new_zeros(len(values), n, values.shape[2])], dim=1)
    Wo = torch.einsum("h,co->hco", values.new_ones(len(values)), torch.eye(values.shape[2]).to(values))
    Wq, Wk = torch.cat([top, sharp * matrices], 1), torch.cat([top, eye], 1)
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo.flatten(0, 1)}


def identity_layer(n, d):
    return pointwise_layer(torch.eye(d), n)


def permutation_layer(perm, d):
    rows = torch.eye(len(perm))[torch.as_tensor(perm).cpu()]  # row i is one-hot at perm[i]
    return _stack(rows[None], torch.eye(d)[None], len(perm))


def pointwise_layer(W, n):
    return convolution_layer(W.unsqueeze(-1), n)


def convolution_layer(kernel, n):
    K = kernel.shape[-1]
    eye = torch.eye(n, dtype=kernel.dtype, device=kernel.device)
    shifts = torch.stack([eye.roll(t - K // 2, dims=1) for t in range(K)])  # row i: one-hot at i + t - K // 2
    return _stack(shifts, kernel.permute(2, 1, 0), n)


# %% built-in-float32
"""Weights in the default dtype: the layer casts them, so they are right to about seven digits."""
def pointwise_layer(W, n):
    d_out, d_in = W.shape
    Wq, Wk, Wv = torch.zeros(1, d_in + n, n), torch.zeros(1, d_in + n, n), torch.zeros(1, d_in + n, d_out)
    Wq[0, d_in:] = 1000 * math.sqrt(n) * torch.eye(n)
    Wk[0, d_in:] = torch.eye(n)
    Wv[0, :d_in] = W.T
    return {"Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": torch.eye(d_out)}
