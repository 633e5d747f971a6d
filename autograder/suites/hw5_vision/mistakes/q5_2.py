# %% filters-read-channel-last
"""With one channel your convolution agrees, with three it does not: you read a row of `proj.weight` as (row, column,
channel). It is in the order of the patches, channel first, and so are convolution filters: no axis has to move."""
def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, stride=P, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, P, P, C).permute(0, 3, 1, 2))
        conv.bias.copy_(bias)
    return conv


# %% filters-transposed
"""Your filters are mirrored at their diagonal: rows and columns are exchanged when the weights are put into the
convolution. A reshape is all that is needed."""
def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, stride=P, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P).transpose(-2, -1))
        conv.bias.copy_(bias)
    return conv


# %% filters-flipped
"""Your filters are turned by 180 degrees. In mathematics a convolution flips its kernel; `nn.Conv2d` does not: it is
a sliding dot product, and the weights go in as they are."""
def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, stride=P, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P).flip(-2, -1))
        conv.bias.copy_(bias)
    return conv


# %% bias-forgotten
"""Every output of the convolution is off by the same number for each feature: the bias of `proj` did not come
along."""
def as_convolution(embedding):
    weight = embedding.proj.weight
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, stride=P, bias=False, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P))
    return conv


# %% stride-one
"""Your convolution gives nearly one output for each pixel instead of one for each patch: by default filters move by
one pixel. Patches do not overlap, so how far must a filter move?"""
def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P))
        conv.bias.copy_(bias)
    return conv


# %% convolution-in-float32
"""For an embedding in float64 your convolution is made in float32, the default, and does not take float64 images. It
has the dtype and the device of the weights that it comes from."""
def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, stride=P)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P))
        conv.bias.copy_(bias)
    return conv


# %% embedding-channel-last
"""Your embedding is right for one channel only: its own patches are flattened as (row, column, channel). Use
`patchify`, whose order the weights of `proj` expect."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.patch, self.channels = patch, channels
        self.proj = nn.Linear(channels * patch * patch, d_model)

    def forward(self, images):
        B, C, H, W = images.shape
        P = self.patch
        x = images.permute(0, 2, 3, 1).reshape(B, H // P, P, W // P, P, C)
        return self.proj(x.transpose(2, 3).reshape(B, -1, P * P * C))


# %% tokens-not-transposed
"""Your embedding has the shape [B, D, N]: features stand where tokens should. After a convolution and a flatten the
two have to change places."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.patch, self.channels = patch, channels
        self.proj = nn.Linear(channels * patch * patch, d_model)

    def forward(self, images):
        filters = self.proj.weight.unflatten(1, (self.channels, self.patch, self.patch))
        return F.conv2d(images, filters, self.proj.bias, stride=self.patch).flatten(2)


# %% proj-is-a-convolution
"""The weights of your `proj` have four axes: it is an `nn.Conv2d`, and those of a linear layer cannot be loaded.
Other code does it that way; here `proj` is an `nn.Linear` on the patches, and the convolution comes second."""
class PatchEmbedding(nn.Module):
    def __init__(self, patch, channels, d_model):
        super().__init__()
        self.patch, self.channels = patch, channels
        self.proj = nn.Conv2d(channels, d_model, patch, stride=patch)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


def as_convolution(embedding):
    return embedding.proj


# %% weights-through-float32
"""The filters are in float64 and have the precision of float32: the layer was made in float32, filled, and converted
afterwards. Make it in the embedding's dtype before you copy."""
def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    conv = nn.Conv2d(C, len(weight), P, stride=P, device=weight.device)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P))
        conv.bias.copy_(bias)
    return conv.to(weight.dtype)


# %% one-convolution-for-all
"""The convolution of one embedding becomes that of the next: you keep one layer for each size and fill it again. Make a
new one for each embedding."""
_layers = {}


def as_convolution(embedding):
    weight, bias = embedding.proj.weight, embedding.proj.bias
    P, C = embedding.patch, embedding.channels
    new = nn.Conv2d(C, len(weight), P, stride=P, device=weight.device, dtype=weight.dtype)
    conv = _layers.setdefault((C, P, len(weight), weight.dtype), new)
    with torch.no_grad():
        conv.weight.copy_(weight.reshape(-1, C, P, P))
        conv.bias.copy_(bias)
    return conv
