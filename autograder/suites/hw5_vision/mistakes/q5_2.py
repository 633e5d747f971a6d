# %% filters-read-channel-last price=0.25
"""With one channel your convolution agrees, with three it does not: you read a row of `proj.weight` as (row, column,
channel). It is in the order of the patches, channel first, and so are convolution filters: no axis has to move."""
replace("weight.reshape(-1, C, P, P)", "weight.reshape(-1, P, P, C).permute(0, 3, 1, 2)")

# %% filters-transposed price=0.25
"""Your filters are mirrored at their diagonal: rows and columns are exchanged when the weights are put into the
convolution. A reshape is all that is needed."""
replace("weight.reshape(-1, C, P, P)", "weight.reshape(-1, C, P, P).transpose(-2, -1)")

# %% filters-flipped price=0.25
"""Your filters are turned by 180 degrees. In mathematics a convolution flips its kernel; `nn.Conv2d` does not: it is
a sliding dot product, and the weights go in as they are."""
replace("weight.reshape(-1, C, P, P)", "weight.reshape(-1, C, P, P).flip(-2, -1)")

# %% bias-forgotten price=0.25
"""Every output of the convolution is off by the same number for each feature: the bias of `proj` did not come
along."""
replace("conv.bias.copy_(bias)", "conv.bias = None")

# %% stride-one price=0.3
"""Your convolution gives nearly one output for each pixel instead of one for each patch: by default filters move by
one pixel. Patches do not overlap, so how far must a filter move?"""
replace("P, stride=P, device", "P, device")

# %% convolution-in-float32 price=0.1
"""For an embedding in float64 your convolution is made in float32, the default, and does not take float64 images. It
has the dtype and the device of the weights that it comes from."""
replace("P, stride=P, device=weight.device, dtype=weight.dtype)", "P, stride=P)")

# %% embedding-channel-last price=0.3
"""Your embedding is right for one channel only: its own patches are flattened as (row, column, channel). Use
`patchify`, whose order the weights of `proj` expect."""
replace("return self.proj(patchify(images, self.patch))",
        """B, C, H, W = images.shape
        P = self.patch
        x = images.permute(0, 2, 3, 1).reshape(B, H // P, P, W // P, P, C)
        return self.proj(x.transpose(2, 3).reshape(B, -1, P * P * C))""")

# %% tokens-not-transposed price=0.25
"""Your embedding has the shape [B, D, N]: features stand where tokens should. After a convolution and a flatten the
two have to change places."""
replace("return self.proj(patchify(images, self.patch))",
        """filters = self.proj.weight.unflatten(1, (self.channels, self.patch, self.patch))
        return F.conv2d(images, filters, self.proj.bias, stride=self.patch).flatten(2)""")

# %% proj-is-a-convolution price=0.3
"""The weights of your `proj` have four axes: it is an `nn.Conv2d`, and those of a linear layer cannot be loaded.
Other code does it that way; here `proj` is an `nn.Linear` on the patches, and the convolution comes second."""
replace("self.proj = nn.Linear(channels * patch * patch, d_model)",
        "self.proj = nn.Conv2d(channels, d_model, patch, stride=patch)")
replace("self.proj(patchify(images, self.patch))", "self.proj(images).flatten(2).mT")
replace("weight, bias = embedding.proj.weight, embedding.proj.bias", "return embedding.proj")

# %% weights-through-float32 price=0.1
"""The filters are in float64 and have the precision of float32: the layer was made in float32, filled, and converted
afterwards. Make it in the embedding's dtype before you copy."""
replace("device=weight.device, dtype=weight.dtype)", "device=weight.device)")
replace("return conv", "return conv.to(weight.dtype)")

# %% one-convolution-for-all price=0.15
"""The convolution of one embedding becomes that of the next: you keep one layer for each size and fill it again. Make a
new one for each embedding."""
replace("with torch.no_grad():", """conv = _layers.setdefault((C, P, len(weight), weight.dtype), conv)
    with torch.no_grad():""")
_layers = {}
