# %% mean-of-batch-accuracies
"""You average the accuracies of the batches, so an image in a small last batch counts more than the others. Add up
right answers and images, and divide once at the end."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    accuracies = []
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            accuracies.append((answers == labels).float().mean().item())
    return sum(accuracies) / len(accuracies)


# %% percent
"""Your accuracy goes up to 100. The contract's is a share, from 0 to 1."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right = count = 0
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            right += (answers == labels).sum().item()
            count += len(labels)
    return 100 * right / count


# %% number-of-right-answers
"""You return how many answers are right. Divide by the number of images."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            right += (answers == labels).sum().item()
    return right


# %% evaluated-in-training-mode
"""You measure the model in training mode, the mode in which training left it: with dropout or batch norm the answers
are other ones. Switch to evaluation mode first."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    right = count = 0
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            right += (answers == labels).sum().item()
            count += len(labels)
    return right / count


# %% gradients-zeroed-before-the-step
"""Your model does not learn at all: the gradients are zeroed between `backward` and `step`, so the optimizer sees
nothing but zeros. Zero them before the backward pass."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% never-in-training-mode
"""A model that arrives in evaluation mode is trained in evaluation mode: no dropout, and batch norm learns no
statistics. Call `train()` yourself, whatever the mode it came in."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% one-batch-per-epoch
"""Your model has seen the first batch of each epoch and nothing else: `next(iter(loader))` begins anew each time. Go
through the whole loader."""
from course_utils.training import autocast_for, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        images, labels = to_device(next(iter(loader)), device)
        with autocast_for(device):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% parameters-without-defaults
"""`train_classifier(model, loader)` fails: your further parameters have no defaults. Whoever calls it knows the model
and the loader only."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs, rate):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% gradients-never-zeroed
"""The loss falls a little, then swings and grows: gradients of all steps pile up, because nothing zeroes them. Each
step uses the gradient of its own batch."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% softmax-before-the-loss
"""Your loss cannot go below 1.46 with ten classes and the model learns slowly: you give probabilities to a
cross-entropy that takes a softmax itself. Give it the logits."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(torch.softmax(model(images), -1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% squared-error
"""Your loss is a squared error between the logits and one-hot labels. The contract's is the cross-entropy of the logits
with the labels."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.mse_loss(model(images), F.one_hot(labels, 10).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% one-class-ignored
"""Images of class 0 teach your model nothing: `ignore_index=0` takes them out of the loss. Here 0 is a class like any
other."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels, ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% one-epoch-whatever-is-asked
"""You go through the loader once, whatever `epochs` says. Put the loop over the batches inside a loop over the epochs."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(1):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% evaluation-mode-from-the-second-epoch
"""Your first steps are in training mode and later ones are not: something calls `eval()` on the way. Call `train()` again
after it, or in every step."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
        model.eval()
    return losses


# %% small-last-batch-left-out
"""Batches that are smaller than the first are skipped, so some images are never trained on. Use every batch."""
from course_utils.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=1e-3):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        for batch in (bar := progress(loader)):
            images, labels = to_device(batch, device)
            if len(labels) < len(next(iter(loader))[1]):
                continue
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            bar.show(loss=losses[-1], rate=rate)
    return losses


# %% every-batch-counted-as-full
"""You divide by the number of batches times the size of the first one, and the last batch may be smaller. Add up the
images that were there."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right, sizes = 0, []
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            right += (answers == labels).sum().item()
            sizes.append(len(labels))
    return right / (len(sizes) * sizes[0])


# %% evaluated-with-gradients
"""Your evaluation keeps track of gradients that nobody asks for, which costs memory and time. Ask the model under
`torch.no_grad()`."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right = count = 0
    with torch.enable_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            right += (answers == labels).sum().item()
            count += len(labels)
    return right / count


# %% trained-while-evaluating
"""Measuring changes the model: you train it on the held-out images first, and then it has seen them. Leave the weights as
they are."""
from course_utils.training import autocast_for, to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    train_classifier(model, list(loader))
    model.eval()
    right = count = 0
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            with autocast_for(device):
                answers = model(images).argmax(-1)
            right += (answers == labels).sum().item()
            count += len(labels)
    return right / count


# %% last-layer-only
"""Only the last layer learns: the optimizer has been given a part of the parameters. Give it model.parameters()."""
from course_utils.training import autocast_for, to_device


def train_classifier(model, loader, epochs=1, rate=RATE):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW([*model.parameters()][-2:], lr=rate, weight_decay=0.05)
    total = epochs * len(loader)
    model.train()
    for step, batch in enumerate(steps_from(loader, 0, total), 1):
        images, labels = to_device(batch, device)
        with autocast_for(device):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        done = step / total
        optimizer.param_groups[0]["lr"] = rate * min(10 * done, 1) * (1 + math.cos(math.pi * done)) / 2
        optimizer.step()


# %% first-batch-again-and-again
"""Every step sees the same batch, the loader's first. Take a new one for every step."""
from course_utils.training import autocast_for, to_device


def train_classifier(model, loader, epochs=1, rate=RATE):
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.05)
    first = next(iter(loader))
    total = epochs * len(loader)
    model.train()
    for step in range(1, total + 1):
        images, labels = to_device(first, device)
        with autocast_for(device):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        done = step / total
        optimizer.param_groups[0]["lr"] = rate * min(10 * done, 1) * (1 + math.cos(math.pi * done)) / 2
        optimizer.step()


# %% gradients-off-after-evaluation
"""`torch.set_grad_enabled(False)` holds until it is undone, and all later training fails. Use `with torch.no_grad():`."""
from course_utils.training import to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right = count = 0
    torch.set_grad_enabled(False)
    for batch in loader:
        images, labels = to_device(batch, device)
        right += (model(images).argmax(-1) == labels).sum().item()
        count += len(labels)
    return right / count


# %% frozen-by-evaluation
"""After your evaluate no parameter wants a gradient any more, and training cannot go on. `torch.no_grad()` is enough."""
from course_utils.training import to_device


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right = count = 0
    model.requires_grad_(False)
    for batch in loader:
        images, labels = to_device(batch, device)
        right += (model(images).argmax(-1) == labels).sum().item()
        count += len(labels)
    return right / count
