"""Public checks of q5_7: SmallCNN, and the form of what data_efficiency returns."""

import pytest
import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw5.bias_experiments import read_efficiency
from course_utils.hw5.cnn_facts import cnn_facts
from course_utils.hw5.efficiency_runs import efficiency, efficiency_plan
from course_utils.hw5.vision import NAMES, build

COUNTS = {*NAMES["epochs"], *NAMES["steps"]}


def test_logits(SmallCNN):
    """Two digits [2, 1, 28, 28] give logits [2, 10], and every parameter takes part."""
    # keeps: shape, parameters-used
    facts = run_beside(cnn_facts, SmallCNN)
    check(tuple(facts["shape"]) == (2, 10), f"the logits of two digits have shape {list(facts['shape'])}, expected "
          "[2, 10]")
    check(not facts["unused"], f"`{facts['unused'][:1]}` gets no gradient: it is not used")


def test_convolutions(SmallCNN):
    """There are at least two convolutions with a kernel larger than 1."""
    # keeps: convolutions
    wide = [kernel for kernel in run_beside(cnn_facts, SmallCNN)["kernels"] if max(kernel) > 1]
    check(len(wide) >= 2, f"{len(wide)} convolutions (nn.Conv2d) with a kernel larger than 1 were used, at least 2 "
          "are asked "
          "for")


@pytest.mark.weight(0.5)
def test_small(SmallCNN):
    """It is small: at most 100,000 parameters."""
    # keeps: small
    count = run_beside(cnn_facts, SmallCNN)["parameters"]
    check(count <= 100_000, f"the model has {count:,} parameters, and at most 100,000 are allowed")


def test_form_of_the_result(data_efficiency):
    """data_efficiency returns {"vit": [...], "cnn": [...]}, one accuracy from 0 to 1 for each size."""
    # keeps: result
    found = run_beside(efficiency, data_efficiency, [20], 1)
    try:
        accuracies = read_efficiency(found, [20])
    except (ValueError, TypeError) as error:
        check(False, f"data_efficiency([20]): {error}")
    for name, values in accuracies.items():
        check(0 <= values[0] <= 1, f'the accuracy of "{name}" is {values[0]:.4g}; a share from 0 to 1 is asked for')


def _gives_probabilities(SmallCNN):
    logits = run_beside(build, SmallCNN)(_digits())
    one = torch.ones(2)
    return bool(torch.allclose(logits.sum(-1), one, atol=1e-4) or torch.allclose(logits.exp().sum(-1), one, atol=1e-4))


def test_a_real_cnn(SmallCNN):
    """It has non-linearities, and pooling or stride; its convolutions make the logits, which are no probabilities."""
    # keeps: non-linear, pools, logits
    facts = run_beside(cnn_facts, SmallCNN)
    check(facts["bend"] > 1e-4, "your network is linear in the image: put a non-linearity between the convolutions")
    check(facts["pools"], "no pooling and no stride makes the maps smaller on their way to the logits")
    check(facts["idle"] == 0, f"{facts['idle']} of your convolutions have no influence on the logits")
    check(not _gives_probabilities(SmallCNN), "your rows sum to 1: the loss has a softmax already, give the logits")


def _watched_plan(data_efficiency, sizes, steps=3):
    """What it does with stand-ins that only take notes; None where it cannot be watched like this."""
    plan = _plan(data_efficiency, sizes, steps)
    check(plan["trained"] or plan["calls"], "data_efficiency trains nothing: no model is given to train_classifier")
    return plan if plan["trained"] else None


def test_one_of_each_for_each_size(data_efficiency):
    """For each size a fresh ViT and a fresh SmallCNN are trained on the first n training digits, and on no others."""
    # keeps: fresh, first-n, both
    sizes = [40, 130, 20]
    plan = _watched_plan(data_efficiency, sizes)
    if plan is None:
        return
    check(not any(plan["further"]), "a training goes on from the weights that one with another size has left: make "
          "fresh models for each size")
    kinds = {run["kind"] for run in plan["runs"]}
    check(kinds == {"vit", "cnn"}, f"only {' and '.join(sorted(kinds))} are trained: a ViT and a CNN are asked for")
    for run in plan["runs"]:
        seen = run["trained"][run["trained"] >= 0]
        if 2 * len(seen) < len(run["trained"]) or not len(seen):
            continue  # the images were changed on their way
        check(seen.max() < max(sizes), f"a model is trained on digit {int(seen.max())}, counted from 0, and the sizes "
              f"are {sizes}: take the first n training digits")
        n = min(size for size in sizes if seen.max() < size)
        check(2 * len(seen) >= min(n, run["images"]), f"a model sees {len(seen)} different digits of the first {n}")


def test_measured_on_others(data_efficiency):
    """Every model is measured on digits that it was not trained on, whatever the size."""
    # keeps: held-out
    plan = _watched_plan(data_efficiency, [1500, 40])
    for run in plan["runs"] if plan else ():
        seen, asked = run["trained"][run["trained"] >= 0], run["asked"][run["asked"] >= 0]
        if not len(seen) or not len(asked) or seen.max() >= 4000:
            continue
        n = 40 if seen.max() < 40 else 1500
        check(2 * int((asked >= n).sum()) > len(asked), f"a model that was trained on the first {n} digits is measured "
              "on digits among these; measure on held-out ones")


def test_steps_and_order(data_efficiency):
    """ViT and CNN get the same steps, at every size; accuracies stand in the order of `sizes`, by name."""
    # keeps: steps, result
    sizes = [640, 20]
    plan = _watched_plan(data_efficiency, sizes, 24)
    if plan is None:
        return
    planned = {}
    for run in plan["runs"]:
        seen = run["trained"][run["trained"] >= 0]
        if len(seen) and seen.max() < 640:
            planned.setdefault(20 if seen.max() < 20 else 640, {}).setdefault(run["kind"], run["planned"])
    for n, steps in planned.items():
        check(len(set(steps.values())) <= 1, f"on {n} digits the steps are {steps}: both models get the same number")
    most = [max(steps.values()) for steps in planned.values()]
    whole = {name for options in plan["options"] for name, value in options.items() if isinstance(value, int)}
    if len(most) == 2 and not whole - COUNTS:
        check(max(most) <= 2 * min(most), f"a size gets {most[0]} steps and the other {most[1]}: take the same number")
    if len(plan["runs"]) == 4 and all(len(run["trained"]) for run in plan["runs"]):
        given = dict(zip((f"{run['kind']} {20 if run['trained'].max() < 20 else 640}" for run in plan["runs"]),
                         (0.01 * (i + 1) for i in range(4)), strict=True))  # what the stand-ins for evaluate gave
        for kind, values in read_efficiency(plan["result"], sizes).items():
            for n, value in zip(sizes, values, strict=True):
                wanted = given.get(f"{kind} {n}", value)
                check(abs(value - wanted) < 1e-6, f'"{kind}" has {value:.2f} for {n} digits, and evaluate gave '
                      f"{wanted:.2f} for that model: mind the names, and the order of sizes")


def _facts(SmallCNN):
    return run_beside(cnn_facts, SmallCNN)


def _digits(n=2):
    return torch.rand(n, 1, 28, 28, generator=torch.Generator().manual_seed(57))


def _plan(data_efficiency, sizes, steps=3):
    return run_beside(efficiency_plan, data_efficiency, sizes, steps)


def probe_shape(SmallCNN):
    return list(_facts(SmallCNN)["shape"])


def probe_wide_kernels(SmallCNN):
    return min(2, sum(max(kernel) > 1 for kernel in _facts(SmallCNN)["kernels"]))


def probe_convolutions(SmallCNN):
    return len(_facts(SmallCNN)["kernels"]) > 0


def probe_bends(SmallCNN):
    return _facts(SmallCNN)["bend"] > 1e-4


def probe_is_small(SmallCNN):
    return _facts(SmallCNN)["parameters"] <= 100_000


def probe_is_local(SmallCNN):
    reach = _facts(SmallCNN)["reach"]
    return None if reach is None else reach < 0.5


def probe_moves_along(SmallCNN):
    shift = _facts(SmallCNN)["shift"]
    return None if shift is None else shift < 1e-3


def probe_pools(SmallCNN):
    return _facts(SmallCNN)["pools"]


def probe_unused(SmallCNN):
    return len(_facts(SmallCNN)["unused"])


def probe_repeats(SmallCNN):
    return _facts(SmallCNN)["repeats"]


def probe_probabilities(SmallCNN):
    return _gives_probabilities(SmallCNN)


def probe_rows_mix(SmallCNN):
    model = run_beside(build, SmallCNN)
    model.eval()
    return bool((model(_digits(3))[:1] - model(_digits(3)[:1])).abs().max() > 1e-4)


def probe_result(data_efficiency):
    return _plan(data_efficiency, [20, 40])["result"]


def probe_keys(data_efficiency):
    return sorted(str(key) for key in _plan(data_efficiency, [20, 40])["result"])


def probe_training_images(data_efficiency):
    return [distinct for _, _, distinct in _plan(data_efficiency, [20, 40])["trained"]]


def probe_training_steps(data_efficiency):
    steps = [steps for _, steps, _ in _plan(data_efficiency, [20, 400])["trained"]]
    return [len(steps), len(set(steps))]


def probe_models(data_efficiency):
    return [name for name, _, _ in _plan(data_efficiency, [20])["trained"]]


def probe_trained_further(data_efficiency):
    return any(_plan(data_efficiency, [40, 20])["further"])


def probe_evaluated_images(data_efficiency):
    return [count > 40 for count in _plan(data_efficiency, [20, 40])["evaluated"]]


def probe_which_training_images(data_efficiency):
    return [int(run["trained"].max()) for run in _plan(data_efficiency, [20, 40])["runs"]]


def probe_kinds(data_efficiency):
    return [run["kind"] for run in _plan(data_efficiency, [20])["runs"]]


def probe_training_images_of_falling_sizes(data_efficiency):
    return [distinct for _, _, distinct in _plan(data_efficiency, [40, 20])["trained"]]


def probe_steps(data_efficiency):
    return [run["steps"] for run in run_beside(efficiency_plan, data_efficiency, [640, 20], 24)["runs"]]


def probe_trains_nothing(data_efficiency):
    return not _plan(data_efficiency, [20])["trained"]


def probe_asked_about(data_efficiency):
    return [int(run["asked"].min()) for run in _plan(data_efficiency, [20])["runs"]]


def probe_idle_filters(SmallCNN):
    return _facts(SmallCNN)["idle"]
