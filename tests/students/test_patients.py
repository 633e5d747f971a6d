"""The patients of q3_10: the task is as told, a run repeats, and one fault makes the difference."""

import pytest
import torch

from course_utils.hw3.patients import (
    BAR,
    CLS,
    ENOUGH,
    PAD,
    RUNNERS,
    WARD,
    Patient,
    accuracy,
    admitted,
    chart,
    healthy,
    mended,
    mended_by_chart,
    patient,
    planted,
    toy_batch,
    train_patient,
    treat,
)


def same(model):
    return model


def test_the_label_is_the_first_of_four_runners_and_padding_is_on_the_right():
    ids, padding, labels = toy_batch(torch.Generator().manual_seed(0), 50)
    assert set(padding.sum(1).tolist()) == set(range(7))
    for row, padded, label in zip(ids.tolist(), padding.tolist(), labels.tolist(), strict=True):
        real = [token for token, p in zip(row, padded, strict=True) if not p]
        runners = [token - 2 for token in real if 2 <= token < 2 + RUNNERS]
        assert real[0] == CLS and PAD not in real and set(row[len(real) :]) <= {PAD}
        assert sorted(runners) == list(range(RUNNERS)) and runners[0] == label


def test_equal_seeds_give_equal_patients_and_the_random_state_is_left_alone():
    before = torch.get_rng_state()
    one, two, other = (healthy(seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["embed.weight"], other["embed.weight"])
    runs = [train_patient(patient(4, 0), steps=3, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2] and len(runs[0]) == 3
    assert torch.equal(before, torch.get_rng_state())


def test_no_two_patients_share_their_weights():
    drawn = [patient(number, seed).embed.weight for number in (0, *WARD) for seed in (0, 1)]
    assert not any(torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])


@pytest.mark.parametrize("number", WARD)
def test_a_fault_is_planted_in_a_copy_and_makes_a_difference(number):
    """Values, settings or what is learned: something is other than before, and the healthy model is as it was."""
    before, after = healthy(0), healthy(0)
    sick = chart(planted(after, number))
    assert _differ(sick, chart(before)) and not _differ(chart(after), chart(before))


def _differ(a, b):
    values = any(not torch.equal(a["state"][name], value) for name, value in b["state"].items())
    return values or a["settings"] != b["settings"] or a["learned"] != b["learned"]


@pytest.mark.parametrize("number", WARD)
def test_a_sick_model_still_runs(number):
    model, ids, padding = patient(number, 0).eval(), *toy_batch(torch.Generator().manual_seed(1), 8)[:2]
    assert isinstance(model, Patient) and model(ids, padding).isfinite().all()
    losses = train_patient(model, steps=2)
    assert len(losses) == 2 and not model.training


def test_a_run_ends_once_ten_losses_are_small_enough():
    losses = train_patient(patient(0, 0), steps=20, enough=5.0)
    assert losses == train_patient(patient(0, 0), steps=20)[:10]


@pytest.mark.parametrize("number", [0, *WARD])
def test_a_chart_is_all_that_makes_a_patient(number):
    """A patient of a chart is the patient: weights, what is learned, settings; and so it trains as that one does."""
    model = patient(number, 5)
    copy = admitted(chart(model))
    assert chart(copy).keys() == chart(model).keys() and chart(copy)["settings"] == chart(model)["settings"]
    assert chart(copy)["learned"] == chart(model)["learned"]
    assert all(torch.equal(copy.state_dict()[name], value) for name, value in model.state_dict().items())
    assert train_patient(copy, steps=2, seed=3) == train_patient(model, steps=2, seed=3)


def test_the_fix_gets_the_patient_of_a_chart():
    seen = mended_by_chart(same, chart(patient(10, 0)))
    assert seen.padding_is is False
    with pytest.raises(TypeError, match="return the mended model"):
        mended_by_chart(lambda model: None, chart(patient(7, 0)))


def test_batches_can_be_given():
    generator = torch.Generator().manual_seed(1)
    ids, padding, labels = (torch.stack(x) for x in zip(*(toy_batch(generator) for _ in range(3)), strict=True))
    batches = ids.to(torch.uint8), padding, labels.to(torch.uint8)
    given = train_patient(patient(0, 0), steps=3, seed=1, batches=batches)
    assert given == train_patient(patient(0, 0), steps=3, seed=1)


def test_an_unknown_number_is_an_error():
    with pytest.raises(ValueError, match="no patient 12: they are numbered 1 to 11"):
        patient(12, 0)


def test_a_fix_must_return_a_model():
    with pytest.raises(TypeError, match="return the mended model"):
        mended(lambda model: None, 7, 0)


def test_padding_never_moves_a_healthy_model():
    model, (ids, padding, _) = patient(0, 0).eval(), toy_batch(torch.Generator().manual_seed(2), 8)
    other = torch.where(padding, torch.full_like(ids, 7), ids)
    torch.testing.assert_close(model(ids, padding), model(other, padding))


def test_a_healthy_model_learns_and_a_sick_one_does_not():
    assert accuracy(treat(same, 0, seed=0)) > BAR + 0.1
    assert accuracy(treat(same, 0, seed=0, enough=ENOUGH)) > BAR + 0.05
    assert accuracy(treat(same, 1, seed=0)) < BAR - 0.2
