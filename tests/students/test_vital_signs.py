"""The signs tell a sick patient from its healthy twin."""

import pytest
import torch
from torch import nn

from course_utils.hw3.patients import WARD, _table
from course_utils.hw3.vital_signs import parameters_without_gradient, trains_as_healthy, vital_signs


def leave(model):
    return model


def test_a_healthy_model_shows_no_sign():
    signs = vital_signs(leave, 0, 0)
    assert signs["changed"] == signs["written"] == signs["unlearned"] == signs["equal_units"] == []
    assert signs["order"] and signs["twin"] and not signs["padding"] and signs["noise"] == 0
    assert signs["scale"] == [1.0, 1.0]


@pytest.mark.parametrize("number", WARD)
def test_every_fault_shows_in_some_sign(number):
    healthy, sick = vital_signs(leave, 0, 0), vital_signs(leave, number, 0)
    assert any(sick[name] != healthy[name] for name in set(sick) - {"changed", "twin"})


def test_what_was_written_is_told_from_what_is_still_not_as_it_should_be():
    def fill(model):
        model.positions.fill_(2.0)
        return model

    signs = vital_signs(fill, 1, 0)
    assert signs["changed"] == signs["written"] == ["positions"] and not signs["order"]
    assert vital_signs(leave, 1, 0)["written"] == []


def test_good_weights_that_a_mending_writes_are_told_from_sick_ones():
    def draw_all_anew(model):
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
        return model

    lost = [vital_signs(draw_all_anew, number, 0)["lost"] for number in (0, 3, 11)]
    assert {"fc.weight", "fc.bias"} <= {*lost[0]} and "fc.bias" not in lost[1] and "fc.weight" in lost[1]
    assert lost[2] == [], "all of its linear layers are sick: weights and biases may be drawn anew"


def test_the_whole_cure_is_told_from_half_of_it():
    def cure(model):
        model.positions.copy_(_table(*model.positions.shape))
        return model

    def cure_and_freeze(model):
        cure(model).head.bias.requires_grad_(False)
        return model

    assert trains_as_healthy(cure, 1)
    assert not trains_as_healthy(cure_and_freeze, 1) and not trains_as_healthy(cure, 3)


@pytest.mark.parametrize("number", WARD)
def test_no_patient_trains_as_a_healthy_model(number):
    assert not trains_as_healthy(leave, number)


def test_parameters_that_no_gradient_reaches_are_named_and_keys_biases_are_not():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused, self.k_proj = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)

        def forward(self, x):
            return self.used(x) + x @ self.k_proj.weight.mT

    assert parameters_without_gradient(Half(), torch.ones(4, 3)) == ["unused.weight", "unused.bias"]
