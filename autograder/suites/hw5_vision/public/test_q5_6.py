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
    got = number(run_beside(evaluate_marked, evaluate, *_answers(), 8), "evaluate")
    check(abs(got - 100 * 17 / 23) > 1e-6, "this is a percentage; a share from 0 to 1 is asked for")
    same(got, 17 / 23, "evaluate for 17 right answers of 23, in batches of 8, 8 and 7", rtol=1e-6)


def test_training_mode(train_classifier):
    """train_classifier puts the model into training mode, and shows it every image."""
    seen = _watched(train_classifier)
    check(seen["modes"], "the model was never called with gradients switched on")
    late = ", though in training mode at first" if seen["modes"][0] else ""
    check(all(seen["modes"]), f"the model was in evaluation mode in some steps{late}: call model.train() before you "
          "train, and again where something has called model.eval()")
    check(seen["images"] >= 160, f"the model was shown {seen['images']} images in all, and one epoch has 160")


def test_the_model_learns(train_classifier):
    """After train_classifier the given model itself has a lower loss."""
    seen = _watched(train_classifier, epochs=8)
    loss = _loss(seen)
    check(loss < 2.303 - 0.03, f"the loss of a linear model went from 2.303 to {loss:.3f} in 40 steps: is the "
          "optimizer "
          "given this model's parameters, is `step` called, and is the default rate large enough?")


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
