"""The claims of q2_10: the false ones break on a good example, the true ones on none; bad examples are explained."""

from __future__ import annotations

import pytest
import torch

from course_utils.hw2.claims import CLAIMS, holds

FALSE = {
    "mask_after_softmax",
    "cache_without_mask",
    "heads_get_slices",
    "more_heads_cost_less",
    "cross_needs_equal_width",
    "new_key_meets_old_queries",
}
TRUE = {"exchange_heads", "key_bias_is_idle"}


def example(name: str, seed: int, scale: float = 1.0) -> dict[str, object]:
    """A random example with the claim's arguments."""
    rng = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> torch.Tensor:
        return scale * torch.randn(*shape, generator=rng)

    square = {W: randn(6, 6) for W in ("Wq", "Wk", "Wv")}
    return {
        "exchange_heads": {"x": randn(5, 6), **square, "Wo": randn(6, 6), "n_heads": 3, "i": 0, "j": 2},
        "mask_after_softmax": {"scores": randn(4, 5), "blocked": torch.eye(4, 5) > 0, "values": randn(5, 3)},
        "cache_without_mask": {"x": randn(5, 6), **{W: randn(2, 6, 6) for W in ("Wq", "Wk", "Wv")}},
        "key_bias_is_idle": {"x": randn(5, 6), **square, "bk": 3 * randn(6)},
        "heads_get_slices": {"x": randn(5, 6), **square, "n_heads": 3, "head": seed % 3},
        "more_heads_cost_less": {"N": 12 + seed, "D": 12, "fewer": 1 + seed % 3, "more": 6},
        "cross_needs_equal_width": {
            "x": randn(3, 4),
            "y": randn(5, 2),
            "Wq": randn(4, 6),
            "Wk": randn(2, 6),
            "Wv": randn(2, 3),
        },
        "new_key_meets_old_queries": {"x": randn(5, 6), **square},
    }[name]


def test_there_are_eight_claims_with_arguments_and_a_text() -> None:
    assert set(CLAIMS) == FALSE | TRUE
    assert all(claim.text and claim.arguments and claim.name in str(claim) for claim in CLAIMS.values())


@pytest.mark.parametrize("name", sorted(FALSE))
@pytest.mark.parametrize("seed", range(3))
def test_a_false_claim_breaks_on_ordinary_random_tensors(name: str, seed: int) -> None:
    assert not holds(name, example(name, seed))


@pytest.mark.parametrize("name", sorted(TRUE))
@pytest.mark.parametrize("scale", [1e-60, 1e-6, 1.0, 3.0])
def test_a_true_claim_holds_on_small_and_large_tensors(name: str, scale: float) -> None:
    assert all(holds(name, example(name, seed, scale)) for seed in range(20))


def test_cancelling_heads_do_not_break_the_exchange() -> None:
    whole = example("exchange_heads", 0)
    for W in ("Wq", "Wk", "Wv"):
        whole[W] = torch.cat([whole[W][:, :2]] * 3, dim=1)
    whole["Wo"] = torch.cat([whole["Wo"][:2], -0.3 * whole["Wo"][:2], -0.7 * whole["Wo"][:2]])
    assert holds("exchange_heads", whole)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mask_after_softmax", {"blocked": torch.zeros(4, 5, dtype=torch.bool)}),
        ("mask_after_softmax", {"values": torch.zeros(5, 3)}),
        ("mask_after_softmax", {"blocked": torch.ones(4, 5, dtype=torch.bool)}),
        ("cache_without_mask", {W: torch.eye(6)[None] for W in ("Wq", "Wk", "Wv")}),
        ("heads_get_slices", {"n_heads": 1, "head": 0}),
        ("heads_get_slices", {W: torch.block_diag(*[torch.ones(2, 2)] * 3) for W in ("Wq", "Wk", "Wv")}),
        ("more_heads_cost_less", {"fewer": 6, "more": 6}),
        ("more_heads_cost_less", {"fewer": 6, "more": 2}),
        ("cross_needs_equal_width", {"y": torch.ones(5, 4), "Wk": torch.ones(4, 6), "Wv": torch.ones(4, 3)}),
        ("cross_needs_equal_width", {"Wk": torch.ones(2, 5)}),
    ],
)
def test_a_false_claim_holds_on_examples_that_do_not_reach_it(name: str, change: dict[str, object]) -> None:
    assert holds(name, {**example(name, 0), **change})


@pytest.mark.parametrize("N", [1, 9, torch.tensor(7), 8.0])
def test_more_heads_cost_the_same_at_every_length(N: object) -> None:
    assert not holds("more_heads_cost_less", {"N": N, "D": 8, "fewer": 2, "more": 4})


def test_lists_and_float32_and_gradients_are_welcome() -> None:
    assert not holds("mask_after_softmax", {"scores": [[0, 1]], "blocked": [[True, False]], "values": [[1.0], [2.0]]})
    whole = example("cache_without_mask", 1)
    whole["x"] = whole["x"].requires_grad_()
    assert not holds("cache_without_mask", whole)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("no_such_claim", {}, "the claims are exchange_heads"),
        ("mask_after_softmax", {"more": 1}, "a dict with these keys: scores: [T, S]"),
        ("mask_after_softmax", {"scores": torch.zeros(4)}, "scores has shape [4], not 2 axes"),
        ("mask_after_softmax", {"scores": torch.full((4, 5), -torch.inf)}, "NaN or larger than"),
        ("mask_after_softmax", {"scores": torch.full((4, 5), 1e5)}, "scores beyond"),
        ("mask_after_softmax", {"blocked": torch.ones(5, dtype=torch.bool)}, "blocked has shape [5], not [4, 5]"),
        ("mask_after_softmax", {"blocked": torch.full((4, 5), 0.5)}, "blocked is no mask"),
        ("mask_after_softmax", {"values": torch.zeros(4, 3)}, "values has 4 rows"),
        ("mask_after_softmax", {"values": "abc"}, "values is a str"),
        ("cache_without_mask", {"x": torch.zeros(1, 6)}, "x has 1 token"),
        ("cache_without_mask", {"Wk": torch.zeros(3, 6, 6)}, "Wk has shape [3, 6, 6], not [2, 6, 6]"),
        ("cache_without_mask", {"x": torch.zeros(65, 6)}, "every axis must be from 1 to 64"),
        ("exchange_heads", {"n_heads": 4}, "does not divide"),
        ("exchange_heads", {"j": 3}, "must be smaller"),
        ("exchange_heads", {"j": 1.5}, "j = 1.5 is not a whole number"),
        ("more_heads_cost_less", {"N": 0}, "N = 0 is not a whole number from 1"),
        ("more_heads_cost_less", {"N": float("nan")}, "not a whole number"),
        ("more_heads_cost_less", {"D": torch.ones(3)}, "D is a Tensor"),
        ("more_heads_cost_less", {"more": 5}, "more = 5 does not divide D = 12"),
        ("heads_get_slices", {"head": 3}, "head = 3 must be smaller than n_heads = 3"),
        ("cross_needs_equal_width", {"Wq": torch.ones(3, 6)}, "Wq has 3 rows, and the tokens of x have width 4"),
        ("new_key_meets_old_queries", {"x": torch.zeros(1, 6)}, "x has 1 token"),
    ],
)
def test_a_malformed_example_is_explained(name: str, change: dict[str, object], words: str) -> None:
    whole = {**example(name, 0), **change} if name in CLAIMS else {}
    with pytest.raises(ValueError) as caught:
        holds(name, whole)
    assert words in str(caught.value)


def test_an_example_that_is_no_dict_is_explained() -> None:
    with pytest.raises(ValueError, match="found list"):
        holds("more_heads_cost_less", [12, 11])  # type: ignore[arg-type]
