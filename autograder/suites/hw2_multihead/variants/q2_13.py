# %% einsum
"""Axes by name; the matrix by a loop; the convolution's weight as a new parameter."""
def per_head_projection(x, W):
    H, Dh, _ = W.shape
    return torch.einsum("bnhi,hoi->bnho", x.reshape(*x.shape[:2], H, Dh), W).reshape(x.shape)


def block_diagonal(W):
    H, Dh, _ = W.shape
    matrix = W.new_zeros(H * Dh, H * Dh)
    for h in range(H):
        matrix[h * Dh : (h + 1) * Dh, h * Dh : (h + 1) * Dh] = W[h]
    return matrix


def as_grouped_convolution(W):
    D = W.shape[0] * W.shape[1]
    convolution = nn.Conv1d(D, D, kernel_size=1, groups=len(W), bias=False)
    convolution.weight = nn.Parameter(W.detach().clone().flatten(0, 1)[..., None])
    return convolution


# %% matrix-first
"""The projection through the matrix, the matrix through a mask, the state dict loaded."""
def block_diagonal(W):
    H, Dh, _ = W.shape
    head = torch.arange(H * Dh, device=W.device) // Dh
    return torch.where(head[:, None] == head, W.flatten(0, 1).repeat(1, H), W.new_zeros(()))


def per_head_projection(x, W):
    return x @ block_diagonal(W).T


def as_grouped_convolution(W):
    H, Dh = W.shape[:2]
    convolution = nn.Conv1d(H * Dh, H * Dh, (1,), groups=H, bias=False).to(W)
    convolution.load_state_dict({"weight": W.reshape(-1, Dh, 1)})
    return convolution


# %% through-the-convolution
"""Projection by F.conv1d in groups; a class of its own on top of nn.Conv1d."""
class HeadConvolution(nn.Conv1d):
    def __init__(self, W):
        D = W.shape[0] * W.shape[1]
        super().__init__(D, D, 1, groups=W.shape[0], bias=False, device=W.device, dtype=W.dtype)
        self.weight.data.copy_(W.reshape(self.weight.shape))


def as_grouped_convolution(W):
    return HeadConvolution(W)


def per_head_projection(x, W):
    return F.conv1d(x.transpose(1, 2), W.reshape(-1, W.shape[-1], 1), groups=len(W)).transpose(1, 2)


def block_diagonal(W):
    return torch.kron(torch.eye(len(W), dtype=W.dtype, device=W.device), W.new_ones(W.shape[1:])) * W.flatten(0, 1).repeat(
        1, len(W))


# %% head-by-head
"""A loop over heads and torch.cat; rows of blocks between zeros."""
def per_head_projection(x, W):
    return torch.cat([part @ w.T for part, w in zip(x.chunk(len(W), -1), W, strict=True)], dim=-1)


def block_diagonal(W):
    H, Dh, _ = W.shape
    rows = [F.pad(w, (h * Dh, (H - 1 - h) * Dh)) for h, w in enumerate(W)]
    return torch.cat(rows)


def as_grouped_convolution(W):
    H, Dh, _ = W.shape
    convolution = torch.nn.Conv1d(H * Dh, H * Dh, 1, 1, 0, 1, H, False, dtype=W.dtype, device=W.device)
    with torch.no_grad():
        for h in range(H):
            convolution.weight[h * Dh : (h + 1) * Dh, :, 0] = W[h]
    return convolution
