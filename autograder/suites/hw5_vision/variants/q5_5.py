# %% sequential-layers
"""A Sequential of layers, read-outs as methods looked up by name, initial weights of other sizes."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        read_outs = {"cls": self.first, "gap": self.average, "map": self.ask}
        if pool not in read_outs:
            raise ValueError(f"{pool} is none of {sorted(read_outs)}")
        self.kind, side = pool, image_size // patch
        self.image_size, self.p = image_size, patch
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(torch.zeros(1, side * side, d_model))
        nn.init.trunc_normal_(self.positions, std=0.02)
        if pool == "cls":
            self.cls = nn.Parameter(torch.zeros(1, 1, d_model))
        self.layers = nn.Sequential(*[EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)
        self.head = nn.Linear(d_model, n_classes)

    def first(self, x):
        return x[:, 0]

    def average(self, x):
        return torch.mean(x, dim=1)

    def ask(self, x):
        return self.map_head(x)

    def forward(self, images):
        B, _, H, W = images.shape
        side = self.image_size // self.p
        x = self.embed(images) + resize_positions(self.positions, (side, side), (H // self.p, W // self.p))
        if self.kind == "cls":
            x = torch.cat((self.cls.repeat(B, 1, 1), x), 1)
        x = self.norm(self.layers(x))
        return self.head({"cls": self.first, "gap": self.average, "map": self.ask}[self.kind](x))


# %% token-kept-apart
"""Only what is read is normalised where that is the same; weights of the average as a product with ones."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.rows = self.cols = image_size // patch
        self.P = patch
        self.positions = nn.Parameter(torch.randn(1, self.rows * self.cols, d_model) * 0.01)
        self.layers = nn.ModuleList()
        for _ in range(n_layers):
            self.layers.append(EncoderLayer(d_model, n_heads, d_ff, dropout=0.0, norm_first=True))
        self.norm = nn.LayerNorm(d_model, eps=1e-5)
        self.head = nn.Linear(d_model, n_classes)
        self.cls = self.map_head = None
        if pool == "cls":
            self.cls = nn.Parameter(torch.randn(1, 1, d_model))
        elif pool == "map":
            self.map_head = MAPHead(d_model, n_heads, mlp_ratio=4)
        elif pool != "gap":
            raise ValueError("pool must be cls, gap or map")

    def tokens(self, images):
        x = self.embed(images)
        grid = [side // self.P for side in images.shape[2:]]
        places = self.positions
        if grid != [self.rows, self.cols]:
            places = resize_positions(places, (self.rows, self.cols), tuple(grid))
        x = x + places
        if self.cls is not None:
            x = torch.cat([self.cls.to(x.dtype).expand(x.size(0), 1, x.size(2)), x], dim=1)
        for layer in self.layers:
            x = layer(x, None)
        return x

    def forward(self, images):
        x = self.tokens(images)
        if self.cls is not None:
            return self.head(self.norm(x[:, 0]))
        if self.map_head is not None:
            return self.head(self.map_head(self.norm(x)))
        share = x.new_full((1, 1, x.shape[1]), 1 / x.shape[1])
        return self.head((share @ self.norm(x)).squeeze(1))


# %% class-token-in-an-empty-sequence
"""The sequence is allocated and filled; the grid is a buffer; the module of the read-out decides, not the name."""
class _Average(nn.Module):
    def forward(self, x):
        return x.sum(dim=1) / x.shape[1]


class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        if pool not in {"cls", "gap", "map"}:
            raise ValueError("no such pool: " + str(pool))
        super().__init__()
        self.pool, self.patch, self.width = pool, patch, d_model
        self.register_buffer("grid", torch.tensor([image_size // patch] * 2), persistent=False)
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(torch.rand(1, (image_size // patch) ** 2, d_model) * 0.04 - 0.02)
        if pool == "cls":
            self.register_parameter("cls", nn.Parameter(torch.full((1, 1, d_model), 0.01)))
        if pool == "map":
            self.map_head = MAPHead(d_model, n_heads)
        if pool == "gap":
            self.average = _Average()
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, n_classes)

    def forward(self, images):
        patches = self.embed(images)  # [B, N, D]
        new = (images.size(2) // self.patch, images.size(3) // self.patch)
        patches = patches + resize_positions(self.positions, tuple(self.grid.tolist()), new)
        extra = int(self.pool == "cls")
        x = patches.new_empty(patches.shape[0], patches.shape[1] + extra, self.width)
        x[:, extra:] = patches
        if extra:
            x[:, :1] = self.cls
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.pool == "map":
            pooled = self.map_head(x)
        elif self.pool == "gap":
            pooled = self.average(x)
        else:
            pooled, _ = x.split([1, x.shape[1] - 1], dim=1)
            pooled = pooled.flatten(1)
        return F.linear(pooled, self.head.weight, self.head.bias)


# %% positions-by-interpolate
"""The table is laid out as a grid and interpolated here, for every image size, without resize_positions."""
class ViT(nn.Module):
    def __init__(self, image_size, patch, channels, d_model, n_heads, d_ff, n_layers, n_classes, pool="map"):
        super().__init__()
        self.pool = pool
        match pool:
            case "cls":
                self.cls = nn.Parameter(torch.randn(1, 1, d_model) * d_model**-0.5)
            case "map":
                self.map_head = MAPHead(d_model, n_heads)
            case "gap":
                pass
            case _:
                raise ValueError(f"pool={pool!r}")
        self.patch, self.side = patch, image_size // patch
        self.embed = PatchEmbedding(patch, channels, d_model)
        self.positions = nn.Parameter(torch.randn(1, self.side**2, d_model) * d_model**-0.5)
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)

    def _places(self, rows, cols):
        picture = self.positions.reshape(1, self.side, self.side, -1).permute(0, 3, 1, 2)
        picture = F.interpolate(picture, size=(rows, cols), mode="bicubic", align_corners=False)
        return picture.permute(0, 2, 3, 1).flatten(1, 2)

    def forward(self, images):
        x = self.embed(images)
        x = x + self._places(images.shape[2] // self.patch, images.shape[3] // self.patch)
        if self.pool == "cls":
            x = torch.hstack([self.cls.expand(x.shape[0], -1, -1), x])
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        x = self.norm(x)
        vector = {"cls": lambda: x[:, 0], "gap": lambda: x.mean(-2), "map": lambda: self.map_head(x)}[self.pool]()
        return self.head(vector)
