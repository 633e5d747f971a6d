# %% le-net
"""Kernels of size 5, tanh, average pooling, linear layers behind a flatten; the accuracies are tuples."""
from course_utils.data import mnist5k
from course_utils.hw5.vision import SMALL, LongEpoch
from course_utils.notebook.training import loader


class SmallCNN(nn.Module):
    def __init__(self, in_channels=1, num_classes=10):
        super().__init__()
        self.c1 = nn.Conv2d(in_channels, 8, 5, padding=2)
        self.c2 = nn.Conv2d(8, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 64)
        self.fc2 = nn.Linear(64, num_classes)

    def forward(self, images):
        x = F.avg_pool2d(torch.tanh(self.c1(images)), 2)  # [B, 8, 14, 14]
        x = F.avg_pool2d(torch.tanh(self.c2(x)), 2)  # [B, 16, 5, 5]
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def data_efficiency(sizes, n_steps=110):
    (images, labels, _), test = mnist5k()
    results = {"cnn": (), "vit": ()}
    for kind in results:
        for n in sizes:
            torch.manual_seed(1)
            model = SmallCNN() if kind == "cnn" else ViT(**SMALL)
            train_classifier(model, LongEpoch(loader(images[:n], labels[:n], batch_size=50), n_steps))
            results[kind] += (evaluate(model, [(test.images, test.labels)]),)
    return results


# %% strides-and-batch-norm
"""Strides instead of pooling, batch norm, the maximum over all places; accuracies by size inside."""
from course_utils.data import mnist5k
from course_utils.hw5.vision import SMALL, LongEpoch
from course_utils.notebook.training import loader


class SmallCNN(nn.Sequential):
    def __init__(self, channels=1, n_classes=10, width=24):
        super().__init__(
            nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(2 * width, n_classes),
        )


def data_efficiency(sizes, steps=120, seed=3):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=128, shuffle=False)
    accuracies = {"ViT": {}, "CNN": {}}
    for n in sizes:
        for name in accuracies:
            torch.manual_seed(seed)
            model = ViT(**SMALL, pool="map") if name == "ViT" else SmallCNN()
            few = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
            train_classifier(model, LongEpoch(few, steps))
            accuracies[name][n] = float(evaluate(model, held_out))
    return accuracies


# %% residual-and-gelu
"""A residual road around the second convolution, GELU, max pooling as modules; batches drawn here, size by size,
results as 0-dim tensors in a list."""
from course_utils.data import mnist5k
from course_utils.hw5.vision import SMALL


class SmallCNN(nn.Module):
    def __init__(self, n_classes=10, channels=1):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 24, 5, padding="same"), nn.GELU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(24, 24, 3, padding="same"), nn.GELU(), nn.Conv2d(24, 24, 3, padding="same"))
        self.last = nn.Conv2d(24, 48, 3, stride=2)
        self.classify = nn.Linear(48, n_classes)

    def forward(self, images):
        x = self.stem(images)
        x = F.gelu(self.last(F.gelu(x + self.body(x))))  # [B, 48, 6, 6]
        return self.classify(x.flatten(2).max(-1).values)


class _Drawn:
    """Batches drawn at random, the same number for every size."""

    def __init__(self, images, labels, steps):
        self.images, self.labels, self.steps = images, labels, steps

    def __len__(self):
        return self.steps

    def __iter__(self):
        generator = torch.Generator().manual_seed(11)
        for _ in range(self.steps):
            rows = torch.randint(len(self.labels), (64,), generator=generator)
            yield self.images[rows], self.labels[rows]


def data_efficiency(sizes, steps=100):
    train, test = mnist5k()
    found = {"vit": [], "cnn": []}
    for size in sizes:
        batches = _Drawn(train.images[:size], train.labels[:size], steps)
        torch.manual_seed(0)
        vit, cnn = ViT(**SMALL), SmallCNN()
        train_classifier(vit, batches)
        train_classifier(cnn, batches)
        for name, model in (("vit", vit), ("cnn", cnn)):
            accuracy = evaluate(model, [*zip(test.images.split(300), test.labels.split(300), strict=True)])
            found[name].append(torch.tensor(accuracy))
    return found
