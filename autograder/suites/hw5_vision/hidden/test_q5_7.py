"""Hidden checks of q5_7: SmallCNN by what it is and does, data_efficiency by what it finds."""

from functools import cache

import pytest
import torch
import torch.nn.functional as F

from autograder.in_box.hw5 import watched_efficiency
from autograder.judge.faults import StudentRaised
from autograder.suites.devices import device_ready
from autograder.suites.hw5_vision.signs import FIRST, FIRST_CLASSES, HELD_OUT, TRAIN, draw_signs
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.data import mnist5k
from course_utils.hw5.bias_experiments import read_efficiency
from course_utils.hw5.cnn_facts import cnn_facts
from course_utils.hw5.efficiency_runs import efficiency_plan
from course_utils.hw5.vision import NAMES as SAME_MEANING
from course_utils.hw5.vision import SMALL, build

SIZES = [TRAIN, FIRST]  # images to train on, the larger set first
STEPS = 36  # for a function that lets itself be told
LITTLE, MUCH, GAIN, LOSS = 0.55, 0.2, 0.02, 2.295  # see docs/thresholds.md
ROOM = 0.02  # between an accuracy that is told and the one that is counted here
MODELS = 12  # of a run whose weights are looked at
DRAWS = 3  # of signs, until the two kinds of models differ
LUCK = 0.15  # between accuracies on different images of the same kind
NAMES = {"vit": "ViT", "cnn": "SmallCNN"}
COUNTS = {*SAME_MEANING["epochs"], *SAME_MEANING["steps"]}


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
    check(share is not None, "no convolution with a kernel larger than 1 is used, and one pixel has no neighbours")
    check(share > 0, "no pixel moves the middle of the first feature map")
    check(share < 0.5, f"{share:.0%} of all pixels move one place of the first feature map: it is not local")


def test_moves_along(SmallCNN, in_box):
    """Shift the image, and the first feature map shifts along."""
    error = in_box(cnn_facts, SmallCNN)["shift"]
    check(error is not None, "no convolution with a kernel larger than 1 is used, so no map can shift along")
    check(error < 1e-3, "when the image is shifted the first feature map does not shift along: does the convolution "
          "see "
          "the image itself, [B, C, H, W]?")


def test_is_not_linear(SmallCNN, in_box):
    """It has a non-linearity: the logits of a sum of images are not the sum of theirs, up to a constant."""
    bend = in_box(cnn_facts, SmallCNN)["bend"]
    check(bend > 1e-4, "in evaluation mode f(a + b) = f(a) + f(b) - f(0) for any images a and b: without a "
          "non-linearity, such as a ReLU, between them all your layers are one linear map")


def test_pools(SmallCNN, in_box):
    """Some pooling or stride makes the maps smaller on their way to the logits."""
    check(in_box(cnn_facts, SmallCNN)["pools"], "no pooling and no stride: no convolution has a smaller map than the "
          "one before it, and all of the last one goes into the linear layer")


def test_convolutions_count(SmallCNN, in_box, rng):
    """The logits depend on the filters: their gradient at every kernel is not zero."""
    model = _model(SmallCNN, in_box)
    shapes = model.parameter_shapes()
    kernels = [name for name, shape in shapes.items() if len(shape) == 4 and max(shape[2:]) > 1]
    check(kernels, f"no parameter is a set of filters with a kernel larger than 1: the shapes are {[*shapes.values()]}")
    state = model.state_dict()
    moved = {name: state[name] + 0.05 * torch.randn(shape, generator=rng) for name, shape in shapes.items()}
    model.load_state_dict({**state, **moved})  # a start from zero somewhere is no fault
    model.zero_grad()
    logits = tensor(model(_digits(rng, 8)), "the logits", (8, 10))
    check(logits.requires_grad, "no gradient flows from the logits: do not detach")
    (logits * torch.randn(8, 10, generator=rng)).sum().backward()
    slopes = model.grads()
    idle = [name for name in kernels if slopes.get(name) is None or not slopes[name].abs().max() > 0]
    check(not idle, f"the gradient at the filters `{idle[0] if idle else ''}` is zero: nothing depends on them")


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
def test_device(SmallCNN, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    try:
        device_ready(watch, SmallCNN, call=(_digits(rng),))
    except StudentRaised as error:
        if "TypeError" not in error.type_names:  # a class that wants arguments cannot be tried here
            raise


def _plan(data_efficiency, in_box, sizes, steps=3):
    """What it does with stand-ins for train_classifier and evaluate; None where it cannot be watched like this."""
    try:
        plan = in_box(efficiency_plan, data_efficiency, sizes, steps)
    except StudentRaised:
        return None  # the last case runs it as it is
    check(plan["trained"] or plan["calls"], "data_efficiency trains nothing: no model is given to train_classifier")
    return plan if plan["trained"] else None


def test_fresh_models(data_efficiency, in_box):
    """For each size data_efficiency trains new models: what one learned from another size does not count."""
    plan = _plan(data_efficiency, in_box, [40, 20])
    further = plan["further"] if plan else []
    check(not any(further), f"{sum(further)} of {len(further)} trainings go on from the weights that a training with "
          "another size has left: make a fresh ViT and a fresh SmallCNN for each size")


def test_first_images(data_efficiency, in_box):
    """Each model is trained on the first n training digits, and on no others."""
    sizes = [40, 130, 20]
    plan = _plan(data_efficiency, in_box, sizes)
    for run in plan["runs"] if plan else ():
        _trained_on(run, sizes)


@pytest.mark.weight(0.5)
def test_held_out_images(data_efficiency, in_box):
    """Each model is measured on digits that it was not trained on."""
    sizes = [1500, 40]
    plan = _plan(data_efficiency, in_box, sizes)
    for run in plan["runs"] if plan else ():
        _held_out(run, _trained_on(run, sizes, strict=False))


@pytest.mark.parametrize("steps", [24, None])
def test_same_steps(data_efficiency, in_box, steps):
    """ViT and SmallCNN are trained for the same number of steps, at every size, up to a pass that is not cut."""
    sizes = [640, 20]
    plan = _plan(data_efficiency, in_box, sizes, steps)
    if plan is None:
        return
    counts = {}
    for run in plan["runs"]:
        counts.setdefault((run["kind"], _trained_on(run, sizes, strict=False)), []).append(run["planned"])
    for n in sizes:
        vit, cnn = counts.get(("vit", n), []), counts.get(("cnn", n), [])
        if not (vit and cnn):
            continue
        check(len(vit) == len(cnn), f"for {n} digits {len(vit)} ViTs and {len(cnn)} SmallCNNs are trained: it is one "
              "of each")
        check(sorted(vit) == sorted(cnn), f"on {n} digits the ViT is trained for {vit[0]} steps and the SmallCNN for "
              f"{cnn[0]}: both get the same number of steps")
    whole = [name for options in plan["options"] for name, value in options.items() if isinstance(value, int)]
    if set(whole) - COUNTS:
        return  # parameters of one's own may say how many steps there are
    many, few = (max(counts.get(("vit", n), [0])) for n in sizes)
    check(min(many, few) == 0 or max(many, few) <= 2 * min(many, few), f"with {sizes[0]} digits a model is trained for "
          f"{many} steps, and with {sizes[1]} for {few}: with equal steps at every size it is the data that differ")


def test_the_vit_that_was_asked_for(data_efficiency, in_box, reference):
    """The ViT of the experiment is ViT(**SMALL), with its MAP head."""
    plan = _plan(data_efficiency, in_box, [20])
    own = {name: list(value.shape) for name, value in reference.ViT(**SMALL).named_parameters()}
    for run in plan["runs"] if plan else ():
        if run["kind"] != "vit":
            continue
        other = [name for name in own if not any(_is(name, own[name], *found) for found in run["shapes"].items())]
        check(not other, f"the ViT of the experiment has no `{other[0] if other else ''}` of shape "
              f"{own[other[0]] if other else ''}: use your ViT(**SMALL), with the pooling that it has by default")


def _is(name, shape, found, found_shape):
    return (found == name or found.endswith(f".{name}")) and list(found_shape) == shape


@cache
def _count_of_digits():
    return len(mnist5k()[0].labels)


def _trained_on(run, sizes, strict=True):
    """The size whose first n digits this model was trained on; None where its images are none that we know.

    Other digits are `Wrong`, or None too if that is not what is asked.
    """
    name, seen = NAMES[run["kind"]], run["trained"]
    known = seen[seen >= 0]
    if len(known) == 0 or 2 * len(known) < len(seen):
        return None  # the images were changed on their way
    if not strict and known.max() >= max(sizes):
        return None
    check(known.max() < _count_of_digits(), f"a {name} is trained on held-out digits")
    n = min((size for size in sizes if known.max() < size), default=0)
    check(n > 0, f"a {name} is trained on digit {int(known.max())}, counted from 0, where the sizes are {sizes}: take "
          "the first n training digits, train.images[:n]")
    few = min(n, run["images"])
    check(2 * len(known) >= few, f"a {name} sees {len(known)} different digits where it could see {few}: are all "
          "of the first n used?")
    return n


def _held_out(run, n):
    """Which of the digits that a model was asked about are held out: bool, or None where they are unknown."""
    asked, name = run["asked"], NAMES[run["kind"]]
    if n is None or not (asked >= 0).any():
        return None
    unseen = asked >= n
    check(2 * int(unseen.sum()) > int((asked >= 0).sum()), f"the {name} that was trained on the first {n} digits is "
          "measured on these digits; measure on held-out ones")
    return unseen


def _logits(state, kind, images, student, reference):
    """The logits that weights give: a ViT's in the reference's model, a CNN's in a fresh one of this student's box."""
    model = reference.ViT(**SMALL) if kind == "vit" else student.run(build, student["SmallCNN"])
    made, own = {"vit": "ViT(**SMALL)", "cnn": "SmallCNN()"}[kind], model.state_dict()
    for name, value in own.items():
        found = next((key for key in state if _is(name, list(value.shape), key, state[key].shape)), None)
        check(found is not None, f"the trained {NAMES[kind]} has no `{name}` of shape {list(value.shape)}: use your "
              f"{made}, whose weights are asked for in a model made like this")
        own[name] = state[found].to(value.dtype)
    model.load_state_dict(own)
    model.eval()
    with torch.no_grad():
        return tensor(model(images), f"the logits of the trained {NAMES[kind]}", (len(images), 10)).float()


def _count(logits, labels):
    """The share of right answers."""
    return (logits.argmax(-1) == labels).double().mean().item()


def _measured(found, drawn, student, reference):
    """{(kind, n): [(accuracy on the images that it was asked about, accuracy and loss on fresh ones), ...]}."""
    images = torch.cat([drawn.images, drawn.held_out])
    labels = torch.cat([drawn.labels, drawn.held_out_labels])
    measured = {}
    for run, state in zip(found["runs"], found["models"], strict=False):
        kind, seen, asked = run["kind"], run["trained"][run["trained"] >= 0], run["asked"][run["asked"] >= 0]
        if not (run["steps"] and len(seen) and len(asked)):
            continue
        check(len(asked) <= 4 * HELD_OUT and seen.max() < len(images) > asked.max(), "the runs of data_efficiency "
              "cannot be told apart: train each model once, and measure it once")
        n = FIRST if seen.max() < FIRST else TRAIN
        check(seen.max() < TRAIN, f"a {NAMES[kind]} is trained on held-out images")
        check(2 * int((asked >= n).sum()) > len(asked), f"the {NAMES[kind]} that was trained on the first {n} images "
              "is measured on these images; measure on held-out ones")
        asked = asked[asked >= n]
        logits = _logits(state, kind, torch.cat([images[asked], drawn.fresh]), student, reference)
        on, fresh = _count(logits[: len(asked)], labels[asked]), logits[len(asked) :]
        loss = F.cross_entropy(fresh, drawn.fresh_labels).item()
        measured.setdefault((kind, n), []).append((on, _count(fresh, drawn.fresh_labels), loss))
    return measured


@pytest.mark.weight(5)
def test_efficiency(data_efficiency, ViT, SmallCNN, student, anew, rng, reference):
    """data_efficiency trains both models on as many images as it is told, and measures them on held-out ones."""
    for number in range(DRAWS):
        drawn = draw_signs(rng.initial_seed() + number)
        found = student.run(watched_efficiency, student["data_efficiency"], SIZES, STEPS, *drawn[:4])
        try:
            accuracies = read_efficiency(found["result"], SIZES)
        except (ValueError, TypeError) as error:
            check(False, f"data_efficiency({SIZES}): {error}")
        for name, values in accuracies.items():
            check(all(0 <= value <= 1 for value in values), f'the accuracies of "{name}" are '
                  f"{[round(v, 4) for v in values]}; shares from 0 to 1 are asked for")
        found["models"] = [model.state_dict() for model in found["models"][:MODELS]]
        student = anew()  # what is learned is in the weights: nothing else comes along
        measured = _measured(found, drawn, student, reference)
        _is_what_was_measured(accuracies, measured)
        if not _alike(measured):
            break
    untrained = {"vit": student["ViT"](**SMALL), "cnn": student.run(build, student["SmallCNN"])}
    reached = {kind: max(measured[kind, TRAIN], key=lambda one: one[1]) for kind in NAMES}
    for kind, name in NAMES.items():
        little = max(accuracy for _, accuracy, _ in measured[kind, FIRST])
        check(little <= LITTLE, f"on the first {FIRST} images there are {FIRST_CLASSES} of the ten classes, and the "
              f"{name} that was trained on them is right on {little:.0%} of new ones: was it trained on {FIRST} only?")
        before = F.cross_entropy(_logits(untrained[kind].state_dict(), kind, drawn.fresh, student, reference),
                                 drawn.fresh_labels).item()
        after = reached[kind][2]
        check(after < min(LOSS, before), f"after training on {TRAIN} images the {name}'s loss on new ones is "
              f"{after:.3f}, that of an untrained one {before:.3f}, and that of guessing 2.303: does it train at all?")
    much = sum(accuracy for _, accuracy, _ in reached.values()) / 2
    check(much >= MUCH, f"after training on {TRAIN} images the models are right on {much:.0%} of new ones on average, "
          "and guessing gives 10%: do they train at all?")
    gain = sum(values[0] - values[1] for values in accuracies.values()) / 2
    check(gain >= GAIN, f"with {TRAIN} images to train on instead of {FIRST} the accuracies rise by {gain:.1%} on "
          "average: is each model trained on as many images as the size says?")


def _alike(measured):
    """Whether both kinds of models are as good: then their accuracies could stand under either name."""
    return all(
        any(abs(one[0] - other[0]) <= ROOM for one in measured["vit", n] for other in measured["cnn", n]) for n in SIZES
    )


def _is_what_was_measured(accuracies, measured):
    """Every accuracy is that of a model of its kind, trained on as many images as its place says."""
    check(measured, "no model was seen in training on the images of mnist5k() and then measured on held-out ones: use "
          "your ViT(**SMALL), SmallCNN, train_classifier and evaluate")
    for kind, name in NAMES.items():
        check(any(one == kind for one, _ in measured), f'no {name} is trained: the accuracies of "{kind}" are those '
              "of another model")

    def fits(value, kind, n):
        runs = measured.get((kind, n), [])
        return any(abs(value - on) <= ROOM and abs(value - fresh) <= LUCK for on, fresh, _ in runs)

    for kind, name in NAMES.items():
        other = "cnn" if kind == "vit" else "vit"
        for value, n in zip(accuracies[kind], SIZES, strict=True):
            check((kind, n) in measured, f"no {name} is trained on the first {n} images and measured")
            if fits(value, kind, n):
                continue
            on, fresh, _ = measured[kind, n][0]
            told = f'"{kind}" says {value:.3f} for {n} images, and the {name} trained on them is right on {on:.3f} of '
            told += f"the images that it was asked about, and on {fresh:.3f} of others"
            values = accuracies[kind]
            if all(fits(v, kind, m) for v, m in zip(values, SIZES[::-1], strict=True)):
                raise Wrong(f"{told}: the accuracies stand in another order than the sizes {SIZES}")
            if all(fits(v, other, m) for v, m in zip(values, SIZES, strict=True)):
                raise Wrong(f"{told}: these are the accuracies of the {NAMES[other]}")
            raise Wrong(f"{told}: return what `evaluate` gives")
