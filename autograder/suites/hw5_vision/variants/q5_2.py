# %% conv2d-inside
"""The embedding runs as a convolution with the linear layer's weights seen as filters; the conversion shares the
memory of the weights."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.p, self.c = patch, channels
        self.proj = nn.Linear(channels * patch * patch, d_model)

    def forward(self, images):
        if images.shape[-2] % self.p or images.shape[-1] % self.p:
            raise ValueError("patch does not divide the image")
        filters = self.proj.weight.view(-1, self.c, self.p, self.p)
        return F.conv2d(images, filters, self.proj.bias, stride=self.p).flatten(2).transpose(1, 2)


def as_convolution(embedding):
    proj = embedding.proj
    conv = nn.utils.skip_init(nn.Conv2d, embedding.c, proj.out_features, embedding.p, stride=embedding.p)
    conv.weight = nn.Parameter(proj.weight.data.view(proj.out_features, embedding.c, embedding.p, embedding.p))
    conv.bias = nn.Parameter(proj.bias.data)
    return conv


# %% sizes-from-the-weights
"""The module keeps its patch only; channels follow from the width of proj. The new layer is cast by `.to` and filled
by load_state_dict."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.side = patch
        self.proj = nn.Linear(channels * patch**2, d_model)

    def forward(self, images):
        x = patchify(images, self.side)  # [B, N, C*P*P]
        return torch.einsum("bni,di->bnd", x, self.proj.weight) + self.proj.bias


def as_convolution(embedding):
    P, linear = embedding.side, embedding.proj
    C = linear.in_features // P**2
    conv = nn.Conv2d(C, linear.out_features, kernel_size=(P, P), stride=(P, P)).to(linear.weight)
    conv.load_state_dict({"weight": linear.weight.unflatten(-1, (C, P, P)), "bias": linear.bias})
    return conv


# %% unfold-then-linear
"""torch's sliding blocks instead of patchify, an extra submodule without parameters, filters copied one by one."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.kernel = patch
        self.in_channels = channels
        self.blocks = nn.Unfold(kernel_size=patch, stride=patch)
        self.proj = nn.Linear(channels * patch * patch, d_model)

    def forward(self, images):
        if any(side % self.kernel for side in images.shape[-2:]):
            raise ValueError(f"sides must be multiples of {self.kernel}")
        return self.proj(self.blocks(images).permute(0, 2, 1))


def as_convolution(embedding):
    W, b, K = embedding.proj.weight.detach(), embedding.proj.bias.detach(), embedding.kernel
    conv = nn.Conv2d(embedding.in_channels, W.shape[0], K, K, dtype=W.dtype, device=W.device)
    for d in range(W.shape[0]):
        conv.weight.data[d] = W[d].clone().reshape(embedding.in_channels, K, K)
    conv.bias.data = b.clone()
    return conv


# %% sum-over-channels
"""Each channel is cut by itself and meets its own columns of the weights; the results are added."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.patch_size, self.n_channels, self.d_model = patch, channels, d_model
        self.proj = nn.Linear(channels * patch * patch, d_model)
        self.register_buffer("area", torch.tensor(patch * patch), persistent=False)

    def forward(self, images):
        parts = self.proj.weight.chunk(self.n_channels, dim=1)  # each [D, P*P]
        tokens = self.proj.bias
        for c in range(self.n_channels):
            tokens = tokens + patchify(images[:, c : c + 1], self.patch_size) @ parts[c].T
        return tokens


def as_convolution(embedding):
    D, C, P = embedding.d_model, embedding.n_channels, embedding.patch_size
    conv = nn.Conv2d(C, D, P, stride=P).type(embedding.proj.weight.dtype).to(embedding.proj.weight.device)
    with torch.no_grad():
        conv.weight[:] = torch.stack(embedding.proj.weight.chunk(C, dim=1), 1).view(D, C, P, P)
        conv.bias[:] = embedding.proj.bias
    return conv
