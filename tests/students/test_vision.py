"""What homework 5 is graded with: fair calls, repeatable runs, checkpoints that cannot do harm."""

import math

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from course_utils import plots
from course_utils.hw5 import bias_experiments, vision
from course_utils.hw5.training_watch import watch_training
from course_utils.notebook.checkpoints import CheckpointError, save_checkpoint
from course_utils.notebook.training import loader


class TinyViT(nn.Module):
    """The names of a ViT, and next to nothing inside."""

    def __init__(self, pool="map", n_classes=10, image_size=28, **sizes):
        super().__init__()
        self.pool = pool
        self.head = nn.Linear(image_size * image_size, n_classes)
        if pool == "cls":
            self.cls = nn.Parameter(torch.zeros(1, 1, 3))
        if pool == "map":
            self.map_head = nn.Module()
            self.map_head.probe = nn.Parameter(torch.zeros(1, 1, 3))

    def forward(self, images):
        return self.head(images.flatten(1))


def train_plainly(model, loader, epochs=1, rate=0.01):
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


def accuracy(model, loader):
    model.eval()
    pairs = [(model(images).argmax(-1), labels) for images, labels in loader]
    return torch.cat([a == b for a, b in pairs]).double().mean()


def test_arguments_are_offered_by_name_and_under_other_names_and_never_forced():
    def counts(model, loader, num_epochs=7):
        return num_epochs

    def alone(model, loader):
        return "alone"

    assert vision.call(counts, None, None, epochs=1, steps=300) == 1
    assert vision.call(alone, None, None, epochs=1, steps=300) == "alone"


def test_a_long_epoch_has_exactly_its_steps_and_is_the_same_every_time():
    images, labels = torch.arange(10.0)[:, None, None, None], torch.arange(10)
    epoch = vision.LongEpoch(loader(images, labels, batch_size=4), 7)
    first, second = ([batch[1] for batch in epoch] for _ in range(2))
    assert len(epoch) == len(first) == 7
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(torch.cat(first[:3]).sort().values, labels)


def test_a_run_goes_on_with_the_batches_that_it_has_not_seen():
    images, labels = torch.zeros(10, 1, 2, 2), torch.arange(10)
    ours, plain = loader(images, labels, batch_size=4), [(images[:5], labels[:5]), (images[5:], labels[5:])]
    for batches in (ours, plain):
        whole = [batch[1] for batch in vision.steps_from(batches, 0, 7)]
        rest = [batch[1] for batch in vision.steps_from(batches, 3, 7)]
        assert len(whole) == 7
        assert all(torch.equal(a, b) for a, b in zip(whole[3:], rest, strict=True))
        assert [len(vision.steps_from(batches, first, 7)) for first in (0, 3, 7, 9)] == [7, 4, 0, 0]


def test_shifted_images_are_the_same_images_elsewhere_and_the_same_every_time():
    images = torch.zeros(6, 2, 9, 9)
    images[:, :, 4, 4] = torch.arange(1.0, 7)[:, None]
    shifted = [vision.Shifted(loader(images, torch.arange(6), batch_size=4), 2) for _ in range(2)]
    one, two = ([batch for _ in range(3) for batch in moved] for moved in shifted)
    assert len(shifted[0]) == 2 and len(one) == 6
    assert all(torch.equal(a, b) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True))
    rest = [*vision.steps_from(shifted[0], 3, 6)]
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one[3:], rest, strict=True))
    places = set()
    for moved, labels in one:
        assert torch.equal(moved.amax((2, 3)), images[labels].amax((2, 3))) and moved.shape[1:] == (2, 9, 9)
        places |= {tuple(place) for place in moved[:, 0].nonzero()[:, 1:].tolist()}
    assert len(places) > 8 and all(2 <= i <= 6 for place in places for i in place)


def test_the_small_run_depends_on_its_seed_alone_and_learns():
    torch.manual_seed(5)
    one = vision.train_small(TinyViT, train_plainly, seed=1, steps=30, pool="gap")
    torch.manual_seed(6)
    two = vision.train_small(TinyViT, train_plainly, seed=1, steps=30, pool="gap")
    other = vision.train_small(TinyViT, train_plainly, seed=2, steps=30, pool="gap")
    assert torch.equal(one.head.weight, two.head.weight) and not one.training
    assert not torch.equal(one.head.weight, other.head.weight)
    _, test = vision.mnist5k()
    assert accuracy(one, [(test.images, test.labels)]) > 0.5


def test_a_model_is_built_whatever_it_calls_its_parameters():
    class Odd(nn.Module):
        def __init__(self, in_channels, num_classes=3):
            super().__init__()
            self.sizes = (in_channels, num_classes)

    assert vision.build(Odd).sizes == (1, 10)


def test_training_is_seen_from_outside():
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.rand(50, 1, 4, 4, generator=generator), torch.arange(50) % 5
    seen = watch_training(train_plainly, images, labels, batch_size=16, epochs=2)
    assert seen["images"] == 100 and seen["modes"] == [True] * 8
    after = F.linear(images.flatten(1), seen["weight"], seen["bias"])
    assert F.cross_entropy(after, labels) < math.log(5)  # what the untrained model, all zeros, has


def test_a_marked_model_has_the_accuracy_that_was_asked_for():
    answers, labels = torch.tensor([3, 1, 4, 1, 5, 9, 2]), torch.tensor([3, 1, 4, 1, 5, 0, 0])
    found = vision.evaluate_marked(accuracy, answers, labels, batch_size=3)
    assert float(found) == pytest.approx(5 / 7)


@pytest.mark.parametrize("pool", vision.POOLS)
def test_a_checkpoint_brings_its_pooling_along(tmp_path, pool):
    model = TinyViT(pool)
    path = tmp_path / vision.CHECKPOINT
    save_checkpoint(path, model, torch.optim.AdamW(model.parameters()), step=3)
    loaded = vision.load_model(TinyViT, path)
    assert loaded.pool == pool and torch.equal(loaded.head.weight, model.head.weight) and not loaded.training


def test_what_cannot_be_loaded_is_refused_with_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / vision.CHECKPOINT
    with pytest.raises(CheckpointError, match="there is no hw5_vision.safetensors"):
        vision.load_model(TinyViT, path)
    path.write_bytes(b"rubbish that is no safetensors file")
    with pytest.raises(CheckpointError, match="safetensors"):
        vision.load_model(TinyViT, path)
    save_file({"head.weight": torch.zeros(10, 5), "head.bias": torch.zeros(10)}, path)
    with pytest.raises(CheckpointError, match=r"head\.weight is \[10, 5\]"):
        vision.load_model(TinyViT, path)
    monkeypatch.setattr(vision, "LARGEST", 10)
    with pytest.raises(CheckpointError, match="more than the"):
        vision.load_model(TinyViT, path)


@pytest.mark.parametrize(
    "found",
    [
        {"vit": [0.1, 0.2], "cnn": [0.3, 0.4]},
        {"ViT": (0.1, torch.tensor(0.2)), "SmallCNN": torch.tensor([0.3, 0.4], dtype=torch.float64)},
        {"vit": {5: 0.1, 9: 0.2}, "cnn": {5: 0.3, 9: 0.4}},
        {5: {"vit": 0.1, "cnn": 0.3}, 9: {"vit": 0.2, "cnn": 0.4}},
        {"sizes": [5, 9], "vit": [0.1, 0.2], "cnn": [0.3, 0.4]},
    ],
)
def test_accuracies_over_sizes_are_read_in_every_sensible_form(found):
    read = bias_experiments.read_efficiency(found, [5, 9])
    assert read["vit"] == pytest.approx([0.1, 0.2]) and read["cnn"] == pytest.approx([0.3, 0.4])


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([0.1], "returns a dict"),
        ({"vit": [0.1, 0.2]}, '"vit" and "cnn"'),
        ({"vit": [0.1], "cnn": [0.3, 0.4]}, "vit has 1"),
        ({"vit": {5: 0.1}, "cnn": {5: 0.1, 9: 0.2}}, "lack a size"),
        ({"vit": 0.5, "cnn": 0.4}, "vit has no list"),
    ],
)
def test_what_says_nothing_about_sizes_is_refused_with_a_sentence(found, sentence):
    with pytest.raises(ValueError, match=sentence):
        bias_experiments.read_efficiency(found, [5, 9])


def test_a_convolution_reaches_as_far_as_its_kernel():
    conv = nn.Conv2d(1, 4, 3, padding=1)
    model = nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 64, 3))
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(bias_experiments.last_feature_map(model, images), conv(images))
    assert not conv._forward_hooks
    seen = bias_experiments.reach(lambda x: bias_experiments.last_feature_map(model, x), images, 4, 3) > 0
    assert seen[3:6, 2:5].all() and seen.sum() == 9
    with pytest.raises(ValueError, match="Conv2d"):
        bias_experiments.last_feature_map(nn.Linear(3, 3), torch.zeros(1, 3))


def test_a_shift_moves_down_and_right():
    images = torch.zeros(1, 1, 4, 4)
    images[0, 0, 1, 1] = 1
    assert bias_experiments.shift(images, 1, 2)[0, 0, 2, 3] == 1


def test_images_are_drawn_and_never_without_alt_text():
    panels = {"grey": torch.rand(8, 8), "one": torch.rand(1, 8, 8), "colour": torch.rand(3, 8, 8)}
    over = {name: torch.rand(4, 4) for name in panels}
    assert plots.images(panels, alt="three", patch=2, over=over, columns=2).png.startswith(b"\x89PNG")
    assert plots.images({"a": -torch.ones(2, 2)}, alt="one", vmin=None, vmax=None).png.startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="alt text"):
        plots.images(panels, alt=" ")
