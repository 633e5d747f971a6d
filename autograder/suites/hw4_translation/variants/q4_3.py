# %% target-distribution
"""The smoothed targets written out as one-hot rows [n, V], for the real tokens only."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    real = labels.ne(pad_id)
    logits, labels = logits[real], labels[real]
    V = logits.shape[-1]
    q = (1 - smoothing) * F.one_hot(labels, V).to(logits.dtype) + smoothing / V
    return -(q * F.log_softmax(logits, dim=-1)).sum() / len(labels)


# %% logsumexp-and-weights
"""Without log_softmax: log-sum-exp minus the target's logits; padding by a weight for each place."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    weight = (labels != pad_id).to(logits.dtype)  # [B, T]
    safe = torch.where(labels == pad_id, torch.zeros_like(labels), labels)
    wanted = torch.take_along_dim(logits, safe.unsqueeze(-1), dim=-1).squeeze(-1)
    per_place = torch.logsumexp(logits, -1) - (1 - smoothing) * wanted - smoothing * logits.mean(-1)
    return torch.einsum("bt,bt->", per_place, weight) / weight.sum()


# %% nll-with-ignore-index
"""nll_loss for the right words, which skips padding by itself, and a masked mean for the crowd."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    logp = torch.log_softmax(logits, -1).flatten(0, 1)
    flat = labels.flatten()
    right = F.nll_loss(logp, flat, ignore_index=pad_id)
    crowd = -logp.masked_select((flat != pad_id).unsqueeze(-1)).mean()
    return torch.lerp(right, crowd, smoothing)


# %% divergence-plus-entropy
"""The Kullback-Leibler divergence from the smoothed targets, plus their entropy."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    keep = torch.nonzero(labels.reshape(-1) != pad_id)[:, 0]
    rows = logits.reshape(-1, logits.shape[-1]).index_select(0, keep)
    y = labels.reshape(-1).index_select(0, keep)
    q = torch.full_like(rows, smoothing / rows.shape[-1])
    q[torch.arange(len(y), device=y.device), y] += 1 - smoothing
    entropy = -torch.special.xlogy(q, q).sum(-1)
    return F.kl_div(rows.log_softmax(-1), q, reduction="batchmean") + entropy.mean()


# %% token-by-token
"""Two plain loops, one token at a time; only real ones are looked at."""
def smoothed_loss(logits, labels, pad_id, smoothing=0.1):
    losses = []
    for row, ys in zip(logits, labels.tolist(), strict=True):
        for z, y in zip(row, ys, strict=True):
            if y != pad_id:
                logp = z - z.logsumexp(0)
                losses.append((smoothing - 1) * logp[y] - smoothing * logp.mean())
    return torch.stack(losses).mean()
