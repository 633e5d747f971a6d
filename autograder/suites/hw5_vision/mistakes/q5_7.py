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
