# %% fully-connected price=0.4
"""There is no convolution in your SmallCNN: it flattens the image and takes linear layers. Each of its units sees all
pixels and none shares its weights with another place, so it knows nothing that a CNN knows."""
replace("self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)",
        "self.fc1, self.fc2 = nn.Linear(channels * 28 * 28, 64), nn.Linear(64, 32)")
replace("self.conv2 = nn.Conv2d(16, 32, 3, padding=1)", "")
replace("self.conv3 = nn.Conv2d(32, 32, 3, padding=1)", "")
replace("x = F.max_pool2d(F.relu(self.conv1(images)), 2)",
        "return self.head(F.relu(self.fc2(F.relu(self.fc1(images.flatten(1))))))")

# %% kernels-of-one-pixel price=0.3
"""Your kernels have one pixel: nothing in the network compares neighbours, and features reach no farther than the
pixels under one pooling window. Take kernels of size 3 or more."""
replace("nn.Conv2d(channels, 16, 3, padding=1)", "nn.Conv2d(channels, 16, 1)")
replace("nn.Conv2d(16, 32, 3, padding=1)", "nn.Conv2d(16, 32, 1)")
replace("nn.Conv2d(32, 32, 3, padding=1)", "nn.Conv2d(32, 32, 1)")

# %% no-non-linearity price=0.2
"""Your convolutions follow each other without anything between them: two linear maps are one linear map, and the
second layer adds nothing. Put a ReLU after each."""
replace("F.max_pool2d(F.relu(self.conv1(images)), 2)", "F.avg_pool2d(self.conv1(images), 2)")
replace("F.max_pool2d(F.relu(self.conv2(x)), 2)", "F.avg_pool2d(self.conv2(x), 2)")
replace("F.relu(self.conv3(x))", "self.conv3(x)")
replace("x.amax((2, 3))", "x.mean((2, 3))")

# %% too-many-parameters price=0.1
"""Your network is larger than allowed, and nearly all of it is the first linear layer behind the flatten: 14 by 14 places
times the channels times the hidden width. Pool more, or take a maximum or mean over the places."""
replace("nn.Linear(32, n_classes)",
        "nn.Sequential(nn.Flatten(), nn.Linear(32 * 14 * 14, 128), nn.ReLU(), nn.Linear(128, n_classes))")
replace("F.max_pool2d(F.relu(self.conv2(x)), 2)", "F.relu(self.conv2(x))")
replace("x.amax((2, 3))", "x")

# %% softmax-in-the-cnn price=0.15
"""Your rows sum to 1: the network ends with a softmax. The loss has one already; give the logits."""
replace("self.head(x.amax((2, 3)))", "self.head(x.amax((2, 3))).softmax(-1)")

# %% arguments-without-defaults price=0.15
"""`SmallCNN()` fails: it must be possible to make one for our digits without arguments. Give them defaults."""
replace("channels: int = 1, n_classes: int = 10", "channels: int, n_classes: int")

# %% measured-on-the-training-images price=0.35
"""With very few images your accuracies are nearly 1: you measure on the images that the model was trained on, and those
it knows by heart. Measure on the held-out ones."""
replace("evaluate(model, held_out)", "evaluate(model, batches)")

# %% all-images-every-time price=0.35
"""Your accuracies hardly depend on the size: the loader has all training images, and only the number of results follows
`sizes`. Give it the first n images."""
replace("loader(train.images[:n], train.labels[:n],", "loader(train.images, train.labels,")

# %% one-model-trained-further price=0.3
"""A small set that comes after a large one is as good as the large one: you go on training the same two models. What they
learned before counts then; make fresh ones for each size."""
replace("for n in sizes:", """models = {"vit": ViT(**SMALL), "cnn": SmallCNN()}
    for n in sizes:""")
replace("model = make()", "model = models[name]")

# %% neither-pooling-nor-stride price=0.1
"""All your maps are as large as the image, and all of the last one goes into the linear layer. Pool between the
convolutions, or let them take larger steps."""
replace("nn.Conv2d(channels, 16, 3, padding=1)", "nn.Conv2d(channels, 8, 3, padding=1)")
replace("nn.Conv2d(16, 32, 3, padding=1)", "nn.Conv2d(8, 8, 3, padding=1)")
replace("nn.Conv2d(32, 32, 3, padding=1)", "nn.Conv2d(8, 8, 3, padding=1)")
replace("nn.Linear(32, n_classes)", "nn.Linear(8 * 28 * 28, n_classes)")
replace("F.max_pool2d(F.relu(self.conv1(images)), 2)", "F.relu(self.conv1(images))")
replace("F.max_pool2d(F.relu(self.conv2(x)), 2)", "F.relu(self.conv2(x))")
replace("x.amax((2, 3))", "x.flatten(1)")

# %% convolutions-without-effect price=0.3
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

# %% numbers-made-up price=1
"""Nothing is trained and nothing measured: the accuracies come from a formula. Train both models for each size, and
return what `evaluate` gives."""
def data_efficiency(sizes, steps=120):
    return {"vit": [min(0.9, 0.2 + n / 3000) for n in sizes], "cnn": [min(0.9, 0.3 + n / 3000) for n in sizes]}

# %% accuracies-under-the-wrong-names price=0.15
"""The accuracies of the CNN stand under "vit", and those of the ViT under "cnn"."""
replace('("vit", lambda: ViT(**SMALL)), ("cnn", SmallCNN)', '("cnn", lambda: ViT(**SMALL)), ("vit", SmallCNN)')

# %% a-vit-in-the-cnns-place price=0.4
"""Both columns are a ViT's: there is no SmallCNN in your experiment."""
replace('("cnn", SmallCNN)', '("cnn", lambda: ViT(**SMALL))')

# %% sizes-sorted price=0.15
"""Your accuracies stand in the order of growing sizes. They are asked for in the order of `sizes`, whatever it is."""
replace("for n in sizes:", "for n in sorted(sizes):")

# %% more-steps-for-the-cnn price=0.25
"""Your CNN is trained for more steps than your ViT, so the comparison is not of models. Give both the same number."""
replace("LongEpoch(batches, steps)", 'LongEpoch(batches, steps if name == "vit" else 2 * steps)')

# %% steps-grow-with-the-set price=0.25
"""Small sets get fewer steps than large ones, so their models are worse for two reasons. Take the same number of steps at
every size."""
replace("LongEpoch(batches, steps)", "LongEpoch(batches, max(1, steps * n // max(sizes)))")

# %% last-images price=0.15
"""You train on the last n training digits. Asked for are the first n, so that everyone trains on the same ones."""
replace("loader(train.images[:n], train.labels[:n],", "loader(train.images[-n:], train.labels[-n:],")

# %% measured-on-other-training-images price=0.3
"""You measure on the first thousand training digits, and with a large n the model was trained on them. Take the held-out
ones."""
replace("loader(test.images, test.labels,", "loader(train.images[:1000], train.labels[:1000],")
