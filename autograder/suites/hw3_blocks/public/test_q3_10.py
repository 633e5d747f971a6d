"""Public checks of q3_10: dead_transformer_fix."""

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw3.patients import BAR, ENOUGH, FAULTS, STEPS, accuracy, treat
from course_utils.hw3.vital_signs import vital_signs


def _signs(dead_transformer_fix, fault, seed=0):
    return run_beside(vital_signs, dead_transformer_fix, fault, seed)


def test_healthy_model(dead_transformer_fix):
    """A healthy model comes back as it was."""
    for seed in (0, 1):
        signs = _signs(dead_transformer_fix, "healthy", seed)
        check(not signs["changed"], f"`{(signs['changed'] or [''])[0]}` of a healthy model has changed")
        check(signs["twin"], "the outputs of a healthy model have changed: which setting did you touch?")
        check(signs["noise"] < 0.01, "a healthy model has become random in training mode: which setting did you touch?")


def test_vital_signs(dead_transformer_fix):
    """After mending, before any training, every patient shows the signs of a healthy model."""
    for fault in FAULTS:
        signs = _signs(dead_transformer_fix, fault)
        told = f"after your mending the patient with the fault {fault!r}"
        check(not signs["unlearned"], f"{told} has parameters that no gradient reaches: "
              f"{', '.join(signs['unlearned'][:3])} ...")
        check(signs["order"], f"{told} does not notice the order of the tokens")
        check(not signs["padding"], f"{told} looks at padding")
        check(signs["noise"] < 0.9, f"{told} is mostly noise in training mode")
        check(not signs["equal_units"], f"{told} has layers whose units are all the same: {signs['equal_units'][:3]}")
        check(all(0.3 < s < 3 for s in signs["scale"]), f"{told} has attention scores of a wrong size: `scale` times "
              f"the root of the head's width is {signs['scale']}, expected about 1")


def test_one_patient_trained(dead_transformer_fix):
    """The patient without positions learns the race after your mending."""
    for seed in (0, 1):  # the second only where the first run was unlucky
        reached = accuracy(run_beside(treat, dead_transformer_fix, "no_positions", seed, STEPS, ENOUGH), 500)
        if reached >= BAR:
            break
    check(reached >= BAR, f"after the training run the patient is right on {reached:.0%} of new races, and {BAR:.0%} "
          "are asked for")


def _chart(dead_transformer_fix, fault):
    signs = _signs(dead_transformer_fix, fault)
    signs["noise"] = signs["noise"] > 0.9
    signs["written"] = fault == "no_positions" and "positions" in signs["written"]  # elsewhere `changed` says it all
    return signs


def probe_healthy(dead_transformer_fix):
    return _chart(dead_transformer_fix, "healthy")


def probe_frozen(dead_transformer_fix):
    return _chart(dead_transformer_fix, "frozen")


def probe_dead_relu(dead_transformer_fix):
    return _chart(dead_transformer_fix, "dead_relu")


def probe_dropout(dead_transformer_fix):
    return _chart(dead_transformer_fix, "dropout")


def probe_flipped_mask(dead_transformer_fix):
    return _chart(dead_transformer_fix, "flipped_mask")


def probe_no_positions(dead_transformer_fix):
    return _chart(dead_transformer_fix, "no_positions")


def probe_zero_gains(dead_transformer_fix):
    return _chart(dead_transformer_fix, "zero_gains")


def probe_blurred(dead_transformer_fix):
    return _chart(dead_transformer_fix, "blurred")


def probe_constant_weights(dead_transformer_fix):
    return _chart(dead_transformer_fix, "constant_weights")
