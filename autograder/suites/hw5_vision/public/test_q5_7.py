"""Public checks of q5_7: SmallCNN, and the form of what data_efficiency returns."""

import pytest
import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw5.bias_experiments import read_efficiency
from course_utils.hw5.cnn_facts import cnn_facts
from course_utils.hw5.efficiency_runs import efficiency, efficiency_plan
from course_utils.hw5.vision import build


def test_logits(SmallCNN):
    """Two digits [2, 1, 28, 28] give logits [2, 10], and every parameter takes part."""
    facts = run_beside(cnn_facts, SmallCNN)
    check(tuple(facts["shape"]) == (2, 10), f"the logits of two digits have shape {list(facts['shape'])}, expected "
          "[2, 10]")
    check(not facts["unused"], f"`{facts['unused'][:1]}` gets no gradient: it is not used")


def test_convolutions(SmallCNN):
    """There are at least two convolutions with a kernel larger than 1."""
    wide = [kernel for kernel in run_beside(cnn_facts, SmallCNN)["kernels"] if max(kernel) > 1]
    check(len(wide) >= 2, f"{len(wide)} convolutions (nn.Conv2d) with a kernel larger than 1 were used, at least 2 "
          "are asked "
          "for")


@pytest.mark.weight(0.5)
def test_small(SmallCNN):
    """It is small: at most 100,000 parameters."""
    count = run_beside(cnn_facts, SmallCNN)["parameters"]
    check(count <= 100_000, f"the model has {count:,} parameters, and at most 100,000 are allowed")


def test_form_of_the_result(data_efficiency):
    """data_efficiency returns {"vit": [...], "cnn": [...]}, one accuracy from 0 to 1 for each size."""
    found = run_beside(efficiency, data_efficiency, [20], 1)
    try:
        accuracies = read_efficiency(found, [20])
    except (ValueError, TypeError) as error:
        check(False, f"data_efficiency([20]): {error}")
    for name, values in accuracies.items():
        check(0 <= values[0] <= 1, f'the accuracy of "{name}" is {values[0]:.4g}; a share from 0 to 1 is asked for')


def _facts(SmallCNN):
    return run_beside(cnn_facts, SmallCNN)


def _digits(n=2):
    return torch.rand(n, 1, 28, 28, generator=torch.Generator().manual_seed(57))


def _plan(data_efficiency, sizes):
    return run_beside(efficiency_plan, data_efficiency, sizes)


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
    logits = run_beside(build, SmallCNN)(_digits())
    one = torch.ones(2)
    return bool(torch.allclose(logits.sum(-1), one, atol=1e-4) or torch.allclose(logits.exp().sum(-1), one, atol=1e-4))


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
