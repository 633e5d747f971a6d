# %% norm-after-pooling
"""The class token is right and another pooling is not: you pool first and normalise the pooled vector. The norm is for
all tokens and comes before pooling."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        if self.pool == "map":
            x = self.map_head(x)
        else:
            x = x[:, 0] if self.pool == "cls" else x.mean(1)
        return self.head(self.norm(x))


# %% no-final-norm
"""`norm` has no influence on your logits. Pre-norm layers leave the residual stream as large as it has grown, so a
last norm stands behind them, before pooling."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% class-token-at-the-end
"""Your class token stands behind the patches. It belongs in front, and place 0 is where it is read."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([x, self.cls.expand(len(x), -1, -1)], dim=1)  # [B, N + 1, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% class-token-gets-a-position
"""With the class token your table of positions has a row more, and weights cannot be loaded. There is only one class
token, so it needs no position: add positions to the patches, and put it in front afterwards."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        places = self.grid[0] * self.grid[1] + (pool == "cls")
        self.positions = nn.Parameter(0.02 * torch.randn(1, places, d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x, positions = self.embed(images), self.positions
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
            patches = resize_positions(positions[:, 1:], self.grid, grid)
            x = x + torch.cat([positions[:, :1], patches], dim=1)
        else:
            x = x + resize_positions(positions, self.grid, grid)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% mean-instead-of-the-class-token
"""With `pool="cls"` you average over all tokens, the class token among them. Read the class token alone: it has
collected what it needs."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x.mean(1))


# %% positions-cut-to-length
"""Smaller images get the first positions of the list, and larger ones fail. Positions belong to places on a grid:
resize them to the grid of the image at hand."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        x = self.embed(images)  # [B, N, D]
        x = x + self.positions[:, : x.shape[1]]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% grid-swapped
"""Square images are right, others are not: the grid of the image is (rows, cols), so height first, and you give width
first."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-1] // self.patch, images.shape[-2] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% unknown-pool-accepted
"""A model with `pool="max"` can be made. A typing error would be found late or never: raise a ValueError when the model
is made, before any image is seen."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% layers-share-their-weights
"""All your layers are one and the same: `[layer] * n` repeats a reference, so the weights of the last one loaded are
used n times. Make a new layer in each round."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff)] * n_layers)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% head-without-bias
"""Weights cannot be loaded: your `head` has no bias. It is a plain `nn.Linear(d_model, n_classes)`, so that a class can be
likely whatever the image."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes, bias=False)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% post-norm-layers
"""Your layers normalise after adding. The contract's are pre-norm, the default of `EncoderLayer`."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, norm_first=False) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% softmax-in-the-model
"""Your rows sum to 1: the model ends with a softmax. The loss has one already; return the logits."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x)).softmax(-1)
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1)).softmax(-1)


# %% map-head-with-one-head
"""Class token and average are right and MAP is not: its head was made with one attention head. It gets `n_heads`."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, 1)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% dropout
"""In training mode your logits change from call to call: there is dropout. The contract's model has none."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout=0.1) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% average-normalised-after
"""Class token and MAP are right and the average is not: there you take the mean first and normalise it. The norm is for
all tokens and comes before pooling."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x.mean(1)) if self.pool == "gap" else self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x)


# %% other-sizes-cropped
"""An image whose sides `patch` does not divide is not refused with a ValueError. Is it cut to fit somewhere?"""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        images = images[..., : grid[0] * self.patch, : grid[1] * self.patch]
        x = self.embed(images) + resize_positions(self.positions, self.grid, grid)  # [B, N, D]
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% resized-positions-kept
"""After a step of training, images of another size still get the old positions: you keep the resized table. Resize in
every call."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        if pool not in ("cls", "gap", "map"):
            raise ValueError(f"unknown pool {pool!r}")
        self.patch, self.pool = patch, pool
        self.grid = (image_size // patch, image_size // patch)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(1, self.grid[0] * self.grid[1], d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.kept = {}
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)

    def forward(self, images):
        grid = (images.shape[-2] // self.patch, images.shape[-1] // self.patch)
        if grid not in self.kept:
            self.kept[grid] = resize_positions(self.positions, self.grid, grid).detach()
        x = self.embed(images) + (self.positions if grid == self.grid else self.kept[grid].to(images.dtype))
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # [B, 1 + N, D]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            return self.head(self.map_head(x))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))
