"""Public checks of q4_10: evaluate_translation. The model here talks nonsense; what counts is how that is scored."""

from course_utils.checking.compare import check, number
from course_utils.data import EOS
from course_utils.hw4.decoding_weights import lively_weights, put_weights
from course_utils.hw4.translation import SIZES, bleu, chrf, exact_match, vocabularies

SAID = [  # sources, and what the model says to them
    ("seven thousand , seven hundred and forty - two", "neunzig neun sieben tausend siebzig"),
    ("eighteen", "neunzig siebzehn vierzehn ein"),
    ("thirty - seven", "neunzig achtzig ein achtzig ein achtzig und"),
    ("twenty - one", "hundert ein achtzig und"),
]


def _model(Transformer, **options):
    """Your model of the stated sizes, with fixed weights."""
    source, target = vocabularies()
    sizes = (len(source), len(target), *(SIZES[name] for name in ("d_model", "n_heads", "d_ff", "n_layers")))
    weights = lively_weights(411, *sizes)
    weights["tgt_embed.weight"][EOS] *= 2  # so that sentences end early
    return put_weights(Transformer(*sizes, **options), weights)


def _pairs(changed=()):
    """The pairs, with one reference each; where `changed`, it is another one than what the model says."""
    said = [(a.split(), b.split()) for a, b in SAID]
    return [(a, [[*b[1:], "hundert"] if i in changed else b]) for i, (a, b) in enumerate(said)]


def _several():
    """The pairs, some with more references: what the model says is the second of three, the last of two, or none."""
    (a, (x,)), (b, (y,)), (c, (z,)), (d, (w,)) = _pairs()
    return [(a, [x[1:], x, x[:-1]]), (b, [[*y, "und"], y]), (c, [z]), (d, [w[::-1], [*w, "ein"]])]


def _scores(evaluate_translation, Transformer, pairs):
    got = evaluate_translation(_model(Transformer), pairs)
    keys = ("exact", "bleu", "chrf")
    check(isinstance(got, dict) and set(keys) <= set(got), "the result is a dict with the keys exact, bleu and chrf")
    return {key: number(got[key], f"the score {key!r}") for key in keys}


def test_all_right(evaluate_translation, Transformer):
    """Where all four translations are the references, exact is 1, and BLEU and chrF are 100."""
    # keeps: keys, greedy
    got = _scores(evaluate_translation, Transformer, _pairs())
    for key, expected in (("exact", 1.0), ("bleu", 100.0), ("chrf", 100.0)):
        check(abs(got[key] - expected) < 1e-3, f"{key} is {got[key]:.4f}, expected {expected:g}")


def test_half_right(evaluate_translation, Transformer):
    """Where two of four references differ from the translations, exact is a half, and the others lie between."""
    # keeps: exact
    got = _scores(evaluate_translation, Transformer, _pairs((1, 2)))
    check(abs(got["exact"] - 0.5) < 1e-3, f"exact is {got['exact']:.4f}, expected 0.5: a share from 0 to 1")
    for key in ("bleu", "chrf"):
        check(10 < got[key] < 99, f"{key} is {got[key]:.4f}, expected one between 10 and 99: scores from 0 to 100")


def _expected(pairs):
    said = [b for _, (b,) in _pairs()]
    references = [b for _, b in pairs]
    return {"exact": exact_match(said, references), "bleu": bleu(said, references), "chrf": chrf(said, references)}


def test_scores_of_words(evaluate_translation, Transformer):
    """BLEU and chrF are those of the words of the whole set, outputs against references, by `bleu` and `chrf`."""
    # keeps: bleu, chrf, exact, greedy
    shorter = [(a, [b[:-1]]) for a, (b,) in _pairs()]
    longer = [(a, [[*b, "und", "ein"]]) for a, (b,) in _pairs()]
    for told, pairs in (("two of four are others", _pairs((0, 3))), ("all are shorter", shorter), ("longer", longer)):
        got, expected = _scores(evaluate_translation, Transformer, pairs), _expected(pairs)
        for key in expected:
            check(abs(got[key] - expected[key]) < 1e-3, f"where of the references {told}: {key} is {got[key]:.4f}, "
                  f"expected {expected[key]:.4f}")


def test_several_references(evaluate_translation, Transformer):
    """A sentence may have several references, and all of them count: three of these four translations are right."""
    # keeps: several, exact, bleu, chrf
    got, expected = _scores(evaluate_translation, Transformer, _several()), _expected(_several())
    for key in expected:
        check(abs(got[key] - expected[key]) < 1e-3, f"with several references {key} is {got[key]:.4f}, expected "
              f"{expected[key]:.4f}: does each of them count?")


def test_asked_without_dropout(evaluate_translation, Transformer):
    """A model that comes in training mode is asked without its dropout."""
    # keeps: dropout
    model = _model(Transformer, dropout=0.5)
    model.train()
    exact = number(evaluate_translation(model, _pairs())["exact"], "the score 'exact'")
    check(abs(exact - 1) < 1e-3, f"for a model in training mode exact is {exact:.4f}, expected 1: was dropout on?")


def probe_all_right(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs())


def probe_half_right(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs((1, 2)))


def probe_exact(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs((1,)))["exact"]


def probe_bleu(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs((0, 3)))["bleu"]


def probe_chrf(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs((0, 3)))["chrf"]


def probe_none_right(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs((0, 1, 2, 3)))


def probe_one_sentence(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _pairs()[2:3])


def probe_longer_references(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, [(a, [[*b, "und", "ein"]]) for a, (b,) in _pairs()])


def probe_shorter_references(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, [(a, [b[:-1]]) for a, (b,) in _pairs()])


def probe_several(evaluate_translation, Transformer):
    return _scores(evaluate_translation, Transformer, _several())


def probe_keys(evaluate_translation, Transformer):
    return set(evaluate_translation(_model(Transformer), _pairs()[:2]))


def probe_training_mode(evaluate_translation, Transformer):
    model = _model(Transformer, dropout=0.5)
    model.train()
    return number(evaluate_translation(model, _pairs())["exact"], "the score 'exact'")
