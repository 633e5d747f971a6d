"""Lines that must be equal, and the expectations that they are held against."""

import math

import pytest
import sympy
import torch

from course_utils.checking.chains import POINTS, Chain, Line, Tie, agree, check_line, check_tie
from course_utils.checking.compare import Wrong
from course_utils.notebook.derivations import compare_lines, show_chain

F64 = torch.float64


def test_lines_that_agree_may_be_numbers_tensors_or_sympy():
    assert compare_lines([0.5, torch.tensor(0.5), sympy.Rational(1, 2), sympy.sin(sympy.pi / 6)])


def test_the_first_broken_line_is_named_with_both_values():
    report = compare_lines([9.037, 9.037, 31.23, 31.23])
    assert not report and report.broken == 2
    assert str(report) == "line 2 is the first that breaks: line 1 gives 9.037, line 2 gives 31.23"


def test_lines_can_have_names():
    assert "expanded gives 2" in str(compare_lines([1, 2], names=["definition", "expanded"]))


def test_matrices_are_compared_entry_by_entry_and_the_worst_is_shown():
    X = torch.eye(3, dtype=F64)
    Y = X.clone()
    Y[1, 2] = 0.25
    assert str(compare_lines([X, X, Y])).endswith("line 1 gives 0 at index [1, 2], line 2 gives 0.25")
    assert "shape [3, 3], line 1 has shape [9]" in str(compare_lines([X, X.flatten()]))


@pytest.mark.parametrize("line", [None, "2", [1.0], sympy.Symbol("x"), True])
def test_a_line_that_is_no_number_breaks(line):
    assert "expected a number or a tensor" in str(compare_lines([1.0, line]))


def test_a_line_with_nan_breaks_even_when_all_have_it():
    assert compare_lines([math.nan, math.nan]).broken == 0


def test_float32_lines_are_compared_more_coarsely():
    a = torch.tensor(1.0)
    assert compare_lines([a, a + 1e-5])
    assert not compare_lines([a.double(), a.double() + 1e-5])


def _moments(rng):
    """Raw moments of q and of k: any means, and squares that leave room for a variance."""
    q1, k1 = torch.randn(2, 3, generator=rng, dtype=F64)
    q2, k2 = (m**2 + 0.2 + torch.rand(3, generator=rng, dtype=F64) for m in (q1, k1))
    return {"q1": q1, "q2": q2, "k1": k1, "k2": k2}


def _means(rng):
    (mq, mk), (vq, vk) = torch.randn(2, 3, generator=rng, dtype=F64), torch.rand(2, 3, generator=rng, dtype=F64)
    return {"mq": mq, "vq": vq, "mk": mk, "vk": vk}


def _moments_of_means(rng):
    at = _means(rng)
    return {"q1": at["mq"], "q2": at["vq"] + at["mq"] ** 2, "k1": at["mk"], "k2": at["vk"] + at["mk"] ** 2}, at


def _from_moments(q1, q2, k1, k2):
    return (q2 * k2 - (q1 * k1) ** 2).sum()


def _from_means(mq, vq, mk, vk):
    return (vq * vk + vq * mk**2 + vk * mq**2).sum()


def _variance_chain(moments=_from_moments, means=_from_means):
    return Chain(
        [Line("from_moments", moments, _moments, _from_moments), Line("from_means", means, _means, _from_means)],
        [Tie("q2 = vq + mq^2", _moments_of_means)],
    )


def _rng():
    return torch.Generator().manual_seed(3)


def _overlaps(chain):
    """Which line could stand for which: lines in the same letters whose truths agree at all free letters."""
    found = []
    for line in chain.lines:
        drawn = [line.draw(_rng()) for _ in range(POINTS)]
        for other in chain.lines:
            in_the_same = other is not line and list(other.draw(_rng())) == list(drawn[0])
            if in_the_same and all(agree(line.truth(*at.values()), other.truth(*at.values())) for at in drawn):
                found.append(f"{other.name} could stand for {line.name}")
    return found


def test_a_right_chain_holds_at_free_letters_and_at_tied_ones(capsys):
    chain = _variance_chain()
    for line in chain.lines:
        check_line(line, _rng())
    check_tie(chain, 0, _rng())
    assert _overlaps(chain) == []
    assert show_chain(chain)
    assert "ok: every step holds" in capsys.readouterr().out


def test_a_step_to_a_line_that_is_not_written_yet_is_not_begun(capsys):
    def stub(mq, vq, mk, vk):
        raise NotImplementedError("q1_8: write it")

    with pytest.raises(NotImplementedError):
        show_chain(_variance_chain(means=stub))
    assert "->" not in capsys.readouterr().out


def test_a_line_may_call_another_with_its_letters_converted():
    def converted(mq, vq, mk, vk):
        return _from_moments(mq, vq + mq**2, mk, vk + mk**2)

    chain = _variance_chain(means=converted)
    check_line(chain.lines[1], _rng())
    check_tie(chain, 0, _rng())


def test_a_line_that_is_only_right_where_letters_are_tied_breaks_at_letters_of_its_own(capsys):
    def same_for_both(mq, vq, mk, vk):  # right where q and k have the same letters
        return (vq**2 + 2 * vq * mq**2).sum()

    chain = _variance_chain(means=same_for_both)
    causes = {"q and k have letters of their own": same_for_both, "right after all": _from_means}
    with pytest.raises(Wrong, match=r"from_means at mq = \[.*expected.*Likely cause: q and k have letters"):
        check_line(chain.lines[1], _rng(), causes=causes)
    with pytest.raises(Wrong, match="the step from from_moments to from_means is no equality: where q2 = vq"):
        check_tie(chain, 0, _rng())
    report = show_chain(chain)
    assert not report and report.broken == 1
    assert "NOT YET: the step from from_moments to from_means is the first that breaks" in capsys.readouterr().out


def test_matrices_of_a_proof_are_told_apart_where_the_matrix_is_no_permutation():
    def free(rng):
        return {name: torch.randn(4, 4, generator=rng, dtype=F64) for name in ("A", "V", "P")}

    def tied(rng):
        at = {**free(rng), "P": torch.eye(4, dtype=F64)[[2, 0, 3, 1]]}
        return at, at

    def weights(A, V, P):
        return P @ A @ P.T @ P @ V

    def output(A, V, P):
        return P @ A @ V

    lines = [Line("weights", weights, free, weights), Line("output", output, free, output)]
    chain = Chain(lines, [Tie("P P^T = 1", tied)])
    check_tie(chain, 0, _rng())
    assert _overlaps(chain) == []
    with pytest.raises(Wrong, match=r"weights at A = a 4x4 matrix.*at index \[0, 0\] you have"):
        check_line(Line("weights", output, free, weights), _rng())
    wrong = Chain([chain.lines[0], Line("output", lambda A, V, P: A @ V, free, output)], chain.ties)
    with pytest.raises(Wrong, match=r"weights gives .* at index \[\d, \d\] and output gives"):
        check_tie(wrong, 0, _rng())
    copied = Chain([chain.lines[0], Line("copy", weights, free, weights)], chain.ties)
    assert _overlaps(copied) == ["copy could stand for weights", "weights could stand for copy"]


def test_a_line_that_is_no_number_is_told_as_such():
    chain = _variance_chain(means=lambda *_: None)
    with pytest.raises(Wrong, match="is None"):
        check_tie(chain, 0, _rng())
    with pytest.raises(Wrong, match="is None"):
        check_line(chain.lines[1], _rng())


def test_a_chain_has_a_tie_between_each_two_lines():
    with pytest.raises(ValueError, match="2 lines need 1 ties"):
        Chain([Line("a", abs), Line("b", abs)], [])
