# %% plain-loops
"""Adam at a constant rate, nothing returned, no helpers; evaluation in inference mode, a 0-dim tensor as the result."""
def train_classifier(model, loader, n_epochs=1, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr)
    criterion = nn.CrossEntropyLoss()
    device = next(model.parameters()).device
    for _ in range(n_epochs):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            criterion(model(images.to(device)), labels.to(device)).backward()
            optimizer.step()


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    device = next(model.parameters()).device
    hits = [model(images.to(device)).argmax(dim=1).cpu() == labels.cpu() for images, labels in loader]
    return torch.cat(hits).double().mean()


# %% one-cycle-by-steps
"""Counts steps instead of epochs, torch's one-cycle schedule; the evaluation gives the mode back as it found it."""
from itertools import cycle, islice

from course_utils.notebook.training import autocast_for, progress, to_device


def train_classifier(model, loader, steps=None, max_rate=4e-3, weight_decay=0.01):
    steps = len(loader) if steps is None else steps
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), max_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_rate, total_steps=max(steps, 2), pct_start=0.2)
    model.train()
    bar = progress(islice(cycle(loader), steps), steps, "training")
    for batch in bar:
        images, labels = to_device(batch, device)
        with autocast_for(device):
            logits = model(images)
        loss = F.nll_loss(F.log_softmax(logits.float(), dim=-1), labels.long())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        bar.show(loss=loss.item(), rate=schedule.get_last_lr()[0])
    return model


def evaluate(model, loader):
    was_training = model.training
    model.train(False)
    wrong, total = 0, 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = to_device((images, labels), next(model.parameters()).device)
            wrong += int((torch.max(model(images), dim=-1).indices != labels).sum())
            total += labels.numel()
    model.train(was_training)
    return 1.0 - wrong / total


# %% sgd-with-momentum
"""Nesterov momentum with warm-up and clipping, the last loss is returned; accuracy weighted by batch sizes."""
def train_classifier(model, loader, epochs=1, rate=0.1, warmup=30):
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(weights, rate, momentum=0.9, nesterov=True)
    step, loss = 0, torch.zeros(())
    for _ in range(epochs):
        for images, labels in loader:
            model.train()
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, step / warmup)
            images, labels = images.to(weights[0].device), labels.to(weights[0].device)
            model.zero_grad()
            logits = model(images)
            loss = (logits.logsumexp(-1) - logits.gather(-1, labels[:, None]).squeeze(-1)).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
    return float(loss.detach())


def evaluate(model, loader):
    model.eval()
    parts = []
    for images, labels in loader:
        with torch.no_grad():
            logits = model(images.to(next(model.parameters()).device)).cpu()
        parts.append(((logits.argmax(-1) == labels.cpu()).double().mean().item(), len(labels)))
    return sum(share * n for share, n in parts) / sum(n for _, n in parts)


# %% warm-up-and-cosine-by-lambda
"""A LambdaLR with warm-up and cosine, two groups of parameters, a dict of curves as the result."""
from course_utils.notebook.training import autocast_for, progress, to_device


def train_classifier(model, loader, epochs=1, rate=2e-3, decay=0.05, verbose=True):
    device = next(iter(model.parameters())).device
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=rate, betas=(0.9, 0.95))
    total = max(1, epochs * len(loader))
    warm = max(1, total // 20)

    def factor(step):
        return min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / total)) + 0.01)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    curves = {"loss": [], "rate": []}
    for epoch in range(epochs):
        model.train()
        for batch in progress(loader, len(loader), f"epoch {epoch}") if verbose else loader:
            images, labels = to_device(batch, device)
            optimizer.zero_grad()
            with autocast_for(device):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            curves["rate"].append(optimizer.param_groups[0]["lr"])
            schedule.step()
            curves["loss"].append(loss.item())
    return curves


def evaluate(model, loader):
    device = next(model.parameters()).device
    answers, truth = [], []
    model.eval()
    with torch.no_grad():
        for batch in loader:
            images, labels = to_device(batch, device)
            answers += model(images).topk(1, dim=-1).indices[:, 0].tolist()
            truth += labels.tolist()
    return sum(a == t for a, t in zip(answers, truth, strict=True)) / len(truth)


# %% gradients-as-values
"""Each batch in parts of 32 images, gradients asked for as values and never stored, momentum by hand."""
def train_classifier(model, loader, epochs=1, rate=0.05):
    parameters = [p for p in model.parameters() if p.requires_grad]
    device, speed = parameters[0].device, [torch.zeros_like(p) for p in parameters]
    total, done = epochs * len(loader), 0
    model.train()
    for _ in range(epochs):
        for images, labels in loader:
            slopes = [torch.zeros_like(p) for p in parameters]
            for x, y in zip(images.to(device).split(32), labels.to(device).split(32), strict=True):
                loss = F.cross_entropy(model(x), y, reduction="sum") / len(labels)
                for slope, part in zip(slopes, torch.autograd.grad(loss, parameters), strict=True):
                    slope += part
            longest = torch.stack([slope.norm() for slope in slopes]).norm().clamp(min=1.0)
            done += 1
            now = rate * min(1.0, 10 * done / total) * (1 + math.cos(math.pi * (done - 1) / total)) / 2
            with torch.no_grad():
                for p, v, slope in zip(parameters, speed, slopes, strict=True):
                    v.mul_(0.9).add_(slope / longest)
                    p -= now * v


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    right = torch.zeros((), dtype=torch.long)
    count = 0
    with torch.inference_mode():
        for images, labels in loader:
            right += (model(images.to(device)).argmax(-1).cpu() == labels.cpu()).sum()
            count += len(labels)
    return right.item() / count
