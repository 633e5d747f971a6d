# %% token-by-token
"""A call for each token, sums in Python, exponents of two."""
def perplexity(model, ids):
    mode, bits = model.training, 0.0
    model.eval()
    with torch.no_grad():
        for i in range(1, len(ids)):
            logits = model(ids[max(0, i - model.max_len) : i].unsqueeze(0))
            bits += -(logits[0, -1].double().log_softmax(-1)[ids[i]].item()) / math.log(2)
    model.train(mode)
    return 2.0 ** (bits / (len(ids) - 1))


def bits_per_character(perplexity, n_tokens, n_characters):
    return math.log(perplexity) / math.log(2) / (n_characters / n_tokens)


# %% with-a-cache
"""The first window with a cache, token by token; later ones in one batch; probabilities gathered."""
@torch.inference_mode()
def perplexity(model, ids):
    before = model.training
    model.train(False)
    try:
        L, N = model.max_len, ids.numel()
        cache, logp = model.new_cache(), []
        for i in range(min(L, N - 1)):
            out = model(ids[None, i : i + 1], None, cache)
            logp.append(torch.log_softmax(out[0, 0], 0)[ids[i + 1]])
        if N - 1 > L:
            rows = torch.stack([ids[i - L : i] for i in range(L + 1, N)])
            out = model(rows)[:, -1].log_softmax(-1)
            logp.extend(out.gather(1, ids[L + 1 :, None])[:, 0])
        return float(torch.exp(-torch.stack(logp).mean()))
    finally:
        model.train(before)


def bits_per_character(perplexity, n_tokens, n_characters):
    import numpy as np

    return float(np.log2(perplexity) * n_tokens / n_characters)


# %% sliding-index
"""Windows by an index matrix; nll_loss summed; a decorator-free no_grad."""
def perplexity(model, ids):
    was = model.training
    model.eval()
    grad = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        ids = ids.to(model.token_embed.weight.device)
        n = ids.shape[0] - 1
        k = min(n, model.max_len)
        total = F.nll_loss(F.log_softmax(model(ids[:k].view(1, -1)), -1)[0], ids[1 : k + 1], reduction="sum")
        extra = n - k
        if extra:
            at = torch.arange(1, extra + 1, device=ids.device)[:, None] + torch.arange(k, device=ids.device)
            last = model(ids[at])[:, -1, :]
            total = total + F.cross_entropy(last, ids[k + 1 :], reduction="sum")
        return math.exp(total.item() / n)
    finally:
        torch.set_grad_enabled(grad)
        model.train(was)


def bits_per_character(perplexity, n_tokens, n_characters):
    nats = n_tokens * math.log(perplexity)
    return nats / n_characters / math.log(2)
