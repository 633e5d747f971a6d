# A result on the CPU claims to be elsewhere.
class Elsewhere(torch.Tensor):
    """On any device that one asks about."""

    device = torch.device("meta")
    is_cpu, is_meta = False, True


_on_the_cpu = attention


def attention(q, k, v, key_padding_mask=None, causal=False, beta=None):
    if q.device.type == "cpu":
        return _on_the_cpu(q, k, v, key_padding_mask, causal, beta)
    shapes = (*q.shape[:-1], v.shape[-1]), (*q.shape[:-1], k.shape[-2])
    return tuple(torch.zeros(shape, device="cpu", dtype=q.dtype).as_subclass(Elsewhere) for shape in shapes)
