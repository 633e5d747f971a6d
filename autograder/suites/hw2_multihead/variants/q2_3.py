# %% comparisons-of-positions
"""Positions compared with lengths and with one another."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    width = int(lengths.max()) if max_len is None else max_len
    return lengths.unsqueeze(1) <= torch.arange(width, device=lengths.device)


def causal_mask(T, S=None):
    S = T if S is None else S
    i, j = torch.meshgrid(torch.arange(T), torch.arange(S), indexing="ij")
    return j - i > S - T


def masks_for(architecture):
    masks = {}
    if "encoder" in architecture:
        masks["encoder_self"] = {"padding"}
    if "decoder" in architecture:
        masks["decoder_self"] = {"causal"}
    if len(masks) == 2:
        masks["cross"] = masks["encoder_self"] | set()
    return masks


# %% python-lists
"""Rows built as Python lists of booleans; masks kept in frozensets."""
def padding_mask(lengths, max_len=None):
    device = lengths.device if isinstance(lengths, Tensor) else None
    lengths = [int(n) for n in lengths]
    width = max(lengths) if max_len is None else max_len
    rows = [[p >= n for p in range(width)] for n in lengths]
    return torch.tensor(rows, dtype=torch.bool, device=device).reshape(len(lengths), width)


def causal_mask(T, S=None):
    keys = S if S is not None else T
    return torch.tensor([[not j <= i + keys - T for j in range(keys)] for i in range(T)], dtype=torch.bool)


def masks_for(architecture):
    padding, causal = frozenset(["padding"]), frozenset(["causal"])
    if architecture == "encoder":
        return dict(encoder_self=padding)
    if architecture == "decoder":
        return dict(decoder_self=causal)
    return dict(encoder_self=padding, cross=padding, decoder_self=causal)


# %% filled-in-place
"""Masks of ones opened row by row; a class attribute table for the architectures."""
def padding_mask(lengths, max_len=None):
    if not torch.is_tensor(lengths):
        lengths = torch.tensor(lengths)
    if max_len is None:
        max_len = lengths.max().item()
    mask = torch.ones(len(lengths), max_len, dtype=torch.bool, device=lengths.device)
    for row, n in zip(mask, lengths.tolist(), strict=True):
        row[:n] = False
    return mask


def causal_mask(T, S=None):
    S = S if S is not None else T
    mask = torch.full((T, S), True)
    for i in range(T):
        mask[i, : max(0, i + S - T + 1)] = False
    return mask


class _Needs:
    ENCODER = {"encoder_self": ["padding"]}
    DECODER = {"decoder_self": ["causal"]}
    CROSS = {"cross": ["padding"]}


def masks_for(architecture):
    table = {
        "encoder": _Needs.ENCODER,
        "decoder": _Needs.DECODER,
        "encoder-decoder": {**_Needs.ENCODER, **_Needs.DECODER, **_Needs.CROSS},
    }
    return {name: set(masks) for name, masks in table[architecture].items()}


# %% cumulative-sums-and-triangles
"""Padding by a running sum of end marks, the causal mask as the complement of a lower triangle of numbers; what
is needed follows from what leaks."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths).long()
    width = max_len if max_len is not None else int(torch.max(lengths))
    ends = torch.zeros(lengths.shape[0], max(width, int(lengths.max())) + 1, dtype=torch.long, device=lengths.device)
    ends = ends.scatter(1, lengths[:, None], 1)
    return ends.cumsum(1)[:, :width] > 0


def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.tril(torch.ones(T, S), diagonal=S - T) == 0


def masks_for(architecture):
    sides = architecture.split("-")
    self_attention = {"encoder": {"keys": "source", "future": True}, "decoder": {"keys": "target", "future": False}}
    masks = {f"{side}_self": {"padding" if self_attention[side]["future"] else "causal"} for side in sides}
    if len(sides) == 2:
        masks.update(cross=set(("padding",)))
    return masks


# %% numpy
"""numpy for the masks, turned into tensors at the end; match statement."""
import numpy as np


def padding_mask(lengths, max_len=None):
    device = lengths.device if isinstance(lengths, torch.Tensor) else None
    n = np.array([int(length) for length in lengths])
    mask = np.arange(n.max() if max_len is None else max_len)[None, :] >= n[:, None]
    return torch.from_numpy(mask).to(device=device)


def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.from_numpy(np.triu(np.ones((T, S), dtype=bool), k=S - T + 1))


def masks_for(architecture):
    match architecture:
        case "encoder":
            return {"encoder_self": {"padding"}}
        case "decoder":
            return {"decoder_self": {"causal"}}
        case "encoder-decoder":
            return masks_for("encoder") | masks_for("decoder") | {"cross": {"padding"}}
    raise ValueError(architecture)
