"""Hidden checks of q5_7: SmallCNN by what it is and does, data_efficiency by what it finds."""

import pytest
import torch

from autograder.judge.faults import StudentRaised
from autograder.suites.devices import device_ready
from course_utils.bias_experiments import read_efficiency
from course_utils.checking import check, same, tensor
from course_utils.cnn_facts import cnn_facts, efficiency, efficiency_plan
from course_utils.vision import build

SIZES = [1500, 20]  # images to train on, the larger set first
STEPS = 80  # for a function that lets itself be told
LITTLE, MUCH, GAIN = 0.75, 0.2, 0.02  # see docs/thresholds.md


def _model(SmallCNN, in_box):
    model = in_box(build, SmallCNN)
    model.eval()
    return model


def _digits(rng, n=3):
    return torch.rand(n, 1, 28, 28, generator=rng)


def test_shape_of_the_logits(SmallCNN, in_box, rng):
    """Images [B, 1, 28, 28] give finite logits [B, 10], before any softmax, for any B."""
    model = _model(SmallCNN, in_box)
    for n in (3, 1, 7):
        logits = tensor(model(_digits(rng, n)), f"the logits of {n} digits", (n, 10), torch.float32)
        check(logits.isfinite().all(), "the logits are not finite")
    one = torch.ones(7)
    check(not torch.allclose(logits.sum(-1), one, atol=1e-4), "these are probabilities: logits come before the softmax")
    check(not torch.allclose(logits.exp().sum(-1), one, atol=1e-4), "these are log-probabilities: logits come before "
          "the "
          "softmax")
    check((logits - logits.mean(0)).abs().max() > 1e-7, "different images have the same logits")


def test_digits_stay_apart(SmallCNN, in_box, rng):
    """In evaluation mode the logits of an image do not depend on the others of its batch."""
    model, images = _model(SmallCNN, in_box), _digits(rng, 4)
    together = tensor(model(images), "the logits", (4, 10))
    same(model(images), together, "the logits of a second call", rtol=1e-4, atol=1e-5)
    for row in range(4):
        alone = model(images[row : row + 1])
        same(alone, together[row : row + 1], f"the logits of image {row} alone", rtol=1e-3, atol=1e-4)


@pytest.mark.weight(2)
def test_is_convolutional(SmallCNN, in_box):
    """It sees through at least two convolutions with a kernel larger than 1, one after the other."""
    kernels = [tuple(kernel) for kernel in in_box(cnn_facts, SmallCNN)["kernels"]]
    wide = [kernel for kernel in kernels if max(kernel) > 1]
    check(len(wide) >= 2, f"a call uses convolutions (nn.Conv2d) with the kernels {kernels}, and at least two larger "
          "than 1 "
          "are asked for")


def test_is_local(SmallCNN, in_box):
    """By the Jacobian, one place of the first feature map depends on a few neighbouring pixels only."""
    share = in_box(cnn_facts, SmallCNN)["reach"]
    check(share > 0, "no pixel moves the middle of the first feature map")
    check(share < 0.5, f"{share:.0%} of all pixels move one place of the first feature map: it is not local")


def test_moves_along(SmallCNN, in_box):
    """Shift the image, and the first feature map shifts along."""
    error = in_box(cnn_facts, SmallCNN)["shift"]
    check(error < 1e-3, "when the image is shifted the first feature map does not shift along: does the convolution "
          "see "
          "the image itself, [B, C, H, W]?")


def test_is_not_linear(SmallCNN, in_box):
    """It has a non-linearity: the logits of a sum of images are not the sum of theirs, up to a constant."""
    bend = in_box(cnn_facts, SmallCNN)["bend"]
    check(bend > 1e-4, "in evaluation mode f(a + b) = f(a) + f(b) - f(0) for any images a and b: without a "
          "non-linearity, such as a ReLU, between them all your layers are one linear map")


def test_every_parameter_takes_part(SmallCNN, in_box, rng):
    """A gradient reaches every parameter, and the image."""
    unused = in_box(cnn_facts, SmallCNN)["unused"]
    check(not unused, f"no gradient reaches `{unused[0] if unused else ''}`")
    images = _digits(rng).requires_grad_()
    logits = tensor(_model(SmallCNN, in_box)(images), "the logits", (3, 10))
    check(logits.requires_grad, "no gradient flows from the logits: do not detach")
    (logits * torch.randn(3, 10, generator=rng)).sum().backward()
    check(images.grad.isfinite().all() and images.grad.abs().max() > 0, "no gradient reaches the image")


@pytest.mark.weight(0.5)
def test_device(SmallCNN, in_box, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    try:
        device_ready(in_box, SmallCNN, call=(_digits(rng),))
    except StudentRaised as error:
        if "TypeError" not in error.type_names:  # a class that wants arguments cannot be tried here
            raise


def test_fresh_models(data_efficiency, in_box):
    """For each size data_efficiency trains new models: what one learned from another size does not count."""
    try:
        further = in_box(efficiency_plan, data_efficiency, [40, 20])["further"]
    except StudentRaised:
        return  # it cannot be watched with stand-ins for train_classifier and evaluate; the next case runs it
    check(not any(further), f"{sum(further)} of {len(further)} trainings go on from the weights that a training with "
          "another size has left: make a fresh ViT and a fresh SmallCNN for each size")


@pytest.mark.weight(4)
def test_efficiency(data_efficiency, in_box):
    """data_efficiency trains both models on as many images as it is told, and measures them on held-out ones."""
    found = in_box(efficiency, data_efficiency, SIZES, STEPS)
    try:
        accuracies = read_efficiency(found, SIZES)
    except (ValueError, TypeError) as error:
        check(False, f"data_efficiency({SIZES}): {error}")
    for name, values in accuracies.items():
        check(all(0 <= value <= 1 for value in values), f'the accuracies of "{name}" are '
              f'{[round(v, 4) for v in values]}; '
              "shares from 0 to 1 are asked for")
        much, little = values
        check(little <= LITTLE, f'after training on 20 digits "{name}" is said to be right on {little:.0%}: is it '
              'measured on '
              "held-out digits, trained on 20 only, and are the results in the order of the sizes?")
        check(much >= MUCH, f'after training on 1,500 digits "{name}" is right on {much:.0%} of the held-out ones, '
              'and guessing '
              "gives 10%: does it train at all?")
    gain = sum(much - little for much, little in accuracies.values()) / 2
    check(gain >= GAIN, f"with 1,500 digits to train on instead of 20 the accuracies rise by {gain:.1%} on average: "
          "is each "
          "model trained on as many images as the size says?")
