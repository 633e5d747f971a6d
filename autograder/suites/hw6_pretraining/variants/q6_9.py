# %% masks-of-ranks
"""No scatter back: each token's rank by a double argsort, and logits of -inf."""
def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    if not temperature >= 0:
        raise ValueError("temperature")
    if top_k is not None and not top_k >= 1:
        raise ValueError("top_k")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p")
    V = logits.shape[-1]
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), V).to(logits.dtype)
    rank = torch.argsort(torch.argsort(logits, dim=-1, descending=True, stable=True), dim=-1)
    z = (logits - logits.max(dim=-1, keepdim=True).values) / temperature
    if top_k is not None:
        z = z.masked_fill(rank >= top_k, float("-inf"))
    p = z.softmax(-1)
    if top_p is not None:
        order = torch.argsort(rank, dim=-1)
        sums = torch.cumsum(torch.gather(p, -1, order), -1)
        size = (sums < top_p).sum(-1, keepdim=True) + 1
        p = torch.where(rank < size, p, torch.zeros_like(p))
        p = p / p.sum(dim=-1, keepdim=True)
    return p


# %% row-by-row
"""One row at a time in plain Python lists of floats, then back to a tensor."""
def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0 or (top_k is not None and top_k < 1) or (top_p is not None and not (0 < top_p <= 1)):
        raise ValueError("settings out of range")
    rows = []
    for row in logits.detach().reshape(-1, logits.shape[-1]).tolist():
        best = max(row)
        out = [0.0] * len(row)
        if temperature == 0:
            out[row.index(best)] = 1.0
        else:
            ids = sorted(range(len(row)), key=lambda i: row[i], reverse=True)  # stable: lower ids first
            if top_k is not None:
                ids = ids[:top_k]
            w = [math.exp((row[i] - best) / temperature) for i in ids]
            total = sum(w)
            if top_p is not None and top_p < 1:
                acc, n = 0.0, 0
                while n < len(ids) and acc < top_p:
                    acc += w[n] / total
                    n += 1
                ids, w = ids[:n], w[:n]
                total = sum(w)
            for i, x in zip(ids, w, strict=True):
                out[i] = x / total
        rows.append(out)
    return torch.tensor(rows, dtype=logits.dtype, device=logits.device).reshape(logits.shape)


# %% topk-and-log-space
"""torch.topk on keys that break ties by id; everything in logarithms; temperature 0 as a limit of its own."""
def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    for bad, name in ((temperature < 0, "temperature"), (top_k is not None and top_k < 1, "top_k"),
                      (top_p is not None and not 0 < top_p <= 1, "top_p")):
        if bad:
            raise ValueError(f"{name} is out of range")
    V = logits.size(-1)
    out = torch.zeros_like(logits)
    if temperature == 0:
        first = (logits == logits.amax(-1, keepdim=True)).to(torch.uint8).argmax(-1, keepdim=True)
        out.scatter_(-1, first, 1)
        return out
    values, places = torch.sort(-logits, stable=True, dim=-1)
    values = -values
    k = V if top_k is None else min(top_k, V)
    values, places = values[..., :k], places[..., :k]
    logp = torch.log_softmax((values - values[..., :1]) / temperature, -1)
    if top_p is not None and top_p != 1:
        reached = torch.cumsum(logp.exp(), -1)
        reached = torch.cat([torch.zeros_like(reached[..., :1]), reached[..., :-1]], -1)
        logp = logp.masked_fill(reached >= top_p, -math.inf)
    p = torch.softmax(logp, -1)
    return out.scatter(-1, places, p)
