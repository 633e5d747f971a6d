"""Public checks of q6_8: from_gpt2."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import NotAnswered, Wrong, check, same
from course_utils.explain.stubs import is_stub
from course_utils.hw6.published import published, taken
from course_utils.instruments.calls import with_arguments


def _converted(from_gpt2, state):
    got = from_gpt2(state)
    check(isinstance(got, dict), f"from_gpt2 gives a {type(got).__name__}, expected a dict from names to tensors")
    return got


def test_names_and_values(from_gpt2):
    """Every weight arrives under your name: the c_ matrices transposed, c_attn in three, the rest as it was."""
    # keeps: transposed, embeddings
    taken(_converted(from_gpt2, published(68)[0]), published(68)[1])


def test_a_prefix(from_gpt2):
    """Names that begin with `transformer.` give the same."""
    # keeps: prefix
    state = {f"transformer.{name}": value for name, value in published(68)[0].items()}
    taken(_converted(from_gpt2, state), published(68)[1])


def test_what_is_left_out(from_gpt2):
    """Masks, lm_head.weight and names that nobody knows leave no trace."""
    # keeps: left-out, others-ignored
    state, ours = published(68)
    more = {
        "lm_head.weight": state["wte.weight"],
        "h.0.attn.bias": torch.ones(1, 1, 6, 6),
        "epoch": torch.zeros(1),
        "h.1.attn.masked_bias": torch.tensor(-1e4),
        "h.0.attn.rotary.inv_freq": torch.zeros(3),
    }
    taken(_converted(from_gpt2, state | more), ours)


def test_twelve_layers(from_gpt2):
    """Twelve layers are twelve: layer 11 comes after layer 9."""
    # keeps: layers
    state, ours = published(69, L=12)
    taken(_converted(from_gpt2, state), ours)


def _error(from_gpt2, missing, prefix=""):
    """What is raised when a tensor is missing: the exception's name and text, or None."""
    state = {prefix + name: value for name, value in published(68)[0].items() if name != missing}
    try:
        from_gpt2(state)
    except (NotAnswered, Wrong):
        raise
    except Exception as error:
        if is_stub(error):
            raise
        return [*getattr(error, "type_names", (type(error).__name__,))], str(error)
    return None


def test_a_missing_tensor(from_gpt2):
    """A missing tensor is a KeyError or ValueError that holds its published name."""
    # keeps: missing
    for missing in ("h.1.mlp.c_fc.bias", "wpe.weight", "h.0.attn.c_attn.weight", "h.1.ln_1.weight"):
        for prefix in ("", "transformer."):
            found = _error(from_gpt2, missing, prefix)
            check(found is not None, f"without {missing} nothing is raised")
            names, text = found
            check(
                {"KeyError", "ValueError"} & {*names},
                f"without {missing} it raises {text}, expected a KeyError or ValueError",
            )
            check(missing in text, f"without {missing} the error says {text!r}, which does not name it")


def test_state_is_kept(from_gpt2):
    """The given dict is as before."""
    # keeps: state-kept
    state = {f"transformer.{name}": value for name, value in published(68)[0].items()}
    _, (after,) = run_beside(with_arguments, from_gpt2, dict(state))
    check(list(after) == list(state), "the given dict has other names afterwards")
    for name, value in state.items():
        same(after[name], value, f"the given {name} afterwards")


def probe_names(from_gpt2):
    return sorted(map(str, from_gpt2(published(68)[0])))


def probe_values(from_gpt2):
    return [from_gpt2(published(68)[0])[name] for name in sorted(published(68)[1])]


def _one(from_gpt2, name):
    return from_gpt2(published(68)[0])[name]


def probe_q(from_gpt2):
    return _one(from_gpt2, "blocks.1.attn.q_proj.weight")


def probe_k(from_gpt2):
    return _one(from_gpt2, "blocks.1.attn.k_proj.weight")


def probe_o(from_gpt2):
    return _one(from_gpt2, "blocks.0.attn.o_proj.weight")


def probe_fc1(from_gpt2):
    return _one(from_gpt2, "blocks.0.ff.fc1.weight")


def probe_norm2(from_gpt2):
    return _one(from_gpt2, "blocks.0.norm2.weight")


def probe_q_bias(from_gpt2):
    return _one(from_gpt2, "blocks.0.attn.q_proj.bias")


def probe_twelve(from_gpt2):
    return sorted(map(str, from_gpt2(published(69, L=12)[0])))


def probe_prefix(from_gpt2):
    try:
        return sorted(map(str, from_gpt2({f"transformer.{name}": x for name, x in published(68)[0].items()})))
    except (NotAnswered, Wrong):
        raise
    except Exception as error:
        if is_stub(error):
            raise
        return "fails"


def probe_left_out(from_gpt2):
    state = published(68)[0]
    state |= {"lm_head.weight": state["wte.weight"], "h.0.attn.bias": torch.ones(1, 1, 6, 6), "epoch": torch.zeros(1)}
    try:
        return sorted(map(str, from_gpt2(state)))
    except (NotAnswered, Wrong):
        raise
    except Exception as error:
        if is_stub(error):
            raise
        return "fails"


def probe_missing(from_gpt2):
    found = [_error(from_gpt2, name) for name in ("h.1.mlp.c_fc.bias", "wpe.weight", "ln_f.bias")]
    return [one is not None and one[0][0] for one in found]


def probe_missing_is_named(from_gpt2):
    names = ("h.1.mlp.c_fc.bias", "wpe.weight", "h.0.ln_2.weight", "h.1.ln_1.weight")
    found = [(name, _error(from_gpt2, name)) for name in names]
    return [one is not None and name in one[1] for name, one in found]


def probe_state_afterwards(from_gpt2):
    state = {f"transformer.{name}": value for name, value in published(68)[0].items()}
    _, (after,) = run_beside(with_arguments, from_gpt2, state)
    return len(after)
