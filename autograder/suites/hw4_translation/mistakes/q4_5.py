# %% gradients-never-cleared
"""The second step on the same batch is not what it should be: the gradients of the first are still there, and
backward adds to them. Clear them in every step."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% cleared-before-the-step
"""Nothing changes: you clear the gradients between backward and step, and the optimizer finds none."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


# %% not-clipped
"""The gradient that the optimizer sees is not clipped. Scale it down to norm 1 after backward and before the step:
earlier there is nothing to clip yet."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    optimizer.step()
    return loss.item()


# %% clipped-by-value
"""You clip every entry of the gradient by itself, which bends its direction. It is the norm of the whole gradient
that is clipped."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% loss-after-the-update
"""You return the loss of the model after its update. The loss that the gradient was made from is asked for, and it
costs no second pass."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    return loss.item()


# %% tensor-returned
"""You return a tensor with its whole graph, so a list of losses keeps every step's activations alive. Return a
float."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


# %% dropout-off
"""You train in evaluation mode, so dropout does nothing: with it, two passes over a batch differ while training."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.eval()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% source-padding-dropped
"""The padding of the source is read in training: src_padding never reaches the model."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% labels-fed-as-inputs
"""You give the decoder the labels, so at each place it sees the word that it is asked for. It reads the inputs."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, labels, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% padding-trained
"""Your loss counts the padded labels, so it depends on how much padding a batch has: pad_id goes unused."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(src, inputs, src_padding).flatten(0, 1), labels.flatten(), label_smoothing=0.1)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% fit-trains-nothing
"""fit computes losses and leaves the model as it was: nothing in it makes a step."""
def fit(model, batches, optimizer=None, pad_id=0, epochs=1, rate=1e-3):
    losses = []
    for _ in range(epochs):
        for src, src_padding, inputs, labels in batches:
            loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
            losses.append(loss.item())
    return losses


# %% fit-returns-in-the-loop
"""fit stops after the first batch: its return stands inside the loop."""
def fit(model, batches, optimizer=None, pad_id=0, epochs=1, rate=1e-3):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(epochs):
        for batch in batches:
            losses.append(train_step(model, batch, optimizer, pad_id))
            return losses


# %% padding-always-0
"""pad_id goes unused: you look for padding with a number of your own. Where another number stands for padding, your loss
counts it, and leaves out a word."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, 0)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


# %% old-gradients-kept
"""Gradients that were there before your step get into it: you clear them only after the step. Clear them before
backward."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


# %% clipped-one-by-one
"""You clip every parameter by itself, so that together they are longer than 1. There is one norm, that of all gradients
together, and one factor."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    for p in model.parameters():
        nn.utils.clip_grad_norm_([p], 1.0)
    optimizer.step()
    return loss.item()


# %% always-divided-by-the-norm
"""You divide the gradient by its norm also where that is below 1, which makes small gradients longer. Clipping leaves
them as they are."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
    for p in model.parameters():
        p.grad /= norm
    optimizer.step()
    return loss.item()


# %% first-group-clipped
"""You clip the parameters of the optimizer's first group alone. All parameters of the model have one norm together."""
def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    model.train()
    optimizer.zero_grad()
    loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    loss.backward()
    nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
    optimizer.step()
    return loss.item()


# %% fit-gives-running-means
"""The list that fit gives holds means over the steps so far. Each entry is the loss of its own step."""
def fit(model, batches, optimizer=None, pad_id=0, epochs=1, rate=1e-3):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=rate)
    losses = [train_step(model, batch, optimizer, pad_id) for _ in range(epochs) for batch in batches]
    return [sum(losses[: i + 1]) / (i + 1) for i in range(len(losses))]
