# %% look-then-mend
"""Every fault is looked for first; what is well is left as it is."""
@torch.no_grad()
def dead_transformer_fix(model):
    for parameter in model.parameters():
        parameter.requires_grad = True
    if not model.padding_is:
        model.padding_is = True
    table = model.positions
    if (table - table[0]).abs().max() < 1e-6:
        table.copy_(sinusoidal_encoding(*table.shape))
    for module in model.modules():
        if isinstance(module, nn.Dropout) and module.p > 0.5:
            module.p = 0.1
        if isinstance(module, nn.LayerNorm) and module.weight.abs().max() < 1e-3:
            module.weight.fill_(1.0)
        if isinstance(module, nn.Linear):
            if module.weight.max() - module.weight.min() < 1e-6:
                nn.init.xavier_uniform_(module.weight)
            if module.bias.max() < -1:
                module.bias.zero_()
    for block in model.blocks:
        width = block.attn.q_proj.out_features // block.attn.n_heads
        if abs(block.attn.scale * math.sqrt(width) - 1) > 0.01:
            block.attn.scale = 1 / math.sqrt(width)
        if block.attn.sees != "all":
            block.attn.sees = "all"
        if "detach" in block.steps or block.steps.count("add") < 2:
            block.steps = ("keep", "norm1", "attn", "add", "keep", "norm2", "fc1", "relu", "fc2", "add")
    return model


# %% transplant
"""A new model of the same class gets those of the patient's weights that look healthy."""
def dead_transformer_fix(model):
    new = type(model)()
    ours = new.state_dict()
    for name, value in model.state_dict().items():
        flat = value.dim() == 2 and bool((value == value[0, 0]).all() or (value == value[0]).all())
        gone = "norm" in name and name.endswith("weight") and not bool(value.any())
        sunk = name.endswith("bias") and bool((value < -1).all())
        if not (flat or gone or sunk):
            ours[name] = value.clone()
    new.load_state_dict(ours)
    return new


# %% new-organs
"""Sick modules are replaced by new ones, dropout by the identity; lost positions are learned from noise on."""
def dead_transformer_fix(model):
    if model.positions.std(dim=0).sum() < 1e-5:
        noise = torch.randn(model.positions.shape)
        del model.positions
        model.positions = nn.Parameter(noise)
    model.padding_is = True
    for owner in list(model.modules()):
        for name, part in list(owner.named_children()):
            if isinstance(part, nn.LayerNorm) and (part.weight == 0).all():
                setattr(owner, name, nn.LayerNorm(part.normalized_shape))
            elif isinstance(part, nn.Dropout) and part.p >= 0.5:
                setattr(owner, name, nn.Identity())
            elif isinstance(part, nn.Linear) and (part.weight == part.weight[0, 0]).all():
                new = nn.Linear(part.in_features, part.out_features)
                new.bias = part.bias
                setattr(owner, name, new)
            elif isinstance(part, nn.Linear) and (part.bias < -1).all():
                part.bias = nn.Parameter(torch.zeros(part.out_features))
        if hasattr(owner, "scale"):
            owner.scale = math.sqrt(owner.n_heads / owner.o_proj.in_features)
            owner.sees = "all"
        if hasattr(owner, "steps"):
            owner.steps = [word for word in ("keep", "norm1", "attn", "add", "keep", "norm2", "fc1", "relu", "fc2", "add")]
    return model.requires_grad_()


# %% compared-with-a-twin
"""A new model of the same class shows what is usual: settings are taken from it, and tensors of unusual mean or
spread are copied from it."""
@torch.no_grad()
def dead_transformer_fix(model):
    twin = type(model)()
    for mine, usual in zip(model.modules(), twin.modules(), strict=True):
        for setting in ("p", "scale", "sees", "steps", "padding_is"):
            if hasattr(usual, setting):
                setattr(mine, setting, getattr(usual, setting))
    for (name, mine), usual in zip(model.state_dict().items(), twin.state_dict().values(), strict=True):
        over = 0 if name == "positions" else tuple(range(mine.dim()))
        wide, narrow = usual.std(over).mean(), mine.std(over).mean()
        if (mine.mean() - usual.mean()).abs() > 0.5 or narrow < wide / 10:
            mine.copy_(usual)
    for mine, usual in zip(model.parameters(), twin.parameters(), strict=True):
        mine.requires_grad = usual.requires_grad
    return model


# %% list-of-cures
"""A list of small cures, each of which looks first; orthogonal weights, noise in place of a sinusoidal table."""
def awake(model):
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def sees_words(model):
    model.padding_is = True


def knows_places(model):
    if model.positions.std(0).max() < 1e-6:
        model.positions += torch.randn_like(model.positions)


def keeps_entries(model):
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.p = module.p if module.p < 0.5 else 0.0


def can_choose(model):
    for block in model.blocks:
        block.attn.scale = (block.attn.k_proj.out_features // block.attn.n_heads) ** -0.5


def hears_all(model):
    for block in model.blocks:
        block.attn.sees = "all"


def road_is_open(model):
    for block in model.blocks:
        steps = [step for step in block.steps if step not in ("keep", "add", "detach")]
        middle = steps.index("norm2")
        block.steps = ("keep", *steps[:middle], "add", "keep", *steps[middle:], "add")


def weights_differ(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            if module.weight.unique().numel() == 1:
                nn.init.orthogonal_(module.weight)
            if module.bias.mean() < -2:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm) and module.weight.norm() < 1e-6:
            nn.init.ones_(module.weight)


def dead_transformer_fix(model):
    for cure in (awake, sees_words, knows_places, keeps_entries, can_choose, hears_all, road_is_open, weights_differ):
        cure(model)
    return model
