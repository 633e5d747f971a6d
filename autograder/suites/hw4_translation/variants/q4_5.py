# %% clipped-by-hand
"""Clipping written out: one norm over all gradients, and a factor that is never above 1. A bar of tqdm; fit knows
no schedule."""
def train_step(model, batch, optimizer, pad_id):
    device = next(model.parameters()).device
    src, src_padding, inputs, labels = (x.to(device) for x in batch)
    model.train()
    logits = model(src, inputs, src_padding)
    loss = smoothed_loss(logits, labels, pad_id)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.sqrt(sum(g.square().sum() for g in grads))
    for g in grads:
        g.mul_(torch.clamp(1 / norm, max=1.0))
    optimizer.step()
    return float(loss)


def fit(model, batches, optimizer=None, pad_id=0, epochs=1, rate=3e-3):
    from tqdm import tqdm

    if optimizer is None:
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(epochs):
        for batch in tqdm(batches, disable=None):
            losses.append(train_step(model, batch, optimizer, pad_id))
    return losses


# %% gradients-by-autograd-grad
"""torch.autograd.grad in the place of backward: the clipped gradients are put where the optimizer looks. Other
argument names in fit."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = to_device(batch, next(model.parameters()).device)
    model.train(True)
    loss = smoothed_loss(model.forward(src, inputs, src_padding), labels, pad_id)
    weights = [p for p in model.parameters() if p.requires_grad]
    grads = torch.autograd.grad(loss, weights, allow_unused=True)
    norm = torch.stack([g.norm() for g in grads if g is not None]).norm().item()
    for p, g in zip(weights, grads, strict=True):
        p.grad = None if g is None else g / max(1.0, norm)
    optimizer.step()
    return loss.detach().cpu().item()


def fit(model, batches, lr=2e-3, passes=1, padding=PAD):
    adam = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    bar = progress([batch for _ in range(passes) for batch in batches], label="training")
    return [train_step(model, batch, adam, padding) for batch in bar]


# %% encode-and-decode
"""The two halves of the model called one after the other; the gradients are cleared after the step, and before it
in case somebody left some. fit warms up with a LambdaLR."""
def train_step(model, batch, optimizer, pad_id):
    device = next(model.parameters()).device
    src, src_padding, inputs, labels = [x.to(device) for x in batch]
    model.train()
    for p in model.parameters():
        p.grad = None
    memory = model.encode(src, src_padding)
    loss = smoothed_loss(model.decode(inputs, memory, src_padding), labels, pad_id)
    value = loss.item()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=1, norm_type=2)
    optimizer.step()
    optimizer.zero_grad()
    return value


def fit(model, batches, optimizer=None, pad_id=0, epochs=1, rate=0.5, warmup=50):
    batches = list(batches)
    if optimizer is None:
        optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98))
        d_model = model.tgt_embed.weight.shape[1]
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: rate * noam_rate(step + 1, d_model, warmup)
        )
    else:
        schedule = None
    losses = []
    for _ in range(epochs):
        for batch in progress(batches, label="training"):
            losses.append(train_step(model, batch, optimizer, pad_id))
            if schedule is not None:
                schedule.step()
    return losses


# %% own-loss-inside
"""The smoothed cross-entropy by PyTorch's own function, which this question allows; fit takes the rate as it is."""
def train_step(model, batch, optimizer, pad_id):
    device = next(model.parameters()).device
    src, src_padding, inputs, labels = to_device(batch, device)
    model.train()
    with autocast_for(device):
        logits = model(src, inputs, src_padding=src_padding)
        loss = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=pad_id, label_smoothing=0.1)
    model.zero_grad()
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    nn.utils.clip_grads_with_norm_(model.parameters(), 1.0, norm)
    optimizer.step()
    return loss.item()


def fit(model, batches, optimizer=None, pad_id=PAD, epochs=1, rate=3e-3):
    if optimizer is None:
        optimizer = torch.optim.Adam(model.parameters(), rate, BETAS)
    history = []
    for epoch in range(epochs):
        bar = progress(batches, label=f"epoch {epoch + 1}")
        for batch in bar:
            history.append(train_step(model, batch, optimizer, pad_id))
            bar.show(loss=history[-1])
    return history
