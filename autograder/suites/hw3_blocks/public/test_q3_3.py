"""Public checks of q3_3: batch_norm and depends_on."""

import torch

from course_utils.checking.compare import check, same, tensor

F64 = torch.float64
PLACES = {"same", "same row", "same column", "elsewhere"}


def test_worked_numbers(batch_norm):
    """The column (1, 3, 8) has mean 4 and variance 26 / 3; with eps = 1/3 the root is 3."""
    # keeps: columns
    x = torch.tensor([[1.0, 6.0], [3.0, 6.0], [8.0, 6.0]], dtype=F64)
    gamma, beta = torch.tensor([2.0, 5.0], dtype=F64), torch.tensor([1.0, -0.5], dtype=F64)
    got = tensor(batch_norm(x, gamma, beta, eps=1 / 3), "the result", (3, 2), F64)
    expected = torch.tensor([[-1.0, -0.5], [1 / 3, -0.5], [11 / 3, -0.5]], dtype=F64)
    same(got, expected, "the result (column by column: subtract its mean, divide by the root of its variance + eps)")


def test_columns(batch_norm, rng):
    """With gamma = 1 and beta = 0 every feature has mean 0 and variance 1 over the batch."""
    # keeps: columns
    x = 3 * torch.randn(7, 4, generator=rng, dtype=F64) + 5
    y = tensor(batch_norm(x, torch.ones(4, dtype=F64), torch.zeros(4, dtype=F64), eps=1e-12), "the result", (7, 4), F64)
    check((y.mean(1).abs() > 1e-9).any(), "every row has mean 0: that is layer norm")
    same(y.mean(0), torch.zeros(4, dtype=F64), "the mean of the columns", atol=1e-9)
    same(y.square().mean(0), torch.ones(4, dtype=F64), "the mean square of the columns (divide by B, not by B - 1)")


def test_fewer_examples_than_features(batch_norm, rng):
    """Three examples of five features, and five of three: values and gradients are those of torch's batch norm."""
    # keeps: columns
    for B, D in ((3, 5), (5, 3)):
        x, gamma, beta = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((B, D), (D,), (D,)))
        theirs = torch.nn.functional.batch_norm(x, None, None, gamma, beta, training=True)
        got = tensor(batch_norm(x, gamma, beta), "the result", (B, D), F64)
        same(got, theirs, f"the result for x of shape {[B, D]}")
        mine, right = x.clone().requires_grad_(), x.clone().requires_grad_()
        pull = torch.randn(B, D, generator=rng, dtype=F64)
        (batch_norm(mine, gamma, beta) * pull).sum().backward()
        (torch.nn.functional.batch_norm(right, None, None, gamma, beta, training=True) * pull).sum().backward()
        check(mine.grad is not None, "no gradient reaches x")
        same(mine.grad, right.grad, "the gradient by x (it flows through mean and variance too)")


def test_one_example(batch_norm, rng):
    """A batch of one has variance 0, so beta comes out."""
    # keeps: batch-of-one
    x, gamma, beta = (torch.randn(*shape, generator=rng, dtype=F64) for shape in ((1, 4), (4,), (4,)))
    same(tensor(batch_norm(x, gamma, beta), "the result", (1, 4), F64), beta[None], "the result for a batch of one")


def test_form_of_depends_on(depends_on):
    """depends_on gives a set of the four words, for "layer" and for "batch", and not the same one for both."""
    # keeps: a-set
    told = {kind: depends_on(kind) for kind in ("layer", "batch")}
    for kind, places in told.items():
        check(isinstance(places, (set, frozenset)), f"depends_on({kind!r}) is a {type(places).__name__}, not a set")
        check(set(places) <= PLACES, f"depends_on({kind!r}) has words that are none of {sorted(PLACES)}")
        check("same" in places, f"depends_on({kind!r}): an output entry depends on the input entry at its own place")
    check(set(told["layer"]) != set(told["batch"]), "the two norms depend on different things: which entries go into "
          "the mean of each?")


def _places(norm, x, gamma, beta):
    """The places of x that move an output entry of norm(x, gamma, beta), by moving each a little."""
    found, (B, D) = set(), x.shape
    for i in range(B):
        for j in range(D):
            step = torch.zeros_like(x)
            step[i, j] = 0.01
            moved = (norm(x + step, gamma, beta) - norm(x - step, gamma, beta)).abs() > 1e-6
            for a, b in moved.nonzero().tolist():
                row, column = a == i, b == j
                found.add("same" if row and column else "same row" if row else "same column" if column else "elsewhere")
    return found


def test_depends_on_what_moves_it(depends_on, layer_norm, batch_norm, rng):
    """depends_on says what the Jacobians of your own two norms say, and what those of torch's say."""
    # keeps: jacobian
    x, gamma, beta = torch.randn(3, 4, generator=rng, dtype=F64), torch.ones(4, dtype=F64), torch.zeros(4, dtype=F64)
    theirs = {
        "layer": lambda x, gamma, beta: torch.nn.functional.layer_norm(x, (4,), gamma, beta),
        "batch": lambda x, gamma, beta: torch.nn.functional.batch_norm(x, None, None, gamma, beta, training=True),
    }
    for kind, own in (("layer", layer_norm), ("batch", batch_norm)):
        told = set(depends_on(kind))
        for whose, norm in (("your", own), ("torch's", theirs[kind])):
            found = _places(norm, x, gamma, beta)
            check(told == found, f"depends_on({kind!r}) is {sorted(told)}, but in {whose} {kind} norm an output "
                  f"entry moves with "
                  f"{sorted(found)}")


def _inputs(B=6, D=4):
    g = torch.Generator().manual_seed(33)
    return [torch.randn(*shape, generator=g, dtype=F64) for shape in ((B, D), (D,), (D,))]


def probe_plain(batch_norm):
    return batch_norm(*_inputs())


def probe_square(batch_norm):
    return batch_norm(*_inputs(4, 4))


def probe_tiny_eps(batch_norm):
    return batch_norm(*_inputs(), eps=1e-12)


def probe_large_eps(batch_norm):
    return batch_norm(*_inputs(), 0.7)


def probe_small_entries(batch_norm):
    x, gamma, beta = _inputs()
    return batch_norm(x / 1000, gamma, beta)


def probe_constant_column(batch_norm):
    x, gamma, beta = _inputs()
    x[:, 1] = 3.0
    return batch_norm(x, gamma, beta)


def probe_offset(batch_norm):
    x, gamma, beta = _inputs()
    return batch_norm(x + 20, gamma, beta)


def probe_two_calls(batch_norm):
    x, gamma, beta = _inputs()
    batch_norm(10 * x + 3, gamma, beta)
    return batch_norm(x, gamma, beta)


def probe_dtype(batch_norm):
    return str(batch_norm(*(v.float() for v in _inputs())).dtype)


def probe_gradient(batch_norm):
    leaves = [v.requires_grad_() for v in _inputs()]
    (batch_norm(*leaves) * torch.linspace(-1, 1, 24, dtype=F64).reshape(6, 4)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_layer(depends_on):
    return depends_on("layer")


def probe_batch(depends_on):
    return depends_on("batch")


def probe_layer_words(depends_on):
    return sorted(depends_on("layer"))


def probe_batch_words(depends_on):
    return sorted(depends_on("batch"))


def probe_batch_of_one(batch_norm):
    return batch_norm(*_inputs(1))
