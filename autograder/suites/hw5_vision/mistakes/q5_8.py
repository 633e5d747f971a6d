# %% layers-in-the-wrong-order price=0.25
"""With one layer all is well, with two it is not: you multiply later layers from the right. What a later layer mixes has
been mixed by the earlier ones, so it stands on the left."""
replace("layer.mean(1) @ R + R", "R @ layer.mean(1) + R")

# %% identity-left-out price=0.25
"""You chain the attention alone. Half of what a layer gives comes along the residual road, from the token itself: mix each
layer with the identity."""
replace("(layer.mean(1) @ R + R) / 2", "layer.mean(1) @ R")

# %% not-halved price=0.2
"""Your rows sum to 2, 4, 8 instead of 1: the identity is added and nothing divided by two."""
replace("(layer.mean(1) @ R + R) / 2", "layer.mean(1) @ R + R")

# %% heads-added-up price=0.2
"""Your rows sum to more than 1: the heads are added. Take their mean."""
replace("layer.mean(1) @ R", "layer.sum(1) @ R")

# %% column-instead-of-row price=0.25
"""You return column 0: where token 0 went. Asked for is row 0: where the class token's content came from."""
replace("return R[:, 0]", "return R[:, :, 0]")

# %% last-row price=0.2
"""You return the last row. The class token stands in front, so it is row 0."""
replace("return R[:, 0]", "return R[:, -1]")

# %% map-from-the-last-layer price=0.35
"""You read the attention of the last encoder layer, averaged over its tokens. The probe has weights of its own, in
`model.map_head.attn`."""
replace("model.map_head.attn", "model.layers[-1].self_attn")
replace("heard[0].mean(1)[:, 0]", "heard[0].mean((1, 2))")

# %% map-scores-instead-of-weights price=0.25
"""Your map has negative numbers, and rows do not sum to 1: these are the scores before the softmax."""
def map_attention(model, images):
    tokens = []
    hook = model.map_head.register_forward_pre_hook(lambda module, args: tokens.append(args[0]))
    with torch.no_grad():
        model(images)
        head, x = model.map_head, tokens[0]
        q = split_heads(head.attn.q_proj(head.probe), head.attn.n_heads)  # [1, H, 1, Dh]
        k = split_heads(head.attn.k_proj(x), head.attn.n_heads)  # [B, H, N, Dh]
        scores = (q * k).sum(-1) / math.sqrt(q.shape[-1])  # [B, H, N]
    hook.remove()
    return scores.mean(1)

# %% map-tokens-without-norm price=0.2
"""Your tokens are those in front of the model's last norm: the probe sees other ones in the model. Take what goes into
the MAP head."""
replace("model.map_head.attn.register_forward_hook(lambda module, args, output: heard.append(output[1]))",
        "model.norm.register_forward_pre_hook(lambda module, args: heard.append(args[0]))")
replace("heard[0].mean(1)",
        "model.map_head.attn(model.map_head.probe.expand(len(images), -1, -1), heard[0], heard[0])[1].detach().mean(1)")

# %% largest-head price=0.2
"""You take the largest weight over the heads. Asked for is their mean."""
replace("layer.mean(1) @ R", "layer.amax(1) @ R")

# %% first-head price=0.25
"""Only the first head counts in your rollout. Take the mean over the heads."""
replace("layer.mean(1) @ R", "layer[:, 0] @ R")

# %% mean-of-all-rows price=0.25
"""You return the mean of all rows. Asked for is row 0, the class token's."""
replace("return R[:, 0]", "return R.mean(1)")

# %% hook-left-in-the-model price=0.1
"""Your hook stays in the model: it goes on listening in every later call, and keeps what it hears. Take it away."""
replace("hook.remove()", "")

# %% evaluation-mode-left price=0.1
"""The model comes back in evaluation mode, whatever mode it was in. Put it back into the mode that it had."""
replace("heard = []", """heard = []
    model.eval()""")

# %% parameters-frozen price=0.1
"""After your function no parameter wants a gradient any more, and the model cannot be trained further. `torch.no_grad()`
is enough."""
replace("with torch.no_grad():", """model.requires_grad_(False)
    if True:""")

# %% gradients-switched-off-for-good price=0.15
"""`torch.set_grad_enabled(False)` holds until it is undone, and all later training fails. Use `with torch.no_grad():`."""
replace("with torch.no_grad():", """torch.set_grad_enabled(False)
    if True:""")

# %% training-mode-always price=0.1
"""The model comes back in training mode, also if it was in evaluation mode. Put it back into the mode that it had."""
replace("heard = []", """heard = []
    model.eval()""")
replace("hook.remove()", """hook.remove()
    model.train()""")

# %% all-hooks-removed price=0.1
"""You take away all hooks of the attention, those of other people too. `register_forward_hook` gives you a handle;
remove your own with it."""
replace("hook.remove()", "model.map_head.attn._forward_hooks.clear()")

# %% images-mixed price=0.3
"""Your rollout mixes the images of a batch: every image gets the mean over all of them. Take the mean over the heads, which
are axis 1, and leave the batch alone."""
replace("layer.mean(1) @ R + R", "layer.mean((0, 1)).expand(len(layer), -1, -1) @ R + R")
