# %% through-the-softmax-jacobian
"""V^T J[:, j] times beta q; the limit by putting +inf or -inf in place of the score."""
def key_jacobian(q, K, V, j, beta):
    J = softmax_jacobian(beta * (K @ q))  # [S, S]
    return (V.T @ J[:, j])[:, None] * (beta * q)[None, :]


def elongated_limit(q, K, V, j, beta):
    z = beta * (K @ q)
    here = torch.arange(len(z), device=z.device) == j
    if z[j] > 0 or len(z) == 1:
        return here.to(V.dtype) @ V
    if z[j] < 0:
        z = torch.where(here, -math.inf, z)
    return softargmax(z) @ V


# %% automatic-differentiation
"""torch.func.jacrev of the output as a function of key j; the limit with the key deleted."""
def key_jacobian(q, K, V, j, beta):
    def output(key):
        keys = torch.cat([K[:j], key[None], K[j + 1 :]])
        return torch.softmax(beta * keys @ q, 0) @ V

    return torch.func.jacrev(output)(K[j])


def elongated_limit(q, K, V, j, beta):
    def attend(keys, values):
        return torch.softmax(beta * keys @ q, 0) @ values

    sign = torch.sign(beta * torch.dot(q, K[j])).item()
    if sign > 0 or len(K) == 1:
        return V[j].clone()
    if sign < 0:
        return attend(torch.cat([K[:j], K[j + 1 :]]), torch.cat([V[:j], V[j + 1 :]]))
    return attend(K, V)


# %% numpy-loops
"""numpy, entry by entry; the limit from three cases of one number."""
def _weights(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def key_jacobian(q, K, V, j, beta):
    qn, Kn, Vn = (t.detach().cpu().numpy() for t in (q, K, V))
    a = _weights(beta * Kn @ qn)
    J = np.zeros((Vn.shape[1], len(qn)), dtype=Vn.dtype)
    for c in range(Vn.shape[1]):
        h = sum(a[s] * Vn[s, c] for s in range(len(a)))
        for e in range(len(qn)):
            J[c, e] = beta * a[j] * (Vn[j, c] - h) * qn[e]
    return torch.from_numpy(J).to(V)


def elongated_limit(q, K, V, j, beta):
    qn, Kn, Vn = (t.detach().cpu().numpy() for t in (q, K, V))
    z = beta * Kn @ qn
    if len(z) == 1 or z[j] > 0:
        out = Vn[j].copy()
    elif z[j] < 0:
        rest = [s for s in range(len(z)) if s != j]
        out = _weights(z[rest]) @ Vn[rest]
    else:
        out = _weights(z) @ Vn
    return torch.from_numpy(out).to(V)


# %% sum-over-all-keys
"""Every weight's derivative by score j, summed over the values; the loser's weight is taken out and the rest
divided by what is left, in the log domain."""
def key_jacobian(q, K, V, j, beta):
    a = F.softmax(torch.einsum("sd,d->s", K, q) * beta, dim=0)
    delta = torch.zeros_like(a)
    delta[j] = 1.0
    da = a[j] * (delta - a)  # d a_s / d z_j
    return torch.einsum("s,sv,d->vd", da, V, beta * q)


def elongated_limit(q, K, V, j, beta):
    z = beta * torch.einsum("sd,d->s", K, q)
    rest = [s for s in range(len(K)) if s != j]
    if z[j] == 0:
        return torch.einsum("s,sv->v", z.softmax(0), V)
    if z[j] > 0 or not rest:
        return V[j] + 0.0
    log_weights = z[rest] - torch.logsumexp(z[rest], 0)
    return log_weights.exp() @ V[rest]


# %% attention-call
"""Uses q1_7's attention with one query; the loser is hidden by a padding mask."""
def key_jacobian(q, K, V, j, beta):
    out, weights = attention(q[None, None], K[None], V[None], beta=beta)
    return torch.kron((V[j] - out[0, 0])[:, None], (beta * weights[0, 0, j] * q)[None, :])


def elongated_limit(q, K, V, j, beta):
    score = beta * (q * K[j]).sum()
    winner = torch.arange(K.shape[0], device=K.device) == j
    if K.shape[0] == 1:
        return V[0].clone()
    hidden = ~winner if score > 0 else winner if score < 0 else torch.zeros_like(winner)
    return attention(q[None, None], K[None], V[None], key_padding_mask=hidden[None], beta=beta)[0][0, 0]
