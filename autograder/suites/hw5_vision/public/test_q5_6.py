"""Public checks of q5_6: evaluate and train_classifier, on models that need no training time."""

import torch
import torch.nn.functional as F

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number, same
from course_utils.hw5.training_watch import parameters_left_alone, watch_evaluation, watch_training
from course_utils.hw5.vision import evaluate_marked

CLASSES = 10
WEIGHT = torch.randn(CLASSES, 36, generator=torch.Generator().manual_seed(63))  # of a linear model of the task below


def _answers(n=23, wrong=(0, 3, 4, 5, 20, 22)):
    """Labels, and what a model answers: all right but for the given places."""
    labels = torch.randint(CLASSES, (n,), generator=torch.Generator().manual_seed(61))
    answers = labels.clone()
    answers[list(wrong)] = (answers[list(wrong)] + 3) % CLASSES
    return answers, labels


def _task(n=160):
    """Images of ten patterns with noise: [n, 1, 6, 6], and their labels."""
    g = torch.Generator().manual_seed(62)
    patterns = (torch.rand(CLASSES, 1, 6, 6, generator=g) < 0.4).float()
    labels = torch.arange(n) % CLASSES
    return patterns[labels] + 0.2 * torch.randn(n, 1, 6, 6, generator=g), labels


def _watched(train_classifier, epochs=4, spread=0.0):
    return run_beside(watch_training, train_classifier, *_task(), 32, epochs, spread)


def _loss(seen):
    images, labels = _task()
    return F.cross_entropy(images.flatten(1) @ seen["weight"].mT + seen["bias"], labels).item()


def test_accuracy(evaluate):
    """evaluate gives the share of right answers over all images, from 0 to 1, the last batch being a small one."""
    # keeps: accuracy
    got = number(run_beside(evaluate_marked, evaluate, *_answers(), 8), "evaluate")
    check(abs(got - 100 * 17 / 23) > 1e-6, "this is a percentage; a share from 0 to 1 is asked for")
    same(got, 17 / 23, "evaluate for 17 right answers of 23, in batches of 8, 8 and 7", rtol=1e-6)


def test_training_mode(train_classifier):
    """train_classifier puts the model into training mode, and shows it every image."""
    # keeps: mode, epochs
    seen = _watched(train_classifier)
    check(seen["modes"], "the model was never called with gradients switched on")
    late = ", though in training mode at first" if seen["modes"][0] else ""
    check(all(seen["modes"]), f"the model was in evaluation mode in some steps{late}: call model.train() before you "
          "train, and again where something has called model.eval()")
    check(seen["images"] >= 160, f"the model was shown {seen['images']} images in all, and one epoch has 160")


def test_the_model_learns(train_classifier):
    """After train_classifier the given model itself has a lower loss."""
    # keeps: in-place, rate
    seen = _watched(train_classifier, epochs=8)
    loss = _loss(seen)
    check(loss < 2.303 - 0.03, f"the loss of a linear model went from 2.303 to {loss:.3f} in 40 steps: is the "
          "optimizer "
          "given this model's parameters, is `step` called, and is the default rate large enough?")


def test_evaluation_leaves_the_model(evaluate):
    """evaluate only looks: in evaluation mode, without gradients, and afterwards training can go on."""
    # keeps: eval-mode, no-gradients, looks
    seen = _evaluated(evaluate)
    check(seen["modes"] and not any(seen["modes"]), "evaluate asks the model in training mode: call model.eval() first")
    check(not any(seen["kept"]), "evaluate keeps track of gradients: ask the model under torch.no_grad()")
    same(seen["weight"], WEIGHT, "the model's weight after evaluate, which only measures", rtol=0, atol=0)
    check(seen["grad"], "evaluate leaves gradients switched off for all that comes later: use `with torch.no_grad():`")
    check(not seen["frozen"], f"after evaluate {seen['frozen'][:1]} wants no gradient, and training cannot go on")


def test_each_step_on_its_own(train_classifier):
    """Each step starts from a gradient of its own: old ones are cleared, and every batch of every epoch is used."""
    # keeps: fresh, every-batch, epochs
    images, labels = _task(250)
    for epochs in (1, 3):
        seen = run_beside(watch_training, train_classifier, images, labels, 12, epochs)
        check(seen["stale"] == 0, f"in {seen['stale']} of {seen['backwards']} steps the new gradient was added to an "
              "old one: call optimizer.zero_grad() in every step")
        times = epochs if seen["counted"] else 1
        check(seen["images"] >= times * 250, f"{seen['images']} images were trained on in {epochs} epochs of 250")
        check(not seen["counted"] or seen["images"] == epochs * 250, f"{seen['images']} images were trained on, and "
              f"{epochs} epochs of 250 were asked for")
        missed = 0 if seen["times"] is None else int((seen["times"] == 0).sum())
        check(missed == 0, f"{missed} of 250 images were never shown: take every batch, the small last one too")


def test_what_is_made_smaller(train_classifier):
    """The loss is the cross-entropy of the logits with the labels, for every class, and all parameters learn."""
    # keeps: loss, parameters
    images, labels = _task(23 * 32)
    first = run_beside(watch_training, train_classifier, images, labels, 32, 1, 0.7)["first"]
    check("slope" in first, "no gradient came back to the logits")
    if first["images"].shape == images[:32].shape and torch.equal(first["images"], images[:32]):
        right = first["logits"].softmax(-1) - F.one_hot(labels[:32], CLASSES)
        told = "is there a softmax in front of the cross-entropy, which has its own, or another loss?"
        check(_cosine(first["slope"], right) > 0.9, f"the gradient at the logits is not their cross-entropy's: {told}")
        for label in labels[:32].unique().tolist():
            rows = labels[:32] == label
            check(_cosine(first["slope"][rows], right[rows]) > 0.5, f"for images of class {label} the gradient at the "
                  "logits is not that of their cross-entropy: does the loss count every class?")
    left = run_beside(parameters_left_alone, train_classifier, *_task(), 8)
    check(not left, f"after an epoch {left[:1]} is what it was: give the optimizer all of model.parameters()")


def _cosine(a, b):
    return F.cosine_similarity(a.double().flatten(), b.double().flatten(), 0).item()


def probe_accuracy(evaluate):
    return float(run_beside(evaluate_marked, evaluate, *_answers(), 8))


def probe_accuracy_of_one_batch(evaluate):
    return float(run_beside(evaluate_marked, evaluate, *_answers(), 50))


def probe_accuracy_of_even_batches(evaluate):
    return float(run_beside(evaluate_marked, evaluate, *_answers(24), 8))


def probe_accuracy_of_single_images(evaluate):
    return float(run_beside(evaluate_marked, evaluate, *_answers(5, (0, 3)), 1))


def probe_all_right(evaluate):
    return float(run_beside(evaluate_marked, evaluate, *_answers(wrong=()), 8))


def probe_modes(train_classifier):
    modes = _watched(train_classifier)["modes"]
    return [len(modes) > 0, all(modes)]


def probe_first_and_last_mode(train_classifier):
    modes = _watched(train_classifier)["modes"]
    return [modes[0], modes[-1]]


def probe_passes(train_classifier):
    """How many times the images were gone through, where four are asked for."""
    seen = _watched(train_classifier)
    return min(seen["images"] / 160, 4) if seen["counted"] else 4


def probe_small_last_batch(train_classifier):
    """How many of 150 images are seen in one pass, in batches of 32."""
    seen = run_beside(watch_training, train_classifier, *_task(150), 32, 1)
    return min(seen["images"], 150)


def probe_images(train_classifier):
    seen = _watched(train_classifier)
    return seen["images"] >= 640 if seen["counted"] else seen["images"] >= 160


def probe_old_gradients(train_classifier):
    return _watched(train_classifier)["stale"] > 0


def probe_learns(train_classifier):
    return _loss(_watched(train_classifier)) < 2.29


def probe_loss(train_classifier):
    """Is the first gradient at the logits that of their cross-entropy, up to a factor?"""
    first, (_, labels) = _watched(train_classifier, 1, 0.7)["first"], _task()
    expected = first["logits"].softmax(-1) - F.one_hot(labels[: len(first["logits"])], CLASSES)
    return "slope" in first and F.cosine_similarity(first["slope"].flatten(), expected.flatten(), 0).item() > 0.9


def probe_slope(train_classifier):
    """The direction of the first gradient at the logits."""
    slope = _watched(train_classifier, 1, 0.7)["first"]["slope"]
    return slope / slope.norm()


def probe_evaluation_keeps_gradients(evaluate):
    return any(_evaluated(evaluate)["kept"])


def probe_weights_after_evaluation(evaluate):
    return bool((_evaluated(evaluate)["weight"] == WEIGHT).all())


def probe_parameters_left_alone(train_classifier):
    return run_beside(parameters_left_alone, train_classifier, *_task(), 8)


def probe_images_never_shown(train_classifier):
    times = _watched(train_classifier)["times"]
    return None if times is None else int((times == 0).sum())


def probe_gradients_on_after_evaluation(evaluate):
    return _evaluated(evaluate)["grad"]


def probe_frozen_by_evaluation(evaluate):
    return len(_evaluated(evaluate)["frozen"])


def _evaluated(evaluate):
    return run_beside(watch_evaluation, evaluate, WEIGHT, WEIGHT[:, 0], *_task(), 32)
