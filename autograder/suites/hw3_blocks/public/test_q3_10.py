"""Public checks of q3_10: dead_transformer_fix."""

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw3.patients import BAR, ENOUGH, STEPS, WARD, accuracy, treat
from course_utils.hw3.vital_signs import trains_as_healthy, vital_signs


def _signs(dead_transformer_fix, number, seed=0):
    return run_beside(vital_signs, dead_transformer_fix, number, seed)


def test_healthy_model(dead_transformer_fix):
    """A healthy model comes back as it was."""
    # keeps: healthy-kept, returned
    for seed in (0, 1):
        signs = _signs(dead_transformer_fix, 0, seed)
        check(not signs["changed"], f"`{(signs['changed'] or [''])[0]}` of a healthy model has changed")
        check(signs["twin"], "the outputs of a healthy model have changed: which setting did you touch?")
        check(signs["noise"] < 0.01, "a healthy model has become random in training mode: which setting did you touch?")


def test_vital_signs(dead_transformer_fix):
    """After mending, before any training, every patient shows the signs of a healthy model."""
    # keeps: signs
    for number in WARD:
        signs = _signs(dead_transformer_fix, number)
        told = f"after your mending patient {number}"
        check(not signs["unlearned"], f"{told} has parameters that no gradient reaches: "
              f"{', '.join(signs['unlearned'][:3])} ...")
        check(signs["order"], f"{told} does not notice the order of the tokens")
        check(not signs["padding"], f"{told} looks at padding")
        check(signs["noise"] < 0.9, f"{told} is mostly noise in training mode")
        check(not signs["equal_units"], f"{told} has layers whose units are all the same: {signs['equal_units'][:3]}")
        check(signs["road"], f"{told} loses a token where the branches of its blocks give 0: what does each block "
              f"add to?")
        check(all(0.3 < s < 3 for s in signs["scale"]), f"{told} has attention scores of a wrong size: `scale` times "
              f"the root of the head's width is {signs['scale']}, expected about 1")


def test_good_weights_stay(dead_transformer_fix):
    """What was good in a patient comes back as it was."""
    # keeps: good-kept
    for number in WARD:
        lost = _signs(dead_transformer_fix, number)["lost"]
        check(not lost, f"`{(lost or [''])[0]}` of patient {number} has changed, and nothing was wrong with it")


def test_one_patient_trained(dead_transformer_fix):
    """Patient 1 learns the race after your mending."""
    # keeps: learns
    if run_beside(trains_as_healthy, dead_transformer_fix, 1):
        return  # as a healthy one learns
    for seed in (0, 1):  # the second only where the first run was unlucky
        reached = accuracy(run_beside(treat, dead_transformer_fix, 1, seed, STEPS, ENOUGH), 500)
        if reached >= BAR:
            break
    check(reached >= BAR, f"after the training run patient 1 is right on {reached:.0%} of new races, and {BAR:.0%} "
          "are asked for")


def _chart(dead_transformer_fix, number):
    signs = _signs(dead_transformer_fix, number)
    signs["noise"] = signs["noise"] > 0.9
    signs["written"] = len(signs["written"]) > len(signs.pop("lost"))  # anything that was sick
    return signs


def probe_healthy(dead_transformer_fix):
    return _chart(dead_transformer_fix, 0)


def probe_patient_1(dead_transformer_fix):
    return _chart(dead_transformer_fix, 1)


def probe_patient_2(dead_transformer_fix):
    return _chart(dead_transformer_fix, 2)


def probe_patient_3(dead_transformer_fix):
    return _chart(dead_transformer_fix, 3)


def probe_patient_4(dead_transformer_fix):
    return _chart(dead_transformer_fix, 4)


def probe_patient_5(dead_transformer_fix):
    return _chart(dead_transformer_fix, 5)


def probe_patient_6(dead_transformer_fix):
    return _chart(dead_transformer_fix, 6)


def probe_patient_7(dead_transformer_fix):
    return _chart(dead_transformer_fix, 7)


def probe_patient_8(dead_transformer_fix):
    return _chart(dead_transformer_fix, 8)


def probe_patient_9(dead_transformer_fix):
    return _chart(dead_transformer_fix, 9)


def probe_patient_10(dead_transformer_fix):
    return _chart(dead_transformer_fix, 10)


def probe_patient_11(dead_transformer_fix):
    return _chart(dead_transformer_fix, 11)
