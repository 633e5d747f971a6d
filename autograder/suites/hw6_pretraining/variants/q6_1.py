# %% one-number-for-all
"""One uniform number decides choice and fate: below 0.8 p a mask, below 0.9 p a word, below p nothing."""
def mask_tokens(ids, mask_id, vocab_size, special_ids, p=0.15, generator=None):
    if p < 0 or p > 1:
        raise ValueError("p")
    table = torch.ones(max(vocab_size, max(special_ids) + 1, 1), dtype=torch.bool)
    for i in special_ids:
        table[i] = False
    u = torch.rand(ids.shape, generator=generator, dtype=torch.float64)
    u = u.masked_fill(~table[ids], 2.0)
    weights = table[:vocab_size].double()
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    labels[u < p] = ids[u < p]
    inputs[u < 0.8 * p] = mask_id
    swap = (u >= 0.8 * p) & (u < 0.9 * p)
    if swap.any():
        inputs[swap] = torch.multinomial(weights, int(swap.sum()), replacement=True, generator=generator)
    return inputs, labels


# %% position-by-position
"""A loop over positions, with three draws each."""
def mask_tokens(ids, mask_id, vocab_size, special_ids, p=0.15, generator=None):
    if not 0 <= p <= 1:
        raise ValueError("p must lie in [0, 1]")
    flat = ids.reshape(-1).tolist()
    draws = torch.rand(len(flat), 3, generator=generator).tolist()
    words = [w for w in range(vocab_size) if w not in special_ids]
    out, labels = [], []
    for token, (a, b, c) in zip(flat, draws, strict=True):
        if token in special_ids or a >= p:
            out.append(token)
            labels.append(-100)
            continue
        labels.append(token)
        out.append(mask_id if b < 0.8 else words[int(c * len(words))] if b < 0.9 else token)
    return (torch.tensor(out, dtype=torch.long).reshape(ids.shape),
            torch.tensor(labels, dtype=torch.long).reshape(ids.shape))


# %% bernoulli-twice
"""Bernoulli draws: chosen; not masked; of those, half are random."""
def mask_tokens(ids, mask_id, vocab_size, special_ids, p=0.15, generator=None):
    if p < 0.0 or p > 1.0:
        raise ValueError(p)
    probability = torch.full(ids.shape, float(p))
    for i in special_ids:
        probability[ids == i] = 0.0
    chosen = torch.bernoulli(probability, generator=generator).bool()
    hidden = torch.bernoulli(torch.full(ids.shape, 0.8), generator=generator).bool() & chosen
    rare = torch.bernoulli(torch.full(ids.shape, 0.5), generator=generator).bool() & chosen & ~hidden
    words = torch.tensor(sorted(set(range(vocab_size)) - set(special_ids)))
    inputs = ids.clone()
    inputs[hidden] = mask_id
    inputs[rare] = words[torch.randint(0, len(words), ids.shape, generator=generator)][rare]
    labels = ids.clone()
    labels[~chosen] = -100
    return inputs, labels
