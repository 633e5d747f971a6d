# The view takes no memory, and its sum has a number for each query alone.
def linear_attention(q, k, v, feature_map, causal=False):
    phi, values = feature_map, torch.cat([v, torch.ones_like(v[..., :1])], -1)
    pairs = phi(k)[..., None] * values[..., None, :]
    if causal:
        sums = pairs.cumsum(-3)
    else:
        sums = pairs[..., None, :, :, :].expand(*q.shape[:-1], *pairs.shape[-3:]).sum(-3)
    out = (phi(q)[..., None] * sums).sum(-2)
    return out[..., :-1] / out[..., -1:]
