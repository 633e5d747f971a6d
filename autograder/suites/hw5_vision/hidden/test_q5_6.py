"""Hidden checks of q5_6: evaluate against the judge's own count, train_classifier by what it does to a model."""

import pytest
import torch
import torch.nn.functional as F

from autograder.in_box.hw5 import train_on, trained_deeply
from autograder.judge.faults import StudentRaised
from autograder.suites.causes import same_or_because
from autograder.suites.hw5_vision.signs import draw_signs
from course_utils.checking.compare import check, number, same, tensor
from course_utils.data import mnist5k
from course_utils.hw5.training_watch import DeepModel, WatchedModel, watch_evaluation, watch_training
from course_utils.hw5.vision import BAR, SIZES, SMALL, evaluate_marked, load_model

CLASSES = 10
SIGN_STEPS, SIGN_BAR = 80, 0.4  # of the short run; see docs/thresholds.md
BATCH = 12  # of the tasks below: a run of more than 20 steps, since a schedule may have a tenth of them for its warm-up


def _answers(rng, n, share):
    """Labels, and what a model answers: about this share of them right."""
    labels = torch.randint(CLASSES, (n,), generator=rng)
    wrong = torch.rand(n, generator=rng) >= share
    return torch.where(wrong, (labels + torch.randint(2, CLASSES - 1, (n,), generator=rng)) % CLASSES, labels), labels


def _accuracy(evaluate, in_box, answers, labels, batch):
    """The student's accuracy of a model that gives these answers, held against the judge's count."""
    got = number(in_box(evaluate_marked, evaluate, answers, labels, batch), "evaluate")
    right = (answers == labels).double()
    shifted = ((answers + 1) % CLASSES == labels).double()
    batches = right.split(batch)
    expected = right.mean().item()
    what = f"evaluate for {int(right.sum())} right answers of {len(labels)}, batches of {batch}"
    same_or_because(got, expected, what, {
        "accuracies of batches were averaged, and the last batch is smaller; count images":
            torch.stack([part.mean() for part in batches]).mean().item(),
        "this is a percentage; a share from 0 to 1 is asked for": 100 * expected,
        "this is the share of wrong answers": 1 - expected,
        "this is the number of right answers; divide by the number of images": right.sum().item(),
        "only the last batch counts": batches[-1].mean().item(),
        "only the first batch counts": batches[0].mean().item(),
        "the number of right answers is divided by the number of batches": right.sum().item() / len(batches),
        "every batch is counted as a full one": right.sum().item() / (len(batches) * batch),
        "the model was in training mode; call model.eval() first": shifted.mean().item(),
    }, rtol=1e-6, atol=1e-7)


@pytest.mark.weight(3)
def test_accuracy_over_all_images(evaluate, in_box, rng):
    """evaluate is the number of right answers over the number of images, with a smaller last batch too."""
    for n, batch, share in ((50, 16, 0.7), (33, 32, 0.4), (40, 10, 0.9), (7, 20, 0.5), (9, 1, 0.6)):
        _accuracy(evaluate, in_box, *_answers(rng, n, share), batch)


def test_extremes(evaluate, in_box, rng):
    """All answers right is 1, none right is 0."""
    for share in (1.0, 0.0):
        answers, labels = _answers(rng, 21, share)
        got = number(in_box(evaluate_marked, evaluate, answers, labels, 8), "evaluate")
        check(abs(got - share) < 1e-6, f"evaluate is {got:.4g} where {'all' if share else 'no'} answers are right, "
              "expected "
              f"{share:.0f} (count in evaluation mode)")


def test_evaluation_only_looks(evaluate, in_box, rng):
    """evaluate changes no weight, computes no gradients, and asks the model in evaluation mode."""
    (images, labels), batch = _task(rng, 50), 16
    weight, bias = 0.3 * torch.randn(CLASSES, 64, generator=rng), 0.3 * torch.randn(CLASSES, generator=rng)
    seen = in_box(watch_evaluation, evaluate, weight, bias, images, labels, batch)
    for name, before in (("weight", weight), ("bias", bias)):
        same(seen[name], before, f"the model's {name} after evaluate, which only measures", rtol=0, atol=0)
    check(seen["modes"], "evaluate never asks the model")
    check(not any(seen["modes"]), "evaluate asks the model in training mode: call model.eval() first")
    check(not any(seen["kept"]), f"in {sum(seen['kept'])} of {len(seen['kept'])} batches gradients were kept track of: "
          "evaluate under torch.no_grad()")
    check(not seen["coarse"], "on a CPU evaluate asks for logits in half precision: bfloat16 is for CUDA, and "
          "autocast_for(device) knows")
    right = (images.flatten(1) @ weight.mT + bias).argmax(-1) == labels
    same(number(seen["accuracy"], "evaluate"), right.double().mean().item(), "evaluate of a linear model", rtol=1e-6)


def test_training_can_go_on(evaluate, in_box, rng):
    """After evaluate gradients are switched on as before, and every parameter still wants one."""
    (images, labels), weight = _task(rng, 30), torch.randn(CLASSES, 64, generator=rng)
    seen = in_box(watch_evaluation, evaluate, weight, weight[:, 0], images, labels, 16)
    check(seen["grad"], "evaluate leaves gradients switched off for everything that comes later: use `with "
          "torch.no_grad():`")
    check(not seen["frozen"], f"`{seen['frozen'][0] if seen['frozen'] else ''}` wants no gradient after evaluate, so "
          "training cannot go on: `with torch.no_grad():` is enough")


def _task(rng, n=320):
    """Ten random patterns with noise: images [n, 1, 8, 8], labels."""
    patterns = (torch.rand(CLASSES, 1, 8, 8, generator=rng) < 0.4).float()
    labels = torch.cat([torch.arange(CLASSES), torch.randint(CLASSES, (n - CLASSES,), generator=rng)])
    return patterns[labels] + 0.3 * torch.randn(n, 1, 8, 8, generator=rng), labels


def _fresh(make):
    """A model with the start values that it has in the box."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return make()


def _watched(in_box, train_classifier, images, labels, batch, epochs, spread=0.0):
    """What a training run noted, if by its weights anything was learned: notes alone are the box's own word."""
    seen = in_box(watch_training, train_classifier, images, labels, batch, epochs, spread)
    model = _fresh(lambda: WatchedModel(images[0].numel(), CLASSES, spread))
    losses = [F.cross_entropy(images.flatten(1) @ weight.mT + bias, labels).item()
              for weight, bias in ((model.fc.weight, model.fc.bias), (seen["weight"], seen["bias"]))]
    check(losses[1] < losses[0], f"by the weights of a linear model nothing was learned: its loss is {losses[0]:.3f} "
          f"before and {losses[1]:.3f} after {epochs} {'epoch' if epochs == 1 else 'epochs'} of training")
    return seen


def test_trains_in_training_mode(train_classifier, in_box, rng):
    """The model is in training mode at every step, whatever its mode before."""
    modes = _watched(in_box, train_classifier, *_task(rng), BATCH, 2)["modes"]
    check(len(modes) > 0, "the model was never called with gradients switched on")
    late = ", though in training mode at first" if modes[0] else ""
    check(all(modes), f"the model was in evaluation mode in {modes.count(False)} of {len(modes)} steps{late}: call "
          "model.train(), and again where something has called model.eval()")


@pytest.mark.weight(2)
def test_uses_every_batch(train_classifier, in_box, rng):
    """Every image of the loader is shown once in every epoch, those of the smaller last batch too."""
    n, batches = 23 * BATCH - 5, 23
    images, labels = _task(rng, n)
    shown = {}
    for epochs in (1, 3):
        seen = _watched(in_box, train_classifier, images, labels, BATCH, epochs)
        times = epochs if seen["counted"] else 1
        told = f"{epochs} {'epoch' if epochs == 1 else 'epochs'} of {n} images in {batches} batches"
        check(seen["images"] >= times * n, f"{seen['images']} images were trained on in {told}")
        check(seen["backwards"] >= times * batches, f"{seen['backwards']} gradients were computed in {told}")
        _each_image(seen, told)
        shown[epochs] = seen["images"]
    check(not seen["counted"] or shown[3] == 3 * shown[1], f"{shown[1]} images are trained on in one epoch of {n}, and "
          f"{shown[3]} in three: as many epochs as are asked for, no more")
    _left_its_mark(train_classifier, in_box, rng, n)


def _left_its_mark(train_classifier, in_box, rng, n):
    """Each image has a pixel of its own, so the weights of that pixel tell whether it was learned from, and as what."""
    images = torch.eye(n, 272).view(n, 1, 17, 16)
    labels = torch.cat([torch.arange(CLASSES), torch.randint(CLASSES, (n - CLASSES,), generator=rng)])
    seen = in_box(watch_training, train_classifier, images, labels, BATCH, 3)
    marks = tensor(seen["weight"], "the trained weights", (CLASSES, 272))[:, :n]
    kept, right = (marks != 0).any(0), marks.argmax(0) == labels
    if seen["times"] is None:  # images are changed on their way: most of them still leave a mark
        check(kept.double().mean() > 0.5, "by the weights most images were never learned from")
        return
    check(kept.all(), f"by the weights {int((~kept).sum())} of {n} images were never learned from: take every batch")
    check(right.double().mean() > 0.9, "by the weights images were not learned with their own labels")


def _each_image(seen, told):
    times = seen["times"]
    if times is None:
        return  # images are changed on their way, and cannot be told apart
    least, most = int(times.min()), int(times.max())
    check(least > 0, f"{int((times == 0).sum())} images were never shown in {told}: take a new batch for every step, "
          "and all of them")
    room = 0 if seen["counted"] else 1  # a number of steps of one's own may end within an epoch
    check(most - least <= room, f"in {told} one image was shown {most} times and another {least} times: each epoch "
          "shows every image once")


@pytest.mark.weight(2)
def test_every_parameter_is_trained(train_classifier, in_box, rng):
    """All parts of a model are trained, and not its last layer alone."""
    images, labels = _task(rng)
    after = in_box(trained_deeply, train_classifier, images, labels, BATCH, 2).state_dict()
    model = _fresh(lambda: DeepModel(images.shape[-1], CLASSES))
    before = model.state_dict()
    for name, value in before.items():
        moved = tensor(after.get(name), f"`{name}` after training", value.shape)
        check(not torch.equal(moved, value), f"after two epochs of training `{name}` is what it was before: give the "
              "optimizer all of model.parameters()")
    with torch.no_grad():
        fresh = F.cross_entropy(model(images), labels).item()
        model.load_state_dict({name: after[name] for name in before})
        reached = F.cross_entropy(model(images), labels).item()
    check(reached < fresh - 0.01, f"by the weights of a model of several parts its loss is {fresh:.3f} before and "
          f"{reached:.3f} after two epochs of training")


@pytest.mark.weight(0.5)
def test_full_precision_on_a_cpu(train_classifier, in_box, rng):
    """On a CPU training is in float32: bfloat16 is for CUDA."""
    coarse = _watched(in_box, train_classifier, *_task(rng), BATCH, 1)["coarse"]
    check(not coarse, "on a CPU the model's logits are in half precision: bfloat16 is for CUDA, and "
          "autocast_for(device) knows")


def test_gradients_are_fresh(train_classifier, in_box, rng):
    """Each step starts from a gradient of its own: the old one is forgotten."""
    seen = _watched(in_box, train_classifier, *_task(rng), BATCH, 1)
    check(seen["backwards"] > 0, "no gradient was ever computed")
    check(seen["stale"] == 0, f"in {seen['stale']} of {seen['backwards']} steps the new gradient was added to an old "
          "one: "
          "call optimizer.zero_grad() in every step")


def test_loss_is_cross_entropy(train_classifier, in_box, rng):
    """What is made smaller is the cross-entropy of the logits: its gradient points from the labels to the softmax."""
    images, labels = _task(rng, 23 * 64)
    first = _watched(in_box, train_classifier, images, labels, 64, 1, 0.7)["first"]
    images, labels = images[:64], labels[:64]
    check("slope" in first, "no gradient came back to the logits")
    logits = first["logits"].double()
    if first["images"].shape != images.shape or not torch.equal(first["images"], images):
        return  # the function deals with batches in its own way, and labels cannot be told
    right = logits.softmax(-1) - F.one_hot(labels, CLASSES)
    cosine = F.cosine_similarity(first["slope"].double().flatten(), right.flatten(), 0).item()
    check(cosine > 0.9, f"the gradient at the logits points elsewhere than that of their cross-entropy (cosine "
          f"{cosine:.2f})"
          ": is there a softmax in front of the cross-entropy, which has its own, or another loss?")
    for label in labels.unique().tolist():
        rows = labels == label
        cosine = F.cosine_similarity(first["slope"][rows].double().flatten(), right[rows].flatten(), 0).item()
        check(cosine > 0.5, f"for images of class {label} the gradient at the logits is not that of their "
              f"cross-entropy (cosine {cosine:.2f}): does the loss count every class?")


@pytest.mark.weight(2)
def test_loss_falls(train_classifier, in_box, rng):
    """Training changes the given model itself, and makes its loss on a simple task smaller."""
    images, labels = _task(rng)
    seen = in_box(watch_training, train_classifier, images, labels, 32, 6)
    logits = images.flatten(1) @ seen["weight"].mT + seen["bias"]
    check(logits.isfinite().all(), "after training the model's weights are not finite")
    loss, accuracy = F.cross_entropy(logits, labels).item(), (logits.argmax(-1) == labels).double().mean().item()
    check(loss < 2.303 - 0.03, f"in 60 steps the loss of a linear model went from 2.303 to {loss:.3f}: does the "
          "optimizer "
          "have this model's parameters, is `step` called, is the default rate large enough?")
    check(accuracy > 0.5, f"after 60 steps a linear model is right on {accuracy:.0%} of ten simple patterns")


def _reads(model, sizes, reference, images, labels):
    """The share of images that a trained model gets right: its weights are tried here, in our own ViT."""
    state = model.state_dict()
    pool = "cls" if "cls" in state else "map" if "map_head.probe" in state else "gap"
    vit = reference.ViT(**sizes, pool=pool).eval()
    own = vit.state_dict()
    for name, value in own.items():
        check(name in state, f"the trained model has no `{name}`")
        tensor(state[name], f"`{name}` of the trained model", value.shape)
        check(state[name].isfinite().all(), f"`{name}` of the trained model is not finite")
    vit.load_state_dict({name: state[name].to(value.dtype) for name, value in own.items()})
    with torch.no_grad():
        few = tensor(model(images[:8]), "the logits of the trained model", (8, CLASSES))
        same(few.float(), vit(images[:8]), "the logits of the trained model, against those of a ViT of 5.5 with the "
             "same weights", rtol=1e-2, atol=1e-2)
        answers = torch.cat([vit(part).argmax(-1) for part in images.split(250)])
    return (answers == labels).double().mean().item()


@pytest.mark.weight(4)
def test_learns_to_see(ViT, train_classifier, in_box, rng, reference):
    """Your checkpoint reads held-out digits, or a small ViT learns new signs with your train_classifier."""
    told = ""
    try:
        model = in_box(load_model, ViT)
    except StudentRaised as error:
        told = str(error)
    else:
        model.eval()
        _, test = mnist5k()
        reached = _reads(model, SIZES, reference, test.images, test.labels)
        if reached >= BAR:
            return
        told = f"your checkpoint is right on {reached:.1%} of the held-out digits, and {BAR:.0%} are asked for"
    for seed in torch.randint(10**9, (2,), generator=rng).tolist():  # a second chance for those who learn by luck
        drawn = draw_signs(seed)
        fresh = drawn.fresh, drawn.fresh_labels
        model = in_box(train_on, ViT, train_classifier, drawn.images, drawn.labels, SIGN_STEPS)
        model.eval()
        reached, before = _reads(model, SMALL, reference, *fresh), _reads(ViT(**SMALL), SMALL, reference, *fresh)
        if reached >= SIGN_BAR > before:
            return
    check(False, f"after {SIGN_STEPS} steps of your train_classifier with its own defaults, a small ViT is right on "
          f"{reached:.0%} of new images of ten signs, and {SIGN_BAR:.0%} are asked for; an untrained one is right on "
          f"{before:.0%} (the checkpoint: {told})")
