# %% fully-connected
"""There is no convolution in your SmallCNN: it flattens the image and takes linear layers. Each of its units sees all
pixels and none shares its weights with another place, so it knows nothing that a CNN knows."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.fc1 = nn.Linear(channels * 28 * 28, 64)
        self.fc2 = nn.Linear(64, 64)
        self.head = nn.Linear(64, n_classes)

    def forward(self, images):
        x = F.relu(self.fc1(images.flatten(1)))
        return self.head(F.relu(self.fc2(x)))


# %% kernels-of-one-pixel
"""Your kernels have one pixel: nothing in the network compares neighbours, and features reach no farther than the
pixels under one pooling window. Take kernels of size 3 or more."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 1)
        self.conv2 = nn.Conv2d(16, 32, 1)
        self.head = nn.Linear(32, n_classes)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(x.amax((2, 3)))


# %% no-non-linearity
"""Your convolutions follow each other without anything between them: two linear maps are one linear map, and the
second layer adds nothing. Put a ReLU after each."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.head = nn.Linear(32, n_classes)

    def forward(self, images):
        x = F.avg_pool2d(self.conv1(images), 2)
        x = F.avg_pool2d(self.conv2(x), 2)
        return self.head(x.mean((2, 3)))


# %% too-many-parameters
"""Your network is larger than allowed, and nearly all of it is the first linear layer behind the flatten: 14 by 14 places
times the channels times the hidden width. Pool more, or take a maximum or mean over the places."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 14 * 14, 128)
        self.head = nn.Linear(128, n_classes)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.relu(self.conv2(x))
        return self.head(F.relu(self.fc(x.flatten(1))))


# %% softmax-in-the-cnn
"""Your rows sum to 1: the network ends with a softmax. The loss has one already; give the logits."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.head = nn.Linear(32, n_classes)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(x.amax((2, 3))).softmax(-1)


# %% arguments-without-defaults
"""`SmallCNN()` fails: it must be possible to make one for our digits without arguments. Give them defaults."""
class SmallCNN(nn.Module):
    def __init__(self, channels, n_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.head = nn.Linear(32, n_classes)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(x.amax((2, 3)))


# %% measured-on-the-training-images
"""With very few images your accuracies are nearly 1: you measure on the images that the model was trained on, and those
it knows by heart. Measure on the held-out ones."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, _ = mnist5k()
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, batches))
    return found


# %% all-images-every-time
"""Your accuracies hardly depend on the size: the loader has all training images, and only the number of results follows
`sizes`. Give it the first n images."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for _ in sizes:
        batches = loader(train.images, train.labels, batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% one-model-trained-further
"""A small set that comes after a large one is as good as the large one: you go on training the same two models. What they
learned before counts then; make fresh ones for each size."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    torch.manual_seed(seed)
    models = {"vit": ViT(**SMALL), "cnn": SmallCNN()}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, model in models.items():
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% neither-pooling-nor-stride
"""All your maps are as large as the image, and all of the last one goes into the linear layer. Pool between the
convolutions, or let them take larger steps."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8 * 28 * 28, n_classes)

    def forward(self, images):
        x = F.relu(self.conv2(F.relu(self.conv1(images))))
        return self.head(x.flatten(1))


# %% convolutions-without-effect
"""Your convolutions are computed and do not count: the logits come from the pixels by linear layers. Let the logits be
read from what the convolutions give."""
class SmallCNN(nn.Module):
    def __init__(self, channels=1, n_classes=10):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, 4, 3, stride=2), nn.Conv2d(4, 4, 3, stride=2)
        self.fc1, self.fc2 = nn.Linear(channels * 28 * 28, 64), nn.Linear(64, n_classes)

    def forward(self, images):
        shown = self.conv2(F.relu(self.conv1(images)))
        return self.fc2(F.relu(self.fc1(images.flatten(1)))) + 0 * shown.mean()


# %% numbers-made-up
"""Nothing is trained and nothing measured: the accuracies come from a formula. Train both models for each size, and
return what `evaluate` gives."""
def data_efficiency(sizes, steps=120):
    return {"vit": [min(0.9, 0.2 + n / 3000) for n in sizes], "cnn": [min(0.9, 0.3 + n / 3000) for n in sizes]}


# %% accuracies-under-the-wrong-names
"""The accuracies of the CNN stand under "vit", and those of the ViT under "cnn"."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("cnn", lambda: ViT(**SMALL)), ("vit", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% a-vit-in-the-cnns-place
"""Both columns are a ViT's: there is no SmallCNN in your experiment."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", lambda: ViT(**SMALL))):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% sizes-sorted
"""Your accuracies stand in the order of growing sizes. They are asked for in the order of `sizes`, whatever it is."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sorted(sizes):
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% more-steps-for-the-cnn
"""Your CNN is trained for more steps than your ViT, so the comparison is not of models. Give both the same number."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps if name == "vit" else 2 * steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% steps-grow-with-the-set
"""Small sets get fewer steps than large ones, so their models are worse for two reasons. Take the same number of steps at
every size."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, max(1, steps * n // max(sizes))))
            found[name].append(evaluate(model, held_out))
    return found


# %% last-images
"""You train on the last n training digits. Asked for are the first n, so that everyone trains on the same ones."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, test = mnist5k()
    held_out = loader(test.images, test.labels, batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[-n:], train.labels[-n:], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found


# %% measured-on-other-training-images
"""You measure on the first thousand training digits, and with a large n the model was trained on them. Take the held-out
ones."""
from course_utils.data import mnist5k
from course_utils.training import loader
from course_utils.vision import SMALL, LongEpoch


def data_efficiency(sizes, steps=120, seed=0):
    train, _ = mnist5k()
    held_out = loader(train.images[:1000], train.labels[:1000], batch_size=250, shuffle=False)
    found = {"vit": [], "cnn": []}
    for n in sizes:
        batches = loader(train.images[:n], train.labels[:n], batch_size=64, seed=seed)
        for name, make in (("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)):
            torch.manual_seed(seed)
            model = make()
            train_classifier(model, LongEpoch(batches, steps))
            found[name].append(evaluate(model, held_out))
    return found
